"""The quality of a repository, exactly, for a given pair of live web and repository. Used by the lab.

Scores are queries × pages, dense or in compressed rows; 0 means that the page is not in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import FloatArray, IntArray, LocalAnswers, Visibility, view_table


@runtime_checkable
class SparseScores(Protocol):
    """Compressed rows as SciPy has them (`csr_matrix`, `csr_array`)."""

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    data: npt.NDArray[Any]
    shape: tuple[int, ...]


Scores = SparseScores | npt.NDArray[Any]


def answer_rows(scores: Scores) -> Iterator[tuple[IntArray, FloatArray]]:
    """For each query the pages of its answer, ascending, and their scores."""
    if not isinstance(scores, np.ndarray):
        for start, end in zip(scores.indptr[:-1].tolist(), scores.indptr[1:].tolist(), strict=True):
            pages, values = scores.indices[start:end], scores.data[start:end]
            if len(pages) > 1 and (pages[1:] < pages[:-1]).any():
                order = np.argsort(pages)
                pages, values = pages[order], values[order]
            kept = values > 0
            if not kept.all():
                pages, values = pages[kept], values[kept]
            yield pages, values
    else:
        for row in scores:
            pages = np.flatnonzero(row > 0)
            yield pages, row[pages]


def view_probability(scores: FloatArray, visibility: Visibility) -> FloatArray:
    """[UC05] eq. 1: I(R(p, A(q))), the probability that each page of an answer is viewed.

    Pages are ordered by number; equal scores rank in that order.

    >>> view_probability(np.array([2.0, 5.0, 2.0]), lambda r: 1.0 / r)
    array([0.5       , 1.        , 0.33333333])
    """
    order = np.argsort(-scores, kind="stable")
    seen = np.empty(len(scores))
    seen[order] = view_table(visibility, len(scores))
    return seen


def query_quality(local: FloatArray, live: FloatArray, visibility: Visibility) -> float:
    """[UC05] eq. 2: sum_p I(R(p, A(q, local)))·S(live p, q), for dense scores of all pages; 0: not in the answer."""
    pages = np.flatnonzero(local > 0)
    return float(view_probability(local[pages], visibility) @ live[pages])


def query_values(local: Scores, live: Scores, visibility: Visibility) -> FloatArray:
    """Eq. 2 for every query at once, for 10,000 queries × 10,000 pages in a second or two."""
    pages_in_all = int(local.shape[1])
    views = view_table(visibility, pages_in_all)
    truth = np.zeros(pages_in_all)
    values = []
    for (pages, scores), (live_pages, live_scores) in zip(answer_rows(local), answer_rows(live), strict=True):
        truth[live_pages] = live_scores
        order = np.argsort(-scores, kind="stable")
        values.append(float(truth[pages[order]] @ views[: len(pages)]))
        truth[live_pages] = 0.0
    return np.array(values, dtype=np.float64)


def repository_value(frequency: FloatArray, local: Scores, live: Scores, visibility: Visibility) -> float:
    """[UC05] eq. 3: sum_q f(q)·sum_p I(R(p, A(q, local)))·S(live p, q)."""
    return float(frequency @ query_values(local, live, visibility))


def repository_quality(frequency: FloatArray, local: Scores, live: Scores, visibility: Visibility) -> float:
    """[UC05] eq. 4: Q = V(local)/V(live), in 0…1; 1 where there is nothing to find."""
    best = repository_value(frequency, live, live, visibility)
    return repository_value(frequency, local, live, visibility) / best if best > 0 else 1.0


def answers_of(scores: Scores) -> LocalAnswers:
    """The whole answer lists, best first."""
    return LocalAnswers.from_lists([np.sort(values)[::-1] for _, values in answer_rows(scores)])
