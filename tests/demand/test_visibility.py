"""Visibility of ranks: the formulas, and a fit that finds again what made the clicks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.demand.log import RankCounts
from bowerbird.demand.visibility import (
    Fitted,
    KStep,
    PowerLaw,
    Visibility,
    fall,
    fit_position_bias,
    make_visibility,
    power_law_visibility,
    top_k_visibility,
)
from bowerbird.model.errors import ConfigError

RANKS = np.arange(1, 201)


def simulate(bias: np.ndarray, *, queries: int, pages: int, views: int, seed: int, shuffle: bool = True) -> RankCounts:
    """Clicks of searchers who view rank r with probability bias[r - 1] and like pages as they are worth."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.1, 0.8, (queries, pages))
    sums: dict[tuple[int, int, int], list[int]] = {}
    for query in range(queries):
        for _ in range(views):
            order = rng.permutation(pages) if shuffle else np.arange(pages)
            clicked = rng.random(len(bias)) < bias * worth[query, order[: len(bias)]]
            for place in range(len(bias)):
                entry = sums.setdefault((query, int(order[place]), place + 1), [0, 0])
                entry[0] += 1
                entry[1] += int(clicked[place])
    rows = np.array([(*key, *value) for key, value in sums.items()], dtype=np.int64).T
    return RankCounts(*rows)


def test_the_power_law_follows_its_formula() -> None:
    for rank in (1, 2, 10, 1000):
        assert power_law_visibility(np.array([rank]))[0] == pytest.approx(rank**-1.5, rel=1e-15)
    assert PowerLaw(2.0)(np.array([3]))[0] == pytest.approx(1 / 9)


def test_the_step_is_one_then_nothing() -> None:
    assert top_k_visibility(RANKS, 10).tolist() == [1.0] * 10 + [0.0] * 190


@pytest.mark.parametrize("visibility", [PowerLaw(), KStep(), Fitted(np.array([1.0, 0.7, 0.7, 0.1]), 1.2)], ids=repr)
def test_visibility_starts_at_one_and_never_rises(visibility: Visibility) -> None:
    values = visibility(RANKS)
    assert values.dtype == np.float64
    assert values[0] == 1
    assert np.all(np.diff(values) <= 0)
    assert np.all((values >= 0) & (values <= 1))


def test_beyond_the_last_rank_a_power_law_goes_on() -> None:
    fitted = Fitted(np.array([1.0, 0.5]), 2.0)
    assert fitted(np.array([2, 4, 20])).tolist() == pytest.approx([0.5, 0.125, 0.005])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=30))
def test_falling_is_falling_and_keeps_the_mean(points: list[tuple[float, float]]) -> None:
    values, weights = np.array(points).T
    made = fall(values, weights)
    assert np.all(np.diff(made) <= 1e-12)
    assert np.average(made, weights=weights) == pytest.approx(np.average(values, weights=weights), abs=1e-9)
    assert fall(made, weights) == pytest.approx(made)


def test_the_fit_finds_the_bias_again() -> None:
    bias = np.arange(1.0, 9.0) ** -1.0
    fit = fit_position_bias(simulate(bias, queries=40, pages=8, views=400, seed=5))
    assert fit is not None
    assert fit.compared_share == 1
    found = fit.visibility(np.arange(1, 9))
    assert found == pytest.approx(bias, rel=0.12)
    near = np.abs(fit.estimate - bias) / np.maximum(fit.standard_error, 1e-9)
    assert np.all(near[1:] < 6)
    assert fit.visibility.exponent == pytest.approx(1.0, abs=0.15)
    assert fit.visibility(np.array([100]))[0] < found[-1] / 5
    assert int(fit.impressions.sum()) == 40 * 8 * 400


def test_the_fit_is_not_misled_by_good_pages_on_top() -> None:
    """CTR falls more steeply than views where better pages stand higher; the click model tells the two apart."""
    rng = np.random.default_rng(2)
    bias = np.arange(1.0, 6.0) ** -0.5
    sums: dict[tuple[int, int, int], list[int]] = {}
    for query in range(60):
        worth = np.sort(rng.uniform(0.02, 0.9, 5))[::-1]
        for _ in range(500):
            order = np.argsort(-(worth + rng.normal(0, 0.15, 5)))  # mostly, not always, the best on top
            clicked = rng.random(5) < bias * worth[order]
            for place in range(5):
                entry = sums.setdefault((query, int(order[place]), place + 1), [0, 0])
                entry[0] += 1
                entry[1] += int(clicked[place])
    counts = RankCounts(*np.array([(*key, *value) for key, value in sums.items()], dtype=np.int64).T)
    fit = fit_position_bias(counts)
    assert fit is not None
    rate = fit.clicks / fit.impressions
    naive = rate / rate[0]
    assert abs(fit.visibility(np.array([5]))[0] - bias[4]) < 0.08
    assert abs(naive[4] - bias[4]) > 0.2


def test_a_fit_without_clicks_is_none_and_one_without_comparison_says_so() -> None:
    empty = RankCounts(*(np.zeros(0, dtype=np.int64) for _ in range(5)))
    assert fit_position_bias(empty) is None
    ones = np.ones(1, dtype=np.int64)
    assert fit_position_bias(RankCounts(ones, ones, ones, ones * 9, ones * 0)) is None
    fixed = fit_position_bias(
        simulate(np.array([0.9, 0.4, 0.2]), queries=30, pages=3, views=200, seed=1, shuffle=False)
    )
    assert fixed is not None
    assert fixed.compared_share == 0
    values = fixed.visibility(np.arange(1, 10))
    assert np.all(np.diff(values) <= 0)


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 60), st.integers(0, 30), st.integers(0, 30)),
        min_size=1,
        max_size=20,
    )
)
def test_any_counts_give_a_usable_fit(rows: list[tuple[int, int, int, int, int]]) -> None:
    unique = {row[:3]: row for row in rows}
    counts = RankCounts(*np.array(list(unique.values()), dtype=np.int64).T)
    fit = fit_position_bias(counts)
    clicks = counts.clicks[counts.rank <= 50].sum()
    assert (fit is None) == (clicks == 0)
    if fit is not None:
        values = fit.visibility(RANKS)
        assert values[0] == pytest.approx(1)
        assert np.all(np.isfinite(values))
        assert np.all(np.diff(values) <= 1e-12)


def test_visibility_by_name() -> None:
    assert make_visibility("power") == PowerLaw()
    assert make_visibility("top-k", k=5) == KStep(5)
    assert make_visibility("fitted") == PowerLaw()
    counts = simulate(np.array([0.9, 0.3]), queries=5, pages=2, views=50, seed=1)
    assert isinstance(make_visibility("fitted", counts=counts), Fitted)
    with pytest.raises(ConfigError, match="not known"):
        make_visibility("psychic")
