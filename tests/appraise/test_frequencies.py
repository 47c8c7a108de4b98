"""Best refresh frequencies: budgets met, equal marginal gains, and the optimum of a general solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bowerbird.appraise.refresh.frequencies import (
    Allocation,
    FloatArray,
    embarrassment_frequencies,
    freshness,
    freshness_frequencies,
    harmonic_frequencies,
    proportional_frequencies,
    random_frequencies,
    uniform_frequencies,
)
from bowerbird.model.bid import saturating_gain

Solver = Callable[[FloatArray, FloatArray, float], Allocation]
SOLVERS: dict[str, Solver] = {
    "even": embarrassment_frequencies,
    "harmonic": harmonic_frequencies,
    "random": random_frequencies,
}


def marginal(kind: str, rates: FloatArray, weights: FloatArray, frequency: FloatArray) -> FloatArray:
    """What a little more frequency gains."""
    if kind == "even":
        g = [saturating_gain(rate / f) if f > 0 else 1.0 for rate, f in zip(rates, frequency, strict=True)]
        return weights * np.array(g) / rates
    if kind == "harmonic":
        with np.errstate(divide="ignore"):
            return weights * rates / (frequency * (frequency + rates))
    return weights * rates / (frequency + rates) ** 2


def objective(kind: str, rates: FloatArray, weights: FloatArray, frequency: FloatArray) -> float:
    if kind == "even":
        return float(weights @ freshness(rates, frequency))
    if kind == "harmonic":
        return -float(weights @ np.log1p(rates / frequency))
    return float(weights @ (frequency / (frequency + rates)))  # fresh at random times


def instance(seed: int, count: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(0, 1.5, count)), np.exp(rng.normal(0, 1.5, count))


@pytest.mark.parametrize("kind", SOLVERS)
@given(seed=st.integers(0, 100_000), count=st.integers(1, 60), share=st.floats(1e-3, 50.0))
@settings(max_examples=80, deadline=None)
def test_the_budget_is_met_and_all_who_get_some_gain_the_price(kind: str, seed: int, count: int, share: float) -> None:
    rates, weights = instance(seed, count)
    budget = share * count
    found = SOLVERS[kind](rates, weights, budget)
    assert found.frequency.min() >= 0
    assert found.frequency.sum() == pytest.approx(budget, rel=1e-9)
    gain = marginal(kind, rates, weights, found.frequency)
    active = found.frequency > 0
    np.testing.assert_allclose(gain[active], found.price, rtol=1e-6)
    assert np.all(gain[~active] <= found.price * (1 + 1e-9))


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_general_solver_finds_nothing_better(kind: str, seed: int) -> None:
    rates, weights = instance(seed, 6)
    budget = 4.0
    found = SOLVERS[kind](rates, weights, budget)
    general = minimize(
        lambda f: -objective(kind, rates, weights, np.maximum(f, 1e-12)),
        np.full(6, budget / 6),
        bounds=[(1e-9, None)] * 6,
        constraints={"type": "eq", "fun": lambda f: f.sum() - budget},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = objective(kind, rates, weights, np.maximum(found.frequency, 1e-12))
    assert best >= -general.fun - 1e-9
    assert -general.fun == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(general.x, found.frequency, atol=5e-3)


def test_pages_that_change_too_often_are_given_up() -> None:
    rates = np.array([0.1, 1.0, 3.0, 1000.0])
    found = freshness_frequencies(rates, 2.0)
    assert found.frequency[3] == 0.0
    assert np.all(found.frequency[:3] > 0)
    assert found.frequency[2] / rates[2] < found.frequency[1] / rates[1] < found.frequency[0] / rates[0]
    best = freshness(rates, found.frequency).mean()
    for other in (uniform_frequencies(4, 2.0), proportional_frequencies(rates, 2.0)):
        assert other.frequency.sum() == pytest.approx(2.0)
        assert freshness(rates, other.frequency).mean() < best


@pytest.mark.parametrize("x", [1e-4, 0.01, 0.3, 1.0, 3.0, 4.7, 4.8, 6.0, 15.0, 25.0])
def test_a_page_alone_gets_the_budget_and_pays_its_marginal_gain(x: float) -> None:
    alone = embarrassment_frequencies(np.array([2.0]), np.array([6.0]), 2.0 / x)
    assert alone.frequency[0] == pytest.approx(2.0 / x, rel=1e-12)
    assert alone.price == pytest.approx(3.0 * saturating_gain(x), rel=1e-9)


@pytest.mark.parametrize("kind", SOLVERS)
@pytest.mark.parametrize("budget", [1e-200, 1e-30, 1e-15, 1e-9, 1e9])
def test_budgets_of_any_size_are_met(kind: str, budget: float) -> None:
    rates, weights = instance(5, 40)
    found = SOLVERS[kind](rates, weights, budget)
    assert found.frequency.min() >= 0
    assert found.frequency.sum() == pytest.approx(budget, rel=1e-9, abs=0.0)


def test_sbr_is_ebr_with_equal_weights_and_weights_decide_between_equal_rates() -> None:
    rates, _ = instance(3, 20)
    plain = freshness_frequencies(rates, 5.0)
    np.testing.assert_allclose(embarrassment_frequencies(rates, np.full(20, 7.0), 5.0).frequency, plain.frequency)
    weighted = embarrassment_frequencies(np.ones(3), np.array([1.0, 2.0, 4.0]), 3.0).frequency
    assert weighted[0] < weighted[1] < weighted[2]


@pytest.mark.parametrize("budget", [1e-6, 0.01, 1.0, 100.0])
def test_equal_pages_share_equally_even_where_the_price_has_no_digits_left(budget: float) -> None:
    found = freshness_frequencies(np.full(1000, 2.0), budget)
    np.testing.assert_allclose(found.frequency, budget / 1000, rtol=1e-9)
    mixed = freshness_frequencies(np.r_[np.full(500, 2.0), np.full(500, 3.0)], budget)
    assert mixed.frequency.sum() == pytest.approx(budget, rel=1e-9)
    assert np.ptp(mixed.frequency[:500]) <= 1e-12 * budget


def test_lambdacrawl_refreshes_all_and_its_formula_holds() -> None:
    rates, weights = instance(11, 50)
    found = harmonic_frequencies(rates, weights, 3.0)
    rho = (-rates + np.sqrt(rates**2 + 4 * weights * rates / found.price)) / 2
    np.testing.assert_allclose(found.frequency, rho, rtol=1e-9)
    assert found.frequency.min() > 0


def test_azar_s_frequencies_kept_evenly_are_near_the_best() -> None:
    for seed in range(10):
        rates, weights = instance(seed, 300)
        for budget in (10.0, 100.0, 1000.0):
            best = objective("even", rates, weights, embarrassment_frequencies(rates, weights, budget).frequency)
            near = random_frequencies(rates, weights, budget).frequency
            evenly = objective("even", rates, weights, near)
            assert 0.98 * best <= evenly <= best * (1 + 1e-12)
            assert objective("random", rates, weights, near) < evenly


@pytest.mark.parametrize("kind", SOLVERS)
def test_pages_without_change_or_weight_get_nothing(kind: str) -> None:
    rates, weights = np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, 0.0, 1.0, 1.0])
    found = SOLVERS[kind](rates, weights, 1.0)
    assert found.frequency[:2].tolist() == [0.0, 0.0]
    assert found.frequency.sum() == pytest.approx(1.0)
    assert SOLVERS[kind](np.zeros(3), np.ones(3), 1.0).frequency.tolist() == [0.0] * 3
    assert SOLVERS[kind](np.ones(3), np.ones(3), 0.0).frequency.tolist() == [0.0] * 3
    assert SOLVERS[kind](np.empty(0), np.empty(0), 1.0).frequency.tolist() == []


def test_freshness_is_what_a_simulation_sees() -> None:
    rng = np.random.default_rng(2)
    rate, every, visits = 0.7, 2.0, 20_000
    fresh = np.minimum(rng.exponential(1 / rate, visits), every).mean() / every
    assert freshness(np.array([rate]), np.array([1 / every]))[0] == pytest.approx(fresh, abs=0.01)


def test_proportions_and_still_pages() -> None:
    assert proportional_frequencies(np.array([1.0, 3.0]), 8.0).frequency.tolist() == [2.0, 6.0]
    weighted = proportional_frequencies(np.array([1.0, 3.0]), 8.0, weights=np.array([3.0, 1.0]))
    assert weighted.frequency.tolist() == [4.0, 4.0]
    assert proportional_frequencies(np.zeros(2), 8.0).frequency.tolist() == [4.0, 4.0]
