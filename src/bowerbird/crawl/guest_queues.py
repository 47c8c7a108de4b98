"""The lines (queues) of a crawl that somebody else fetches for: their keys, waits, blocks, limits, and counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bowerbird.store.columns import Columns
from bowerbird.store.guest_tables import GuestWrites

I64 = npt.NDArray[np.int64]
NO_LIMIT = np.iinfo(np.int64).max
CLOCK_SLACK_S = 1.0


class GuestQueues(dict[str, int]):
    """Key -> number of a line; a missing key is added when asked for."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "delay_s": ("f8", 1),  # below 0: the default
        "blocked_until": ("f8", 1),
        "most": ("i8", 1),  # URLs, at most, that are ever handed out for a first fetch; 0 = all
        "produced_at": ("f8", 1),
        "in_process": ("i8", 1),
        "fetched": ("i8", 1),  # URLs that were fetched at least once
        "is_gone": ("u1", 1),
    }

    def __init__(self, writes: GuestWrites, default_delay_s: float) -> None:
        super().__init__()
        self.keys_by_number: list[str] = []
        self.columns = Columns(self.LAYOUT, capacity=256)
        self.default_delay_s = default_delay_s
        self._writes = writes

    def __missing__(self, key: str) -> int:
        number = self._add(key)
        self.touch(number)
        return number

    def _add(self, key: str) -> int:
        number = len(self.keys_by_number)
        self[key] = number
        self.keys_by_number.append(key)
        self.columns.extend(1)
        self.columns["delay_s"][number] = -1.0
        return number

    def restore(self, rows: Iterable[tuple[int, str, float | None, float, int, float]], now: float) -> None:
        """As they were; what was handed out in the future (a clock was ahead) counts as now."""
        for number, key, delay_s, blocked_until, most, produced_at in rows:
            while len(self.keys_by_number) < number:  # lines that were removed
                self._leave_out()
            self._add(key)
            columns = self.columns
            columns["delay_s"][number] = -1.0 if delay_s is None else delay_s
            columns["blocked_until"][number] = blocked_until
            columns["most"][number] = most
            columns["produced_at"][number] = min(produced_at, now)

    def _leave_out(self) -> None:
        number = len(self.keys_by_number)
        self.keys_by_number.append("")
        self.columns.extend(1)
        self.columns["is_gone"][number] = 1

    def drop(self, number: int) -> None:
        """This line is no more; a URL that comes for its key begins a new one."""
        del self[self.keys_by_number[number]]
        self.columns["is_gone"][number] = 1
        self._writes.queues.pop(number, None)
        self._writes.dropped_queues.add(number)

    def set(self, number: int, name: str, value: float) -> None:
        """Set one of a line's columns, durably."""
        self.columns[name][number] = value
        self.touch(number)

    def touch(self, number: int) -> None:
        """It changed: the next commit writes it."""
        columns = self.columns
        delay_s = float(columns["delay_s"][number])
        self._writes.queues[number] = (
            number,
            self.keys_by_number[number],
            None if delay_s < 0 else delay_s,
            float(columns["blocked_until"][number]),
            int(columns["most"][number]),
            float(columns["produced_at"][number]),
        )

    def delays(self) -> npt.NDArray[np.float64]:
        """Seconds between two times that something of each line is handed out."""
        own = self.columns["delay_s"]
        return np.where(own < 0, self.default_delay_s, own)

    def free(self, now: float, per_line: int) -> I64:
        """How many of each line may be handed out now, where at most `per_line` may be with fetchers at once."""
        columns = self.columns
        columns["produced_at"][columns["produced_at"] > now + CLOCK_SLACK_S] = now  # the clock was set back
        left = np.where(columns["most"] > 0, columns["most"] - columns["fetched"], NO_LIMIT)
        room = np.minimum(left, per_line) - columns["in_process"]
        ready = (columns["blocked_until"] <= now) & (columns["produced_at"] + self.delays() <= now)
        return np.where(ready & (columns["is_gone"] == 0), np.maximum(room, 0), 0)

    def numbers(self) -> I64:
        """The lines there are, in the order in which they began."""
        return np.flatnonzero(self.columns["is_gone"] == 0)
