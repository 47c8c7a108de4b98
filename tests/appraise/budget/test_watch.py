"""Are expectations met?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.budget.watch import (
    FARTHEST,
    as_learnt,
    correct_kind,
    expected_by,
    expected_changes,
    factor_of,
    put_by_bid,
    spread_evenly,
    watch_kind,
)


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
    # that nothing came of them moves what is expected by little
    assert factor_of(np.full(1000, events / 1000), np.zeros(1000), events) >= 10.0 / (10.0 + events) - 1e-9


def test_nothing_to_compare() -> None:
    nothing = watch_kind("hub", np.zeros(0), np.zeros(0), "pages")
    assert (nothing.ratio, nothing.fetches, nothing.drifts) == (1.0, 0, False)


def test_gains_in_lumps_prove_less() -> None:
    even = watch_kind("new", np.full(1000, 0.02), np.repeat([0.0, 1.0], [960, 40]), "clicks")
    lump = watch_kind("new", np.full(1000, 0.02), np.repeat([0.0, 40.0], [999, 1]), "clicks")
    assert even.drifts
    assert not lump.drifts
    assert even.ratio == lump.ratio


def test_a_factor_stays_within_bounds() -> None:
    expected = np.full(5000, 1.0)
    assert factor_of(expected, 1000.0 * expected, 5000.0) == FARTHEST
    assert factor_of(expected, 0.0 * expected, 5000.0) == 1 / FARTHEST
    assert factor_of(np.zeros(0), np.zeros(0), 0.0) == 1.0


@pytest.mark.parametrize("truth", [0.3, 1.0, 4.0])
def test_a_factor_comes_to_the_truth_and_not_beyond(truth: float) -> None:
    """The more events, the nearer; in clumps, later."""
    rng = np.random.default_rng(7)
    found = []
    for count in (10, 100, 10_000):
        expected = rng.lognormal(0.0, 0.5, count)
        realised = rng.poisson(truth * expected).astype(float)
        factor = factor_of(expected, realised, float(expected.sum()))
        clumped = factor_of(expected, 50.0 * rng.poisson(truth * expected / 50.0), float(expected.sum()))
        assert abs(math.log(clumped)) <= abs(math.log(truth)) + 0.9
        found.append(abs(factor - truth))
    assert found[-1] == pytest.approx(0.0, abs=0.05 * truth)


def test_the_fetches_near_the_price_count_and_of_them_the_newer() -> None:
    expected, events = np.ones(400), np.ones(400)
    prices = np.where(np.arange(400) % 2 == 0, 1.2, 50.0)
    realised = np.where(prices < 2.0, np.where(np.arange(400) < 200, 9.0, 0.5), 3.0)
    near = correct_kind(expected, realised, events, prices)
    assert near == pytest.approx(0.5, rel=0.2)  # not 3, what the best gain, nor 9, what was wrong before
    few = correct_kind(expected, realised, events, np.where(np.arange(400) < 4, 1.2, 50.0))
    assert few > 1.4  # too few are near: all of the newer half, 0.5 and 3


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


def test_a_hub_that_is_found_later_teaches_nothing_of_the_others() -> None:
    """All that was decided was known rightly, then and now: whatever other hubs announce, nothing is rescaled."""
    rng = np.random.default_rng(0)
    expected, at = np.full(500, 2.0), np.arange(500.0)
    realised = rng.poisson(2.0, 500).astype(np.float64)
    rescaled = expected * as_learnt(expected, expected, at)
    assert correct_kind(rescaled, realised, rescaled, np.ones(500)) == pytest.approx(1.0, abs=0.1)


def test_what_was_learnt_since_is_told_by_the_time_of_the_decision() -> None:
    """P had been four times too high, and was put right halfway; hubs had been told apart wrongly all the while."""
    at = np.arange(1000.0)
    then = np.where(at < 500, 8.0, 2.0)
    now = np.where(at % 2 == 0, 1.0, 3.0)
    times = as_learnt(then, now, at)
    assert times[:500] == pytest.approx(0.25)
    assert times[500:] == pytest.approx(1.0)


def test_a_kind_is_corrected_by_what_its_bids_turned_out_to_be_worth() -> None:
    """Half of the refreshes waited ten times as long, and bid as much: a tenth of the loss, for ten times as long.

    These regain twice what was expected of them, the others what was. So bids are worth 1.5 times what they said; by
    losses alone it would be 1.09 times.
    """
    rng = np.random.default_rng(5)
    long = np.arange(4000) % 2 == 0
    chance = np.where(long, 0.05, 0.5)
    loss = 0.01
    changed = rng.random(4000) < np.where(long, 2.0, 1.0) * chance
    expected, realised, prices = chance * loss, changed * loss, np.ones(4000)
    assert correct_kind(*put_by_bid(expected, realised, prices), chance, prices) == pytest.approx(1.5, rel=0.1)
    assert correct_kind(expected, realised, chance, prices) == pytest.approx(1.09, rel=0.1)
