"""What refreshes gain, in shares of the quality Q, from the postings that they change while they are indexed.

Two ways to split the demand: by queries as they are asked, whose score is the sum over their words; or, as [UC05] has
it, by single words, with frequencies added up. Either way a change of score becomes a gain through the curve F_q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.index.measuring import PostingChanges, WordScoring
from bowerbird.index.word_counts import Vocabulary
from bowerbird.model.study import mark_queries, seal_marks
from bowerbird.model.workload import Workload
from bowerbird.quality.answers import FloatArray, IntArray, LocalAnswers, Visibility
from bowerbird.quality.curves import CurveTable
from bowerbird.quality.gain import tabulate_views
from bowerbird.quality.gain_kernels import I32, gain_pages

TOP = 3


@dataclass(frozen=True, slots=True)
class AskedQueries:
    """Queries with their curves, in the order of their rarest words, and each with that word first.

    Those whose rarest word is w are `keyed[w]` to `keyed[w + 1] - 1`: a page that lacks it need not look at them.
    """

    number: I32  # as the workload has it
    starts: IntArray
    members: I32
    frequency: FloatArray
    rows: FloatArray
    keyed: IntArray
    views: FloatArray
    exponent: float
    best: float  # sum of f·I(r)·F⁻¹(r): what the answers are worth

    def known_share(self, since: IntArray, generation: int) -> float:
        """The share of the demand that a record of this generation can tell about: it knows all words of the query."""
        known = (since <= generation)[self.members]
        whole = float(self.frequency.sum())
        if not len(known) or whole <= 0:
            return 0.0
        return float(self.frequency[np.logical_and.reduceat(known, self.starts[:-1])].sum()) / whole


@dataclass(frozen=True, slots=True)
class PageGains:
    """By page: its gain as a share of Q, and the queries that gained most with their shares of it; -1 for none."""

    gain: FloatArray
    queries: I32
    shares: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GainBasis:
    """All that measuring needs; made anew now and then, for demand and answers change."""

    vocabulary: Vocabulary
    scoring: WordScoring
    asked: AskedQueries
    word_marks: npt.NDArray[np.uint32]  # sealed, of the vocabulary
    query_marks: npt.NDArray[np.uint64]  # sealed, of the queries


def split_workload(workload: Workload) -> tuple[IntArray, I32, FloatArray]:
    """The workload as single-word queries: (starts, members, frequencies)."""
    count = len(workload.terms)
    return (
        np.arange(count + 1, dtype=np.int64),
        np.arange(count, dtype=np.int32),
        workload.term_frequency(),
    )


def ask_queries(
    starts: IntArray,
    members: I32,
    frequency: FloatArray,
    answers: LocalAnswers,
    visibility: Visibility,
    holding: FloatArray,
) -> AskedQueries:
    """Queries with the curves of their answers; `holding`: how many pages have each word."""
    count, words = len(frequency), len(holding)
    query = np.repeat(np.arange(count), np.diff(starts))
    members = members[np.lexsort((members, holding[members], query))]
    key = members[starts[:-1]] if count else members
    order = np.argsort(key, kind="stable").astype(np.int32)
    sizes = np.diff(starts)[order]
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    taken = np.repeat(starts[:-1][order] - begins[:-1], sizes) + np.arange(begins[-1])
    views, exponent = tabulate_views(visibility)
    return AskedQueries(
        order,
        begins,
        members[taken],
        frequency[order],
        CurveTable.from_answers(answers).rows.astype(np.float64)[order],
        np.searchsorted(key[order], np.arange(words + 1)).astype(np.int64),
        views,
        exponent,
        float((frequency * answers.values(views, exponent)).sum()),
    )


def make_basis(
    workload: Workload,
    answers: LocalAnswers,
    visibility: Visibility,
    scoring: WordScoring,
    holding: FloatArray,
    *,
    by_words: bool = False,
) -> GainBasis:
    """A basis for a workload whose queries (`by_words`: whose words) the index answers so.

    `scoring` and `holding`, how many pages have it, are by word of the workload. The basis numbers the words that most
    pages have first: what is looked at most lies together in memory.
    """
    order = np.argsort(-holding, kind="stable")
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    vocabulary = Vocabulary([workload.terms[word] for word in order.tolist()])
    starts, members, frequency = split_workload(workload) if by_words else (
        workload.starts, workload.members.astype(np.int32), workload.frequency
    )  # fmt: skip
    texts: Sequence[str] = workload.terms if by_words else workload.queries
    marks = seal_marks(mark_queries(texts), workload.mark_key)
    asked = ask_queries(starts, number[members], frequency, answers, visibility, holding[order])
    return GainBasis(vocabulary, scoring.reorder(order), asked, vocabulary.marks(workload.mark_key), marks)


def measure_gains(asked: AskedQueries, changes: PostingChanges) -> PageGains:
    """[UC05] what each page's change gains: the sum over queries of f·(gain through F_q), by the best value of all."""
    pages = len(changes.pages)
    gains = np.zeros(pages)
    queries = np.full((pages, TOP), -1, dtype=np.int32)
    top = np.zeros((pages, TOP))
    if asked.best > 0:
        gain_pages(
            changes.starts, changes.words, changes.old, changes.new, asked.keyed, asked.starts, asked.members,
            asked.frequency, asked.rows, asked.views, asked.exponent, gains, queries, top,
        )  # fmt: skip
        queries = np.where(queries >= 0, asked.number[queries], queries)
        shares = top / np.maximum(gains, 1e-300)[:, None]
        return PageGains(gains / asked.best, queries, shares.astype(np.float32))
    return PageGains(gains, queries, top.astype(np.float32))
