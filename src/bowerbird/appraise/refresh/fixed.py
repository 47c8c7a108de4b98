"""Fixed interval: every known page is due again after the same time, every page that is gone after a longer one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState


class FixedInterval:
    """Bid age/interval: 1, the reserve price, when the page is due, and more the longer it waits."""

    name = "fixed"

    def __init__(self, interval_s: float = 7 * 86400.0, *, gone_interval_s: float = 30 * 86400.0) -> None:
        self.interval_s = interval_s
        self.gone_interval_s = gone_interval_s

    def _intervals(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.float64]:
        here = snapshot.pages.state[rows] == UrlState.FETCHED
        return np.where(here, self.interval_s, self.gone_interval_s)

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Linear bids with one slope for pages, one for what is gone."""
        interval = self._intervals(snapshot, rows)
        return Bids.build(
            np.ones(len(rows)),
            shape=Shape.LINEAR,
            rate=1.0 / interval,
            since=snapshot.pages.last_fetched[rows],
            terms={"interval_s": interval},
        )

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """age/interval."""
        interval = float(self._intervals(snapshot, np.array([row]))[0])
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        return Term(
            "age/interval",
            age / interval,
            "due when it reaches 1",
            (Term("age_s", age), Term("interval_s", interval)),
        )

    def next_interval_s(self, interval_s: float, changed: bool) -> float:
        """Always the same."""
        return self.interval_s
