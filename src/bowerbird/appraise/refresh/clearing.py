"""From a budget to due times: the price at which the refreshes of all pages together use what there is.

A page is refreshed each time its bid reaches the price, so after an interval I that the bid's shape gives. The price
clears the market when the frequencies 1/I, each times what a fetch costs, add up to the budget: as many refreshes as
one fixed interval for all pages would make, where they gain most. No page waits longer than `longest_s`, so none is
abandoned for ever: a part of the budget goes there whatever the price, and so does what is left where the pages that
gain anything cannot use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.bids import RefreshBids
from bowerbird.appraise.threads import share
from bowerbird.model.bid import saturating_gain, saturating_gain_inverse

F64 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint8]

CLOSE = 3e-5  # of the budget
SURELY = 10.0  # expected changes from which a page has surely changed: g(10) = 0.9995
_SURE_GAIN = saturating_gain(SURELY)
_LOWEST, _HIGHEST, _CELLS = -30.0, 9.0, 1 << 12  # log(y/(1 - y)) in the table of g^-1
_PAGES_AT_ONCE = 1 << 16
_SAMPLE = 1 << 16  # pages the search begins with
_STEPS = 100
_NONE = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Clearing:
    """The price, and by page the interval and the bid in prices.

    A page whose interval is bounded, or which is due only when it has surely changed, bids in proportion to its age.
    """

    price: float
    spent_per_s: float  # fetches times cost
    interval_s: F64
    amplitude: F64
    rate_per_s: F64
    shape: U8


def clear_price(
    bids: RefreshBids,
    budget_per_s: float,
    *,
    shortest_s: float,
    longest_s: float,
    cost: F64 | None = None,
    recall: F64 | None = None,
    false_rate_per_s: F64 | None = None,
) -> Clearing:
    """[BEYOND] The price omega with sum of c/I(omega) = budget, I the age at which A·s(rate·I) = omega, within bounds.

    Where sites say what changed (`recall` and `false_rate_per_s` by page, 0 where they do not), a page for which a
    signal is reason enough is fetched when one comes, and else at the age due in silence: see `mean_cycle`.
    """
    count = len(bids.amplitude)
    columns = (
        np.ascontiguousarray(bids.amplitude, np.float64),
        np.ascontiguousarray(bids.rate_per_s, np.float64),
        _NONE if cost is None else np.ascontiguousarray(cost, np.float64),
        _NONE if recall is None else np.ascontiguousarray(recall, np.float64),
        _NONE if false_rate_per_s is None else np.ascontiguousarray(false_rate_per_s, np.float64),
    )
    bounds = (float(shortest_s), float(max(longest_s, shortest_s)))
    shape, table = int(bids.shape), _inverse_table()
    cuts = [(low, min(low + _PAGES_AT_ONCE, count)) for low in range(0, count, _PAGES_AT_ONCE)]

    def demand(price: float) -> float:
        return math.fsum(share(lambda low, high: _ask(shape, price, columns, bounds, table, low, high), cuts))

    stride = max(count // _SAMPLE, 1)
    a, b, c, d, e = (np.ascontiguousarray(column[::stride]) for column in columns)
    some = (a, b, c, d, e)
    part = len(a) / max(count, 1)

    def sampled(price: float) -> float:
        return _ask(shape, price, some, bounds, table, 0, len(a)) / max(part, 1e-300)

    low, high = _bracket(shape, columns[0], columns[1], bounds)
    guess = None
    if stride > 1 and low > 0.0:
        near = _solve(sampled, budget_per_s, low, high)
        fall = math.log(max(sampled(near * 1.01), 1e-300) / max(sampled(near / 1.01), 1e-300)) / (2 * math.log(1.01))
        guess = (near, min(fall, -1e-3))
    price = _solve(demand, budget_per_s, low, high, guess)
    interval, amplitude, rate, shapes = np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.uint8)
    share(lambda i, j: _settle(shape, price, columns, bounds, table, i, j, interval, amplitude, rate, shapes), cuts)
    spent = demand(price)
    last = interval >= bounds[1]
    if spent < budget_per_s * (1.0 - 1e-3) and last.any():
        costs = float(last.sum() if cost is None else cost[last].sum())
        rest = budget_per_s - spent + costs / bounds[1]
        interval[last] = max(costs / rest, bounds[0])
        rate[last] = 1.0 / interval[last]
        spent += costs / float(interval[last][0]) - costs / bounds[1]
    return Clearing(price, spent, interval, amplitude, rate, shapes)


def _solve(
    demand: Callable[[float], float],
    budget: float,
    low: float,
    high: float,
    guess: tuple[float, float] | None = None,
) -> float:
    """The root of log(demand/budget) by log(price): false position in a bracket, halved where that creeps.

    A guess comes with the slope there: the first step is Newton's.
    """
    if not (low > 0.0 and high < math.inf and budget > 0.0):
        return 1.0
    below, above = math.log(low), math.log(high)
    at = 0.5 * (below + above) if guess is None else min(max(math.log(guess[0]), below), above)
    left: tuple[float, float] | None = None  # (log price, log(demand/budget)) at both sides of the root
    right: tuple[float, float] | None = None
    for step in range(_STEPS):
        asked = demand(math.exp(at))
        if abs(asked - budget) <= CLOSE * budget:
            break
        if above - below < 1e-14:  # a jump: what is left there can still be shared out
            at = above
            break
        excess = math.log(asked / budget) if asked > 0.0 else -700.0
        if excess > 0.0:
            below, left = at, (at, excess)
        else:
            above, right = at, (at, excess)
        if left is not None and right is not None and step % 3 < 2:
            at = left[0] + (right[0] - left[0]) * left[1] / (left[1] - right[1])
            at = min(max(at, below + 1e-3 * (above - below)), above - 1e-3 * (above - below))
        elif guess is not None and (left is None or right is None):
            at = min(max(at - excess / guess[1] * 1.5**step, below), above)
        else:
            at = 0.5 * (below + above)
    return math.exp(at)


@lru_cache(maxsize=1)
def _inverse_table() -> F64:
    """log(x) by log(y/(1 - y)) where y = g(x), smooth at both ends: straight pieces between have six digits."""
    out = np.empty(_CELLS + 1)
    for k, logit in enumerate(np.linspace(_LOWEST, _HIGHEST, _CELLS + 1).tolist()):
        y = 1.0 / (1.0 + math.exp(-logit))
        out[k] = math.log(saturating_gain_inverse(y)) if y > 1e-300 else 0.5 * (math.log(2.0) + logit)
    return out


@numba.njit(cache=True, nogil=True)
def _bracket(shape: int, amplitude: F64, rate: F64, bounds: tuple[float, float]) -> tuple[float, float]:
    """Prices below which every page comes as soon as it may, and from which on none does before it must; or 0, 0."""
    low, high = math.inf, 0.0
    for i in range(len(amplitude)):
        if amplitude[i] > 0.0 and rate[i] > 0.0:
            near, far = min(rate[i] * bounds[0], 1e100), min(rate[i] * bounds[1], 1e100)
            if shape == 2:
                least, most = near, far
            elif shape == 3:
                least, most = near * near * 0.5, far * far * 0.5
            else:  # g(x) > x²/4 up to 1
                least, most = min(near * near * 0.25, 0.25), 1.0
            low, high = min(low, amplitude[i] * least), max(high, amplitude[i] * most)
    return (low, high) if high > 0.0 else (0.0, 0.0)


@numba.njit(cache=True, nogil=True)
def _due_at(shape: int, price: float, amplitude: float, rate: float, table: F64) -> float:
    """x = rate·I at which the bid reaches the price; infinite where it does not.

    Pages that share a prior tie by the thousand, and a saturating bid close to its end tells no time: from SURELY on
    the frequency falls to 0 in a straight line, so that a price can share out what is left among them.
    """
    if not (amplitude > 0.0 and rate > 0.0):
        return math.inf
    y = price / amplitude
    if shape == 2:
        return y
    if shape == 3:
        return math.sqrt(2.0 * y)
    if y >= 1.0:
        return math.inf
    if y >= _SURE_GAIN:
        return SURELY * (1.0 - _SURE_GAIN) / (1.0 - y)
    place = (math.log(y / (1.0 - y)) - _LOWEST) * (_CELLS / (_HIGHEST - _LOWEST))
    if place < 0.0:
        return math.sqrt(2.0 * y)
    k = min(int(place), _CELLS - 1)
    return math.exp(table[k] + (place - k) * (table[k + 1] - table[k]))


@numba.njit(cache=True, nogil=True)
def _ask(
    shape: int,
    price: float,
    columns: tuple[F64, F64, F64, F64, F64],
    bounds: tuple[float, float],
    table: F64,
    low: int,
    high: int,
) -> float:
    """What the pages ask for at this price."""
    amplitude, rate, cost, recall, false_rate = columns
    least, most = 1.0 / bounds[1], 1.0 / bounds[0]
    asked = 0.0
    for i in range(low, high):
        x = _due_at(shape, price, amplitude[i], rate[i], table)
        often = least
        if x < math.inf:
            silent = x / rate[i]
            often = 1.0 / silent if silent > 0.0 else most
            if len(recall) and recall[i] > 0.0:
                silent = min(silent_age(x, rate[i], recall[i]), bounds[1])
                # odds that a young page has changed once its signal is on
                enough = math.expm1(min(x, 700.0)) * false_rate[i] <= recall[i] * rate[i]
                cycle = mean_cycle(silent, rate[i], recall[i], false_rate[i]) if enough else silent
                often = 1.0 / cycle if cycle > 0.0 else most
            often = min(max(often, least), most)
        asked += often * (cost[i] if len(cost) else 1.0)
    return asked


@numba.njit(cache=True, nogil=True)
def silent_age(x: float, rate: float, recall: float) -> float:
    """[BEYOND] log(1 + (exp(Delta·I) - 1)/(1 - recall))/Delta: the age due at while an offered signal stays off."""
    missed = 1.0 - recall
    if missed <= 0.0:
        return math.inf
    if x > 30.0:
        return (x - math.log(missed)) / rate
    return math.log1p(math.expm1(x) / missed) / rate


@numba.njit(cache=True, nogil=True)
def mean_cycle(silent: float, rate: float, recall: float, false_rate: float) -> float:
    """[BEYOND] The mean time to the first signal, but no longer than I': the integral of the chance that none came.

    (1 - recall)·(1 - exp(-phi·I'))/phi + recall·(1 - exp(-(phi + Delta)·I'))/(phi + Delta).
    """
    told = false_rate + rate
    quiet = -math.expm1(-false_rate * silent) / false_rate if false_rate > 1e-30 else silent
    missed = (1.0 - recall) * quiet if recall < 1.0 else 0.0
    return missed - recall * math.expm1(-told * silent) / told


@numba.njit(cache=True, nogil=True)
def _settle(
    shape: int,
    price: float,
    columns: tuple[F64, F64, F64, F64, F64],
    bounds: tuple[float, float],
    table: F64,
    low: int,
    high: int,
    interval: F64,
    amplitude: F64,
    rate: F64,
    shapes: U8,
) -> None:
    """Interval and bid of each page at the price."""
    for i in range(low, high):
        x = _due_at(shape, price, columns[0][i], columns[1][i], table)
        due = x / columns[1][i] if x < math.inf else math.inf
        if due <= bounds[0] or due >= bounds[1] or (shape == 4 and x > SURELY):
            interval[i] = min(max(due, bounds[0]), bounds[1])
            amplitude[i], rate[i], shapes[i] = 1.0, 1.0 / interval[i], 2
        else:
            interval[i], amplitude[i], rate[i], shapes[i] = due, columns[0][i] / price, columns[1][i], shape
