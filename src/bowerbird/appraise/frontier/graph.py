"""The link graph as a crawler knows it: links out of crawled pages, to crawled pages and to the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier import walk_kernels as kernels
from bowerbird.appraise.threads import cut_rows, share, threads_for
from bowerbird.model.snapshot import LinkGraph

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
LinkArray = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class FrontierGraph:
    """Links out of crawled pages: distinct, without self-links. Pages that are not crawled have no out-links."""

    crawled: BoolArray
    starts: IntArray  # the out-links of page i are targets[starts[i]:starts[i + 1]], ascending
    targets: LinkArray

    @property
    def count(self) -> int:
        """Pages of the graph: crawled, linked or neither."""
        return len(self.crawled)

    @property
    def edges(self) -> int:
        """Distinct links."""
        return len(self.targets)

    @cached_property
    def out_degree(self) -> IntArray:
        """Links out of each page."""
        degree: IntArray = np.diff(self.starts)
        return degree

    @cached_property
    def in_degree(self) -> IntArray:
        """Crawled pages that link to each page."""
        counts = np.zeros(self.count, np.int64)
        kernels.count_targets(self.targets, counts)
        return counts

    @cached_property
    def into(self) -> tuple[IntArray, LinkArray]:
        """The transposed CSR (starts, sources): who links to page i, ascending."""
        starts = _starts_of(self.in_degree)
        sources = np.empty(self.edges, np.uint32)
        cursor = starts[:-1].copy()

        def turn(low: int, high: int) -> None:
            kernels.turn_rows(self.starts, self.targets, low, high, cursor, sources)

        # every piece reads all links and writes its own rows: as many pieces as threads, no more
        share(turn, cut_rows(starts, threads_for(self.edges)))
        return starts, sources

    @cached_property
    def frontier(self) -> IntArray:
        """Pages not crawled that a crawled page links to, ascending."""
        found: IntArray = np.flatnonzero(~self.crawled & (self.in_degree > 0))
        return found

    @cached_property
    def co_citation(self) -> tuple[IntArray, LinkArray]:
        """Of crawled pages: s = A^T(outdeg - 1), the weight of virtual edges; in-linkers that link elsewhere too."""
        in_starts, in_sources = self.into
        weight, citing = np.empty(self.count, np.int64), np.empty(self.count, np.uint32)
        others = np.maximum(self.out_degree - 1, 0).astype(np.int32)  # half the memory: what is read stays in caches

        def count(low: int, high: int) -> None:
            kernels.co_citations(others, in_starts, in_sources, self.crawled, low, high, weight, citing)

        share(count, cut_rows(in_starts))
        return weight, citing

    def without(self, hidden: BoolArray) -> FrontierGraph:
        """The graph as if the `hidden` pages had not been crawled: their out-links vanish."""
        crawled = self.crawled & ~_mask(hidden, self.count, "hidden")
        starts = _starts_of(np.where(crawled, self.out_degree, 0))
        targets = np.empty(int(starts[-1]), np.uint32)
        kernels.copy_rows(self.starts, self.targets, crawled, targets)
        return FrontierGraph(crawled, starts, targets)


def make_graph(
    sources: npt.ArrayLike, targets: npt.ArrayLike, count: int, crawled: BoolArray | None = None
) -> FrontierGraph:
    """A graph of any list of links between pages 0…count-1; without `crawled` all pages are crawled.

    Links from pages that are not crawled, links of a page to itself and doubles are dropped.

    >>> graph = make_graph([0, 0, 1, 1, 2], [1, 2, 2, 2, 0], 4, np.array([True, True, False, False]))
    >>> graph.edges, graph.frontier.tolist()
    (3, [2])
    """
    known = np.ones(count, np.bool_) if crawled is None else _mask(crawled, count, "crawled").copy()
    first, second = _page_numbers(sources, count, "sources"), _page_numbers(targets, count, "targets")
    if len(first) != len(second):
        raise ValueError(f"{len(first)} sources but {len(second)} targets: a link needs both")
    lengths = np.zeros(count, np.int64)
    kernels.count_links(first, second, known, lengths)
    starts = _starts_of(lengths)
    placed = np.empty(int(starts[-1]), np.uint32)
    kernels.place_links(first, second, known, starts[:-1].copy(), placed)
    return _tidy(known, starts, placed)


def graph_of_links(links: LinkGraph, crawled: BoolArray) -> FrontierGraph:
    """The graph of a snapshot's links; pages after the last row of `links` have none."""
    known = np.asarray(crawled, np.bool_).copy()
    count, rows = len(known), len(links.starts) - 1
    if rows > count:
        raise ValueError(f"{rows} rows of links but only {count} pages in `crawled`")
    found = _page_numbers(links.targets, count, "targets").astype(np.uint32, copy=False)
    lengths = np.zeros(count, np.int64)
    old_starts = np.ascontiguousarray(links.starts, np.int64)
    kernels.count_rows(old_starts, found, known, lengths)
    starts = _starts_of(lengths)
    copied = np.empty(int(starts[-1]), np.uint32)
    kernels.copy_rows(old_starts, found, known, copied)
    return _tidy(known, starts, copied)


def _tidy(crawled: BoolArray, starts: IntArray, targets: LinkArray) -> FrontierGraph:
    """Rows sorted and without doubles, in place."""
    lengths = np.empty(len(crawled), np.int64)
    share(lambda low, high: kernels.sort_rows(starts, targets, low, high, lengths), cut_rows(starts))
    left = int(lengths.sum())
    if left < len(targets):
        kernels.close_gaps(starts, lengths, targets)
        # a view keeps the memory of the doubles: worth a copy only where they were many
        targets = targets[:left] if left > 0.8 * len(targets) else targets[:left].copy()
    return FrontierGraph(crawled, starts, targets)


def _starts_of(lengths: IntArray) -> IntArray:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _page_numbers(numbers: npt.ArrayLike, count: int, name: str) -> npt.NDArray[Any]:
    found = np.asarray(numbers)
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.dtype not in (np.int32, np.uint32, np.int64):
        found = found.astype(np.int64)
    if found.min() < 0 or found.max() >= count:
        raise ValueError(f"{name} has pages {found.min()}…{found.max()}, but the graph has pages 0…{count - 1}")
    return found


def _mask(mask: npt.ArrayLike, count: int, name: str) -> BoolArray:
    found = np.asarray(mask, np.bool_)
    if found.shape != (count,):
        raise ValueError(f"`{name}` has shape {found.shape}, but there are {count} pages")
    return found
