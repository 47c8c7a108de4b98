"""How often should each page be refreshed? The best frequencies under a budget, by several objectives.

All but the plain rules maximise a sum of concave functions of the frequencies, sum of frequencies = budget. So all
pages that are refreshed at all gain the same from a little more frequency: the price. Rates, frequencies and the
budget are per the same unit of time; a page's weight is what it is worth to have it fresh. Where fetches cost c by
page, give c·rates and divide the frequencies by c: only rate/frequency counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.threads import share
from bowerbird.model.bid import saturating_gain_inverse

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

CLOSE = 1e-11  # of the budget
NARROW = 1e-12  # of the price
BEND = 0.95
_CELLS = 1024
_LAST = 40.0  # -log(1 - y) of the last double below 1 is 36.7
_PAGES_AT_ONCE = 1 << 16
_STEPS = 200


@dataclass(frozen=True, slots=True)
class Allocation:
    """Frequencies by page, and what one more fetch per unit of time would gain."""

    frequency: FloatArray
    price: float


def uniform_frequencies(count: int, budget: float) -> Allocation:
    """Every page equally often."""
    return Allocation(np.full(count, budget / max(count, 1)), 0.0)


def proportional_frequencies(rates: FloatArray, budget: float, *, weights: FloatArray | None = None) -> Allocation:
    """In proportion to how often a page changes (times its weight); all equally where nothing changes."""
    worth = rates if weights is None else rates * weights
    total = float(worth.sum())
    return Allocation(worth * (budget / total), 0.0) if total > 0 else uniform_frequencies(len(rates), budget)


def freshness(rates: FloatArray, frequency: FloatArray) -> FloatArray:
    """[UC05] Cho & Garcia-Molina: (f/Delta)·(1 - exp(-Delta/f)), the share of time a page refreshed evenly is fresh."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = rates / frequency
        evenly = -np.expm1(-x) / x
    return np.where(rates <= 0, 1.0, np.where(frequency > 0, evenly, 0.0))


def freshness_frequencies(rates: FloatArray, budget: float) -> Allocation:
    """[UC05] SBR: frequencies of greatest mean freshness; pages that change too often to keep up with get none.

    Cho & Garcia-Molina 2003: all pages weigh the same.
    """
    return embarrassment_frequencies(rates, np.ones(len(rates)), budget)


def embarrassment_frequencies(rates: FloatArray, weights: FloatArray, budget: float) -> Allocation:
    """[UC05] EBR: frequencies of greatest weighted freshness, w·g(Delta/f)/Delta = price where f > 0.

    Wolf et al. 2002: w is the embarrassment d(p), or d(p)·views. A page gets none where w/Delta <= price. Pages that
    never change or weigh nothing get none; if there are no others, the budget is left.
    """
    rates, weights = _columns(rates, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((rates > 0) & (weights > 0), rates / weights, np.inf)
    merged = _merge_ties(rates, ratio)
    if merged is None:
        return _even_frequencies(rates, ratio, budget)
    whole, kinds, kind = merged
    found = _even_frequencies(whole, kinds, budget)
    per_rate = np.divide(found.frequency, whole, out=np.zeros(len(whole)), where=whole > 0)
    return Allocation(rates * per_rate[kind], found.price)


def harmonic_frequencies(rates: FloatArray, weights: FloatArray, budget: float) -> Allocation:
    """[BEYOND] LambdaCrawl: rho = (-Delta + sqrt(Delta² + 4·mu·Delta/lambda))/2, lambda so that the budget is met.

    Kolobov et al. 2019: least sum of mu·log(1 + Delta/rho), a penalty that grows with every change missed, with
    refreshes at random times. Every page that changes and has a weight mu > 0 is refreshed.
    """
    rates, weights = _columns(rates, weights)
    # rho < sqrt(mu·Delta/lambda) and rho < mu/lambda: at either price all of them together are below the budget
    root = float(np.sqrt(rates * weights).sum()) / max(budget, 1e-300)
    return _level(
        lambda price, out: _share_sum(lambda low, high: _harmonic(rates, weights, price, low, high, out), len(rates)),
        len(rates),
        budget,
        high=min(root * root, float(weights @ (rates > 0)) / budget) if budget > 0 else 0.0,
    )


def random_frequencies(rates: FloatArray, weights: FloatArray, budget: float) -> Allocation:
    """[BEYOND] Azar et al. 2018: rho = sqrt(mu·Delta/lambda) - Delta where that is positive, exact in O(n log n).

    The greatest weighted freshness with refreshes at random times. Pages in order of mu/Delta: the first ones, up to
    where the price meets the order, are refreshed. Refreshed evenly at these frequencies they do about as well as the
    best.
    """
    rates, weights = _columns(rates, weights)
    frequency = np.zeros(len(rates))
    able = np.flatnonzero((rates > 0) & (weights > 0))
    if budget <= 0 or not len(able):
        return Allocation(frequency, 0.0)
    worth = weights[able] / rates[able]
    order = np.argsort(worth)[::-1]
    able, worth = able[order], worth[order]
    root = np.sqrt(rates[able] * weights[able])
    level = np.cumsum(root) / (budget + np.cumsum(rates[able]))  # the root of the price if pages 0…k are refreshed
    # page k belongs to them while worth[k] > level[k]², true for a first part of the pages and false for the rest
    active = max(int(np.searchsorted(-(np.sqrt(worth) > level).astype(np.int8), 0)), 1)
    chosen = able[:active]
    found = np.maximum(root[:active] / level[active - 1] - rates[chosen], 0.0)
    total = float(found.sum())
    frequency[chosen] = found * (budget / total) if total > 0 else budget / active  # a budget too small for its digits
    return Allocation(frequency, float(level[active - 1] ** 2))


def _columns(rates: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.ascontiguousarray(rates, np.float64), np.ascontiguousarray(weights, np.float64)


def _merge_ties(rates: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray, IntArray] | None:
    """Pages of one ratio as one page with all their rates, if a sample says that ties are many: (rates, ratio, number).

    Pages that share a prior tie by the million; then the price has no digits left to tell their frequencies from 0.
    """
    sample = ratio[:: max(len(ratio) // 1000, 1)]
    if 2 * len(np.unique(sample)) > len(sample):
        return None
    kinds, kind = np.unique(ratio, return_inverse=True)
    return np.bincount(kind, rates, len(kinds)).astype(np.float64), kinds, kind


def _even_frequencies(rates: FloatArray, ratio: FloatArray, budget: float) -> Allocation:
    tables = _tables()
    return _level(
        lambda price, out: _share_sum(lambda low, high: _even(rates, ratio, price, tables, low, high, out), len(rates)),
        len(rates),
        budget,
        high=(1 + 1e-15) / float(ratio.min(initial=math.inf)),  # rounding must leave no page below 1
    )


def _share_sum(work: Callable[[int, int], tuple[float, float]], count: int) -> tuple[float, float]:
    """Demand and slope over all pages, by threads; in pieces of one size, so that sums do not depend on the machine."""
    cuts = [(low, min(low + _PAGES_AT_ONCE, count)) for low in range(0, count, _PAGES_AT_ONCE)]
    parts = share(work, cuts)
    return math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)


def _level(
    demand: Callable[[float, FloatArray], tuple[float, float]], count: int, budget: float, *, high: float
) -> Allocation:
    """The price at which the pages ask for just the budget: Newton's method on logarithms, kept within a bracket.

    `demand` writes the frequencies at a price and returns their sum and its slope by log(price). It falls with the
    price; nothing is asked for at `high`. A page close to being given up falls in a jump within the last digit of the
    price: then the frequencies are those between both sides of the jump.
    """
    above, out = np.zeros(count), np.zeros(count)
    if not (budget > 0 and 0 < high < math.inf):
        return Allocation(out, 0.0)
    price, low_price, high_price = 0.25 * high, 0.0, high
    last_step = math.inf
    for _ in range(_STEPS):
        asked, slope = demand(price, out)
        if abs(asked - budget) <= CLOSE * budget:
            return Allocation(out * (budget / asked), price)
        if asked > budget:
            low_price = price
        else:
            high_price = price
        if high_price <= low_price * (1 + NARROW):
            break
        step = math.log(budget / asked) * asked / slope if asked > 0 and slope < 0 else math.inf
        guess = price * math.exp(min(max(step, -30.0), 30.0))
        # steps that do not shrink creep along a jump: then halve the bracket
        if not low_price < guess < high_price or abs(step) > 0.5 * last_step:
            guess = math.sqrt(low_price * high_price) if low_price > 0 else high_price * 1e-3
            step = math.inf
        last_step = abs(step)
        price = guess
    high_sum, _ = demand(high_price, out)
    low_sum, _ = demand(low_price, above)
    part = min(max((budget - high_sum) / (low_sum - high_sum), 0.0), 1.0)
    return Allocation(out + part * (above - out), high_price)


@lru_cache(maxsize=1)
def _tables() -> tuple[FloatArray, FloatArray]:
    """Values and slopes of sqrt(y)/x by sqrt(y) up to BEND, of 1/x by -log(1 - y) above, where x = g^-1(y).

    Cubic pieces between them have twelve digits. Both are smooth; x by y is not: it starts as a root and ends as a
    logarithm.
    """
    low, high = np.empty((_CELLS + 1, 2)), np.empty((4 * _CELLS + 1, 2))
    low[0] = math.sqrt(0.5), -1 / 3
    for k, root in enumerate(np.linspace(0.0, math.sqrt(BEND), _CELLS + 1).tolist()):
        if k:
            x = saturating_gain_inverse(root * root)
            low[k] = root / x, 1 / x - 2 * root * root / (x**3 * math.exp(-x))
    for k, v in enumerate(np.linspace(-math.log1p(-BEND), _LAST, 4 * _CELLS + 1).tolist()):
        x = v + math.log1p(v + math.log1p(v))
        for _ in range(6):
            x -= (x - math.log1p(x) - v) * (1 + x) / x
        high[k] = 1 / x, -(1 + x) / x**3
    return low, high


@numba.njit(cache=True, nogil=True, inline="always")
def _look_up(table: FloatArray, start: float, width: float, at: float) -> float:
    """The cubic through the values and slopes at both ends of the cell."""
    place = (at - start) / width
    k = min(int(place), len(table) - 2)
    t = place - k
    v0, v1 = table[k, 0], table[k + 1, 0]
    d0, d1 = table[k, 1] * width, table[k + 1, 1] * width
    return float(v0 + t * (d0 + t * (3 * (v1 - v0) - 2 * d0 - d1 + t * (2 * (v0 - v1) + d0 + d1))))


@numba.njit(cache=True, nogil=True)
def _even(
    rates: FloatArray,
    ratio: FloatArray,
    price: float,
    tables: tuple[FloatArray, FloatArray],
    low: int,
    high: int,
    out: FloatArray,
) -> tuple[float, float]:
    """f = Delta/x with g(x) = price·Delta/w = y; df/dlog(price) = -f·y·(1 + x)/(x²·(1 - y))."""
    first, last = tables
    bend = -math.log1p(-BEND)
    first_width, last_width = math.sqrt(BEND) / (len(first) - 1), (_LAST - bend) / (len(last) - 1)
    asked = slope = 0.0
    for i in range(low, high):
        y = price * ratio[i]
        if y >= 1.0:
            out[i] = 0.0
            continue
        if y < BEND:
            root = math.sqrt(y)
            part = _look_up(first, 0.0, first_width, root) / root
        else:
            part = _look_up(last, bend, last_width, -math.log(1.0 - y))
        f = rates[i] * part
        out[i] = f
        asked += f
        slope -= f * y * (1.0 + 1.0 / part) * part * part / (1.0 - y)
    return asked, slope


@numba.njit(cache=True, nogil=True)
def _harmonic(
    rates: FloatArray, weights: FloatArray, price: float, low: int, high: int, out: FloatArray
) -> tuple[float, float]:
    """rho in the form that keeps its digits; drho/dlog(lambda) = -rho·(rho + Delta)/(2·rho + Delta)."""
    asked = slope = 0.0
    for i in range(low, high):
        rate = rates[i]
        c = weights[i] * rate / price
        if not c > 0.0:
            out[i] = 0.0
            continue
        rho = 2.0 * c / (rate + math.sqrt(rate * rate + 4.0 * c))
        out[i] = rho
        asked += rho
        slope -= rho * (rho + rate) / (2.0 * rho + rate)
    return asked, slope
