"""Has a page changed, given what its site says? Change signals with learnt recall and false rate.

A signal is a yes or no, known without fetching the page: does the sitemap's lastmod, a feed's date, the Last-Modified
or the ETag heard in passing say that the page changed after the last visit? The model, for each kind of signal on its
own:

- the page changes at rate Delta, so it has changed after age tau with probability 1 - exp(-Delta·tau);
- if it has changed, the signal says so with probability `recall`;
- whether or not, false signals come at `false_rate` phi, so one has come by tau with probability 1 - exp(-phi·tau);
- kinds are independent once it is known whether the page has changed.

So the signal is on with probability f = 1 - exp(-phi·tau) for an unchanged page and r = 1 - (1 - recall)·exp(-phi·tau)
for a changed one. A signal that is on multiplies the odds that the page has changed by r/f, one that is off by (1 -
r)/(1 - f) = 1 - recall, one that the site does not offer by 1. The effective age is the age at which a page without
signals has the same odds: bids take it in place of the age.

Recall and false rate are learnt by group (a kind of signal on a host, or everywhere) from visits, which show whether
the signal was on and whether the page had changed: a Beta and a Gamma, found by expectation and maximisation, since a
false signal may hide that the true one did not come, and several false ones look like one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SignalArray = npt.NDArray[np.int8]

OFF, ON, NOT_OFFERED = 0, 1, -1
DAY_S = 86400.0
MOST_EXPONENT = 50.0  # no odds beyond exp(50): a signal believed without doubt still gives a finite age
GROUP_WEIGHT = 5.0  # priors that one group weighs at most in what is believed of those without visits
GROUP_STRENGTH = 2.0  # priors that the mean of all groups weighs in what is believed of one
_ROUNDS = 60
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class SignalPrior:
    """What is believed of a kind of signal before any visit: Beta(hits, misses), Gamma(false_count, watched_s)."""

    hits: float = 1.0
    misses: float = 1.0
    false_count: float = 0.5
    watched_s: float = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class SignalQuality:
    """How good signals are, by group: recall is Beta(hits, misses), false rate Gamma(false_count, watched_s)."""

    hits: FloatArray
    misses: FloatArray
    false_count: FloatArray
    watched_s: FloatArray

    @property
    def recall(self) -> FloatArray:
        """The mean of the Beta."""
        return self.hits / (self.hits + self.misses)

    @property
    def false_rate_per_s(self) -> FloatArray:
        """The mean of the Gamma."""
        return self.false_count / self.watched_s


def learn_signals(
    group: IntArray,
    intervals_s: FloatArray,
    on: npt.NDArray[np.bool_],
    changed: npt.NDArray[np.bool_],
    *,
    groups: int,
    prior: SignalPrior | None = None,
) -> SignalQuality:
    """[BEYOND] Recall and false rate of signals by group, from visits: was the signal on, had the page changed?

    Visits at which the signal was not offered are left out by the caller. Visits to unchanged pages give the false
    rate: E[false signals | one came in I] = phi·I/(1 - exp(-phi·I)). Visits to changed ones give the recall: P(the
    true signal came | on) = recall/(1 - (1 - recall)·exp(-phi·I)).
    """
    prior = prior or SignalPrior()
    quiet = ~changed
    watched: FloatArray = prior.watched_s + np.bincount(group[quiet], intervals_s[quiet], groups).astype(np.float64)
    false_group, false_interval = group[quiet & on], intervals_s[quiet & on]
    count: FloatArray = prior.false_count + np.bincount(false_group, minlength=groups).astype(np.float64)
    for _ in range(_ROUNDS):
        x = (count / watched)[false_group] * false_interval
        expected = np.divide(x, -np.expm1(-x), out=np.ones_like(x), where=x > 0)
        new: FloatArray = prior.false_count + np.bincount(false_group, expected, groups).astype(np.float64)
        moved, count = np.max(np.abs(new - count), initial=0.0), new
        if moved <= _CLOSE:
            break
    rate = count / watched

    seen, missed = changed & on, changed & ~on
    misses = prior.misses + np.bincount(group[missed], minlength=groups)
    seen_group = group[seen]
    silent = np.exp(-rate[seen_group] * intervals_s[seen])
    total = np.bincount(seen_group, minlength=groups)
    hits = prior.hits + total.astype(np.float64)
    lost: FloatArray = np.zeros(groups)
    for _ in range(_ROUNDS):
        recall = (hits / (hits + misses + lost))[seen_group]
        true = np.bincount(seen_group, recall / (1.0 - (1.0 - recall) * silent), groups).astype(np.float64)
        new = prior.hits + true
        moved, hits, lost = np.max(np.abs(new - hits), initial=0.0), new, total - true
        if moved <= _CLOSE:
            break
    return SignalQuality(hits, misses + lost, count, watched)


def learn_hosts(
    group: IntArray,
    intervals_s: FloatArray,
    on: npt.NDArray[np.bool_],
    changed: npt.NDArray[np.bool_],
    *,
    groups: int,
) -> SignalQuality:
    """`learn_signals` with each group shrunk to the mean of all: what most sites do is the first guess of any."""
    prior = SignalPrior()
    alone = learn_signals(group, intervals_s, on, changed, groups=groups, prior=prior)
    hits, misses = alone.hits - prior.hits, alone.misses - prior.misses
    weight = prior.hits + prior.misses
    recall = pool_groups(hits, hits + misses, prior.hits, weight)
    false_rate = pool_groups(
        alone.false_count - prior.false_count, alone.watched_s - prior.watched_s, prior.false_count, prior.watched_s
    )
    weight, watched_s = weight * GROUP_STRENGTH, prior.watched_s * GROUP_STRENGTH
    shared = SignalPrior(weight * recall, weight * (1.0 - recall), watched_s * false_rate, watched_s)
    return learn_signals(group, intervals_s, on, changed, groups=groups, prior=shared)


def pool_groups(found: FloatArray, total: FloatArray, prior_found: float, prior_total: float) -> float:
    """[BEYOND] (a + sum(v·found))/(b + sum(v·total)), v = 1/(1 + total/(k·b)): no group weighs more than k priors."""
    share = 1.0 / (1.0 + total / (GROUP_WEIGHT * prior_total))
    return (prior_found + float((share * found).sum())) / (prior_total + float((share * total).sum()))


def shrink_shares(hits: FloatArray, misses: FloatArray, prior_hits: float, prior_misses: float) -> FloatArray:
    """[BEYOND] (k·m + hits)/(k + hits + misses) by group, m the mean of all groups by `pool_groups`."""
    total, weight = hits + misses, prior_hits + prior_misses
    mean = pool_groups(hits, total, prior_hits, weight)
    return np.asarray((weight * GROUP_STRENGTH * mean + hits) / (weight * GROUP_STRENGTH + total), np.float64)


def signal_evidence(
    age_s: FloatArray, signals: SignalArray, recall: npt.ArrayLike, false_rate_per_s: npt.ArrayLike
) -> FloatArray:
    """[BEYOND] Log of the factor by which signals of one kind move the odds that a page has changed.

    log(1 + recall·exp(-phi·tau)/(1 - exp(-phi·tau))) where on, log(1 - recall) where off, 0 where not offered.
    """
    recall, rate = np.asarray(recall, np.float64), np.asarray(false_rate_per_s, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        seen = np.log1p(recall * np.exp(-rate * age_s) / -np.expm1(-rate * age_s))
        unseen = np.broadcast_to(np.log1p(-recall), age_s.shape)
    seen = np.where(recall > 0, seen, 0.0)  # where neither true nor false signals can come, one that does says nothing
    found = np.where(signals == ON, seen, np.where(signals == OFF, unseen, 0.0))
    return np.clip(found, -MOST_EXPONENT, MOST_EXPONENT)


def effective_age_s(rate_per_s: FloatArray, age_s: FloatArray, evidence: npt.ArrayLike = 0.0) -> FloatArray:
    """[BEYOND] log(1 + (exp(Delta·tau) - 1)·exp(evidence))/Delta: the age of a page as likely changed without signals.

    A signal that is on raises it, one that is off lowers it. tau·exp(evidence) where Delta is 0. Evidence of several
    kinds of signals adds up.
    """
    factor = np.asarray(np.clip(evidence, -MOST_EXPONENT, MOST_EXPONENT), np.float64)
    x = np.asarray(rate_per_s * age_s, np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # log(exp(x) - 1) in the form that cannot overflow
        log_odds = np.where(x > 30.0, x, np.log(np.expm1(np.minimum(x, 30.0)))) + factor
        found = np.logaddexp(0.0, log_odds) / rate_per_s
    # below 1e-12 the quotient has lost its digits, and its limit is exact enough unless the evidence is overwhelming
    small = (x < 1e-12) & (x * np.exp(factor) < 1e-12)
    return np.where(small, age_s * np.exp(factor), found)
