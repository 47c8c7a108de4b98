"""What the repository answers now: per query the scores at some ranks, and how many results there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Visibility = Callable[[npt.NDArray[Any]], FloatArray]

EXACT_RANKS = 16  # up to here every rank is a step of its own
GRID_RATIO = 1.25
_SHORT = 64  # ranks after a known one that are summed one by one
_STRIDE = 1.02  # of the steps in which longer sums are taken


def view_table(visibility: Visibility, ranks: int) -> FloatArray:
    """I(1), …, I(ranks)."""
    return np.asarray(visibility(np.arange(1, ranks + 1)), dtype=np.float64)


def rank_grid(largest: int) -> IntArray:
    """1, 2, 3, … one by one, then in steps that grow by a quarter, the last one above `largest`."""
    steps = [float(EXACT_RANKS + 1)]
    while steps[-1] <= largest:
        steps.append(np.ceil(steps[-1] * GRID_RATIO))
    return np.concatenate([np.arange(1, EXACT_RANKS + 1), np.array(steps)]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LocalAnswers:
    """Answer lists of many queries, each known at some of its ranks.

    The points of query q are `ranks[starts[q]:starts[q + 1]]`, ascending from 1, and the scores there, not rising.
    Between two points a list is taken to be straight on log-log scale; after the last one it goes on with the
    same slope up to `totals[q]`.
    """

    starts: IntArray
    ranks: IntArray
    scores: FloatArray
    totals: IntArray

    def __len__(self) -> int:
        return len(self.totals)

    @classmethod
    def from_lists(
        cls, lists: Sequence[npt.ArrayLike], totals: npt.ArrayLike | None = None, ranks: npt.ArrayLike | None = None
    ) -> LocalAnswers:
        """From each query's scores, best first, at `ranks` (1, 2, 3, … unless given); zeros at the end are padding."""
        kept = []
        for scores in lists:
            column = np.asarray(scores, dtype=np.float64)
            kept.append(column[: int(np.count_nonzero(column > 0))])
        lengths = np.array([len(scores) for scores in kept], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.arange(1, lengths.max(initial=0) + 1) if ranks is None else np.asarray(ranks, dtype=np.int64)
        points = [at[:length] for length in lengths]
        last = np.array([point[-1] if len(point) else 0 for point in points], dtype=np.int64)
        count = (
            last if totals is None else np.where(lengths > 0, np.maximum(np.asarray(totals, dtype=np.int64), last), 0)
        )
        return cls(
            starts,
            np.concatenate([*points, np.empty(0, np.int64)]).astype(np.int64),
            np.concatenate([*kept, np.empty(0)]),
            count.astype(np.int64),
        )

    def points(self, query: int) -> tuple[IntArray, FloatArray]:
        """Ranks and scores of one query, down to its last result."""
        span = slice(self.starts[query], self.starts[query + 1])
        ranks, scores = self.ranks[span], self.scores[span]
        total = int(self.totals[query])
        if len(ranks) and total > ranks[-1]:
            middle = len(ranks) // 2
            fall = np.log(scores[middle] / scores[-1]) if len(ranks) > 1 else 0.0
            run = np.log(ranks[-1] / ranks[middle]) if ranks[-1] > ranks[middle] else 1.0
            ranks = np.append(ranks, total)
            scores = np.append(scores, scores[-1] * (total / ranks[-2]) ** -(fall / run))
        return ranks, scores

    def on_grid(self, grid: IntArray) -> FloatArray:
        """Queries × grid: the score at each rank of the grid; the last result's score beyond the end, 0 without any."""
        table = np.zeros((len(self), len(grid)))
        log_grid = np.log(grid)
        for query in np.flatnonzero(self.totals):
            ranks, scores = self.points(int(query))
            table[query] = np.exp(np.interp(log_grid, np.log(ranks), np.log(scores)))
        return table

    def values(self, views: FloatArray, exponent: float = 0.0) -> FloatArray:
        """Per query, sum over its results of I(rank)·score: exact at the known ranks, nearly so between and after them.

        `views` is I(1), I(2), …, as long as the longest list; or shorter, and a power law goes on from the last of it.
        """
        worth = np.zeros(len(self))
        upto = np.concatenate([[0.0], np.cumsum(views)])
        for query in np.flatnonzero(self.totals):
            worth[query] = _sum_points(*self.points(int(query)), views, upto, exponent)
        return worth

    def views(self, queries: IntArray, scores: FloatArray, views: FloatArray) -> FloatArray:
        """The probability that a result with this score is viewed now; ties share theirs; 0 for score 0.

        `views` is I(1), I(2), …, as long as the longest list at least.
        """
        seen = np.zeros(len(queries))
        upto = np.concatenate([[0.0], np.cumsum(views)])
        places = np.arange(len(upto))
        order = np.argsort(queries, kind="stable")
        bounds = np.searchsorted(queries[order], np.arange(len(self) + 1))
        for query in np.flatnonzero((np.diff(bounds) > 0) & (self.totals > 0)):
            rows = order[bounds[query] : bounds[query + 1]]
            rows = rows[scores[rows] > 0]
            ranks, levels = self.points(int(query))
            above = np.searchsorted(-levels, -scores[rows], side="left")
            until = np.searchsorted(-levels, -scores[rows], side="right")
            tied = until > above
            first = np.where(tied, ranks[np.minimum(above, len(ranks) - 1)], 0)
            final = np.where(tied, ranks[np.maximum(until, 1) - 1], 0)
            if not tied.all():
                between = np.exp(np.interp(-np.log(scores[rows]), -np.log(levels), np.log(ranks)))
                first = np.where(tied, first, between)
                final = np.where(tied, final, between)
            seen[rows] = (np.interp(final, places, upto) - np.interp(first - 1, places, upto)) / (final - first + 1)
        return seen


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_points(ranks: IntArray, scores: FloatArray, views: FloatArray, upto: FloatArray, exponent: float) -> float:
    """Sum of I(r)·S(r) down to the last point, S straight on log-log scale between points; `upto`: sums of `views`.

    A long gap between points costs as many steps as its ends differ in log rank. Beyond the views that are given
    I·S is one power law, and summed as its integral.
    """
    table, total = len(views), 0.0
    for point in range(len(ranks)):
        rank, score = ranks[point], scores[point]
        seen = views[rank - 1] if rank <= table else views[table - 1] * (rank / table) ** -exponent
        total += seen * score
        last = ranks[point + 1] - 1 if point + 1 < len(ranks) else rank
        if last <= rank:
            continue
        slope = np.log(score / scores[point + 1]) / np.log(ranks[point + 1] / rank)
        start = rank + 1
        while start <= min(last, table):
            end = start if start - rank <= _SHORT else min(last, table, max(start, int(start * _STRIDE)))
            middle = np.sqrt(float(start) * float(end))
            total += (upto[end] - upto[start - 1]) * score * (middle / rank) ** -slope
            start = end + 1
        short = min(last, rank + _SHORT)
        while start <= short:
            total += views[table - 1] * (start / table) ** -exponent * score * (start / rank) ** -slope
            start += 1
        if start <= last and views[table - 1] > 0:
            first = views[table - 1] * (start / table) ** -exponent * score * (start / rank) ** -slope
            low, high, power = np.log((start - 0.5) / start), np.log((last + 0.5) / start), 1.0 - exponent - slope
            if abs(power) < 1e-9:
                total += first * start * (high - low)
            else:
                total += first * start * (np.exp(power * high) - np.exp(power * low)) / power
    return float(total)
