"""Signals that a site might send, simulated: a lastmod that tells of some changes, and now and then of none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import RefreshData
from bowerbird.lab.refresh_replay import Replay


class Announcements:
    """By week and page, the last week in which the page was announced, -1 for never.

    One seed draws the same lots for all qualities, so that what a better signal tells includes what a worse one does.
    """

    def __init__(self, data: RefreshData, recall: float, false_rate: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        told = (rng.random(len(data.week)) < recall) & (data.week > 0)
        weeks = data.weeks + 1
        false = rng.random((weeks, data.count)) < false_rate
        false[0] = False
        false[data.week[told], data.page[told]] = True
        last = np.where(false, np.arange(weeks, dtype=np.int16)[:, None], np.int16(-1))
        self.last: npt.NDArray[np.int16] = np.maximum.accumulate(last, axis=0)

    def since_refresh(self, state: Replay) -> npt.NDArray[np.bool_]:
        """By page, whether it was announced after its last refresh."""
        return np.asarray(self.last[state.week] > state.refreshed, np.bool_)
