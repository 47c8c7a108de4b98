"""What refreshing one page gains the answer of one query: exactly, and through the score-rank curve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, Visibility, view_table
from bowerbird.quality.curves import ScoreRankCurve

WHOLE = 1e-4  # relative: nearer to a whole rank than this is that rank


def refresh_gain(
    old: npt.ArrayLike,
    new: npt.ArrayLike,
    others: FloatArray,
    visibility: Visibility,
) -> FloatArray:
    """[UC05] eq. 5: the change of sum_p I(R(p))·S(p, q) when one page's score goes from old to new, never negative.

    `others` are the scores of the other pages, best first. A score of 0 is no place in the answer. A page ranks after
    others of equal score. Several pairs at once: each page alone.

    >>> float(refresh_gain(1.0, 3.0, np.array([2.0]), lambda r: 1.0 / r))  # 3 and 2 change places
    0.5
    """
    before, after = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    count = len(others)
    views = np.append(view_table(visibility, count + 1), 0.0)
    # lost[k]: what the best k others lose when a page comes in above them
    lost = np.concatenate([[0.0], np.cumsum(others * (views[:count] - views[1 : count + 1]))])
    place_before = np.where(before > 0, np.searchsorted(-others, -before, side="right"), count)
    place_after = np.where(after > 0, np.searchsorted(-others, -after, side="right"), count)
    seen_before = np.where(before > 0, views[place_before], 0.0)
    seen_after = np.where(after > 0, views[place_after], 0.0)
    gain: FloatArray = (seen_after - seen_before) * after + lost[place_after] - lost[place_before]
    return np.maximum(gain, 0.0)


def partial_sum(first: npt.ArrayLike, last: npt.ArrayLike, exponent: float = 1.5) -> FloatArray:
    """[UC05] sum of k^-1.5 for k = first…last ~ 2((first - .5)^-.5 - (last + .5)^-.5); the printed form is wrong.

    Any other exponent above 1 in the same way. An empty sum, last < first, is 0.

    >>> round(float(partial_sum(4, 6)), 4), round(4**-1.5 + 5**-1.5 + 6**-1.5, 4)
    (0.2846, 0.2825)
    """
    low, high = np.asarray(first, dtype=np.float64), np.asarray(last, dtype=np.float64)
    power = 1 - exponent
    return np.where(high >= low, ((low - 0.5) ** power - np.maximum(high + 0.5, 0.5) ** power) / -power, 0.0)


def curve_gain(curve: ScoreRankCurve, old: float, new: float, exponent: float = 1.5) -> float:
    """[UC05] the gain by the curve F_q alone, I(r) = r^-exponent, r1 = F(old), r2 = F(new), s2 = new.

    For r1 < r2: (I(r2) - I(r1))·s2 + I(r1)·F⁻¹(r1+1) - sum_{r1<r<r2} I(r)·delta - I(r2)·F⁻¹(r2); for r1 > r2 the
    mirror image, (I(r2) - I(r1))·s2 + I(r1)·F⁻¹(r1-1) + sum_{r2<r<r1} I(r)·delta - I(r2)·F⁻¹(r2). delta is the mean
    score step of a piece. The new rank is rounded up for a rising score, down for a falling, the old to the nearest.
    """
    rising = new > old
    # A page that is in the answer is one of the results the curve counts; another would be one more.
    last = max(curve.total, 1) if old > 0 else curve.total + 1  # a curve may be older than the page's place in it
    r1 = int(np.clip(np.round(curve.rank(old)), 1, last)) if old > 0 else last
    r2 = int(np.clip(_whole_rank(float(curve.rank(new)), rising), 1, last)) if new > 0 else last
    if old > 0 and (r2 > r1 if rising else r2 < r1):
        r2 = r1
    place1, place2 = float(r1) ** -exponent, float(r2) ** -exponent
    gain = ((place2 if new > 0 else 0.0) - (place1 if old > 0 else 0.0)) * new
    if r2 < r1:
        gain += place1 * float(curve.score(r1 - 1)) + _stepped(curve, r2 + 1, r1 - 1, -1, exponent)
        gain -= place2 * float(curve.score(r2))
    elif r1 < r2:
        gain += place1 * float(curve.score(r1 + 1)) - _stepped(curve, r1 + 1, r2 - 1, 1, exponent)
        gain -= place2 * float(curve.score(r2))
    return max(gain, 0.0)


def _whole_rank(rank: float, rising: bool) -> float:
    """Up for a rising score, down for a falling one; a rank that is whole but for float32 stays."""
    return float(np.ceil(rank * (1 - WHOLE)) if rising else np.floor(rank * (1 + WHOLE)))


def _stepped(curve: ScoreRankCurve, first: int, last: int, towards: int, exponent: float) -> float:
    """Sum over r = first…last of I(r)·delta, delta the step to the neighbour, piece by piece; none over a doubling."""
    total, start = 0.0, first
    ends = [int(end) for end in curve.piece_ends()]
    while start <= last:
        end = min([last, 2 * start - 1, *(end for end in ends if end >= start)])
        drop = curve.score(start - 1) - curve.score(end) if towards < 0 else curve.score(start) - curve.score(end + 1)
        total += float(partial_sum(start, end, exponent)) * float(drop) / (end - start + 1)
        start = end + 1
    return total
