"""URLs that are with somebody else's fetchers, until when; what the next commit writes of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.guest_places import GuestPlaces
from bowerbird.crawl.guest_queues import CLOCK_SLACK_S
from bowerbird.schedule.auction import Auction
from bowerbird.store.guest_tables import GuestLease, GuestWrites, read_leases

LONGEST_S = 7 * 86_400.0
SPARE = 10_000  # entries of the heap that need not be there


class GuestLeases:
    """Open leases by row. A lease that is open is in the database with the next commit, and back after a restart."""

    def __init__(self, places: GuestPlaces, auction: Auction, writes: GuestWrites, now: float) -> None:
        self.places = places
        self.auction = auction
        self._writes = writes
        self._open: dict[int, GuestLease] = {}
        self._expiry: list[tuple[float, int]] = []
        self._looked_at = now
        for row, lease in read_leases(places.repository.connection).items():
            if lease.until > now and row < places.columns.count and not places.columns["flags"][row]:
                lease.until = _latest(lease, now)  # a clock may have been ahead
                self._hold(row, lease)
            else:
                writes.ended.add(row)

    def __len__(self) -> int:
        return len(self._open)

    def rows(self) -> npt.NDArray[np.int64]:
        """URLs that somebody has."""
        return np.fromiter(self._open, dtype=np.int64, count=len(self._open))

    def until(self, row: int) -> float | None:
        """Until when somebody has a URL; None where nobody does."""
        lease = self._open.get(row)
        return None if lease is None else lease.until

    def open(self, row: int, lease: GuestLease) -> None:
        """Somebody has this URL now."""
        self._hold(row, lease)
        self._writes.leases[row] = lease
        self._writes.ended.discard(row)

    def _hold(self, row: int, lease: GuestLease) -> None:
        self._open[row] = lease
        heapq.heappush(self._expiry, (lease.until, row))
        self.places.queues.columns["in_process"][self.places.columns["queue"][row]] += 1
        self.auction.hold([row], lease.until)

    def end_all(self, rows: Sequence[int]) -> list[GuestLease | None]:
        """Nobody has these URLs any more; the leases there were, in the order of the rows."""
        leases = [self._open.pop(row, None) for row in rows]
        ended = [row for row, lease in zip(rows, leases, strict=True) if lease is not None]
        if ended:
            np.subtract.at(self.places.queues.columns["in_process"], self.places.columns["queue"][ended], 1)
            for row in ended:
                self._writes.leases.pop(row, None)
            self._writes.ended.update(ended)
            if len(self._expiry) > 2 * len(self._open) + SPARE:  # mostly of leases that ended in good time
                self._expiry = [(lease.until, row) for row, lease in self._open.items()]
                heapq.heapify(self._expiry)
        return leases

    def expire(self, now: float) -> int:
        """Leases that ran out end, so that their URLs are in line again; how many."""
        if now < self._looked_at - CLOCK_SLACK_S:
            self._bring_back(now)
        self._looked_at = now
        ended = []
        while self._expiry and self._expiry[0][0] <= now:
            until, row = heapq.heappop(self._expiry)
            lease = self._open.get(row)
            if lease is not None and lease.until == until:
                ended.append(row)
        self.end_all(ended)
        return len(ended)

    def _bring_back(self, now: float) -> None:
        """The clock was set back: nobody keeps a URL longer than it was leased for."""
        for row, lease in self._open.items():
            until = _latest(lease, now)
            if until < lease.until:
                lease.until = until
                self._writes.leases[row] = lease
                self.auction.hold([row], until)
        self._expiry = [(lease.until, row) for row, lease in self._open.items()]
        heapq.heapify(self._expiry)


def _latest(lease: GuestLease, now: float) -> float:
    """When a lease that holds now ends at the latest: a clock that was ahead counts as now."""
    return min(lease.until, now + max(lease.until - lease.decided_at, 0.0))
