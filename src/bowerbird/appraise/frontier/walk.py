"""Walks over the link graph: PageRank, and the random walks that carry search impact to pages not yet fetched ([RW15]).

Frontier pages have no known links, so they pass nothing on: a walk is solved over the crawled pages, and the frontier
gets its share once at the end. The teleport vector is v = 1/n, n = pages of the graph, whether linked or not; another
n would scale all values alike.

A walk stops when the L1 change of one step over the crawled pages, relative to their L1 norm, is at most `tolerance`.
A step shrinks every L1 distance at least by the damping a, so the values are then at most a/(1 - a) tolerances off.
Early steps may be in float32, the last ones are always in float64, and so is the reported residual.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph, IntArray
from bowerbird.appraise.frontier.virtual_degree import virtual_degree
from bowerbird.appraise.frontier.walk_kernels import Floats, collect, collect_enriched, collect_frontier, spread
from bowerbird.appraise.threads import Range, cut_rows, share, threads_for

FloatArray = npt.NDArray[np.float64]
Precision = type[np.float32] | type[np.float64]

DAMPING = 0.85
TOLERANCE = 1e-6
MAX_ITERATIONS = 1000
#: float32 cannot tell smaller changes from its own rounding
FLOAT32_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Walk:
    """A solution: a page's value is `teleported` plus what its in-linkers pass plus what virtual edges bring."""

    values: FloatArray  # by page
    iterations: int
    residual: float  # the last L1 change relative to the L1 norm
    passed: FloatArray  # what a crawled page passes to each page it links to
    virtual_passed: FloatArray | None = None  # along a virtual edge, for each common in-linker
    teleported: float = 0.0  # what every page has without any link: (1 - a)/n


def pagerank(
    graph: FrontierGraph,
    *,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    start: FloatArray | None = None,
    dtype: Precision = np.float32,
) -> Walk:
    """[RW15] PageRank: x_j = a·sum_{i in In(j)} x_i/outdeg(i) + (1-a)/n, what pages without links hold spread over all.

    Solved without that spreading, then scaled to the sum 1: as the spreading is uniform, that is the same.
    """
    _check(damping, tolerance)
    if start is not None:
        # undo the scaling: the sum that satisfies the equation without spreading
        guess = _former(graph, start)
        kept = float(guess.sum() - damping * guess[graph.out_degree[: len(guess)] > 0].sum())
        start = guess * ((1 - damping) / kept) if kept > 0 else None
    lead = _inverse(graph.out_degree, damping)
    walk = _solve(graph, damping, lead, None, tolerance, max_iterations, start, dtype)
    total = float(walk.values.sum()) or 1.0
    return Walk(walk.values / total, walk.iterations, walk.residual, walk.passed / total, None, walk.teleported / total)


def impact_weights(
    clicks: FloatArray,
    out_degree: npt.ArrayLike,
    *,
    exponent: float = 0.0,
    floor: float = 0.001,
    most_clicks: float | None = None,
) -> FloatArray:
    """[RW15] F_i = (I_i/max I)·d_i^b, I = clicks + floor, d = degree/largest degree, b = exponent; at most 1.

    `most_clicks` stands for the largest where the page that has them is hidden, so that walks stay comparable.
    """
    if not floor > 0:
        raise ValueError(f"floor is {floor}; it must be above 0, or pages without clicks would pass nothing on")
    found = np.asarray(clicks, np.float64)
    if len(found) == 0:
        return found
    if not (found.min() >= 0 and found.max() < np.inf):  # false for NaN too
        raise ValueError("clicks must be finite and not negative")
    weights: FloatArray = found + floor
    weights /= max(float(weights.max()), (most_clicks or 0.0) + floor)
    if exponent:
        degree = np.asarray(out_degree, np.float64)
        weights *= (degree / max(degree.max(), 1.0)) ** exponent
    return weights


def random_walk(
    graph: FrontierGraph,
    clicks: FloatArray,
    *,
    damping: float = DAMPING,
    exponent: float = 0.0,
    most_clicks: float | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    start: FloatArray | None = None,
    dtype: Precision = np.float32,
) -> Walk:
    """[RW15] RW: x_j = a·sum_{i in In(j)} M_ij·F_i·x_i + (1-a)/n, M_ij = 1/outdeg(i).

    `clicks` is by page, pages after the last have none; those of pages not crawled are not looked at. `start` is a
    former solution, perhaps of a graph with fewer pages: the closer it is, the fewer steps are needed.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> graph = make_graph([0, 1], [2, 3], 4, np.array([True, True, False, False]))
    >>> random_walk(graph, np.array([9.0, 1.0, 0.0, 0.0])).values.round(4).tolist()
    [0.0375, 0.0375, 0.0694, 0.041]
    """
    _check(damping, tolerance)
    weights = impact_weights(_of_crawled(graph, clicks), graph.out_degree, exponent=exponent, most_clicks=most_clicks)
    lead = _inverse(graph.out_degree, damping)
    lead *= weights
    return _solve(graph, damping, lead, None, tolerance, max_iterations, start, dtype)


def enriched_walk(
    graph: FrontierGraph,
    clicks: FloatArray,
    *,
    real_share: float = 0.1,
    damping: float = DAMPING,
    exponent: float = 0.0,
    most_clicks: float | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    start: FloatArray | None = None,
    dtype: Precision = np.float32,
) -> Walk:
    """[RW15] RW-EG: x_j = a·[w·sum M_ij·F_i·x_i + (1-w)·sum M'_ij·F'_i·x_i] + (1-a)/n, w = `real_share`.

    M' are virtual edges from crawled pages i to pages j that some page links to together with i, weighted by how many
    do, rows normalised. They are never built: with s = A^T(outdeg - 1) and z = (1-w)·F'·x/s the second sum is
    A^T(A z) - indeg·z. So a step costs two passes over the links, one along them and one against.
    """
    _check(damping, tolerance)
    if not 0 <= real_share <= 1:
        raise ValueError(f"real_share is {real_share}; it must be in 0…1")
    known = _of_crawled(graph, clicks)
    weights = impact_weights(known, graph.out_degree, exponent=exponent, most_clicks=most_clicks)
    lead = _inverse(graph.out_degree, damping * real_share)
    lead *= weights
    if exponent:
        weights = impact_weights(known, virtual_degree(graph), exponent=exponent, most_clicks=most_clicks)
    strength, _ = graph.co_citation
    virtual_lead = _inverse(strength, damping * (1 - real_share))
    virtual_lead *= weights
    return _solve(graph, damping, lead, virtual_lead, tolerance, max_iterations, start, dtype)


def _solve(
    graph: FrontierGraph,
    damping: float,
    lead: FloatArray,
    virtual_lead: FloatArray | None,
    tolerance: float,
    max_iterations: int,
    start: FloatArray | None,
    dtype: Precision,
) -> Walk:
    """Steps in `dtype` as far as that goes, then in float64; then the frontier. The leads become what is passed."""
    base = (1 - damping) / max(graph.count, 1)
    x = _first_values(graph, base, start)
    taken, residual = 0, np.inf
    with ThreadPoolExecutor(threads_for(graph.edges)) as pool:
        field = _Field(graph, base, pool, cut_rows(graph.starts), cut_rows(graph.into[0]))
        coarse = max(tolerance, FLOAT32_TOLERANCE)
        if start is not None:  # rounding to float32 could spoil a start that is nearly right
            steps = field.steps(x, lead, virtual_lead)
            taken, residual = _iterate(steps, damping, tolerance, 1)
        if dtype is np.float32 and residual > 10 * coarse:
            rough = field.steps(x.astype(dtype), lead, virtual_lead)
            more, residual = _iterate(rough, damping, coarse, max_iterations - taken - 1, leave_last=True)
            taken, residual = taken + more, np.inf
            x = rough.x.astype(np.float64)
        if residual > tolerance:
            steps = field.steps(x, lead, virtual_lead)
            more, residual = _iterate(steps, damping, tolerance, max_iterations - taken)
            taken += more
        field.scatter(x, steps.last_sent)
    lead *= x
    if virtual_lead is not None:
        virtual_lead *= x
    return Walk(x, taken, residual, lead, virtual_lead, base)


def _iterate(
    steps: _PlainSteps | _EnrichedSteps, damping: float, tolerance: float, most: int, *, leave_last: bool = False
) -> tuple[int, float]:
    """Step until the change is small enough, or no longer shrinks as it would without rounding.

    With `leave_last`, until the next step can be expected to change little enough.
    """
    taken, before, residual = 0, np.inf, np.inf
    while taken < most:
        parts = steps.step()
        taken += 1
        change, norm = sum(part[0] for part in parts), sum(part[1] for part in parts)
        residual = change / norm if norm else 0.0
        shrinks = change / before if 0 < before < np.inf else damping
        if residual * (shrinks if leave_last else 1.0) <= tolerance or change > (1 + damping) / 2 * before:
            break
        before = change
    return taken, residual


@dataclass(frozen=True, slots=True)
class _Field:
    """What all steps of a walk share."""

    graph: FrontierGraph
    base: float
    pool: ThreadPoolExecutor
    rows: list[Range]
    in_rows: list[Range]

    def steps(self, x: Floats, lead: FloatArray, virtual_lead: FloatArray | None) -> _PlainSteps | _EnrichedSteps:
        """Steps from x on, in its precision; x follows them."""
        if virtual_lead is None:
            return _PlainSteps(self, x, lead.astype(x.dtype, copy=False))
        return _EnrichedSteps(self, x, lead.astype(x.dtype, copy=False), virtual_lead.astype(x.dtype, copy=False))

    def spread(self, lead: Floats, x: Floats, virtual: Floats, sent: Floats) -> None:
        """What each page sends along its links: its own part, and the virtual part of all it links to."""
        starts, targets = self.graph.starts, self.graph.targets
        share(lambda low, high: spread(starts, targets, lead, x, virtual, low, high, sent), self.rows, self.pool)

    def scatter(self, x: FloatArray, sent: FloatArray) -> None:
        """The values of pages that are not crawled, into x."""
        crawled, (in_starts, in_sources) = self.graph.crawled, self.graph.into

        def collect_rows(low: int, high: int) -> None:
            collect_frontier(in_starts, in_sources, crawled, self.base, sent, low, high, x)

        share(collect_rows, self.in_rows, self.pool)


class _PlainSteps:
    """Steps along real links."""

    def __init__(self, field: _Field, x: Floats, lead: Floats) -> None:
        self.field, self.x, self.lead = field, x, lead
        self.sent, self.next_sent = lead * x, np.zeros_like(x)

    @property
    def last_sent(self) -> Floats:
        """What the last step collected."""
        return self.next_sent

    def step(self) -> list[tuple[float, float]]:
        """One step; L1 changes and norms of the parts."""
        field, sent, next_sent = self.field, self.sent, self.next_sent
        crawled, (in_starts, in_sources) = field.graph.crawled, field.graph.into

        def collect_rows(low: int, high: int) -> tuple[float, float]:
            return collect(in_starts, in_sources, crawled, field.base, sent, self.lead, self.x, next_sent, low, high)

        found = share(collect_rows, field.in_rows, field.pool)
        self.sent, self.next_sent = next_sent, sent
        return found


class _EnrichedSteps:
    """Steps along real links and virtual edges."""

    def __init__(self, field: _Field, x: Floats, lead: Floats, virtual_lead: Floats) -> None:
        self.field, self.x, self.lead, self.virtual_lead = field, x, lead, virtual_lead
        self.virtual, self.last_sent = virtual_lead * x, np.zeros_like(x)

    def step(self) -> list[tuple[float, float]]:
        """One step; L1 changes and norms of the parts."""
        field, x, lead = self.field, self.x, self.virtual_lead
        crawled, (in_starts, in_sources) = field.graph.crawled, field.graph.into
        citing, sent, virtual = field.graph.co_citation[1], self.last_sent, self.virtual
        field.spread(self.lead, x, virtual, sent)

        def collect_rows(low: int, high: int) -> tuple[float, float]:
            return collect_enriched(
                in_starts, in_sources, crawled, field.base, sent, citing, lead, x, virtual, low, high
            )

        return share(collect_rows, field.in_rows, field.pool)


def _first_values(graph: FrontierGraph, base: float, start: FloatArray | None) -> FloatArray:
    """The former solution as far as there is one; 0 where nothing is passed on."""
    x = np.where(graph.crawled, base, 0.0)
    if start is not None:
        x[: len(start)] = _former(graph, start) * (len(start) / max(graph.count, 1))
        x *= graph.crawled
    return x


def _former(graph: FrontierGraph, start: FloatArray) -> FloatArray:
    if len(start) > graph.count:
        raise ValueError(f"start has {len(start)} values, but the graph has only {graph.count} pages")
    if not np.isfinite(start).all():
        raise ValueError("start must be finite")
    return np.asarray(start, np.float64)


def _of_crawled(graph: FrontierGraph, clicks: FloatArray) -> FloatArray:
    if len(clicks) > graph.count:
        raise ValueError(f"{len(clicks)} click numbers for {graph.count} pages")
    known = np.zeros(graph.count)
    np.copyto(known[: len(clicks)], clicks, where=graph.crawled[: len(clicks)])
    return known


def _inverse(numbers: IntArray, factor: float) -> FloatArray:
    """factor/n, and 0 for 0."""
    found: FloatArray = np.divide(factor, numbers, out=np.zeros(len(numbers)), where=numbers > 0)
    return found


def _check(damping: float, tolerance: float) -> None:
    if not 0 <= damping < 1:
        raise ValueError(f"damping is {damping}; it must be in 0…1, below 1, or the walk has no end")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; it must be above 0")
