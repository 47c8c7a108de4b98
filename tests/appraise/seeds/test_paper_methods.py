from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import first_of_most, greedy, out_links, problems, reaches, value_of

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.components import NO_COMPONENT, Components, choose_by_component, choose_by_root
from bowerbird.appraise.seeds.coverage import ALL_COVERED, NO_GAIN
from bowerbird.appraise.seeds.heuristics import choose_at_random, choose_by_out_degree, choose_by_pagerank
from bowerbird.appraise.seeds.maxout import choose_by_out_links
from bowerbird.appraise.seeds.maxweight import choose_by_depth_weight
from bowerbird.appraise.seeds.problem import SeedProblem


def test_figure_1() -> None:
    """Built to what the figure states, for its drawing is not at hand: out-degree picks 1 and 2, MaxOut 1 and 9.

    Pages 1 and 2 have most out-links, but lead to the same pages; 9 has fewer, to pages that 1 does not cover.
    """
    links = [(1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 3), (2, 4), (2, 5), (2, 6), (6, 7), (7, 8)]
    links += [(9, 10), (9, 11), (9, 12)]
    graph = make_graph([a - 1 for a, _ in links], [b - 1 for _, b in links], 12)
    problem = SeedProblem(graph, np.ones(12), 5)
    by_degree, by_removal = choose_by_out_degree(problem, 2), choose_by_out_links(problem, 2)
    assert (by_degree.seeds + 1).tolist() == [1, 2]
    assert (by_removal.seeds + 1).tolist() == [1, 9]
    assert (by_degree.covered_pages, by_removal.covered_pages) == (8, 12)


@given(problems(), st.integers(0, 14))
@settings(max_examples=200, deadline=None)
def test_maxout_is_the_plain_one(problem: SeedProblem, k: int) -> None:
    links, whole = out_links(problem), reaches(problem)
    left, seeds = set(range(problem.graph.count)), []
    while len(seeds) < k and left:
        seed = min(left, key=lambda page: (-len(links[page] & left), page))
        seeds.append(seed)
        left -= whole[seed]
    assert choose_by_out_links(problem, k).seeds.tolist() == seeds


@given(problems(lowest=-3, tenths=True), st.integers(0, 6), st.integers(0, 4))
@settings(max_examples=200, deadline=None)
def test_maxweight_is_the_plain_one(problem: SeedProblem, k: int, depth: int) -> None:
    depth = min(depth, problem.hops)
    assert choose_by_depth_weight(problem, k, depth).seeds.tolist() == greedy(problem, k, depth)


@given(problems(), st.integers(0, 14))
@settings(max_examples=100, deadline=None)
def test_out_degree_takes_the_largest(problem: SeedProblem, k: int) -> None:
    links = out_links(problem)
    order = sorted(range(len(links)), key=lambda page: (-len(links[page]), page))
    assert choose_by_out_degree(problem, k).seeds.tolist() == order[:k]


def test_pagerank_takes_the_largest() -> None:
    graph = make_graph([0, 1, 2, 3, 3], [4, 4, 4, 5, 4], 6)
    assert choose_by_pagerank(SeedProblem(graph, np.ones(6), 1), 2).seeds.tolist() == [4, 5]


def test_random_seeds_differ_and_come_again_with_the_same_generator() -> None:
    problem = SeedProblem(make_graph([0], [1], 50), np.ones(50), 1)
    first, again, other = (choose_at_random(problem, 50, np.random.default_rng(s)).seeds.tolist() for s in (1, 1, 2))
    assert sorted(first) == list(range(50))
    assert first == again != other


def plain_components(problem: SeedProblem) -> list[int]:
    """By page the lowest page that it reaches and that reaches it."""
    whole = reaches(problem, problem.graph.count)
    return [min(other for other in whole[page] if page in whole[other]) for page in range(len(whole))]


def plain_scc(problem: SeedProblem, k: int, depth: int, *, root: bool) -> list[int]:
    links, whole, near = out_links(problem), reaches(problem), reaches(problem, min(depth, problem.hops))
    far, of = reaches(problem, problem.graph.count), plain_components(problem)
    entered = {of[target] for page, row in enumerate(links) for target in row if of[target] != of[page]}
    covered: set[int] = set()
    seeds: list[int] = []
    while len(seeds) < min(k, len(of)):
        weight = {
            component: value_of(problem, {page for page in range(len(of)) if of[page] == component} - covered)
            for component in set(of)
        }
        heaviest = min(weight, key=lambda component: (-weight[component], component))
        if weight[heaviest] <= 0:
            break
        chosen = heaviest
        if root:
            roots = {of[page] for page in range(len(of)) if heaviest in far[page]} - entered
            roots = {each for each in roots if any(of[page] == each and page not in covered for page in range(len(of)))}
            if roots:
                chosen = min(roots, key=lambda component: (-weight[component], component))
        for each in (chosen, heaviest):
            pages = [page for page in range(len(of)) if of[page] == each and page not in seeds]
            seed = pages[first_of_most([value_of(problem, near[page] - covered) for page in pages])]
            if value_of(problem, whole[seed] - covered) > 0:
                break
        seeds.append(seed)
        covered |= whole[seed]
    return seeds


@given(problems(), st.integers(0, 6), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_maxscc_is_the_plain_one(problem: SeedProblem, k: int, depth: int) -> None:
    assert choose_by_component(problem, k, depth).seeds.tolist() == plain_scc(problem, k, depth, root=False)


@given(problems(), st.integers(0, 6), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_rootscc_is_the_plain_one(problem: SeedProblem, k: int, depth: int) -> None:
    assert choose_by_root(problem, k, depth).seeds.tolist() == plain_scc(problem, k, depth, root=True)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_components_are_the_plain_ones(problem: SeedProblem) -> None:
    found, plain = Components(problem.graph), plain_components(problem)
    lowest = {number: min(np.flatnonzero(found.of == number)) for number in range(found.count)}
    assert [lowest[number] for number in found.of.tolist()] == plain
    assert list(lowest.values()) == sorted(lowest.values())


@given(problems(), st.integers(0, 6), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_no_seed_of_a_component_is_for_nothing(problem: SeedProblem, k: int, depth: int) -> None:
    for choose in (choose_by_component, choose_by_root):
        assert (choose(problem, k, depth).value > 0).all()


def test_roots_that_are_covered_are_passed_over() -> None:
    # a ring of three that leads to a far chain: once the ring is covered, its other pages reach no more
    links = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]
    graph = make_graph([a for a, _ in links], [b for _, b in links], 9)
    choice = choose_by_root(SeedProblem(graph, np.ones(9), 3), 2, 2)
    assert choice.seeds.tolist()[0] in (0, 1, 2)
    assert choice.seeds[1] > 2
    # an empty way in is taken, for what is worth something lies behind it
    hub = make_graph([0, 0, 1, 2], [1, 2, 3, 4], 5)
    assert choose_by_root(SeedProblem(hub, np.array([0.0, 0.0, 0.0, 4.0, 5.0]), 2), 1, 2).seeds.tolist() == [0]


def test_why_there_are_fewer_seeds_is_said_truly() -> None:
    chain = make_graph([0, 1, 2], [1, 2, 3], 4)
    spared = SeedProblem(chain, np.array([1.0, -9.0, -5.0, 2.0]), 5)
    assert choose_by_depth_weight(spared, 4, 2).notes == (NO_GAIN,)
    ring = SeedProblem(make_graph([0, 1], [1, 0], 3), np.array([5.0, -10.0, 1.0]), 1)
    assert choose_by_component(ring, 3).notes == (NO_COMPONENT,)
    fine = SeedProblem(chain, np.ones(4), 5)
    for choose in (choose_by_depth_weight, choose_by_component, choose_by_root, choose_by_out_links):
        assert choose(fine, 4).notes == (ALL_COVERED,)
