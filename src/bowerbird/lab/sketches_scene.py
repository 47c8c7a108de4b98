"""What a crawler would know in the sketch experiments: some pages crawled and indexed, the others only linked to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.boosted_impact import boosted_impact
from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.query_impact import QueryImpact, query_impact
from bowerbird.appraise.frontier.sketches import CrawledScores
from bowerbird.appraise.frontier.walk import pagerank
from bowerbird.lab.bm25 import Engine, make_engine
from bowerbird.lab.sketches_data import SketchesData, number_terms, split_query
from bowerbird.model.errors import InputFileError
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload
from bowerbird.quality.neediness import ImprovabilityModel, fit_improvability

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

UNCRAWLED = 0.2
PROMOTED = 0.2  # of the uncrawled, by importance, in Dataset 2
SCORED = 5  # splits 0…4 are those that figures are reported for
TUNING = 1000  # splits from here on are for choosing settings
PAST = 0.2  # of the crawled pages, taken for the last cycle's, to learn improvability from


@dataclass(frozen=True)
class Scene:
    """One data set of one split as the crawler sees it; what policies share is made when it is first asked for."""

    data: SketchesData
    crawled: BoolArray
    seed: int

    @cached_property
    def graph(self) -> FrontierGraph:
        """Links of crawled pages."""
        return make_graph(self.data.sources, self.data.targets, self.data.count, self.crawled)

    @cached_property
    def importance(self) -> FloatArray:
        """PageRank over the links of crawled pages."""
        return pagerank(self.graph).values

    @cached_property
    def words(self) -> PageWords:
        """URLs, and anchors on crawled pages."""
        return self.data.words_known(self.crawled)

    @cached_property
    def engine(self) -> Engine:
        """The index: crawled pages only, with their statistics."""
        return make_engine(self.data.counts, self.crawled)

    @property
    def unseen(self) -> IntArray:
        """The pages to order."""
        return np.flatnonzero(~self.crawled).astype(np.int64)

    def answers(self, workload: Workload) -> CrawledScores:
        """What the index answers."""
        return self.engine.search(workload.starts, number_terms(workload, self.data.counts))

    def weights(self, workload: Workload) -> FloatArray:
        """The index's inverse document frequencies."""
        numbers = [self.data.counts.terms[term] for term in workload.terms]
        return self.engine.weight[np.array(numbers, dtype=np.int64)]

    def appraise(
        self,
        workload: Workload,
        answers: CrawledScores,
        *,
        rho: float = 1.0,
        share: float = 1.0,
        matched_only: bool = False,
        improvable: ImprovabilityModel | None = None,
    ) -> QueryImpact:
        """Query-driven, hybrid and expected impact."""
        return query_impact(
            self.words,
            workload,
            self.crawled,
            answers,
            self.importance,
            self.graph.in_degree,
            np.zeros(self.data.count, dtype=np.int64),
            share=share,
            matched_only=matched_only,
            rho=rho,
            improvable=improvable,
            term_weight=self.weights(workload),
            words_of=split_query,
            rng=np.random.default_rng(self.seed),
        )

    def boost(self, workload: Workload, answers: CrawledScores) -> FloatArray:
        """Impact by gradient boosting."""
        found = boosted_impact(
            self.words,
            workload,
            self.graph,
            answers,
            self.importance,
            size=np.where(self.crawled, self.data.counts.lengths, 0.0),
            term_weight=self.weights(workload),
            rng=np.random.default_rng(self.seed),
        )
        return found.impact

    def learn_improvability(self, workload: Workload, top: int = 10) -> ImprovabilityModel:
        """From a past cycle: the pages of a random part of the crawl are taken for those that it brought."""
        pages = np.flatnonzero(self.crawled)
        brought = np.random.default_rng(self.seed).choice(pages, round(PAST * len(pages)), replace=False)
        before = self.crawled.copy()
        before[brought] = False
        earlier = Scene(self.data, before, self.seed).answers(workload)
        gained = np.maximum(_top_sum(self.answers(workload), top) - _top_sum(earlier, top), 0.0)
        return fit_improvability(earlier.mean_top(top), np.diff(earlier.starts), gained, top=top)


def _top_sum(answers: CrawledScores, top: int) -> FloatArray:
    return answers.mean_top(top) * np.minimum(np.diff(answers.starts), top)


def held_back(data: SketchesData, split: int) -> IntArray:
    """The pages that a split leaves uncrawled: a random fifth; of a tuning split, one that no scored split has."""
    count = round(UNCRAWLED * data.count)
    pages = tuning_pages(data) if split >= TUNING else np.arange(data.count, dtype=np.int64)
    if not 0 < count <= len(pages):
        raise InputFileError(
            f"{data.name}, split {split}: {data.count} pages, too few: {count} are to be held back, of {len(pages)} "
            "that may be. Give more pages."
        )
    return np.sort(np.random.default_rng(2000 + split).permutation(pages)[:count])


def tuning_pages(data: SketchesData) -> IntArray:
    """The pages that none of the scored splits 0…4 holds back: settings that are chosen on these saw no scored page."""
    scored = np.concatenate([held_back(data, split) for split in range(SCORED)])
    return np.setdiff1d(np.arange(data.count, dtype=np.int64), scored)


def split_scenes(data: SketchesData, split: int) -> tuple[Scene, Scene]:
    """Dataset 1: a random fifth is uncrawled. Dataset 2: of those, the most important fifth is crawled after all.

    Splits from 1000 on are tuning splits: their uncrawled pages are `tuning_pages`.
    """
    unseen = held_back(data, split)
    crawled = np.ones(data.count, dtype=np.bool_)
    crawled[unseen] = False
    first = Scene(data, crawled, split)
    order = np.argsort(-first.importance[unseen], kind="stable")
    promoted = crawled.copy()
    promoted[unseen[order[: round(PROMOTED * len(unseen))]]] = True
    return first, Scene(data, promoted, split)
