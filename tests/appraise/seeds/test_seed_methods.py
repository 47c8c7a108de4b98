from __future__ import annotations

import numpy as np
import pytest
from tests.appraise.seeds.brute import best_value

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.methods import METHODS, VOID, SeedOptions, bound_optimum, choose_best, choose_seeds
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.weights import click_weights, page_weights, uniqueness_of


def draw_problem(seed: int = 1, lowest: int = 0) -> SeedProblem:
    rng = np.random.default_rng(seed)
    graph = make_graph(rng.integers(0, 60, 90), rng.integers(0, 60, 90), 60)
    return SeedProblem(graph, rng.integers(lowest, 4, 60).astype(np.float64), 2)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_rules(method: str) -> None:
    problem = draw_problem()
    choice = choose_seeds(problem, 5, method, SeedOptions())
    assert 1 <= len(choice.seeds) <= 5
    assert len(set(choice.seeds.tolist())) == len(choice.seeds)
    assert len(choice.seeds) == len(choice.pages) == len(choice.value)
    assert choice.covered_value <= problem.positive
    bound = bound_optimum(problem, 5, choice)
    assert choice.covered_value <= bound.value
    few = bound_optimum(problem, 2, choose_seeds(problem, 2, method, SeedOptions()))
    assert best_value(problem, 2) <= few.value < problem.positive
    again = choose_seeds(problem, 5, method, SeedOptions())
    assert again.seeds.tolist() == choice.seeds.tolist()
    assert len(choose_seeds(problem, 500, method).seeds) <= 60
    assert len(choose_seeds(problem, 0, method).seeds) == 0
    empty = SeedProblem(make_graph([], [], 0), np.zeros(0), 5)
    assert len(choose_seeds(empty, 3, method).seeds) == 0
    with pytest.raises(ValueError, match="k is -1"):
        choose_seeds(problem, -1, method)


def test_greedy_counts_where_that_fits_and_samples_where_not() -> None:
    problem = draw_problem()
    exact = choose_best(problem, 5, SeedOptions())
    sampled = choose_best(problem, 5, SeedOptions(exact_work=1))
    asked = choose_best(problem, 5, SeedOptions(samples=256))
    assert (exact.samples, sampled.samples > 0, asked.samples) == (0, True, 256)
    assert sampled.covered_value >= 0.95 * exact.covered_value
    other = choose_seeds(problem, 5, "outdegree")
    told = bound_optimum(problem, 5, other, SeedOptions(exact_work=1))
    assert told.confidence < 1
    assert exact.covered_value <= told.value <= problem.positive


def test_weights_below_zero_void_the_promise_and_that_is_said() -> None:
    choice = choose_best(draw_problem(lowest=-3), 5, SeedOptions())
    assert VOID in choice.notes
    assert VOID not in choose_best(draw_problem(), 5, SeedOptions()).notes
    nothing = SeedProblem(make_graph([0], [1], 2), np.array([-1.0, 0.0]), 1)
    assert "no page" in choose_best(nothing, 1, SeedOptions()).notes[0]
    assert bound_optimum(nothing, 1, choose_seeds(nothing, 1, "random")).value == 0


def test_weights_by_rule() -> None:
    assert page_weights(2).tolist() == [1, 1]
    found = page_weights(4, clicked=[1, 0, 1, 0], spam=[0, 0, 1, 1], uncrawled_links=[0, 4, 2, 0], uniqueness=0.25)
    assert found.tolist() == [10, 2, -9.5, -10]
    with pytest.raises(ValueError, match="probability"):
        page_weights(1, uncrawled_links=[1], uniqueness=1.5)


def test_weights_in_clicks() -> None:
    assert click_weights([6.0, 0.0, 0.0], [0, 1, 2], 0.5).tolist() == [6, 1, 2]
    assert click_weights([6.0, 0.0], [0, 1], 0.5, clicks_per_page=8.0).tolist() == [6, 4]
    assert click_weights([], [], 0.5).tolist() == []


def test_uniqueness_is_a_share_of_what_was_fetched() -> None:
    assert uniqueness_of(0, 0) == 0.5
    assert uniqueness_of(998, 799) == 0.8
    with pytest.raises(ValueError, match="5 unique"):
        uniqueness_of(4, 5)
