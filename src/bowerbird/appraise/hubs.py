"""Content sources (sitemaps, feeds): the first visit comes before pages, later ones at an interval of their own."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot


class HubInterval:
    """Bid 3 for a hub never visited, then age/interval."""

    name = "hub-interval"
    FIRST_VISIT = 3.0

    def __init__(self, interval_s: float = 6 * 3600.0) -> None:
        self.interval_s = interval_s

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant until the first visit, linear after it."""
        seen = snapshot.pages.fetches[rows] > 0
        bids = Bids.build(
            np.where(seen, 1.0, self.FIRST_VISIT),
            rate=1.0 / self.interval_s,
            since=snapshot.pages.last_fetched[rows],
            terms={"hub_interval_s": np.full(len(rows), self.interval_s)},
        )
        bids.shape[seen] = Shape.LINEAR
        return bids

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """3 at first, then age/interval."""
        if snapshot.pages.fetches[row] == 0:
            return Term("first visit of a hub", self.FIRST_VISIT, "it announces pages: fetched before them")
        age = snapshot.now - float(snapshot.pages.last_fetched[row])
        return Term(
            "age/interval",
            age / self.interval_s,
            "a hub that announces pages; due when it reaches 1",
            (Term("age_s", age), Term("hub_interval_s", self.interval_s)),
        )
