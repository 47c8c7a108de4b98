"""Content sources (sitemaps, feeds): the first visit comes before pages, later ones at an interval of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState


class HubInterval:
    """Bid 3 for a hub that never answered, then age/interval; one that is gone has an interval of its own."""

    name = "hub-interval"
    FIRST_VISIT = 3.0

    def __init__(self, interval_s: float = 6 * 3600.0, *, gone_interval_s: float = 30 * 86400.0) -> None:
        self.interval_s = interval_s
        self.gone_interval_s = gone_interval_s

    def _intervals(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.float64]:
        here = np.isin(snapshot.pages.state[rows], (UrlState.NEW, UrlState.FETCHED))
        return np.where(here, self.interval_s, self.gone_interval_s)

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant until it answered, linear after that."""
        known = snapshot.pages.state[rows] != UrlState.NEW
        interval = self._intervals(snapshot, rows)
        bids = Bids.build(
            np.where(known, 1.0, self.FIRST_VISIT),
            rate=1.0 / interval,
            since=snapshot.pages.last_fetched[rows],
            terms={"hub_interval_s": interval},
        )
        bids.shape[known] = Shape.LINEAR
        return bids

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """3 at first, then age/interval."""
        if snapshot.pages.state[row] == UrlState.NEW:
            return Term("first visit of a hub", self.FIRST_VISIT, "it announces pages: fetched before them")
        interval = float(self._intervals(snapshot, np.array([row]))[0])
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        return Term(
            "age/interval",
            age / interval,
            "a hub that announces pages; due when it reaches 1",
            (Term("age_s", age), Term("hub_interval_s", interval)),
        )
