"""Seeds chosen again, and how far everything is from them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.depths import count_links_from
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.renewal import renew_seeds
from bowerbird.model.snapshot import LinkGraph


def two_fans(first: int, second: int) -> SeedProblem:
    """Page 0 leads to so many pages, page 1 to so many others."""
    count = 2 + first + second
    sources = [0] * first + [1] * second
    return SeedProblem(make_graph(sources, list(range(2, count)), count), np.ones(count), hops=1)


@pytest.mark.parametrize(
    ("first", "second", "worth", "chosen"), [(98, 99, 0.02, 0), (98, 99, 0.0, 1), (50, 99, 0.02, 1)]
)
def test_others_are_taken_only_where_they_are_worth_the_change(
    first: int, second: int, worth: float, chosen: int
) -> None:
    renewal = renew_seeds(two_fans(first, second), 1, np.array([0]), worth)
    assert renewal.choice.seeds.tolist() == [chosen]
    assert renewal.is_new == (chosen == 1)
    assert renewal.before.covered_value == first + 1
    assert renewal.best.covered_value == second + 1


def test_more_seeds_than_are_wanted_are_replaced_and_none_are_no_hindrance() -> None:
    problem = two_fans(9, 5)
    renewal = renew_seeds(problem, 1, np.array([0, 1]), 0.5)
    assert renewal.choice.seeds.tolist() == [0]
    assert renewal.before.covered_value == 16
    assert renew_seeds(problem, 2, np.zeros(0, np.int64), 0.5).choice.seeds.tolist() == [0, 1]
    nothing = SeedProblem(problem.graph, np.zeros(problem.graph.count), 1)
    assert renew_seeds(nothing, 2, np.zeros(0, np.int64), 0.5).choice.seeds.tolist() == []
    assert renew_seeds(nothing, 2, np.array([3]), 0.5).choice.seeds.tolist() == [3]


def test_given_seeds_stay_and_others_are_chosen_for_what_they_leave() -> None:
    problem = two_fans(9, 5)
    renewal = renew_seeds(problem, 1, np.zeros(0, np.int64), 0.01, given=np.array([0, 2, 3]))
    assert renewal.choice.seeds.tolist() == [1]
    assert (renewal.given.covered_value, renewal.choice.covered_value) == (10.0, 6.0)
    assert renewal.bound is not None
    assert renewal.bound.value == 16.0
    kept = renew_seeds(problem, 1, np.zeros(0, np.int64), 0.6, given=np.array([0]))  # 16 is not worth it, 10 is there
    assert kept.choice.seeds.tolist() == []
    assert not kept.is_new
    chain = SeedProblem(make_graph([0, 1, 2], [1, 2, 3], 4), np.ones(4), hops=1)
    assert renew_seeds(chain, 2, np.zeros(0, np.int64), 0.0, given=np.array([0])).choice.pages.tolist() == [2]


def test_sums_that_differ_by_rounding_are_no_change() -> None:
    weight = np.array([0.0, 0.0, 0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    problem = SeedProblem(make_graph([0, 0, 0, 1, 1, 1], [2, 3, 4, 5, 6, 7], 8), weight, hops=1)
    one, other = (cover(problem, [seed]).covered_value for seed in (0, 1))
    assert 0 < abs(one - other) < problem.rounding
    for before in (0, 1):
        assert renew_seeds(problem, 1, np.array([before]), 0.0).choice.seeds.tolist() == [before]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 25), k=st.integers(1, 4), fixed=st.integers(0, 6))
def test_given_and_chosen_are_counted_once(seed: int, count: int, k: int, fixed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = make_graph(rng.integers(0, count, 2 * count), rng.integers(0, count, 2 * count), count)
    problem = SeedProblem(graph, rng.random(count), hops=2)
    given, before = rng.permutation(count)[:fixed], rng.permutation(count)[: k + 2]
    renewal = renew_seeds(problem, k, before, 0.1, given=given)
    assert len(renewal.choice.seeds) <= k
    everything = cover(problem, [*given.tolist(), *renewal.choice.seeds.tolist()])
    assert renewal.together(renewal.choice) == pytest.approx(everything.covered_value)
    assert renewal.given.covered_pages + renewal.choice.covered_pages == everything.covered_pages
    assert renewal.bound is None or renewal.bound.value >= renewal.together(renewal.best) - 1e-9


def test_counting_links_takes_no_memory_by_link() -> None:
    count, edges = 1000, 500_000
    rng = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rng.integers(0, count, edges), minlength=count))])
    links = LinkGraph(starts, rng.integers(0, count, edges).astype(np.uint32))
    everything, ends = np.ones(count, np.bool_), np.arange(count)
    count_links_from(np.array([0]), links, everything, ends)  # kernels are compiled
    tracemalloc.start()
    try:
        count_links_from(np.array([0]), links, everything, ends)
        assert tracemalloc.get_traced_memory()[1] < edges
    finally:
        tracemalloc.stop()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.integers(1, 30), k=st.integers(1, 5), worth=st.sampled_from([0.0, 0.01, 0.3])
)
def test_a_second_renewal_changes_nothing(seed: int, count: int, k: int, worth: float) -> None:
    rng = np.random.default_rng(seed)
    graph = make_graph(rng.integers(0, count, 2 * count), rng.integers(0, count, 2 * count), count)
    problem = SeedProblem(graph, rng.random(count), hops=2)
    before = rng.permutation(count)[: rng.integers(0, k + 1)]
    first = renew_seeds(problem, k, before, worth)
    assert first.choice.covered_value >= first.before.covered_value or first.is_new
    again = renew_seeds(problem, k, first.choice.seeds, worth)
    assert not again.is_new
    assert again.choice.seeds.tolist() == first.choice.seeds.tolist()
    assert again.choice.covered_value == pytest.approx(cover(problem, first.choice.seeds.tolist()).covered_value)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_depths_are_those_of_a_plain_search(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    sources, targets = np.sort(rng.integers(0, count, count)), rng.integers(0, count, count)
    starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))])
    seeds = rng.permutation(count)[: rng.integers(1, 3)]
    leads_on = rng.random(count) < 0.8
    moved = rng.random(count) < 0.2
    ends = np.where(moved, rng.integers(0, count, count), np.arange(count))
    ends = np.where(moved[ends], np.arange(count), ends)  # where redirects end is none
    found = count_links_from(seeds, LinkGraph(starts, targets.astype(np.uint32)), leads_on, ends)
    line = [*seeds.tolist(), *ends[seeds].tolist()]
    depth = dict.fromkeys(line, 0)
    for level in range(1, count + 1):
        ahead = []
        for page in line:
            for target in targets[starts[page] : starts[page + 1]].tolist() if leads_on[page] else ():
                for each in (target, int(ends[target])):
                    if each not in depth:
                        depth[each] = level
                        ahead.append(each)
        line = ahead
    assert found.tolist() == [depth.get(page, 255) for page in range(count)]
