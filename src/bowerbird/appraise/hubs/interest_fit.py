"""Least squares of interest: P·(1 - exp(-mu·t)) through mean cumulative clicks by age, for one hub or many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

_GRID = 256
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_AT_ONCE = 4096  # hubs


@dataclass(frozen=True, slots=True)
class Interest:
    """Clicks over a page's life, decay, and the root of the mean squared error of the fit."""

    profit: float
    decay_per_s: float
    error: float


@dataclass(frozen=True, slots=True)
class Interests:
    """The same by hub."""

    profit: F64
    decay_per_s: F64
    error: F64


def fit_profit(
    mean_clicks: npt.ArrayLike, age_s: npt.ArrayLike, decay_per_s: float, weight: npt.ArrayLike | None = None
) -> float:
    """[ECHO13] P = sum w·c·f/sum w·f², f = 1 - exp(-mu·t): least squares to mean cumulative clicks c, for given mu."""
    clicks, ages = np.asarray(mean_clicks, np.float64), np.asarray(age_s, np.float64)
    weights = np.ones(len(ages)) if weight is None else np.asarray(weight, np.float64)
    grown = -np.expm1(-decay_per_s * ages)
    square = float(weights @ grown**2)
    return max(float(weights @ (clicks * grown)) / square, 0.0) if square > 0 else 0.0


def fit_interest(age_s: npt.ArrayLike, mean_clicks: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Interest:
    """[ECHO13] P and mu of least squares: a search along log(mu), P in closed form at each step.

    mu is sought from a thousandth of 1/(last age) to a hundred times 1/(first age).
    """
    rows = np.asarray(mean_clicks, np.float64)[None, :]
    weights = None if weight is None else np.asarray(weight, np.float64)[None, :]
    found = fit_interests(age_s, rows, weights)
    return Interest(float(found.profit[0]), float(found.decay_per_s[0]), float(found.error[0]))


def fit_interests(age_s: npt.ArrayLike, mean_clicks: npt.ArrayLike, weight: npt.ArrayLike | None = None) -> Interests:
    """`fit_interest` for many hubs: clicks and weights by hub (rows) and age (columns)."""
    clicks = np.asarray(mean_clicks, np.float64)
    weights = np.ones(clicks.shape) if weight is None else np.asarray(weight, np.float64)
    parts = [
        _fit_rows(np.asarray(age_s, np.float64), clicks[low : low + _AT_ONCE], weights[low : low + _AT_ONCE])
        for low in range(0, len(clicks), _AT_ONCE)
    ]
    if not parts:
        return Interests(np.zeros(0), np.zeros(0), np.zeros(0))
    profit, decay, error = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Interests(profit, decay, error)


def _fit_rows(ages: F64, clicks: F64, weights: F64) -> tuple[F64, F64, F64]:
    rows = len(clicks)
    some = ages > 0
    if not some.any():
        return np.zeros(rows), np.zeros(rows), np.zeros(rows)
    first, last = math.log(1e-3 / ages.max()), math.log(1e2 / ages[some].min())
    grid = np.linspace(first, last, _GRID)
    weighted = weights * clicks
    grown = -np.expm1(-np.exp(grid)[:, None] * ages)  # grid by age
    cross, square = weighted @ grown.T, weights @ (grown**2).T
    explained = np.divide(np.maximum(cross, 0.0) ** 2, square, out=np.zeros_like(cross), where=square > 0)
    best = explained.argmax(axis=1)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, _GRID - 1)]

    def unexplained(at: F64) -> tuple[F64, F64]:
        """Squared error and profit by hub, the error as a sum of squares: a difference would lose its digits."""
        curve = -np.expm1(-np.exp(at)[:, None] * ages)
        across, squares = (weighted * curve).sum(axis=1), (weights * curve**2).sum(axis=1)
        profit = np.divide(np.maximum(across, 0.0), squares, out=np.zeros(rows), where=squares > 0)
        return (weights * (clicks - profit[:, None] * curve) ** 2).sum(axis=1), profit

    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = unexplained(inner)[0], unexplained(outer)[0]
    for _ in range(60):
        left = at_inner <= at_outer
        low, high = np.where(left, low, inner), np.where(left, outer, high)
        fresh = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = unexplained(fresh)[0]
        inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
        at_inner, at_outer = np.where(left, value, at_outer), np.where(left, at_inner, value)
    found = 0.5 * (low + high)
    error, profit = unexplained(found)
    return profit, np.exp(found), np.sqrt(error / np.maximum(weights.sum(axis=1), 1e-300))


def expected_profit(
    clicks: npt.ArrayLike, seen_share: npt.ArrayLike, prior_clicks: npt.ArrayLike, prior_pages: npt.ArrayLike
) -> F64:
    """[BEYOND] (a0 + clicks)/(b0 + sum of 1 - exp(-mu·age)): a page's expected clicks, right for young pages.

    `seen_share` is that sum over the pages seen: the share of their clicks that has had time to come.
    """
    got, seen, a0, b0 = (np.asarray(value, np.float64) for value in (clicks, seen_share, prior_clicks, prior_pages))
    return np.asarray((a0 + got) / (b0 + seen))
