"""Sketches that live from cycle to cycle: new links, new scores and crawled pages change them, nothing is rebuilt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.expected_score import ExpectedScoreModel, PageFacts, pair_features
from bowerbird.appraise.frontier.ngrams import Matches, NgramIndex, Postings, QueryGrams, QueryWords, post
from bowerbird.appraise.frontier.sketches import CrawledScores, Sketches

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SketchedQueries:
    """The queries that have a sketch: the neediest of the workload."""

    words: QueryWords
    grams: QueryGrams
    mass: FloatArray
    frequency: FloatArray


class LiveSketches:
    """Sketches ([SI08]) with the n-gram index they are fed from.

    `see` takes pages with new anchors or new to the frontier, `crawl` the real scores of pages that were fetched. What
    `stale` names must be ranked anew from all candidates, with `refill`.
    """

    def __init__(self, queries: SketchedQueries, answers: CrawledScores, model: ExpectedScoreModel, top: int) -> None:
        self.queries = queries
        self.model = model
        self.index = NgramIndex()
        self.sketches = Sketches(queries.frequency, top=top)
        head = answers.ranks() < self.sketches.pages.shape[1]
        self.sketches.put(answers.queries()[head], answers.pages[head], answers.scores[head])

    @property
    def stale(self) -> IntArray:
        """Queries whose top K is no longer known."""
        return self.sketches.stale

    def see(self, pages: IntArray, facts: PageFacts) -> int:
        """Unseen pages with all that is known of them now; row i of `facts` is page `pages[i]`, ascending.

        The number of matches that were found or found again.
        """
        postings = post(facts.words)
        fresh = NgramIndex(postings)
        matches = fresh.match(self.queries.grams, np.ones(len(pages), dtype=np.bool_))
        self.sketches.put(matches.queries(), pages[matches.pages], self._expect(matches, facts))
        self.index.add(Postings(postings.grams, pages[postings.pages].astype(np.uint32)))
        return len(matches.pages)

    def crawl(self, page: int, queries: IntArray, scores: FloatArray) -> None:
        """A page was fetched: its real scores take the place of the expected ones, for all queries."""
        held = np.flatnonzero((self.sketches.pages == page).any(axis=1))
        gone = np.setdiff1d(held, queries)
        self.sketches.put(gone, np.full(len(gone), page), np.full(len(gone), np.nan))
        self.sketches.put(queries, np.full(len(queries), page), scores)

    def refill(self, queries: IntArray, answers: CrawledScores, facts: PageFacts, unseen: BoolArray) -> None:
        """Rank queries anew: `answers` of them by the index, in this order, and the unseen pages that match."""
        found = self.index.match(self.queries.grams.take(queries), unseen)
        lengths = np.zeros(len(self.queries.frequency), dtype=np.int64)
        lengths[queries] = np.diff(found.starts)
        order = np.argsort(queries, kind="stable")
        pages = [found.of_query(int(place)) for place in order]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        matches = Matches(starts, np.concatenate([*pages, np.empty(0, np.uint32)]).astype(np.uint32))
        self.sketches.clear(queries)
        self.sketches.put(queries[answers.queries()], answers.pages, answers.scores)
        self.sketches.put(matches.queries(), matches.pages, self._expect(matches, facts))

    def impact(self, count: int) -> FloatArray:
        """I(p) by page."""
        return self.sketches.impact(count)

    def _expect(self, matches: Matches, facts: PageFacts) -> FloatArray:
        features = pair_features(matches, self.queries.words, self.queries.mass, facts, self.model.host_level)
        return self.model.expect(features, self.queries.mass[matches.queries()])
