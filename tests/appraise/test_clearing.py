"""From a budget to due times: the price uses the budget, and every page is due when its bid reaches it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.refresh.bids import RefreshBids
from bowerbird.appraise.refresh.clearing import CLOSE, SURELY, Clearing, clear_price, mean_cycle, silent_age
from bowerbird.appraise.refresh.signals import OFF, effective_age_s, signal_evidence
from bowerbird.model.bid import Bid, Shape

DAY_S = 86400.0
WEEK_S = 7 * DAY_S
SHAPES = (Shape.LINEAR, Shape.AREA, Shape.SATURATING)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.lower())


def random_bids(seed: int, count: int, shape: Shape) -> RefreshBids:
    """Rates over four powers of ten, gains more unequal still, some pages without any, some tied."""
    rng = np.random.default_rng(seed)
    rate = 10.0 ** rng.uniform(-8, -4, count)
    worth = rng.pareto(1.0, count) * (rng.random(count) < 0.9)
    tied = rng.random(count) < 0.2
    rate[tied], worth[tied] = 1e-6, 0.5
    return RefreshBids(worth / rate ** (2 if shape is Shape.AREA else 1), rate, shape)


def cleared(bids: RefreshBids, budget: float, **more: object) -> Clearing:
    return clear_price(bids, budget, shortest_s=60.0, longest_s=20 * WEEK_S, **more)  # type: ignore[arg-type]  # options of many types


@each_shape
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(5, 300), weeks=st.floats(0.05, 10.0))
def test_it_uses_the_budget(shape: Shape, seed: int, count: int, weeks: float) -> None:
    bids = random_bids(seed, count, shape)
    found = cleared(bids, count / (weeks * WEEK_S))
    assert found.spent_per_s == pytest.approx(count / (weeks * WEEK_S), rel=2e-3)
    assert (1.0 / found.interval_s).sum() == pytest.approx(found.spent_per_s, rel=1e-4)
    assert ((found.interval_s >= 60.0) & (found.interval_s <= 20 * WEEK_S)).all()


@each_shape
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), scale=st.floats(1e-9, 1e9))
def test_the_unit_of_the_gain_does_not_matter(shape: Shape, seed: int, scale: float) -> None:
    bids = random_bids(seed, 100, shape)
    one = cleared(bids, 100 / WEEK_S)
    other = cleared(RefreshBids(bids.amplitude * scale, bids.rate_per_s, shape), 100 / WEEK_S)
    assert other.price == pytest.approx(one.price * scale, rel=1e-3)
    assert other.interval_s == pytest.approx(one.interval_s, rel=2e-2)


@each_shape
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_page_is_due_when_its_bid_reaches_one(shape: Shape, seed: int) -> None:
    bids = random_bids(seed, 60, shape)
    found = cleared(bids, 60 / WEEK_S)
    natural = found.shape == shape
    assert natural.any()
    for page in range(60):
        kind = Shape(int(found.shape[page]))
        bid = Bid(float(found.amplitude[page]), float(found.rate_per_s[page]), 0.0, kind)
        assert bid.value(float(found.interval_s[page])) == pytest.approx(1.0, rel=1e-3)
        if kind is Shape.SATURATING:  # and the method's own bid reaches the price then
            own = Bid(float(bids.amplitude[page]), float(bids.rate_per_s[page]), 0.0, shape)
            assert own.value(float(found.interval_s[page])) == pytest.approx(found.price, rel=1e-3)


@each_shape
def test_more_budget_means_a_lower_price_and_no_longer_interval(shape: Shape) -> None:
    bids = random_bids(3, 200, shape)
    tight, ample = cleared(bids, 200 / WEEK_S), cleared(bids, 2 * 200 / WEEK_S)
    assert ample.price < tight.price
    assert (ample.interval_s <= tight.interval_s * (1 + 1e-6)).all()


def test_a_large_crawl_is_solved_as_a_small_one() -> None:
    """The search begins with a sample; what it ends with is exact for all pages."""
    bids = random_bids(5, 200_000, Shape.SATURATING)
    found = cleared(bids, 200_000 / WEEK_S)
    assert abs(found.spent_per_s * WEEK_S / 200_000 - 1) <= CLOSE
    assert (1.0 / found.interval_s).sum() == pytest.approx(200_000 / WEEK_S, rel=1e-4)


def test_pages_that_are_alike_share_what_there_is() -> None:
    """Without the ramp, a saturating bid of tied pages has no price between all and none of them."""
    rate = np.full(1000, 1 / DAY_S)
    found = cleared(RefreshBids(np.full(1000, 3e4), rate, Shape.SATURATING), 1000 / (5 * WEEK_S))
    assert found.interval_s == pytest.approx(np.full(1000, 5 * WEEK_S), rel=1e-3)
    assert (found.shape == Shape.LINEAR).all()  # 35 changes later it has surely changed: the bid tells no time
    often = cleared(RefreshBids(np.full(1000, 3e4), rate, Shape.SATURATING), 1000 / (0.5 * SURELY * DAY_S))
    assert often.interval_s == pytest.approx(np.full(1000, 0.5 * SURELY * DAY_S), rel=1e-3)
    assert (often.shape == Shape.SATURATING).all()


def test_no_page_is_abandoned_and_none_comes_too_often() -> None:
    amplitude, rate = np.array([1e6, 1.0, 0.0, 1e-12]), np.array([1e-3, 1e-6, 1e-6, 1e-6])
    found = clear_price(
        RefreshBids(amplitude, rate, Shape.SATURATING), 5 / WEEK_S, shortest_s=2 * DAY_S, longest_s=4 * WEEK_S
    )
    assert found.interval_s[0] == 2 * DAY_S
    assert found.interval_s[2] == found.interval_s[3] == 4 * WEEK_S
    assert found.spent_per_s * WEEK_S == pytest.approx(5.0, rel=1e-3)  # page 1 has what is left


def test_what_valued_pages_cannot_use_goes_to_the_others() -> None:
    amplitude = np.array([1.0] + [0.0] * 9)
    bids = RefreshBids(amplitude, np.full(10, 1e-5), Shape.SATURATING)
    found = clear_price(bids, 10 / WEEK_S, shortest_s=DAY_S, longest_s=20 * WEEK_S)
    assert found.interval_s[0] == DAY_S
    assert found.interval_s[1:] == pytest.approx(np.full(9, 9 / (10 / WEEK_S - 1 / DAY_S)))
    assert found.spent_per_s == pytest.approx(10 / WEEK_S)
    none = cleared(RefreshBids(np.zeros(10), np.full(10, 1e-5), Shape.LINEAR), 10 / WEEK_S)
    assert none.interval_s == pytest.approx(np.full(10, WEEK_S))
    empty = cleared(RefreshBids(np.zeros(0), np.zeros(0), Shape.AREA), 0.0)
    assert (empty.spent_per_s, len(empty.interval_s)) == (0.0, 0)


def test_the_most_is_gained_for_the_budget() -> None:
    """Moving a refresh from one page to another loses: q·(stale share of time) is least at equal prices."""
    rng = np.random.default_rng(7)
    rate, loss = 10.0 ** rng.uniform(-6.5, -5, 40), rng.uniform(0.5, 2.0, 40)
    found = clear_price(RefreshBids(loss / rate, rate, Shape.SATURATING), 40 / DAY_S, shortest_s=1.0, longest_s=1e12)

    def lost(frequency: np.ndarray) -> float:
        return float((loss * (1.0 - -np.expm1(-rate / frequency) * frequency / rate)).sum())

    frequency = 1.0 / found.interval_s
    best = lost(frequency)
    for _ in range(50):
        one, other = rng.choice(40, 2, replace=False)
        moved = frequency.copy()
        part = 0.2 * min(frequency[one], frequency[other])
        moved[one] -= part
        moved[other] += part
        assert lost(moved) > best


def test_costly_fetches_are_made_less_often() -> None:
    bids = random_bids(11, 400, Shape.SATURATING)
    cost = np.where(np.arange(400) % 2 == 0, 1.0, 0.5)
    found = cleared(RefreshBids(bids.amplitude / cost, bids.rate_per_s, bids.shape), 300 / WEEK_S, cost=cost)
    assert (cost / found.interval_s).sum() == pytest.approx(300 / WEEK_S, rel=1e-3)
    assert found.spent_per_s == pytest.approx(300 / WEEK_S, rel=1e-3)


@pytest.mark.parametrize(("recall", "false_rate"), [(0.7, 1e-6), (1.0, 0.0), (0.3, 1e-5)])
def test_signals_are_counted_as_they_come(recall: float, false_rate: float) -> None:
    """The frequency is that of pages watched for long: fetched when told, or when due in silence."""
    rng = np.random.default_rng(2)
    rate = 2e-5
    silent = silent_age(1.0, rate, recall)
    changed = rng.exponential(1 / rate, 400_000)
    changed[rng.random(len(changed)) > recall] = np.inf  # no signal tells of it
    wrong = rng.exponential(1 / false_rate, len(changed)) if false_rate else np.inf
    watched = np.minimum(np.minimum(changed, wrong), silent).mean()
    assert mean_cycle(silent, rate, recall, false_rate) == pytest.approx(watched, rel=0.01)


def test_pages_that_tell_of_their_changes_need_fewer_visits() -> None:
    bids = random_bids(4, 2000, Shape.SATURATING)
    told = {"recall": np.full(2000, 0.9), "false_rate_per_s": np.full(2000, 1e-9)}
    plain, heard = cleared(bids, 2000 / WEEK_S), cleared(bids, 2000 / WEEK_S, **told)
    assert heard.spent_per_s == pytest.approx(2000 / WEEK_S, rel=5e-3)
    assert heard.price < plain.price  # the same budget reaches pages that are worth less


def test_no_silence_is_counted_on_beyond_the_longest_interval() -> None:
    often, seldom = 1e-6, 1.0 / (20 * WEEK_S)
    price = (often * WEEK_S) ** 2 / 2
    amplitude = np.repeat([1.0, price * 2 / 0.5**2], 100)  # the others are due after 10 weeks, in silence after 40
    assert silent_age(0.5, seldom, 0.9) > 40 * WEEK_S
    bids = RefreshBids(amplitude, np.repeat([often, seldom], 100), Shape.AREA)
    budget = 100 / WEEK_S + 100 / mean_cycle(20 * WEEK_S, seldom, 0.9, 1e-12)
    found = cleared(bids, budget, recall=np.repeat([0.0, 0.9], 100), false_rate_per_s=np.full(200, 1e-12))
    assert found.interval_s[0] == pytest.approx(WEEK_S, rel=1e-3)
    assert found.interval_s[-1] == pytest.approx(10 * WEEK_S, rel=1e-3)


@settings(deadline=None)  # compiled by the first
@given(x=st.floats(1e-6, 60.0), recall=st.floats(0.0, 0.99))
def test_in_silence_a_page_is_due_when_its_effective_age_is(x: float, recall: float) -> None:
    rate = 1e-5
    age = np.array([silent_age(x, rate, recall)])
    evidence = signal_evidence(age, np.array([OFF], dtype=np.int8), recall, 0.0)
    effective = effective_age_s(np.array([rate]), age, evidence)
    assert float(effective[0]) * rate == pytest.approx(x, rel=1e-6)
    assert silent_age(x, rate, 1.0) == math.inf
