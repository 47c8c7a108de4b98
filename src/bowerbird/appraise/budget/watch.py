"""Are expectations met? Realised by expected gains, with an interval, and the factor that sets a kind right.

Expectations are as they were when a fetch was decided; of gains that take time, what was expected by now. A few fetches
make most of the gains, so intervals are by resampling fetches, and ratios are shrunk to 1 while there is little.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.model.watch import KindWatch

F64 = npt.NDArray[np.float64]

DRAWS = 400
PRIOR_FETCHES = 30.0  # as expected, before any is known: so many of the average
DOUBTED_FETCHES = 2.0
FARTHEST = 10.0  # a factor stays within 1/10 … 10
LEVEL = 0.95


def expected_by(clicks: F64, decay_per_s: F64, waited_s: F64, horizon_s: float) -> F64:
    """[ECHO13] (1 - exp(-mu·t))/(1 - exp(-mu·H)): of the clicks expected within H, those by now; evenly where mu is 0.

    >>> expected_by(np.array([8.0, 8.0]), np.array([0.0, 1e9]), np.array([5.0, 5.0]), 10.0).tolist()
    [4.0, 8.0]
    """
    waited = np.clip(waited_s, 0.0, horizon_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        faded = np.expm1(-decay_per_s * waited) / np.expm1(-decay_per_s * horizon_s)
    return np.asarray(clicks * np.where(decay_per_s > 0, faded, waited / horizon_s))


def expected_loss(gain: F64, changes_per_s: F64, age_s: F64) -> F64:
    """[UC05] The share of Q that a refresh at this age regains: loss·(1 - exp(-Delta·tau)), loss = gain·Delta."""
    return np.asarray(gain * changes_per_s * -np.expm1(-changes_per_s * np.maximum(age_s, 0.0)))


def watch_kind(name: str, expected: F64, realised: F64, unit: str, rng: np.random.Generator) -> KindWatch:
    """[BEYOND] (k·mean + sum of realised)/(k·mean + sum of expected), k fetches' worth of belief, and its interval."""
    count, total, got = len(expected), float(expected.sum()), float(realised.sum())
    if count == 0 or total <= 0.0:
        return KindWatch(name, count, total, got, unit, 1.0, 1.0 / FARTHEST, FARTHEST)
    prior = PRIOR_FETCHES * total / count
    ratio = (prior + got) / (prior + total)
    times = rng.poisson(1.0, (DRAWS, count)) if count <= 5000 else rng.poisson(1.0, (DRAWS // 4, count))
    doubt = DOUBTED_FETCHES * total / count  # two fetches that agree are no proof
    draws = (doubt + times @ realised) / (doubt + times @ expected)
    low, high = np.quantile(draws, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]).tolist()
    return KindWatch(name, count, total, got, unit, ratio, low, high)


def factor_of(watch: KindWatch) -> float:
    """[BEYOND] The ratio of a kind that drifts, within bounds; 1 where chance explains the difference.

    >>> factor_of(KindWatch("new", 9, 1.0, 1.2, "clicks", 1.2, 0.8, 1.5))
    1.0
    """
    if not watch.drifts:
        return 1.0
    return float(np.clip(watch.ratio, 1.0 / FARTHEST, FARTHEST))
