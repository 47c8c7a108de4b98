"""From many noisy hubs to sensible ones: each is drawn to its group, each group to all, as far as they differ.

A hub has events (discoveries, clicks) in an exposure (seconds watched, pages seen). Its rate is its group's times a
factor of mean 1 and variance 1/kappa (Gamma), the group's rate is the rate of all times such a factor. How much hubs
differ is told from how much more their counts vary than chance would make them (moments). All is closed form but for
a few rounds, and one hub with much exposure cannot outvote the others: beyond its kappa more events add nothing to
what it says of its group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LEAST_SHAPE, MOST_SHAPE = 0.05, 1e4
_ROUNDS = 6
_LIKE_ONE_HUB = 30.0  # events of the hub that stands for the spread expected before any is seen
_OWN_WEIGHT = 0.05  # of the rate expected before anything is seen, in hubs


@dataclass(frozen=True, slots=True)
class Levels:
    """What to expect: the rate of all, by group, by hub (its group's), and how alike hubs and groups are (kappa)."""

    overall: float
    by_group: F64
    by_hub: F64
    hub_shape: float
    group_shape: float

    def posterior(self, events: F64, exposure: F64, noise: float = 1.0) -> tuple[F64, F64]:
        """[BEYOND] Gamma–Poisson: mean (kappa + Y)/(kappa/prior mean + E), shape kappa + Y; Y and E by the noise."""
        shape = self.hub_shape + events / noise
        return shape / (self.hub_shape / self.by_hub + exposure / noise), shape


def spread_of(events: F64, expected: F64, *, noise: float = 1.0, guess: float = 1.0) -> float:
    """The variance of factors: E[(Y - E)²] = noise·E + v·E², solved for v with the weights that suit v.

    As if one hub had been seen that differs by `guess`, so that few hubs do not claim to be all alike.
    """
    off = (events - expected) ** 2 - noise * expected
    return _settle_spread(off, expected * expected, expected, noise, guess)


def split_spread_of(events: F64, expected: F64, *, noise: float, guess: float = 1.0) -> float:
    """The same from two halves (2 by hub) that share nothing but the hub: E[(Ya - Ea)(Yb - Eb)] = v·Ea·Eb.

    Whatever makes single pages differ cancels out.
    """
    off = np.prod(events - expected, axis=0)
    return _settle_spread(off, np.prod(expected, axis=0), expected.sum(axis=0), noise, guess)


def noise_of(events: F64, expected: F64) -> float:
    """Variance over mean of events within hubs, from their halves: D = Ya·Eb - Yb·Ea has no part of the hub's own.

    1 for counts by chance; more where events come in clumps, as clicks of one page do. Two halves (2 by hub).
    """
    product = np.prod(expected, axis=0)
    known = product > 0
    # a hub of factor f has D² = noise·f·Ea·Eb·(Ea + Eb), and f·(Ea + Eb) is what it had
    apart = (events[0] * expected[1] - events[1] * expected[0])[known] ** 2 / product[known]
    had, hoped = events[:, known].sum(axis=0), expected[:, known].sum(axis=0)
    noise = 1.0
    for _ in range(_ROUNDS):  # hubs of which a clump more or less is all there is say little
        weight = hoped / (hoped + noise)
        noise = max(float((weight @ apart + 10.0) / (weight @ had + 10.0)), 1.0)
    return noise


def _settle_spread(off: F64, scale: F64, expected: F64, noise: float, guess: float) -> float:
    found = guess
    for _ in range(_ROUNDS):
        weight = 1.0 / (noise + expected * found) ** 2
        own = (_LIKE_ONE_HUB / (noise + _LIKE_ONE_HUB * found)) ** 2
        found = max((float(off @ weight) + own * guess) / (float(scale @ weight) + own), 1.0 / MOST_SHAPE)
    return min(found, 1.0 / LEAST_SHAPE)


def fit_levels(
    events: F64,
    exposure: F64,
    group: I64,
    *,
    prior_rate: float,
    noise: float = 1.0,
    least_shape: float = LEAST_SHAPE,
) -> Levels:
    """Rates of all and of groups, and kappas, from events and exposure by hub, or of two halves (2 by hub).

    A larger `least_shape` gives hubs of which little is known the benefit of the doubt.
    """
    halves = events.ndim == 2
    total = events.sum(axis=0) if halves else events
    seen = exposure.sum(axis=0) if halves else exposure
    groups = int(group.max(initial=-1)) + 1
    ratio = np.divide(total, seen, out=np.zeros(len(total)), where=seen > 0)
    overall = float((prior_rate * 1e-3 + ratio @ (seen > 0)) / (1e-3 + np.count_nonzero(seen > 0)))
    pooled = float(total.sum() / seen.sum()) if seen.sum() > 0 else prior_rate
    overall = max(min(overall, 10.0 * pooled), 1e-3 * prior_rate, 1e-300)
    by_group = np.full(groups, overall)
    hub_shape = group_shape = 1.0
    for _ in range(_ROUNDS):
        prior = by_group[group]
        if halves:
            spread = split_spread_of(events, exposure * prior, noise=noise)
        else:
            spread = spread_of(total, seen * prior, noise=noise)
        hub_shape = max(1.0 / spread, least_shape)
        # what a hub says of its group: its ratio, known to spread + noise/expected
        weight = seen * prior / (noise + seen * prior * spread)
        known = np.bincount(group, weight, groups).astype(np.float64)
        said = np.bincount(group, weight * ratio, groups)
        group_spread = spread_of(said / overall, known, guess=0.3)
        group_shape = 1.0 / group_spread
        by_group = (group_shape * overall + said) / (group_shape + known)
        vote = known / (1.0 + known * group_spread)
        mean = np.divide(said, known, out=np.zeros(groups), where=known > 0)
        own = _OWN_WEIGHT * hub_shape
        overall = max(float((own * prior_rate + vote @ mean) / (own + vote.sum())), 1e-300)
        by_group = np.maximum(by_group, 1e-6 * overall)
    return Levels(overall, by_group, by_group[group], hub_shape, group_shape)
