"""The price follows the budget; the allowance never lets more through than the rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.schedule.price import Allowance, Price


def test_it_moves_to_what_the_least_of_the_last_fetches_bid_and_falls_to_the_reserve_when_idle() -> None:
    price = Price(reserve=2.0, budget_per_s=10.0)
    for second in range(60):
        price.observe([9.0] * 9 + [1000.0], float(second), pressed=True)
    assert price.value == pytest.approx(9.0)
    for second in range(60, 90):
        price.observe([50.0] * 3, float(second), pressed=False)  # there was room for more
    assert price.value == 2.0


def test_it_moves_step_by_step() -> None:
    price = Price(reserve=1.0, budget_per_s=10.0, response_s=3.0)
    price.observe([], 0.0, pressed=True)
    price.observe([1e6] * 30, 3.0, pressed=True)
    assert price.value == pytest.approx(math.e)


def test_without_a_budget_the_reserve_is_the_price() -> None:
    price = Price(reserve=1.5)
    for second in range(100):
        price.observe([10_000.0], float(second), pressed=True)
    assert price.value == 1.5


@given(
    st.lists(
        st.tuples(st.lists(st.floats(0.0) | st.just(math.nan), max_size=5), st.floats(-1e5, 1e6), st.booleans()),
        max_size=50,
    ),
    st.floats(1e-3, 1e4),
)
def test_it_is_never_below_the_reserve_and_always_a_number(
    steps: list[tuple[list[float], float, bool]], budget: float
) -> None:
    price = Price(reserve=1.0, budget_per_s=budget)
    now = 0.0
    for taken, elapsed, pressed in steps:
        now += elapsed
        price.observe(taken, now, pressed=pressed)
        assert price.value >= 1.0
        assert math.isfinite(price.value)


def test_a_clock_set_back_does_not_stop_it() -> None:
    price = Price(1.0, 10.0)
    price.observe([], 1e6, pressed=True)
    price.observe([5.0] * 30, 0.0, pressed=True)
    price.observe([5.0] * 30, 60.0, pressed=True)
    assert price.value == pytest.approx(5.0)


def test_in_another_unit_it_is_the_same() -> None:
    price = Price(1.0, 10.0)
    for second in range(30):
        price.observe([6.0] * 10, float(second), pressed=True)
    price.convert(0.5)
    assert price.value == pytest.approx(3.0)
    price.observe([], 31.0, pressed=True)  # nothing new: the last fetches bid 3 as well
    assert price.value == pytest.approx(3.0)


@pytest.mark.parametrize("budget_per_s", [0.5, 5.0, 50.0])
def test_in_a_market_of_new_pages_it_is_what_the_last_of_them_bids(budget_per_s: float) -> None:
    """Pages that bid the same for as long as they wait; each second the best are taken: the price is near the edge."""
    rng = np.random.default_rng(11)
    price = Price(reserve=0.01, budget_per_s=budget_per_s)
    waiting = rng.lognormal(size=2000).tolist()
    taken: list[float] = []
    credit = 0.0
    for second in range(200):
        waiting += rng.lognormal(size=rng.poisson(10 * budget_per_s)).tolist()
        waiting.sort()
        credit += budget_per_s
        some = [waiting.pop() for _ in range(int(credit))]
        credit -= len(some)
        taken += some
        price.observe(some, float(second), pressed=True)
    last = taken[-max(20, round(10 * budget_per_s)) :]
    assert min(last) <= price.value <= float(np.quantile(last, 0.3))


def test_in_a_market_of_refreshes_it_is_what_theory_gives() -> None:
    """Linear bids age/interval: at price p a page is fetched every p intervals, so p = sum(1/interval)/budget."""
    rng = np.random.default_rng(5)
    interval = rng.lognormal(4.0, 1.0, 3000)
    budget_per_s = float(np.sum(1 / interval)) / 3.0
    price = Price(reserve=1.0, budget_per_s=budget_per_s)
    last = -rng.random(3000) * interval
    prices, credit = [], 0.0
    for now in range(4000):
        credit += budget_per_s
        value = (now - last) / interval
        best = np.argsort(-value)[: int(credit)]
        credit -= len(best)
        last[best] = now
        price.observe(value[best].tolist(), float(now), pressed=True)
        prices.append(price.value)
    assert float(np.mean(prices[2000:])) == pytest.approx(3.0, rel=0.1)


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
