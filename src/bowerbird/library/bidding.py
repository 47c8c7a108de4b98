"""Snapshot in, bids out: what a fetch of each page is worth, when, and which come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.due import due_times, values_at
from bowerbird.appraise.policy import Policy, make_policy
from bowerbird.library.studies import study
from bowerbird.library.tables import Table
from bowerbird.model.bid import Bids, Term
from bowerbird.model.errors import ConfigError
from bowerbird.model.snapshot import Snapshot

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Appraisal:
    """The bids of all rows of a snapshot by a policy; 0 where nobody may fetch. Times are those of the snapshot."""

    snapshot: Snapshot
    policy: Policy
    bids: Bids

    def __len__(self) -> int:
        return len(self.bids)

    def value(self, now: float | None = None) -> F64:
        """What each bid is worth at a time, that of the snapshot unless it is given."""
        return values_at(self.bids, self._at(now))

    def order(self, n: int | None = None, now: float | None = None) -> I64:
        """Rows by value, best first and equal ones by row: the first `n`, or all that bid anything."""
        from bowerbird.schedule.auction import first_in_order  # compiled code loads slowly

        values = self.value(now)
        rows = np.flatnonzero(values > 0)
        return rows[first_in_order(values[rows], rows, len(rows) if n is None else _check_count(n))]

    def next(self, n: int, now: float | None = None, *, price: float | None = None) -> I64:
        """The best `n` rows to fetch at once, no two of one host, that bid the price (the policy's reserve of 1)."""
        from bowerbird.schedule.auction import Auction
        from bowerbird.schedule.politeness import HostGate

        at, least = self._at(now), self.policy.reserve if price is None else price
        auction = Auction(HostGate())
        auction.place(np.arange(len(self)), self.bids, self.snapshot.pages.host, offer=False)
        auction.refill(at, least)
        return np.array([pick.row for pick in auction.pick(at, _check_count(n), least)], dtype=np.int64)

    def due(self, price: float | None = None, now: float | None = None) -> F64:
        """By row, the first time from now on at which it bids the price; infinite = never."""
        return due_times(self.bids, self.policy.reserve if price is None else price, self._at(now))

    def explain(self, row: int) -> Term:
        """Why the bid of one row is what it is at the time of the snapshot, as a tree."""
        if not 0 <= row < len(self):
            raise ConfigError(f"row {row}: the snapshot has rows 0 to {len(self) - 1}.")
        return self.policy.explain(self.snapshot, row)

    def _at(self, now: float | None) -> float:
        return self.snapshot.now if now is None else now


def bid(
    snapshot: Snapshot,
    policy: str | Policy = "rw-eg",
    *,
    pages: Table | Sequence[str] | None = None,
    visits: Table | None = None,
    seed: int = 0,
) -> Appraisal:
    """Bids of all rows by a policy, such as "rw-eg+user-centric"; studies that it bids by are made where missing.

    `pages` and `visits` are for these, as `study` has them.

    >>> from bowerbird.library.snapshots import snapshot_of
    >>> pages = {"page": ["http://a/", "http://a/x"], "last_fetched": [1000.0, None]}
    >>> bid(snapshot_of(pages, now=605800.0), "breadth-first+fixed").value().round(6).tolist()
    [1.0, 2.0]
    """
    policy = make_policy(policy) if isinstance(policy, str) else policy
    snapshot = study(snapshot, policy, pages=pages, visits=visits, seed=seed)
    return Appraisal(snapshot, policy, policy.appraise(snapshot, np.arange(len(snapshot.pages))))


def _check_count(n: int) -> int:
    if n < 0:
        raise ConfigError(f"n {n}: must be 0 or more.")
    return n
