from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import above_zero, best_value, greedy, problems

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds import lazy
from bowerbird.appraise.seeds.coverage import ALL_COVERED, NO_GAIN, Coverage
from bowerbird.appraise.seeds.greedy import choose_greedily, count_work
from bowerbird.appraise.seeds.lazy import LazyGains
from bowerbird.appraise.seeds.methods import SeedOptions, fits_exactly
from bowerbird.appraise.seeds.problem import SeedProblem


@given(problems(tenths=True), st.integers(0, 14))
@settings(max_examples=200, deadline=None)
def test_it_is_the_plain_greedy(problem: SeedProblem, k: int) -> None:
    assert choose_greedily(problem, k).seeds.tolist() == greedy(problem, k)


@given(problems(lowest=-4, tenths=True), st.integers(0, 6))
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


@given(problems(most=8, lowest=-3, tenths=True), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_the_bound_is_above_the_optimum(problem: SeedProblem, k: int, rounds: int) -> None:
    best = best_value(above_zero(problem), min(k, problem.graph.count))
    choice = choose_greedily(problem, k, rounds)
    assert choice.bound is not None
    assert choice.bound.confidence == 1.0
    assert best <= choice.bound.value + 1e-9
    if not problem.has_negative:
        assert choice.covered_value >= (1 - 1 / np.e) * best - 1e-9


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


@pytest.mark.parametrize("weight", [[1.0, -9.0, -5.0, 2.0], [-10.0, -10.0, 5.0, -10.0]])
def test_it_ends_when_nothing_is_worth_its_cost_and_says_so(weight: list[float]) -> None:
    chain = make_graph([0, 1, 2], [1, 2, 3], 4)
    choice = choose_greedily(SeedProblem(chain, np.array(weight), 5), 4)
    assert choice.notes == (NO_GAIN,)
    spared = choose_greedily(SeedProblem(chain, np.array([-10.0, -10.0, 5.0, 5.0]), 5), 4)
    assert spared.notes == (ALL_COVERED,)


def test_sums_that_rounding_sets_apart_are_equal() -> None:
    # 0.3 + 0.2 + 0.1 and 0.1 + 0.2 + 0.3: the second is larger by a bit
    graph = make_graph([0, 0, 5, 5], [1, 2, 3, 4], 6)
    weight = np.array([0.3, 0.2, 0.1, 0.2, 0.3, 0.1])
    assert choose_greedily(SeedProblem(graph, weight, 1), 1).seeds.tolist() == [0]
    gains = LazyGains(2, lambda pages: (np.array([0.6, 0.6000000000000001])[pages], np.zeros(len(pages))), 1e-12)
    assert gains.best()[0] == 0
    empty = SeedProblem(make_graph([], [], 3), np.array([1.0, 1e-14, 1.0]), 1)
    assert choose_greedily(empty, 3).seeds.tolist() == [0, 2]


def test_what_is_put_aside_can_be_admitted_again() -> None:
    gains = LazyGains(3, lambda pages: (np.array([3.0, 2.0, 1.0])[pages], np.zeros(len(pages))))
    gains.put_aside(np.array([0]))
    assert gains.best() == (1, 2.0)
    gains.note_taken(1, 0.0)
    assert gains.best() == (2, 1.0)
    gains.admit_again()
    assert gains.best() == (0, 3.0)
    gains.note_taken(0, 1.0)
    gains.admit_again()
    assert gains.best() == (2, 1.0)  # seeds do not come back


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


def draw_uneven(count: int = 20_000) -> SeedProblem:
    """Few pages with very many links behind them: batches cost very different amounts."""
    rng = np.random.default_rng(7)
    hubs = rng.choice(count, 60, replace=False)
    sources = np.concatenate([np.repeat(hubs, 800), rng.integers(0, count, 10_000)])
    return SeedProblem(make_graph(sources, rng.integers(0, count, len(sources)), count), np.ones(count), 2)


def test_near_the_limit_work_is_counted_until_it_is_sure() -> None:
    problem = draw_uneven()
    whole = Coverage(problem)
    whole.weigh(np.arange(problem.graph.count))
    for limit, said in ((whole.work / 1.4, False), (1.4 * whole.work, True)):
        found = [count_work(problem, limit, np.random.default_rng(seed)) <= limit for seed in range(40)]
        assert found.count(said) >= 37


def test_whether_it_is_counted_exactly_does_not_depend_on_what_was_drawn() -> None:
    problem = draw_uneven()
    rng = np.random.default_rng(5)
    about = count_work(problem, 1e15, np.random.default_rng(0))
    for limit in (0.7 * about, about, 1.4 * about):
        judged = {fits_exactly(problem, SeedOptions(exact_work=limit, rng=rng)) for _ in range(6)}
        assert len(judged) == 1
    assert rng.random() == np.random.default_rng(5).random()
