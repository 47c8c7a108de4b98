from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import problems, reaches, value_of

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.coverage import Coverage, cover
from bowerbird.appraise.seeds.problem import SeedProblem


@given(problems(lowest=-3), st.data())
@settings(max_examples=150, deadline=None)
def test_what_seeds_add_is_what_is_new_in_their_reach(problem: SeedProblem, data: st.DataObject) -> None:
    seeds = data.draw(st.lists(st.integers(0, problem.graph.count - 1), max_size=4))
    choice = cover(problem, seeds)
    whole, covered = reaches(problem), set[int]()
    for place, seed in enumerate(seeds):
        new = whole[seed] - covered
        assert choice.pages[place] == len(new)
        assert choice.value[place] == value_of(problem, new)
        covered |= new
    assert choice.covered_pages == len(covered)
    assert choice.covered_value == value_of(problem, covered)


@given(problems(lowest=-3), st.data())
@settings(max_examples=150, deadline=None)
def test_pages_are_weighed_together_as_each_alone(problem: SeedProblem, data: st.DataObject) -> None:
    count = problem.graph.count
    seeds = data.draw(st.lists(st.integers(0, count - 1), max_size=3))
    depth = data.draw(st.integers(0, problem.hops))
    coverage = Coverage(problem)
    for seed in seeds:
        coverage.take(seed)
    covered = set(np.flatnonzero(coverage.covered).tolist())
    assert covered == set().union(*(reaches(problem)[seed] for seed in seeds))
    for near, told in ((None, problem.hops), (depth, depth)):
        value, below = coverage.weigh(np.arange(count), near)
        for page, found in enumerate(reaches(problem, told)):
            new = found - covered
            assert value[page] == value_of(problem, new)
            assert below[page] == -sum(min(problem.weight[other], 0.0) for other in new)
    again, _ = coverage.weigh(np.arange(count))  # what is shared among searches is as it was
    assert again.tolist() == coverage.weigh(np.arange(count))[0].tolist()


def test_hundreds_of_pages_are_weighed_by_threads_as_by_one() -> None:
    rng = np.random.default_rng(3)
    count, edges = 3000, 250_000  # enough for two threads
    graph = make_graph(rng.integers(0, count, edges), rng.integers(0, count, edges), count)
    problem = SeedProblem(graph, rng.integers(-2, 5, count).astype(np.float64), 1)
    pages = rng.permutation(count)
    value, below = Coverage(problem).weigh(pages)
    rows = [graph.targets[graph.starts[page] : graph.starts[page + 1]] for page in pages]
    assert value.tolist() == [
        problem.weight[page] + problem.weight[row].sum() for page, row in zip(pages, rows, strict=True)
    ]
    lows = np.maximum(-problem.weight, 0)
    assert below.tolist() == [lows[page] + lows[row].sum() for page, row in zip(pages, rows, strict=True)]


def test_nothing_is_covered_by_nothing() -> None:
    empty = SeedProblem(make_graph([], [], 0), np.zeros(0), 5)
    assert cover(empty, []).covered_pages == 0
    value, below = Coverage(empty).weigh(np.arange(0))
    assert (len(value), len(below), empty.positive, empty.has_negative) == (0, 0, 0.0, False)


@pytest.mark.parametrize(
    ("weight", "hops", "said"),
    [
        (np.ones(2), 5, "one a page"),
        (np.ones(3), -1, "hops"),
        (np.ones(3), 121, "hops"),
        (np.array([1.0, np.nan, 1.0]), 5, "finite"),
    ],
)
def test_a_problem_must_make_sense(weight: np.ndarray, hops: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SeedProblem(make_graph([0], [1], 3), weight, hops)


@given(problems(), st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_no_seeds_cover_more_than_the_ceiling(problem: SeedProblem, k: int) -> None:
    from tests.appraise.seeds.brute import best_value

    assert best_value(problem, min(k, 3)) <= problem.ceiling(min(k, 3)) <= problem.positive
