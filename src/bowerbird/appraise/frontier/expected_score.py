"""What will an unseen page score for a query? A regression tree over what is known without its content."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.ngram_kernels import measure_overlap
from bowerbird.appraise.frontier.ngrams import Matches, QueryWords
from bowerbird.appraise.frontier.sketches import CrawledScores, ScoreSpread
from bowerbird.model.page_words import BREAK, PageWords

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEATURES = (
    "in_links",
    "importance",
    "texts",
    "url_words",
    "host_level",
    "query_words",
    "query_weight",
    "query_in_url",
    "url_in_query",
    "exact_anchors",
    "full_anchors",
)
_WORDS_READ = 256  # of a page's URL and anchors: pages that thousands link to repeat themselves
_POINTS = 33  # of a leaf's distribution of scores
_HOST_PRIOR = 20.0  # pairs that a host's own level must outweigh
_CENSORED = 0.5  # a page that matches but is below the known results: this part of the last known score


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What is known of every page without its content."""

    words: PageWords
    in_degree: npt.NDArray[Any]
    importance: FloatArray
    host: npt.NDArray[Any]


def inverse_frequency(words: PageWords, terms: tuple[str, ...]) -> FloatArray:
    """How telling each term is, from the pages' URLs and anchors: ln(1 + (N - n + 0.5)/(n + 0.5))."""
    owners = np.repeat(np.arange(len(words)), np.diff(words.starts))
    real = words.words != BREAK
    size = max(len(words.vocabulary), 1)
    pairs = np.sort(owners[real] * size + words.words[real])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    holding = np.bincount(pairs % size, minlength=size)
    number = {word: place for place, word in enumerate(words.vocabulary)}
    found = np.array([holding[number[term]] if term in number else 0 for term in terms], dtype=np.float64)
    return np.log1p((len(words) - found + 0.5) / (found + 0.5))


def query_mass(queries: QueryWords, weight: FloatArray) -> FloatArray:
    """The most a page can be expected to score, up to a factor: the sum of the weights of the query's terms."""
    owners = np.repeat(np.arange(len(queries)), np.diff(queries.starts))
    return np.bincount(owners, weights=weight[queries.words], minlength=len(queries)).astype(np.float64)


def pair_features(
    matches: Matches, queries: QueryWords, mass: FloatArray, facts: PageFacts, host_level: FloatArray
) -> FloatArray:
    """One row a match, columns as in FEATURES: nothing of it needs the page's content."""
    words = facts.words
    pages, owners = matches.pages, matches.queries()
    breaks = np.concatenate([[0], np.cumsum(words.words == BREAK)])
    places = np.append(np.flatnonzero(words.words == BREAK), len(words.words))
    first_break = places[breaks[words.starts[:-1]]]
    texts = breaks[words.starts[1:]] - breaks[words.starts[:-1]] + (np.diff(words.starts) > 0)
    lengths = np.diff(queries.starts)
    overlap = measure_overlap(
        owners,
        pages,
        queries.starts,
        queries.numbered_as(words.vocabulary),
        words.starts,
        words.words,
        _WORDS_READ,
    )
    mean_importance = float(facts.importance.sum()) / max(len(facts.importance), 1) or 1.0
    columns = (
        np.log1p(facts.in_degree[pages]),
        np.log1p(facts.importance[pages] / mean_importance),
        np.log1p(texts[pages]),
        np.minimum(first_break, words.starts[1:])[pages] - words.starts[pages],
        host_level[facts.host[pages]],
        lengths[owners],
        mass[owners] / np.maximum(lengths[owners], 1),
        overlap[:, 0],
        overlap[:, 1],
        np.log1p(overlap[:, 2]),
        overlap[:, 3],
    )
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


@dataclass(frozen=True, slots=True)
class ExpectedScoreModel:
    """S': scores as a multiple of the query's mass, by the leaves of a tree; `None` before anything was learnt."""

    tree: Any
    leaf_rows: IntArray  # by node of the tree
    points: FloatArray  # by leaf: its scores, as a distribution
    means: FloatArray
    host_level: FloatArray  # by host
    pairs: int  # that it was fitted on

    def _leaves(self, features: FloatArray) -> IntArray:
        if self.tree is None:
            return np.zeros(len(features), dtype=np.int64)
        leaves: IntArray = self.leaf_rows[self.tree.apply(features.astype(np.float32))]
        return leaves

    def expect(self, features: FloatArray, mass: FloatArray) -> FloatArray:
        """[SI08] S'(p, q): the expected score of each pair."""
        score: FloatArray = self.means[self._leaves(features)] * mass
        return score

    def spread(self, features: FloatArray, mass: FloatArray) -> ScoreSpread:
        """The distribution of each pair's score: what the crawled pages of its leaf turned out to score."""
        return ScoreSpread(self.points, self._leaves(features), np.asarray(mass, dtype=np.float64))


def unlearnt_model(hosts: int) -> ExpectedScoreModel:
    """Before any page was crawled: a matching page scores anything up to the query's mass."""
    return ExpectedScoreModel(
        None, np.zeros(1, np.int64), np.linspace(0.0, 2.0, _POINTS)[None], np.ones(1), np.full(hosts, 1.0), 0
    )


def training_scores(matches: Matches, crawled: CrawledScores) -> FloatArray:
    """What crawled pages really scored; one below a list that was cut off counts as half of the last in it."""
    owners = matches.queries()
    scores = crawled.look_up(owners, matches.pages)
    ends = crawled.starts[1:] - 1
    last = np.where(np.diff(crawled.starts) > 0, crawled.scores[np.maximum(ends, 0)] if len(crawled.scores) else 0, 0)
    return np.where(np.isnan(scores), _CENSORED * last[owners], scores)


def fit_expected_score(
    matches: Matches,
    queries: QueryWords,
    mass: FloatArray,
    facts: PageFacts,
    crawled: CrawledScores,
    *,
    rng: np.random.Generator,
    min_leaf: int = 50,
    most_pairs: int = 300_000,
) -> ExpectedScoreModel:
    """[SI08] S': a regression tree over content-independent features, fitted on crawled pages that match queries.

    `matches` are of crawled pages, judged by URL and anchors as an unseen page is. Fitted to score/mass, so that
    what is learnt on common words holds for rare ones.
    """
    hosts = int(facts.host.max(initial=0)) + 1
    owners = matches.queries()
    known = mass[owners] > 0
    if np.count_nonzero(known) < 2 * min_leaf:
        return unlearnt_model(hosts)
    ratio = np.zeros(len(owners))
    ratio[known] = training_scores(matches, crawled)[known] / mass[owners][known]
    level = host_levels(facts.host[matches.pages][known], ratio[known], hosts)
    features = pair_features(matches, queries, mass, facts, level)[known]
    target = ratio[known]
    if len(target) > most_pairs:
        kept = rng.choice(len(target), most_pairs, replace=False)
        features, target = features[kept], target[kept]
    from sklearn.tree import DecisionTreeRegressor

    estimator = DecisionTreeRegressor(min_samples_leaf=min_leaf, random_state=int(rng.integers(2**31)))
    estimator.fit(features, target)
    tree = estimator.tree_
    nodes = tree.apply(features.astype(np.float32))
    leaves, places = np.unique(nodes, return_inverse=True)
    leaf_rows = np.zeros(tree.node_count, dtype=np.int64)
    leaf_rows[leaves] = np.arange(len(leaves))
    order = np.lexsort((target, places))
    bounds = np.searchsorted(places[order], np.arange(len(leaves) + 1))
    at = np.linspace(0.0, 1.0, _POINTS)
    points = np.stack([np.quantile(target[order[a:b]], at) for a, b in pairwise(bounds)])
    means = np.bincount(places, weights=target) / np.bincount(places)
    return ExpectedScoreModel(tree, leaf_rows, points, means, level, len(target))


def host_levels(host: npt.NDArray[Any], ratio: FloatArray, hosts: int) -> FloatArray:
    """The mean score/mass of each host's pages, drawn towards the mean of all where a host has few."""
    overall = float(ratio.mean()) if len(ratio) else 1.0
    total = np.bincount(host, weights=ratio, minlength=hosts)
    level: FloatArray = (total + _HOST_PRIOR * overall) / (np.bincount(host, minlength=hosts) + _HOST_PRIOR)
    return level
