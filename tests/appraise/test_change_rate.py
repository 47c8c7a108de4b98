"""Change rates from changed-or-not bits: the equation, the truth, and constant memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from bowerbird.appraise.refresh.change_rate import (
    BUCKETS_S,
    HALF_DAY_S,
    PAIR_SHAPE,
    ChangeTally,
    FloatArray,
    IntArray,
    estimate_rates,
    likelihood_slope,
    pseudo_interval_s,
    tally_visits,
    weigh_visits,
)

DAY = 86400.0
Visits = list[tuple[float, bool]]
visits = st.lists(st.tuples(st.floats(1.0, 1000 * DAY), st.booleans()), max_size=12)


def one_page(history: Visits) -> tuple[IntArray, FloatArray, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    return (
        np.array([0, len(history)]),
        np.array([interval for interval, _ in history], dtype=np.float64),
        np.array([bit for _, bit in history], dtype=bool),
    )


@given(visits)
@settings(max_examples=200, deadline=None)
def test_the_estimate_solves_the_equation(history: Visits) -> None:
    starts, intervals, changed = one_page(history)
    rate = float(estimate_rates(starts, intervals, changed).rate_per_s[0])
    low, high = (likelihood_slope(rate * (1 + eps), intervals, changed) for eps in (-1e-9, 1e-9))
    assert low > 0 > high
    exact = brentq(lambda x: likelihood_slope(x, intervals, changed), rate / 2, rate * 2, xtol=1e-18, rtol=1e-13)
    assert rate == pytest.approx(exact, rel=1e-9)


def test_without_visits_the_rate_is_that_of_the_prior() -> None:
    starts, none, bits = np.zeros(4, np.int64), np.empty(0), np.empty(0, bool)
    assert estimate_rates(starts, none, bits).rate_per_s == pytest.approx(np.full(3, math.log(2) / HALF_DAY_S))
    prior = np.array([1e-7, 1e-5, 1e-3])
    found = estimate_rates(starts, none, bits, pseudo_s=pseudo_interval_s(prior), strength=np.array([0.5, 1.0, 7.0]))
    assert found.rate_per_s == pytest.approx(prior)
    assert found.shape == pytest.approx(np.array([0.5, 1.0, 7.0]) * PAIR_SHAPE)
    with pytest.raises(ValueError, match="above 0"):
        estimate_rates(starts, none, bits, pseudo_s=0.0)


def test_a_change_raises_the_rate_and_a_quiet_visit_lowers_it() -> None:
    starts = np.array([0, 1, 2])
    found = estimate_rates(starts, np.array([DAY, DAY]), np.array([True, False])).rate_per_s
    before = math.log(2) / HALF_DAY_S
    assert found[0] > before > found[1]


def test_many_visits_find_the_true_rate_within_its_error() -> None:
    rng = np.random.default_rng(3)
    pages, each = 2000, 40
    truth = np.exp(rng.uniform(np.log(0.03), np.log(2.0), pages)) / DAY
    intervals = rng.exponential(1.0, (pages, each)) / truth[:, None]
    changed = rng.random((pages, each)) < -np.expm1(-truth[:, None] * intervals)
    starts = np.arange(pages + 1) * each
    found = estimate_rates(starts, intervals.ravel(), changed.ravel(), pseudo_s=np.log(2) / truth)
    error = (found.rate_per_s - truth) / found.standard_error_per_s
    assert abs(error.mean()) < 0.15
    assert error.std() == pytest.approx(1.0, abs=0.15)
    naive = changed.sum(axis=1) / intervals.sum(axis=1)
    assert np.mean((found.rate_per_s / truth - 1) ** 2) < np.mean((naive / truth - 1) ** 2) / 2


def test_draws_have_the_mean_and_the_error_of_the_estimate() -> None:
    rng = np.random.default_rng(5)
    starts, intervals, changed = one_page([(DAY, True), (3 * DAY, False), (2 * DAY, True), (9 * DAY, False)])
    found = estimate_rates(starts, intervals, changed)
    draws = np.array([found.draw(rng)[0] for _ in range(20_000)])
    assert draws.min() > 0
    assert draws.mean() == pytest.approx(found.rate_per_s[0], rel=0.03)
    assert draws.std() == pytest.approx(found.standard_error_per_s[0], rel=0.03)


@given(st.lists(st.tuples(st.sampled_from((3600.0, 18000.0, DAY, 7 * DAY, 30 * DAY, 90 * DAY)), st.booleans())))
@settings(max_examples=100, deadline=None)
def test_a_tally_is_exact_where_intervals_in_a_bucket_agree(history: Visits) -> None:
    found = estimate_rates(*one_page(history))
    rate, error = tally_visits(*zip(*history, strict=True)).estimate() if history else ChangeTally().estimate()
    assert rate == pytest.approx(found.rate_per_s[0], rel=1e-9)
    assert error == pytest.approx(found.standard_error_per_s[0], rel=1e-6)


@given(st.lists(st.tuples(st.floats(BUCKETS_S[0], BUCKETS_S[-1] * 0.999), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_tally_is_low_by_less_than_the_ratio_of_a_bucket(history: Visits) -> None:
    exact = float(estimate_rates(*one_page(history)).rate_per_s[0])
    rate, _ = tally_visits(*zip(*history, strict=True)).estimate()
    assert exact / 4.0 <= rate <= exact * (1 + 1e-9)


def test_a_tally_loses_little_of_real_histories() -> None:
    rng = np.random.default_rng(8)
    lost, errors = [], []
    for _ in range(200):
        truth = math.exp(rng.uniform(math.log(0.02), math.log(2.0))) / DAY
        intervals = np.exp(rng.uniform(math.log(DAY / 2), math.log(30 * DAY), 20))
        changed = rng.random(20) < -np.expm1(-truth * intervals)
        found = estimate_rates(np.array([0, 20]), intervals, changed)
        lost.append(1 - tally_visits(intervals, changed).estimate()[0] / found.rate_per_s[0])
        errors.append(found.standard_error_per_s[0] / found.rate_per_s[0])
    assert np.mean(lost) < 0.03
    assert np.max(np.array(lost) / np.array(errors)) < 0.5  # well within what 20 visits can tell


def test_a_tally_keeps_its_size() -> None:
    tally = ChangeTally()
    for k in range(1000):
        tally = tally.add(1000.0 * (k + 1), k % 3 == 0)
    assert len(tally.counts) == len(tally.totals_s) == len(BUCKETS_S) + 1
    assert sum(tally.counts) == 334
    assert tally.unchanged_s + sum(tally.totals_s) == pytest.approx(1000.0 * 500500)


def test_evidence_has_the_slope_and_curvature_of_the_visits() -> None:
    starts, intervals, changed = one_page([(DAY, True), (3 * DAY, False), (2 * DAY, True), (9 * DAY, False)])
    rate = 0.4 / DAY
    events, exposure = weigh_visits(starts, intervals, changed, rate)
    terms = intervals[changed] / np.expm1(rate * intervals[changed])
    slope = terms.sum() - intervals[~changed].sum()
    assert events[0] / rate - exposure[0] == pytest.approx(slope)
    assert events[0] / rate**2 == pytest.approx((terms * (intervals[changed] + terms)).sum())
    rare, watched = weigh_visits(starts, intervals, changed, 1e-6 / DAY)
    assert rare[0] == pytest.approx(2.0, rel=1e-4)
    assert 12 * DAY < watched[0] < 15 * DAY


def test_many_pages_at_once_are_estimated_as_one_by_one() -> None:
    rng = np.random.default_rng(1)
    pages = 200_000
    starts = np.r_[0, np.cumsum(rng.integers(0, 10, pages))]
    intervals = rng.exponential(5 * DAY, starts[-1])
    changed = rng.random(starts[-1]) < 0.5
    found = estimate_rates(starts, intervals, changed)
    assert np.all(np.isfinite(found.rate_per_s)) and np.all(found.rate_per_s > 0)
    for page in rng.integers(0, pages, 50).tolist():
        rows = slice(starts[page], starts[page + 1])
        alone = estimate_rates(np.array([0, rows.stop - rows.start]), intervals[rows], changed[rows])
        assert alone.rate_per_s[0] == found.rate_per_s[page]
        assert alone.information_s2[0] == found.information_s2[page]
