"""The methods of refreshing: what each makes of a forecast, and the study that comes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.refresh.bids import RefreshOptions
from bowerbird.appraise.refresh.forecast import Forecast, forecast_pages
from bowerbird.appraise.refresh.frequencies import (
    embarrassment_frequencies,
    freshness_frequencies,
    harmonic_frequencies,
    random_frequencies,
)
from bowerbird.appraise.refresh.inputs import F64, RefreshInputs
from bowerbird.appraise.refresh.methods import METHODS
from bowerbird.appraise.refresh.signals import SignalQuality
from bowerbird.appraise.refresh.staleness import share_of_large
from bowerbird.appraise.refresh.study import KnownPages, RefreshPlan, study_refreshes
from bowerbird.appraise.refresh.user_centric import NOBODY
from bowerbird.model.bid import Shape, shape_value
from bowerbird.model.refresh_study import RefreshStudy

DAY_S = 86400.0
NOW = 1_700_000_000.0
BUDGET = 50 / (7 * DAY_S)
each_method = pytest.mark.parametrize("method", METHODS)


def random_inputs(seed: int, count: int = 50, *, visits: float = 4.0, demand: bool = True) -> RefreshInputs:
    rng = np.random.default_rng(seed)
    many = rng.poisson(visits, count)
    starts = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    total = int(starts[-1])
    rate = 10.0 ** rng.uniform(-7, -4.5, count)
    interval = rng.exponential(4 * DAY_S, total) + 60.0
    changed = rng.random(total) < -np.expm1(-np.repeat(rate, many) * interval)
    stake = rng.pareto(1.5, count) * (rng.random(count) < 0.7) * demand
    stake /= max(float(stake.sum()), 1e-300)
    gain = np.where(changed, np.repeat(stake, many) * rng.exponential(0.1, total), 0.0)
    gain[changed & (rng.random(total) < 0.2)] = np.nan
    return RefreshInputs(
        now_s=NOW,
        starts=starts,
        interval_s=interval,
        changed=changed,
        shift=np.where(changed, rng.random(total), 0.0),
        gain=gain,
        stake=stake,
        views=stake[::-1].copy(),
        levels=(rng.integers(0, 3, count), rng.integers(0, 8, count)),
        hint_age_s=np.where(rng.random(count) < 0.5, rng.exponential(9 * DAY_S, count), np.nan),
        cost=rng.uniform(0.5, 1.0, count),
    )


def ages(inputs: RefreshInputs) -> F64:
    return np.random.default_rng(inputs.count).exponential(4 * DAY_S, inputs.count)


def forecast_of(inputs: RefreshInputs, seed: int = 1) -> Forecast:
    rng = np.random.default_rng(seed)
    changes = 10.0 ** rng.uniform(-7, -5, inputs.count)
    return Forecast(
        changes_per_s=changes,
        significant_per_s=changes * rng.random(inputs.count),
        loss=rng.exponential(1e-3, inputs.count),
        certainty=rng.uniform(0.5, 9.0, inputs.count),
        scale=1.0,
    )


@each_method
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60), demand=st.booleans())
def test_every_method_bids_for_every_page(method: str, seed: int, count: int, demand: bool) -> None:
    inputs = random_inputs(seed, count, demand=demand)
    bids = METHODS[method](inputs, forecast_of(inputs, seed), RefreshOptions(BUDGET))
    assert len(bids.amplitude) == len(bids.rate_per_s) == count
    assert np.isfinite(bids.amplitude).all()
    assert np.isfinite(bids.rate_per_s).all()
    assert (bids.amplitude >= 0).all()
    assert (bids.rate_per_s >= 0).all()
    assert (bids.values(ages(inputs)) >= 0).all()
    assert bids.values(ages(inputs)).max() > 0
    assert bids.listens == method.startswith("user-centric")


@each_method
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_method_is_pure(method: str, seed: int) -> None:
    one, other = random_inputs(seed), random_inputs(seed)
    first = METHODS[method](one, forecast_of(one), RefreshOptions(BUDGET))
    again = METHODS[method](one, forecast_of(one), RefreshOptions(BUDGET))
    assert np.array_equal(first.amplitude, again.amplitude)
    assert np.array_equal(first.rate_per_s, again.rate_per_s)
    assert np.array_equal(one.interval_s, other.interval_s)
    assert np.array_equal(one.stake, other.stake)


def test_user_centric_bids_are_the_formulas() -> None:
    inputs = random_inputs(3)
    forecast = forecast_of(inputs)
    age, q, rate, growth = ages(inputs), forecast.loss, forecast.changes_per_s, forecast.growth_per_s
    x = rate * age
    expected = {
        "user-centric-linear": growth * age,
        "user-centric": growth * age**2 / 2,
        "user-centric-saturating": q / rate * (1 - (1 + x) * np.exp(-x)),
    }
    for method, values in expected.items():
        bids = METHODS[method](inputs, forecast, RefreshOptions(BUDGET))
        assert bids.values(age) == pytest.approx(values / inputs.cost, rel=1e-6)
        one = shape_value(int(bids.shape), float(bids.amplitude[0]), float(bids.rate_per_s[0] * age[0]))
        assert one == pytest.approx(bids.values(age)[0], rel=1e-6)


def test_frequency_methods_are_those_of_their_papers_and_use_the_budget() -> None:
    inputs = replace(random_inputs(5), cost=np.ones(50))
    forecast = forecast_of(inputs)
    rate, large = forecast.changes_per_s, share_of_large(inputs, 0.3)
    expected = {
        "sbr": freshness_frequencies(rate * large, BUDGET),
        "ebr": embarrassment_frequencies(rate, large, BUDGET),
        "click-ebr": embarrassment_frequencies(rate, large * inputs.views, BUDGET),
        "lambda-crawl": harmonic_frequencies(rate, inputs.views, BUDGET),
        "azar": random_frequencies(rate, inputs.views, BUDGET),
    }
    for method, allocation in expected.items():
        bids = METHODS[method](inputs, forecast, RefreshOptions(BUDGET, threshold=0.3))
        assert bids.shape is Shape.LINEAR
        assert bids.rate_per_s == pytest.approx(allocation.frequency), method
        assert bids.rate_per_s.sum() == pytest.approx(BUDGET, rel=1e-6), method
        assert bids.values(ages(inputs)) == pytest.approx(allocation.frequency * ages(inputs))
    plain = METHODS["uniform"](inputs, forecast, RefreshOptions(BUDGET))
    assert plain.rate_per_s == pytest.approx(np.full(50, BUDGET / 50))
    often = METHODS["proportional"](inputs, forecast, RefreshOptions(BUDGET))
    assert often.rate_per_s == pytest.approx(rate * BUDGET / rate.sum())


def test_cheap_fetches_are_made_more_often_for_the_same_spending() -> None:
    inputs = random_inputs(5, 60)
    for method in ("sbr", "ebr", "click-ebr", "lambda-crawl", "azar"):
        bids = METHODS[method](inputs, forecast_of(inputs), RefreshOptions(BUDGET))
        spent = float((bids.rate_per_s * inputs.cost).sum())
        assert spent == pytest.approx(BUDGET * inputs.cost.mean(), rel=1e-6), method


def test_the_share_of_large_changes_is_shrunk_to_that_of_all() -> None:
    inputs = random_inputs(1, 3)
    inputs = replace(
        inputs,
        starts=np.array([0, 4, 5, 5]),
        interval_s=np.ones(5),
        changed=np.array([True, True, True, False, True]),
        shift=np.array([0.5, 0.1, 0.05, 0.0, 0.9]),
        gain=np.zeros(5),
    )
    overall = (3 + 1) / (4 + 1)
    assert share_of_large(inputs, 0.1) == pytest.approx([(overall + 2) / 4, (overall + 1) / 2, overall])
    assert share_of_large(inputs, 1.0)[1] < share_of_large(inputs, 0.5)[1]


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("user-centric")])
def test_before_anything_is_known_of_searchers_it_says_so(method: str) -> None:
    inputs = random_inputs(2, demand=False)
    bids = METHODS[method](inputs, forecast_pages(inputs), RefreshOptions(BUDGET))
    assert bids.note == NOBODY
    assert (bids.amplitude > 0).all()
    known = random_inputs(2)
    assert METHODS[method](known, forecast_pages(known), RefreshOptions(BUDGET)).note == ""


# -- studies


def studied(seed: int, method: str, **plan: float) -> tuple[RefreshInputs, KnownPages, RefreshStudy]:
    inputs = random_inputs(seed, 300)
    rows = np.sort(np.random.default_rng(seed).choice(1000, 300, replace=False))
    pages = KnownPages(rows, rows % 7, 1000, 9)
    signals = SignalQuality(*(np.full(9, value) for value in (8.0, 2.0, 1.0, 1e8)))
    return inputs, pages, study_refreshes(inputs, method, pages, RefreshPlan(7 * DAY_S, **plan), signals)


@each_method
def test_a_study_spends_what_a_fixed_interval_would(method: str) -> None:
    inputs, pages, study = studied(4, method)
    budget = 300 / (7 * DAY_S)
    assert study.budget_per_s == pytest.approx(budget)
    assert float(study.info["spent"]) == pytest.approx(budget * inputs.cost.mean(), rel=0.02)
    assert (~np.isnan(study.amplitude)).nonzero()[0].tolist() == pages.rows.tolist()
    interval = study.interval_s[pages.rows]
    assert interval.max() <= 140 * DAY_S * 1.001
    assert interval.min() >= 60.0
    if not study.recall.size:
        assert float((inputs.cost / interval).sum()) == pytest.approx(float(study.info["spent"]), rel=1e-3)
    assert study.default_interval_s == pytest.approx(300 / (1 / interval).sum(), rel=1e-4)
    of_host = pages.hosts == 2
    assert study.host_interval_s[2] == pytest.approx(of_host.sum() / (1 / interval[of_host]).sum(), rel=1e-4)
    assert np.isnan(study.host_interval_s[7:]).all()
    assert len(study.recall) == (9 if method.startswith("user-centric") else 0)


def test_exploring_more_leaves_no_page_as_long() -> None:
    for explore in (0.01, 0.05, 0.5):
        _, pages, study = studied(6, "user-centric-saturating", explore=explore)
        longest = min(7 * DAY_S / explore, 365 * DAY_S)
        # a little is left over where no price spends it, and goes to those that wait longest
        assert 0.7 * longest < study.interval_s[pages.rows].max() <= 1.001 * longest
    _, pages, even = studied(6, "user-centric", explore=1.0)
    assert even.interval_s[pages.rows] == pytest.approx(np.full(300, 7 * DAY_S), rel=0.05)


def test_a_study_says_how_long_a_page_may_wait() -> None:
    assert studied(6, "user-centric")[2].longest_s == pytest.approx(140 * DAY_S)
    assert studied(6, "sbr", explore=0.001)[2].longest_s == 365 * DAY_S
    assert studied(6, "sbr", longest_s=1.0)[2].longest_s == 60.0
    boundless = studied(6, "user-centric-saturating", explore=0.0, longest_s=np.inf)[2]
    assert np.isfinite(boundless.longest_s)
    assert np.nanmax(boundless.interval_s) <= boundless.longest_s * 1.001


def test_a_date_to_come_is_none_to_count_on() -> None:
    inputs, pages, study = studied(4, "user-centric")
    none = replace(inputs, hint_age_s=np.full(300, np.nan))
    ahead = replace(inputs, hint_age_s=np.full(300, -5000.0))
    signals = SignalQuality(*(np.full(9, value) for value in (8.0, 2.0, 1.0, 1e8)))
    first, second = (
        study_refreshes(one, "user-centric", pages, RefreshPlan(7 * DAY_S), signals) for one in (none, ahead)
    )
    assert first.price == second.price != study.price
    assert first.info["dated"] == second.info["dated"] == 0


def test_a_crawl_without_pages_can_be_studied() -> None:
    inputs = random_inputs(1, 0)
    none = np.zeros(0, dtype=np.int64)
    for method in METHODS:
        study = study_refreshes(inputs, method, KnownPages(none, none, 5, 2), RefreshPlan(7 * DAY_S))
        assert np.isnan(study.amplitude).all()
        assert study.default_interval_s == 7 * DAY_S


def test_a_budget_that_cannot_be_spent_is_told() -> None:
    inputs = random_inputs(4)
    pages = KnownPages(np.arange(inputs.count), np.zeros(inputs.count, np.int64), inputs.count, 1)
    short = study_refreshes(inputs, "sbr", pages, RefreshPlan(30.0, 60.0, 365 * DAY_S, 0.05, 0.1))
    assert "below refresh.min_interval_s (60)" in str(short.info["note"])
    assert "note" not in study_refreshes(inputs, "sbr", pages, RefreshPlan(90.0, 60.0, 365 * DAY_S, 0.05, 0.1)).info
