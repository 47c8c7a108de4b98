"""How often does a page change? Rates from visits that found it changed or not, at irregular times.

A page changes as a Poisson process of rate Delta, so a visit after an interval I finds it changed with probability
1 - exp(-Delta·I), however often it changed in between. Two pseudo-observations of one interval each, one changed and
one not, keep the estimate finite and stand for the prior: without visits the rate is ln 2/(pseudo-interval).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.threads import cut_rows, share

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WeightArray = npt.NDArray[np.float64] | npt.NDArray[np.uint8]

HALF_DAY_S = 43200.0
BUCKETS_S = tuple(3600.0 * 4.0**k for k in range(1, 6))  # 4 h, 16 h, 2.7, 10.7 and 43 days
PAIR_SHAPE = 2.0 * math.log(2.0) ** 2  # what one pair of pseudo-observations weighs, as the shape of a Gamma
_STEPS = 80
_CLOSE = 1e-7  # Newton's method doubles the digits: what is left then is below 1e-13


@dataclass(frozen=True, slots=True)
class ChangeRates:
    """Rates by page with the information behind them (minus the second derivative of the log-likelihood)."""

    rate_per_s: FloatArray
    information_s2: FloatArray

    @property
    def standard_error_per_s(self) -> FloatArray:
        """[BEYOND] 1/sqrt(observed information), the standard error of the rate."""
        return 1.0 / np.sqrt(self.information_s2)

    @property
    def shape(self) -> FloatArray:
        """[BEYOND] Delta²·information: the shape of the Gamma with the estimate as mean and its error as deviation."""
        return self.rate_per_s**2 * self.information_s2

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """[BEYOND] Thompson draws: a rate by page from its Gamma posterior."""
        shape = self.shape
        return rng.gamma(shape, self.rate_per_s / shape)


def estimate_rates(
    starts: IntArray,
    intervals_s: FloatArray,
    changed: npt.NDArray[np.bool_],
    *,
    pseudo_s: npt.ArrayLike = HALF_DAY_S,
    strength: npt.ArrayLike = 1.0,
) -> ChangeRates:
    """[BEYOND] Delta with sum_changed I/(exp(Delta·I) - 1) = sum_unchanged I, a pseudo-observation on both sides.

    Page i has the visits starts[i]…starts[i+1]-1, each so long after the one before. `pseudo_s` and `strength` (how
    many pairs of pseudo-observations) may be given by page: `pseudo_interval_s` makes them from a prior rate.
    """
    count = len(starts) - 1
    weights = np.ascontiguousarray(changed, np.bool_).view(np.uint8)
    rates, information = np.empty(count), np.empty(count)
    pseudo = np.ascontiguousarray(np.broadcast_to(np.asarray(pseudo_s, np.float64), count))
    pairs = np.ascontiguousarray(np.broadcast_to(np.asarray(strength, np.float64), count))
    if count and not (pseudo.min() > 0 and pairs.min() > 0):
        raise ValueError("pseudo-observations need an interval and a strength above 0")
    intervals = np.ascontiguousarray(intervals_s, np.float64)

    def estimate(low: int, high: int) -> None:
        _estimate_all(starts, intervals, weights, pseudo, pairs, low, high, rates, information)

    share(estimate, cut_rows(starts))
    return ChangeRates(rates, information)


def pseudo_interval_s(rate_per_s: npt.ArrayLike) -> FloatArray:
    """[BEYOND] ln 2/Delta: the interval of pseudo-observations under which a page without visits has this rate."""
    return np.asarray(math.log(2.0) / np.asarray(rate_per_s, np.float64))


def likelihood_slope(
    rate_per_s: float,
    intervals_s: FloatArray,
    changed: npt.NDArray[np.bool_],
    *,
    pseudo_s: float = HALF_DAY_S,
    strength: float = 1.0,
) -> float:
    """[BEYOND] sum_changed I/(exp(Delta·I) - 1) - sum_unchanged I, pseudo-observations included: 0 at the estimate."""
    with np.errstate(over="ignore"):
        terms = intervals_s[changed] / np.expm1(rate_per_s * intervals_s[changed])
        pseudo = pseudo_s / np.expm1(rate_per_s * pseudo_s) - pseudo_s
    return float(terms.sum() - intervals_s[~changed].sum() + strength * pseudo)


def weigh_visits(
    starts: IntArray, intervals_s: FloatArray, changed: npt.NDArray[np.bool_], rate_per_s: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """[BEYOND] Visits as Poisson evidence, (events, exposure in s) by page, for priors that are Gamma.

    Slope and curvature of events·log(Delta) - exposure·Delta are those of the visits' log-likelihood at `rate_per_s`, a
    rate that is about right: that of the page's group. Rare changes give (changes, time watched).
    """
    count = len(starts) - 1
    rates = np.ascontiguousarray(np.broadcast_to(np.asarray(rate_per_s, np.float64), count))
    events, exposure = np.empty(count), np.empty(count)
    weights = np.ascontiguousarray(changed, np.bool_).view(np.uint8)
    _weigh_all(starts, np.ascontiguousarray(intervals_s, np.float64), weights, rates, events, exposure)
    return events, exposure


@dataclass(frozen=True, slots=True)
class ChangeTally:
    """The visits of one page in constant memory: unchanged time, and by bucket of interval lengths the changed visits.

    A bucket keeps the number and the total of its intervals and stands for so many visits after their mean, so the
    estimate is exact where the intervals within each bucket agree. Else it is low, never by more than the ratio of the
    longest to the shortest interval within a bucket: I/(exp(Delta·I) - 1) falls with I and is convex.
    """

    unchanged_s: float = 0.0
    counts: tuple[float, ...] = (0.0,) * (len(BUCKETS_S) + 1)
    totals_s: tuple[float, ...] = (0.0,) * (len(BUCKETS_S) + 1)

    def add(self, interval_s: float, changed: bool) -> ChangeTally:
        """The tally after one more visit."""
        if not changed:
            return ChangeTally(self.unchanged_s + interval_s, self.counts, self.totals_s)
        k = bisect.bisect_right(BUCKETS_S, interval_s)
        counts = (*self.counts[:k], self.counts[k] + 1.0, *self.counts[k + 1 :])
        totals = (*self.totals_s[:k], self.totals_s[k] + interval_s, *self.totals_s[k + 1 :])
        return ChangeTally(self.unchanged_s, counts, totals)

    def estimate(self, *, pseudo_s: float = HALF_DAY_S, strength: float = 1.0) -> tuple[float, float]:
        """[BEYOND] (rate, standard error) per second of the tally, each bucket's visits at their mean interval."""
        counts = np.array(self.counts)
        means = np.divide(np.array(self.totals_s), counts, out=np.zeros_like(counts), where=counts > 0)
        rate, information = _solve(means, counts, 0, len(counts), self.unchanged_s, pseudo_s, strength)
        return float(rate), 1.0 / math.sqrt(information)


def tally_visits(intervals_s: Iterable[float], changed: Iterable[bool]) -> ChangeTally:
    """The tally of visits in turn."""
    tally = ChangeTally()
    for interval, bit in zip(intervals_s, changed, strict=True):
        tally = tally.add(float(interval), bool(bit))
    return tally


@numba.njit(cache=True, nogil=True)
def _solve(
    intervals: FloatArray, weights: WeightArray, begin: int, end: int, unchanged: float, pseudo: float, pairs: float
) -> tuple[float, float]:
    """The root and minus the slope there; entries of weight 0 count for nothing.

    Since 1/x - 1/2 < 1/(exp(x) - 1) < 1/x, the root lies between n/(T + S/2) and n/T, with n and S the number and the
    total of the changed intervals, T the unchanged time. The logarithm of the left side is a concave function of
    log(Delta) that falls, nearly straight for short intervals: Newton's method on it steps over the root at most once.
    """
    number, total = pairs, pairs * pseudo
    idle = unchanged + pairs * pseudo
    for k in range(begin, end):
        if weights[k] > 0 and intervals[k] > 0.0:
            number += weights[k]
            total += weights[k] * intervals[k]
    rate, top = number / (idle + 0.5 * total), number / idle
    log_idle = math.log(idle)
    slope = 0.0
    for _ in range(_STEPS):
        a = pseudo / math.expm1(rate * pseudo)
        value, slope = pairs * a, pairs * a * (pseudo + a)
        for k in range(begin, end):
            if weights[k] > 0 and intervals[k] > 0.0:
                x = rate * intervals[k]
                if x < 700.0:
                    a = intervals[k] / math.expm1(x)
                    value += weights[k] * a
                    slope += weights[k] * a * (intervals[k] + a)
        if value <= 0.0:  # every term has vanished: the start was too far right, which only rounding can do
            rate *= 0.5
            continue
        step = (math.log(value) - log_idle) * value / (slope * rate)
        rate = min(rate * math.exp(step), top)
        if abs(step) <= _CLOSE:
            break
    return rate, slope


@numba.njit(cache=True, nogil=True)
def _estimate_all(
    starts: IntArray,
    intervals: FloatArray,
    weights: npt.NDArray[np.uint8],
    pseudo: FloatArray,
    pairs: FloatArray,
    low: int,
    high: int,
    rates: FloatArray,
    information: FloatArray,
) -> None:
    for page in range(low, high):
        unchanged = 0.0
        for k in range(starts[page], starts[page + 1]):
            if weights[k] == 0 and intervals[k] > 0.0:
                unchanged += intervals[k]
        rate, slope = _solve(intervals, weights, starts[page], starts[page + 1], unchanged, pseudo[page], pairs[page])
        rates[page] = rate
        information[page] = slope


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
