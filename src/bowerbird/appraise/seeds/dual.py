"""A close bound on the optimum: prices of pages under which no seed is worth much more than any other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bowerbird.appraise.seeds.lazy import largest
from bowerbird.appraise.seeds.problem import F64, I64

#: a bound so little above what is reached is not worth more work
ENOUGH = 0.002


def first_prices(chosen_at: I64, gains: F64) -> F64:
    """By page the share of its weight that is counted as the seeds' own: last gain/gain of the seed that covered it.

    `chosen_at` is the place of that seed, -1 = not covered: counted in full. So each seed is worth what the last adds.

    >>> first_prices(np.array([0, 0, 1, -1]), np.array([2.0, 1.0])).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    if not len(gains):
        return np.ones(len(chosen_at))
    least = max(float(gains[gains > 0].min(initial=np.inf)), 0.0)
    share = np.minimum(least / np.maximum(gains, 1e-300), 1.0)
    found: F64 = np.where(chosen_at >= 0, share[np.maximum(chosen_at, 0)], 1.0)
    return found


def tighten_bound(
    weight: F64,
    prices: F64,
    k: int,
    gains: Callable[[F64], F64],
    counts: Callable[[I64], F64],
    reached: float,
    rounds: int,
) -> float:
    """[BEYOND] The dual of max-k-coverage: f(best k) <= sum w·(1 - a) + the k largest sums of w·a in a page's reach.

    That holds for any prices 0 <= a <= 1: what the best covers counts once by w·(1 - a), and by w·a at least once among
    its seeds. Prices 1 outside and 0 inside what some seeds cover are the bound by marginals. Better prices are found
    by subgradient steps (Polyak's, towards what is `reached`): pages that several of the k best reach become cheaper,
    pages that none reaches dearer.

    `gains` sums a column over every page's reach; `counts` tells how many of some pages reach each.
    """
    best = np.inf
    for _ in range(rounds):
        sums = gains(weight * prices)
        top = largest(sums, k)
        bound = float((weight * (1.0 - prices)).sum() + sums[top].sum())
        best = min(best, bound)
        if best <= reached * (1.0 + ENOUGH):
            break
        slope = 1.0 - counts(top)
        steepness = float((weight * slope * slope).sum())
        if steepness <= 0:
            break
        prices = np.clip(prices + (bound - reached) / steepness * slope, 0.0, 1.0)
    return best
