"""Content sources (sitemaps, feeds): the first visit comes before pages, later ones at an interval of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState


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

    def claims(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which of these rows are pages that the crawl chose as seeds: what is new is looked for from there."""
        if snapshot.seed_study is None:
            return np.zeros(len(rows), dtype=np.bool_)
        pages = snapshot.pages
        here = (pages.kind[rows] == UrlKind.PAGE) & (pages.state[rows] == UrlState.FETCHED)
        return np.asarray(here & snapshot.seed_study.has(rows))

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """3 at first, then age/interval."""
        if snapshot.pages.state[row] == UrlState.NEW:
            return Term("first visit of a hub", self.FIRST_VISIT, "it announces pages: fetched before them")
        interval = float(self._intervals(snapshot, np.array([row]))[0])
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        is_seed = bool(self.claims(snapshot, np.array([row]))[0])
        what = "a seed that the crawl chose" if is_seed else "a hub that announces pages"
        return Term(
            "age/interval",
            age / interval,
            f"{what}; due when it reaches 1",
            (Term("age_s", age), Term("hub_interval_s", interval)),
        )
