"""Numba kernels of hub intervals: what hubs ask for at a price. They know amplitudes and rates, nothing of pages."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.gains import age_of, gain_of

F64 = npt.NDArray[np.float64]


@numba.njit(cache=True, nogil=True)
def losing_age(c: float) -> float:
    """The x at which exp(x) - 1 - x = c, by Newton's method from above: it comes down to the root and cannot pass it.

    With c = mu/lam it is mu·I of a hub whose visits every I gain just what they and its pages cost.
    """
    if not c < math.inf:
        return math.inf
    x = min(math.sqrt(2.0 * c), math.log1p(c + math.sqrt(2.0 * c)))
    for _ in range(30):
        if x < 0.05:  # the difference would lose its digits
            slope = x * (1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x / 720)))))
            value = x * x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x / 5040)))))
        else:
            slope = math.expm1(x)
            value = slope - x
        step = (value - c) / slope if slope > 0.0 else 0.0
        x -= step
        if abs(step) <= 1e-15 * x:
            break
    return x


@numba.njit(cache=True, nogil=True)
def limit_prices(
    amplitude: F64, decay: F64, pages: F64, floor_s: float, drop_losses: bool, out: F64, low: int, high: int
) -> None:
    """By hub the price from which on it is not visited: its amplitude, or with `drop_losses` where it gains nothing."""
    for i in range(low, high):
        if amplitude[i] <= 0.0 or not drop_losses or pages[i] <= 0.0:
            out[i] = amplitude[i]
            continue
        x = losing_age(decay[i] / pages[i])
        if x < decay[i] * floor_s:
            # visits as frequent as may be: all of their gain over all of their fetches
            out[i] = -amplitude[i] * math.expm1(-decay[i] * floor_s) / (1.0 + pages[i] * floor_s)
        else:
            out[i] = amplitude[i] * gain_of(x)


@numba.njit(cache=True, nogil=True)
def frequency_at(price: float, amplitude: float, decay: float, floor_s: float) -> float:
    """Visits per second at which amplitude·g(decay·I) = price, I at least the floor."""
    x = max(age_of(price / amplitude), decay * floor_s)
    return decay / x if x > 0.0 else math.inf


@numba.njit(cache=True, nogil=True)
def ask(price: float, amplitude: F64, decay: F64, floor_s: float, low: int, high: int) -> tuple[float, float]:
    """Visits per second that the hubs from `low` to `high` ask for, all of them visited, and the slope by log(price).

    df/dlog(price) = -f·y·(1 + x)/(x²·(1 - y)), y = price/amplitude = g(x).
    """
    asked = slope = 0.0
    for i in range(low, high):
        y = price / amplitude[i]
        x = age_of(y)
        if x < decay[i] * floor_s:
            asked += 1.0 / floor_s
        elif x > 0.0:
            often = decay[i] / x
            asked += often
            if y < 1.0:
                slope -= often * y * (1.0 + x) / (x * x * (1.0 - y))
        else:
            asked = math.inf
    return asked, slope


@numba.njit(cache=True, nogil=True)
def settle(price: float, amplitude: F64, decay: F64, floor_s: float, out: F64, low: int, high: int) -> None:
    """Visits per second of each hub at the price."""
    for i in range(low, high):
        out[i] = frequency_at(price, amplitude[i], decay[i], floor_s)
