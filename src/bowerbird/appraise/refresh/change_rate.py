"""How often does a page change? Visits that found it changed or not, at irregular times, as evidence.

A page changes as a Poisson process of rate Delta, so a visit after an interval I finds it changed with probability
1 - exp(-Delta·I), however often it changed in between. The likeliest rate solves

    sum_changed I/(exp(Delta·I) - 1) = sum_unchanged I.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def weigh_visits(
    starts: IntArray, intervals_s: FloatArray, changed: npt.NDArray[np.bool_], rate_per_s: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """[BEYOND] Visits as Poisson evidence, (events, exposure in s) by page, for priors that are Gamma.

    Slope and curvature of events·log(Delta) - exposure·Delta are those of the visits' log-likelihood at `rate_per_s`, a
    rate that is about right: that of the page's group. Rare changes give (changes, time watched). Weighed again at
    events/exposure, they lead to the likeliest rate.
    """
    count = len(starts) - 1
    rates = np.ascontiguousarray(np.broadcast_to(np.asarray(rate_per_s, np.float64), count))
    events, exposure = np.empty(count), np.empty(count)
    weights = np.ascontiguousarray(changed, np.bool_).view(np.uint8)
    _weigh_all(starts, np.ascontiguousarray(intervals_s, np.float64), weights, rates, events, exposure)
    return events, exposure


@numba.njit(cache=True, nogil=True)
def _weigh_all(
    starts: IntArray,
    intervals: FloatArray,
    weights: npt.NDArray[np.uint8],
    rates: FloatArray,
    events: FloatArray,
    exposure: FloatArray,
) -> None:
    for page in range(len(starts) - 1):
        rate = rates[page]
        value = curvature = unchanged = 0.0
        for k in range(starts[page], starts[page + 1]):
            if intervals[k] <= 0.0:
                continue
            if weights[k] == 0:
                unchanged += intervals[k]
            elif rate * intervals[k] < 700.0:
                a = intervals[k] / math.expm1(rate * intervals[k])
                value += a
                curvature += a * (intervals[k] + a)
        events[page] = rate * rate * curvature
        exposure[page] = rate * curvature - value + unchanged
