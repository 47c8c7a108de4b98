"""g(x) = 1 - (1 + x)·exp(-x) and its inverse for columns: from a hub's age to its bid, from a price to its age."""

from __future__ import annotations

import math
from itertools import pairwise

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.threads import share
from bowerbird.model.bid import saturating_gain

F64 = npt.NDArray[np.float64]

_AT_ONCE = 1 << 17
_TERMS = 26
_EXACT = 1.0  # up to this z the series of x alone has all digits
_NEAR = 2.4  # up to here it is the better place to begin

gain_of = numba.njit(cache=True, nogil=True)(saturating_gain)


def _series() -> F64:
    """Coefficients of x by z = sqrt(2t), where x - log(1 + x) = t: from x·x' = z·(1 + x), term by term."""
    a = [0.0, 1.0]
    for n in range(2, _TERMS + 1):
        known = math.fsum(a[i] * (n + 1 - i) * a[n + 1 - i] for i in range(2, n))
        a.append((a[n - 1] - known) / (n + 1))
    return np.array(a)


_SERIES = _series()


@numba.njit(cache=True, nogil=True)
def age_of(y: float) -> float:
    """The x at which g(x) = y, for y in [0, 1): the root of x - log(1 + x) = t, t = -log(1 - y).

    For kernels. A series in sqrt(2t) where that difference would lose its digits, Halley's method above.
    """
    if y <= 0.0:
        return 0.0
    if y >= 1.0:
        return math.inf
    t = -math.log1p(-y)
    z = math.sqrt(2.0 * t)
    if z < _NEAR:
        x = 0.0
        for k in range(_TERMS, 0, -1):
            x = (x + _SERIES[k]) * z
        if z < _EXACT:
            return x
    else:
        x = t + math.log1p(t + math.log1p(t))
    for _ in range(2):
        off = (x - math.log1p(x) - t) * (1.0 + x) / x
        x -= off / (1.0 - off / (2.0 * x * (1.0 + x)))
    return x


@numba.njit(cache=True, nogil=True)
def _gains(x: F64, out: F64, low: int, high: int) -> None:
    for i in range(low, high):
        out[i] = gain_of(x[i])


@numba.njit(cache=True, nogil=True)
def _ages(y: F64, out: F64, low: int, high: int) -> None:
    for i in range(low, high):
        out[i] = age_of(y[i])


def saturating_gains(x: npt.ArrayLike) -> F64:
    """[ECHO13] g(x) = 1 - (1 + x)·exp(-x) of many x >= 0, of any shape.

    >>> saturating_gains([0.0, 1.0]).round(6).tolist()
    [0.0, 0.264241]
    """
    column = np.asarray(x, np.float64)
    out = np.empty(column.size)
    flat = np.ascontiguousarray(column).reshape(-1)
    share(lambda low, high: _gains(flat, out, low, high), cut_columns(len(flat)))
    return out.reshape(column.shape)


def saturating_gains_inverse(y: npt.ArrayLike) -> F64:
    """[ECHO13] g^-1(y) = -1 - W_{-1}(-(1 - y)/e) of many y: 0 below 0, infinite from 1 on.

    >>> saturating_gains_inverse([0.0, 1 - 2 / math.e]).round(6).tolist()
    [0.0, 1.0]
    """
    column = np.asarray(y, np.float64)
    out = np.empty(column.size)
    flat = np.ascontiguousarray(column).reshape(-1)
    share(lambda low, high: _ages(flat, out, low, high), cut_columns(len(flat)))
    return out.reshape(column.shape)


def cut_columns(count: int) -> list[tuple[int, int]]:
    """Ranges of one size, so that sums over them do not depend on the machine."""
    return list(pairwise([*range(0, count, _AT_ONCE), count])) if count else []
