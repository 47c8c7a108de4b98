"""The net value of a hub against the integral, its index against the definition."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from bowerbird.appraise.hubs.net_value import net_hub_index, net_hub_value, share_within, worthless_age

profits = st.floats(0.01, 100.0)
decays = st.floats(1e-7, 1e-2)
prices = st.floats(0.001, 200.0)
ages = st.floats(1.0, 1e7)


@given(profit=profits, decay=decays, price=prices, age=ages)
@settings(deadline=None)
def test_the_value_is_the_integral(profit: float, decay: float, price: float, age: float) -> None:
    kink = math.log(profit / price) / decay if profit > price else 0.0
    end = min(age, kink)
    points = np.linspace(0.0, end, 20)
    exact = math.fsum(
        quad(lambda a: max(profit * math.exp(-decay * a) - price, 0.0), low, high)[0]
        for low, high in pairwise(points.tolist())
    )
    found = float(net_hub_value(1e-3, profit, decay, price, age))
    assert found == pytest.approx(1e-3 * exact, rel=1e-6, abs=1e-9 * profit / decay * 1e-3)


@given(profit=profits, decay=decays, price=prices, age=ages)
@settings(deadline=None)
def test_the_index_is_value_less_age_times_slope(profit: float, decay: float, price: float, age: float) -> None:
    value = float(net_hub_value(1e-3, profit, decay, price, age))
    slope = 1e-3 * max(profit * math.exp(-decay * age) - price, 0.0)
    found = float(net_hub_index(1e-3, profit, decay, price, age))
    assert found == pytest.approx(value - age * slope, rel=1e-6, abs=1e-7 * (value + age * slope + 1e-12))


@given(profit=profits, decay=decays, age=st.floats(1.0, 1e6), horizon=st.floats(1.0, 1e6))
@settings(deadline=None)
def test_with_a_horizon_the_index_is_the_clicks_between_now_and_the_next_visit(
    profit: float, decay: float, age: float, horizon: float
) -> None:
    ages, width = np.linspace(0.0, age, 20_001), age / 20_000
    gained = profit * (np.exp(-decay * ages) - np.exp(-decay * np.minimum(age, ages + horizon)))
    exact = 1e-3 * width * float(gained.sum() - 0.5 * (gained[0] + gained[-1]))
    found = float(net_hub_index(1e-3, profit, decay, 0.0, age, horizon))
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-5 * 1e-3 * profit * age)
    whole = float(net_hub_index(1e-3, profit, decay, 0.0, age))
    assert found <= whole * (1 + 1e-9) + 1e-12
    if age <= horizon:
        assert found == pytest.approx(whole, rel=1e-9)
    assert float(share_within(decay, horizon)) == pytest.approx(-math.expm1(-decay * horizon), rel=1e-6, abs=1e-6)


@given(profit=profits, decay=decays, price=prices)
@settings(deadline=None)
def test_the_index_grows_until_pages_are_worthless_and_then_stands(profit: float, decay: float, price: float) -> None:
    last = float(worthless_age(profit, decay, price))
    times = np.concatenate([np.geomspace(1.0, 1e9, 200), [last]])
    times.sort()
    index = net_hub_index(1e-3, profit, decay, price, times)
    assert (np.diff(index) >= -1e-12 * index.max()).all()
    beyond = index[times >= last]
    assert beyond == pytest.approx(float(net_hub_value(1e-3, profit, decay, price, last)), rel=1e-7, abs=1e-15)


def test_ends() -> None:
    assert worthless_age([1.0, 2.0, 1.0], 1e-3, [1.0, 1.0, 0.0]).tolist() == [
        0.0,
        pytest.approx(1e3 * math.log(2)),
        math.inf,
    ]
    assert float(net_hub_value(1e-3, 0.5, 1e-3, 1.0, 1e9)) == 0.0
    assert float(net_hub_index(1e-3, 0.5, 1e-3, 1.0, 1e9)) == 0.0
    # without a price it is the gross value, without decay it grows with age
    assert float(net_hub_value(1e-3, 2.0, 1e-3, 0.0, math.inf)) == pytest.approx(2.0)
    assert float(net_hub_value(1e-3, 2.0, 0.0, 1.0, 1e4)) == pytest.approx(10.0, rel=1e-6)


def test_columns_broadcast_and_profits_may_differ_by_page() -> None:
    rate, profit = np.array([1e-3, 2e-3]), np.array([1.0, 3.0])
    value = net_hub_value(rate[:, None], profit, 1e-4, 0.5, 3600.0)
    assert value.shape == (2, 2)
    np.testing.assert_allclose(value[1], 2 * value[0])
    # pages of 1 and 3 clicks are worth more than pages of 2: those not worth a fetch are not fetched
    mixed = net_hub_value(1e-3, profit, 1e-4, 1.5, 1e5).mean()
    assert mixed > float(net_hub_value(1e-3, 2.0, 1e-4, 1.5, 1e5))
