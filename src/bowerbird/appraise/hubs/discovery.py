"""How often does a hub announce a page that nothing else has announced? Learnt from its last visits, online.

The rate of a hub is a rate of its own times a weekly pattern that all hubs share. Its own is Gamma–Poisson: what its
last visits found in the time they cover, shrunk to its group and to all hubs (`shrinkage`). The pattern has a factor
for each hour of the week: the hour of the day's times the day's times its own, all shrunk to 1. Hours are
hours of `at_s`, so of UTC in a crawl.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from bowerbird.appraise.hubs.discovery_kernels import elapsed, enter_visits, mean_elapsed, sum_visits
from bowerbird.appraise.hubs.shrinkage import LEAST_SHAPE, Levels, fit_levels, spread_of
from bowerbird.model.hub_study import HOURS

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

DAY_S = 86400.0


class RateBook:
    """Rates of first discoveries by hub. Per hub `visits` places in a ring of 16 bytes, 50 bytes besides, and
    nothing that grows.

    Visits closer together than `slot_s` share a place, so that a hub visited each minute still has a memory of
    `visits`·`slot_s`; 0 keeps the last visits as they are, as [ECHO13] does. No rate is below `floor_share` of the
    rate expected of its group, so that no hub starves. Hours of the week are remembered for about `memory_s`.
    """

    def __init__(
        self,
        hub_count: int,
        group: npt.ArrayLike | None = None,
        *,
        visits: int = 7,
        slot_s: float = 0.0,
        prior_rate_per_s: float = 1.0 / DAY_S,
        floor_share: float = 0.02,
        memory_s: float = 56 * DAY_S,
        weekly: bool = True,
        least_shape: float = LEAST_SHAPE,
    ) -> None:
        if not 1 <= visits <= 255:
            raise ValueError(f"visits is {visits}: a hub can keep between 1 and 255 visits.")
        self.visits, self.slot_s, self.prior_rate_per_s = visits, slot_s, prior_rate_per_s
        self.floor_share, self.memory_s, self.weekly = floor_share, memory_s, weekly
        self.least_shape = least_shape
        self._group = np.zeros(0, np.int64)
        self._at, self._gap = np.zeros((0, visits)), np.zeros((0, visits), np.float32)
        self._found = np.zeros((0, visits), np.float32)
        self._used, self._place = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        self._long_found, self._long_s = np.zeros(0), np.zeros(0)
        self._said_found, self._said_s = np.zeros(0), np.zeros(0)
        self._by_hour, self._expected_by_hour = np.zeros(HOURS), np.zeros(HOURS)
        self._first_s = self._faded_s = math.nan
        self._set_pattern(np.ones(HOURS))
        self._since_fit, self._levels = 0, Levels(prior_rate_per_s, np.zeros(0), np.zeros(0), 1.0, 1.0)
        self.add_hubs(np.zeros(hub_count, np.int64) if group is None else group)

    def __len__(self) -> int:
        return len(self._group)

    def add_hubs(self, group: npt.ArrayLike) -> None:
        """More hubs, at the end, by their groups' numbers."""
        more = np.asarray(group, np.int64)
        wide = ((0, len(more)), (0, 0))
        self._group = np.concatenate([self._group, more])
        self._at, self._gap, self._found = np.pad(self._at, wide), np.pad(self._gap, wide), np.pad(self._found, wide)
        self._used, self._place = np.pad(self._used, (0, len(more))), np.pad(self._place, (0, len(more)))
        self._long_found, self._long_s = np.pad(self._long_found, (0, len(more))), np.pad(self._long_s, (0, len(more)))
        self._said_found, self._said_s = np.pad(self._said_found, (0, len(more))), np.pad(self._said_s, (0, len(more)))
        self.fit()

    def visit(self, hub: npt.ArrayLike, at_s: npt.ArrayLike, gap_s: npt.ArrayLike, found: npt.ArrayLike) -> None:
        """Visits at `at_s`, each `gap_s` after the one before, that found so many first discoveries; oldest first."""
        columns = np.broadcast_arrays(*(np.atleast_1d(value) for value in (hub, at_s, gap_s, found)))
        hubs = np.ascontiguousarray(columns[0], np.int64)
        at, gap, new = (np.ascontiguousarray(column, np.float64) for column in columns[1:])
        if not len(hubs):
            return
        if hubs.min() < 0 or hubs.max() >= len(self):
            raise ValueError(f"Hub {int(hubs.max())} is unknown: this book has {len(self)} hubs.")
        self._fade(float(at.max()))
        enter_visits(
            hubs, at, gap, new, self._at, self._gap, self._found, self._used, self._place, self.slot_s,
            self._long_found, self._long_s, self.memory_s, self._levels.by_hub, self._levels.hub_shape, self._pattern,
            self._sums, self._by_hour, self._expected_by_hour,
        )  # fmt: skip
        self._since_fit += len(hubs)
        if self._since_fit >= max(min(int(self._used.sum()) // 4, len(self)), 1):
            self.fit()

    def expect(self, hub: npt.ArrayLike, gap_s: npt.ArrayLike, found: npt.ArrayLike) -> None:
        """What visits found in all that are entered after this, so that their hours are not measured by a guess."""
        columns = np.broadcast_arrays(*(np.atleast_1d(value) for value in (hub, gap_s, found)))
        hubs = np.asarray(columns[0], np.int64)
        self._long_s, self._long_found = (
            np.bincount(hubs, np.asarray(column, np.float64), len(self)).astype(np.float64) for column in columns[1:]
        )
        self._levels = fit_levels(
            self._long_found, self._long_s, self._group, prior_rate=self.prior_rate_per_s, least_shape=self.least_shape
        )

    def hint(self, hub: npt.ArrayLike, gap_s: npt.ArrayLike, found: npt.ArrayLike) -> None:
        """What hubs say of themselves, as if a visit `gap_s` after the one before had found so many.

        It counts for the hub itself only, until its ring is full: other hubs and the pattern learn nothing from it.
        """
        self._said_s[np.asarray(hub, np.int64)] = gap_s
        self._said_found[np.asarray(hub, np.int64)] = found

    def fit(self) -> Levels:
        """Learn pattern, rates of groups and kappas anew. It happens by itself as visits come in."""
        if self.weekly:
            self._set_pattern(weekly_pattern(self._by_hour, self._expected_by_hour))
        events, exposure = self.sums()
        self._levels = fit_levels(
            events, exposure, self._group, prior_rate=self.prior_rate_per_s, least_shape=self.least_shape
        )
        self._since_fit = 0
        return self._levels

    def sums(self) -> tuple[F64, F64]:
        """By hub what its last visits found, and the seconds they cover, weighed by the pattern."""
        events, exposure = np.empty(len(self)), np.empty(len(self))
        sum_visits(self._at, self._gap, self._found, self._used, self._pattern, self._sums, events, exposure)
        return events, exposure

    @property
    def pattern(self) -> F64:
        """Factors by hour of the week, of mean 1."""
        return self._pattern.copy()

    @property
    def levels(self) -> Levels:
        """What is expected of groups and of hubs without visits."""
        return self._levels

    def factor(self, now_s: float, ahead_s: float = 0.0) -> float:
        """The pattern at a time, or its mean from there on."""
        if ahead_s <= 0.0:
            return float(self._pattern[int(now_s // 3600.0) % HOURS])
        until = elapsed(now_s + ahead_s, self._pattern, self._sums)
        return float(until - elapsed(now_s, self._pattern, self._sums)) / ahead_s

    def rates(self, now_s: float | None = None, ahead_s: float = 0.0) -> F64:
        """[BEYOND] lam by hub per second, Gamma–Poisson: now, or as a mean over what is ahead.

        Without `now_s` it is the mean over all hours of the week.
        """
        mean, _ = self._posterior()
        return self._floored(mean) * (1.0 if now_s is None else self.factor(now_s, ahead_s))

    def rate_of(self, hub: int) -> float:
        """The mean rate of one hub, as `rates` has it."""
        events, exposure, one = np.empty(1), np.empty(1), slice(hub, hub + 1)
        rings = (self._at[one], self._gap[one], self._found[one], self._used[one])
        sum_visits(*rings, self._pattern, self._sums, events, exposure)
        usual, shape = float(self._levels.by_hub[hub]), self._levels.hub_shape
        said = float(self._used[hub] < self.visits)
        had, seen = events[0] + said * self._said_found[hub], exposure[0] + said * self._said_s[hub]
        return float(max((shape + had) / (shape / usual + seen), self.floor_share * usual))

    def sample(self, chance: npt.ArrayLike) -> F64:
        """[BEYOND] Thompson draws of lam from its posterior, so that hubs of which little is known get tried.

        `chance` by hub, evenly from 0 to 1, says which: with the same one a draw stays as it is until a visit teaches
        more. Drawn anew again and again, a hub would come round at the largest of many draws.
        """
        mean, shape = self._posterior()
        return self._floored(gammaincinv(shape, np.asarray(chance, np.float64)) * mean / shape)

    def _posterior(self) -> tuple[F64, F64]:
        events, exposure = self.sums()
        said = self._used < self.visits
        return self._levels.posterior(events + said * self._said_found, exposure + said * self._said_s)

    def _floored(self, rate: F64) -> F64:
        return np.maximum(rate, self.floor_share * self._levels.by_hub)

    def _set_pattern(self, pattern: F64) -> None:
        self._pattern, self._sums = pattern, np.concatenate([[0.0], np.cumsum(pattern)])

    def _fade(self, now_s: float) -> None:
        """Old hours fade; in a young book faster, for what it made of long gaps was a guess."""
        if math.isnan(self._faded_s):
            self._first_s = self._faded_s = now_s
        elif now_s > self._faded_s:
            memory_s = min(self.memory_s, max(now_s - self._first_s, DAY_S))
            left = math.exp(-(now_s - self._faded_s) / memory_s)
            self._by_hour *= left
            self._expected_by_hour *= left
            self._faded_s = now_s


def mean_pattern(pattern: npt.ArrayLike, since_s: F64, until_s: float) -> F64:
    """The mean of a weekly pattern between times; where no time has passed, the pattern then.

    >>> mean_pattern(np.arange(168), np.array([0.0, 3600.0]), 7200.0).tolist()
    [0.5, 1.0]
    """
    factors, since = np.asarray(pattern, np.float64), np.ascontiguousarray(since_s, np.float64)
    out = np.empty(len(since))
    mean_elapsed(since, until_s, factors, np.concatenate([[0.0], np.cumsum(factors)]), out)
    return out


def weekly_pattern(found: F64, expected: F64) -> F64:
    """Factors by hour of the week, of mean 1: the hour of the day's times the day's times the hour's own.

    Each is found/expected, shrunk to 1 as far as such hours or days do not differ.
    """
    total, hoped = float(found.sum()), float(expected.sum())
    if not (total > 0.0 and hoped > 0.0):
        return np.ones(HOURS)
    expected = expected * (total / hoped)
    week = found.reshape(7, 24)
    hour = _factors(week.sum(axis=0), expected.reshape(7, 24).sum(axis=0), 0.05)
    usual = expected.reshape(7, 24) * hour
    day = _factors(week.sum(axis=1), usual.sum(axis=1), 0.05)
    usual = (usual * day[:, None]).reshape(-1)
    # neighbouring hours are alike: each has half of its own and a quarter of each neighbour's
    smooth, hoped_smooth = (0.5 * a + 0.25 * (np.roll(a, 1) + np.roll(a, -1)) for a in (found, usual))
    own = _factors(smooth, hoped_smooth, 0.01, noise=0.375)
    pattern = (hour * day[:, None]).reshape(-1) * own
    return np.asarray(pattern / pattern.mean())


def _factors(found: F64, expected: F64, guess: float, noise: float = 1.0) -> F64:
    shape = noise / spread_of(found, expected, noise=noise, guess=guess)
    return (shape + found) / (shape + expected)
