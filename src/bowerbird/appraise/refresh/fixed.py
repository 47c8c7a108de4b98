"""Fixed interval: every known page is due again after the same time."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot


class FixedInterval:
    """Bid age/interval: 1, the reserve price, when the page is due, and more the longer it waits."""

    name = "fixed"

    def __init__(self, interval_s: float = 7 * 86400.0) -> None:
        self.interval_s = interval_s

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Linear bids with one slope."""
        since = snapshot.pages.last_fetched[rows]
        return Bids.build(
            np.ones(len(rows)),
            shape=Shape.LINEAR,
            rate=1.0 / self.interval_s,
            since=since,
            terms={"interval_s": np.full(len(rows), self.interval_s)},
        )

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """age/interval."""
        age = snapshot.now - float(snapshot.pages.last_fetched[row])
        return Term(
            "age/interval",
            age / self.interval_s,
            "due when it reaches 1",
            (Term("age_s", age), Term("interval_s", self.interval_s)),
        )

    def next_interval_s(self, interval_s: float, changed: bool) -> float:
        """Always the same."""
        return self.interval_s
