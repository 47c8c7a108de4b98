"""BM25 over texts in memory, AND over the query's terms: what an experiment takes for the search engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.sketches import CrawledScores

K1 = 1.2
B = 0.75
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each term is in each text: term t is in `pages[starts[t]:starts[t + 1]]`, ascending, `counts` times."""

    terms: dict[str, int]
    starts: IntArray
    pages: U32
    counts: FloatArray
    lengths: FloatArray  # by text, in words


def count_terms(texts: Iterable[Sequence[str]]) -> TermCounts:
    """From the words of each text."""
    terms: dict[str, int] = {}
    numbers, counts, distinct, lengths = list[int](), list[int](), list[int](), list[int]()
    for text in texts:
        found = Counter(text)
        numbers.extend([terms.setdefault(word, len(terms)) for word in found])
        counts.extend(found.values())
        distinct.append(len(found))
        lengths.append(len(text))
    owners = np.repeat(np.arange(len(distinct), dtype=np.uint32), np.array(distinct, dtype=np.int64))
    number = np.array(numbers, dtype=np.int64)
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(terms)))]).astype(np.int64)
    return TermCounts(
        terms, starts, owners[order], np.array(counts, dtype=np.float64)[order], np.array(lengths, dtype=np.float64)
    )


@dataclass(frozen=True, slots=True)
class Engine:
    """A search engine over some of the texts, with the statistics of those."""

    counts: TermCounts
    inside: npt.NDArray[np.bool_]  # the texts it holds
    weight: FloatArray  # inverse document frequency, by term
    impact: FloatArray  # of each posting: what it adds to a score; 0 outside

    def search(self, starts: IntArray, members: IntArray) -> CrawledScores:
        """All results of queries given as CSR of term numbers (-1: a term no text has), best first, ties by number."""
        out_starts, pages, scores = _search(
            starts, members, self.counts.starts, self.counts.pages, self.impact, len(self.inside)
        )
        return CrawledScores(out_starts, pages, scores, np.ones(len(starts) - 1, dtype=np.bool_))


def make_engine(counts: TermCounts, inside: npt.NDArray[np.bool_]) -> Engine:
    """BM25 with k1 = 1.2, b = 0.75 and idf = ln(1 + (N - n + 0.5)/(n + 0.5)), over the texts that are inside."""
    held = inside[counts.pages]
    owners = np.repeat(np.arange(len(counts.terms)), np.diff(counts.starts))
    documents = int(np.count_nonzero(inside))
    holding = np.bincount(owners[held], minlength=len(counts.terms))
    weight = np.log1p((documents - holding + 0.5) / (holding + 0.5))
    average = float(counts.lengths[inside].mean()) if documents else 1.0
    room = K1 * (1 - B + B * counts.lengths / average)
    share = counts.counts * (K1 + 1) / (counts.counts + room[counts.pages])
    return Engine(counts, inside, weight, np.where(held, weight[owners] * share, 0.0))


def _search_all(
    starts: IntArray, members: IntArray, term_starts: IntArray, pages: U32, impact: FloatArray, count: int
) -> tuple[IntArray, U32, FloatArray]:
    total = np.zeros(count)
    found = np.zeros(count, np.int64)
    out_starts = np.zeros(len(starts), np.int64)
    out_pages = np.empty(1024, np.uint32)
    out_scores = np.empty(1024)
    at = 0
    for query in range(len(starts) - 1):
        asked = members[starts[query] : starts[query + 1]]
        rarest, size = -1, count + 1
        for term in asked:
            length = term_starts[term + 1] - term_starts[term] if term >= 0 else 0
            if length < size:
                rarest, size = term, length
        if size > 0 and rarest >= 0:
            for term in asked:
                for i in range(term_starts[term], term_starts[term + 1]):
                    if impact[i] > 0:
                        total[pages[i]] += impact[i]
                        found[pages[i]] += 1
            if at + size > len(out_pages):
                grown = max(2 * len(out_pages), at + size)
                new_pages = np.empty(grown, np.uint32)
                new_scores = np.empty(grown)
                new_pages[:at] = out_pages[:at]
                new_scores[:at] = out_scores[:at]
                out_pages, out_scores = new_pages, new_scores
            for i in range(term_starts[rarest], term_starts[rarest + 1]):
                if found[pages[i]] == len(asked):
                    out_pages[at] = pages[i]
                    out_scores[at] = total[pages[i]]
                    at += 1
            for term in asked:
                for i in range(term_starts[term], term_starts[term + 1]):
                    total[pages[i]] = 0.0
                    found[pages[i]] = 0
            first = out_starts[query]
            order = np.argsort(-out_scores[first:at], kind="mergesort")  # pages are ascending: ties by number
            out_pages[first:at] = out_pages[first:at][order]
            out_scores[first:at] = out_scores[first:at][order]
        out_starts[query + 1] = at
    return out_starts, out_pages[:at].copy(), out_scores[:at].copy()


_search = numba.njit(cache=True, nogil=True)(_search_all)
