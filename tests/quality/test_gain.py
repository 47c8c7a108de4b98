"""The gain of a refresh by the curve alone, against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.quality.curves import ScoreRankCurve
from bowerbird.quality.gain import curve_gain, partial_sum, refresh_gain


def power(ranks: np.ndarray) -> np.ndarray:
    return ranks**-1.5


@given(st.integers(2, 60), st.integers(0, 400))
def test_partial_sums_are_close_and_never_negative(first: int, more: int) -> None:
    exact = float((np.arange(first, first + more + 1) ** -1.5).sum())
    assert float(partial_sum(first, first + more)) == pytest.approx(exact, rel=0.05)
    assert float(partial_sum(first, first - 1)) == 0.0


def test_partial_sum_of_another_exponent() -> None:
    assert float(partial_sum(5, 80, 2.0)) == pytest.approx(float((np.arange(5, 81) ** -2.0).sum()), rel=0.01)


def make_list(count: int, slope: float) -> np.ndarray:
    return 10.0 * np.arange(1.0, count + 1) ** -slope


@given(st.integers(5, 300), st.floats(0.1, 0.9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_where_the_list_is_straight_the_curve_gives_the_exact_gain(
    count: int, slope: float, one: int, other: int
) -> None:
    """A page goes from one place of the list to another: rising and falling, in and out."""
    scores = make_list(count, slope)
    curve = ScoreRankCurve.fit(np.arange(1, count + 1), scores)
    start, end = one % count, other % (count + 1)
    others = np.delete(scores, start)
    # to the level of another result, a hair lower when rising and a hair higher when falling: the rounding's side
    new = 0.0 if end == count else scores[end] * (1 - 1e-9 if end < start else 1 + 1e-9)
    if end == start:
        new = scores[start]
    exact = float(refresh_gain(scores[start], new, others, power))
    assert curve_gain(curve, scores[start], new) == pytest.approx(exact, rel=0.35, abs=0.02 * scores[0])


def test_entering_leaving_and_staying() -> None:
    scores = make_list(100, 0.5)
    curve = ScoreRankCurve.fit(np.arange(1, 101), scores)
    for new in (20.0, 4.99, 2.01, 1.2):
        exact = float(refresh_gain(0.0, new, scores, power))
        assert curve_gain(curve, 0.0, new) == pytest.approx(exact, rel=0.3, abs=0.05)
    gone = float(refresh_gain(scores[0], 0.0, scores[1:], power))
    assert curve_gain(curve, scores[0], 0.0) == pytest.approx(gone, rel=0.1)
    assert curve_gain(curve, scores[30], scores[30]) == 0.0
    assert curve_gain(curve, 0.0, 0.0) == 0.0


def test_an_answer_without_results_gains_all_of_the_first() -> None:
    empty = ScoreRankCurve.fit([], [], 0)
    assert curve_gain(empty, 0.0, 4.0) == pytest.approx(4.0)


def test_the_curve_ranks_gains_as_the_exact_formula_does() -> None:
    """On lists that are not straight, over random moves: correlation, as the approximation is used for ordering."""
    rng = np.random.default_rng(5)
    exact, approximate = [], []
    for _ in range(60):
        count = int(rng.integers(10, 500))
        scores = np.sort(rng.gamma(2.0, 2.0, count))[::-1]
        curve = ScoreRankCurve.fit(np.arange(1, count + 1), scores)
        for _ in range(10):
            start = int(rng.integers(0, count))
            new = float(rng.choice([0.0, scores[start] * rng.uniform(0.3, 2.0)]))
            exact.append(float(refresh_gain(scores[start], new, np.delete(scores, start), power)))
            approximate.append(curve_gain(curve, scores[start], new))
    assert np.corrcoef(exact, approximate)[0, 1] > 0.95


def test_a_page_that_the_curve_does_not_count_yet_is_no_trouble() -> None:
    empty = ScoreRankCurve.fit([], [], 0)
    assert curve_gain(empty, 2.0, 1.0) >= 0.0
    assert curve_gain(empty, 2.0, 0.0) >= 0.0
