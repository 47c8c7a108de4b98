"""What is a new page worth that nobody has clicked yet? Told from fetched pages that were announced alike.

A page's expected clicks are those of a mean page times a factor for each of its features (group, hub, place in the
list, hubs that show it…), each shrunk as far as the data leaves it in doubt (`factors`). How interest goes
with age is one curve for all, of any shape, from clicks by age and the pages watched at that age: so pages that are
young, or were fetched late, do no harm. Memory is bounded: the last `keep` fetched pages are learnt from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.factors import fit_factors, multiply_factors

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

HOUR_S, DAY_S = 3600.0, 86400.0
FEWEST = 20  # pages before anything is learnt
LEAST_WATCHED = 0.02  # of its clicks have to have been watched for a page to count
LEAST_LEFT = 1e-4


class PageWorth:
    """Learns from fetched pages; `worth` and `left` say what is to be expected of others.

    `sizes` are the numbers of levels of the features. No page counts for more than `cap` times what a mean page would
    have had: one page that everybody read would lift all that is like it.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        spreads: Sequence[float] | None = None,
        half_life_s: float = 17 * HOUR_S,
        cap: float = 10.0,
        keep: int = 20_000,
        horizon_s: float = 14 * DAY_S,
        prior_pages: float = 20.0,
    ) -> None:
        self.spreads = spreads
        self.cap, self.keep, self.prior_pages = cap, keep, prior_pages
        self.edges_s = np.concatenate([[0.0], np.geomspace(1200.0, horizon_s, 24)])
        self.factors = tuple(np.ones(size) for size in sizes)
        self.mean = 1.0
        self.decay_per_s = np.log(2.0) / half_life_s
        self._clicks_by_age = np.zeros(len(self.edges_s) - 1)
        self._watched_by_age = np.zeros(len(self.edges_s) - 1)  # page-seconds, in mean pages
        self._told_s = -np.inf
        self._count = 0  # fetched in all; page n is row n % keep
        self._level = np.zeros((keep, len(sizes)), np.int64)
        self._age_s, self._at_s, self._had = np.zeros(keep), np.zeros(keep), np.zeros(keep)
        self._grown = 1.0 - np.exp(-self.decay_per_s * self.edges_s)  # of a page's clicks, by age
        self._grown /= self._grown[-1]

    @property
    def fetched(self) -> int:
        """Pages that were told of."""
        return self._count

    def watch(self, levels: Sequence[int] | I64, age_s: float, at_s: float) -> int:
        """A page is fetched now at about that age; the number by which its clicks are told."""
        row = self._count % self.keep
        self._level[row] = levels
        self._age_s[row], self._at_s[row], self._had[row] = age_s, at_s, 0.0
        self._count += 1
        return self._count - 1

    def hear(self, number: I64, at_s: F64, clicks: F64) -> None:
        """Clicks of fetched pages at a time (the middle of a bin); of pages long ago they are passed over."""
        known = number >= self._count - self.keep
        row, at, made = number[known] % self.keep, at_s[known], clicks[known]
        np.add.at(self._had, row, made)
        age = at - self._at_s[row] + self._age_s[row]
        young = age < self.edges_s[-1]
        place = np.maximum(np.searchsorted(self.edges_s, age[young]) - 1, 0)
        self._clicks_by_age += np.bincount(place, made[young], len(self._clicks_by_age))

    def fit(self, told_until_s: float) -> None:
        """Learn from all that was told until then."""
        rows = min(self._count, self.keep)
        if rows < FEWEST or not self._clicks_by_age.sum() > 0:
            return
        level, age, had = self._level[:rows], self._age_s[:rows], self._had[:rows]
        watched_s = np.maximum(told_until_s - self._at_s[:rows], 0.0)
        before_s = np.clip(self._told_s - self._at_s[:rows], 0.0, watched_s)
        self._told_s = told_until_s
        weight = multiply_factors(self.factors, level)
        self._watched_by_age += _expose(self.edges_s, weight, age + before_s, watched_s - before_s)
        self._fit_growth()
        share = self._grown_at(age + watched_s) - self._grown_at(age)
        counts = share > LEAST_WATCHED
        if np.count_nonzero(counts) < FEWEST or not had[counts].sum() > 0:
            return
        level, had, share = level[counts], had[counts], share[counts]
        had = np.minimum(had, self.cap * had.sum() / share.sum() * share)
        self.mean = float(had.sum() / share.sum())
        self.factors = fit_factors(
            level, [len(factor) for factor in self.factors], had, self.mean * share, self.spreads
        )

    def worth(self, levels: I64) -> F64:
        """By row of levels, the clicks to expect of a page over its life."""
        return np.asarray(self.mean * multiply_factors(self.factors, np.atleast_2d(levels)))

    def left(self, age_s: npt.ArrayLike) -> F64:
        """The share of a page's clicks that is still to come at an age."""
        return np.asarray(np.maximum(1.0 - self._grown_at(np.asarray(age_s, np.float64)), LEAST_LEFT))

    def _grown_at(self, age_s: F64) -> F64:
        return np.asarray(np.interp(age_s, self.edges_s, self._grown))

    def _fit_growth(self) -> None:
        """Clicks a second by age, each bin with some pages' worth of an exponential curve before it."""
        exposed = self._watched_by_age
        width, middle = np.diff(self.edges_s), 0.5 * (self.edges_s[1:] + self.edges_s[:-1])
        usual = self.decay_per_s * np.exp(-self.decay_per_s * middle)
        usual *= self._clicks_by_age.sum() / max(float(exposed @ usual), 1e-300)
        prior = self.prior_pages * width
        mass = (self._clicks_by_age + prior * usual) / (exposed + prior) * width
        self._grown = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
        self.decay_per_s = 1.0 / max(float(mass @ middle / mass.sum()), 600.0)


def halve_places(place: I64, classes: int) -> I64:
    """Places in a list as classes: 0, 1, 2–3, 4–7…

    >>> halve_places(np.array([0, 1, 2, 3, 4, 1000]), 8).tolist()
    [0, 1, 2, 2, 3, 7]
    """
    return np.asarray(np.minimum(np.frexp(place.astype(np.float64))[1], classes - 1), dtype=np.int64)


@numba.njit(cache=True, nogil=True)
def _expose(edges: F64, weight: F64, age_s: F64, watched_s: F64) -> F64:
    """By bin of age, the page-seconds for which pages were watched at that age."""
    exposed = np.zeros(len(edges) - 1)
    for page in range(len(weight)):
        begin, end = age_s[page], age_s[page] + watched_s[page]
        for k in range(len(exposed)):
            if edges[k] >= end:
                break
            low, high = max(begin, edges[k]), min(end, edges[k + 1])
            if high > low:
                exposed[k] += weight[page] * (high - low)
    return exposed
