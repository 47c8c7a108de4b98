from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seeds.brute import problems

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.greedy import choose_greedily
from bowerbird.appraise.seeds.methods import SeedOptions
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.sites import apportion, choose_by_site, site_importance, split_sites


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=8), st.integers(0, 30))
@settings(max_examples=300, deadline=None)
def test_seeds_are_shared_out_by_importance(sites: list[tuple[int, int]], seeds: int) -> None:
    importance, most = [site[0] for site in sites], [site[1] for site in sites]
    found = apportion(importance, seeds, most)
    assert found.sum() == min(seeds, sum(room for weight, room in sites if weight > 0))
    assert all(0 <= number <= room for number, room in zip(found, most, strict=True))
    quota = np.array(importance) / max(sum(importance), 1) * seeds
    if all(share <= room - 1 for share, room in zip(quota, most, strict=True)):
        assert (np.abs(found - quota) < 1).all()
    order = np.argsort(importance)
    for less, more in pairwise(order):  # the more important never get less, if there is room
        assert found[less] <= found[more] + (importance[less] == importance[more]) or found[more] == most[more]


def test_what_full_sites_leave_goes_to_the_others() -> None:
    assert apportion([90.0, 5.0, 5.0], 10, [2, 100, 100]).tolist() == [2, 4, 4]
    assert apportion([0.0, 1.0], 5, [10, 2]).tolist() == [0, 2]
    with pytest.raises(ValueError, match="importance"):
        apportion([-1.0], 1, [1])
    with pytest.raises(ValueError, match="pages"):
        apportion([1.0], 1, [1, 2])


@given(problems(), st.data())
@settings(max_examples=150, deadline=None)
def test_sites_are_covered_by_their_own_links(problem: SeedProblem, data: st.DataObject) -> None:
    graph = problem.graph
    site = np.array(data.draw(st.lists(st.integers(0, 3), min_size=graph.count, max_size=graph.count)))
    sources = np.repeat(np.arange(graph.count), graph.out_degree)
    own = site[sources] == site[graph.targets]
    inner = SeedProblem(make_graph(sources[own], graph.targets[own], graph.count), problem.weight, problem.hops)
    for pages, part in split_sites(problem, site):
        assert (site[pages] == site[pages[0]]).all()
        assert part.weight.tolist() == problem.weight[pages].tolist()
        for place, page in enumerate(pages.tolist()):
            mine = part.graph.targets[part.graph.starts[place] : part.graph.starts[place + 1]]
            there = inner.graph.targets[inner.graph.starts[page] : inner.graph.starts[page + 1]]
            assert pages[mine].tolist() == there.tolist()
    found = choose_by_site(problem, site, np.full(4, 2))
    by_site = {number: [seed for seed in found.seeds.tolist() if site[seed] == number] for number in range(4)}
    for number, seeds in by_site.items():
        alone = SeedProblem(inner.graph, np.where(site == number, problem.weight, 0.0), problem.hops)
        plain = choose_greedily(alone, 2)
        assert sum(value for seed, value in zip(found.seeds, found.value, strict=True) if seed in seeds) == (
            plain.covered_value
        )
    assert (np.diff(found.value) <= 0).all()
    assert found.bound is not None
    assert found.covered_value <= found.bound.value + 1e-9


@pytest.mark.parametrize("method", ["maxout", "greedy", "random"])
def test_seeds_of_a_site_stay_in_their_order(method: str) -> None:
    rng = np.random.default_rng(4)
    site = rng.integers(0, 5, 120)
    problem = SeedProblem(make_graph(rng.integers(0, 120, 400), rng.integers(0, 120, 400), 120), np.ones(120), 2)
    found = choose_by_site(problem, site, np.full(5, 6), method, SeedOptions(rng=np.random.default_rng(1)))
    parts = dict(enumerate(split_sites(problem, site)))
    for number, (pages, inner) in parts.items():
        mine = site[found.seeds] == number
        again = cover(inner, np.searchsorted(pages, found.seeds[mine]).tolist())
        assert found.value[mine].tolist() == again.value.tolist()  # what each adds to those shown before it
        assert found.pages[mine].tolist() == again.pages.tolist()
    assert found.value[0] == max(found.value[np.argmax(site[found.seeds] == number)] for number in range(5))


def test_bounds_of_many_sites_hold_together() -> None:
    rng = np.random.default_rng(4)
    sites, pages = 30, 60
    first = rng.integers(0, sites * pages, 4000)
    second = first // pages * pages + rng.integers(0, pages, 4000)
    problem = SeedProblem(make_graph(first, second, sites * pages), np.ones(sites * pages), 1)
    site = np.arange(sites * pages) // pages
    for method in ("greedy", "outdegree"):
        found = choose_by_site(problem, site, np.ones(sites), method, SeedOptions(samples=256))
        assert found.bound is not None
        assert found.bound.confidence == pytest.approx(0.99)  # each 1 - 0.01/30: not certain, and not 0.99^30
        assert found.bound.value < problem.positive
    few = choose_by_site(problem, site, np.ones(sites), options=SeedOptions())
    assert few.bound is not None
    assert few.bound.confidence == 1.0
    assert few.samples == 0


def test_importance_is_the_value_above_zero() -> None:
    assert site_importance(np.array([1.0, -10.0, 4.0]), [0, 0, 2], 4).tolist() == [1, 0, 4, 0]


def test_sites_without_seeds_are_left_out() -> None:
    problem = SeedProblem(make_graph([0, 2], [1, 3], 4), np.ones(4), 1)
    choice = choose_by_site(problem, [0, 0, 1, 1], [0, 1])
    assert choice.seeds.tolist() == [2]
    assert choose_by_site(problem, [0, 0, 1, 1], [0, 0]).covered_pages == 0
    with pytest.raises(ValueError, match="pages"):
        choose_by_site(problem, [0, 0, 1], [1, 1])
