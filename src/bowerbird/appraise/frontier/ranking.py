"""Ranking the frontier of anybody's link graph: pages known by name, links, clicks and perhaps queries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.calibration import place_in_order
from bowerbird.appraise.frontier.expected_score import inverse_frequency, query_mass
from bowerbird.appraise.frontier.graph import BoolArray, IntArray, make_graph
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, MethodOptions
from bowerbird.appraise.frontier.methods import QUERY_METHODS, keep_most
from bowerbird.appraise.frontier.ngrams import NgramIndex, order_words, post, query_grams
from bowerbird.appraise.frontier.sketches import CrawledScores
from bowerbird.appraise.frontier.study import Feedback, study_frontier
from bowerbird.appraise.frontier.walk import pagerank
from bowerbird.index.page_words import gather_words
from bowerbird.model.study import FrontierStudy
from bowerbird.model.url_paths import group_paths
from bowerbird.model.workload import Workload

RESULTS = 50  # of each query, that scores are learnt from


@dataclass(frozen=True, slots=True)
class NamedGraph:
    """Links between pages that are known by name, and what is known of the pages. Columns are by page."""

    sources: IntArray
    targets: IntArray
    clicks: FloatArray
    crawled: BoolArray
    host: npt.NDArray[np.uint32]
    names_of: Callable[[IntArray], list[str]]
    unlinked_clicks: int  # pages with clicks that no link names
    ignored_clicks: int  # pages with clicks that are not among those that were crawled

    @property
    def count(self) -> int:
        """Pages of any kind."""
        return len(self.clicks)

    def names(self) -> list[str]:
        """Of all pages."""
        return self.names_of(np.arange(self.count))


@dataclass(frozen=True, slots=True)
class RankedPages:
    """Pages of the frontier, best first; equal ones by name."""

    rows: IntArray
    names: list[str]
    score: FloatArray
    expected_clicks: FloatArray
    in_links: IntArray


def relate_pages(
    columns: Sequence[IntArray],
    amounts: FloatArray,
    host: npt.NDArray[np.uint32],
    names_of: Callable[[IntArray], list[str]],
) -> NamedGraph:
    """A graph of columns of page numbers: sources, targets, clicked pages, and crawled pages if these are given.

    Without them, the crawled pages are the sources of links and the pages with clicks.
    """
    sources, targets, clicked, *rest = columns
    linked = np.zeros(len(host), dtype=np.bool_)
    linked[sources] = linked[targets] = True
    known = np.zeros(len(host), dtype=np.bool_)
    for column in rest or (sources, clicked):
        known[column] = True
    named = np.unique(clicked)
    return NamedGraph(
        sources,
        targets,
        np.bincount(clicked, weights=amounts, minlength=len(host)).astype(np.float64),
        known,
        host,
        names_of,
        int(np.count_nonzero(~linked[named])),
        int(np.count_nonzero(~known[named])),
    )


def prepare_ranking(
    graph: NamedGraph,
    method: str,
    rng: np.random.Generator,
    workload: Workload | None = None,
    options: MethodOptions | None = None,
) -> Inputs:
    """What a method may look at; words of page names only where it reads them, for they take longest."""
    links = make_graph(graph.sources, graph.targets, graph.count, graph.crawled)
    inputs = Inputs(
        now=0.0,
        graph=links,
        clicks=np.where(graph.crawled, graph.clicks, 0.0),
        host=graph.host,
        first_seen=np.zeros(graph.count),
        rng=rng,
        options=options or MethodOptions(),
        frontier=links.frontier,
    )
    if method not in QUERY_METHODS or (workload is None and method != "learned"):
        return inputs
    return add_words(inputs, graph.names(), workload, directories=method == "learned")


def add_words(inputs: Inputs, names: Sequence[str], workload: Workload | None, *, directories: bool) -> Inputs:
    """The words of page names, their directories if asked for, and queries with what an index might answer."""
    inputs = replace(inputs, words=gather_words((), enumerate(map(unquote, names)), inputs.graph.count))
    if directories:
        inputs = replace(inputs, groups=group_paths(names))
    return inputs if workload is None else _answer(replace(inputs, workload=workload))


def _answer(inputs: Inputs) -> Inputs:
    """What an index would answer, for want of one: crawled pages whose names have the words, by PageRank."""
    assert inputs.words is not None
    assert inputs.workload is not None
    asked = order_words(inputs.workload)
    crawled = inputs.graph.crawled
    index = NgramIndex(post(inputs.words, np.flatnonzero(crawled)))
    matches = index.match(query_grams(asked), crawled)
    mass = query_mass(asked, inverse_frequency(inputs.words, inputs.workload.terms))
    owner, pages = matches.queries(), matches.pages
    score = mass[owner] * (1.0 + place_in_order(pagerank(inputs.graph).values)[pages])
    kept = keep_most(owner, score, RESULTS)
    many = np.bincount(owner, minlength=len(asked))
    starts = np.concatenate([[0], np.cumsum(np.minimum(many, RESULTS))]).astype(np.int64)
    top = CrawledScores(starts, pages[kept].astype(np.uint32), score[kept], many <= RESULTS)
    return replace(inputs, crawled_top=top)


def has_answers(inputs: Inputs) -> bool:
    """Whether the name of any page of the frontier has the words of any query."""
    if inputs.words is None or inputs.workload is None:
        return False
    index = NgramIndex(post(inputs.words, inputs.graph.frontier))
    return bool(len(index.match(query_grams(order_words(inputs.workload)), ~inputs.graph.crawled).pages))


def study_graph(inputs: Inputs, method: str) -> FrontierStudy:
    """What the pages of the frontier are worth, learnt from all crawled pages alike."""
    size = inputs.graph.count
    feedback = Feedback(inputs.graph.crawled, np.ones(size), np.ones(size))
    frontier = inputs.graph.frontier if inputs.frontier is None else inputs.frontier
    return study_frontier(inputs, method, frontier, feedback)


def choose_best(
    inputs: Inputs, study: FrontierStudy, names_of: Callable[[IntArray], list[str]], count: int
) -> RankedPages:
    """The best `count` pages of the frontier, 0 = all; equal ones by name, so that the order of links does not matter.

    Only the names of pages that could be among them are looked up.
    """
    frontier = inputs.graph.frontier
    values = study.worth[frontier]
    if 0 < count < len(frontier):
        least = np.partition(values, len(values) - count)[len(values) - count]
        frontier = frontier[values >= least]
    names = np.array(names_of(frontier), dtype=object)
    order = np.lexsort((names, -study.worth[frontier]))[: count or None]
    rows = frontier[order]
    return RankedPages(
        rows,
        names[order].tolist(),
        study.score[rows].astype(np.float64),
        study.worth[rows].astype(np.float64),
        inputs.graph.in_degree[rows],
    )
