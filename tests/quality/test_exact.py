"""Q and its terms against their definitions, page by page, on small random worlds."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bowerbird.quality.answers import LocalAnswers
from bowerbird.quality.exact import (
    answers_of,
    query_quality,
    query_values,
    repository_quality,
    repository_value,
    view_probability,
)
from bowerbird.quality.gain import refresh_gain

SHAPE = (3, 6)
scores = arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 7.25]))
frequencies = arrays(np.float64, SHAPE[:1], elements=st.floats(0, 10))
visibilities = st.sampled_from([lambda r: r**-1.5, lambda r: 1.0 / r, lambda r: (r <= 2).astype(float)])


def power(ranks: np.ndarray) -> np.ndarray:
    return ranks**-1.5


def rank_by_counting(row: np.ndarray, page: int) -> int:
    better = sum(other > row[page] for other in row)
    return 1 + better + sum(row[other] == row[page] for other in range(page))


def value_by_definition(f: np.ndarray, local: np.ndarray, live: np.ndarray, visibility: Callable) -> float:
    total = 0.0
    for q in range(len(f)):
        for p in range(local.shape[1]):
            if local[q, p] > 0:
                total += f[q] * float(visibility(np.array([rank_by_counting(local[q], p)]))[0]) * live[q, p]
    return total


@given(scores, scores, frequencies, visibilities)
def test_value_and_quality_follow_the_definition(
    local: np.ndarray, live: np.ndarray, f: np.ndarray, view: Callable
) -> None:
    expected = value_by_definition(f, local, live, view)
    best = value_by_definition(f, live, live, view)
    assert repository_value(f, local, live, view) == pytest.approx(expected)
    assert repository_value(f, sp.csr_matrix(local), sp.csr_matrix(live), view) == pytest.approx(expected)
    quality = repository_quality(f, local, live, view)
    assert quality == pytest.approx(expected / best if best > 0 else 1.0)
    assert 0 <= quality <= 1 + 1e-12


@given(scores, scores, visibilities)
def test_one_query_and_all_at_once_agree(local: np.ndarray, live: np.ndarray, view: Callable) -> None:
    alone = [query_quality(local[q], live[q], view) for q in range(len(local))]
    assert query_values(sp.csr_array(local), live, view) == pytest.approx(np.array(alone))
    assert alone[0] == pytest.approx(value_by_definition(np.ones(1), local[:1], live[:1], view))


@given(scores, visibilities)
def test_view_probability_is_that_of_the_rank(local: np.ndarray, view: Callable) -> None:
    row = local[0]
    pages = np.flatnonzero(row)
    expected = [float(view(np.array([rank_by_counting(row, p)]))[0]) for p in pages]
    assert view_probability(row[pages], view) == pytest.approx(np.array(expected))


def test_an_up_to_date_repository_has_quality_one_and_an_empty_one_none() -> None:
    live = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 2.0]])
    f = np.array([1.0, 4.0])
    assert repository_quality(f, live, live, power) == 1.0
    assert repository_quality(f, np.zeros_like(live), live, power) == 0.0
    assert repository_quality(f, live, np.zeros_like(live), power) == 1.0


def test_unsorted_rows_and_stored_zeros_change_nothing() -> None:
    tidy = np.array([[0.0, 2.0, 2.0, 1.0]])
    untidy = sp.csr_matrix((np.array([1.0, 2.0, 0.0, 2.0]), np.array([3, 2, 0, 1]), np.array([0, 4])), shape=(1, 4))
    live = np.array([[5.0, 3.0, 7.0, 1.0]])
    assert query_values(untidy, live, power) == pytest.approx(query_values(tidy, live, power))


@given(scores, st.integers(0, SHAPE[1] - 1), st.sampled_from([0.0, 0.7, 1.1, 3.3, 9.0]), visibilities)
def test_the_gain_is_the_difference_of_two_qualities(local: np.ndarray, page: int, new: float, view: Callable) -> None:
    """Only one page differs: what the answer is worth after its refresh, less what it was worth before."""
    row = local[0].copy()
    row[row > 0] += np.arange(SHAPE[1])[row > 0] * 1e-3  # no ties: they are for page numbers to break
    live = row.copy()
    live[page] = new
    others = np.sort(np.delete(row, page))[::-1]
    gain = float(refresh_gain(row[page], new, others[others > 0], view))
    assert gain == pytest.approx(query_quality(live, live, view) - query_quality(row, live, view), abs=1e-12)
    assert gain >= 0


@given(scores)
def test_answers_know_their_value_and_views(local: np.ndarray) -> None:
    answers = answers_of(local)
    views = power(np.arange(1.0, 20))
    assert answers.values(views) == pytest.approx(query_values(local, local, power))
    query, page = np.nonzero(local)
    seen = answers.views(query, local[query, page], views)
    for q in range(len(local)):
        # ties share their views, so the sum is right in any order
        assert seen[query == q].sum() == pytest.approx(views[: int((local[q] > 0).sum())].sum())


def test_a_list_known_at_some_ranks_only() -> None:
    ranks = np.array([1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
    whole = 10.0 * np.arange(1.0, 101) ** -0.4
    partly = LocalAnswers.from_lists([whole[ranks - 1]], totals=[100], ranks=ranks)
    views = power(np.arange(1.0, 200))
    assert partly.values(views)[0] == pytest.approx(float(views[:100] @ whole))
    grid = np.array([1, 4, 60, 100])
    assert partly.on_grid(grid)[0] == pytest.approx(whole[grid - 1])
    assert partly.views(np.array([0, 0, 0]), np.array([whole[3], whole[59], 0.0]), views) == pytest.approx(
        np.array([views[3], views[59], 0.0]), rel=0.02
    )


def test_ten_thousand_queries_are_quick() -> None:
    rng = np.random.default_rng(1)
    local = sp.random(10_000, 10_000, density=0.01, format="csr", random_state=rng)
    live = local.copy()
    live.data = live.data * rng.uniform(0.5, 1.5, len(live.data))
    start = time.process_time()
    quality = repository_quality(np.ones(10_000), local, live, power)
    assert 0.5 < quality < 1
    assert time.process_time() - start < 10
