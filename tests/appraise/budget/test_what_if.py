"""What another budget would gain."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bowerbird.appraise.budget.in_clicks import price_of_pages
from bowerbird.appraise.budget.what_if import (
    HubVisits,
    NewPages,
    Outlook,
    Refreshes,
    Supply,
    what_if,
)
from bowerbird.appraise.hubs.net_value import net_hub_index

DAY_S = 86400.0


def supply(seed: int = 0, pages: int = 300, hubs: int = 30, new: int = 2000, **values: float) -> Supply:
    rng = np.random.default_rng(seed)
    bid = np.maximum(rng.lognormal(0.5, 1.5, new), 1.0)
    decay = 10.0 ** rng.uniform(-5, -4, hubs)
    rate, profit = 10.0 ** rng.uniform(-5, -3, hubs), rng.lognormal(1.0, 1.0, hubs)
    changes = 10.0 ** rng.uniform(-7, -5, pages)
    amplitude, cost = rng.lognormal(1.0, 2.0, pages), rng.uniform(0.3, 3.0, pages)
    return Supply(
        NewPages(bid, bid),
        Refreshes(amplitude, changes, amplitude * changes * 1e-3, rng.uniform(2.0**0.5, 5.0, pages), cost),
        HubVisits(rate * profit / decay, decay, rate, profit),
        shortest_s=values.get("shortest_s", 60.0),
        longest_s=140 * DAY_S,
        hub_longest_s=10 * DAY_S,
        by_age_per_s=values.get("by_age_per_s", 0.0),
    )


def test_one_more_refresh_gains_the_price() -> None:
    """Gains are those of the loss that the bids are the best index for, so their slope by fetches is the price."""
    given = supply(4, hubs=0, new=0)
    outlook = Outlook(replace(given, refresh=replace(given.refresh, cost=np.ones(300))))
    for price in (3.0, 10.0):
        less, more = outlook.at(price * 1.01), outlook.at(price / 1.01)
        worth = (more.gained_per_s - less.gained_per_s) / (more.fetched_per_s - less.fetched_per_s)
        assert worth == pytest.approx(price, rel=0.02)


@pytest.mark.parametrize("cost", [0.4, 2.5])
def test_what_a_refresh_costs_divides_its_bid_and_not_what_it_gains(cost: float) -> None:
    """Bids of 1/cost are made as often as others at the price by the cost, gain all the same, and are fetches."""
    given = supply(4, hubs=0, new=0)
    plain = Outlook(replace(given, refresh=replace(given.refresh, cost=np.ones(300))))
    divided = replace(given.refresh, amplitude=given.refresh.amplitude / cost, cost=np.full(300, cost))
    dear = Outlook(replace(given, refresh=divided))
    assert dear.at(5.0 / cost).gained_per_s == pytest.approx(plain.at(5.0).gained_per_s)
    assert dear.at(5.0 / cost).fetched_per_s == pytest.approx(plain.at(5.0).fetched_per_s)


@given(st.integers(0, 200), st.floats(-4, 1))
@settings(max_examples=30, deadline=None)
def test_a_budget_is_spent_and_more_gains_more(seed: int, log_budget: float) -> None:
    outlook = Outlook(supply(seed))
    budget = 10.0**log_budget
    found = what_if(outlook, budget)
    most = outlook.at(1.0).fetched_per_s
    for one, times in zip(found, (0.25, 0.5, 1.0, 2.0, 4.0), strict=True):
        assert one.fetched_per_s == pytest.approx(min(budget * times, most), rel=1e-3)
    prices = [one.price for one in found]
    assert prices == sorted(prices, reverse=True)
    assert min(prices) >= 1.0
    gains = [one.gained_per_s for one in found]
    assert all(after >= before * (1 - 1e-9) for before, after in pairwise(gains))


def test_the_price_is_what_one_more_fetch_gains() -> None:
    """Of new pages and hubs whose pages cost next to nothing beside what they gain."""
    some = supply(3, pages=0)
    outlook = Outlook(some)
    budget = 0.5 * outlook.at(1.0).fetched_per_s
    one, more = outlook.clear(budget), outlook.clear(budget * 1.02)
    worth = (more.gained_per_s - one.gained_per_s) / (more.fetched_per_s - one.fetched_per_s)
    assert worth == pytest.approx(0.5 * (one.price + more.price), rel=0.05)


def test_ties_are_taken_in_part() -> None:
    bid = np.full(7200, 3.0)
    some = Supply(NewPages(bid, bid), Refreshes(), HubVisits(), 60.0, DAY_S, DAY_S)
    found = Outlook(some).clear(0.5)
    assert found.fetched_per_s == pytest.approx(0.5)
    assert found.gained_per_s == pytest.approx(1.5)
    assert found.price == pytest.approx(3.0)


def test_the_frontier_ends() -> None:
    bid = np.array([5.0, 2.0, 1.0005])
    some = Supply(NewPages(bid, np.array([5.0, 2.0, 0.5])), Refreshes(), HubVisits(), 60.0, DAY_S, DAY_S)
    found = Outlook(some).clear(100.0)
    assert found.price == 1.0
    assert found.gained_per_s * 3600 == pytest.approx(7.5)  # what the floor holds up gains no more for that
    assert found.fetched_per_s * 3600 == pytest.approx(3.0)


def test_pages_that_are_refreshed_more_lose_less() -> None:
    outlook = Outlook(supply(5, hubs=0, new=0))
    found = what_if(outlook, 0.3 * outlook.at(1.0).fetched_per_s)
    stale = [one.stale for one in found]
    assert stale == sorted(stale, reverse=True)
    pages = outlook.supply.refresh
    assert 0 < stale[-1] < stale[0] <= float((pages.loss * pages.most_changes).sum()) * (1 + 1e-9)


@given(st.floats(2.0**0.5, 20.0), st.floats(-3, 0))
@settings(max_examples=30, deadline=None)
def test_a_short_budget_is_kept_where_refreshes_bid_far_more_than_their_amplitude(
    most: float, log_share: float
) -> None:
    one = np.ones(1000)
    pages = Refreshes(one, one / 3600.0, one * 1e-4, one * most, one)
    outlook = Outlook(Supply(NewPages(), pages, HubVisits(), 60.0, 1e9, 1e9))
    budget = outlook.asked_per_s * 10.0**log_share
    found = what_if(outlook, budget)
    assert [each.fetched_per_s for each in found[:3]] == pytest.approx([budget / 4, budget / 2, budget], rel=1e-3)
    assert found[0].stale > found[1].stale > found[2].stale


def test_pages_that_wait_longer_than_gains_count_are_refreshed_less() -> None:
    near, far = (Outlook(replace(supply(6, hubs=0, new=0), horizon_s=days * DAY_S)) for days in (2, 1000))
    assert near.at(3.0).fetched_per_s < 0.9 * far.at(3.0).fetched_per_s
    assert near.at(3.0).stale > far.at(3.0).stale


def test_hubs_whose_pages_can_be_told_apart_are_worth_more_at_a_high_price() -> None:
    alike = supply(8, pages=0, new=0)
    spread = replace(alike, page_spread=np.array([0.1, 0.2, 0.4, 0.6, 0.9, 1.4, 3.4]))
    price = 0.5 * float(alike.hubs.profit.max())
    assert 1.2 * Outlook(alike).at(price).gained_per_s < Outlook(spread).at(price).gained_per_s
    above = 1.5 * float(alike.hubs.profit.max())
    nobody = Outlook(alike).at(above)  # no page would be fetched, so no visit finds anything
    assert nobody.fetched_per_s == nobody.gained_per_s == 0.0


@pytest.mark.parametrize("price", [1.0, 1.3, 4.0, 20.0])
def test_hubs_are_visited_when_their_bids_reach_the_price(price: float) -> None:
    """The interval is that after which the index, net of what pages cost, is the price: neither sooner nor later."""
    spread = np.array([0.1, 0.2, 0.4, 0.6, 0.9, 1.4, 3.4])
    hubs = supply(8, pages=0, new=0).hubs
    for one in range(5):
        mine = HubVisits(*(getattr(hubs, name)[one : one + 1] for name in HubVisits.__slots__))
        of_one = replace(supply(8, pages=0, new=0), hubs=mine, page_spread=spread, shortest_s=1.0, hub_longest_s=1e12)
        profit, decay = float(mine.profit[0]), float(mine.decay_per_s[0])
        rate = float(mine.amplitude[0]) * decay / profit

        def index(age_s: float, rate: float = rate, profit: float = profit, decay: float = decay) -> float:
            return float(net_hub_index(rate, profit * spread, decay, price_of_pages(price), age_s).mean())

        age = float(Outlook(of_one)._due_net(price)[0])
        if not np.isfinite(age):
            assert index(1e12) < price
        else:
            assert index(age * 1.01) >= price > index(age * 0.98)


def test_pages_known_by_age_alone_wait_for_the_reserve() -> None:
    outlook = Outlook(supply(1, by_age_per_s=2.0))
    assert outlook.at(1.0).fetches_per_s[1] >= 2.0
    assert outlook.at(1.1).fetches_per_s[1] < 2.0


def test_no_hub_is_given_up_at_the_reserve() -> None:
    some = supply(2, pages=0, new=0)
    outlook = Outlook(some)
    least = len(some.hubs.amplitude) / some.hub_longest_s
    assert outlook.at(1.0).fetched_per_s >= least
    assert outlook.at(1.0 + 1e-9).fetched_per_s < outlook.at(1.0).fetched_per_s


def one_hub(profit: float, rate: float = 1e-3, decay: float = 1e-4) -> Supply:
    hub = HubVisits(*(np.array([one]) for one in (rate * profit / decay, decay, rate, profit)))
    return replace(supply(pages=0, new=0), hubs=hub)


@example(1.00005, -3.0, -4.0, 1.0)
@given(st.floats(0.02, 4.0), st.floats(-5, -2), st.floats(-6, -3), st.floats(1.0, 3.0))
@settings(max_examples=100, deadline=None)
def test_a_hub_whose_pages_gain_a_little_less_finds_a_little_less(
    profit: float, log_rate: float, log_decay: float, price: float
) -> None:
    """No unit, and no price, is a cliff where the hub goes on to be visited."""
    more, less = (Outlook(one_hub(profit * by, 10**log_rate, 10**log_decay)) for by in (1.0, 1.0 - 1e-4))
    if np.isfinite(less._due_net(price)).all() or price == 1.0:
        assert less.at(price).fetched_per_s == pytest.approx(more.at(price).fetched_per_s, rel=0.05)
        assert less.at(price).gained_per_s == pytest.approx(more.at(price).gained_per_s, rel=0.05)


def test_at_the_reserve_all_pages_of_hubs_are_fetched_and_gain() -> None:
    rate = 1e-3
    for profit in (0.05, 0.5, 0.99, 1.01):
        found = Outlook(one_hub(profit, rate)).at(1.0)
        assert rate < found.fetched_per_s < 3 * rate
        assert 0.0 < found.gained_per_s <= rate * profit


def test_pages_that_cost_a_little_are_almost_all_fetched() -> None:
    """The price of pages sets in by and by."""
    at, above = (Outlook(one_hub(5.0)).at(price) for price in (1.0, 1.0 + 1e-6))
    assert above.fetched_per_s == pytest.approx(at.fetched_per_s, rel=1e-3)
    assert above.gained_per_s == pytest.approx(at.gained_per_s, rel=1e-3)


def test_nothing_to_fetch() -> None:
    empty = Supply(NewPages(), Refreshes(), HubVisits(), 60.0, DAY_S, DAY_S)
    assert [one.gained_per_s for one in what_if(Outlook(empty), 5.0)] == [0.0] * 5


def test_a_long_list_is_told_from_part_of_it_and_quickly() -> None:
    some = supply(7, pages=400_000, hubs=20_000, new=500_000)
    exact = Outlook(some)
    exact._pages, exact._page_weight = some.refresh, np.ones(400_000)
    exact._hubs, exact._hub_weight = some.hubs, np.ones(20_000)
    began = time.perf_counter()
    outlook = Outlook(some)
    found = what_if(outlook, 50.0)
    assert time.perf_counter() - began < 8.0
    for price in (1.0, 3.0, 20.0):
        assert outlook.at(price).fetched_per_s == pytest.approx(exact.at(price).fetched_per_s, rel=0.01)
        assert outlook.at(price).gained_per_s == pytest.approx(exact.at(price).gained_per_s, rel=0.01)
    assert len(found) == 5
