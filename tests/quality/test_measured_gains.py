"""Gains from changed postings: the sum over queries of the closed form, by queries and by words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.demand.visibility import KStep, PowerLaw
from bowerbird.index.measuring import PostingChanges, WordScoring
from bowerbird.model.study import mark_queries, seal_marks
from bowerbird.model.workload import Workload, make_workload
from bowerbird.quality.answers import LocalAnswers, Visibility, view_table
from bowerbird.quality.gain import refresh_gain, tabulate_views
from bowerbird.quality.gain_kernels import curve_gain_of
from bowerbird.quality.measured_gains import TOP, GainBasis, make_basis, measure_gains

WORDS = ["ape", "bear", "cat", "dog", "eel"]
QUERIES = [" ".join(words) for words in (["ape"], ["ape", "bear"], ["cat", "dog", "eel"], ["bear", "eel"], ["dog"])]
SCORING = WordScoring.of_pages([0.0])
score = st.just(0.0) | st.floats(0.1, 9.0)
answers = st.lists(st.lists(st.floats(0.1, 9.0), max_size=30), min_size=len(QUERIES), max_size=len(QUERIES))
rows = st.lists(st.lists(st.tuples(score, score), min_size=5, max_size=5), min_size=1, max_size=4)


def workload(frequency: list[float] | None = None) -> Workload:
    return make_workload(QUERIES, frequency or [1.0, 2.0, 3.0, 4.0, 5.0], str.split)


def basis_of(lists: list[list[float]], visibility: Visibility, *, by_words: bool = False) -> GainBasis:
    asked = LocalAnswers.from_lists([sorted(each, reverse=True) for each in lists])
    return make_basis(workload(), asked, visibility, SCORING, np.array([9.0, 3, 5, 5, 1]), by_words=by_words)


def changes_of(basis: GainBasis, pages: list[list[tuple[float, float]]]) -> PostingChanges:
    """Page i with all words, in the order of the workload."""
    numbers = np.array([basis.vocabulary.words.index(word) for word in WORDS], dtype=np.int32)
    count, size = len(pages), len(WORDS)
    flat = np.array(pages, dtype=np.float64).reshape(-1, 2)
    return PostingChanges(
        np.arange(count) + 10, np.ones(count, dtype=np.int64), np.arange(count + 1) * size,
        np.tile(numbers, count), flat[:, 0].copy(), flat[:, 1].copy(),
    )  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(answers, rows, st.sampled_from([PowerLaw(), KStep(3)]), st.booleans())
def test_gains_are_the_sum_over_the_queries_a_page_answers(
    lists: list[list[float]], pages: list[list[tuple[float, float]]], visibility: Visibility, by_words: bool
) -> None:
    basis = basis_of(lists, visibility, by_words=by_words)
    changes = changes_of(basis, pages)
    found = measure_gains(basis.asked, changes)
    asked, split = workload(), workload().term_frequency()
    views = tabulate_views(visibility)
    sums = np.array([view_table(visibility, max(len(each), 1))[: len(each)] @ sorted(each)[::-1] for each in lists])
    frequency = split if by_words else asked.frequency
    assert basis.asked.best == pytest.approx(float(frequency @ sums))
    for place, page in enumerate(pages):
        each = []
        for query in range(len(QUERIES)):
            words = [query] if by_words else asked.terms_of(query).tolist()
            before, after = ([page[word][side] for word in words] for side in (0, 1))
            old, new = (sum(values) if min(values) > 0 else 0.0 for values in (before, after))
            row = basis.asked.rows[basis.asked.number.tolist().index(query)]
            each.append(float(frequency[query]) * curve_gain_of(row, old, new, *views) if old != new else 0.0)
        best = basis.asked.best
        assert found.gain[place] == pytest.approx(sum(each) / best if best > 0 else 0.0)
        if best > 0 and sum(each) > 0:
            top = sorted((gain for gain in each if gain > 0), reverse=True)[:TOP]
            named = found.queries[place][found.queries[place] >= 0]
            assert [each[query] for query in named] == pytest.approx(top)
            assert found.shares[place][: len(top)] == pytest.approx(np.array(top) / sum(each), rel=1e-5)


def test_a_long_known_answer_gives_nearly_the_exact_gain() -> None:
    """Where the answer is straight, as eq. 5 has it."""
    lists = [[10.0 * rank**-0.5 for rank in range(1, 41)] for _ in QUERIES]
    basis = basis_of(lists, PowerLaw())
    page = [(0.0, 0.0)] * 5
    page[0] = (2.0, 9.0)  # "ape" alone
    found = measure_gains(basis.asked, changes_of(basis, [page]))
    others = np.array([level for level in lists[0] if abs(level - 2.0) > 1e-9])
    exact = float(refresh_gain(2.0, 9.0, others, PowerLaw())) * workload().frequency[workload().queries.index("ape")]
    assert found.gain[0] * basis.asked.best == pytest.approx(exact, rel=0.05)
    assert [basis.query_marks[query] for query in found.queries[0] if query >= 0] == mark_queries(["ape"]).tolist()


def test_a_query_with_a_word_that_is_not_known_does_not_count() -> None:
    basis = basis_of([[3.0, 2.0, 1.0]] * 5, PowerLaw())
    page = [(np.nan, 5.0), (1.0, 5.0), (0.0, 0.0), (0.0, 5.0), (0.0, 0.0)]
    found = measure_gains(basis.asked, changes_of(basis, [page]))
    named = [workload().queries[query] for query in found.queries[0] if query >= 0]
    assert named == ["dog"]
    share = basis.asked.known_share(np.array([2 if word == "ape" else 1 for word in basis.vocabulary.words]), 1)
    frequency = dict(zip(workload().queries, workload().frequency.tolist(), strict=True))
    assert share == pytest.approx(1 - (frequency["ape"] + frequency["ape bear"]) / sum(frequency.values()))
    assert basis.asked.known_share(np.ones(5, dtype=np.int64), 1) == 1.0


def test_marks_are_sealed_and_a_workload_without_answers_measures_nothing() -> None:
    sealed = make_workload(QUERIES, [1.0] * 5, str.split)
    sealed = Workload(*(getattr(sealed, name) for name in ("queries", "frequency", "terms", "starts", "members")), b"k")
    empty = LocalAnswers.from_lists([[]] * 5)
    basis = make_basis(sealed, empty, PowerLaw(), SCORING, np.ones(5))
    assert np.array_equal(basis.query_marks, seal_marks(mark_queries(sealed.queries), b"k"))
    assert not np.array_equal(basis.query_marks, mark_queries(sealed.queries))
    found = measure_gains(basis.asked, changes_of(basis, [[(0.0, 5.0)] * 5]))
    assert basis.asked.best == 0.0
    assert found.gain.tolist() == [0.0]
