"""Wolf's scheduling: whole counts, ideal times and slots, each against brute force."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.refresh.frequencies import freshness
from bowerbird.appraise.refresh.transportation import (
    FloatArray,
    IntArray,
    assign_costs,
    assign_slots,
    ideal_times,
    schedule_refreshes,
    spread_phases,
    whole_counts,
)


def greedy_counts(rates: FloatArray, weights: FloatArray, budget: int, most: int) -> IntArray:
    """Fox's greedy, one refresh at a time."""
    counts = np.zeros(len(rates), np.int64)

    def gain(page: int) -> float:
        at = np.array([counts[page], counts[page] + 1.0])
        low, high = freshness(np.full(2, rates[page]), at)
        return float(weights[page] * (high - low))

    heap = [(-gain(page), page) for page in range(len(rates))]
    heapq.heapify(heap)
    for _ in range(budget):
        if not heap:
            break
        _, page = heapq.heappop(heap)
        counts[page] += 1
        if counts[page] < most:
            heapq.heappush(heap, (-gain(page), page))
    return counts


def value(rates: FloatArray, weights: FloatArray, counts: IntArray) -> float:
    return float(weights @ freshness(rates, counts.astype(np.float64)))


@given(st.integers(0, 100_000), st.integers(1, 25), st.integers(0, 120), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_whole_counts_are_those_of_the_greedy(seed: int, pages: int, budget: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    rates, weights = np.exp(rng.normal(1, 1.5, pages)), np.exp(rng.normal(0, 1.0, pages))
    counts = whole_counts(rates, weights, budget, most=most)
    assert counts.sum() == min(budget, most * pages)
    assert counts.min() >= 0 and counts.max() <= most
    best = value(rates, weights, greedy_counts(rates, weights, budget, most))
    assert value(rates, weights, counts) == pytest.approx(best, rel=1e-9)


def test_whole_counts_are_the_best_of_all() -> None:
    rates, weights = np.array([0.5, 2.0, 9.0]), np.array([1.0, 1.0, 2.0])
    every = (np.array(counts) for counts in itertools.product(range(7), repeat=3) if sum(counts) == 6)
    best = max(value(rates, weights, counts) for counts in every)
    assert value(rates, weights, whole_counts(rates, weights, 6, most=6)) == pytest.approx(best, rel=1e-12)


def test_equal_pages_and_pages_that_never_change() -> None:
    counts = whole_counts(np.r_[np.full(10, 3.0), 0.0], np.ones(11), 25, most=50)
    assert counts[10] == 0
    assert sorted(counts[:10].tolist()) == [2] * 5 + [3] * 5
    assert whole_counts(np.zeros(3), np.ones(3), 5, most=2).tolist() == [0, 0, 0]


def test_ideal_times_are_evenly_spaced_and_spread() -> None:
    counts = np.array([3, 0, 1, 4])
    page, times = ideal_times(counts, 12.0)
    assert np.bincount(page, minlength=4).tolist() == counts.tolist()
    assert np.all(np.diff(times) >= 0) and times.min() >= 0 and times.max() < 12.0
    np.testing.assert_allclose(np.diff(times[page == 3]), 3.0)
    assert ideal_times(np.array([2]), 10.0, phases=np.array([0.5]))[1].tolist() == [2.5, 7.5]
    filled = np.histogram(spread_phases(1000), bins=10, range=(0, 1))[0]
    assert np.ptp(filled) <= 4


@st.composite
def cases(draw: st.DrawFn) -> tuple[FloatArray, IntArray, float, float, float]:
    slots = draw(st.integers(1, 6))
    room = np.array(draw(st.lists(st.integers(0, 4), min_size=slots, max_size=slots)), dtype=np.int64)
    times = draw(st.lists(st.floats(-1, slots + 1), max_size=int(room.sum())))
    power = draw(st.sampled_from([1.0, 1.5, 2.0, 3.0]))
    return np.array(times, dtype=np.float64), room, draw(st.floats(0.1, 3)), draw(st.floats(0.1, 3)), power


@given(cases())
@settings(max_examples=300, deadline=None)
def test_slots_cost_the_least_of_any_assignment(case: tuple[FloatArray, IntArray, float, float, float]) -> None:
    times, room, late, early, power = case
    at = np.arange(len(room)) + 0.5
    found = assign_slots(np.arange(len(times)), times, at, room, late=late, early=early, power=power)
    assert np.all(np.bincount(found.slot, minlength=len(room)) <= room)
    distance = at[None, :] - found.ideal[:, None]
    costs = np.where(distance >= 0, late, early) * np.abs(distance) ** power
    assert found.cost == pytest.approx(costs[np.arange(len(times)), found.slot].sum(), abs=1e-9)
    if len(times):
        slots, least = assign_costs(costs, room)
        assert found.cost == pytest.approx(least, abs=1e-7)
        assert np.all(np.bincount(slots, minlength=len(room)) <= room)


def test_slots_by_brute_force() -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        times, room = np.sort(rng.uniform(0, 3, 5)), np.array([2, 2, 2])
        at = np.arange(3) + 0.5
        least = min(
            sum(abs(at[k] - time) for k, time in zip(choice, times, strict=True))
            for choice in itertools.product(range(3), repeat=5)
            if max(np.bincount(choice)) <= 2
        )
        assert assign_slots(np.arange(5), times, at, room, power=1.0).cost == pytest.approx(least)


def test_any_costs_by_brute_force() -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        costs, room = rng.random((5, 3)), np.array([1, 3, 2])
        least = min(
            sum(costs[row, k] for row, k in enumerate(choice))
            for choice in itertools.product(range(3), repeat=5)
            if np.all(np.bincount(choice, minlength=3) <= room)
        )
        assert assign_costs(costs, room)[1] == pytest.approx(least)


def test_what_does_not_fit_or_is_not_convex_is_refused() -> None:
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="fit"):
        assign_slots(np.zeros(2, np.int64), np.zeros(2), np.zeros(1), one + 1)
    with pytest.raises(ValueError, match="fit"):
        assign_costs(np.zeros((2, 1)), one + 1)
    with pytest.raises(ValueError, match="convex"):
        assign_slots(one, np.zeros(1), np.zeros(1), one + 1, power=0.5)
    with pytest.raises(ValueError, match="order"):
        assign_slots(one, np.zeros(1), np.array([1.0, 0.0]), np.ones(2, np.int64))


def test_a_schedule_fills_every_week_and_keeps_pages_apart() -> None:
    rng = np.random.default_rng(7)
    rates, weights = rng.exponential(0.1, 400), rng.exponential(1.0, 400)
    found = schedule_refreshes(rates, weights, slots=48, room=4)
    assert np.bincount(found.slot, minlength=48).tolist() == [4] * 48
    assert np.abs(found.slot + 0.5 - found.ideal).mean() < 2.0
    assert found.pages_of(3).tolist() == list(dict.fromkeys(found.page[found.slot == 3].tolist()))
    twice = sum(4 - len(found.pages_of(slot)) for slot in range(48))
    assert twice <= 2
