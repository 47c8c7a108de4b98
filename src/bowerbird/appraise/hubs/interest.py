"""How many clicks do a hub's new pages get, and how fast does interest in them fade?

A page gets P·mu·exp(-mu·age) clicks per second. [ECHO13] fits P·(1 - exp(-mu·t)) to the mean cumulative clicks of a
hub's pages by least squares (`fit_interest`). `InterestBook` learns the same online: by age it sums clicks and the
pages that were watched at that age, so that pages too young to have all their clicks, fetched late or reported late
count for just what was seen of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.interest_fit import (
    Interest,
    Interests,
    expected_profit,
    fit_interest,
    fit_interests,
    fit_profit,
)
from bowerbird.appraise.hubs.interest_kernels import decay_scores, enter_clicks, seen_shares
from bowerbird.appraise.hubs.shrinkage import Levels, fit_levels, noise_of, spread_of

__all__ = [
    "HubInterest",
    "Interest",
    "InterestBook",
    "Interests",
    "age_bins",
    "expected_profit",
    "fit_interest",
    "fit_interests",
    "fit_profit",
]

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

DAY_S = 86400.0
BIN_S = 1200.0
MOST_BINS = 64
FASTEST_PER_S, SLOWEST_PER_S = 1.0 / 60.0, 1.0 / (1000 * DAY_S)
_GROUP_SPREAD = 0.25  # of log(mu), expected before any is seen
_HUB_SPREAD = 0.1
_OVERALL_SPREAD = 4.0  # of log(mu) of all hubs about the one given
_ROUNDS = 8
_LONGEST_STEP = 1.0


def age_bins(last_s: float = 14 * DAY_S, *, bin_s: float = BIN_S, growth: float = 0.15) -> F64:
    """Edges of bins of age: of `bin_s` at first, then wider with age by `growth`, all at multiples of `bin_s`."""
    edges = [0]
    while edges[-1] * bin_s < last_s:
        edges.append(edges[-1] + max(1, round(edges[-1] * growth)))
    if len(edges) - 1 > MOST_BINS:
        raise ValueError(f"{len(edges) - 1} bins of age: at most {MOST_BINS}; make growth larger than {growth}.")
    return np.array(edges) * bin_s


@dataclass(frozen=True, slots=True)
class HubInterest:
    """By hub: clicks of a page over its life, decay, and the shape of the Gamma that says how well P is known."""

    profit: F64
    decay_per_s: F64
    shape: F64
    levels: Levels  # of profit
    decay_by_group: F64
    overall_decay_per_s: float
    noise: float  # variance over mean of clicks within hubs

    def sample(self, rng: np.random.Generator) -> F64:
        """[BEYOND] Thompson draws of P from its posterior, so that hubs of which little is known get tried."""
        return rng.gamma(self.shape, self.profit / self.shape)


class InterestBook:
    """Clicks and exposure by hub and age, in two halves of its pages: 16 bytes for each hub and bin, and nothing more.

    The halves tell how much hubs differ from how much pages do.
    """

    def __init__(
        self,
        hub_count: int,
        group: npt.ArrayLike | None = None,
        *,
        edges_s: F64 | None = None,
        prior_profit: float = 1.0,
        prior_decay_per_s: float = 1.0 / DAY_S,
    ) -> None:
        self.edges_s = age_bins() if edges_s is None else np.ascontiguousarray(edges_s, np.float64)
        bins = len(self.edges_s) - 1
        if not 1 <= bins <= MOST_BINS:
            raise ValueError(f"{bins} bins of age: there must be between 1 and {MOST_BINS}.")
        self.prior_profit, self.prior_decay_per_s = prior_profit, prior_decay_per_s
        self._group = np.zeros(0, np.int64)
        self._clicks, self._exposed = np.zeros((0, 2, bins), np.float32), np.zeros((0, 2, bins), np.float32)
        self.add_hubs(np.zeros(hub_count, np.int64) if group is None else group)

    def __len__(self) -> int:
        return len(self._group)

    def add_hubs(self, group: npt.ArrayLike) -> None:
        """More hubs, at the end, by their groups' numbers."""
        more = np.asarray(group, np.int64)
        self._group = np.concatenate([self._group, more])
        wide = ((0, len(more)), (0, 0), (0, 0))
        self._clicks, self._exposed = np.pad(self._clicks, wide), np.pad(self._exposed, wide)

    def add(
        self,
        hub: npt.ArrayLike,
        from_s: npt.ArrayLike,
        to_s: npt.ArrayLike,
        clicks: npt.ArrayLike,
        *,
        page: npt.ArrayLike | None = None,
        pages: npt.ArrayLike = 1.0,
    ) -> None:
        """Pages of these hubs were watched from one age to another and got so many clicks: none counts too.

        `page` numbers keep a page's reports in one half: without them rows are dealt out, and pages that differ look
        like hubs that differ. `pages` are how many a row sums. Reports should not be longer than bins by much: within
        one, clicks are taken to fade as is expected before any is seen.
        """
        columns = np.broadcast_arrays(*(np.atleast_1d(value) for value in (hub, from_s, to_s, clicks, pages)))
        hubs = np.ascontiguousarray(columns[0], np.int64)
        begin, end, got, many = (np.ascontiguousarray(column, np.float64) for column in columns[1:])
        if not len(hubs):
            return
        if hubs.min() < 0 or hubs.max() >= len(self):
            raise ValueError(f"Hub {int(hubs.max())} is unknown: this book has {len(self)} hubs.")
        number = np.arange(len(hubs)) if page is None else np.broadcast_to(np.asarray(page, np.int64), hubs.shape)
        # numbers of a hub's pages may be all even: mix them first
        half = ((number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(63)).astype(np.int64)
        enter_clicks(
            hubs, half, begin, end, got, many, self.edges_s, self.prior_decay_per_s, self._clicks, self._exposed
        )

    def curve(self, hubs: npt.ArrayLike | None = None) -> tuple[F64, F64, F64]:
        """Ages, mean cumulative clicks of a page by then, and the pages watched, of some hubs together or of all.

        Sums over bins of clicks per page watched there, up to the oldest age that was watched. At an age that nobody
        watched, as before the first fetches, clicks are taken to come as fast as at the next that was.
        """
        which = slice(None) if hubs is None else np.asarray(hubs, np.int64)
        clicks = self._clicks[which].sum(axis=(0, 1), dtype=np.float64)
        exposed = self._exposed[which].sum(axis=(0, 1), dtype=np.float64)
        watched = np.flatnonzero(exposed > 0)
        known = int(watched[-1]) + 1 if len(watched) else 0
        width = np.diff(self.edges_s)
        source = watched[np.searchsorted(watched, np.arange(known))]
        gained = clicks[source] / (exposed[source] * width[source]) * width[:known]
        return self.edges_s[1 : known + 1], np.cumsum(gained), exposed[:known]

    def fit(self) -> HubInterest:
        """[BEYOND] P and mu by hub from clicks and exposure by age, shrunk to the curve of its group, and that to all.

        mu: likeliest given when clicks came, log(mu) normal about its group's. P: (kappa + clicks)/(kappa/P_group +
        sum over pages of the share of their clicks that could be seen), both by the noise of clicks.
        """
        start = math.log(self.prior_decay_per_s)
        seen = self._seen(np.full(len(self), self.prior_decay_per_s))
        by_half = np.ascontiguousarray(self._clicks.sum(axis=2, dtype=np.float64).T)
        overall, noise = start, 1.0
        log_group = np.full(int(self._group.max(initial=-1)) + 1, overall)
        hub_spread = _HUB_SPREAD
        for _ in range(_ROUNDS):
            noise = self._noise(by_half, seen)
            score, sharp = self._scores(log_group[self._group])
            hub_spread = spread_of(sharp + score, sharp, noise=noise, guess=_HUB_SPREAD)
            # what a hub says of its group, as far as hubs of a group are alike
            force = np.bincount(self._group, score / (noise + sharp * hub_spread), len(log_group))
            known = np.bincount(self._group, sharp / (noise + sharp * hub_spread), len(log_group)).astype(np.float64)
            own = force + known * (log_group - overall)
            group_spread = spread_of(known + own, known, guess=_GROUP_SPREAD)
            overall += float(
                (np.sum(own / (1.0 + known * group_spread)) + (start - overall) / _OVERALL_SPREAD)
                / (np.sum(known / (1.0 + known * group_spread)) + 1.0 / _OVERALL_SPREAD)
            )
            step = (force - (log_group - overall) / group_spread) / (known + 1.0 / group_spread)
            log_group = _within(log_group + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
            overall = float(_within(np.array(overall)))
            seen = self._seen(np.exp(log_group[self._group]))
        prior = log_group[self._group]
        log_decay = prior.copy()
        for _ in range(_ROUNDS):
            score, sharp = self._scores(log_decay)
            step = (score / noise - (log_decay - prior) / hub_spread) / (sharp / noise + 1.0 / hub_spread)
            log_decay = _within(log_decay + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        decay = np.exp(log_decay)
        seen = self._seen(decay)
        noise = self._noise(by_half, seen)
        levels = fit_levels(by_half, seen, self._group, prior_rate=self.prior_profit, noise=noise)
        profit, shape = levels.posterior(by_half.sum(axis=0), seen.sum(axis=0), noise)
        return HubInterest(profit, decay, shape, levels, np.exp(log_group), math.exp(overall), noise)

    def seen_pages(self, decay_per_s: npt.ArrayLike) -> F64:
        """By hub the sum over its pages of the share of their clicks that comes at the ages they were watched."""
        return np.asarray(self._seen(np.broadcast_to(np.asarray(decay_per_s, np.float64), len(self))).sum(axis=0))

    def _seen(self, decay: F64) -> F64:
        out = np.empty((2, len(self)))
        seen_shares(np.ascontiguousarray(decay), self._exposed, self.edges_s, out)
        return out

    def _scores(self, log_decay: F64) -> tuple[F64, F64]:
        score, sharp = np.empty(len(self)), np.empty(len(self))
        decay_scores(log_decay, self._clicks, self._exposed, self.edges_s, score, sharp)
        return score, sharp

    def _noise(self, by_half: F64, seen: F64) -> float:
        mean = float(by_half.sum() / seen.sum()) if seen.sum() > 0 else 1.0
        return noise_of(by_half, seen * mean)


def _within(log_decay: F64) -> F64:
    return np.clip(log_decay, math.log(SLOWEST_PER_S), math.log(FASTEST_PER_S))
