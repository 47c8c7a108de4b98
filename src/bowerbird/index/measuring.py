"""What replacing a page changes in the index: the words of the workload whose score for it changed, before and after.

Both versions are scored with the same statistics. The old one is known by its forward record, so that nothing has to
be read back from the index or the archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bowerbird.index.forward import ForwardRecords
from bowerbird.index.forward_kernels import (
    BM25,
    ENTRY_BYTES,
    F64,
    FIELDS,
    HEAD_BYTES,
    STATIC,
    TF_IDF,
    U32,
    fill_marks,
    score_both,
    write_records,
)
from bowerbird.index.protocol import Document
from bowerbird.index.scoring import Statistics, field_frequencies, inverse_frequency
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.index.word_counts import Vocabulary, WordCounts
from bowerbird.index.word_kernels import I32, I64


@dataclass(frozen=True, slots=True)
class WordScoring:
    """How a page scores for a word. `inverse` is by field and word, `static` by page."""

    kind: int
    weights: F64
    inverse: F64
    average: F64
    static: F64

    def reorder(self, order: I64) -> WordScoring:
        """The same for words in another order."""
        return self if self.kind == STATIC else replace(self, inverse=np.ascontiguousarray(self.inverse[:, order]))

    @classmethod
    def bm25(cls, statistics: Statistics, words: Sequence[str]) -> WordScoring:
        """As the engine scores: BM25 in each field, added up by weight."""
        documents = statistics.document_count()
        holding = np.minimum(field_frequencies(statistics, words, FIELD_WEIGHTS), documents)
        average = np.array([statistics.average_length(name) for name in FIELD_WEIGHTS])
        return cls(
            BM25, np.array(list(FIELD_WEIGHTS.values())), inverse_frequency(documents, holding), average, np.zeros(0)
        )

    @classmethod
    def tf_idf(cls, holding: npt.ArrayLike, documents: int) -> WordScoring:
        """Lucene's classic sqrt(tf)·idf²/sqrt(len), idf = 1 + ln(N/(df + 1)), over all fields as one text."""
        inverse = 1.0 + np.log(documents / (np.asarray(holding, dtype=np.float64) + 1.0))
        return cls(TF_IDF, np.ones(FIELDS), inverse[None, :], np.ones(FIELDS), np.zeros(0))

    @classmethod
    def of_pages(cls, values: npt.ArrayLike) -> WordScoring:
        """A page's own value (in-links, PageRank), whatever the word, where it has the word."""
        return cls(STATIC, np.ones(FIELDS), np.ones((1, 1)), np.ones(FIELDS), np.asarray(values, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class PostingChanges:
    """Pages that were replaced or removed, and the words of the vocabulary that either version has.

    Page `pages[i]` has `words[starts[i]:starts[i + 1]]` with their scores before and after; 0: it lacks the word, NaN:
    it is not known. `generations`: of the records of the versions before, -1 where there was none.
    """

    pages: I64
    generations: I64
    starts: I64
    words: I32
    old: F64
    new: F64

    def count_moved(self) -> I64:
        """By page, how many words changed."""
        changed = (self.old != self.new) & ~np.isnan(self.old)
        totals = np.concatenate([[0], np.cumsum(changed)])
        counts: I64 = totals[self.starts[1:]] - totals[self.starts[:-1]]
        return counts


@dataclass(frozen=True)
class PageRecorder:
    """Keeps forward records of pages by a vocabulary, and tells what changes of them do."""

    vocabulary: Vocabulary
    scoring: WordScoring
    records: ForwardRecords
    marks: U32 = field(repr=False)  # of the words, as records have them
    since: I64 = field(init=False, repr=False)
    _table: I64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        since = self.records.enter(self.marks)
        table = np.full(1 << max(2 * len(self.marks), 16).bit_length(), -1, dtype=np.int64)
        fill_marks(self.marks, since, table)
        object.__setattr__(self, "since", since)
        object.__setattr__(self, "_table", table)

    def take(
        self, pages: Sequence[int], documents: Sequence[Document | None], refreshed: Sequence[bool]
    ) -> PostingChanges:
        """New versions of distinct pages, None where one is removed; what the `refreshed` ones change.

        Records are made of all, and written with the records' next commit.
        """
        counted = self.vocabulary.count(
            [
                text
                for document in documents
                for text in (
                    ("", "", "", "")
                    if document is None
                    else (document.title, document.anchors, document.url_words, document.text)
                )
            ]
        )
        chosen = np.flatnonzero(refreshed)
        changes = self._compare(chosen, pages, documents, counted)
        self._keep(pages, documents, counted)
        return changes

    def _compare(
        self, chosen: I64, pages: Sequence[int], documents: Sequence[Document | None], counted: WordCounts
    ) -> PostingChanges:
        numbers = np.array([pages[place] for place in chosen.tolist()], dtype=np.int64)
        data, ends, known = self.records.read(numbers.tolist())
        texts = (FIELDS * chosen[:, None] + np.arange(FIELDS)).ravel()
        static = self.scoring.static
        present = np.array([documents[place] is not None for place in chosen.tolist()], dtype=np.bool_)
        starts, words, old, new = score_both(
            *_rows(counted, texts), present, data, ends, known, self._table, self.since,
            self.scoring.kind, self.scoring.weights, self.scoring.inverse, self.scoring.average,
            static[numbers] if len(static) else static,
        )  # fmt: skip
        return PostingChanges(numbers, known, starts, words, old, new)

    def _keep(self, pages: Sequence[int], documents: Sequence[Document | None], counted: WordCounts) -> None:
        self.records.forget(page for page, document in zip(pages, documents, strict=True) if document is None)
        present = np.flatnonzero([document is not None for document in documents])
        texts = (FIELDS * present[:, None] + np.arange(FIELDS)).ravel()
        starts, words, counts, lengths = _rows(counted, texts)
        data = np.empty(HEAD_BYTES * len(present) + ENTRY_BYTES * len(words), dtype=np.uint8)
        ends = write_records(starts, words, counts, lengths, self.marks, self.since, data)
        self.records.put([pages[place] for place in present.tolist()], data.tobytes(), ends)


def _rows(counted: WordCounts, texts: I64) -> tuple[I64, I32, I32, I64]:
    """Counts of some texts, in their order."""
    if len(texts) == len(counted):
        return counted.starts, counted.words, counted.counts, counted.lengths
    sizes = np.diff(counted.starts)
    chosen = np.zeros(len(counted), dtype=np.bool_)
    chosen[texts] = True
    kept = np.repeat(chosen, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[texts])]).astype(np.int64)
    return starts, counted.words[kept], counted.counts[kept], counted.lengths[texts]
