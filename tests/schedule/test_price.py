"""The price follows the budget; the allowance never lets more through than the rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.schedule.price import Allowance, Price


def test_spending_too_fast_raises_it_and_too_slowly_lowers_it_to_the_reserve() -> None:
    price = Price(reserve=2.0, budget_per_s=10.0)
    price.observe(0, 0.0)
    seen = [price.value]
    for second in range(1, 20):
        price.observe(25, float(second))
        seen.append(price.value)
    assert seen == sorted(seen)
    assert seen[-1] > seen[0] == 2.0
    for second in range(20, 400):
        price.observe(0, float(second))
    assert price.value == 2.0


def test_without_a_budget_the_reserve_is_the_price() -> None:
    price = Price(reserve=1.5)
    for second in range(100):
        price.observe(10_000, float(second))
    assert price.value == 1.5


@given(st.lists(st.tuples(st.integers(0, 100_000), st.floats(-1e5, 1e6)), max_size=50), st.floats(1e-3, 1e4))
def test_it_is_never_below_the_reserve_and_always_a_number(steps: list[tuple[int, float]], budget: float) -> None:
    price = Price(reserve=1.0, budget_per_s=budget)
    now = 0.0
    for spent, elapsed in steps:
        before = price.value
        now += elapsed
        price.observe(spent, now)
        assert 1.0 <= price.value <= before * math.e * (1 + 1e-12)
        assert math.isfinite(price.value)


def test_what_is_spent_at_one_moment_counts_at_the_next() -> None:
    once, twice = Price(1.0, 10.0), Price(1.0, 10.0)
    for price in (once, twice):
        price.observe(0, 0.0)
    once.observe(40, 1.0)
    twice.observe(20, 0.0)
    twice.observe(20, 1.0)
    assert twice.value == once.value > 1.0


def test_a_clock_set_back_does_not_stop_it() -> None:
    price = Price(1.0, 10.0)
    price.observe(0, 1e6)
    price.observe(500, 0.0)
    price.observe(50, 1.0)
    assert price.value > 1.0


@pytest.mark.parametrize("budget_per_s", [0.05, 0.5, 5.0, 50.0])
def test_a_market_of_new_pages_spends_the_budget(budget_per_s: float) -> None:
    """Pages appear at ten times the budget, worth what they are worth: the price lets a tenth of them through."""
    rng = np.random.default_rng(11)
    price = Price(reserve=0.1, budget_per_s=budget_per_s)
    warm_up, end = 20_000, 60_000
    step = 1.0 if budget_per_s < 1 else 0.1
    total = 0
    for turn in range(end):
        worth = rng.lognormal(size=rng.poisson(10 * budget_per_s * step))
        spent = int(np.count_nonzero(worth >= price.value))
        price.observe(spent, turn * step)
        total += spent if turn >= warm_up else 0
    assert total == pytest.approx(budget_per_s * step * (end - warm_up), rel=0.1)


def test_a_market_of_refreshes_spends_the_budget_at_the_price_that_theory_gives() -> None:
    """Linear bids age/interval: at price p a page is fetched every p intervals, so p = sum(1/interval)/budget."""
    rng = np.random.default_rng(5)
    interval = rng.lognormal(4.0, 1.0, 3000)
    budget_per_s = float(np.sum(1 / interval)) / 3.0
    price = Price(reserve=1.0, budget_per_s=budget_per_s)
    last = -rng.random(3000) * interval
    prices, total = [], 0
    for now in range(4000):
        due = (now - last) / interval >= price.value
        last[due] = now
        price.observe(int(due.sum()), float(now))
        if now >= 2000:
            total += int(due.sum())
            prices.append(price.value)
    assert total / 2000 == pytest.approx(budget_per_s, rel=0.1)
    assert float(np.mean(prices)) == pytest.approx(3.0, rel=0.1)


@settings(max_examples=80)
@given(
    rate=st.sampled_from([0.05, 0.5, 1.0, 3.0, 250.0]),
    waits=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=200),
    wanted=st.integers(0, 2000),
)
def test_an_allowance_lets_no_more_through_than_the_rate(rate: float, waits: list[float], wanted: int) -> None:
    allowance = Allowance(rate, now=1000.0)
    now, started = 1000.0, 0
    for wait in waits:
        now += wait
        granted = allowance.available(now, wanted)
        assert 0 <= granted <= min(wanted, max(1, math.ceil(rate)))  # a burst: one second's worth
        allowance.spend(granted)
        started += granted
        assert started <= rate * (now - 1000.0) + 1 + 1e-6


@pytest.mark.parametrize("rate", [0.2, 1.0, 7.5, 100.0])
def test_an_allowance_reaches_its_rate_in_the_long_run(rate: float) -> None:
    allowance = Allowance(rate, now=0.0)
    rng = np.random.default_rng(2)
    now, started = 0.0, 0
    while now < 500.0:
        now += float(rng.exponential(0.02))
        granted = allowance.available(now, 64)
        allowance.spend(granted)
        started += granted
    assert started == pytest.approx(rate * now, rel=0.02, abs=2)


def test_without_a_rate_everything_is_allowed() -> None:
    allowance = Allowance(None, now=0.0)
    assert allowance.available(0.0, 5000) == 5000
    allowance.spend(5000)
    assert allowance.available(0.0, 5000) == 5000


def test_a_clock_set_back_takes_no_allowance_away() -> None:
    allowance = Allowance(10.0, now=1e6)
    allowance.spend(allowance.available(1e6 + 10, 10))
    assert allowance.available(5.0, 10) == 0
    assert allowance.available(6.0, 10) == 10
