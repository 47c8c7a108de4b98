"""One connection and a delay per host: which hosts may be asked now, and for how many pages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.store.columns import Columns


class HostGate:
    """Per-host slots and waiting times. A delay above zero allows one connection only."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "delay_s": ("f4", 1),
        "slots": ("u2", 1),
        "in_flight": ("u2", 1),
        "ready_at": ("f8", 1),
        "weight": ("f4", 1),
    }

    def __init__(self, delay_s: float = 1.0, connections: int = 1) -> None:
        self.delay_s = delay_s
        self.connections = connections
        self.columns = Columns(self.LAYOUT, capacity=256)

    def __len__(self) -> int:
        return self.columns.count

    def extend(self, hosts: int) -> None:
        """Know hosts up to number `hosts` - 1."""
        first = self.columns.count
        if hosts <= first:
            return
        self.columns.extend(hosts - first)
        self.columns["delay_s"][first:] = self.delay_s
        self.columns["slots"][first:] = 1 if self.delay_s > 0 else self.connections
        self.columns["weight"][first:] = 1.0

    def set_delay(self, host: int, delay_s: float) -> None:
        """A host's own delay (from robots.txt); never below ours."""
        delay_s = max(delay_s, self.delay_s)
        self.columns["delay_s"][host] = delay_s
        self.columns["slots"][host] = 1 if delay_s > 0 else self.connections

    def take(self, host: int, now: float) -> None:
        """A fetch of this host begins."""
        self.columns["in_flight"][host] += 1
        self.columns["ready_at"][host] = max(float(self.columns["ready_at"][host]), now + self.delay(host))

    def give_back(self, host: int, now: float) -> None:
        """A fetch of this host ended: its delay counts from the end."""
        self.columns["in_flight"][host] = max(int(self.columns["in_flight"][host]) - 1, 0)
        self.hold(host, now + self.delay(host))

    def cancel(self, host: int, now: float) -> None:
        """The fetch did not happen after all: the host may be asked at once."""
        self.columns["in_flight"][host] = max(int(self.columns["in_flight"][host]) - 1, 0)
        self.columns["ready_at"][host] = now

    def hold(self, host: int, until: float) -> None:
        """Leave a host alone until then."""
        self.columns["ready_at"][host] = max(float(self.columns["ready_at"][host]), until)

    def release(self, host: int, at: float) -> None:
        """A host held for some reason may be asked again at `at`."""
        self.columns["ready_at"][host] = at

    def set_back(self, by_s: float) -> None:
        """The clock was set back: no host waits longer for that."""
        ready_at = self.columns["ready_at"]
        ready_at -= by_s

    def delay(self, host: int) -> float:
        """Seconds between two fetches of a host."""
        return float(self.columns["delay_s"][host])

    def free(self, now: float) -> npt.NDArray[np.int64]:
        """Free slots per host at `now`; 0 while it must be left alone."""
        columns = self.columns
        open_slots = columns["slots"].astype(np.int64) - columns["in_flight"]
        return np.where(columns["ready_at"] <= now, np.maximum(open_slots, 0), 0)

    def is_free(self, host: int, now: float) -> bool:
        """May this host be asked now?"""
        columns = self.columns
        return bool(columns["ready_at"][host] <= now and columns["in_flight"][host] < columns["slots"][host])

    def are_free(self, hosts: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        """Which of these may be asked now."""
        columns = self.columns
        return np.asarray((columns["ready_at"][hosts] <= now) & (columns["in_flight"][hosts] < columns["slots"][hosts]))

    def are_held(self, hosts: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        """Which of these are left alone for longer than their delay, for some trouble or their robots.txt."""
        columns = self.columns
        return np.asarray(columns["ready_at"][hosts] > now + columns["delay_s"][hosts].astype(np.float64))

    def waiting(self, now: float) -> int:
        """Hosts that must be left alone now."""
        return int(np.count_nonzero((self.columns["ready_at"] > now) | (self.columns["in_flight"] > 0)))
