from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import best_value, problems, reaches, value_of

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds import sample as sampling
from bowerbird.appraise.seeds.greedy import choose_greedily
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.sample import draw_targets, sample_targets
from bowerbird.appraise.seeds.sampled import bound_by_sample, choose_by_sample, sample_bound


def as_sets(reach: sampling._Rows | sampling._Words, count: int, drawn: int) -> list[set[int]]:
    """By page the places of the targets it reaches."""
    if isinstance(reach, sampling._Words):
        bits = np.zeros((count, -(-drawn // 64)), np.uint64)
        bits[np.repeat(np.arange(count), np.diff(reach.starts)), reach.blocks] = reach.words
    else:
        bits = reach.bits
    flat = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :drawn]
    return [set(np.flatnonzero(row).tolist()) for row in flat]


@given(problems(), st.integers(1, 1200))
@settings(max_examples=60, deadline=None)
def test_both_ways_find_who_reaches_a_target(problem: SeedProblem, samples: int) -> None:
    if problem.positive == 0:
        return
    drawn = draw_targets(problem.weight, samples, np.random.default_rng(samples))
    assert (problem.weight[drawn] > 0).all()
    plain = [{place for place, page in enumerate(drawn.tolist()) if page in found} for found in reaches(problem)]
    for way in (sampling._pull_all, sampling._search_all):
        assert as_sets(way(problem, drawn), problem.graph.count, len(drawn)) == plain, way


def test_targets_are_drawn_by_the_size_of_their_weight() -> None:
    weight = np.array([0.0, 1.0, 0.0, -3.0, 4.0, 0.0])
    found = np.bincount(draw_targets(weight, 80_000, np.random.default_rng(1)), minlength=6) / 10_000
    assert found[[0, 2, 5]].tolist() == [0, 0, 0]
    assert found[[1, 3, 4]] == pytest.approx([1, 3, 4], abs=0.1)


@pytest.mark.parametrize(
    ("links", "memory_bytes", "drawn"),
    [(5000, 10**9, sampling.MOST_DENSE_SAMPLES), (5000, 1, sampling.BLOCK), (500, 10**9, sampling.MOST_SAMPLES)],
)
def test_gains_are_those_of_the_graph_but_for_chance(links: int, memory_bytes: int, drawn: int) -> None:
    rng = np.random.default_rng(4)
    graph = make_graph(rng.integers(0, 2000, links), rng.integers(0, 2000, links), 2000)
    problem = SeedProblem(graph, rng.integers(-1, 4, 2000).astype(np.float64), 3)
    sample = sample_targets(problem, rng, None if memory_bytes > 1 else 4096, memory_bytes)
    assert sample.drawn == drawn
    assert isinstance(sample.reach, sampling._Words if drawn == sampling.MOST_SAMPLES else sampling._Rows)
    whole = reaches(problem)
    value, below = sample.weigh(np.arange(2000))
    true = np.array([value_of(problem, found) for found in whole])
    chance = 4 * np.sqrt(sample.unit * np.abs(problem.weight).sum())  # four deviations, at most
    assert np.abs(value * sample.unit - true).max() < chance
    assert (below >= 0).all()
    sample.take(7)
    assert sample.weigh(np.array([7]))[0].tolist() == [0]


def test_it_comes_near_the_exact_greedy_and_counts_what_it_covers() -> None:
    rng = np.random.default_rng(6)
    graph = make_graph(rng.integers(0, 2000, 3500), rng.integers(0, 2000, 3500), 2000)
    problem = SeedProblem(graph, np.ones(2000), 4)
    exact, found = choose_greedily(problem, 20), choose_by_sample(problem, 20, rng)
    assert found.samples > 0
    assert found.covered_value >= 0.99 * exact.covered_value
    covered = set().union(*(reaches(problem)[seed] for seed in found.seeds.tolist()))
    assert found.covered_pages == len(covered)
    assert found.bound is not None
    assert exact.bound is not None
    assert found.bound.value == pytest.approx(exact.bound.value, rel=0.05)


@given(problems(lowest=-4), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_no_seed_lowers_the_value(problem: SeedProblem, k: int) -> None:
    choice = choose_by_sample(problem, k, np.random.default_rng(0), samples=64)
    assert (choice.value > 0).all()
    assert len(set(choice.seeds.tolist())) == len(choice.seeds) <= k


def test_the_bound_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    graph = make_graph(rng.integers(0, 12, 14), rng.integers(0, 12, 14), 12)
    problem = SeedProblem(graph, rng.integers(1, 5, 12).astype(np.float64), 2)
    best = best_value(problem, 1)  # of one seed the sample's bound is all there is: chance alone keeps it above
    draws = 400
    for confidence, most in ((0.99, 0.01), (0.8, 0.2)):
        bounds = [
            bound_by_sample(problem, 1, np.random.default_rng(seed), samples=100, confidence=confidence).value
            for seed in range(draws)
        ]
        missed = np.mean(np.array(bounds) < best - 1e-9)
        assert missed <= most + 2.5 * np.sqrt(most * (1 - most) / draws)
        assert np.mean(bounds) < problem.positive


def test_the_limit_is_that_of_the_binomial() -> None:
    from scipy.stats import binom

    found = sample_bound(200, 50, 1.0, 0.95)
    assert binom.cdf(50, 200, found.value) == pytest.approx(0.05)
    assert found.confidence == 0.95
    assert sample_bound(200, 200, 7.0) == sample_bound(0, 0, 7.0)
    assert sample_bound(200, 200, 7.0).value == 7.0


def test_more_seeds_than_targets_tell_apart_are_filled_up() -> None:
    lone = SeedProblem(make_graph([], [], 1000), np.ones(1000), 2)
    choice = choose_by_sample(lone, 200, np.random.default_rng(1), samples=64)
    assert len(choice.seeds) == 200 == choice.covered_pages


def test_what_is_all_below_zero_has_no_seeds() -> None:
    problem = SeedProblem(make_graph([0], [1], 2), np.array([-1.0, 0.0]), 2)
    choice = choose_by_sample(problem, 2, np.random.default_rng(1))
    assert (len(choice.seeds), choice.covered_value) == (0, 0)
    with pytest.raises(ValueError, match="nothing to draw"):
        sample_targets(SeedProblem(problem.graph, np.zeros(2), 1), np.random.default_rng(1))
