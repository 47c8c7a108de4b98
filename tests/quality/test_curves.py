"""Score-rank curves: always falling, always invertible, near the true ranks, 20 bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quality.topical_world import make_world

from bowerbird.quality.curves import CurveTable, ScoreRankCurve, curve_error, sample_ranks
from bowerbird.quality.exact import answers_of

score_lists = st.lists(st.floats(1e-6, 1e6), max_size=60).map(lambda values: np.sort(values)[::-1])


@given(score_lists, st.integers(0, 5000))
def test_a_curve_falls_strictly_and_has_an_inverse(scores: np.ndarray, more: int) -> None:
    total = len(scores) + more if len(scores) else 0
    curve = ScoreRankCurve.fit(np.arange(1, len(scores) + 1), scores, total)
    assert curve.total == total
    assert curve.row.nbytes == 20
    if not total:
        assert float(curve.rank(3.0)) == 1.0
        assert float(curve.score(1)) == 0.0
        return
    ranks = np.unique(np.geomspace(1, total, 40))
    levels = curve.score(ranks)
    assert (np.diff(levels) < 0).all()
    assert curve.rank(levels) == pytest.approx(ranks, rel=1e-6)
    assert float(curve.rank(0.0)) == pytest.approx(total + 1)
    assert float(curve.rank(1e29)) == 1.0


@pytest.mark.parametrize("scores", [[4.0], [4.0, 4.0], [4.0, 1.0], [3.0] * 50])
def test_short_lists_and_equal_scores(scores: list[float]) -> None:
    curve = ScoreRankCurve.fit(np.arange(1, len(scores) + 1), scores)
    assert float(curve.score(1)) == pytest.approx(scores[0], rel=0.01)
    assert float(curve.score(len(scores))) == pytest.approx(scores[-1], rel=0.01)
    assert 1 <= float(curve.rank(scores[0] * 0.999)) <= len(scores) + 1


def test_a_list_of_three_straight_pieces_is_met_exactly() -> None:
    total = 1000
    ends = np.log([9.0, 5.0, 4.0, 0.5])
    ranks = sample_ranks(total)
    scores = np.exp(np.interp(np.log(ranks), np.log(total) * np.arange(4) / 3, ends))
    curve = ScoreRankCurve.fit(ranks, scores, total)
    assert curve.score(ranks) == pytest.approx(scores, rel=1e-3)
    assert curve.rank(scores) == pytest.approx(ranks.astype(float), rel=1e-2)


def test_sampled_ranks() -> None:
    assert sample_ranks(0).tolist() == []
    assert sample_ranks(1).tolist() == [1]
    assert sample_ranks(2).tolist() == [1, 2]
    assert sample_ranks(20).tolist() == [1, 2, 3, 5, 8, 13, 20]


def test_curves_of_a_world_are_near_its_true_ranks() -> None:
    world = make_world(3)
    answers = answers_of(world.local)
    whole = CurveTable.from_answers(answers)
    assert whole.rows.nbytes == 20 * len(answers)
    sampled = CurveTable.fit(
        [
            (sample_ranks(int(total)), scores[sample_ranks(int(total)) - 1])
            for total, (_, scores) in zip(answers.totals, map(answers.points, range(len(answers))), strict=True)
        ],
        answers.totals,
    )
    query = np.repeat(np.arange(len(answers)), answers.totals)
    top = answers.ranks <= 10
    for table in (whole, sampled):
        error = curve_error(table, query, answers.scores, answers.ranks)
        assert error.points == int(answers.totals.sum())
        assert 0 < error.mean < 0.45
        assert error.mean < error.largest < 3
        assert curve_error(table, query[top], answers.scores[top], answers.ranks[top]).mean < 0.2
    some = np.array([0, 5, 5, 17])
    assert whole.rank(some, [3.0, 2.0, 1.0, 4.0]) == pytest.approx(
        np.array([float(whole[int(q)].rank(s)) for q, s in zip(some, [3.0, 2.0, 1.0, 4.0], strict=True)])
    )
    assert whole.score(some, [1, 2, 3, 4]) == pytest.approx(
        np.array([float(whole[int(q)].score(r)) for q, r in zip(some, [1, 2, 3, 4], strict=True)])
    )


def test_no_errors_to_report() -> None:
    empty = CurveTable.fit([], [])
    assert len(empty) == 0
    assert curve_error(empty, np.empty(0, np.int64), [], []).points == 0
