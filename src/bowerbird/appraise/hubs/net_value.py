"""What a visit to a hub is worth after the page fetches it causes have been paid for.

A page found at age a is fetched if it is still worth the price, and then gains P·exp(-mu·a) - omega. So a visit after
tau finds V(tau) = lam·integral_0^tau (P·exp(-mu·a) - omega)+ da, which grows until tau* = log(P/omega)/mu, where pages
are no longer worth their fetch. The index of a visit, V - tau·V', is lam·P/mu·g(mu·tau) up to tau*: the price of pages
cancels out, and only bounds the index. A hub is worth visiting when that bound is above the price, exactly the hubs of
`intervals.best_intervals`.

Arguments broadcast. Where pages of a hub differ in profit, take the mean over an axis of equally likely profits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.gains import saturating_gains
from bowerbird.appraise.hubs.intervals import SLOWEST_PER_S

F64 = npt.NDArray[np.float64]


def worthless_age(profit: npt.ArrayLike, decay_per_s: npt.ArrayLike, price: npt.ArrayLike) -> F64:
    """[BEYOND] tau* = log(P/omega)/mu: the age at which a page is no longer worth its fetch; 0 where it never is."""
    worth, decay, cost = (np.asarray(value, np.float64) for value in (profit, decay_per_s, price))
    with np.errstate(divide="ignore", invalid="ignore"):
        age = np.log(worth / cost) / np.maximum(decay, SLOWEST_PER_S)
    return np.asarray(np.where(worth > cost, np.where(cost > 0, age, np.inf), 0.0))


def net_hub_value(
    rate_per_s: npt.ArrayLike,
    profit: npt.ArrayLike,
    decay_per_s: npt.ArrayLike,
    price: npt.ArrayLike,
    age_s: npt.ArrayLike,
) -> F64:
    """[BEYOND] lam·integral_0^tau (P·exp(-mu·a) - omega)+ da: a visit after tau, net of the page fetches it causes.

    It is lam·(P·(1 - exp(-mu·t))/mu - omega·t), t = min(tau, tau*).
    """
    decay = np.maximum(np.asarray(decay_per_s, np.float64), SLOWEST_PER_S)
    age = np.minimum(np.maximum(age_s, 0.0), worthless_age(profit, decay, price))
    x = decay * age
    with np.errstate(invalid="ignore"):
        gained = np.asarray(profit) * -np.expm1(-x) / decay
        paid = np.where(age > 0, np.asarray(price) * age, 0.0)
    paid = np.where(np.asarray(price) > 0, paid, 0.0)
    return np.asarray(np.maximum(np.asarray(rate_per_s) * (gained - paid), 0.0))


def share_within(decay_per_s: npt.ArrayLike, horizon_s: float) -> F64:
    """[ECHO13] 1 - exp(-mu·H): of the clicks of a new page, the share within the horizon."""
    decay = np.asarray(decay_per_s, np.float64)
    if not math.isfinite(horizon_s):
        return np.ones(decay.shape)
    return np.asarray(-np.expm1(-decay * horizon_s))


def net_hub_index(
    rate_per_s: npt.ArrayLike,
    profit: npt.ArrayLike,
    decay_per_s: npt.ArrayLike,
    price: npt.ArrayLike,
    age_s: npt.ArrayLike,
    horizon_s: float = math.inf,
) -> F64:
    """[BEYOND] V - tau·V' of the net value: lam·P/mu·g(mu·min(tau, tau*)). A hub is due when it reaches the price.

    Where clicks count up to a horizon H from now on, a page of age a is worth P·exp(-mu·a)·(1 - exp(-mu·H)), and
    finding it now in place of at age tau gains the clicks between, P·(exp(-mu·a) - exp(-mu·min(tau, a + H))). So the
    horizon takes nothing from what a visit gains unless the hub waits longer than that, but tau* comes sooner.
    """
    decay = np.maximum(np.asarray(decay_per_s, np.float64), SLOWEST_PER_S)
    within = share_within(decay, horizon_s)
    age = np.minimum(np.maximum(age_s, 0.0), worthless_age(np.asarray(profit) * within, decay, price))
    most = np.maximum(rate_per_s, 0.0) * np.maximum(profit, 0.0) / decay
    if not math.isfinite(horizon_s):
        return np.asarray(most * saturating_gains(np.minimum(decay * age, 1e3)))
    late = np.maximum(age - horizon_s, 0.0)
    waited = np.minimum(decay * np.minimum(age, horizon_s), 1e3)
    # from the age tau - H on as without a horizon; of younger ones, which would never count, all that is within
    return np.asarray(most * (np.exp(-decay * late) * saturating_gains(waited) - within * np.expm1(-decay * late)))
