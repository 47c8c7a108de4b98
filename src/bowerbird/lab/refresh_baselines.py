"""The refresh experiment's policies in sample: all parameters from the weeks of the replay itself, as in [UC05].

SBR, EBR and EBR by views follow Wolf's transportation schedule of the whole period, made for every threshold of
shingles; the best is kept. The others fetch each week the pages of the largest age·frequency.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bowerbird.appraise.refresh.frequencies import harmonic_frequencies, proportional_frequencies, random_frequencies
from bowerbird.appraise.refresh.transportation import Schedule, schedule_refreshes, whole_counts
from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_measures import pages_a_week
from bowerbird.lab.refresh_policies import Forecast, refresh_none, refresh_oracle, take_best, user_centric
from bowerbird.lab.refresh_replay import Policy, Replay
from bowerbird.lab.refresh_scenes import Combination
from bowerbird.lab.refresh_terms import I64

THRESHOLDS = tuple(step / 10 for step in range(1, 11))
PATIENCE = 4


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy, and the setting it has; of several the one that loses least is kept."""

    policy: Policy
    setting: str = ""


Make = Callable[[Combination, int], Iterator[Candidate]]


def follow_schedule(schedule: Schedule) -> Policy:
    """Fetch what the schedule says for the week."""

    def choose(state: Replay, budget: int) -> I64:
        return schedule.pages_of(state.week - 1)

    return choose


def follow_frequencies(frequency: FloatArray) -> Policy:
    """Fetch the pages that are most overdue: those of the largest age·frequency."""

    def choose(state: Replay, budget: int) -> I64:
        return take_best(frequency * (state.week - state.refreshed), budget)

    return choose


def count_updates(data: RefreshData, threshold: float = 0.0) -> FloatArray:
    """By page, the updates that change at least this share of its shingles; identical texts count at 0 only."""
    later = np.flatnonzero(data.week > 0)
    great = data.changed_share[later] >= threshold
    return np.bincount(data.page[later], great, data.count).astype(np.float64)


def embarrassment(data: RefreshData, threshold: float) -> FloatArray:
    """[UC05] Wolf et al.: d(p), the share of a page's updates that change at least this share of its shingles."""
    return count_updates(data, threshold) / np.maximum(count_updates(data), 1.0)


def _sbr(scene: Combination, budget: int) -> Iterator[Candidate]:
    data = scene.data
    for threshold in THRESHOLDS:
        rates = count_updates(data, threshold) / data.weeks
        if rates.any():
            made = schedule_refreshes(rates, np.ones(data.count), slots=data.weeks, room=budget)
            yield Candidate(follow_schedule(made), f"threshold {threshold:g}")


def _ebr(scene: Combination, budget: int, views: FloatArray) -> Iterator[Candidate]:
    data = scene.data
    rates = count_updates(data) / data.weeks
    for threshold in THRESHOLDS:
        weights = embarrassment(data, threshold) * views
        if weights.any():
            made = schedule_refreshes(rates, weights, slots=data.weeks, room=budget)
            yield Candidate(follow_schedule(made), f"threshold {threshold:g}")


def _by_frequencies(frequencies: Callable[[Combination, FloatArray, int], FloatArray]) -> Make:
    def make(scene: Combination, budget: int) -> Iterator[Candidate]:
        rates = count_updates(scene.data) / scene.data.weeks
        yield Candidate(follow_frequencies(frequencies(scene, rates, budget)))

    return make


def _by_forecast(shape: str, forecast: Callable[[Combination], Forecast]) -> Make:
    def make(scene: Combination, budget: int) -> Iterator[Candidate]:
        yield Candidate(user_centric(forecast(scene), shape))

    return make


#: policies whose parameters are those of the replay itself, and the two bounds
IN_SAMPLE: Mapping[str, Make] = {
    "none": lambda scene, budget: iter([Candidate(refresh_none)]),
    "proportional": _by_frequencies(lambda scene, rates, budget: proportional_frequencies(rates, budget).frequency),
    "sbr": _sbr,
    "ebr": lambda scene, budget: _ebr(scene, budget, np.ones(scene.data.count)),
    "click-ebr": lambda scene, budget: _ebr(scene, budget, scene.views),
    "lambda-crawl": _by_frequencies(
        lambda scene, rates, budget: harmonic_frequencies(rates, scene.views, budget).frequency
    ),
    "azar": _by_frequencies(lambda scene, rates, budget: random_frequencies(rates, scene.views, budget).frequency),
    "uc-linear": _by_forecast("linear", lambda scene: scene.curve_forecast),
    "uc-area": _by_forecast("area", lambda scene: scene.curve_forecast),
    "uc-saturating": _by_forecast("saturating", lambda scene: scene.curve_forecast),
    "uc-saturating-local": _by_forecast("saturating", lambda scene: scene.local_forecast),
    "uc-saturating-exact": _by_forecast("saturating", lambda scene: scene.exact_forecast),
    "oracle": lambda scene, budget: iter([Candidate(refresh_oracle)]),
}


def run_best(scene: Combination, make: Make, share: float) -> tuple[float, str]:
    """The least loss of the settings of one policy, and the setting; without any, that of no refresh.

    Settings come in order: once so many in a row were worse than the best, the rest are left out.
    """
    best, worse = (math.inf, "nothing changes"), 0
    for each in make(scene, pages_a_week(share, scene.data.count)):
        loss = scene.loss_bp(each.policy, share)
        worse = 0 if loss < best[0] else worse + 1
        best = min(best, (loss, each.setting))
        if worse == PATIENCE:
            break
    return best if math.isfinite(best[0]) else (scene.unrefreshed_bp, best[1])


def given_up(data: RefreshData, share: float, busiest: float = 0.01) -> float:
    """Of the pages that change most often, the share (in %) that SBR never refreshes with this budget.

    NaN where no page changes, and where the budget is no page: then nothing is given up for something else.
    """
    rates = count_updates(data) / data.weeks
    pages = np.argsort(-rates, kind="stable")[: max(round(busiest * data.count), 1)]
    pages = pages[rates[pages] > 0]
    room = pages_a_week(share, data.count)
    if not len(pages) or not room:
        return math.nan
    counts = whole_counts(rates * data.weeks, np.ones(data.count), data.weeks * room, most=data.weeks)
    return 100.0 * float((counts[pages] == 0).mean())
