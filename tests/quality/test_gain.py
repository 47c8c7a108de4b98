"""The gain of a refresh by the curve alone, against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.demand.visibility import Fitted, KStep, PowerLaw
from bowerbird.quality.answers import Visibility
from bowerbird.quality.curves import ScoreRankCurve
from bowerbird.quality.gain import curve_gain, partial_sum, refresh_gain, tabulate_views
from bowerbird.quality.gain_kernels import SHORT, WHOLE, curve_gain_of, integrate_powers, view

SCORE = st.just(0.0) | st.floats(0.01, 20.0)
VISIBILITIES = [PowerLaw(), PowerLaw(1.0), PowerLaw(0.5), KStep(10), KStep(100), Fitted(np.linspace(1, 0.2, 50), 2.0)]


def power(ranks: np.ndarray) -> np.ndarray:
    return ranks**-1.5


@given(st.integers(2, 60), st.integers(0, 400))
def test_partial_sums_are_close_and_never_negative(first: int, more: int) -> None:
    exact = float((np.arange(first, first + more + 1) ** -1.5).sum())
    assert float(partial_sum(first, first + more)) == pytest.approx(exact, rel=0.05)
    assert float(partial_sum(first, first - 1)) == 0.0


@settings(deadline=None)
@given(st.integers(2, 60), st.integers(0, 400), st.sampled_from([0.5, 1.5, 2.0]))
def test_the_compiled_partial_sum_is_the_same(first: int, more: int, exponent: float) -> None:
    expected = float(partial_sum(first, first + more, exponent))
    assert integrate_powers(first, first + more, exponent) == pytest.approx(expected, rel=1e-9)


def test_partial_sum_of_another_exponent() -> None:
    assert float(partial_sum(5, 80, 2.0)) == pytest.approx(float((np.arange(5, 81) ** -2.0).sum()), rel=0.01)


def make_list(count: int, slope: float) -> np.ndarray:
    return 10.0 * np.arange(1.0, count + 1) ** -slope


@settings(deadline=None)
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


def direct_gain(curve: ScoreRankCurve, old: float, new: float, visibility: Visibility) -> float:
    """By every rank between the two: who is there goes one place down, or up."""
    rising = new > old
    last = max(curve.total + (0 if old > 0 else 1), 1)

    def whole(score: float) -> int:
        rank = float(curve.rank(score))
        return int(np.clip(np.ceil(rank * (1 - WHOLE)) if rising else np.floor(rank * (1 + WHOLE)), 1, last))

    r1, r2 = whole(old) if old > 0 else last, whole(new) if new > 0 else last
    if old > 0 and (r2 > r1 if rising else r2 < r1):
        r2 = r1
    views = np.append(0.0, visibility(np.arange(1, last + 1)))
    gain = ((views[r2] if new > 0 else 0.0) - (views[r1] if old > 0 else 0.0)) * new
    if r2 < r1:
        ranks = np.arange(r2, r1)
        gain -= float((views[ranks] - views[ranks + 1]) @ curve.score(ranks))
    else:
        ranks = np.arange(r1 + 1, r2 + 1)
        gain += float((views[ranks - 1] - views[ranks]) @ curve.score(ranks))
    return max(float(gain), 0.0)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=SHORT), SCORE, SCORE, st.sampled_from(VISIBILITIES))
def test_the_closed_form_is_the_direct_sum(scores: list[float], old: float, new: float, visibility: Visibility) -> None:
    curve = ScoreRankCurve.fit(np.arange(1, len(scores) + 1), sorted(scores, reverse=True))
    closed = curve_gain_of(curve.row.astype(np.float64), old, new, *tabulate_views(visibility))
    assert closed == pytest.approx(direct_gain(curve, old, new, visibility), rel=1e-6, abs=1e-9)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(SHORT, 20_000), st.lists(st.floats(0.01, 3.0), min_size=3, max_size=3), SCORE, SCORE,
    st.sampled_from(VISIBILITIES),
)  # fmt: skip
def test_long_sums_by_integrals_are_near_the_direct_sum(
    total: int, falls: list[float], old: float, new: float, visibility: Visibility
) -> None:
    ends = np.array([2.0, *(2.0 - np.cumsum(falls))])
    curve = ScoreRankCurve(np.array([total, *ends], dtype=np.float32))
    closed = curve_gain_of(curve.row.astype(np.float64), old, new, *tabulate_views(visibility))
    size = float(visibility(np.array([SHORT]))[0]) * float(curve.score(SHORT))  # of what is summed by integrals
    expected = direct_gain(curve, old, new, visibility)
    assert closed == pytest.approx(expected, rel=2e-3, abs=5e-3 * size + 1e-9)


def test_views_are_tabulated_until_they_are_a_power_law() -> None:
    for visibility in VISIBILITIES:
        views, exponent = tabulate_views(visibility)
        for rank in (1, 2, 10, 11, 50, 51, 64, 65, 100, 101, 128, 129, 5000):
            assert view(views, exponent, rank) == pytest.approx(float(visibility(np.array([rank]))[0]), rel=1e-6), rank
    assert len(tabulate_views(PowerLaw())[0]) == SHORT


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.01, 10.0), min_size=2, max_size=30, unique=True), st.data())
def test_a_page_that_enters_the_curves_own_answer_gains_exactly(scores: list[float], choices: st.DataObject) -> None:
    curve = ScoreRankCurve.fit(np.arange(1, len(scores) + 1), sorted(scores, reverse=True))
    answer = curve.score(np.arange(1, len(scores) + 1))
    place = choices.draw(st.integers(1, len(scores) - 1))
    new = float(np.sqrt(answer[place - 1] * answer[place]))  # between two results
    assert curve_gain(curve, 0.0, new) == pytest.approx(
        float(refresh_gain(0.0, new, answer, power)), rel=1e-3, abs=1e-6
    )
