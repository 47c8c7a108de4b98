"""Factors of features, such as the hub or the place in its list: what each level makes of an expected number of clicks.

Clicks of single pages differ wildly, so a level seen on a few pages says little. How little is told from the data: the
noise of single pages against how much levels differ beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LEAST_PAGES, MOST_PAGES = 2.0, 1e5  # that a level has to be seen on to count as much as all others
LEAST_SPREAD = 1e-3
ROUNDS = 4
SPREAD = 0.3


def shrink_factors(
    clicks: F64, expected: F64, level: I64, count: int, *, spread: float = SPREAD, like_levels: float = 20.0
) -> F64:
    """[BEYOND] f = w·Y/E + (1 - w) by level, w = n/(n + phi/tau²): n pages, phi their noise, tau² the levels' spread.

    Y and E are sums over the level's pages, n = E²/sum(E²) is how many pages of equal weight they make up,
    phi = sum (y - f·e)²/sum e², and tau² is told from how much more ratios differ than noise would make them
    (DerSimonian and Laird's moments), as if `like_levels` more levels had differed by `spread`. A level without pages
    has 1.
    """
    had, hoped, squares = (np.bincount(level, each, count) for each in (clicks, expected, expected * expected))
    seen = np.flatnonzero(hoped > 0)
    if not len(seen):
        return np.ones(count)
    ratio = np.ones(count)
    ratio[seen] = had[seen] / hoped[seen]
    noise = float(((clicks - ratio[level] * expected) ** 2).sum() / squares.sum())
    found = _spread(ratio[seen], noise * squares[seen] / hoped[seen] ** 2)
    spread = (found * len(seen) + spread * like_levels) / (len(seen) + like_levels)
    kappa = min(max(noise / max(spread, LEAST_SPREAD), LEAST_PAGES), MOST_PAGES)
    pages = np.zeros(count)
    pages[seen] = hoped[seen] ** 2 / squares[seen]
    weight = pages / (pages + kappa)
    return np.asarray(np.maximum(weight * ratio + (1.0 - weight), LEAST_SPREAD))


def fit_factors(
    level: I64, sizes: Sequence[int], clicks: F64, expected: F64, spreads: Sequence[float] | None = None
) -> tuple[F64, ...]:
    """Factors of all features of pages (`level` by page and feature): one feature after the other, given the others.

    `spreads` say by how much levels of each feature are expected to differ.
    """
    spreads = spreads or (SPREAD,) * len(sizes)
    factors = [np.ones(size) for size in sizes]
    product = np.ones(len(clicks))
    for _ in range(ROUNDS):
        for place, factor in enumerate(factors):
            if len(factor) < 2:
                continue
            mine = level[:, place]
            factors[place] = shrink_factors(
                clicks, expected * product / factor[mine], mine, len(factor), spread=spreads[place]
            )
            product *= factors[place][mine] / factor[mine]
    return tuple(factors)


def multiply_factors(factors: Sequence[F64], level: I64) -> F64:
    """What the features of each page make of what is expected of a mean one."""
    product = np.ones(len(level))
    for place, factor in enumerate(factors):
        product *= factor[level[:, place]]
    return product


def _spread(ratio: F64, variance: F64) -> float:
    """The variance of true ratios behind those seen, whose own variances are known."""
    if len(ratio) < 2:
        return 0.0
    weight = 1.0 / (variance + 1e-12)
    total = float(weight.sum())
    mean = float(weight @ ratio) / total
    apart = float(weight @ (ratio - mean) ** 2) - (len(ratio) - 1)
    return max(apart / (total - float(weight @ weight) / total + 1e-12), 0.0)
