"""Scores of every version of every page for every query that it answers: Lucene's classic TF-IDF, and in-links.

A page answers a query when it has all of its terms. A *slot* is a query and a page of which some version answers it;
slots are ordered by query, then by page, so that of equal scores the lower slot is the lower path.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, QuerySet, RefreshData
from bowerbird.lab.refresh_terms import I32, I64

SCORINGS = ("tf-idf", "in-link")


@dataclass(frozen=True)
class ScoredVersions:
    """Answers of one workload. Page p has the slots `slots[of[p]:of[p + 1]]`, ascending; its version v scores
    `scores[at[v]:at[v] + of[p + 1] - of[p]]` there, 0 where it does not answer.
    """

    data: RefreshData
    queries: QuerySet  # those with a result at week 0
    query_starts: I64  # the slots of query q are query_starts[q]…query_starts[q + 1] - 1
    slot_page: I32
    of: I64
    slots: I64
    at: I64
    scores: FloatArray

    @cached_property
    def slot_query(self) -> I32:
        """By slot, its query."""
        return np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.query_starts))

    @cached_property
    def views(self) -> FloatArray:
        """[UC05] I(r) = r^-1.5 by rank from 0; two more than there are pages."""
        return np.arange(1, self.data.count + 3, dtype=np.float64) ** -1.5

    def row(self, version: int) -> tuple[I64, FloatArray]:
        """Slots and scores of one version."""
        page = int(self.data.page[version])
        slots = self.slots[self.of[page] : self.of[page + 1]]
        start = int(self.at[version])
        return slots, self.scores[start : start + len(slots)]

    def at_start(self) -> FloatArray:
        """Scores by slot at week 0."""
        found = np.zeros(len(self.slot_page))
        _put_versions(self.data.first[:-1], self.data.page, self.of, self.slots, self.at, self.scores, found)
        return found


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How often each version has the words of a workload: version v has `terms[starts[v]:starts[v + 1]]`, distinct."""

    size: int  # words of the workload
    members: I32  # the words of its queries, as they follow each other
    starts: I64
    terms: I32
    counts: I32

    def of_versions(self, versions: I64) -> tuple[I64, I32, I32]:
        """(starts, terms, counts) of some versions, ascending."""
        sizes = np.diff(self.starts)
        kept = np.zeros(len(sizes), dtype=np.bool_)
        kept[versions] = True
        mine = np.repeat(kept, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return starts, self.terms[mine], self.counts[mine]

    def seen_in(self, terms: I32) -> I64:
        """How many versions have each word, from the distinct words of all of them."""
        return np.bincount(terms, minlength=self.size)


def count_words(data: RefreshData, queries: QuerySet) -> WordCounts:
    """Count the workload's words in all versions."""
    vocabulary = np.unique(queries.terms)
    lookup = np.full(max(int(data.tokens.max(initial=0)), int(vocabulary.max(initial=0))) + 1, -1, dtype=np.int32)
    lookup[vocabulary] = np.arange(len(vocabulary), dtype=np.int32)
    counted = _count_terms(data.starts, data.tokens, lookup, len(vocabulary))
    return WordCounts(len(vocabulary), lookup[queries.terms], *counted)


def query_norms(queries: QuerySet, members: I32, idf: FloatArray) -> FloatArray:
    """Lucene's queryNorm, 1/sqrt(sum of idf²)."""
    return 1.0 / np.sqrt(np.add.reduceat(idf[members] ** 2, queries.starts[:-1])) if len(queries) else np.zeros(0)


def score_versions(data: RefreshData, queries: QuerySet, scoring: str) -> ScoredVersions:
    """Score all versions of all pages; queries without a result at week 0 are left out."""
    if scoring not in SCORINGS:
        raise ValueError(f"no scoring {scoring!r}: one of {', '.join(SCORINGS)}")
    words = count_words(data, queries)
    _, base_terms, _ = words.of_versions(data.first[:-1])
    seen_in = words.seen_in(base_terms)
    keyed_starts, keyed = _key_queries(queries.starts, words.members, seen_in)
    idf = term_weight(seen_in, data.count)
    static = data.in_links.astype(np.float64) if scoring == "in-link" else np.zeros(0)
    of, found, at, scores, answered = _match_versions(
        words.starts, words.terms, words.counts, data.first, np.diff(data.starts), keyed_starts, keyed, queries.starts,
        words.members, idf, query_norms(queries, words.members, idf), static,
    )  # fmt: skip
    pages = np.repeat(np.arange(data.count, dtype=np.int32), np.diff(of))
    return _order_slots(data, queries, of, found, pages, at, scores, answered)


def term_weight(seen_in: npt.ArrayLike, pages: int) -> FloatArray:
    """Lucene's classic idf, 1 + ln(N/(df + 1)).

    >>> term_weight([0, 9], 10).round(3).tolist()
    [3.303, 1.0]
    """
    return 1.0 + np.log(pages / (np.asarray(seen_in, dtype=np.float64) + 1.0))


def _key_queries(starts: I64, members: I32, seen_in: I64) -> tuple[I64, I32]:
    """Queries by the rarest of their terms: it is enough to look for a query where that is."""
    count = len(starts) - 1
    query = np.repeat(np.arange(count), np.diff(starts))
    order = np.lexsort((members, seen_in[members], query))
    key = members[order][starts[:-1]]
    by_key = np.argsort(key, kind="stable").astype(np.int32)
    return np.searchsorted(key[by_key], np.arange(len(seen_in) + 1)).astype(np.int64), by_key


def _order_slots(
    data: RefreshData, queries: QuerySet, of: I64, found: I32, pages: I32, at: I64, scores: FloatArray,
    answered: npt.NDArray[np.bool_],
) -> ScoredVersions:  # fmt: skip
    """Number the slots by query and page, without those of queries that had no result."""
    number = np.cumsum(answered) - 1
    kept = answered[found]
    if not kept.all():
        of, found, pages, at, scores = _drop_slots(of, found, kept, data.first, at, scores)
    query = number[found]
    order = np.argsort(query, kind="stable")
    slots = np.empty(len(found), dtype=np.int64)
    slots[order] = np.arange(len(found))
    sizes = np.bincount(query, minlength=int(answered.sum()))
    query_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ScoredVersions(data, queries.keep(answered), query_starts, pages[order], of, slots, at, scores)


def _drop_slots(
    of: I64, found: I32, kept: npt.NDArray[np.bool_], first: I64, at: I64, scores: FloatArray
) -> tuple[I64, I32, I32, I64, FloatArray]:
    sizes = np.diff(of)
    pages = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[kept]
    new_of = np.concatenate([[0], np.cumsum(np.bincount(pages, minlength=len(sizes)))]).astype(np.int64)
    versions = np.repeat(np.arange(len(sizes)), np.diff(first))
    new_at = np.concatenate([[0], np.cumsum(np.diff(new_of)[versions])]).astype(np.int64)[:-1]
    new_scores = np.empty(int(np.diff(new_of)[versions].sum()))
    _copy_scores(of, kept, first, at, scores, new_at, new_scores)
    return new_of, found[kept], pages, new_at, new_scores


@numba.njit(cache=True, nogil=True)
def _copy_scores(
    of: I64, kept: npt.NDArray[np.bool_], first: I64, at: I64, scores: FloatArray, new_at: I64, new_scores: FloatArray
) -> None:
    for page in range(len(of) - 1):
        for version in range(first[page], first[page + 1]):
            out = new_at[version]
            for k in range(of[page + 1] - of[page]):
                if kept[of[page] + k]:
                    new_scores[out] = scores[at[version] + k]
                    out += 1


@numba.njit(cache=True, nogil=True)
def _count_terms(starts: I64, tokens: I32, lookup: I32, size: int) -> tuple[I64, I32, I32]:
    """Distinct terms of the vocabulary by version, and how often each is there."""
    versions = len(starts) - 1
    out_starts = np.zeros(versions + 1, dtype=np.int64)
    last = np.full(size, -1, dtype=np.int64)
    for version in range(versions):
        distinct = 0
        for place in range(starts[version], starts[version + 1]):
            term = lookup[tokens[place]]
            if term >= 0 and last[term] != version:
                last[term] = version
                distinct += 1
        out_starts[version + 1] = out_starts[version] + distinct
    terms = np.empty(out_starts[versions], dtype=np.int32)
    counts = np.zeros(out_starts[versions], dtype=np.int32)
    last[:] = -1
    where = np.zeros(size, dtype=np.int64)
    for version in range(versions):
        out = out_starts[version]
        for place in range(starts[version], starts[version + 1]):
            term = lookup[tokens[place]]
            if term < 0:
                continue
            if last[term] != version:
                last[term] = version
                where[term] = out
                terms[out] = term
                out += 1
            counts[where[term]] += 1
    return out_starts, terms, counts


@numba.njit(cache=True, nogil=True)
def _match_versions(
    starts: I64, terms: I32, counts: I32, first: I64, lengths: I64, keyed_starts: I64, keyed: I32,
    query_starts: I64, members: I32, idf: FloatArray, norms: FloatArray, static: FloatArray,
) -> tuple[I64, I32, I64, FloatArray, npt.NDArray[np.bool_]]:  # fmt: skip
    """The queries that some version of each page answers, ascending, the scores of each version there, and which
    queries have a result at week 0.

    Two rounds: the first finds out how much there is.
    """
    pages = len(first) - 1
    of = np.zeros(pages + 1, dtype=np.int64)
    at = np.zeros(len(starts) - 1, dtype=np.int64)
    stamp = np.full(len(idf), -1, dtype=np.int64)
    count_of = np.zeros(len(idf), dtype=np.int32)
    last_page = np.full(len(norms), -1, dtype=np.int64)
    found = np.empty(1024, dtype=np.int32)
    size = 0
    total = 0
    for page in range(pages):
        begin = size
        for version in range(first[page], first[page + 1]):
            for place in range(starts[version], starts[version + 1]):
                stamp[terms[place]] = version
            for place in range(starts[version], starts[version + 1]):
                term = terms[place]
                for key in range(keyed_starts[term], keyed_starts[term + 1]):
                    query = keyed[key]
                    if last_page[query] == page:
                        continue
                    whole = True
                    for member in range(query_starts[query], query_starts[query + 1]):
                        if stamp[members[member]] != version:
                            whole = False
                            break
                    if whole:
                        last_page[query] = page
                        if size == len(found):
                            wider = np.empty(2 * size, dtype=np.int32)
                            wider[:size] = found
                            found = wider
                        found[size] = query
                        size += 1
        found[begin:size].sort()
        of[page + 1] = size
        for version in range(first[page], first[page + 1]):
            at[version] = total
            total += size - begin
    scores = np.zeros(total)
    answered = np.zeros(len(norms), dtype=np.bool_)
    stamp[:] = -1
    for page in range(pages):
        for version in range(first[page], first[page + 1]):
            for place in range(starts[version], starts[version + 1]):
                stamp[terms[place]] = version
                count_of[terms[place]] = counts[place]
            for k in range(of[page + 1] - of[page]):
                query = found[of[page] + k]
                value = 0.0
                for member in range(query_starts[query], query_starts[query + 1]):
                    term = members[member]
                    if stamp[term] != version:
                        value = -1.0
                        break
                    # one root of tf/len, not two: pages that tie by the formula tie in floating point
                    value += np.sqrt(count_of[term] / lengths[version]) * idf[term] ** 2
                if value < 0.0:
                    continue
                if version == first[page]:
                    answered[query] = True
                if len(static):
                    scores[at[version] + k] = static[page]
                else:
                    scores[at[version] + k] = norms[query] * value
    return of, found[:size].copy(), at, scores, answered


@numba.njit(cache=True, nogil=True)
def _put_versions(
    versions: I64, page_of: I32, of: I64, slots: I64, at: I64, scores: FloatArray, values: FloatArray
) -> None:
    """Write the scores of these versions into their slots."""
    for version in versions:
        page = page_of[version]
        for k in range(of[page + 1] - of[page]):
            values[slots[of[page] + k]] = scores[at[version] + k]
