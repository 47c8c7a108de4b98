"""Which unseen pages seem to be about a query? An index over the n-grams of their URLs and of the links to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from bowerbird.appraise.frontier.ngram_kernels import hash_grams, match_queries, merge_postings, sort_postings
from bowerbird.index.analysis import tokenize
from bowerbird.model.page_words import PageWords
from bowerbird.model.workload import Workload

LONGEST = 3  # g of [SI08]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]

_DELTA_SHARE = 8  # the delta joins the base when it has grown to this part of it


def hash_words(words: Sequence[str]) -> U64:
    """A 64-bit number per word, the same in every process."""
    return np.fromiter((xxhash.xxh3_64_intdigest(word.encode()) for word in words), dtype=np.uint64, count=len(words))


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Queries as word sequences, in reading order; word i of query q is `vocabulary[words[starts[q] + i]]`."""

    vocabulary: tuple[str, ...]
    starts: IntArray
    words: U32

    def __len__(self) -> int:
        return len(self.starts) - 1

    def numbered_as(self, vocabulary: Sequence[str]) -> IntArray:
        """The words by their number in another vocabulary, -1 where it lacks one."""
        number = {word: place for place, word in enumerate(vocabulary)}
        mapped = np.fromiter((number.get(word, -1) for word in self.vocabulary), np.int64, len(self.vocabulary))
        return mapped[self.words] if len(mapped) else np.empty(0, np.int64)


def order_words(workload: Workload, words_of: Callable[[str], Sequence[str]] = tokenize) -> QueryWords:
    """The words of each query as it was typed, those that are no term of the workload (stop words, say) left out.

    >>> from bowerbird.model.workload import make_workload
    >>> queries = order_words(make_workload(["the red car"], [1.0], lambda text: text.split()[1:]))
    >>> [queries.vocabulary[word] for word in queries.words]
    ['red', 'car']
    """
    number = {term: place for place, term in enumerate(workload.terms)}
    starts = np.zeros(len(workload) + 1, dtype=np.int64)
    words: list[int] = []
    for query, text in enumerate(workload.queries):
        members = workload.terms_of(query).tolist()
        kept = set(members)
        ordered = [place for word in words_of(text) if (place := number.get(word)) is not None and place in kept]
        words.extend(ordered if len(kept.difference(ordered)) == 0 else members)
        starts[query + 1] = len(words)
    return QueryWords(workload.terms, starts, np.array(words, dtype=np.uint32))


@dataclass(frozen=True, slots=True)
class QueryGrams:
    """The n-grams that a page is asked for, per query, and how many of them it must have."""

    starts: IntArray
    grams: U64
    need: IntArray

    def __len__(self) -> int:
        return len(self.need)

    def take(self, queries: IntArray) -> QueryGrams:
        """Those of some queries, in this order."""
        lengths = np.diff(self.starts)[queries]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(self.starts[queries] - starts[:-1], lengths)
        return QueryGrams(starts, self.grams[places], self.need[queries])


def query_grams(queries: QueryWords, *, rho: float = 1.0, longest: int = LONGEST) -> QueryGrams:
    """[SI08] match: p ~ q when at least rho of q's word n-grams (n <= g) are among the n-grams of p.

    With rho = 1 the longest n-grams are enough to ask for: a page that has one has its parts.
    """
    if not 0.0 < rho <= 1.0:
        raise ValueError(f"rho is a share of the n-grams, above 0 and at most 1, not {rho}")
    rows = np.arange(len(queries), dtype=np.int64)
    shortest = np.minimum(np.diff(queries.starts), longest) if rho == 1.0 else np.ones(len(queries), dtype=np.int64)
    grams, owners, _ = hash_grams(
        queries.starts, queries.words, hash_words(queries.vocabulary), rows, shortest, longest
    )
    order = np.lexsort((grams, owners))
    grams, owners = grams[order], owners[order]
    first = np.ones(len(grams), dtype=np.bool_)
    first[1:] = (grams[1:] != grams[:-1]) | (owners[1:] != owners[:-1])
    lengths = np.bincount(owners[first], minlength=len(queries))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    need = np.maximum(np.ceil(rho * lengths - 1e-9), 1)  # rho·m may come out a hair above a whole number
    return QueryGrams(starts, grams[first], need.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Matches:
    """Pages per query, ascending: those of query q are `pages[starts[q]:starts[q + 1]]`."""

    starts: IntArray
    pages: U32

    def of_query(self, query: int) -> U32:
        """The pages that match a query."""
        return self.pages[self.starts[query] : self.starts[query + 1]]

    def queries(self) -> IntArray:
        """The query of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int64), np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class Postings:
    """(n-gram, page) pairs, sorted, each once."""

    grams: U64
    pages: U32

    def __len__(self) -> int:
        return len(self.grams)

    def merged(self, other: Postings) -> Postings:
        """All pairs of both."""
        if not len(self) or not len(other):
            return self if len(self) else other
        return Postings(*merge_postings(self.grams, self.pages, other.grams, other.pages))

    def spans(self, grams: U64) -> tuple[IntArray, IntArray]:
        """Where the pages of each gram begin and end."""
        low = np.searchsorted(self.grams, grams, side="left")
        return low.astype(np.int64), np.searchsorted(self.grams, grams, side="right").astype(np.int64)


def post(words: PageWords, rows: IntArray | None = None, *, longest: int = LONGEST) -> Postings:
    """The n-grams (n <= g) of pages' words; none reaches across a break."""
    members = np.arange(len(words), dtype=np.int64) if rows is None else np.unique(rows).astype(np.int64)
    grams, pages, _ = hash_grams(
        words.starts, words.words, hash_words(words.vocabulary), members, np.ones(len(members), dtype=np.int64), longest
    )
    return Postings(*sort_postings(grams, pages))


_NO_POSTINGS = Postings(np.empty(0, np.uint64), np.empty(0, np.uint32))


class NgramIndex:
    """The index over frontier n-grams that needy queries probe ([SI08]): a large base and a small delta.

    New pages and new anchors go to the delta; when that has grown to an eighth of the base the two are merged, so
    a cycle never sorts more than what is new.

    >>> from bowerbird.model.page_words import make_page_words
    >>> from bowerbird.model.workload import make_workload
    >>> index = NgramIndex(post(make_page_words([[["red", "car"]], [["car"], ["red"]]])))
    >>> workload = make_workload(["red car"], [1.0], str.split)
    >>> index.match(query_grams(order_words(workload)), np.array([True, True])).pages.tolist()
    [0]
    """

    def __init__(self, base: Postings = _NO_POSTINGS) -> None:
        self._base = base
        self._delta = _NO_POSTINGS

    def __len__(self) -> int:
        return len(self._base) + len(self._delta)

    def add(self, postings: Postings) -> None:
        """Take in the n-grams of new pages, or all n-grams of pages that have new anchors."""
        self._delta = self._delta.merged(postings)
        if len(self._delta) * _DELTA_SHARE > len(self._base):
            self._base = self._base.merged(self._delta)
            self._delta = _NO_POSTINGS

    def match(self, queries: QueryGrams, open_: BoolArray) -> Matches:
        """p ~ q for all of these queries, over the pages where `open_` (those not crawled, usually)."""
        low, high = self._base.spans(queries.grams)
        new_low, new_high = self._delta.spans(queries.grams)
        pages, new_pages = self._base.pages, self._delta.pages
        return Matches(
            *match_queries(queries.starts, queries.need, low, high, pages, new_low, new_high, new_pages, open_)
        )
