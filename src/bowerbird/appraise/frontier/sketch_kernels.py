"""Numba kernels of the sketches: the best candidates of each query in a table of fixed width."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
B1 = npt.NDArray[np.bool_]


@numba.njit(cache=True, nogil=True, inline="always")
def _better(score: float, page: int, other_score: float, other_page: int) -> bool:
    """Ties go to the lower page."""
    return score > other_score or (score == other_score and page < other_page)


@numba.njit(cache=True, nogil=True)
def _drop(pages: I64, scores: F64, size: int, page: int) -> int:
    """Take a page out of a row of `size` entries; the size after that."""
    for place in range(size):
        if pages[place] == page:
            for i in range(place, size - 1):
                pages[i] = pages[i + 1]
                scores[i] = scores[i + 1]
            pages[size - 1] = -1
            scores[size - 1] = -np.inf
            return size - 1
    return size


@numba.njit(cache=True, nogil=True)
def update_rows(
    pages: I64,
    scores: F64,
    sizes: I64,
    left_score: F64,
    left_page: I64,
    queries: I64,
    new_pages: I64,
    new_scores: F64,
) -> None:
    """Put candidates into the rows of their queries, in this order; a score that is no number takes the page out.

    A row is the true beginning of the query's ranking: what is not in it is not better than (`left_score`,
    `left_page`), the best that was ever left out; -inf where nothing was.
    """
    width = pages.shape[1]
    for i in range(len(queries)):
        query, page, score = queries[i], new_pages[i], new_scores[i]
        row, row_scores = pages[query], scores[query]
        size = _drop(row, row_scores, sizes[query], page)
        if np.isnan(score) or not _better(score, page, left_score[query], left_page[query]):
            sizes[query] = size  # left out, and no better than what was left out before
            continue
        if size == width:
            last = width - 1
            if not _better(score, page, row_scores[last], row[last]):
                left_score[query], left_page[query] = score, page
                sizes[query] = size
                continue
            left_score[query], left_page[query] = row_scores[last], row[last]
            size -= 1
        place = size
        while place and _better(score, page, row_scores[place - 1], row[place - 1]):
            row[place] = row[place - 1]
            row_scores[place] = row_scores[place - 1]
            place -= 1
        row[place] = page
        row_scores[place] = score
        sizes[query] = size + 1


@numba.njit(cache=True, nogil=True)
def solve_thresholds(
    known_starts: I64, known: F64, starts: I64, points: F64, scale: F64, rows: I64, top: int, steps: int
) -> F64:
    """Per query the score t that `top` pages are expected to exceed; 0 where fewer have any score.

    Its known scores are `known[known_starts[q]:known_starts[q + 1]]`; unseen candidate c, of those from `starts[q]`
    on, scores `scale[c]` times a draw from distribution `rows[c]` of `points`.
    """
    out = np.zeros(len(starts) - 1)
    for query in range(len(out)):
        low = 0.0
        high = 0.0
        for i in range(known_starts[query], known_starts[query + 1]):
            high = max(high, known[i])
        for c in range(starts[query], starts[query + 1]):
            high = max(high, scale[c] * points[rows[c], -1])
        if _exceed(known, known_starts, points, scale, rows, starts, query, 0.0) <= top:
            continue
        for _ in range(steps):
            middle = (low + high) / 2
            if _exceed(known, known_starts, points, scale, rows, starts, query, middle) > top:
                low = middle
            else:
                high = middle
        out[query] = high
    return out


@numba.njit(cache=True, nogil=True)
def _exceed(
    known: F64, known_starts: I64, points: F64, scale: F64, rows: I64, starts: I64, query: int, level: float
) -> float:
    total = 0.0
    for i in range(known_starts[query], known_starts[query + 1]):
        total += known[i] > level
    for c in range(starts[query], starts[query + 1]):
        total += tail(points[rows[c]], level / scale[c] if scale[c] > 0 else np.inf)
    return total


@numba.njit(cache=True, nogil=True)
def tail(points: F64, level: float) -> float:
    """P(X > level) for a distribution given by equally likely, ascending points, straight between them."""
    count = len(points)
    if level < points[0]:
        return 1.0
    if level >= points[count - 1]:
        return 0.0
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if points[middle] > level:
            high = middle
        else:
            low = middle
    within = (level - points[low]) / (points[high] - points[low])
    return float(1.0 - (low + within) / (count - 1))


@numba.njit(cache=True, nogil=True)
def tails(points: F64, scale: F64, rows: I64, levels: F64) -> F64:
    """P(scale·X > level) for each candidate."""
    out = np.zeros(len(rows))
    for c in range(len(rows)):
        if scale[c] > 0:
            out[c] = tail(points[rows[c]], levels[c] / scale[c])
    return out
