"""What would another budget gain? Fetches and clicks by price, and the price that a budget clears at.

At a price each known page and hub is revisited when its bid reaches it, and each new page is fetched that bids as much.
So fetches and gains are functions of the price alone; a larger budget clears at a lower one. All gains are in units of
bids. Revisits are as in the long run, new pages are those known now, as many of them as `span_s` has time for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.budget.in_clicks import net_of_pages, price_of_pages
from bowerbird.appraise.budget.joint_price import Revisits, due_ages
from bowerbird.appraise.hubs.net_value import share_within
from bowerbird.appraise.refresh.refresh_gain import mean_loss
from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import PARTS

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

KINDS = ("new", "refresh", "hub")
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)
_STEPS = 28
_STEPS_DUE, _LATEST = 10, 4.0  # of the logarithm of an age, beyond that at which all pages would be worth the price
_HEAD, _REST = 1 << 14, 1 << 13  # of a long list: those that gain most, and some that stand for the others
_HUBS_HEAD, _HUBS_REST = 1 << 11, 1 << 10  # each of which is looked at part by part


def _empty() -> F64:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Refreshes:
    """Known pages: area bids in units, the share of search quality that each loses by a change, how many of them
    take all that it has at stake, and what a refresh costs beside a usual fetch, which the bids are divided by.
    """

    amplitude: F64 = field(default_factory=_empty)
    changes_per_s: F64 = field(default_factory=_empty)
    loss: F64 = field(default_factory=_empty)
    most_changes: F64 = field(default_factory=_empty)
    cost: F64 = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class HubVisits:
    """Hubs: saturating bids in units, how many new pages each announces, and what one gains when it is found."""

    amplitude: F64 = field(default_factory=_empty)
    decay_per_s: F64 = field(default_factory=_empty)
    pages_per_s: F64 = field(default_factory=_empty)
    profit: F64 = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class NewPages:
    """The frontier: what each page bids, and what it gains; less than its bid where a floor holds that up."""

    bid: F64 = field(default_factory=_empty)
    gain: F64 = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class Supply:
    """Everything that could be fetched."""

    new: NewPages
    refresh: Refreshes
    hubs: HubVisits
    shortest_s: float
    longest_s: float  # no page waits longer, unless the price is above the reserve
    hub_longest_s: float  # nor does a hub
    by_age_per_s: float = 0.0  # refreshes of pages of which nothing is known but their age: they bid the reserve
    span_s: float = 3600.0
    reserve: float = 1.0
    horizon_s: float = math.inf
    hub_horizon_s: float = math.inf
    page_spread: npt.ArrayLike = (1.0,) * PARTS  # what can be told of the pages of a hub beforehand, by their mean


@dataclass(frozen=True, slots=True)
class Spending:
    """Fetches and gains a second by kind, and the share of search quality lost to changes, at a price."""

    price: float
    fetches_per_s: F64  # by KINDS; pages that hubs announce count as hubs'
    gains_per_s: F64
    stale: float

    @property
    def fetched_per_s(self) -> float:
        """All kinds."""
        return float(self.fetches_per_s.sum())

    @property
    def gained_per_s(self) -> float:
        """All kinds."""
        return float(self.gains_per_s.sum())


class Outlook:
    """Spending by price, of one supply. Long lists are thinned: all that gain much, and some of the others."""

    def __init__(self, supply: Supply) -> None:
        self.supply = supply
        order = np.argsort(-supply.new.bid, kind="stable")
        self._bids = -supply.new.bid[order]  # ascending
        self._sums = np.concatenate(([0.0], np.cumsum(supply.new.gain[order])))
        pages = supply.refresh
        self._pages, self._page_weight = _thin(pages, pages.amplitude * pages.changes_per_s, _HEAD, _REST)
        hubs = supply.hubs
        self._hubs, self._hub_weight = _thin(hubs, hubs.pages_per_s * hubs.profit, _HUBS_HEAD, _HUBS_REST)

    @property
    def asked_per_s(self) -> float:
        """Fetches a second of all that bids the reserve: no budget is spent on more."""
        return self.at(self.supply.reserve).fetched_per_s

    def at(self, price: float) -> Spending:
        """What is spent and gained where a fetch must bid so much."""
        supply = self.supply
        many = int(np.searchsorted(self._bids, -price, side="right"))
        refreshed, kept, stale = self._refresh(price)
        visited, found = self._visit(price)
        by_age = supply.by_age_per_s if price <= supply.reserve else 0.0
        return Spending(
            price,
            np.array([many / supply.span_s, refreshed + by_age, visited]),
            np.array([self._sums[many] / supply.span_s, kept + by_age * supply.reserve, found]),
            stale,
        )

    def _refresh(self, price: float) -> tuple[float, float, float]:
        pages, weight = self._pages, self._page_weight
        most, horizon_s = pages.most_changes, self.supply.horizon_s
        age = due_ages(Revisits(pages.amplitude, pages.changes_per_s, Shape.AREA, 0.0, 0.0, horizon_s, most), price)
        age = self._bound(age, price, self.supply.longest_s, self.supply.reserve)
        lost = mean_loss(np.maximum(pages.changes_per_s, 1e-30) * age, most)
        gain = pages.amplitude * pages.cost * pages.changes_per_s * (most - lost)
        return (
            float((weight / age).sum()),
            float((weight * gain).sum()),
            float((weight * pages.loss * lost).sum()),
        )

    def _visit(self, price: float) -> tuple[float, float]:
        """[BEYOND] (1 + lam·t)/I fetches and lam·P·(1 - exp(-mu·t))/(mu·I) clicks a second, t = min(I, tau*).

        The interval I is the age at which the index, net of the price of pages, reaches the price; tau* is that at
        which a page is worth no more than that. At the reserve, where pages cost nothing, all are fetched.
        """
        hubs, weight = self._hubs, self._hub_weight
        age = self._bound(self._due_net(price), price, self.supply.hub_longest_s, self.supply.reserve)[:, None]
        decay = np.maximum(hubs.decay_per_s, 1e-12)[:, None]
        profit = np.maximum(hubs.profit[:, None] * np.asarray(self.supply.page_spread), 1e-300)
        cost = price_of_pages(price)
        worth_s = np.maximum(np.log(profit / cost), 0.0) / decay if cost > 0.0 else math.inf
        often = np.where(np.isfinite(age), 1.0 / age, 0.0)
        young = np.where(often > 0.0, np.minimum(age, worth_s), 0.0)
        rate = hubs.pages_per_s[:, None]
        fetches = often[:, 0] * (1.0 + (rate * young).mean(axis=1))
        gains = (often * rate * profit * -np.expm1(-decay * young) / decay).mean(axis=1)
        return float((weight * fetches).sum()), float((weight * gains).sum())

    def _due_net(self, price: float) -> F64:
        """When the bids of hubs reach the price; infinite where they never do."""
        hubs = self._hubs
        age = due_ages(Revisits(hubs.amplitude, hubs.decay_per_s, Shape.SATURATING, 0.0, 0.0), price)
        able = np.flatnonzero(np.isfinite(age))
        able = able[self._net(able, np.full(len(able), np.inf), price) >= price]
        low = np.log(np.maximum(age[able], 1e-9))
        high = low + _LATEST
        for _ in range(_STEPS_DUE):
            middle = 0.5 * (low + high)
            late = self._net(able, np.exp(middle), price) < price
            low, high = np.where(late, middle, low), np.where(late, high, middle)
        age[:] = np.inf
        age[able] = np.exp(high)
        return age

    def _net(self, some: I64, age_s: F64, price: float) -> F64:
        """The index of some hubs at these ages, net of what their pages cost."""
        hubs, horizon_s = self._hubs, self.supply.hub_horizon_s
        decay = hubs.decay_per_s[some]
        profit = np.maximum(hubs.profit[some] / np.maximum(share_within(decay, horizon_s), 1e-300), 1e-300)
        rate = hubs.amplitude[some] * decay / profit
        return net_of_pages((rate, profit, decay), self.supply.page_spread, price, age_s, horizon_s)

    def _bound(self, age: F64, price: float, longest_s: float, floor: float) -> F64:
        """No sooner than the shortest interval; what waited longest bids the floor."""
        age = np.maximum(age, self.supply.shortest_s)
        return np.minimum(age, max(longest_s, self.supply.shortest_s)) if price <= floor else age

    def clear(self, budget_per_s: float) -> Spending:
        """[BEYOND] The price omega at which fetches a second are the budget, no lower than the reserve."""
        reserve = self.supply.reserve
        below = self.at(reserve)
        if below.fetched_per_s <= budget_per_s:
            return below  # there is no more to fetch
        tops = [
            column.max() for column in (self.supply.new.bid, self._pages.amplitude, self._hubs.amplitude) if len(column)
        ]
        low, high = math.log(reserve), math.log(max([reserve, *tops])) + 1.0
        above = self.at(math.exp(high))
        for _ in range(_STEPS):
            if above.fetched_per_s <= budget_per_s:
                break
            low, below, high = high, above, high + 2.0  # a page that missed many changes bids more than its amplitude
            above = self.at(math.exp(high))
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            found = self.at(math.exp(middle))
            if found.fetched_per_s > budget_per_s:
                low, below = middle, found
            else:
                high, above = middle, found
        return _between(above, below, budget_per_s)


def _between(above: Spending, below: Spending, budget_per_s: float) -> Spending:
    """Of many that bid alike, as many as there is room for."""
    room = below.fetched_per_s - above.fetched_per_s
    share = min(max((budget_per_s - above.fetched_per_s) / room, 0.0), 1.0) if room > 0 else 0.0

    def mix(one: F64, other: F64) -> F64:
        return np.asarray(one + share * (other - one))

    return Spending(
        above.price,
        mix(above.fetches_per_s, below.fetches_per_s),
        mix(above.gains_per_s, below.gains_per_s),
        above.stale + share * (below.stale - above.stale),
    )


def what_if(outlook: Outlook, budget_per_s: float, times: Sequence[float] = TIMES) -> list[Spending]:
    """What budgets of so many times the present one would be spent on, and gain."""
    return [outlook.clear(budget_per_s * one) for one in times]


def differing_times(budget_per_s: float, asked_per_s: float) -> list[float]:
    """The multiples of a budget that are spent on different things: up to the first that pays for all that is asked.

    And the present budget itself.

    >>> differing_times(8.0, 100.0), differing_times(8.0, 12.0), differing_times(8.0, 8.0), differing_times(8.0, 1.0)
    ([0.25, 0.5, 1.0, 2.0, 4.0], [0.25, 0.5, 1.0, 2.0], [0.25, 0.5, 1.0], [0.25, 1.0])
    """
    enough = next((one for one in TIMES if budget_per_s * one >= asked_per_s), TIMES[-1])
    return [one for one in TIMES if one <= enough or one == 1.0]


Columns = TypeVar("Columns", Refreshes, HubVisits)


def _thin(columns: Columns, by: F64, head: int, tail: int) -> tuple[Columns, F64]:
    """The columns, and how many each item stands for: the largest for themselves, of the others some for all."""
    count = len(by)
    if count <= head + tail:
        return columns, np.ones(count)
    order = np.argsort(-by, kind="stable")
    rest = order[head:]
    stride = -(-len(rest) // tail)
    some = rest[stride // 2 :: stride]
    chosen = np.concatenate([order[:head], some])
    weight = np.concatenate([np.ones(head), np.full(len(some), len(rest) / len(some))])
    return type(columns)(*(getattr(columns, name)[chosen] for name in columns.__slots__)), weight
