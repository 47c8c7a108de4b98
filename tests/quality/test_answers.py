"""What an answer is worth: nearly the sum over all its ranks, at the cost of the known ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.demand.visibility import Fitted, KStep, PowerLaw
from bowerbird.index.measuring import WordScoring
from bowerbird.model.workload import make_workload
from bowerbird.quality.answers import FloatArray, LocalAnswers, Visibility, rank_grid, view_table
from bowerbird.quality.curves import sample_ranks
from bowerbird.quality.gain import tabulate_views
from bowerbird.quality.measured_gains import make_basis

VISIBILITIES = [
    PowerLaw(), PowerLaw(0.8), PowerLaw(1.0), PowerLaw(2.5), KStep(10), KStep(1000),
    Fitted(np.array([1.0, 0.4, 0.4, 0.1, 0.05]), 1.2),
]  # fmt: skip


def sum_exactly(answers: LocalAnswers, views: FloatArray) -> list[float]:
    """One rank after another."""
    sums = []
    for query in range(len(answers)):
        ranks, scores = answers.points(query)
        whole = np.exp(np.interp(np.log(np.arange(1, answers.totals[query] + 1)), np.log(ranks), np.log(scores)))
        sums.append(float((whole * views[: len(whole)]).sum()))
    return sums


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(0.0, 0.2), min_size=1, max_size=400),
    st.floats(0.0, 3.0),
    st.integers(1, 60_000),
    st.sampled_from(["all", "grid", "few"]),
    st.sampled_from(VISIBILITIES),
)
def test_the_worth_of_an_answer_is_nearly_the_sum_over_its_ranks(
    falls: list[float], slope: float, total: int, known: str, visibility: Visibility
) -> None:
    count = len(falls)
    ranks = {"all": np.arange(1, count + 1), "grid": rank_grid(total), "few": sample_ranks(total)}[known][:count]
    scores = 20.0 * ranks**-slope * np.exp(-np.cumsum(falls[: len(ranks)]))
    answers = LocalAnswers.from_lists([scores, scores[:1]], [total, total], ranks)
    views = view_table(visibility, int(answers.totals.max()))
    exact = sum_exactly(answers, views)
    assert answers.values(*tabulate_views(visibility)).tolist() == pytest.approx(exact, rel=1e-3)
    assert answers.values(views).tolist() == pytest.approx(exact, rel=1e-3)


def test_known_ranks_count_exactly() -> None:
    answers = LocalAnswers.from_lists([[5.0, 5.0, 2.0], [], [7.0]])
    power = PowerLaw()
    wanted = [5 + 5 * 2**-1.5 + 2 * 3**-1.5, 0.0, 7.0]
    assert answers.values(view_table(power, 3)).tolist() == pytest.approx(wanted, rel=1e-12)
    assert answers.values(*tabulate_views(power)).tolist() == pytest.approx(wanted, rel=1e-12)


def test_a_basis_costs_no_more_where_answers_are_long() -> None:
    """With as many results as no table could hold: the sum of r^-2 is π²/6."""
    asked = make_workload(["ape", "bear"], [3.0, 1.0], str.split)
    scores = np.arange(1, 301) ** -0.5
    answers = LocalAnswers.from_lists([scores, scores], [10**12, 10**12])
    basis = make_basis(asked, answers, PowerLaw(), WordScoring.of_pages([0.0]), np.ones(2))
    assert basis.asked.best == pytest.approx(4 * np.pi**2 / 6, rel=1e-3)
