"""By what a kind is corrected: what its fetches near the price turned out to be worth, as far as that is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bowerbird.appraise.budget.correction import (
    FEWEST_EVENTS,
    Compared,
    correct_kind,
    factor_of,
    stand_for_unmeasured,
    watch_margin,
    weigh_bids,
)
from bowerbird.appraise.budget.decisions import Decision, compare_refreshes
from bowerbird.appraise.budget.watch import FARTHEST, as_learnt
from bowerbird.model.url_state import FetchKind

F64 = npt.NDArray[np.float64]
MANY = 2000


def compared(
    expected: F64,
    realised: F64,
    events: F64 | None = None,
    prices: F64 | None = None,
    bound: F64 | None = None,
    factors: F64 | None = None,
) -> Compared:
    """In clicks, where no events are given."""
    ones = np.ones(len(expected))
    return Compared(
        expected,
        realised,
        expected if events is None else events,
        ones if prices is None else prices,
        np.zeros(len(expected), np.bool_) if bound is None else bound > 0,
        ones if factors is None else factors,
        in_clicks=events is None,
    )


def test_a_factor_stays_within_bounds() -> None:
    expected = np.full(5000, 1.0)
    assert factor_of(expected, 1000.0 * expected, 5000.0) == FARTHEST
    assert factor_of(expected, 0.0 * expected, 5000.0) == 1 / FARTHEST
    assert factor_of(np.zeros(0), np.zeros(0), 0.0) == 1.0


@pytest.mark.parametrize("events", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_that_nothing_came_of_few_events_moves_what_is_expected_by_little(events: float) -> None:
    assert factor_of(np.full(1000, events / 1000), np.zeros(1000), events) >= 10.0 / (10.0 + events) - 1e-9


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


def test_right_expectations_of_gains_of_very_different_sizes_stay() -> None:
    """Most is gained by few: that these are among those looked at or not is chance, and no reason to correct."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sizes = rng.pareto(1.5, 500)
        expected = np.full(500, 2.0)  # the mean of such sizes
        found.append(factor_of(expected, sizes, 1000.0))
    assert np.exp(np.mean(np.log(found))) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("sigma", "lowest"), [(2.0, 0.9), (2.67, 0.75)])
def test_right_expectations_are_lowered_by_little_where_few_gain_most(sigma: float, lowest: float) -> None:
    """More often than not the few that gain most are not among those looked at."""
    found = []
    for seed in range(200):
        gains = np.random.default_rng(seed).lognormal(-(sigma**2) / 2, sigma, 2000)
        found.append(factor_of(np.ones(2000), gains, 2000.0))
    assert lowest < np.exp(np.mean(np.log(found))) < 1.1


def test_the_fetches_near_the_price_count_and_of_them_the_newer() -> None:
    expected = np.ones(400)
    prices = np.where(np.arange(400) % 2 == 0, 1.2, 50.0)
    realised = np.where(prices < 2.0, np.where(np.arange(400) < 200, 9.0, 0.5), 3.0)
    near = correct_kind(compared(expected, realised, prices=prices))
    assert near == pytest.approx(0.5, rel=0.2)  # not 3, what the best gain, nor 9, what was wrong before
    few = correct_kind(compared(expected, realised, prices=np.where(np.arange(400) < 4, 1.2, 50.0)))
    assert few > 1.4  # too few are near: all of the newer half, 0.5 and 3


@pytest.mark.parametrize(("price", "counts"), [(0.45, False), (0.55, True), (1.9, True), (2.1, False)])
def test_near_the_price_is_from_half_of_it_to_twice(price: float, counts: bool) -> None:
    """Lots bid far below the price: what they gain says nothing of those that the price decides about."""
    prices = np.where(np.arange(400) % 2 == 0, 1.0, price)
    realised = np.where(prices == 1.0, 1.0, 5.0)
    assert (correct_kind(compared(np.ones(400), realised, prices=prices)) > 1.5) is counts


def test_a_hub_that_is_found_later_teaches_nothing_of_the_others() -> None:
    """All that was decided was known rightly, then and now: whatever other hubs announce, nothing is rescaled."""
    rng = np.random.default_rng(0)
    expected, at = np.full(500, 2.0), np.arange(500.0)
    realised = rng.poisson(2.0, 500).astype(np.float64)
    rescaled = expected * as_learnt(expected, expected, at)
    assert correct_kind(compared(rescaled, realised)) == pytest.approx(1.0, abs=0.1)


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
    expected, realised = chance * loss, changed * loss
    assert correct_kind(compared(expected, realised, chance)) == pytest.approx(1.5, rel=0.1)
    assert factor_of(expected, realised, float(chance.sum())) == pytest.approx(1.09, rel=0.1)


@pytest.mark.parametrize("truth", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("chance", [0.2, 1e-9])
def test_one_of_which_next_to_nothing_was_expected_does_not_hide_the_others(truth: float, chance: float) -> None:
    """Whether it was thought never to change, or to have nothing to lose."""
    expected, events = np.full(MANY, 1e-3), np.full(MANY, 0.2)
    without = correct_kind(compared(expected, truth * expected, events))
    assert without == pytest.approx(truth, rel=0.15)
    realised = truth * expected
    expected, events = expected.copy(), events.copy()
    expected[1500], events[1500], realised[1500] = 1e-9, chance, 1e-4
    assert correct_kind(compared(expected, realised, events)) == pytest.approx(without, rel=0.01)


def test_one_that_gained_more_than_all_others_does_not_hide_that_they_gained_more_than_expected() -> None:
    expected, events = np.full(MANY, 1e-3), np.full(MANY, 0.2)
    realised = 3.0 * expected
    without = correct_kind(compared(expected, realised, events))
    realised[1500] = 100.0
    assert without <= correct_kind(compared(expected, realised, events)) <= 1.05 * without


def refreshes(loss: F64, chance: F64, changed: F64, found: F64) -> Compared:
    """As decisions of refreshes are compared: NaN where a change was not measured."""
    expected = chance * loss
    terms = [
        {"by": "user-centric", "expected_gain": e, "expected_chance": c}
        for e, c in zip(expected.tolist(), chance.tolist(), strict=True)
    ]
    decisions = [Decision(n, int(FetchKind.REFRESH), 1.0, 1.0, float(n), dict(one)) for n, one in enumerate(terms)]
    return compare_refreshes(decisions, changed > 0, found)


@pytest.mark.parametrize("many", [20, 50])
def test_measured_changes_stand_for_those_that_nobody_measured_by_what_was_expected_of_these(many: int) -> None:
    """Half of what was expected came; of pages with hardly anything to lose no change was measured."""
    ratios, factors = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chance = rng.uniform(0.05, 0.9, 1000)
        loss = np.where(np.arange(1000) % (1000 // many) == 0, 1e-8, 1e-3)
        changed = (rng.random(1000) < chance).astype(np.float64)
        found = np.where(loss < 1e-6, np.nan, 0.5 * loss * changed)
        some = refreshes(loss, chance, changed, found)
        weight, _ = weigh_bids(np.ones(1000), some.expected, chance)
        expected, realised = some.weighed(weight)
        ratios.append(realised.sum() / expected.sum())
        factors.append(correct_kind(some))
    assert np.mean(ratios) == pytest.approx(0.5, abs=0.02)
    assert max(factors) < 0.7  # shrunk to 1 as if ten more changes had gained as expected


def test_few_measured_changes_tell_as_little_as_few_changes() -> None:
    """One of a hundred was measured, and had lost ten times what was expected: that is one event, not a hundred."""
    loss, chance, changed = np.full(200, 1e-3), np.full(200, 0.5), (np.arange(200) % 2).astype(np.float64)
    found = np.where(np.arange(200) == 151, 1e-2, np.nan)
    some = refreshes(loss, chance, changed, found)
    assert correct_kind(some) == pytest.approx(1.0, abs=0.15)
    assert not some.watch("refresh", "share of Q").drifts
    several = np.where(np.arange(200) % 40 == 1, 1e-3, found)
    assert correct_kind(refreshes(loss, chance, changed, several)) < 1.5
    all_of_them = np.full(200, 1e-2)
    assert correct_kind(refreshes(loss, chance, changed, all_of_them)) > 4.0


def test_without_a_measured_change_nothing_is_said() -> None:
    loss, chance, changed = np.full(3, 0.1), np.full(3, 0.5), np.array([1.0, 0.0, 1.0])
    nobody = refreshes(loss, chance, changed, np.full(3, np.nan))
    assert not nobody.known.any()
    unchanged = refreshes(loss, chance, np.zeros(3), np.full(3, np.nan))
    assert unchanged.realised.tolist() == [0.0, 0.0, 0.0]
    worthless = refreshes(np.array([0.0, 0.1, 0.1]), chance, changed, np.array([0.0, np.nan, np.nan]))
    assert correct_kind(worthless.of(worthless.known)) == 1.0  # nothing was expected of the one that was measured
    assert worthless.watch("refresh", "share of Q").ratio == 1.0
    assert math.isnan(stand_for_unmeasured(np.zeros(2), np.array([0.1, 0.0])))
    assert stand_for_unmeasured(np.zeros(2), np.zeros(2)) == 1.0


def test_bids_that_a_bound_has_set_say_nothing() -> None:
    """A third bid the price because they had waited long, and gained a hundredth of what the others did."""
    bound = (np.arange(3 * MANY) % 3 == 0).astype(np.float64)
    expected = np.where(bound > 0, 1e-5, 1e-3)
    realised, events = np.where(bound > 0, 0.0, 2.0) * expected, np.full(3 * MANY, 0.1)
    free = correct_kind(compared(expected, realised, events, bound=bound))
    assert free == pytest.approx(2.0, rel=0.1)
    assert correct_kind(compared(expected, realised, events)) < free


@pytest.mark.parametrize(("truth", "off"), [(0.5, True), (1.0, False), (2.0, True)])
def test_what_bids_near_the_price_turn_out_to_be_worth(truth: float, off: bool) -> None:
    """As they bid: a factor of 2 that was right leaves nothing to correct, though twice what was expected came."""
    rng = np.random.default_rng(2)
    chance = rng.uniform(0.1, 0.9, 4000)
    changed = rng.random(4000) < chance
    far = np.where(np.arange(4000) % 4 == 0, 30.0, 1.2)  # what bid far more says nothing of the margin
    realised = np.where(far > 2.0, 0.0, 2.0 * truth) * changed * 1e-3
    some = compared(chance * 1e-3, realised, chance, far, factors=np.full(4000, 2.0))
    margin = watch_margin(some, "refresh")
    assert margin.fetches == 1500  # the newer half
    assert margin.low < truth < margin.high
    assert (margin.surely_off, margin.cannot_tell) == (off, False)
    assert correct_kind(some) == pytest.approx(2.0 * truth, rel=0.15)


@pytest.mark.parametrize(("many", "gained"), [(0, 0.0), (20, 0.1), (4, 9.0)])
def test_few_fetches_near_the_price_cannot_tell(many: int, gained: float) -> None:
    """Nor much that came where less than one event was expected."""
    some = compared(np.full(many, 0.1), np.full(many, gained), np.full(many, 0.2))
    margin = watch_margin(some, "hub")
    assert (margin.cannot_tell, margin.surely_off) == (True, False)


@st.composite
def fetches(draw: st.DrawFn) -> tuple[F64, F64, F64]:
    """Bids, what was expected, and as how many events; over many orders of magnitude."""
    count = draw(st.integers(1, 60))
    logs = [draw(arrays(np.float64, count, elements=st.floats(low, 1.0))) for low in (-1.0, -9.0, -6.0)]
    bids, expected, events = (10.0**one for one in logs)
    return bids, expected, np.minimum(events, 1.0)


@given(fetches())
def test_weights_are_by_bid_as_far_as_the_evidence_goes(one: tuple[F64, F64, F64]) -> None:
    bids, expected, events = one
    weight, many = weigh_bids(bids, expected, events)
    full = bids / expected
    most = weight.max()
    assert (weight > 0).all()
    assert weight == pytest.approx(np.minimum(full, most))
    assert many <= events.sum() * (1.0 + 1e-6)  # no more than there are
    if most < full.max() * (1.0 - 1e-9):  # cut off: with all of it they would count for less
        size = np.maximum(expected / events, expected.sum() / events.sum())
        whole = bids.sum() ** 2 / (full**2 * events * size**2).sum()
        assert whole < max(FEWEST_EVENTS, many) * (1.0 + 1e-6)


@given(fetches(), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_the_ratio_goes_with_what_was_gained_and_not_with_units(
    one: tuple[F64, F64, F64], times: float, scale: float
) -> None:
    """sum w·y/sum w·e; as bids are, and what is expected, in any unit."""
    bids, expected, events = one
    weight, many = weigh_bids(bids, expected, events)
    other, as_many = weigh_bids(times * bids, scale * expected, events)
    assert as_many == pytest.approx(many, rel=1e-6)
    assert other * scale / times == pytest.approx(weight, rel=1e-6)


@given(fetches(), st.data())
@settings(deadline=None)
def test_a_fetch_that_gains_more_lowers_no_factor_above_1_and_none_moves_it_far(
    one: tuple[F64, F64, F64], data: st.DataObject
) -> None:
    _, expected, events = one
    realised = expected * 10.0 ** data.draw(arrays(np.float64, len(expected), elements=st.floats(-2.0, 2.0)))
    before = factor_of(expected, realised, float(events.sum()))
    place = data.draw(st.integers(0, len(expected) - 1))
    realised[place] *= 10.0 ** data.draw(st.floats(0.0, 9.0))
    after = factor_of(expected, realised, float(events.sum()))
    if before > 1.0:
        assert after >= before * 0.99  # levels at which gains are cut off are some, not all
        assert after <= before * 1.25
