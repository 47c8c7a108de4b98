"""Are expectations met?"""

from __future__ import annotations

import numpy as np
import pytest

from bowerbird.appraise.budget.watch import FARTHEST, expected_by, expected_loss, factor_of, watch_kind


@pytest.mark.parametrize("truth", [0.2, 1.0, 3.0])
def test_a_ratio_is_found_and_its_interval_covers_it(truth: float) -> None:
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        expected = rng.lognormal(0.0, 1.0, 800)
        watch = watch_kind("new", expected, rng.poisson(truth * expected).astype(float), "clicks", rng)
        assert watch.ratio == pytest.approx(truth, rel=0.2, abs=0.06)
        covered += watch.low <= truth <= watch.high
    assert covered >= 34
    assert watch.drifts == (truth != 1.0)


def test_little_is_taken_for_chance() -> None:
    rng = np.random.default_rng(1)
    few = watch_kind("hub", np.full(3, 1.0), np.array([0.0, 4.0, 1.0]), "pages", rng)
    assert not few.drifts
    assert factor_of(few) == 1.0
    nothing = watch_kind("hub", np.zeros(0), np.zeros(0), "pages", rng)
    assert (nothing.ratio, nothing.fetches, nothing.drifts) == (1.0, 0, False)


def test_a_factor_stays_within_bounds() -> None:
    rng = np.random.default_rng(1)
    far = watch_kind("new", np.full(5000, 1.0), np.full(5000, 1000.0), "clicks", rng)
    assert far.drifts
    assert factor_of(far) == FARTHEST
    none = watch_kind("new", np.full(5000, 1.0), np.zeros(5000), "clicks", rng)
    assert factor_of(none) == 1 / FARTHEST


def test_what_is_expected_by_now_grows_to_all_of_it() -> None:
    clicks, decay = np.array([10.0, 10.0]), np.array([0.0, 0.5])
    waits = np.array([[0.0, 0.0], [5.0, 5.0], [1e9, 1e9]])
    by = np.array([expected_by(clicks, decay, wait, 20.0) for wait in waits])
    assert by[0].tolist() == [0.0, 0.0]
    assert by[1] == pytest.approx([2.5, 10 * (1 - np.exp(-2.5)) / (1 - np.exp(-10.0))])
    assert by[2] == pytest.approx([10.0, 10.0])


def test_a_refresh_regains_no_more_than_a_change_costs() -> None:
    gain, changes = np.array([100.0, 100.0]), np.array([0.01, 0.01])
    young, old = expected_loss(gain, changes, np.array([1.0, 1e9]))
    assert old == pytest.approx(1.0)  # loss = gain·Delta
    assert young == pytest.approx(100.0 * 0.01**2 * 1.0, rel=0.01)  # growth·tau while that is short
