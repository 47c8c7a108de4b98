"""The workload: what searchers ask, as columns that appraisers, quality and the lab share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: a larger number is no count of clicks or searches; sums and squares of smaller ones stay exact enough, and finite
MOST_COUNT = 1e15


@dataclass(frozen=True, slots=True)
class Workload:
    """What searchers ask: queries with their frequencies, as sets of index terms.

    >>> w = make_workload(["red car", "car"], [3.0, 2.0], str.split)
    >>> w.terms, w.term_frequency().tolist()
    (('car', 'red'), [5.0, 3.0])
    """

    queries: tuple[str, ...]
    """Normalised text, most frequent first (ties: by text)."""
    frequency: NDArray[np.float64]
    """f(q), decayed to the time asked for."""
    terms: tuple[str, ...]
    """Vocabulary, sorted: words exactly as the index has them."""
    starts: NDArray[np.int64]
    """CSR: the terms of query i are `members[starts[i]:starts[i + 1]]`."""
    members: NDArray[np.uint32]
    """Distinct term numbers of each query, ascending."""
    mark_key: bytes = field(default=b"", repr=False, compare=False)
    """Seals marks of these queries that are written to disk; empty where nothing is."""

    def __len__(self) -> int:
        return len(self.queries)

    def terms_of(self, query: int) -> NDArray[np.uint32]:
        """Term numbers of one query."""
        return self.members[self.starts[query] : self.starts[query + 1]]

    def words_of(self, query: int) -> list[str]:
        """The words of one query."""
        return [self.terms[term] for term in self.terms_of(query).tolist()]

    def term_frequency(self) -> NDArray[np.float64]:
        """[UC05] The workload split into single-term queries: f(t) = sum of f(q) over the queries that have t."""
        each = np.repeat(self.frequency, np.diff(self.starts))
        return np.bincount(self.members, weights=each, minlength=len(self.terms)).astype(np.float64)


EMPTY = Workload((), np.zeros(0, dtype=np.float64), (), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32))


def make_workload(
    queries: Sequence[str], frequency: Iterable[float], words_of: Callable[[str], Sequence[str]]
) -> Workload:
    """A workload of distinct queries in any order; those without a word that could be indexed are left out."""
    rows: list[tuple[float, str, set[str]]] = []
    for text, weight in zip(queries, frequency, strict=True):
        words = set(words_of(text))
        if words:
            rows.append((-weight, text, words))
    if not rows:
        return EMPTY
    rows.sort(key=lambda row: row[:2])
    terms = sorted(set().union(*(words for _, _, words in rows)))
    number = {term: place for place, term in enumerate(terms)}
    lengths = np.fromiter((len(words) for _, _, words in rows), dtype=np.int64, count=len(rows))
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    members = np.fromiter(
        (place for _, _, words in rows for place in sorted(number[word] for word in words)),
        dtype=np.uint32,
        count=int(starts[-1]),
    )
    return Workload(
        queries=tuple(text for _, text, _ in rows),
        frequency=np.array([-negative for negative, _, _ in rows], dtype=np.float64),
        terms=tuple(terms),
        starts=starts,
        members=members,
    )
