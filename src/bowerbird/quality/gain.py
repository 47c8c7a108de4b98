"""What refreshing one page gains the answer of one query: exactly, and through the score-rank curve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, Visibility, view_table
from bowerbird.quality.curves import ScoreRankCurve
from bowerbird.quality.gain_kernels import SHORT, curve_gain_of

MOST_VIEWS = 1 << 14


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
    """The gain by the curve F_q alone, I(r) = r^-exponent: `gain_kernels.curve_gain_of` for one query."""
    views = np.arange(1, SHORT + 1, dtype=np.float64) ** -exponent
    return float(curve_gain_of(curve.row.astype(np.float64), float(old), float(new), views, exponent))


def tabulate_views(visibility: Visibility) -> tuple[FloatArray, float]:
    """I(1), I(2), … as far as it is no power law, but at least some ranks; and the exponent of the law after that.

    >>> views, exponent = tabulate_views(lambda ranks: ranks**-1.5)
    >>> len(views), round(exponent, 9)
    (64, 1.5)
    """
    ranks = SHORT
    while ranks < MOST_VIEWS:
        here, *beyond = np.asarray(visibility(ranks * np.array([1.0, 2.0, 4.0, 64.0])), dtype=np.float64).tolist()
        if here <= 0:
            break
        exponent = float(-np.log2(beyond[0] / here)) if beyond[0] > 0 else 0.0
        if np.allclose([here * 4**-exponent, here * 64**-exponent], beyond[1:], rtol=1e-6, atol=0):
            return view_table(visibility, ranks), exponent
        ranks *= 2
    return view_table(visibility, ranks), 1.5
