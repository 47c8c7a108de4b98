"""What would each query's results be, were the frontier crawled? Per query the best candidates, seen and unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.ngrams import Matches
from bowerbird.appraise.frontier.sketch_kernels import solve_thresholds, tails, update_rows

TOP = 10  # K of [SI08]
_SPARE = 2  # a table has K·_SPARE columns, so that some candidates may fall out before a query is ranked anew
_BISECTIONS = 40
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CrawledScores:
    """What the index answers now: per query the best results, best first.

    Those of query q are `pages[starts[q]:starts[q + 1]]`, with their scores. `complete[q]` says that there are no
    others, so that a page outside the list scores 0.
    """

    starts: IntArray
    pages: npt.NDArray[np.uint32]
    scores: FloatArray
    complete: BoolArray

    @classmethod
    def from_lists(
        cls, lists: Sequence[tuple[npt.NDArray[np.integer], FloatArray]], complete: BoolArray
    ) -> CrawledScores:
        """From each query's pages and scores, best first."""
        return cls(
            _starts_of(np.array([len(pages) for pages, _ in lists], dtype=np.int64)),
            np.concatenate([np.zeros(0, np.uint32), *(pages for pages, _ in lists)]).astype(np.uint32),
            np.concatenate([np.zeros(0), *(scores for _, scores in lists)]),
            complete,
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def queries(self) -> IntArray:
        """The query of each result."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    def ranks(self) -> IntArray:
        """The rank of each result in its list, from 0."""
        return np.arange(len(self.pages), dtype=np.int64) - np.repeat(self.starts[:-1], np.diff(self.starts))

    def mean_top(self, top: int = TOP) -> FloatArray:
        """Per query the mean score of the top results there are; 0 without any."""
        head = self.ranks() < top
        owners = self.queries()[head]
        total = np.bincount(owners, weights=self.scores[head], minlength=len(self))
        mean: FloatArray = total / np.maximum(np.bincount(owners, minlength=len(self)), 1)
        return mean

    def take(self, queries: IntArray) -> CrawledScores:
        """The lists of some queries, in this order."""
        lengths = np.diff(self.starts)[queries]
        starts = _starts_of(lengths)
        places = np.arange(starts[-1]) + np.repeat(self.starts[queries] - starts[:-1], lengths)
        return CrawledScores(starts, self.pages[places], self.scores[places], self.complete[queries])

    def without(self, hidden: BoolArray) -> CrawledScores:
        """The lists without the `hidden` pages."""
        kept = ~hidden[self.pages]
        starts = _starts_of(np.bincount(self.queries()[kept], minlength=len(self)))
        return CrawledScores(starts, self.pages[kept], self.scores[kept], self.complete)

    def look_up(self, queries: IntArray, pages: npt.NDArray[np.uint32]) -> FloatArray:
        """The score of each pair; for a pair not listed 0 where the list is complete, otherwise no number."""
        keys = (self.queries().astype(np.uint64) << np.uint64(32)) | self.pages
        order = np.argsort(keys, kind="stable")
        asked = (queries.astype(np.uint64) << np.uint64(32)) | pages
        place = np.minimum(np.searchsorted(keys[order], asked), max(len(keys) - 1, 0))
        missing = np.where(self.complete[queries], 0.0, np.nan)
        if not len(keys):
            return missing
        return np.where(keys[order][place] == asked, self.scores[order][place], missing)


def make_crawled_scores(
    lists: list[list[tuple[int, float]]], complete: npt.ArrayLike | None = None, top: int = TOP
) -> CrawledScores:
    """From each query's (page, score) results in any order; lists shorter than `top` count as complete unless told."""
    ranked = [sorted(results, key=lambda result: (-result[1], result[0])) for results in lists]
    lengths = np.array([len(results) for results in ranked], dtype=np.int64)
    return CrawledScores(
        _starts_of(lengths),
        np.array([page for results in ranked for page, _ in results], dtype=np.uint32),
        np.array([score for results in ranked for _, score in results], dtype=np.float64),
        lengths < top if complete is None else np.asarray(complete, dtype=np.bool_),
    )


def _starts_of(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class Sketches:
    """[SI08] sketches: per query its top K over crawled pages (real scores) and matching unseen ones (expected).

    Kept up by changes: a new candidate, a new expected score, a page that was crawled and now has a real score. Only
    the best 2·K are held. When so many of them fall out that the K-th is no longer known, the query is `stale`
    and must be given all its candidates again (`refill`). Ties go to the lower page.

    >>> sketches = Sketches(np.array([5.0]), top=1)
    >>> sketches.put(np.array([0, 0]), np.array([7, 8]), np.array([2.0, 3.0]))
    >>> sketches.impact(9).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    """

    def __init__(self, frequency: FloatArray, *, top: int = TOP) -> None:
        self.frequency = np.asarray(frequency, dtype=np.float64)
        self.top = top
        count, width = len(self.frequency), top * _SPARE
        self.pages = np.full((count, width), -1, dtype=np.int64)
        self.scores = np.full((count, width), -np.inf)
        self.sizes = np.zeros(count, dtype=np.int64)
        self._left_score = np.full(count, -np.inf)
        self._left_page = np.full(count, -1, dtype=np.int64)

    def put(self, queries: IntArray, pages: npt.NDArray[np.integer], scores: FloatArray) -> None:
        """Candidates new to their query, or with a new score; a page that scores 0, or no number, is taken out."""
        worth = np.asarray(scores, dtype=np.float64)
        update_rows(
            self.pages,
            self.scores,
            self.sizes,
            self._left_score,
            self._left_page,
            np.asarray(queries, dtype=np.int64),
            np.asarray(pages, dtype=np.int64),
            np.where(worth > 0, worth, np.nan),
        )

    @property
    def stale(self) -> IntArray:
        """Queries whose top K is not known any more: give them all their candidates with `refill`."""
        return np.flatnonzero((self.sizes < self.top) & (self._left_score > -np.inf)).astype(np.int64)

    def refill(self, queries: IntArray, pages: npt.NDArray[np.integer], scores: FloatArray) -> None:
        """Rank the queries named anew, from all of their candidates."""
        named = np.unique(queries)
        self.clear(named)
        self.put(queries, pages, scores)

    def clear(self, queries: IntArray) -> None:
        """Forget all candidates of some queries."""
        self.pages[queries] = -1
        self.scores[queries] = -np.inf
        self.sizes[queries] = 0
        self._left_score[queries] = -np.inf
        self._left_page[queries] = -1

    def impact(self, count: int) -> FloatArray:
        """[SI08] page impact: I(p) = sum of f(q) over the queries that have p in the top K of their sketch."""
        head = self.pages[:, : self.top]
        held = head >= 0
        weights = np.broadcast_to(self.frequency[:, None], head.shape)[held]
        return np.bincount(head[held], weights=weights, minlength=count).astype(np.float64)

    def rank_of(self, query: int, page: int, score: float) -> int:
        """The place, from 1, that a page takes in the query's sketch; one beyond it: the size of the sketch and 1."""
        size = int(self.sizes[query])
        row, scores = self.pages[query, :size], self.scores[query, :size]
        return 1 + int(np.count_nonzero((row != page) & ((scores > score) | ((scores == score) & (row < page)))))


def top_impact(results: CrawledScores, frequency: FloatArray, count: int, *, top: int = TOP) -> FloatArray:
    """[SI08] page impact over the pages that have been crawled: I(p) = sum of f(q)·[p in the top K of q]."""
    head = results.ranks() < top
    weights = frequency[results.queries()[head]]
    return np.bincount(results.pages[head], weights=weights, minlength=count).astype(np.float64)


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """What an unseen page may turn out to score: candidate c gets `scale[c]` times a draw from `points[rows[c]]`.

    A row of `points` is a distribution: ascending, equally likely, straight between them.
    """

    points: FloatArray
    rows: IntArray
    scale: FloatArray


def top_probability(matches: Matches, spread: ScoreSpread, crawled: CrawledScores, *, top: int = TOP) -> FloatArray:
    """[SI08] P(p in the top K of q) ~ 1 - F_p(t) for each match, t the score that K pages are expected to exceed.

    A score of 0 is no result, so t is never below 0.
    """
    thresholds = solve_thresholds(
        crawled.starts,
        crawled.scores,
        matches.starts,
        spread.points,
        spread.scale,
        spread.rows,
        top,
        _BISECTIONS,
    )
    chance: FloatArray = tails(spread.points, spread.scale, spread.rows, thresholds[matches.queries()])
    return chance


def expected_impact(
    matches: Matches, spread: ScoreSpread, crawled: CrawledScores, frequency: FloatArray, count: int, *, top: int = TOP
) -> FloatArray:
    """[SI08] expected impact under score distributions: E I(p) = sum of f(q)·P(p in the top K of q)."""
    chance = top_probability(matches, spread, crawled, top=top)
    return np.bincount(matches.pages, weights=frequency[matches.queries()] * chance, minlength=count).astype(np.float64)
