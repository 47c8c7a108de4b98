"""What do pages like this one have? Impact learnt by gradient boosting over what is known before a fetch.

Queries whose words are in a page's URL or anchors are a small part of those it will answer. The rest follows from its
topic and its size, which linkers, co-cited pages and words give away. A crawled page is described as if it had not been
crawled, and everything that is known of others is taken without it; so crawled pages teach what frontier pages
are, and nothing of a frontier page beyond links, URL and anchors is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.boosted_kernels import encode_marks, sum_demand
from bowerbird.appraise.frontier.expected_score import inverse_frequency
from bowerbird.appraise.frontier.graph import FrontierGraph
from bowerbird.appraise.frontier.sketches import TOP, CrawledScores, top_impact
from bowerbird.model.page_words import BREAK, PageWords
from bowerbird.model.workload import Workload

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_PRIOR = 3.0  # pages that a word's or a linker's own level must outweigh
_LEAST = 100  # crawled pages below which nothing is learnt
_SHARED_PAGES = 20_000
_LEARNERS = 4  # their mean is steadier than one
_ENCODED = ("mean", "rare", "log_rare", "high", "low")
_DEMANDED = ("full", "full_room", "full_few", "part", "part_room", "part_few", "near_room", "half_room")


@dataclass(frozen=True, slots=True)
class Features:
    """One row a page."""

    values: FloatArray
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """The distinct marks (words, linkers) of each page, as CSR."""

    starts: IntArray
    marks: IntArray
    count: int  # of different marks there are


def page_marks(words: PageWords, *, url_only: bool) -> Marks:
    """The distinct words of each page: of its URL, or of URL and anchors."""
    owners = np.repeat(np.arange(len(words), dtype=np.int64), np.diff(words.starts))
    kept = words.words != BREAK
    if url_only:
        breaks = np.cumsum(~kept)
        before = np.concatenate([[0], breaks])[words.starts[:-1]]
        kept &= breaks == before[owners]
    size = max(len(words.vocabulary), 1)
    keys = np.sort(owners[kept] * size + words.words[kept])
    keys = keys[np.diff(keys, prepend=-1) > 0]
    starts = np.searchsorted(keys // size, np.arange(len(words) + 1)).astype(np.int64)
    return Marks(starts, keys % size, size)


def impact_features(
    words: PageWords,
    workload: Workload,
    graph: FrontierGraph,
    crawled_top: CrawledScores,
    importance: FloatArray,
    impact: FloatArray,
    *,
    size: FloatArray | None = None,
    term_weight: FloatArray | None = None,
    k: int = TOP,
) -> Features:
    """What is known of each page before it is fetched; of a crawled page, as if it had not been.

    `impact` is that of crawled pages; `size` the words of their text, where known.
    """
    known = graph.crawled
    columns: list[FloatArray] = [np.log1p(graph.in_degree), np.log(np.maximum(importance, 1e-300))]
    names = ["in_links", "importance"]

    def add(name: str, parts: Iterable[str], values: FloatArray) -> None:
        for part, column in zip(parts, values.T, strict=False):
            names.append(f"{name}.{part}")
            columns.append(np.asarray(column, dtype=np.float64))

    in_starts, in_sources = graph.into
    linkers = Marks(in_starts, in_sources.astype(np.int64), graph.count)
    url, every = page_marks(words, url_only=True), page_marks(words, url_only=False)
    degree = np.log1p(graph.out_degree)
    targets = {"impact": np.log1p(np.where(known, impact, 0.0))}
    if size is not None:
        targets["size"] = np.log1p(np.where(known, size, 0.0))
    for name, value in {**targets, "out_links": degree}.items():
        add(f"linkers_{name}", ("mean", "near", "high"), _sum_up_linkers(graph, value))
    for name, value in targets.items():
        mean = float(value[known].mean()) if known.any() else 0.0
        for kind, marks in (("co_cited", linkers), ("url", url), ("anchors", every)):
            encoded = encode_marks(marks.starts, marks.marks, value, known, marks.count, mean, _PRIOR)
            add(f"{kind}_{name}", _ENCODED, encoded)
    weight = inverse_frequency(words, workload.terms) if term_weight is None else term_weight
    for kind, marks in (("url", url), ("anchors", every)):
        add(f"{kind}_asked", _DEMANDED, np.log1p(_demand(marks, words, workload, weight, crawled_top, k)))
        add(
            f"{kind}_terms",
            ("asked", "asked_weight", "scarce", "weight"),
            _terms(marks, words, workload, weight, known),
        )
        add(kind, ("words",), np.log1p(np.diff(marks.starts))[:, None])
    return Features(np.column_stack(columns), tuple(names))


@dataclass(frozen=True, slots=True)
class BoostedImpact:
    """Impact by page, in the unit of f(q): as learnt for pages not crawled, measured for crawled ones."""

    impact: FloatArray
    features: tuple[str, ...]
    trained_pages: int  # 0: too few pages were crawled, all get their mean


def boosted_impact(
    words: PageWords,
    workload: Workload,
    graph: FrontierGraph,
    crawled_top: CrawledScores,
    importance: FloatArray,
    *,
    size: FloatArray | None = None,
    term_weight: FloatArray | None = None,
    k: int = TOP,
    most_pages: int = 200_000,
    rng: np.random.Generator,
) -> BoostedImpact:
    """The impact that pages like it have, by gradient boosting of log(1 + impact) over crawled pages.

    The target is measured over crawled pages only, as in life: their places in the index's own answers.
    """
    crawled = graph.crawled
    impact = top_impact(crawled_top, workload.frequency, graph.count, top=k)
    rows = np.flatnonzero(crawled)
    if len(rows) < _LEAST:
        mean = float(impact[rows].mean()) if len(rows) else 0.0
        return BoostedImpact(np.where(crawled, impact, mean), (), 0)
    features = impact_features(
        words, workload, graph, crawled_top, importance, impact, size=size, term_weight=term_weight, k=k
    )
    if len(rows) > most_pages:
        rows = np.sort(rng.choice(rows, most_pages, replace=False))
    total = np.zeros(graph.count)
    learners = [_learner(seed) for seed in rng.integers(2**31, size=_LEARNERS).tolist()]
    with _threads(len(rows)):
        for learner in learners:
            total += learner.fit(features.values[rows], np.log1p(impact[rows])).predict(features.values)
    guess = np.maximum(np.expm1(total / _LEARNERS), 0.0)
    # the mean of a logarithm is below the logarithm of the mean
    guess *= float(impact[rows].sum()) / max(float(guess[rows].sum()), 1e-9)
    return BoostedImpact(np.where(crawled, impact, guess), features.names, len(rows))


def _learner(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=300,
        learning_rate=0.03,
        max_leaf_nodes=10,
        min_samples_leaf=20,
        l2_regularization=5.0,
        max_features=0.3,
        random_state=seed,
    )


def _threads(pages: int) -> AbstractContextManager[Any]:
    """One thread for few pages: several would wait for each other longer than they work.

    It limits libraries that are loaded: the learners must have been made before.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1 if pages < _SHARED_PAGES else None)
    return limits


def _sum_up_linkers(graph: FrontierGraph, value: FloatArray) -> FloatArray:
    """Pages × 3, of a value over a page's linkers: the mean, the mean weighted by 1/out-degree, the highest."""
    in_starts, sources = graph.into
    owners = np.repeat(np.arange(graph.count), np.diff(in_starts))
    near = 1.0 / np.maximum(graph.out_degree, 1)[sources]
    mean = np.bincount(owners, weights=value[sources], minlength=graph.count) / np.maximum(graph.in_degree, 1)
    total = np.bincount(owners, weights=near, minlength=graph.count)
    weighted = np.bincount(owners, weights=near * value[sources], minlength=graph.count) / np.maximum(total, 1e-12)
    high = np.zeros(graph.count)
    np.maximum.at(high, owners, value[sources])
    return np.column_stack([mean, weighted, high])


def _term_numbers(words: PageWords, workload: Workload) -> IntArray:
    """By word of the pages' vocabulary its number in the workload's, -1 where nobody asks for it."""
    number = {term: place for place, term in enumerate(workload.terms)}
    return np.array([number.get(word, -1) for word in words.vocabulary] or [-1], dtype=np.int64)


def _demand(
    marks: Marks, words: PageWords, workload: Workload, weight: FloatArray, crawled_top: CrawledScores, k: int
) -> FloatArray:
    owners = np.repeat(np.arange(len(workload), dtype=np.int64), np.diff(workload.starts))
    order = np.argsort(workload.members, kind="stable")
    term_starts = np.searchsorted(workload.members[order], np.arange(len(workload.terms) + 1)).astype(np.int64)
    mass = np.bincount(owners, weights=weight[workload.members], minlength=len(workload))
    demand: FloatArray = sum_demand(
        marks.starts,
        _term_numbers(words, workload)[marks.marks],
        term_starts,
        owners[order],
        weight,
        np.maximum(mass, 1e-12),
        workload.frequency,
        np.diff(crawled_top.starts),
        k,
    )
    return demand


def _terms(marks: Marks, words: PageWords, workload: Workload, weight: FloatArray, known: BoolArray) -> FloatArray:
    """Pages × 4, as logarithms: how often its words are asked for, the same by weight, by scarcity; their weight."""
    terms = _term_numbers(words, workload)[marks.marks]
    owners = np.repeat(np.arange(len(words)), np.diff(marks.starts))[terms >= 0]
    terms = terms[terms >= 0]
    asked = workload.term_frequency()
    holding = np.exp(-weight) * max(int(known.sum()), 1) + 1.0
    columns = [asked, asked * weight, asked / holding, weight]
    sums = [np.bincount(owners, weights=column[terms], minlength=len(words)) for column in columns]
    return np.log1p(np.column_stack(sums))
