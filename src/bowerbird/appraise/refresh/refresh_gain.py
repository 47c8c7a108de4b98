"""What a refresh gains where losses add up: each missed change takes its share, until a page has lost all it has.

A page that changes Delta times a second loses q by each change that is missed, and no more than it has at stake: after
tau it loses L = q·min(x, m), x = Delta·tau, where m changes take all. The best index under that loss is
tau·L - integral of L = (q/Delta)·x²/2, which stays where x reaches m. All is in losses of one change here, ages in
expected changes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

#: bounds of m. A page whose first change takes nearly all is as good as lost when it has surely changed: there the area
#: index is q/Delta, as that of a loss that saturates. And losses add up no further than anybody has seen.
FEWEST_CHANGES, MOST_CHANGES = math.sqrt(2.0), 20.0


def most_changes(worth: npt.ArrayLike, loss: npt.ArrayLike) -> F64:
    """[BEYOND] m = stake/q: how many missed changes take all that a page has at stake, within bounds.

    >>> most_changes([1.0, 1.0, 1.0], [0.9, 0.2, 0.0]).round(3).tolist()
    [1.414, 5.0, 20.0]
    """
    stake, one = np.asarray(worth, np.float64), np.asarray(loss, np.float64)
    times = np.divide(stake, one, out=np.full(np.broadcast(stake, one).shape, MOST_CHANGES), where=one > 0)
    return np.asarray(np.clip(np.nan_to_num(times, nan=FEWEST_CHANGES), FEWEST_CHANGES, MOST_CHANGES))


def loss_by(changes: npt.ArrayLike, most: npt.ArrayLike = FEWEST_CHANGES) -> F64:
    """[BEYOND] L = min(x, m): what is lost after x expected changes, in losses of one; a refresh regains it.

    >>> loss_by([0.5, 50.0], [2.0, 3.0]).tolist()
    [0.5, 3.0]
    """
    return np.asarray(np.minimum(np.maximum(changes, 0.0), most), np.float64)


def changes_told(told: npt.ArrayLike, by_age: npt.ArrayLike) -> F64:
    """[BEYOND] (1 - exp(-x))·y/(1 - exp(-y)): changes expected where a site says x = -log P(none), and its age y.

    What sites say makes it sure that a page has changed, not that it did so many times. Where they say less than the
    age does, there are no more than that.

    >>> changes_told([2.0, 50.0, 0.1], [2.0, 0.2, 3.0]).round(3).tolist()
    [2.0, 1.103, 0.1]
    """
    x, y = np.broadcast_arrays(np.asarray(told, np.float64), np.maximum(np.asarray(by_age, np.float64), 1e-12))
    changes, surer = np.array(x), x > y
    changes[surer] = np.expm1(-x[surer]) * y[surer] / np.expm1(-y[surer])  # few are
    return changes


def mean_loss(changes: npt.ArrayLike, most: npt.ArrayLike = FEWEST_CHANGES) -> F64:
    """[BEYOND] (1/x)·integral_0^x min(u, m) du = x/2, beyond m: m - m²/(2x). The loss between refreshes, on average.

    >>> mean_loss([1.0, 4.0, np.inf], 2.0).tolist()
    [0.5, 1.5, 2.0]
    """
    x, m = np.asarray(changes, np.float64), np.asarray(most, np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(x <= m, 0.5 * x, m - 0.5 * m * m / np.maximum(x, m)))


def refresh_index(changes: npt.ArrayLike, within: npt.ArrayLike = np.inf, most: npt.ArrayLike = FEWEST_CHANGES) -> F64:
    """[BEYOND] (x² - ((x - y)+)²)/2, x no more than m, y = Delta·H: the index of a refresh where gains count up to H.

    A change that came t after the last fetch would be missed for as long again, were this fetch as late as the last:
    to see it now gains its loss for min(t, H).

    >>> refresh_index([1.0, 1.0, 9.0], [np.inf, 0.5, 0.1]).round(4).tolist()
    [0.5, 0.375, 0.1364]
    """
    x = loss_by(changes, most)
    return np.asarray(0.5 * (x**2 - np.maximum(x - np.asarray(within, np.float64), 0.0) ** 2))


def refresh_due(index: npt.ArrayLike, within: npt.ArrayLike = np.inf, most: npt.ArrayLike = FEWEST_CHANGES) -> F64:
    """[BEYOND] x = sqrt(2·i) up to y²/2, then i/y + y/2: after how many changes the index is i; inf if it never is.

    >>> refresh_due([0.5, 0.375, 5.0], [np.inf, 0.5, np.inf]).tolist()
    [1.0, 1.0, inf]
    """
    i, y = np.asarray(index, np.float64), np.asarray(within, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(np.isinf(y) | (i <= 0.5 * y * y), np.sqrt(2.0 * i), i / y + 0.5 * y)
    return np.asarray(np.where(x <= np.asarray(most) * (1.0 + 1e-12), x, np.inf))
