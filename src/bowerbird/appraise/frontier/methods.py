"""The methods that score the frontier from the whole of what is known, by name. A new one is a line in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from bowerbird.appraise.frontier.boosted_impact import boosted_impact
from bowerbird.appraise.frontier.calibration import has_too_little
from bowerbird.appraise.frontier.graph import FrontierGraph, IntArray
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs, QueryReasons, Scores
from bowerbird.appraise.frontier.learned import score_learned
from bowerbird.appraise.frontier.query_impact import QueryImpact, query_impact
from bowerbird.appraise.frontier.walk import Walk, enriched_walk, pagerank, random_walk
from bowerbird.model.study import REASONS
from bowerbird.model.workload import Workload

INFORMED = "informed"
MOST_LEARNED = 400_000  # known URLs; learning from more takes too long beside a crawl
# which look at queries and words if they are given
QUERY_METHODS = ("query-driven", "hybrid", "boosted", "learned", INFORMED)
_EXPECTED_SHARE = 0.001  # by which expected impact tells pages of equal query-driven impact apart
_CHUNK = 500_000


Method = Callable[[Inputs], Scores]


def score_random(inputs: Inputs) -> Scores:
    """Random: by lot."""
    return Scores(inputs.rng.random(inputs.graph.count))


def score_in_degree(inputs: Inputs) -> Scores:
    """InDegree: the number of crawled pages that link to a page."""
    return Scores(inputs.graph.in_degree.astype(np.float64), np.ones(inputs.graph.count))


def score_pagerank(inputs: Inputs) -> Scores:
    """PageRank over the known links, 1 on average."""
    options = inputs.options
    walk = pagerank(inputs.graph, damping=options.damping, tolerance=options.tolerance, start=_start(inputs, 0.0))
    return _walked(inputs.graph, walk, 0.0)


def score_rw(inputs: Inputs) -> Scores:
    """RW: pages that are clicked pass on more."""
    lift = 1.0 - inputs.options.damping
    walk = random_walk(
        inputs.graph,
        inputs.impact,
        damping=inputs.options.damping,
        most_clicks=inputs.impact_scale,
        tolerance=inputs.options.tolerance,
        start=_start(inputs, lift),
    )
    return _walked(inputs.graph, walk, lift)


def score_rw_eg(inputs: Inputs) -> Scores:
    """RW-EG: and pages pass on to those that are linked together with them."""
    options = inputs.options
    lift = 1.0 - options.damping
    walk = enriched_walk(
        inputs.graph,
        inputs.impact,
        real_share=options.real_share,
        damping=options.damping,
        most_clicks=inputs.impact_scale,
        tolerance=options.tolerance,
        start=_start(inputs, lift),
    )
    return _walked(inputs.graph, walk, lift)


def score_learned_or_walked(inputs: Inputs) -> Scores:
    """The learned score; while there are too few clicks to learn from, RW-EG's."""
    found = score_learned(inputs)
    return found if "note" not in found.info else replace(score_rw_eg(inputs), info=found.info)


def inform(inputs: Inputs, workload: Workload | None) -> str:
    """The method that what is known allows: by clicks, by queries while there are few clicks, else by links.

    Of a crawl with very many URLs nothing is learnt: the walk by clicks takes seconds there.
    """
    if not has_too_little(inputs.clicks[inputs.graph.crawled]):
        return "learned" if inputs.graph.count <= MOST_LEARNED else "rw-eg"
    if workload is not None and len(workload):
        return "hybrid"
    return "rw-eg" if inputs.clicks.sum() > 0 else "pagerank"


def score_informed(inputs: Inputs) -> Scores:
    """By the best method that what is known allows."""
    by = inform(inputs, inputs.workload)
    found = METHODS[by](inputs)
    info = {**found.info, "by": by}
    if inputs.graph.count > MOST_LEARNED and not has_too_little(inputs.clicks[inputs.graph.crawled]):
        info["note"] = f"more than {MOST_LEARNED:,} known URLs: by {by} in place of learned, which would take too long"
    return replace(found, info=info)


def _walked(graph: FrontierGraph, walk: Walk, lift: float) -> Scores:
    """A walk's values times n, without the `lift` that every page has: it would drown what links bring."""
    passed = walk.passed
    if walk.virtual_passed is not None:
        # what reaches a page along virtual edges comes by the pages that link to both ends: it is theirs to explain
        along = np.concatenate([[0.0], np.cumsum(walk.virtual_passed[graph.targets])])
        passed = passed + along[graph.starts[1:]] - along[graph.starts[:-1]]
    values = np.maximum(walk.values * graph.count - lift, 0.0)
    return Scores(values, passed * graph.count, info={"iterations": walk.iterations, "residual": walk.residual})


def _start(inputs: Inputs, lift: float) -> FloatArray | None:
    """The walk's values behind earlier scores."""
    return None if inputs.start is None else (inputs.start + lift) / max(len(inputs.start), 1)


def score_query_driven(inputs: Inputs) -> Scores:
    """Query-driven impact: how often searchers would see the page; expected impact where it is equal."""
    found = _impact(inputs)
    if found is None:
        return _unasked(inputs)
    return Scores(found.query_driven + _EXPECTED_SHARE * found.expected, None, *_why(inputs, found))


def score_hybrid(inputs: Inputs) -> Scores:
    """Hybrid impact: query-driven, with a tenth from the page's importance."""
    found = _impact(inputs)
    if found is None:
        return _unasked(inputs)
    return Scores(found.hybrid + _EXPECTED_SHARE * found.expected, None, *_why(inputs, found))


def score_boosted(inputs: Inputs) -> Scores:
    """Boosted impact: how often searchers would see the page, learnt from what crawled pages like it are seen."""
    if inputs.words is None or inputs.workload is None or inputs.crawled_top is None or not len(inputs.workload):
        return _unasked(inputs)
    found = boosted_impact(
        inputs.words,
        inputs.workload,
        inputs.graph,
        inputs.crawled_top,
        pagerank(inputs.graph, damping=inputs.options.damping).values,
        rng=inputs.rng,
    )
    return Scores(found.impact, info={"learnt from": float(found.trained_pages)})


def _impact(inputs: Inputs) -> QueryImpact | None:
    """None where nobody has asked anything yet."""
    if inputs.words is None or inputs.workload is None or inputs.crawled_top is None or not len(inputs.workload):
        return None
    return query_impact(
        inputs.words,
        inputs.workload,
        inputs.graph.crawled,
        inputs.crawled_top,
        pagerank(inputs.graph, damping=inputs.options.damping).values,
        inputs.graph.in_degree,
        inputs.host,
        frontier=inputs.frontier,
        share=inputs.options.query_share,
        improvable=inputs.improvable,
        rng=inputs.rng,
    )


def _unasked(inputs: Inputs) -> Scores:
    return replace(score_in_degree(inputs), info={"note": "no queries are known: by the number of links instead"})


def _why(inputs: Inputs, found: QueryImpact) -> tuple[QueryReasons, dict[str, str | float]]:
    """The few queries that speak most for each page."""
    assert inputs.workload is not None
    owner, pages = found.matches.queries(), found.matches.pages.astype(np.int64)
    impact = inputs.workload.frequency[found.kept[owner]] * found.probability
    best = keep_most(pages, impact, REASONS)
    ranks = np.empty(len(best))
    held = np.sort(found.sketches.scores, axis=1)[:, ::-1]  # best first, -inf where there is none
    for first in range(0, len(best), _CHUNK):
        part = best[first : first + _CHUNK]
        ranks[first : first + _CHUNK] = 1 + (held[owner[part]] > found.scores[part, None]).sum(axis=1)
    ranks[ranks > held.shape[1]] = np.inf  # the sketch does not reach so far
    why = QueryReasons(pages[best], found.kept[owner[best]], ranks, impact[best])
    return why, {"queries": float(len(found.kept)), "matches": float(len(pages)), "trained": float(found.trained_pairs)}


def keep_most(pages: IntArray, impact: FloatArray, most: int) -> IntArray:
    """The places of the `most` greatest of each page, by page and then greatest first."""
    order = np.lexsort((-impact, pages))
    first = np.flatnonzero(np.diff(pages[order], prepend=-1))
    nth = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    kept: IntArray = order[nth < most]
    return kept


METHODS: Mapping[str, Method] = {
    "random": score_random,
    "indegree": score_in_degree,
    "pagerank": score_pagerank,
    "rw": score_rw,
    "rw-eg": score_rw_eg,
    "query-driven": score_query_driven,
    "hybrid": score_hybrid,
    "boosted": score_boosted,
    "learned": score_learned_or_walked,
    INFORMED: score_informed,
}
