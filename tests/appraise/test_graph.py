"""The link graph of a crawl: what make_graph keeps, what the transposed rows say, what hiding pages does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise import threads
from bowerbird.appraise.frontier.graph import FrontierGraph, graph_of_links, make_graph
from bowerbird.appraise.threads import cut_rows
from bowerbird.model.snapshot import LinkGraph


def dense(graph: FrontierGraph) -> npt.NDArray[np.float64]:
    matrix = np.zeros((graph.count, graph.count))
    for page in range(graph.count):
        np.add.at(matrix[page], graph.targets[graph.starts[page] : graph.starts[page + 1]], 1.0)
    return matrix


@st.composite
def link_lists(draw: st.DrawFn, most_pages: int = 12) -> tuple[list[int], list[int], int, npt.NDArray[np.bool_]]:
    count = draw(st.integers(1, most_pages))
    page = st.integers(0, count - 1)
    links = draw(st.lists(st.tuples(page, page), max_size=5 * count))
    crawled = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    return [link[0] for link in links], [link[1] for link in links], count, crawled


@given(link_lists())
@settings(max_examples=150, deadline=None)
def test_only_distinct_links_of_crawled_pages_to_others_stay(
    made: tuple[list[int], list[int], int, npt.NDArray[np.bool_]],
) -> None:
    sources, targets, count, crawled = made
    wanted = {(s, t) for s, t in zip(sources, targets, strict=True) if s != t and crawled[s]}
    graph = make_graph(sources, targets, count, crawled)
    expected = np.zeros((count, count))
    for source, target in wanted:
        expected[source, target] = 1.0
    np.testing.assert_array_equal(dense(graph), expected)
    assert graph.edges == len(wanted)
    np.testing.assert_array_equal(graph.out_degree, expected.sum(axis=1))
    np.testing.assert_array_equal(graph.in_degree, expected.sum(axis=0))
    assert graph.frontier.tolist() == [p for p in range(count) if not crawled[p] and expected[:, p].any()]
    in_starts, in_sources = graph.into
    for page in range(count):
        assert in_sources[in_starts[page] : in_starts[page + 1]].tolist() == np.flatnonzero(expected[:, page]).tolist()


@given(link_lists(), st.data())
@settings(max_examples=100, deadline=None)
def test_hiding_pages_is_as_if_they_had_not_been_crawled(
    made: tuple[list[int], list[int], int, npt.NDArray[np.bool_]], data: st.DataObject
) -> None:
    sources, targets, count, crawled = made
    hidden = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    graph = make_graph(sources, targets, count, crawled).without(hidden)
    other = make_graph(sources, targets, count, crawled & ~hidden)
    np.testing.assert_array_equal(graph.crawled, other.crawled)
    np.testing.assert_array_equal(graph.starts, other.starts)
    np.testing.assert_array_equal(graph.targets, other.targets)
    np.testing.assert_array_equal(graph.frontier, other.frontier)


@given(link_lists())
@settings(max_examples=60, deadline=None)
def test_the_links_of_a_snapshot_give_the_same_graph(
    made: tuple[list[int], list[int], int, npt.NDArray[np.bool_]],
) -> None:
    sources, targets, count, crawled = made
    order = np.argsort(sources, kind="stable")
    rows = max(sources, default=-1) + 1  # the last pages have no row yet
    starts = np.searchsorted(np.array(sources, np.int64)[order], np.arange(rows + 1)).astype(np.int64)
    links = LinkGraph(starts, np.array(targets, np.uint32)[order])
    graph, other = graph_of_links(links, crawled), make_graph(sources, targets, count, crawled)
    np.testing.assert_array_equal(graph.starts, other.starts)
    np.testing.assert_array_equal(graph.targets, other.targets)


def test_threads_build_what_one_thread_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    sources, targets = rng.integers(0, 3000, 40_000), rng.integers(0, 3000, 40_000) ** 2 // 3000
    crawled = rng.random(3000) < 0.7
    alone = make_graph(sources, targets, 3000, crawled)
    alone_into, alone_weight = alone.into, alone.co_citation
    monkeypatch.setattr(threads, "SHARED_ENTRIES", 0)
    shared = make_graph(sources.astype(np.int32), targets.astype(np.uint32), 3000, crawled)
    np.testing.assert_array_equal(shared.targets, alone.targets)
    for mine, other in zip((*shared.into, *shared.co_citation), (*alone_into, *alone_weight), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_virtual_edges_are_counted_without_building_them() -> None:
    rng = np.random.default_rng(4)
    graph = make_graph(rng.integers(0, 50, 300), rng.integers(0, 50, 300), 50, rng.random(50) < 0.6)
    links = dense(graph)
    co_cited = links.T @ links
    np.fill_diagonal(co_cited, 0.0)
    weight, citing = graph.co_citation
    np.testing.assert_array_equal(weight, co_cited.sum(axis=1) * graph.crawled)
    np.testing.assert_array_equal(citing, links[links.sum(axis=1) > 1].sum(axis=0) * graph.crawled)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 9))
def test_ranges_cover_all_rows_once(lengths: list[int], pieces: int) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ranges = cut_rows(starts, pieces)
    assert [row for low, high in ranges for row in range(low, high)] == list(range(len(lengths)))
    assert len(ranges) <= pieces


def test_a_graph_without_links_or_pages() -> None:
    empty = make_graph([], [], 0)
    assert (empty.count, empty.edges, empty.frontier.tolist(), len(empty.into[1])) == (0, 0, [], 0)
    lonely = make_graph([], [], 3)
    assert lonely.out_degree.tolist() == [0, 0, 0]
    assert lonely.without(np.array([True, False, False])).crawled.tolist() == [False, True, True]


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"targets has pages 1…7, but the graph has pages 0…3"):
        make_graph([0, 1], [1, 7], 4)
    with pytest.raises(ValueError, match="2 sources but 1 targets"):
        make_graph([0, 1], [1], 4)
    with pytest.raises(ValueError, match="`crawled` has shape"):
        make_graph([0], [1], 4, np.ones(3, np.bool_))
    with pytest.raises(ValueError, match="3 rows of links but only 2 pages"):
        graph_of_links(LinkGraph(np.zeros(4, np.int64), np.zeros(0, np.uint32)), np.ones(2, np.bool_))
