"""Intervals of hubs: the amplitudes against how pages appear, the schedules against others that the budget allows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.hubs.gains import saturating_gains
from bowerbird.appraise.hubs.intervals import (
    Schedule,
    best_intervals,
    hub_amplitude,
    poisson_amplitude,
    profit_rate,
    schedule_profit,
    share_budget,
    solve_intervals,
)
from bowerbird.appraise.hubs.net_value import net_hub_index

F64 = npt.NDArray[np.float64]


def draw(count: int, seed: int) -> tuple[F64, F64, F64]:
    """Profit, decay and rate of hubs that differ much."""
    rng = np.random.default_rng(seed)
    profit = np.exp(rng.normal(0.0, 1.2, count))
    decay = np.exp(rng.normal(math.log(1 / 40_000), 0.8, count))
    return profit, decay, np.exp(rng.normal(math.log(1 / 20_000), 1.5, count))


def cost(schedule: Schedule, rate: F64, count_pages: bool = True) -> float:
    """Fetches per second, the marginal hub's pages by its share."""
    visited = np.isfinite(schedule.interval_s).astype(float)
    if schedule.marginal >= 0:
        visited[schedule.marginal] = schedule.share
    return float((1 / schedule.interval_s).sum() + count_pages * (visited * rate).sum())


worlds = st.builds(draw, st.integers(1, 12), st.integers(0, 10_000))
budgets = st.floats(0.02, 5.0)  # of the sum of rates


def test_the_printed_amplitude_is_the_sum_over_pages_that_appear_evenly() -> None:
    profit, decay, rate = 3.0, 1e-4, 2e-4
    for pages in (1, 2, 7, 40):
        interval = pages / rate
        gained = math.fsum(profit * math.exp(-decay * k / rate) for k in range(pages))
        formula = hub_amplitude(profit, decay, rate)[0] * -math.expm1(-decay * interval)
        assert formula == pytest.approx(gained, rel=1e-12)


def test_the_poisson_amplitude_is_the_mean_over_pages_that_appear_by_chance() -> None:
    rng = np.random.default_rng(1)
    profit, decay, rate, interval = 3.0, 1e-4, 2e-5, 15_000.0
    counts = rng.poisson(rate * interval, 400_000)
    ages = rng.uniform(0.0, interval, int(counts.sum()))
    gained = profit * np.exp(-decay * ages).sum() / len(counts)
    formula = poisson_amplitude(profit, decay, rate)[0] * -math.expm1(-decay * interval)
    assert gained == pytest.approx(formula, rel=0.02)
    # the printed one takes these visits, most of which find nothing, to find a fresh page
    assert hub_amplitude(profit, decay, rate)[0] / poisson_amplitude(profit, decay, rate)[0] == pytest.approx(
        5.03, rel=0.01
    )


def test_both_amplitudes_agree_for_busy_hubs_and_for_fading_that_is_hardly_any() -> None:
    rate = np.array([1e-3, 1.0, 1e3])
    np.testing.assert_allclose(hub_amplitude(2.0, 1e-7, rate), poisson_amplitude(2.0, 1e-7, rate), rtol=1e-4)
    assert np.isfinite(hub_amplitude(1.0, 0.0, 1.0)).all()
    assert hub_amplitude([1.0, 0.0, 1.0], 1e-4, [0.0, 1.0, math.nan]).tolist() == [0.0, 0.0, 0.0]
    assert poisson_amplitude([1.0, 0.0], 1e-4, [0.0, 1.0]).tolist() == [0.0, 0.0]


@given(world=worlds, part=budgets, pages=st.booleans())
@settings(deadline=None)
def test_algorithm_1_meets_stationarity_and_budget(world: tuple[F64, F64, F64], part: float, pages: bool) -> None:
    profit, decay, rate = world
    budget = part * float(rate.sum())
    found = solve_intervals(profit, decay, rate, budget, count_pages=pages)
    amplitude = hub_amplitude(profit, decay, rate)
    active = np.isfinite(found.interval_s)
    bid = amplitude * saturating_gains(decay * np.where(active, found.best_interval_s(), 1.0))
    np.testing.assert_allclose(bid[active], found.price, rtol=1e-9)
    assert (amplitude[~active] <= found.price * (1 + 1e-9)).all()
    assert cost(found, rate, pages) == pytest.approx(budget, rel=1e-9)
    assert found.spent_per_s == pytest.approx(budget, rel=1e-9)
    assert 0.0 <= found.share <= 1.0


@given(world=worlds, part=budgets)
@settings(deadline=None)
def test_the_best_meets_stationarity_budget_and_leaves_out_losses(world: tuple[F64, F64, F64], part: float) -> None:
    profit, decay, rate = world
    budget = part * float(rate.sum())
    found = best_intervals(profit, decay, rate, budget)
    amplitude = poisson_amplitude(profit, decay, rate)
    active = np.isfinite(found.interval_s)
    best = np.where(active, found.best_interval_s(), 1.0)
    np.testing.assert_allclose((amplitude * saturating_gains(decay * best))[active], found.price, rtol=1e-9)
    oldest = profit * np.exp(-decay * best)
    assert (oldest[active] >= found.price * (1 - 1e-9)).all()
    assert cost(found, rate) == pytest.approx(budget, rel=1e-9)
    # left out is what never bids the price net of its pages: one price for visits and pages says the same
    bound = net_hub_index(rate, profit, decay, found.price, math.inf)
    assert (bound[active] >= found.price * (1 - 1e-9)).all()
    assert (bound[~active] <= found.price * (1 + 1e-9)).all()


@given(world=worlds, part=budgets, seed=st.integers(0, 1000))
@settings(deadline=None)
def test_no_random_schedule_beats_the_best(world: tuple[F64, F64, F64], part: float, seed: int) -> None:
    profit, decay, rate = world
    budget = part * float(rate.sum())
    amplitude = poisson_amplitude(profit, decay, rate)
    best = schedule_profit(best_intervals(profit, decay, rate, budget), amplitude, decay)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        chosen = rng.random(len(rate)) < rng.random()
        rest = budget - float(rate[chosen].sum())
        if rest <= 0 or not chosen.any():
            continue
        often = np.where(chosen, rng.gamma(0.7, size=len(rate)) * amplitude ** rng.choice([0.0, 0.5, 1.0]), 0.0)
        often *= rest / often.sum()
        with np.errstate(divide="ignore"):
            other = float(profit_rate(amplitude, decay, 1 / often).sum())
        assert other <= best * (1 + 1e-9)


@given(world=st.builds(draw, st.integers(1, 6), st.integers(0, 10_000)), part=budgets)
@settings(deadline=None, max_examples=30)
def test_no_choice_of_hubs_beats_the_best(world: tuple[F64, F64, F64], part: float) -> None:
    """Every subset of hubs, each with its own best intervals; the share of one hub is all that lies between."""
    profit, decay, rate = world
    budget = part * float(rate.sum())
    amplitude = poisson_amplitude(profit, decay, rate)
    best = best_intervals(profit, decay, rate, budget)
    gained = schedule_profit(best, amplitude, decay)
    others = [0.0]
    for size in range(1, len(rate) + 1):
        for chosen in map(list, itertools.combinations(range(len(rate)), size)):
            rest = budget - float(rate[chosen].sum())
            if rest > 0:
                found = share_budget(amplitude[chosen], decay[chosen], np.zeros(size), rest)
                others.append(schedule_profit(found, amplitude[chosen], decay[chosen]))
    assert max(others) <= gained * (1 + 1e-9)
    if best.marginal < 0:
        assert max(others) == pytest.approx(gained, rel=1e-6)


@given(world=worlds, part=budgets, seed=st.integers(0, 1000), pages=st.booleans())
@settings(deadline=None)
def test_algorithm_1_beats_random_schedules_of_the_same_hubs(
    world: tuple[F64, F64, F64], part: float, seed: int, pages: bool
) -> None:
    profit, decay, rate = world
    budget = part * float(rate.sum())
    amplitude = hub_amplitude(profit, decay, rate)
    found = solve_intervals(profit, decay, rate, budget, count_pages=pages)
    active = np.isfinite(found.interval_s)
    if found.marginal >= 0:
        active[found.marginal] = False
    visits = float((1 / found.interval_s[active]).sum())
    gained = float(profit_rate(amplitude, decay, found.interval_s)[active].sum())
    rng = np.random.default_rng(seed)
    for _ in range(30):
        often = np.where(active, rng.gamma(0.7, size=len(rate)) * amplitude ** rng.choice([0.0, 0.5, 1.0]), 0.0)
        if not pages and found.marginal < 0:  # then hubs left out may be visited too
            often = rng.gamma(0.7, size=len(rate))
        if often.sum() > 0:
            often *= visits / often.sum()
            with np.errstate(divide="ignore"):
                assert float(profit_rate(amplitude, decay, 1 / often).sum()) <= gained * (1 + 1e-9)


def test_the_published_rule_loses_much_where_pages_are_most_of_the_budget() -> None:
    profit, decay, rate = draw(3000, 7)
    amplitude = poisson_amplitude(profit, decay, rate)
    for part, least in ((0.22, 1.5), (0.43, 1.3), (0.87, 1.05)):
        budget = part * float(rate.sum())
        published = schedule_profit(solve_intervals(profit, decay, rate, budget), amplitude, decay)
        best = schedule_profit(best_intervals(profit, decay, rate, budget), amplitude, decay)
        assert best > least * published


@given(world=worlds, low=budgets, high=budgets)
@settings(deadline=None)
def test_more_budget_gains_more_at_a_lower_price(world: tuple[F64, F64, F64], low: float, high: float) -> None:
    profit, decay, rate = world
    amplitude = poisson_amplitude(profit, decay, rate)
    less, more = (best_intervals(profit, decay, rate, p * float(rate.sum())) for p in sorted((low, high)))
    assert more.price <= less.price * (1 + 1e-9)
    assert schedule_profit(more, amplitude, decay) >= schedule_profit(less, amplitude, decay) * (1 - 1e-9)


@pytest.mark.parametrize("solve", [solve_intervals, best_intervals])
class TestDegenerate:
    def test_no_hubs(self, solve: Callable[..., Schedule]) -> None:
        found = solve([], [], [], 1.0)
        assert len(found.interval_s) == 0
        assert found.spent_per_s == 0.0

    def test_one_hub_has_what_its_pages_leave(self, solve: Callable[..., Schedule]) -> None:
        found = solve([1.0], [1e-4], [0.01], 0.05)
        assert found.interval_s[0] == pytest.approx(1 / 0.04, rel=1e-9)
        assert found.marginal == -1

    def test_a_budget_below_the_pages_of_one_hub(self, solve: Callable[..., Schedule]) -> None:
        found = solve([1.0], [1e-4], [0.01], 0.004)
        best = found.best_interval_s()[0]
        assert found.marginal == 0
        assert found.share == pytest.approx(0.004 / (0.01 + 1 / best), rel=1e-9)
        assert cost(found, np.array([0.01])) == pytest.approx(0.004, rel=1e-9)

    @pytest.mark.parametrize("budget", [0.0, -1.0, math.nan])
    def test_no_budget(self, solve: Callable[..., Schedule], budget: float) -> None:
        found = solve([1.0, 2.0], 1e-4, 0.01, budget)
        assert np.isinf(found.interval_s).all()
        assert found.spent_per_s == 0.0

    def test_no_rates_and_no_profit(self, solve: Callable[..., Schedule]) -> None:
        for profit, rate in ((1.0, [0.0, 0.0]), ([0.0, 0.0], 1.0), (-1.0, [1.0, 1.0])):
            found = solve(profit, 1e-4, rate, 0.5)
            assert np.isinf(found.interval_s).all()

    def test_some_without_rate_or_profit_are_not_visited(self, solve: Callable[..., Schedule]) -> None:
        found = solve([1.0, 0.0, 1.0, math.nan], 1e-4, [0.01, 0.01, 0.0, 0.01], 0.05)
        assert np.isfinite(found.interval_s).tolist() == [True, False, False, False]
        assert found.spent_per_s == pytest.approx(0.05)

    @pytest.mark.parametrize("budget", [1e-9, 0.003, 1.0, 4.996, 5.0, 5.004, 60.0, 1e6])
    def test_all_equal(self, solve: Callable[..., Schedule], budget: float) -> None:
        rate = np.full(1000, 0.005)
        found = solve(np.ones(1000), 1e-4, rate, budget)
        assert cost(found, rate) == pytest.approx(budget, rel=1e-9)
        best = found.best_interval_s()
        whole = best[np.isfinite(best)]
        assert whole.max() == pytest.approx(whole.min(), rel=1e-6)

    def test_interest_that_never_fades(self, solve: Callable[..., Schedule]) -> None:
        found = solve([1.0, 1.0], [0.0, 1e-4], 0.001, 0.01)
        assert found.interval_s[0] > 100 * found.interval_s[1]
        assert cost(found, np.full(2, 0.001)) == pytest.approx(0.01, rel=1e-9)

    def test_budget_for_everything_meets_the_floor(self, solve: Callable[..., Schedule]) -> None:
        profit, decay, rate = draw(50, 3)
        found = solve(profit, decay, rate, 1e3, floor_s=60.0)
        np.testing.assert_allclose(found.interval_s, 60.0)
        assert found.price == 0.0
        assert found.spent_per_s == pytest.approx(50 / 60 + rate.sum())

    def test_a_floor_that_binds_for_some(self, solve: Callable[..., Schedule]) -> None:
        profit, decay, rate = draw(50, 4)
        budget = 0.5 * float(50 / 600 + rate.sum())
        found = solve(profit, decay, rate, budget, floor_s=600.0)
        free = solve(profit, decay, rate, budget)
        assert free.interval_s.min() < 600.0
        assert found.interval_s.min() == pytest.approx(600.0)
        assert cost(found, rate) == pytest.approx(budget, rel=1e-9)

    def test_very_unequal_hubs(self, solve: Callable[..., Schedule]) -> None:
        rate, decay = np.array([1e-9, 1.0, 1e-4]), np.array([1e-2, 1e-9, 1e-5])
        for part in (1e-12, 1e-6, 0.3, 1.0, 1.1, 1e4):
            found = solve([1e9, 1e-9, 1.0], decay, rate, part * rate.sum())
            assert cost(found, rate) == pytest.approx(part * rate.sum(), rel=1e-6)


def test_the_marginal_hub_is_between_left_out_and_whole() -> None:
    profit, decay, rate = draw(40, 11)
    shares = []
    for part in np.linspace(0.2, 0.9, 60):
        found = best_intervals(profit, decay, rate, part * float(rate.sum()))
        if found.marginal >= 0:
            shares.append(found.share)
            stretched, best = found.interval_s[found.marginal], found.best_interval_s()[found.marginal]
            assert best == pytest.approx(found.share * stretched)
    assert len(shares) > 10
    assert all(0.0 < each < 1.0 for each in shares)
