"""What a refresh gains where losses add up, until a page has lost all it has at stake."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.refresh.refresh_gain import (
    FEWEST_CHANGES,
    MOST_CHANGES,
    changes_told,
    loss_by,
    mean_loss,
    most_changes,
    refresh_due,
    refresh_index,
)

AGES = st.floats(1e-3, 100.0)
MOST = st.floats(FEWEST_CHANGES, MOST_CHANGES)


@given(AGES, MOST)
def test_the_index_is_the_best_one_under_the_loss(changes: float, most: float) -> None:
    """tau·L - integral of L over the ages up to tau, in losses of one change by Delta."""
    ages = np.linspace(0.0, changes, 20_001)
    loss = loss_by(ages, most)
    index = changes * loss[-1] - float(np.trapezoid(loss, ages))
    assert float(refresh_index(changes, np.inf, most)) == pytest.approx(index, rel=1e-3, abs=1e-9)


@given(AGES, MOST)
def test_the_mean_loss_is_that_between_two_refreshes(changes: float, most: float) -> None:
    ages = np.linspace(0.0, changes, 20_001)
    mean = float(np.trapezoid(loss_by(ages, most), ages)) / changes
    assert float(mean_loss(changes, most)) == pytest.approx(mean, rel=1e-3, abs=1e-9)


@given(AGES, MOST, st.floats(0.01, 50.0))
def test_what_comes_after_the_horizon_does_not_count(changes: float, most: float, within: float) -> None:
    """Each change that came t after the last fetch gains min(t, H): changes come evenly until the page has lost all."""
    seen = min(changes, most)
    when = np.linspace(0.0, seen, 20_001)
    gained = float(np.trapezoid(np.minimum(when, within), when))
    assert float(refresh_index(changes, within, most)) == pytest.approx(gained, rel=1e-3, abs=1e-9)
    assert float(refresh_index(changes, within, most)) <= float(refresh_index(changes, np.inf, most)) + 1e-12


@given(AGES, MOST, st.one_of(st.just(math.inf), st.floats(0.01, 50.0)))
def test_it_is_due_when_the_index_is_reached(changes: float, most: float, within: float) -> None:
    seen = min(changes, most)
    index = float(refresh_index(changes, within, most))
    assert float(refresh_due(index, within, most)) == pytest.approx(seen, rel=1e-6)
    top = float(refresh_index(most, within, most))
    assert math.isinf(float(refresh_due(top * 1.001, within, most)))


def test_stakes_bound_how_often_a_page_can_lose() -> None:
    many = most_changes([1.0, 0.5, 0.0, 1.0], [0.1, 0.5, 0.2, 1e-9])
    assert many.tolist() == [10.0, FEWEST_CHANGES, FEWEST_CHANGES, MOST_CHANGES]


@given(st.floats(1e-6, 30.0), st.floats(1e-6, 30.0))
def test_what_sites_say_makes_a_change_sure_and_not_many(told: float, by_age: float) -> None:
    changes = float(changes_told(told, by_age))
    if told <= by_age:
        assert changes == told
    else:  # surer than by age: more than that says, and no more than what age says of pages that have changed
        assert by_age * (1.0 - 1e-9) <= changes <= by_age / -np.expm1(-by_age) * (1.0 + 1e-9)


def test_changes_told_are_those_of_pages_that_changed() -> None:
    rng = np.random.default_rng(3)
    changes = rng.poisson(0.2, 400_000)
    assert float(changes_told(50.0, 0.2)) == pytest.approx(changes[changes > 0].mean(), rel=0.01)
