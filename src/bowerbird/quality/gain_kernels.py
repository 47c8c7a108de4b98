"""Compiled: the gain of a change of score through F_q, for one query, and over all queries that a batch of pages has.

The visibility I is a table of its first ranks and a power law that goes on from the last of them. A curve is a row of
five numbers (`quality.curves`), as float64.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, IntArray
from bowerbird.quality.curves import PIECES

I32 = npt.NDArray[np.int32]

WHOLE = 1e-4  # relative: nearer to a whole rank than this is that rank
SHORT = 64  # ranks that are summed one by one
STRIDE = 1.25  # of the steps in which longer sums are taken

_LOGS = np.log(np.maximum(np.arange(256), 1e-9))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def view(views: FloatArray, exponent: float, rank: int) -> float:
    """I(rank)."""
    last = len(views)
    return float(views[rank - 1]) if rank <= last else float(views[last - 1]) * (rank / last) ** -exponent


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pieces_a_log(row: FloatArray) -> float:
    """Pieces of the curve in one unit of log rank."""
    return float(PIECES / np.log(max(row[0], 2.0)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _curve_score(row: FloatArray, rank: int, scale: float) -> float:
    """F⁻¹ of one rank, at `scale` pieces in one unit of its logarithm."""
    if row[0] <= 0:
        return 0.0
    place = (_LOGS[rank] if rank < len(_LOGS) else np.log(rank)) * scale
    piece = int(min(max(np.floor(place), 0.0), PIECES - 1.0))
    return float(np.exp(row[1 + piece] + (row[2 + piece] - row[1 + piece]) * (place - piece)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def curve_rank(row: FloatArray, score: float) -> float:
    """F_q of one score, not rounded."""
    if row[0] <= 0:
        return 1.0
    level = np.log(max(score, 1e-60))
    piece = 0
    for end in range(1, PIECES):
        if row[1 + end] >= level:
            piece += 1
    place = piece + (level - row[1 + piece]) / (row[2 + piece] - row[1 + piece])
    length = np.log(max(row[0], 2.0))
    return float(np.exp(min(max(place / PIECES * length, 0.0), np.log(row[0] + 1))))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _whole_rank(row: FloatArray, score: float, rising: bool, last: int) -> int:
    """Up for a rising score, down for a falling one; a rank that is whole but for float32 stays."""
    rank = curve_rank(row, score)
    return int(min(max(np.ceil(rank * (1 - WHOLE)) if rising else np.floor(rank * (1 + WHOLE)), 1), last))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def integrate_powers(first: int, last: int, exponent: float) -> float:
    """sum of k^-exponent for k = first…last, as `quality.gain.partial_sum` has it."""
    low, high = first - 0.5, last + 0.5
    if exponent == 1.0:
        return float(np.log(high / low))
    power = 1.0 - exponent
    return float((high**power - low**power) / power)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def moved_views(row: FloatArray, first: int, last: int, shift: int, views: FloatArray, exponent: float) -> float:
    """Sum over r = first…last of (I(r) - I(r + 1))·F⁻¹(r + shift): what results that change place by one lose or win.

    The first ranks, up to `SHORT` or as far as the table of views goes, one by one. Beyond, summed by parts and in
    strides: sum of I(r)·delta, delta the mean score step of a stride, none over the end of a piece of the curve.
    """
    total = 0.0
    scale = _pieces_a_log(row)
    short = min(max(first + SHORT - 1, len(views)), last)
    before = view(views, exponent, first)
    for rank in range(first, short + 1):
        after = view(views, exponent, rank + 1)
        total += (before - after) * _curve_score(row, rank + shift, scale)
        before = after
    if short == last or before <= 0.0:
        return total
    # I(a)·S(a) - I(b + 1)·S(b) - sum over a < r <= b of I(r)·(S(r - 1) - S(r)), a = short + 1, b = last
    tail = views[len(views) - 1] * float(len(views)) ** exponent
    length = np.log(max(row[0], 2.0))
    start, level = short + 2, _curve_score(row, short + 1 + shift, scale)
    total += before * level
    while start <= last:
        end = min(last, int(start * STRIDE))
        for piece in range(1, PIECES):
            bound = int(np.exp(length * piece / PIECES)) - shift
            if start <= bound < end:
                end = bound
        below = _curve_score(row, end + shift, scale)
        total -= tail * integrate_powers(start, end, exponent) * (level - below) / (end - start + 1)
        start, level = end + 1, below
    return total - view(views, exponent, last + 1) * level


@numba.njit(cache=True, nogil=True, error_model="numpy")
def curve_gain_of(row: FloatArray, old: float, new: float, views: FloatArray, exponent: float) -> float:
    """[UC05] the gain by the curve F_q alone, r1 = F(old), r2 = F(new), s2 = new.

    For r1 < r2: (I(r2) - I(r1))·s2 + I(r1)·F⁻¹(r1+1) - sum_{r1<r<r2} I(r)·delta - I(r2)·F⁻¹(r2); for r1 > r2 the
    mirror image, (I(r2) - I(r1))·s2 + I(r1)·F⁻¹(r1-1) + sum_{r2<r<r1} I(r)·delta - I(r2)·F⁻¹(r2). Both ranks are
    rounded up for a rising score, down for a falling one.
    """
    rising = new > old
    # A page that is in the answer is one of the results the curve counts; another would be one more.
    last = max(int(row[0]) + (0 if old > 0 else 1), 1)  # a curve may be older than the page's place in it
    r1 = _whole_rank(row, old, rising, last) if old > 0 else last
    r2 = _whole_rank(row, new, rising, last) if new > 0 else last
    if old > 0 and (r2 > r1 if rising else r2 < r1):
        r2 = r1
    gain = 0.0
    if new > 0:
        gain = (view(views, exponent, r2) - (view(views, exponent, r1) if old > 0 else 0.0)) * new
    if r2 < r1:
        gain -= moved_views(row, r2, r1 - 1, 0, views, exponent)
    elif r1 < r2:
        gain += moved_views(row, r1, r2 - 1, 1, views, exponent)
    return max(gain, 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gain_pages(
    starts: IntArray, words: I32, old: FloatArray, new: FloatArray, keyed: IntArray, query_starts: IntArray,
    members: I32, frequency: FloatArray, rows: FloatArray, views: FloatArray, exponent: float, gains: FloatArray,
    top_queries: I32, top_gains: FloatArray,
) -> None:  # fmt: skip
    """By page, the sum over the queries that one of its versions answers of f·gain, and the queries that gain most.

    Page i has `words[starts[i]:starts[i + 1]]` with their scores before and after; NaN before: not known, and no
    query with such a word counts. The queries with the rarest word w are `keyed[w]`…`keyed[w + 1] - 1`.
    """
    vocabulary = len(keyed) - 1
    last = np.full(vocabulary, -1, dtype=np.int64)
    where = np.zeros(vocabulary, dtype=np.int64)
    most = top_queries.shape[1]
    for page in range(len(starts) - 1):
        moved = False
        for place in range(starts[page], starts[page + 1]):
            last[words[place]] = page
            where[words[place]] = place
            moved = moved or old[place] != new[place]
        if not moved:
            continue
        for place in range(starts[page], starts[page + 1]):
            word = words[place]
            for query in range(keyed[word], keyed[word + 1]):
                before, after = 0.0, 0.0
                was, is_now = True, True
                for member in range(query_starts[query], query_starts[query + 1]):
                    one = members[member]
                    if last[one] != page or np.isnan(old[where[one]]):
                        was, is_now = False, False
                        break
                    before += old[where[one]]
                    after += new[where[one]]
                    was = was and old[where[one]] > 0
                    is_now = is_now and new[where[one]] > 0
                before, after = before if was else 0.0, after if is_now else 0.0
                if before == after or not (was or is_now):
                    continue
                gain = frequency[query] * curve_gain_of(rows[query], before, after, views, exponent)
                gains[page] += gain
                slot = most
                while slot > 0 and gain > top_gains[page, slot - 1]:
                    slot -= 1
                if slot < most:
                    for other in range(most - 1, slot, -1):
                        top_gains[page, other] = top_gains[page, other - 1]
                        top_queries[page, other] = top_queries[page, other - 1]
                    top_gains[page, slot], top_queries[page, slot] = gain, query
