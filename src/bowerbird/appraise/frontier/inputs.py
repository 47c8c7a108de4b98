"""What the methods that score the frontier may look at, and what they give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.calibration import even_clicks
from bowerbird.appraise.frontier.graph import BoolArray, FrontierGraph, IntArray
from bowerbird.appraise.frontier.sketches import CrawledScores
from bowerbird.appraise.frontier.walk import DAMPING, TOLERANCE
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload
from bowerbird.quality.neediness import ImprovabilityModel

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """What a person can set."""

    damping: float = DAMPING
    real_share: float = 0.5  # w of RW-EG; training parts of three data sets chose 0.45, 0.4 and 0.9
    query_share: float = 1.0  # of the queries, the neediest
    tolerance: float = TOLERANCE  # of the walks


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a method may look at. Columns are by page."""

    now: float
    graph: FrontierGraph
    clicks: FloatArray  # of crawled pages
    host: npt.NDArray[np.uint32]
    first_seen: FloatArray
    rng: np.random.Generator
    words: PageWords | None = None
    workload: Workload | None = None
    crawled_top: CrawledScores | None = None  # what the index answers to each query of the workload
    improvable: ImprovabilityModel | None = None  # of these queries, if it was learnt
    frontier: IntArray | None = None  # the pages to score, ascending; None = all that are not crawled
    options: MethodOptions = field(default_factory=MethodOptions)
    start: FloatArray | None = None  # the values of an earlier run of the same method, perhaps of fewer pages
    labelled: BoolArray | None = None  # pages whose clicks are known; None = the crawled ones
    groups: tuple[IntArray, ...] = ()  # directories, widest first
    most_clicks: float | None = None  # of any crawled page, also of one that is hidden; None = none is hidden
    most_impact: float | None = None  # likewise
    asked_at: FloatArray | None = None  # when the first fetch was, of pages that have been fetched; None = now for all
    exposure: FloatArray | None = None  # share of its time that a crawled page had to be clicked; None = all of it
    heard: FloatArray | None = None  # time that a crawled page's clicks are of, in full exposures; None = alike for all
    weight: FloatArray | None = None  # how much a crawled page's clicks count; None = 1
    kept: Mapping[str, npt.NDArray[Any]] | None = None  # what an earlier run of the same method wants to remember

    @property
    def known(self) -> BoolArray:
        """Pages whose clicks are known."""
        return self.graph.crawled if self.labelled is None else self.labelled

    @property
    def clicks_scale(self) -> float:
        """The most clicks of any crawled page, hidden or not: scores by different folds are on one scale."""
        if self.most_clicks is not None:
            return self.most_clicks
        crawled = self.graph.crawled[: len(self.clicks)]
        return float(self.clicks[: len(crawled)][crawled].max(initial=0.0))

    @property
    def impact(self) -> FloatArray:
        """How much crawled pages are clicked, for what they pass on: as if none had been there too short a time."""
        if self.heard is None:
            return self.clicks
        return even_clicks(self.clicks, self.heard, self.host, self.graph.crawled)

    @property
    def impact_scale(self) -> float:
        """The most of any crawled page, hidden or not."""
        if self.most_impact is not None:
            return self.most_impact
        return self.clicks_scale if self.heard is None else float(self.impact.max(initial=0.0))

    def without(self, hidden: BoolArray) -> Inputs:
        """As if the `hidden` pages had never been fetched: no links, clicks or search results of theirs."""
        top = None if self.crawled_top is None else self.crawled_top.without(hidden)
        frontier = self.frontier
        if frontier is not None:
            frontier = np.union1d(frontier, np.flatnonzero(hidden))
        clicks = np.where(hidden, 0.0, self.clicks)
        labelled = None if self.labelled is None else self.labelled & ~hidden
        graph = self.graph.without(hidden)
        return replace(
            self,
            graph=graph,
            clicks=clicks,
            crawled_top=top,
            frontier=frontier,
            labelled=labelled,
            most_clicks=self.clicks_scale,
            most_impact=self.impact_scale,
        )


@dataclass(frozen=True, slots=True)
class QueryReasons:
    """Which queries a page is expected to answer, at which rank: pairs in any order."""

    pages: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int64]  # of the workload
    ranks: FloatArray  # from 1; infinite beyond those that are kept
    impact: FloatArray  # of this query on the page's score: the greatest are shown


@dataclass(frozen=True, slots=True)
class Scores:
    """What a method found: the higher, the sooner."""

    values: FloatArray  # by page, not negative; those of crawled pages do not matter
    passed: FloatArray | None = None  # by crawled page: what it adds to each page that it links to
    queries: QueryReasons | None = None
    info: dict[str, str | float] = field(default_factory=dict)
    kept: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # for the next run of the same method
    held_out: tuple[IntArray, FloatArray] | None = None  # labelled pages, and scores that know nothing of their clicks
