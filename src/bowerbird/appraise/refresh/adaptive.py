"""Adaptive interval, as Apache Nutch does it: shorter after a change, longer after none."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState


def adapt_interval(
    interval_s: float, changed: bool, *, longer: float, shorter: float, min_s: float, max_s: float
) -> float:
    """[NUTCH] The next interval: times (1 - shorter) after a change, times (1 + longer) after none, within bounds.

    >>> adapt_interval(1000, True, longer=0.4, shorter=0.2, min_s=60, max_s=5000)
    800.0
    """
    factor = 1.0 - shorter if changed else 1.0 + longer
    return min(max(interval_s * factor, min_s), max_s)


class AdaptiveInterval:
    """Bid age/interval, with an interval of each page's own that follows whether visits found changes."""

    name = "adaptive"

    def __init__(
        self,
        interval_s: float = 7 * 86400.0,
        *,
        longer: float = 0.4,
        shorter: float = 0.2,
        min_s: float = 60.0,
        max_s: float = 365 * 86400.0,
        gone_interval_s: float = 30 * 86400.0,
    ) -> None:
        self.interval_s = interval_s
        self.longer = longer
        self.shorter = shorter
        self.min_s = min_s
        self.max_s = max_s
        self.gone_interval_s = gone_interval_s

    def _intervals(self, snapshot: Snapshot, rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        stored = snapshot.pages.interval_s[rows]
        own = np.where(stored > 0, stored, np.float32(self.interval_s))
        gone = np.isin(snapshot.pages.state[rows], (UrlState.GONE, UrlState.FAILED))
        return np.where(gone, np.float32(self.gone_interval_s), own)

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Linear bids, each with its own slope."""
        interval = self._intervals(snapshot, rows)
        return Bids.build(
            np.ones(len(rows)),
            shape=Shape.LINEAR,
            rate=1.0 / interval,
            since=snapshot.pages.last_fetched[rows],
            terms={"interval_s": interval, "changes": snapshot.pages.changes[rows]},
        )

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """age/interval, with the page's own interval."""
        interval = float(self._intervals(snapshot, np.array([row]))[0])
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        return Term(
            "age/interval",
            age / interval,
            "due when it reaches 1; the interval shrinks after a change and grows after none",
            (
                Term("age_s", age),
                Term("interval_s", interval),
                Term("visits", int(snapshot.pages.fetches[row])),
                Term("changes", int(snapshot.pages.changes[row])),
            ),
        )

    def next_interval_s(self, interval_s: float, changed: bool) -> float:
        """Nutch's rule."""
        return adapt_interval(
            interval_s if interval_s > 0 else self.interval_s,
            changed,
            longer=self.longer,
            shorter=self.shorter,
            min_s=self.min_s,
            max_s=self.max_s,
        )
