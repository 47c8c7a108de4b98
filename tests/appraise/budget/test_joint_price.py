"""One price for refreshes and hub visits together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.budget.joint_price import Revisits, clear_together, due_ages
from bowerbird.model.bid import Bid, Shape

DAY_S = 86400.0


def made_up(seed: int, count: int, shape: Shape, budget_per_s: float) -> Revisits:
    rng = np.random.default_rng(seed)
    return Revisits(
        rng.lognormal(0.0, 2.0, count), 10.0 ** rng.uniform(-7, -4, count), shape, budget_per_s, 400 * DAY_S
    )


@given(st.integers(0, 1000), st.sampled_from([Shape.LINEAR, Shape.AREA, Shape.SATURATING]), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_an_item_is_due_when_its_bid_reaches_the_price(seed: int, shape: Shape, log_price: float) -> None:
    items, price = made_up(seed, 5, shape, 1.0), 10.0**log_price
    for age, amplitude, rate in zip(due_ages(items, price), items.amplitude, items.rate_per_s, strict=True):
        at = Bid(amplitude, rate, 0.0, shape).reaches(price, 0.0)
        assert (np.isinf(age) and at is None) or at == pytest.approx(age, rel=1e-6)


@given(st.integers(0, 1000), st.floats(-6, -2))
@settings(max_examples=40, deadline=None)
def test_all_visits_together_use_the_budgets(seed: int, log_budget: float) -> None:
    budget = 10.0**log_budget
    kinds = [made_up(seed, 200, Shape.AREA, 0.7 * budget), made_up(seed + 1, 40, Shape.SATURATING, 0.3 * budget)]
    price = clear_together(kinds, 60.0)
    asked = sum(float((1.0 / np.clip(due_ages(kind, price), 60.0, kind.longest_s)).sum()) for kind in kinds)
    least = sum(len(kind.amplitude) / kind.longest_s for kind in kinds)
    assert asked == pytest.approx(max(budget, 1.01 * least), rel=1e-3)


@given(st.integers(0, 1000), st.sampled_from([Shape.LINEAR, Shape.AREA, Shape.SATURATING]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_budget_that_the_bounds_do_not_allow_has_the_price_at_which_they_hold(
    seed: int, shape: Shape, short: bool
) -> None:
    """No price of 1e26 clicks, at which all bids would be alike, nor of 1e-27."""
    items = made_up(seed, 300, shape, 300 / (400 * DAY_S) / 2 if short else 300 / 60.0 * 2)
    price = clear_together([items], 60.0)

    def asked(at: float) -> float:
        return float((1.0 / np.clip(due_ages(items, at), 60.0, items.longest_s)).sum())

    bound = 1.01 * 300 / items.longest_s if short else 0.99 * asked(price * 1e-50)
    assert asked(price * 1.001) <= bound * 1.0001
    assert asked(price / 1.001) >= bound / 1.0001
    assert float(items.amplitude.min()) * 1e-12 < price < float(items.amplitude.max()) * 1e12


def test_items_that_are_due_at_the_same_age_at_any_price_have_a_price_all_the_same() -> None:
    items = Revisits(np.array([1.0, 2.0, 4.0]), np.ones(3), Shape.LINEAR, 1.0, 60.0)
    assert clear_together([items], 60.0) == 2.0


def test_the_same_price_whatever_the_kinds_are_called() -> None:
    """A budget that is one kind's on paper goes where it gains most."""
    pages, hubs = made_up(1, 300, Shape.AREA, 1e-3), made_up(2, 300, Shape.SATURATING, 0.0)
    moved = (made_up(1, 300, Shape.AREA, 0.0), made_up(2, 300, Shape.SATURATING, 1e-3))
    assert clear_together([pages, hubs], 60.0) == pytest.approx(clear_together(moved, 60.0))


def test_many_items_are_sampled() -> None:
    many = made_up(3, 200_000, Shape.AREA, 0.5)
    price = clear_together([many], 60.0)
    assert float((1.0 / np.clip(due_ages(many, price), 60.0, many.longest_s)).sum()) == pytest.approx(0.5, rel=0.02)


def test_nothing_to_revisit_has_no_price() -> None:
    assert clear_together([], 60.0) == 0.0
    assert clear_together([Revisits(np.zeros(3), np.ones(3), Shape.AREA, 1.0, DAY_S)], 60.0) == 0.0
