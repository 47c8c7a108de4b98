"""Change rates from changed-or-not bits: visits as evidence, the equation, and the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from bowerbird.appraise.refresh.change_rate import FloatArray, IntArray, weigh_visits

DAY = 86400.0
HALF_DAY = DAY / 2
Visits = list[tuple[float, bool]]
visits = st.lists(st.tuples(st.floats(60.0, 1000 * DAY), st.booleans()), max_size=12)


def one_page(history: Visits) -> tuple[IntArray, FloatArray, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    return (
        np.array([0, len(history)]),
        np.array([interval for interval, _ in history], dtype=np.float64),
        np.array([bit for _, bit in history], dtype=bool),
    )


@given(visits)
@settings(max_examples=200, deadline=None)
def test_visits_weighed_again_and_again_solve_the_equation(history: Visits) -> None:
    """sum_changed I/(exp(Delta·I) - 1) = sum_unchanged I, with half-day pseudo-observations both ways."""
    starts, intervals, changed = one_page([*history, (HALF_DAY, True), (HALF_DAY, False)])
    rate = 0.5 / float(intervals.sum())
    for _ in range(200):
        events, exposure = weigh_visits(starts, intervals, changed, rate)
        rate = float(events[0] / exposure[0])

    def slope(x: float) -> float:
        with np.errstate(over="ignore"):
            return float((intervals[changed] / np.expm1(x * intervals[changed])).sum() - intervals[~changed].sum())

    exact = brentq(slope, 1e-12, 1.0, xtol=1e-18, rtol=1e-13)
    assert rate == pytest.approx(exact, rel=1e-6)


def test_many_visits_find_the_true_rate() -> None:
    rng = np.random.default_rng(3)
    pages, each = 2000, 40
    truth = np.exp(rng.uniform(np.log(0.03), np.log(2.0), pages)) / DAY
    intervals = rng.exponential(1.0, (pages, each)) / truth[:, None]
    changed = rng.random((pages, each)) < -np.expm1(-truth[:, None] * intervals)
    starts, rate = np.arange(pages + 1) * each, truth
    for _ in range(20):
        events, exposure = weigh_visits(starts, intervals.ravel(), changed.ravel(), rate)
        rate = events / exposure
    error = (rate - truth) / (rate / np.sqrt(events))
    assert abs(error.mean()) < 0.15
    assert error.std() == pytest.approx(1.0, abs=0.15)
    naive = changed.sum(axis=1) / intervals.sum(axis=1)
    assert np.mean((rate / truth - 1) ** 2) < np.mean((naive / truth - 1) ** 2) / 2


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
