from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import best_value, problems, reaches

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.dual import first_prices, tighten_bound
from bowerbird.appraise.seeds.greedy import choose_greedily
from bowerbird.appraise.seeds.problem import F64, I64, SeedProblem
from bowerbird.appraise.seeds.sampled import choose_by_sample


@given(problems(most=8), st.integers(1, 3), st.integers(1, 6), st.data())
@settings(max_examples=150, deadline=None)
def test_it_is_above_the_optimum_at_any_prices(problem: SeedProblem, k: int, rounds: int, data: st.DataObject) -> None:
    count = problem.graph.count
    share = st.floats(0, 1, allow_subnormal=False)
    prices = np.array(data.draw(st.lists(share, min_size=count, max_size=count)))
    reach = np.array([[page in found for page in range(count)] for found in reaches(problem)], np.float64)

    def sums(column: F64) -> F64:
        return reach @ column

    def counts(pages: I64) -> F64:
        return reach[pages].sum(axis=0)

    best = best_value(problem, min(k, count))
    for reached in (0.0, best):
        found = tighten_bound(problem.weight, prices, k, sums, counts, reached, rounds)
        assert found >= best - 1e-9
        once = tighten_bound(problem.weight, prices, k, sums, counts, reached, 1)
        assert found <= once


def test_it_is_far_closer_than_marginals() -> None:
    rng = np.random.default_rng(2)
    graph = make_graph(rng.integers(0, 3000, 5000), rng.integers(0, 3000, 5000), 3000)
    problem = SeedProblem(graph, np.ones(3000), 4)
    plain, close = choose_greedily(problem, 20, 0), choose_greedily(problem, 20)
    assert plain.bound is not None
    assert close.bound is not None
    assert plain.seeds.tolist() == close.seeds.tolist()
    assert close.covered_value <= close.bound.value
    assert close.bound.value - close.covered_value < 0.5 * (plain.bound.value - plain.covered_value)
    sampled = choose_by_sample(problem, 20, rng)
    assert sampled.bound is not None
    assert close.covered_value <= sampled.bound.value
    assert sampled.bound.value == pytest.approx(close.bound.value, rel=0.1)


def test_without_seeds_all_counts_in_full() -> None:
    assert first_prices(np.array([-1, -1]), np.zeros(0)).tolist() == [1, 1]
    assert first_prices(np.array([0, 1, 2]), np.array([4.0, 0.0, 2.0])).tolist() == [0.5, 1, 1]
