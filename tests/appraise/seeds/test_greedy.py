from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import best_value, greedy, problems

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds import lazy
from bowerbird.appraise.seeds.greedy import ALL_COVERED, choose_greedily, count_work, marginal_bound
from bowerbird.appraise.seeds.problem import SeedProblem


@given(problems(), st.integers(0, 14))
@settings(max_examples=200, deadline=None)
def test_it_is_the_plain_greedy(problem: SeedProblem, k: int) -> None:
    assert choose_greedily(problem, k).seeds.tolist() == greedy(problem, k)


@given(problems(lowest=-4), st.integers(0, 6))
@settings(max_examples=300, deadline=None)
def test_it_is_the_plain_greedy_with_weights_below_zero(problem: SeedProblem, k: int) -> None:
    choice = choose_greedily(problem, k)
    assert choice.seeds.tolist() == greedy(problem, k)
    assert (choice.value > 0).all()


def test_most_of_many_pages_are_not_weighed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "FIRST_RIVALS", 2)
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 400, 900), rng.integers(0, 400, 900), 400)
    problem = SeedProblem(graph, rng.integers(-1, 4, 400).astype(np.float64), 3)
    assert choose_greedily(problem, 20).seeds.tolist() == greedy(problem, 20)


@given(problems(most=8, lowest=-3), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_the_bound_is_above_the_optimum(problem: SeedProblem, k: int) -> None:
    best = best_value(problem, min(k, problem.graph.count))
    choice = choose_greedily(problem, k)
    assert choice.bound is not None
    assert choice.bound.confidence == 1.0
    assert best <= choice.bound.value + 1e-9
    if not problem.has_negative:
        assert choice.covered_value >= (1 - 1 / np.e) * best
    for seeds in ([], [0], choice.seeds.tolist()):
        assert best <= marginal_bound(problem, k, seeds).value + 1e-9


def test_the_bound_is_tight_where_reaches_are_apart() -> None:
    stars = make_graph([0, 0, 3, 3, 6], [1, 2, 4, 5, 7], 8)
    choice = choose_greedily(SeedProblem(stars, np.ones(8), 2), 2)
    assert choice.seeds.tolist() == [0, 3]
    assert choice.bound is not None
    assert choice.bound.value == choice.covered_value == 6


def test_it_ends_when_all_is_covered_and_says_so() -> None:
    ring = make_graph([0, 1, 2], [1, 2, 0], 3)
    choice = choose_greedily(SeedProblem(ring, np.ones(3), 2), 3)
    assert choice.seeds.tolist() == [0]
    assert choice.notes == (ALL_COVERED,)


def test_without_hops_the_heaviest_pages_are_taken() -> None:
    graph = make_graph([0, 1], [1, 2], 4)
    assert choose_greedily(SeedProblem(graph, np.array([1.0, 4.0, -1.0, 2.0]), 0), 4).seeds.tolist() == [1, 3, 0]


def test_work_is_counted_from_a_few_pages() -> None:
    chain = make_graph(np.arange(9999), np.arange(1, 10000), 10000)
    found = count_work(SeedProblem(chain, np.ones(10000), 4), 1e9, np.random.default_rng(0))
    # 64 neighbours in a chain share their searches: each of four rounds looks at one link a page
    assert 3.5 * 10000 < found < 4.1 * 10000
    assert count_work(SeedProblem(chain, np.ones(10000), 4), 1.0, np.random.default_rng(0)) > 1.0
    assert count_work(SeedProblem(make_graph([], [], 0), np.zeros(0), 4), 1.0, np.random.default_rng(0)) == 0
