"""What would searchers gain from an unseen page? The impact of [SI08]: query-driven, hybrid, and expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.expected_score import (
    PageFacts,
    fit_expected_score,
    inverse_frequency,
    pair_features,
    query_mass,
)
from bowerbird.appraise.frontier.ngrams import Matches, NgramIndex, order_words, post, query_grams
from bowerbird.appraise.frontier.sketches import TOP, CrawledScores, Sketches, top_impact, top_probability
from bowerbird.index.analysis import tokenize
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload
from bowerbird.quality.neediness import ImprovabilityModel, improvability, neediness

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
QUERY_SHARE = 0.9  # of the hybrid


@dataclass(frozen=True, slots=True)
class MatchedQuery:
    """Why a page has query-driven impact: one of the queries it seems to answer."""

    query: str
    frequency: float
    expected_score: float
    expected_rank: int
    probability: float  # of a place in the top K


@dataclass(frozen=True, slots=True)
class QueryImpact:
    """Impact by page, in the unit of f(q); 0 for pages that are not on the frontier."""

    query_driven: FloatArray
    hybrid: FloatArray
    expected: FloatArray
    kept: IntArray  # the queries that have a sketch, by their number in the workload
    matches: Matches  # of `kept`
    scores: FloatArray  # expected, by match
    probability: FloatArray  # of a place in the top K, by match
    sketches: Sketches  # of `kept`
    trained_pairs: int  # that the expected scores were learnt from; 0: nothing was learnt yet

    def queries_of(self, page: int, workload: Workload, most: int = 5) -> list[MatchedQuery]:
        """The queries that speak most for a page: those it may enter the top K of, most frequent first."""
        pairs = np.flatnonzero(self.matches.pages == page)
        owners = np.searchsorted(self.matches.starts, pairs, side="right") - 1
        weight = workload.frequency[self.kept[owners]]
        order = np.lexsort((self.kept[owners], -weight, -weight * self.probability[pairs]))[:most]
        return [
            MatchedQuery(
                workload.queries[self.kept[owners[i]]],
                float(weight[i]),
                float(self.scores[pairs[i]]),
                self.sketches.rank_of(int(owners[i]), page, float(self.scores[pairs[i]])),
                float(self.probability[pairs[i]]),
            )
            for i in order
        ]


def select_needy(need: FloatArray, share: float, matched: BoolArray | None = None) -> IntArray:
    """[SI08] The neediest share of the queries, ascending; with `matched`, only queries that match an unseen page.

    The share is of all queries either way. Ties go to the query that comes first in the workload.
    """
    count = min(len(need), max(1, round(share * len(need)))) if share > 0 else 0
    order = np.argsort(-need, kind="stable")
    if matched is not None:
        order = order[matched[order]]
    return np.sort(order[:count]).astype(np.int64)


def quadratic_importance(importance: FloatArray, impact: FloatArray, crawled: BoolArray) -> FloatArray:
    """[SI08] quadratic(importance): impact as a polynomial of degree 2 in importance, fitted on the crawled pages.

    More importance never speaks against a page: where the parabola falls it is made flat, and nothing is below 0.
    """
    scale = importance / (float(importance.sum()) / max(len(importance), 1) or 1.0)
    if np.count_nonzero(crawled) < 3 or float(np.ptp(scale[crawled])) == 0.0:
        return np.full(len(importance), float(impact[crawled].mean()) if crawled.any() else 0.0)
    fitted = np.polyval(np.polyfit(scale[crawled], impact[crawled], 2), scale)
    order = np.argsort(scale, kind="stable")
    rising = np.empty(len(fitted))
    rising[order] = np.maximum.accumulate(fitted[order])
    return np.maximum(rising, 0.0)


def replay_crawled(
    matches: Matches,
    scores: FloatArray,
    crawled_top: CrawledScores,
    frequency: FloatArray,
    count: int,
    *,
    top: int = TOP,
) -> FloatArray:
    """The query-driven impact that crawled pages would have been given, each unseen among the others as they are."""
    owners = matches.queries()
    lengths = np.diff(crawled_top.starts)
    keys = (crawled_top.queries() << 32) | crawled_top.pages
    head = np.sort(keys[crawled_top.ranks() < top])
    asked = (owners << 32) | matches.pages
    place = np.minimum(np.searchsorted(head, asked), max(len(head) - 1, 0))
    inside = head[place] == asked if len(head) else np.zeros(len(asked), dtype=np.bool_)
    rank = np.where(inside, top, top - 1)  # of the page to beat, itself left out
    last = np.minimum(rank, lengths[owners] - 1)
    bound = np.where(last >= 0, crawled_top.scores[crawled_top.starts[owners] + last], 0.0) if len(head) else 0.0
    free = (lengths[owners] <= rank) & crawled_top.complete[owners]  # fewer than K results without it
    enters = free | (scores > bound)
    return np.bincount(matches.pages, weights=frequency[owners] * enters, minlength=count).astype(np.float64)


def scale_to_impact(estimate: FloatArray, known: FloatArray, impact: FloatArray, crawled: BoolArray) -> FloatArray:
    """An estimate as an impact: a + b·estimate, least squares over the crawled pages, b not below 1.

    URL and anchors show few of the queries that a page answers, so that the sum over those is far below its impact;
    but it is a part of it, hence the bound for b. `known` is the same estimate for crawled pages, `impact` theirs.
    """
    x, y = known[crawled], impact[crawled]
    if not len(x):
        return np.array(estimate, dtype=np.float64)
    spread = float(((x - x.mean()) ** 2).sum())
    slope = max(float(((x - x.mean()) * (y - y.mean())).sum()) / spread, 1.0) if spread > 0 else 1.0
    return np.maximum(float(y.mean()) + slope * (estimate - float(x.mean())), 0.0)


def mix_hybrid(query_driven: FloatArray, importance_impact: FloatArray, share: float = QUERY_SHARE) -> FloatArray:
    """[SI08] hybrid: 0.9·query-driven + 0.1·quadratic(importance), both as estimates of impact."""
    mixed: FloatArray = share * query_driven + (1.0 - share) * importance_impact
    return mixed


def query_impact(
    words: PageWords,
    workload: Workload,
    crawled: BoolArray,
    crawled_top: CrawledScores,
    importance: FloatArray,
    in_degree: npt.NDArray[Any],
    host: npt.NDArray[Any],
    *,
    frontier: IntArray | None = None,
    k: int = TOP,
    share: float = 1.0,
    matched_only: bool = False,
    rho: float = 1.0,
    improvable: ImprovabilityModel | None = None,
    term_weight: FloatArray | None = None,
    words_of: Callable[[str], Sequence[str]] = tokenize,
    rng: np.random.Generator,
) -> QueryImpact:
    """The impact of every frontier page for this workload, from URLs, anchors and what the index answers now.

    `crawled_top` has a list per query of the workload. `frontier` are the pages to appraise (all that are not crawled
    unless given); `share` of the queries get a sketch, the neediest. `term_weight` is the index's inverse document
    frequency by term of the workload; without it URLs and anchors give one.
    """
    count = len(words)
    if len(crawled_top) != len(workload):
        raise ValueError(f"{len(crawled_top)} answer lists for {len(workload)} queries: each query needs one")
    unseen = np.zeros(count, dtype=np.bool_)
    unseen[np.flatnonzero(~crawled) if frontier is None else frontier] = True
    facts = PageFacts(words, in_degree, np.asarray(importance, dtype=np.float64), host)
    queries = order_words(workload, words_of)
    grams = query_grams(queries, rho=rho)
    mass = query_mass(queries, inverse_frequency(words, workload.terms) if term_weight is None else term_weight)

    both = crawled | unseen
    index = NgramIndex(post(words, np.flatnonzero(both)))
    seen = index.match(grams, crawled)
    model = fit_expected_score(seen, queries, mass, facts, crawled_top, rng=rng)

    matches = index.match(grams, unseen)
    kept = np.arange(len(workload), dtype=np.int64)
    if share < 1.0 or matched_only:
        can = improvability(crawled_top.mean_top(k), np.diff(crawled_top.starts), improvable)
        matched = np.diff(matches.starts) > 0 if matched_only else None
        kept = select_needy(neediness(workload.frequency, can), share, matched)
        matches = index.match(grams.take(kept), unseen)

    owners = kept[matches.queries()]
    by_workload = Matches(_spread_starts(matches.starts, kept, len(workload)), matches.pages)
    features = pair_features(by_workload, queries, mass, facts, model.host_level)
    scores = model.expect(features, mass[owners])
    answers, frequency = crawled_top.take(kept), workload.frequency[kept]
    sketches = sketch_queries(matches, scores, answers, frequency, top=k)
    chance = top_probability(matches, model.spread(features, mass[owners]), answers, top=k)

    driven = np.where(unseen, sketches.impact(count), 0.0)
    expected = np.bincount(matches.pages, weights=frequency[matches.queries()] * chance, minlength=count)
    seen_scores = model.expect(pair_features(seen, queries, mass, facts, model.host_level), mass[seen.queries()])
    sketched = np.zeros(len(workload))
    sketched[kept] = frequency
    replayed = replay_crawled(seen, seen_scores, crawled_top, sketched, count, top=k)
    known_impact = top_impact(crawled_top, workload.frequency, count, top=k)
    prior = quadratic_importance(facts.importance, known_impact, crawled)
    hybrid = np.where(unseen, mix_hybrid(scale_to_impact(driven, replayed, known_impact, crawled), prior), 0.0)
    return QueryImpact(
        driven, hybrid, expected.astype(np.float64), kept, matches, scores, chance, sketches, model.pairs
    )


def sketch_queries(
    matches: Matches, scores: FloatArray, answers: CrawledScores, frequency: FloatArray, *, top: int = TOP
) -> Sketches:
    """Sketches of crawled results and of unseen matches with their expected scores."""
    sketches = Sketches(frequency, top=top)
    head = answers.ranks() < sketches.pages.shape[1]
    sketches.put(answers.queries()[head], answers.pages[head], answers.scores[head])
    sketches.put(matches.queries(), matches.pages, scores)
    return sketches


def _spread_starts(starts: IntArray, kept: IntArray, count: int) -> IntArray:
    """CSR bounds of a selection of queries as bounds over all of them, the others empty."""
    lengths = np.zeros(count, dtype=np.int64)
    lengths[kept] = np.diff(starts)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
