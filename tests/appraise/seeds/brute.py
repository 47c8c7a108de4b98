"""Seeds by the plainest means, to hold the real ones against: sets of pages, all of them tried every time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.problem import SeedProblem


@st.composite
def problems(draw: st.DrawFn, *, most: int = 12, lowest: int = 0, hops: int = 4, tenths: bool = False) -> SeedProblem:
    """Small graphs with loops, doubles, lone pages and whole weights; or such in tenths, which no float is exactly."""
    count = draw(st.integers(1, most))
    page = st.integers(0, count - 1)
    links = draw(st.lists(st.tuples(page, page), max_size=3 * count))
    weight = draw(st.lists(st.integers(lowest, 4), min_size=count, max_size=count))
    graph = make_graph([a for a, _ in links], [b for _, b in links], count)
    unit = draw(st.sampled_from([1.0, 0.1])) if tenths else 1.0
    return SeedProblem(graph, np.array(weight, np.float64) * unit, draw(st.integers(0, hops)))


def first_of_most(gains: list[float]) -> int:
    """The first of the largest, where the order of adding up sets none apart."""
    return next(place for place, gain in enumerate(gains) if gain >= max(gains) - 1e-9)


def out_links(problem: SeedProblem) -> list[set[int]]:
    graph = problem.graph
    return [set(graph.targets[graph.starts[page] : graph.starts[page + 1]].tolist()) for page in range(graph.count)]


def reach(links: list[set[int]], page: int, hops: int) -> set[int]:
    found = {page}
    for _ in range(hops):
        found |= {target for source in found for target in links[source]}
    return found


def reaches(problem: SeedProblem, hops: int | None = None) -> list[set[int]]:
    links = out_links(problem)
    return [reach(links, page, problem.hops if hops is None else hops) for page in range(problem.graph.count)]


def value_of(problem: SeedProblem, pages: set[int]) -> float:
    return float(sum(problem.weight[page] for page in pages))


def greedy(problem: SeedProblem, k: int, depth: int | None = None) -> list[int]:
    """By what is within `depth`, as MaxWeight has it; by all that is covered, without."""
    whole, near = reaches(problem), reaches(problem, depth)
    covered: set[int] = set()
    seeds: list[int] = []
    while len(seeds) < k:
        gains = [-np.inf if page in seeds else value_of(problem, near[page] - covered) for page in range(len(near))]
        best = first_of_most(gains)
        if gains[best] <= 1e-9:
            break
        seeds.append(best)
        covered |= whole[best]
    return seeds


def above_zero(problem: SeedProblem) -> SeedProblem:
    """What bounds are on: pages below zero count nothing."""
    return SeedProblem(problem.graph, np.maximum(problem.weight, 0.0), problem.hops)


def best_value(problem: SeedProblem, k: int) -> float:
    """The optimum, by trying all."""
    whole = reaches(problem)
    sets = [
        set().union(*(whole[page] for page in seeds))
        for size in range(k + 1)
        for seeds in combinations(range(len(whole)), size)
    ]
    return max(value_of(problem, covered) for covered in sets)
