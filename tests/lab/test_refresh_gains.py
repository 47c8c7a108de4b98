"""Gains by local scores, gains of two halves, and budgets for equal quality."""

from __future__ import annotations

import doctest
import importlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.refresh_toy import Toy, toys

from bowerbird.lab.refresh_budgets import budget_to_reach
from bowerbird.lab.refresh_gains import exact_gains_by_update
from bowerbird.lab.refresh_halves import compare_halves
from bowerbird.lab.refresh_local_gains import gains_when_stale, local_gains_by_update, rank_correlation
from bowerbird.lab.refresh_policies import refresh_none
from bowerbird.lab.refresh_replay import Replay, Truth
from bowerbird.lab.refresh_scores import score_versions


@pytest.mark.parametrize("name", ["refresh_budgets", "refresh_local_gains", "refresh_measures", "refresh_signals"])
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"bowerbird.lab.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


@given(toy=toys(), share=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=40, deadline=None)
def test_local_gains_are_exact_where_only_one_page_changed(toy: Toy, share: float) -> None:
    """Then the scores that the repository has of the others are those that are live."""
    data = toy.data()
    truth = Truth(score_versions(data, data.workloads["web"], "tf-idf"))
    exact, local = exact_gains_by_update(truth), local_gains_by_update(truth)
    for updates in truth.updates:
        if len(updates) == 1:
            assert local[updates] == pytest.approx(exact[updates], abs=1e-12)
    state = Replay(truth)
    for _ in truth.updates:
        state.begin_week()
        if len(state.stale) == 1:
            assert state.gains(by_local=True) == pytest.approx(state.gains(), abs=1e-12)
    stale = gains_when_stale(truth, refresh_none, share)
    assert len(stale.exact) == len(stale.local) == data.updates


def test_local_gains_take_other_pages_as_they_are_stored() -> None:
    """Two of three pages lose the word: the repository does not know it of the second when it refreshes the first."""
    texts: list[list[list[str] | None]] = [[["car"], ["bus"]], [["car", "red"], ["bus"]], [["car"], None]]
    data = Toy(texts, [2, 1, 1], {("car",): 1.0}).data()
    truth = Truth(score_versions(data, data.workloads["web"], "in-link"))
    second, third = 2**-1.5, 3**-1.5
    assert truth.best[1] == 1.0
    assert exact_gains_by_update(truth)[1] == pytest.approx(second - third)  # only the third page is worth a place
    assert local_gains_by_update(truth)[1] == pytest.approx((1 - second) + (second - third))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=5, max_size=30))
@settings(deadline=None)
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    one, other = np.array(pairs, dtype=np.float64).T
    found = rank_correlation(one, other)
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(one, other).statistic, abs=1e-9)


def test_halves_by_hand() -> None:
    """Weeks 1 and 2 against 3 and 4; a page updated in one half only is left out."""
    texts: list[list[list[str] | None]] = [
        [["a"], ["b"], ["c"], ["d"], None],
        [["a"], ["b"], None, None, None],
        [["a"], None, ["b"], None, ["c"]],
    ]
    data = Toy(texts, [1, 1, 1], {("a",): 1.0}).data()
    gains = np.zeros(len(data.week))
    gains[data.first[0] + 1 : data.first[0] + 4] = 2.0, 4.0, 5.0
    gains[data.first[2] + 1 : data.first[2] + 3] = 0.0, 7.0
    halves = compare_halves(data, gains)
    assert halves.page.tolist() == [0, 2]
    assert halves.first.tolist() == [3.0, 0.0]
    assert halves.second.tolist() == [5.0, 7.0]
    assert halves.positive.page.tolist() == [0]
    assert math.isnan(halves.correlation)


def test_budgets_for_equal_quality() -> None:
    """Straight in logarithms; the least that stays enough; none that is enough; the first that is."""
    losses = {0.01: 100.0, 0.02: 50.0, 0.05: 60.0, 0.1: 10.0}
    assert budget_to_reach(losses, 10.0) == pytest.approx(0.1)
    assert budget_to_reach(losses, 9.0) == math.inf
    assert 0.05 < budget_to_reach(losses, 55.0) < 0.1  # at 2% it was enough by luck, at 5% it was not
    assert budget_to_reach(losses, 70.0) == pytest.approx(0.01 * 2 ** (math.log(100 / 70) / math.log(2)))
    assert budget_to_reach(losses, 200.0) == 0.01
    assert budget_to_reach({0.01: 3.0, 0.1: 0.0}, 0.0) == pytest.approx(0.1)
    assert budget_to_reach({}, 1.0) == math.inf
    assert budget_to_reach(losses, math.nan) == math.inf


@given(st.lists(st.floats(0.01, 500.0), min_size=2, max_size=6), st.floats(0.01, 500.0))
def test_more_is_enough(values: list[float], target: float) -> None:
    """From the budget found on, every measured budget is enough; and a harder target never takes less."""
    losses = {0.01 * 2.0**place: value for place, value in enumerate(values)}
    found = budget_to_reach(losses, target)
    assert all(loss <= target for place, loss in losses.items() if place >= found * (1 + 1e-9))
    assert budget_to_reach(losses, target / 2) >= found * (1 - 1e-9)
