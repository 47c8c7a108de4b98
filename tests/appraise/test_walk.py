"""PageRank and the walks of [RW15] against dense solutions in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise import threads
from bowerbird.appraise.frontier import walk as walks
from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.walk import enriched_walk, impact_weights, pagerank, random_walk

Matrix = npt.NDArray[np.float64]
PRECISIONS = [np.float32, np.float64]


def random_graph(seed: int, count: int, degree: float = 4.0, crawled: float = 0.6) -> tuple[FrontierGraph, Matrix]:
    """A skewed random graph and clicks of all its pages, most of them few."""
    rng = np.random.default_rng(seed)
    edges = int(count * degree)
    targets = (count * rng.random(edges) ** 2).astype(np.int64)
    graph = make_graph(rng.integers(0, count, edges), targets, count, rng.random(count) < crawled)
    return graph, np.floor(rng.pareto(0.8, count) * 3)


def link_matrix(graph: FrontierGraph) -> Matrix:
    matrix = np.zeros((graph.count, graph.count))
    for page in range(graph.count):
        matrix[page, graph.targets[graph.starts[page] : graph.starts[page + 1]]] = 1.0
    return matrix


def co_citation_matrix(graph: FrontierGraph) -> Matrix:
    """The virtual edges themselves: common in-linkers of i and j, for crawled i."""
    links = link_matrix(graph)
    matrix: Matrix = links.T @ links
    np.fill_diagonal(matrix, 0.0)
    matrix[~graph.crawled] = 0.0
    return matrix


def rows_to_one(matrix: Matrix) -> Matrix:
    total = matrix.sum(axis=1, keepdims=True)
    return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)


def weights_of(graph: FrontierGraph, clicks: Matrix, degree: Matrix, exponent: float) -> Matrix:
    impact = np.where(graph.crawled, clicks, 0.0) + 0.001
    return impact / impact.max() * (degree / max(degree.max(), 1.0)) ** exponent


def solve(steps: Matrix, damping: float) -> Matrix:
    """(1 - a)(I - a·steps)^-1 v."""
    count = len(steps)
    return np.linalg.solve(np.eye(count) - damping * steps, np.full(count, (1 - damping) / count))


def closed_form_rw(graph: FrontierGraph, clicks: Matrix, damping: float, exponent: float) -> Matrix:
    links = link_matrix(graph)
    return solve(rows_to_one(links).T * weights_of(graph, clicks, links.sum(axis=1), exponent), damping)


def closed_form_rw_eg(graph: FrontierGraph, clicks: Matrix, share: float, damping: float, exponent: float) -> Matrix:
    links, virtual = link_matrix(graph), co_citation_matrix(graph)
    real = rows_to_one(links).T * weights_of(graph, clicks, links.sum(axis=1), exponent)
    unreal = rows_to_one(virtual).T * weights_of(graph, clicks, (virtual > 0).sum(axis=1), exponent)
    return solve(share * real + (1 - share) * unreal, damping)


@given(
    st.integers(0, 10_000), st.integers(1, 60), st.floats(0.5, 8.0), st.floats(0.0, 0.95), st.sampled_from([0, 1, 0.5])
)
@settings(max_examples=60, deadline=None)
def test_rw_is_the_closed_form(seed: int, count: int, degree: float, damping: float, exponent: float) -> None:
    graph, clicks = random_graph(seed, count, degree)
    walk = random_walk(graph, clicks, damping=damping, exponent=exponent, tolerance=1e-13)
    expected = closed_form_rw(graph, clicks, damping, exponent)
    np.testing.assert_allclose(walk.values, expected, rtol=1e-9, atol=0)


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.floats(0.5, 8.0),
    st.floats(0.0, 0.95),
    st.sampled_from([0, 1, 0.5]),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_rw_eg_is_the_closed_form_with_the_explicit_co_citation_matrix(
    seed: int, count: int, degree: float, damping: float, exponent: float, share: float
) -> None:
    graph, clicks = random_graph(seed, count, degree)
    walk = enriched_walk(
        graph, clicks, real_share=share, damping=damping, exponent=exponent, tolerance=1e-13, dtype=np.float64
    )
    expected = closed_form_rw_eg(graph, clicks, share, damping, exponent)
    np.testing.assert_allclose(walk.values, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-9, 1e-12])
def test_the_error_is_within_the_tolerance_promised(dtype: Any, tolerance: float) -> None:
    graph, clicks = random_graph(5, 400, 6.0)
    evenly = np.ones_like(clicks)  # the slowest case: no page passes less than it has
    expected = closed_form_rw_eg(graph, evenly, 0.3, 0.85, 0.0)
    walk = enriched_walk(graph, evenly, real_share=0.3, tolerance=tolerance, dtype=dtype)
    known = graph.crawled
    error = np.abs(walk.values - expected)[known].sum() / expected[known].sum()
    assert walk.residual <= tolerance
    assert error <= tolerance * 0.85 / 0.15


def test_pagerank_is_the_dense_one_with_loose_ends_spread_over_all() -> None:
    graph, _ = random_graph(6, 80)
    count, steps = graph.count, rows_to_one(link_matrix(graph)).T
    steps[:, graph.out_degree == 0] = 1.0 / count
    expected = solve(steps, 0.85)
    walk = pagerank(graph, tolerance=1e-13)
    np.testing.assert_allclose(walk.values, expected, rtol=1e-9)
    assert walk.values.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_figure_of_the_paper_has_virtual_edges_of_weights_one_and_three() -> None:
    """[RW15] Figure 2: a crawled page cited once with one page and three times with another; neither is crawled."""
    page, once, thrice = 0, 1, 2
    sources = [3, 3, 4, 4, 5, 5, 6, 6]
    targets = [page, once, page, thrice, page, thrice, page, thrice]
    crawled = np.array([True, False, False, True, True, True, True])
    graph = make_graph(sources, targets, 7, crawled)
    clicks = np.array([8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    walk = enriched_walk(graph, clicks, real_share=0.0, tolerance=1e-13)
    assert walk.virtual_passed is not None
    gained = walk.values - 0.15 / 7
    assert graph.co_citation[0][page] == 4
    assert gained[once] == pytest.approx(0.85 * walk.values[page] / 4 * 1, rel=1e-12)
    assert gained[thrice] == pytest.approx(0.85 * walk.values[page] / 4 * 3, rel=1e-12)
    assert walk.virtual_passed[page] == pytest.approx(gained[once], rel=1e-12)
    # virtual edges start at crawled pages only: nothing comes back
    assert gained[page] == pytest.approx(0.0, abs=1e-15)
    both_ways = enriched_walk(
        make_graph(sources, targets, 7, crawled | (np.arange(7) == thrice)), clicks, real_share=0.0, tolerance=1e-13
    )
    assert both_ways.values[page] > 0.15 / 7


@pytest.mark.parametrize("method", ["pagerank", "rw", "rw-eg"])
def test_a_restart_finds_the_same_in_fewer_steps(method: str) -> None:
    rng = np.random.default_rng(7)
    count, edges = 2000, 12_000
    sources, targets = rng.integers(0, count, edges), (count * rng.random(edges) ** 2).astype(np.int64)
    crawled, clicks = rng.random(count) < 0.7, 1.0 + rng.random(count)
    before = make_graph(sources[:-20], targets[:-20], count, crawled)
    after = make_graph(sources, targets, count, crawled)

    def run(graph: FrontierGraph, **how: Any) -> walks.Walk:
        if method == "pagerank":
            return pagerank(graph, tolerance=1e-9, **how)
        return (random_walk if method == "rw" else enriched_walk)(graph, clicks, tolerance=1e-9, **how)

    old, new = run(before), run(after)
    again = run(after, start=old.values)
    assert np.abs(again.values - new.values).sum() <= 2e-8 * new.values.sum()
    assert again.iterations < new.iterations
    assert run(after, start=new.values).iterations <= 2


def test_a_graph_that_grew_starts_from_its_former_values() -> None:
    small, clicks = random_graph(8, 300)
    sources = np.repeat(np.arange(300), small.out_degree)
    grown = make_graph(sources, small.targets, 330, np.concatenate([small.crawled, np.zeros(30, np.bool_)]))
    former = random_walk(small, clicks, tolerance=1e-12)
    walk = random_walk(grown, clicks, tolerance=1e-9, start=former.values)  # clicks of new pages are none
    assert walk.iterations == 1  # the new pages are loose: the solution is the same, scaled by the number of pages
    np.testing.assert_allclose(walk.values[:300], former.values * 300 / 330, rtol=1e-8)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=30, deadline=None)
def test_a_value_is_the_sum_of_what_is_passed(seed: int, share: float) -> None:
    graph, clicks = random_graph(seed, 40)
    walk = enriched_walk(graph, clicks, real_share=share, tolerance=1e-13)
    assert walk.virtual_passed is not None
    told = walk.teleported + link_matrix(graph).T @ walk.passed + co_citation_matrix(graph).T @ walk.virtual_passed
    np.testing.assert_allclose(walk.values, told, rtol=1e-9)
    ranks = pagerank(graph, tolerance=1e-13)
    np.testing.assert_allclose(ranks.values, ranks.teleported + link_matrix(graph).T @ ranks.passed, rtol=1e-9)


def test_clicks_of_pages_not_crawled_are_not_looked_at() -> None:
    graph, clicks = random_graph(9, 100)
    other = np.where(graph.crawled, clicks, 1e9)
    np.testing.assert_array_equal(random_walk(graph, clicks).values, random_walk(graph, other).values)
    np.testing.assert_array_equal(enriched_walk(graph, clicks).values, enriched_walk(graph, other).values)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_threads_find_what_one_thread_finds(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    graph, clicks = random_graph(10, 3000, 10.0)
    alone = [walk(graph, clicks, dtype=dtype).values for walk in (random_walk, enriched_walk)]
    monkeypatch.setattr(threads, "SHARED_ENTRIES", 0)
    monkeypatch.setattr(threads, "PIECES_PER_THREAD", 7)
    shared = [walk(graph, clicks, dtype=dtype).values for walk in (random_walk, enriched_walk)]
    np.testing.assert_array_equal(shared, alone)


@pytest.mark.parametrize("method", [random_walk, enriched_walk])
def test_early_steps_are_in_float32_and_the_last_is_in_float64(monkeypatch: pytest.MonkeyPatch, method: Any) -> None:
    graph, clicks = random_graph(13, 500, 6.0)
    name = "collect" if method is random_walk else "collect_enriched"
    kernel, seen = getattr(walks, name), []

    def watch(*arguments: Any) -> Any:
        seen.append(arguments[4].dtype)
        return kernel(*arguments)

    monkeypatch.setattr(walks, name, watch)
    evenly = np.ones_like(clicks)
    walk = method(graph, evenly, tolerance=1e-6)
    assert len(seen) == walk.iterations > 5
    assert seen[-1] == np.float64
    assert seen.count(np.dtype(np.float64)) <= 2
    seen.clear()
    assert method(graph, evenly, tolerance=1e-6, dtype=np.float64).iterations <= walk.iterations + 1
    assert set(seen) == {np.dtype(np.float64)}


def test_a_page_cited_mostly_alone_keeps_its_digits_in_float32() -> None:
    """A thousand pages link to page 0 and to nothing else, one links to it and to page 1."""
    sources = [*range(2, 1003), 1002]
    targets = [0] * 1001 + [1]
    crawled = np.arange(1003) != 1
    graph = make_graph(sources, targets, 1003, crawled)
    clicks = np.where(np.arange(1003) == 0, 100.0, 1.0)
    walk = enriched_walk(graph, clicks, real_share=0.1, tolerance=1e-12, dtype=np.float32)
    np.testing.assert_allclose(walk.values, closed_form_rw_eg(graph, clicks, 0.1, 0.85, 0.0), rtol=1e-10)


def test_weights_follow_the_formula_and_stay_at_most_one() -> None:
    clicks, degree = np.array([9.999, 0.0, 4.999]), np.array([1, 5, 10])
    np.testing.assert_allclose(impact_weights(clicks, degree), [1.0, 0.0001, 0.5])
    np.testing.assert_allclose(impact_weights(clicks, degree, exponent=1.0), [0.1, 0.00005, 0.5])
    np.testing.assert_allclose(impact_weights(clicks, degree, floor=5.001), [1.0, 5.001 / 15, 10 / 15])


def test_it_stops_where_it_is_told_and_says_how_far_it_came() -> None:
    graph, _ = random_graph(11, 300, 6.0)
    walk = pagerank(graph, tolerance=1e-12, max_iterations=5)
    assert walk.iterations == 5
    assert 1e-12 < walk.residual < 0.5
    impossible = pagerank(graph, tolerance=1e-300)
    assert impossible.iterations < 500
    assert impossible.residual < 1e-14
    assert random_walk(make_graph([], [], 3), np.ones(3)).values.tolist() == pytest.approx([0.05] * 3)
    assert enriched_walk(make_graph([], [], 0), np.ones(0)).values.tolist() == []


def test_wrong_settings_are_named() -> None:
    graph, clicks = random_graph(12, 20)
    with pytest.raises(ValueError, match="damping is 1"):
        pagerank(graph, damping=1.0)
    with pytest.raises(ValueError, match="tolerance is 0"):
        random_walk(graph, clicks, tolerance=0.0)
    with pytest.raises(ValueError, match=r"real_share is 1\.5"):
        enriched_walk(graph, clicks, real_share=1.5)
    with pytest.raises(ValueError, match="not negative"):
        random_walk(graph, clicks - 1e6)
    with pytest.raises(ValueError, match="not negative"):
        random_walk(graph, np.full(20, np.nan))
    with pytest.raises(ValueError, match="not negative"):
        random_walk(graph, np.full(20, np.inf))
    with pytest.raises(ValueError, match="21 click numbers for 20 pages"):
        random_walk(graph, np.ones(21))
    with pytest.raises(ValueError, match="start must be finite"):
        random_walk(graph, clicks, start=np.full(20, np.nan))
    with pytest.raises(ValueError, match="start has 21 values"):
        pagerank(graph, start=np.ones(21))
