"""What to expect of a page without history: the rates of its host, directory, depth and type, each shrunk to the last.

Pages have events (changes, or clicks gained) in an exposure (seconds watched, or changes seen). Levels are groupings
of the pages, from coarse to fine; they may be nested (host, directory) or cross (depth, type). Each level multiplies
the rate expected of a page by a factor of its group, drawn from a Gamma of mean 1 and shape kappa: with Y events where
E were expected, the factor is (kappa + Y)/(kappa + E). Kappa is the one under which the level's counts are likeliest:
a level whose groups do not differ gets a large one and drops out. Pages differ within groups too, by a kappa of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.prior_kernels import add_groups, add_up, mix_level, number_keys, scale_means
from bowerbird.model.url_paths import group_paths

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LEAST_SHAPE, MOST_SHAPE = 1e-2, 1e6
PATH_LEVELS = 6  # parts of a path that group pages; deeper ones differ in their whole directory only
_ROUNDS = 4
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_AT_ONCE = 20_000  # pages the shape is fitted to: more add nothing to one number


@dataclass(frozen=True, slots=True)
class Priors:
    """By page a Gamma of this mean and of `page_shape`: what its groups let expect. `shapes` are the levels'."""

    mean: FloatArray
    page_shape: float
    shapes: tuple[float, ...]

    def posterior(self, events: FloatArray, exposure: FloatArray) -> tuple[FloatArray, FloatArray]:
        """[BEYOND] Gamma–Poisson: mean (kappa + events)/(kappa/prior mean + exposure), and shape kappa + events."""
        shape = self.page_shape + events
        return shape * self.mean / (self.page_shape + self.mean * exposure), shape


@dataclass(frozen=True, slots=True)
class Cells:
    """Pages that are together on every level are one cell: its number by page, and its groups, by level."""

    cell: IntArray
    levels: tuple[IntArray, ...]


def find_cells(levels: Sequence[IntArray], count: int) -> Cells:
    """The cells of so many pages: all are one without any level."""
    keys = np.zeros(count, np.uint64)
    for level in levels:
        mix_level(np.ascontiguousarray(level, np.int64), keys)
    cell, first = np.empty(count, np.int64), np.empty(count, np.int64)
    first = first[: number_keys(keys, cell, first)]
    return Cells(cell, tuple(np.asarray(level, np.int64)[first] for level in levels))


def fit_priors(levels: Sequence[IntArray] | Cells, events: FloatArray, exposure: FloatArray) -> Priors:
    """[BEYOND] Gamma–Poisson priors from host and URL pattern, by empirical Bayes, for pages with and without exposure.

    A page with many events is still one draw of its own factor, however exactly it is known: in sums over groups it
    counts 1/(1 + expected/kappa) of itself, so that it does not pass for its group.
    """
    exposure = np.ascontiguousarray(exposure, np.float64)
    events = np.ascontiguousarray(events, np.float64)
    cells = levels if isinstance(levels, Cells) else find_cells(levels, len(exposure))
    total = float(exposure.sum())
    if total <= 0:
        return Priors(np.zeros(len(exposure)), 1.0, (MOST_SHAPE,) * len(cells.levels))
    # half an event too many keeps the mean above 0 while nothing has happened yet
    mean = np.full(int(cells.cell.max()) + 1, max(float(events.sum()), 0.5) / total)
    seen = np.flatnonzero(exposure > 0)
    seen = seen[:: -(-len(seen) // _AT_ONCE)]
    page_shape, shapes = MOST_SHAPE, [MOST_SHAPE] * len(cells.levels)
    sizes = [int(level.max(initial=-1)) + 1 for level in cells.levels]
    for _ in range(_ROUNDS):
        part, watched = np.zeros(len(mean)), np.zeros(len(mean))
        add_up(cells.cell, events, exposure, mean, page_shape, part, watched)
        mean = np.full(len(mean), max(float(part.sum()), 0.5) / float(watched.sum()))
        for k, level in enumerate(cells.levels):
            found, hoped = np.zeros(sizes[k]), np.zeros(sizes[k])
            add_groups(level, part, watched, mean, found, hoped)
            seen_groups = hoped > 0
            shapes[k] = fit_shape(found[seen_groups], hoped[seen_groups])
            scale_means(level, group_factor(found, hoped, shapes[k]), mean)
        before = page_shape
        page_shape = fit_shape(events[seen], mean[cells.cell[seen]] * exposure[seen])
        if abs(math.log(page_shape / before)) < 0.01:
            break
    return Priors(mean[cells.cell], page_shape, tuple(shapes))


def group_factor(events: FloatArray, expected: FloatArray, shape: float) -> FloatArray:
    """[BEYOND] (kappa + Y)/(kappa + E): how many times what was expected of a group, shrunk to 1."""
    return np.asarray((shape + events) / (shape + expected))


def marginal_likelihood(events: FloatArray, expected: FloatArray, shape: float) -> float:
    """[BEYOND] The log-likelihood of counts that are Poisson around Gamma factors of mean 1, but for what lacks kappa.

    Negative binomial: sum of lgamma(kappa + Y) - lgamma(kappa) + kappa·log(kappa) - (kappa + Y)·log(kappa + E).
    """
    from scipy.special import gammaln

    terms = gammaln(shape + events) - gammaln(shape) - events * np.log(shape + expected)
    return float(terms.sum() - (shape * np.log1p(expected / shape)).sum())


def fit_shape(events: FloatArray, expected: FloatArray) -> float:
    """[BEYOND] The kappa under which the counts are likeliest, by golden sections on log(kappa), within bounds."""
    if len(events) > _AT_ONCE:
        stride = -(-len(events) // _AT_ONCE)
        events, expected = events[::stride], expected[::stride]
    if not len(events):
        return MOST_SHAPE
    low, high = math.log(LEAST_SHAPE), math.log(MOST_SHAPE)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left = marginal_likelihood(events, expected, math.exp(left))
    at_right = marginal_likelihood(events, expected, math.exp(right))
    while high - low > 0.01:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = marginal_likelihood(events, expected, math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = marginal_likelihood(events, expected, math.exp(right))
    return math.exp(0.5 * (low + high))


def page_levels(
    urls: Sequence[str], hosts: IntArray, *, page_types: IntArray | None = None, path_levels: int = PATH_LEVELS
) -> tuple[IntArray, ...]:
    """The groupings of pages for `fit_priors`: host, the first parts of the path, whole directory, depth, type."""
    *heads, directory = group_paths(urls, path_levels)
    depth = np.array(
        [url.partition("://")[2].rstrip("/").count("/") if "://" in url else url.count("/") for url in urls]
    )
    levels = [np.asarray(hosts, np.int64), *heads, directory, depth.astype(np.int64)]
    return (*levels, np.asarray(page_types, np.int64)) if page_types is not None else tuple(levels)
