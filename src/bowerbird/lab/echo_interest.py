"""How interest in new pages goes: the mean curve and its fit (Figure 2 of [ECHO13]), and kinds of pages by k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.appraise.hubs.interest import Interest, fit_interest
from bowerbird.lab.echo_world import DAY_S, F64, HOUR_S, I64, EchoWorld

CLUSTERS = 6
DAYS = 14
#: a kind of pages is ephemeral if this share of its profit comes in its first days
EPHEMERAL_SHARE, EPHEMERAL_DAYS = 0.8, 3
MOST_PAGES = 20_000  # clustered; more are sampled


@dataclass(frozen=True, slots=True)
class InterestCurve:
    """Mean profit of a page by age."""

    age_s: F64
    profit: F64  # cumulative
    fit: Interest
    pages: int

    @property
    def explained(self) -> float:
        """R² of the fit."""
        spread = float(((self.profit - self.profit.mean()) ** 2).mean())
        return 1.0 - self.fit.error**2 / spread if spread > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Clusters:
    """Kinds of pages, the largest first: daily shares of profit (rows sum to 1), and how many pages are of each."""

    centres: F64
    share: F64
    pages: int

    @property
    def ephemeral(self) -> F64:
        """By kind, whether most of its profit comes soon."""
        return np.asarray(self.centres[:, :EPHEMERAL_DAYS].sum(axis=1) >= EPHEMERAL_SHARE)

    @property
    def ephemeral_share(self) -> float:
        """Of the pages."""
        return float(self.share[self.ephemeral].sum())


def watched_pages(world: EchoWorld) -> tuple[I64, int]:
    """New pages that can be watched for so many whole days: 14, or half of the data where that is less."""
    last_s = float(world.gain_to_s.max(initial=world.end_s))
    days = int(min(DAYS, max((last_s - world.begin_s) / DAY_S / 2, 1)))
    young = ~world.old & (world.appeared_s >= world.begin_s) & (world.appeared_s + days * DAY_S <= last_s)
    return np.flatnonzero(young & (world.total_profit > 0)), days


def interest_curve(world: EchoWorld) -> InterestCurve:
    """[ECHO13] Figure 2: mean cumulative profit of new pages by age, and P·(1 - exp(-mu·t)) through it."""
    pages, days = watched_pages(world)
    ages = np.concatenate([np.arange(1, 25), np.arange(30, 24 * days + 1, 6)]) * HOUR_S
    ages = ages[ages <= days * DAY_S]
    if not len(pages):
        return InterestCurve(ages, np.zeros(len(ages)), Interest(0.0, 0.0, 0.0), 0)
    born = world.appeared_s[pages]
    profit = np.array([world.profit_between(pages, born, born + age).mean() for age in ages.tolist()])
    return InterestCurve(ages, profit, fit_interest(ages, profit), len(pages))


def cluster_interest(world: EchoWorld, seed: int = 0) -> Clusters:
    """[ECHO13] k-means (6) of pages' daily profits over 14 days, each page's as shares of its own."""
    pages, days = watched_pages(world)
    rng = np.random.default_rng(seed)
    if len(pages) > MOST_PAGES:
        pages = np.sort(rng.choice(pages, MOST_PAGES, replace=False))
    born = world.appeared_s[pages]
    steps = [world.profit_between(pages, born + day * DAY_S, born + (day + 1) * DAY_S) for day in range(days)]
    daily = np.stack(steps, axis=1) if len(pages) else np.zeros((0, days))
    daily = daily[daily.sum(axis=1) > 0]
    if len(daily) < CLUSTERS:
        return Clusters(np.zeros((0, days)), np.zeros(0), len(daily))
    from sklearn.cluster import KMeans

    shares = daily / daily.sum(axis=1, keepdims=True)
    kinds = min(CLUSTERS, len(np.unique(shares.round(9), axis=0)))
    found = KMeans(kinds, n_init=5, random_state=seed).fit(shares)
    count = np.bincount(found.labels_, minlength=kinds)
    order = np.argsort(-count, kind="stable")
    return Clusters(found.cluster_centers_[order], count[order] / len(shares), len(shares))
