"""Are expectations met?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.budget.watch import as_learnt, expected_by, expected_changes, spread_evenly, watch_kind


@pytest.mark.parametrize("truth", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("size", [0.01, 1.0])
def test_a_ratio_is_found_and_its_interval_covers_it(truth: float, size: float) -> None:
    covered = drifting = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        expected = rng.lognormal(0.0, 1.0, 800)
        realised = size * rng.poisson(truth * expected)
        watch = watch_kind("new", size * expected, realised, "clicks", float(expected.sum()))
        assert watch.ratio == pytest.approx(truth, rel=0.2, abs=0.06)
        covered += watch.low <= truth <= watch.high
        drifting += watch.drifts
    assert covered >= 52
    assert drifting <= 6 if truth == 1.0 else drifting == 60


@pytest.mark.parametrize("events", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_few_events_are_no_proof(events: float) -> None:
    """Right expectations of rare events: hardly ever taken for wrong ones, however many fetches there are."""
    drifting = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        expected = np.full(1000, events / 1000)
        drifting += watch_kind("new", expected, rng.poisson(expected).astype(float), "clicks").drifts
    assert drifting <= 14


def test_nothing_to_compare() -> None:
    nothing = watch_kind("hub", np.zeros(0), np.zeros(0), "pages")
    assert (nothing.ratio, nothing.fetches, nothing.drifts) == (1.0, 0, False)


def test_gains_in_lumps_prove_less() -> None:
    even = watch_kind("new", np.full(1000, 0.02), np.repeat([0.0, 1.0], [960, 40]), "clicks")
    lump = watch_kind("new", np.full(1000, 0.02), np.repeat([0.0, 40.0], [999, 1]), "clicks")
    assert even.drifts
    assert not lump.drifts
    assert even.ratio == lump.ratio


@pytest.mark.parametrize(("sigma", "fewest"), [(1.0, 180), (2.0, 170), (2.67, 135)])
def test_right_expectations_are_covered_where_few_gain_most(sigma: float, fewest: int) -> None:
    """Gains like those of pages, log-normal; the heavier their tail, the more is in gains that nobody saw yet."""
    covered = 0
    for seed in range(200):
        gains = np.random.default_rng(seed).lognormal(-(sigma**2) / 2, sigma, 2000)
        watch = watch_kind("new", np.ones(2000), gains, "clicks")
        covered += watch.low <= 1.0 <= watch.high
    assert covered >= fewest


def test_what_is_expected_by_now_grows_to_all_of_it() -> None:
    clicks, decay = np.array([10.0, 10.0]), np.array([0.0, 0.5])
    waits = np.array([[0.0, 0.0], [5.0, 5.0], [1e9, 1e9]])
    by = np.array([expected_by(clicks, decay, wait, 20.0) for wait in waits])
    assert by[0].tolist() == [0.0, 0.0]
    assert by[1] == pytest.approx([2.5, 10 * (1 - np.exp(-2.5)) / (1 - np.exp(-10.0))])
    assert by[2] == pytest.approx([10.0, 10.0])


def test_a_page_has_surely_changed_in_the_end() -> None:
    young, old = expected_changes(np.array([0.01, 0.01]), np.array([1.0, 1e9]))
    assert old == pytest.approx(1.0)
    assert young == pytest.approx(0.01, rel=0.01)  # Delta·tau while that is short


@given(st.integers(0, 5000), st.integers(1, 300))
def test_a_sample_is_spread_evenly_and_has_the_last(count: int, most: int) -> None:
    places = spread_evenly(count, most)
    assert len(places) == min(count, most)
    gaps = np.diff(places, prepend=-1)
    assert count == 0 or (places[-1] == count - 1 and gaps.min() >= 1 and gaps.max() - gaps.min() <= 1)


def test_what_was_learnt_since_is_told_by_the_time_of_the_decision() -> None:
    """P had been four times too high, and was put right halfway; hubs had been told apart wrongly all the while."""
    at = np.arange(1000.0)
    then = np.where(at < 500, 8.0, 2.0)
    now = np.where(at % 2 == 0, 1.0, 3.0)
    times = as_learnt(then, now, at)
    assert times[:500] == pytest.approx(0.25)
    assert times[500:] == pytest.approx(1.0)
