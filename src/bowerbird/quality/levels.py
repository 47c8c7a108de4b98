"""The live value of a query as a sum over score levels: how many pages are above each, and what they are worth.

sum_r I(r)·S_(r) = ∫ C(N(s)) ds, where C(n) = I(1) + … + I(n) and N(s) is the number of pages that score above s.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bowerbird.quality.answers import EXACT_RANKS, FloatArray, LocalAnswers, rank_grid

ABOVE_TOP = np.array([1.0, 1.03, 1.07, 1.12, 1.18, 1.25, 1.35, 1.5, 1.75, 2.0, 3.0, 1000.0])
BELOW_LAST = np.array([0.0, 0.4, 0.6, 0.8, 1.0])
NOTHING_FOUND = np.concatenate([np.arange(10) / 10, ABOVE_TOP])
FEW_RESULTS = np.array([1, 2, 3, 5, 9, 17, 33, 2**62])
MOST_ARRIVALS = 160


@dataclass(frozen=True, slots=True)
class Levels:
    """Score levels of all queries, pooled: those with the same number of local results above them."""

    above: FloatArray  # local results above: a whole number up to EXACT_RANKS
    shape: FloatArray  # of the negative binomial of arrivals
    lower: FloatArray  # pools × queries
    upper: FloatArray

    def width(self, weight: FloatArray) -> FloatArray:
        """The sum of weight·ds over each pool."""
        return (self.upper - self.lower) @ weight


def pool_levels(frequency: FloatArray, local: LocalAnswers) -> Levels:
    """Cut the score axis of every query at its local results, and pool what has the same place in the list."""
    grid = rank_grid(int(local.totals.max(initial=0)))
    scores = local.on_grid(grid)
    best, last, totals = scores[:, 0], scores[:, -1], local.totals
    found = totals > 0
    pools: list[tuple[FloatArray, FloatArray, float, float]] = []
    for step in range(len(grid) - 1):
        above = float(grid[step] + grid[step + 1] - 1) / 2
        pools.append((scores[:, step + 1], scores[:, step], above, above + 0.5))
    for fewest, most in pairwise(FEW_RESULTS):
        chosen = (totals >= fewest) & (totals < most)
        if chosen.any():
            above = float(np.round(np.average(totals[chosen], weights=frequency[chosen] + 1e-300)))
            floor = np.where(chosen, last, 0.0)
            pools += _between(floor, BELOW_LAST, above, above + 1)
    # Above the best local result, and where nothing was found, the first arrival is the first result.
    typical = float(best[found].mean()) if found.any() else 1.0
    pools += _between(np.where(found, best, 0.0), ABOVE_TOP, 0.0, 1.0)
    pools += _between(np.where(found, 0.0, typical), NOTHING_FOUND, 0.0, 1.0)
    lower, upper = np.stack([pool[0] for pool in pools]), np.stack([pool[1] for pool in pools])
    used = (upper - lower) @ frequency > 0
    return Levels(
        np.array([pool[2] for pool in pools])[used],
        np.array([pool[3] for pool in pools])[used],
        lower[used],
        upper[used],
    )


def _between(
    reference: FloatArray, edges: FloatArray, above: float, shape: float
) -> list[tuple[FloatArray, FloatArray, float, float]]:
    return [(reference * low, reference * high, above, shape) for low, high in pairwise(edges)]


def expected_views(
    above: FloatArray, departing: FloatArray, arriving: FloatArray, shape: FloatArray, upto: FloatArray
) -> FloatArray:
    """E[C(N)], N = Binomial(above, 1 - departing) + NegativeBinomial(mean arriving, shape).

    Columns are pools, rows are samples of the two rates; `upto` is C(0), C(1), …
    """
    places = np.arange(len(upto), dtype=np.float64)
    mean = above * (1 - departing) + arriving
    spread = np.sqrt(3 * (above * departing * (1 - departing) + arriving + arriving**2 / shape))
    # Three points of Gauss and Hermite serve where N is large; small N is summed out below.
    total: FloatArray = (
        np.interp(np.maximum(mean - spread, 0), places, upto)
        + 4 * np.interp(mean, places, upto)
        + np.interp(mean + spread, places, upto)
    ) / 6
    for k in range(EXACT_RANKS + 1):
        columns = np.flatnonzero(above == k)
        if len(columns):
            few = _sum_out(k, departing[:, columns], arriving[:, columns], shape[columns], upto)
            total[:, columns] = np.where(arriving[:, columns] <= MOST_ARRIVALS / 8, few, total[:, columns])
    return total


def _sum_out(k: int, departing: FloatArray, arriving: FloatArray, shape: FloatArray, upto: FloatArray) -> FloatArray:
    """The expectation by its definition, for k local results."""
    size = k + MOST_ARRIVALS + 1
    reach = np.append(upto[:size], np.full(max(size - len(upto), 0), upto[-1]))
    survivors = np.zeros((k + 1, *departing.shape))
    survivors[0] = 1.0
    for one in range(k):
        staying = survivors[: one + 1] * (1 - departing)
        survivors[: one + 1] *= departing
        survivors[1 : one + 2] += staying
    ratio = arriving / (arriving + shape)
    probability = (1 - ratio) ** shape
    left = np.ones_like(departing)
    total: FloatArray = np.zeros_like(departing)
    for n in range(MOST_ARRIVALS + 1):
        total += probability * np.tensordot(reach[n : n + k + 1], survivors, axes=1)
        left -= probability
        probability = probability * ratio * (n + shape) / (n + 1)
        if n > 8 and left.max() < 1e-12:
            break
    total += np.maximum(left, 0) * reach[-1]
    return total
