"""Neediness: frequency times what a new page can be expected to better."""

from __future__ import annotations

import numpy as np
import pytest

from bowerbird.quality.neediness import fit_improvability, improvability, mean_of_top, neediness


def test_neediness_is_the_product() -> None:
    assert neediness(np.array([2.0, 3.0]), np.array([0.5, 0.0])).tolist() == [1.0, 0.0]


def test_missing_results_score_nothing() -> None:
    assert mean_of_top(np.array([4.0, 4.0, 4.0]), np.array([0, 5, 50])).tolist() == [0.0, 2.0, 4.0]


def test_before_anything_is_learnt_bad_answers_are_improvable() -> None:
    found = improvability(np.array([0.0, 1.0, 6.0]), np.array([0, 30, 30]))
    assert found[0] == 1.0
    assert found[0] > found[1] > found[2] > 0
    assert improvability(np.zeros(2), np.zeros(2, dtype=np.int64)).tolist() == [1.0, 1.0]


def test_the_regression_finds_the_law_that_made_the_data() -> None:
    rng = np.random.default_rng(3)
    scores, results = rng.uniform(0, 8, 4000), rng.integers(0, 40, 4000)
    law = np.exp(-0.5 - 0.7 * mean_of_top(scores, results))
    model = fit_improvability(scores, results, law * rng.exponential(size=4000), buckets=40)
    assert model.slope == pytest.approx(-0.7, abs=0.06)
    assert model.intercept == pytest.approx(-0.5, abs=0.15)
    learnt = improvability(scores, results, model)
    assert np.corrcoef(np.log(learnt), np.log(law))[0, 1] > 0.99


def test_a_cycle_without_improvements_or_queries() -> None:
    nothing = fit_improvability(np.ones(5), np.full(5, 20), np.zeros(5))
    assert improvability(np.ones(3), np.full(3, 20), nothing).tolist() == [0.0, 0.0, 0.0]
    empty = fit_improvability(np.empty(0), np.empty(0, np.int64), np.empty(0))
    assert improvability(np.ones(1), np.array([20]), empty).tolist() == [1.0]
