"""The refresh experiment's policies online: what a policy knows is what its own refreshes have found so far.

They are the methods of a running crawl, told of changes, gains and places in answers by the same forecast. Of the
budget, 5% goes to pages at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.adaptive import adapt_interval
from bowerbird.appraise.refresh.bids import RefreshBids, RefreshOptions
from bowerbird.appraise.refresh.forecast import forecast_pages
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.methods import METHODS
from bowerbird.appraise.refresh.signals import OFF, ON, effective_age_s, learn_signals, signal_evidence
from bowerbird.lab.refresh_announcements import Announcements
from bowerbird.lab.refresh_data import FloatArray
from bowerbird.lab.refresh_replay import Policy, Replay
from bowerbird.lab.refresh_scenes import Combination, RefreshScenes
from bowerbird.lab.refresh_terms import I64
from bowerbird.lab.refresh_visits import WEEK_S, Visits

EXPLORED = 0.05
#: weeks after which the forecast is made anew
EVERY = 1
THRESHOLD = 0.1


class Learner:
    """A method of the crawl that is told what its own visits found; equal bids are drawn by lot."""

    def __init__(
        self,
        data: RefreshScenes,
        scene: Combination,
        method: str,
        rng: np.random.Generator,
        announcements: Announcements | None = None,
    ) -> None:
        self._data, self._scene, self._rng = data, scene, rng
        self._method, self._announcements = METHODS[method], announcements
        self._visits = Visits(data.data, data.shifts)
        self._bids: RefreshBids | None = None

    def __call__(self, state: Replay, budget: int) -> I64:
        """The pages of the highest bids, and some at random."""
        age_s = (state.week - state.refreshed).astype(np.float64) * WEEK_S
        if self._bids is None or (state.week - 1) % EVERY == 0:
            inputs = self._look(state, age_s)
            options = RefreshOptions(budget / WEEK_S, THRESHOLD)
            self._bids = self._method(inputs, forecast_pages(inputs), options)
        on = np.zeros(len(age_s), dtype=np.bool_)
        if self._announcements is not None:
            on = self._announcements.since_refresh(state)
        chosen = choose_pages(self._bids.values(self._hear(self._bids, age_s, on)), budget, self._rng)
        self._visits.add(state, chosen, on)
        return chosen

    def _hear(self, bids: RefreshBids, age_s: FloatArray, on: npt.NDArray[np.bool_]) -> FloatArray:
        """Ages as signals make them, by how good those have been at this policy's visits."""
        if self._announcements is None or not bids.listens:
            return age_s
        interval_s, was_on, changed = self._visits.signals()
        group = np.zeros(len(interval_s), dtype=np.int64)
        quality = learn_signals(group, interval_s, was_on, changed, groups=1)
        recall, false_rate = float(quality.recall[0]), float(quality.false_rate_per_s[0])
        evidence = signal_evidence(age_s, np.where(on, ON, OFF).astype(np.int8), recall, false_rate)
        return effective_age_s(bids.rate_per_s, age_s, evidence)

    def _look(self, state: Replay, age_s: FloatArray) -> RefreshInputs:
        starts, interval_s, changed, shift, gain = self._visits.columns()
        count = len(age_s)
        return RefreshInputs(
            now_s=state.week * WEEK_S,
            starts=starts,
            interval_s=interval_s,
            changed=changed,
            shift=shift,
            gain=gain,
            stake=self._scene.stakes,
            views=self._scene.views,
            levels=self._data.levels,
            hint_age_s=np.full(count, np.nan),
            cost=np.ones(count),
        )


def choose_pages(values: FloatArray, budget: int, rng: np.random.Generator) -> I64:
    """The pages of the highest values, equal ones by lot; of the budget, a part is drawn from all the others."""
    lot = rng.permutation(len(values))
    best = lot[np.argsort(-values[lot], kind="stable")]
    drawn = min(round(EXPLORED * budget), len(values) - (budget - round(EXPLORED * budget)))
    taken = best[: budget - drawn]
    others = best[len(taken) :]
    return np.concatenate([taken, rng.choice(others, drawn, replace=False)]).astype(np.int64)


class Adaptive:
    """As Nutch does it: each page has an interval, shorter after a change, longer after none; most overdue first."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._weeks = np.zeros(count)

    def __call__(self, state: Replay, budget: int) -> I64:
        """The most overdue; all begin with the interval that the budget allows."""
        if not self._weeks.any():
            self._weeks[:] = len(self._weeks) / max(budget, 1)
        chosen = choose_pages((state.week - state.refreshed) / self._weeks, budget, self._rng)
        changed = state.local_version[chosen] != state.live_version[chosen]
        for page, found in zip(chosen.tolist(), changed.tolist(), strict=True):
            self._weeks[page] = adapt_interval(
                float(self._weeks[page]), found, longer=0.4, shorter=0.2, min_s=0.1, max_s=1000.0
            )
        return chosen


MakeOnline = Callable[[RefreshScenes, Combination, np.random.Generator], Policy]


def _learn(method: str) -> MakeOnline:
    return lambda data, scene, rng: Learner(data, scene, method, rng)


ONLINE: Mapping[str, MakeOnline] = {
    "nutch-online": lambda data, scene, rng: Adaptive(data.data.count, rng),
    "proportional-online": _learn("proportional"),
    "sbr-online": _learn("sbr"),
    "ebr-online": _learn("ebr"),
    "click-ebr-online": _learn("click-ebr"),
    "lambda-online": _learn("lambda-crawl"),
    "azar-online": _learn("azar"),
    "uc-linear-online": _learn("user-centric-linear"),
    "uc-area-online": _learn("user-centric"),
    "uc-saturating-online": _learn("user-centric-saturating"),
}
