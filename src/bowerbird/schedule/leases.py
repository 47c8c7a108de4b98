"""Leases: who holds which URL, until when.

They live in memory, so a restart leaves none behind; those given to other machines are in the database too.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from bowerbird.model.url_state import FetchKind

SLACK = 1000  # answered leases that may stay among those that will expire
ROBOTS_ROW = -1  # the row of a lease on robots.txt
LOST_ROW = -2  # of a lease whose URL nobody knows any more: who gave it was gone before it had written the URL down


@dataclass(slots=True)
class Lease:
    """A URL handed to a worker, with the decision that led to it."""

    row: int
    host: int
    worker: int
    kind: FetchKind
    decided_at: float
    expires_at: float
    bid: float
    price: float
    terms: str
    waiting: int = -1  # for a lease on robots.txt: the row that will be fetched when it has come


class LeaseBook:
    """Open leases by token."""

    def __init__(self, first: int = 1) -> None:
        self._open: dict[int, Lease] = {}
        self._expiry: list[tuple[float, int]] = []
        self._next = first
        self._over: list[int] = []

    def __len__(self) -> int:
        return len(self._open)

    def open(self, lease: Lease) -> int:
        """Register; the token comes back with the result."""
        token = self._next
        self._next += 1
        self.reopen(token, lease)
        return token

    def reopen(self, token: int, lease: Lease) -> None:
        """Register a lease that has its token already."""
        self._open[token] = lease
        if len(self._expiry) > 2 * len(self._open) + SLACK:  # most of them were answered long ago
            self._expiry = [(held.expires_at, number) for number, held in self._open.items()]
            heapq.heapify(self._expiry)
        else:
            heapq.heappush(self._expiry, (lease.expires_at, token))

    def of(self, token: int) -> Lease:
        """An open lease."""
        return self._open[token]

    def take_over(self) -> list[int]:
        """Tokens of the leases that ended since the last call."""
        over, self._over = self._over, []
        return over

    def _end(self, token: int) -> Lease | None:
        lease = self._open.pop(token, None)
        if lease is not None:
            self._over.append(token)
        return lease

    def holding(self, row: int) -> Lease | None:
        """The lease on a row, if somebody holds it."""
        return next((lease for lease in self._open.values() if lease.row == row), None)

    def of_rows(self) -> list[Lease]:
        """All but those on robots.txt and on URLs that nobody knows any more."""
        return [lease for lease in self._open.values() if lease.row >= 0]

    def rows(self) -> set[int]:
        """The rows that somebody holds."""
        return {lease.row for lease in self._open.values()}

    def close(self, token: int) -> Lease | None:
        """The lease of a result; None when it expired before."""
        return self._end(token)

    def expired(self, now: float) -> list[Lease]:
        """Take out the leases nobody answered in time."""
        out: list[Lease] = []
        while self._expiry and self._expiry[0][0] <= now:
            _, token = heapq.heappop(self._expiry)
            lease = self._end(token)
            if lease is not None:
                out.append(lease)
        return out

    def set_back(self, by_s: float) -> None:
        """The clock was set back: leases end when they would have."""
        for lease in self._open.values():
            lease.decided_at -= by_s
            lease.expires_at -= by_s
        self._expiry = [(held.expires_at, number) for number, held in self._open.items()]
        heapq.heapify(self._expiry)

    def of_worker(self, worker: int) -> list[Lease]:
        """Take out all leases of a worker that was lost."""
        tokens = [token for token, lease in self._open.items() if lease.worker == worker]
        return [lease for token in tokens if (lease := self._end(token)) is not None]
