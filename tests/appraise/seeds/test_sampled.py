from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import above_zero, best_value, problems, reaches, value_of

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds import sample as sampling
from bowerbird.appraise.seeds import sampled
from bowerbird.appraise.seeds.coverage import ALL_COVERED
from bowerbird.appraise.seeds.greedy import choose_greedily
from bowerbird.appraise.seeds.problem import Bound, SeedProblem
from bowerbird.appraise.seeds.sample import draw_targets, sample_targets
from bowerbird.appraise.seeds.sampled import SAMPLED_OUT, bound_by_sample, choose_by_sample, sample_bound


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
    size = np.abs(problem.weight).sum()
    chance = 4 * size / np.sqrt(sample.drawn)  # four deviations, at most
    assert np.abs(value * size / sample.drawn - true).max() < chance
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


@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_holds_for_several_seeds_and_weights_below_zero(k: int) -> None:
    rng = np.random.default_rng(8)
    graph = make_graph(rng.integers(0, 16, 24), rng.integers(0, 16, 24), 16)
    problem = SeedProblem(graph, rng.integers(-3, 5, 16).astype(np.float64), 1)
    assert problem.has_negative
    best = best_value(above_zero(problem), k)
    assert best < problem.positive
    draws, most = 150, 0.2
    for choose in (choose_by_sample, bound_by_sample):
        bounds = []
        for seed in range(draws):
            found = choose(problem, k, np.random.default_rng(seed), samples=100, confidence=1 - most)
            bound = found if isinstance(found, Bound) else found.bound
            assert bound is not None
            bounds.append(bound.value)
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


@pytest.mark.parametrize("counted_links", [sampled._FILL_LINKS, 0])
def test_seeds_are_filled_up_from_all_that_is_left(monkeypatch: pytest.MonkeyPatch, counted_links: float) -> None:
    monkeypatch.setattr(sampled, "_FILL_LINKS", counted_links)
    rings, pages = 200, 100
    page = np.arange(rings * pages)
    ring = make_graph(page, page // pages * pages + (page + 1) % pages, rings * pages)
    problem = SeedProblem(ring, np.ones(rings * pages), pages - 1)
    choice = choose_by_sample(problem, rings, np.random.default_rng(1), samples=64, rounds=0)
    assert len(choice.seeds) == rings
    assert choice.covered_pages == rings * pages
    assert choose_by_sample(problem, rings + 5, np.random.default_rng(1), samples=64, rounds=0).notes == (ALL_COVERED,)


def test_what_is_left_is_filled_up_by_what_adds_most_and_never_lowers() -> None:
    # 64 targets are all drawn from the heavy page; of the others, one leads to many, and some to what is below zero
    graph = make_graph([5, *[6] * 20, 40, 41], [1, *range(7, 27), 2, 2], 50)
    weight = np.ones(50)
    weight[0], weight[2] = 1e9, -30.0
    choice = choose_by_sample(SeedProblem(graph, weight, 2), 3, np.random.default_rng(1), samples=64, rounds=0)
    assert choice.seeds.tolist()[:2] == [0, 6]
    more = choose_by_sample(SeedProblem(graph, weight, 2), 50, np.random.default_rng(1), samples=64, rounds=0)
    assert not {40, 41, 2} & set(more.seeds.tolist())
    assert (more.value > 0).all()
    assert more.notes == (SAMPLED_OUT,)


def test_what_was_refused_is_asked_again_when_spam_is_covered_by_others() -> None:
    """Page 0 reaches spam and less than that is worth; 1 reaches the same spam and more; then 0 is worth taking.

    Page 40 is so heavy that few of the targets tell of the others: often none is the spam.
    """
    links = [(0, 2), (1, 2), *((0, page) for page in range(3, 11)), *((1, page) for page in range(11, 40))]
    graph = make_graph([a for a, _ in links], [b for _, b in links], 41)
    weight = np.ones(41)
    weight[[0, 2, 40]] = 0.0, -10.0, 300.0
    problem = SeedProblem(graph, weight, 1)
    exact = choose_greedily(problem, 3)
    assert exact.seeds.tolist() == [40, 1, 0]
    values = [
        choose_by_sample(problem, 3, np.random.default_rng(seed), samples=64, rounds=0).covered_value
        for seed in range(40)
    ]
    assert values.count(exact.covered_value) >= 25  # 28; 11 if what is refused were refused for good


def test_memory_is_kept_and_what_it_does_not_allow_is_told() -> None:
    rng = np.random.default_rng(3)
    count = 30_000
    for links in (count // 2, 6 * count):
        graph = make_graph(rng.integers(0, count, links), rng.integers(0, count, links), count)
        problem = SeedProblem(graph, np.ones(count), 4)
        choose_by_sample(problem, 5, np.random.default_rng(1), samples=64)  # kernels and what a graph keeps
        for memory_bytes in (10_000_000, 25_000_000):
            tracemalloc.start()
            choice = choose_by_sample(problem, 5, np.random.default_rng(1), memory_bytes=memory_bytes)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert 0.25 * memory_bytes < peak < 1.1 * memory_bytes, (links, memory_bytes, peak, choice.samples)
            assert not [note for note in choice.notes if "memory" in note]
    asked = choose_by_sample(problem, 5, np.random.default_rng(1), samples=60_000, memory_bytes=10_000_000)
    assert f"memory allows for {asked.samples:,} of the 60,000 samples asked for" in asked.notes
    assert asked.samples < 60_000
    little = choose_by_sample(problem, 5, np.random.default_rng(1), memory_bytes=1_000_000)
    assert any("more than the 1 MB it was to have" in note for note in little.notes)


def test_what_is_all_below_zero_has_no_seeds() -> None:
    problem = SeedProblem(make_graph([0], [1], 2), np.array([-1.0, 0.0]), 2)
    choice = choose_by_sample(problem, 2, np.random.default_rng(1))
    assert (len(choice.seeds), choice.covered_value) == (0, 0)
    with pytest.raises(ValueError, match="nothing to draw"):
        sample_targets(SeedProblem(problem.graph, np.zeros(2), 1), np.random.default_rng(1))
