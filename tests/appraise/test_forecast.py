"""Forecasts of pages: rates shrunk to those of their groups, losses from stakes and measured gains."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from bowerbird.appraise.refresh.forecast import (
    FIRST_RATE_PER_S,
    GAIN_STRENGTH,
    MOST_TIMES,
    forecast_pages,
    gain_factors,
    significance,
    weigh_stakes,
)
from bowerbird.appraise.refresh.inputs import RefreshInputs

WEEK_S = 7 * 86400.0


def known(
    visits: list[tuple[int, float, float, float]], stake: list[float], levels: list[list[int]] | None = None
) -> RefreshInputs:
    """Visits as (page, weeks, shift or 0, gain), in the order of time."""
    count = len(stake)
    page = np.array([visit[0] for visit in visits], dtype=np.int64)
    order = np.argsort(page, kind="stable")
    starts = np.searchsorted(page[order], np.arange(count + 1))
    columns = np.array([visit[1:] for visit in visits], dtype=np.float64).reshape(-1, 3)[order]
    return RefreshInputs(
        now_s=0.0,
        starts=starts,
        interval_s=columns[:, 0] * WEEK_S,
        changed=columns[:, 1] > 0,
        shift=columns[:, 1],
        gain=columns[:, 2],
        stake=np.array(stake),
        views=np.zeros(count),
        levels=[np.array(level) for level in (levels or [[0] * count])],
        hint_age_s=np.full(count, np.nan),
        cost=np.ones(count),
    )


def test_before_any_visit_all_change_alike_and_stakes_decide() -> None:
    found = forecast_pages(known([], [1.0, 3.0]))
    assert found.changes_per_s.tolist() == [FIRST_RATE_PER_S] * 2
    assert found.loss[1] / found.loss[0] == pytest.approx(3.2 / 1.2)  # a tenth of the mean is added to both
    assert math.isnan(found.scale)


def test_pages_are_expected_to_change_as_those_do_that_have_as_much_at_stake() -> None:
    """Of 200 pages each second was visited: those with much at stake had changed each time, the others never."""
    rng = np.random.default_rng(1)
    stake = np.where(np.arange(200) < 100, rng.uniform(10.0, 20.0, 200), rng.uniform(0.1, 1.0, 200))
    visits = [(page, 2.0, 0.5 if page < 100 else 0.0, math.nan) for page in range(0, 200, 2) for _ in range(4)]
    found = forecast_pages(known(visits, stake.tolist())).changes_per_s
    unseen = np.arange(1, 200, 2)
    assert found[unseen[unseen < 100]].min() > 5.0 * found[unseen[unseen >= 100]].max()
    alike = forecast_pages(known(visits, [1.0] * 200)).changes_per_s[unseen]
    assert alike.max() == pytest.approx(alike.min())


def test_without_stakes_all_pages_weigh_the_same() -> None:
    assert weigh_stakes(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert weigh_stakes(np.array([0.0, 2.0])).tolist() == pytest.approx([0.1, 2.1])


def test_small_changes_count_as_parts() -> None:
    shift, changed = np.array([0.02, 0.1, 0.7, 0.5]), np.array([True, True, True, False])
    assert significance(shift, changed).tolist() == pytest.approx([0.2, 1.0, 1.0, 0.0])


def test_a_page_never_visited_is_expected_to_be_as_its_group() -> None:
    lively = [(page, 4.0, 0.5, 0.01) for page in range(20) for _ in range(3)]
    quiet = [(page, 4.0, 0.0, 0.0) for page in range(20, 40) for _ in range(3)]
    group = [0] * 20 + [1] * 20 + [0, 1]
    found = forecast_pages(known(lively + quiet, [1.0] * 42, [group]))
    assert found.changes_per_s[40] > 10 * found.changes_per_s[41]
    assert found.significant_per_s[40] > 10 * found.significant_per_s[41]
    assert found.growth_per_s[40] > 10 * found.growth_per_s[41]


def test_large_changes_lose_more_than_small_ones_as_frequent() -> None:
    large = [(page, 2.0, 0.5, 0.01) for page in range(10) for _ in range(4)]
    small = [(page, 2.0, 0.01, 0.01) for page in range(10, 20) for _ in range(4)]
    found = forecast_pages(known(large + small, [1.0] * 20, [[0] * 10 + [1] * 10]))
    assert found.changes_per_s[0] == pytest.approx(found.changes_per_s[10], rel=0.2)
    assert found.loss[0] > 3 * found.loss[10]


def test_gains_set_the_scale_and_a_page_that_shows_more_than_its_share_is_raised() -> None:
    starts, worth = np.array([0, 1, 2, 2]), np.array([1.0, 1.0, 2.0])
    factor, scale = gain_factors(starts, np.ones(2), np.array([0.0, 0.04]), worth)
    assert scale == pytest.approx(0.02)
    assert factor[2] == pytest.approx(scale)
    assert factor[0] == pytest.approx(scale * GAIN_STRENGTH / (GAIN_STRENGTH + 1))
    assert factor[1] == pytest.approx(scale * (GAIN_STRENGTH + 2) / (GAIN_STRENGTH + 1))


def test_one_gain_counts_at_most_so_many_times_the_expected() -> None:
    pages = np.arange(1000)
    gains = np.where(pages == 0, 1.0, 1e-6)
    factor, scale = gain_factors(np.arange(1001), np.ones(1000), gains, np.ones(1000))
    assert factor[0] / scale == pytest.approx((GAIN_STRENGTH + MOST_TIMES) / (GAIN_STRENGTH + 1))


def test_what_was_not_measured_is_left_out() -> None:
    with_gap = known([(0, 1.0, 0.5, math.nan), (1, 1.0, 0.5, 0.02)], [1.0, 1.0])
    found = forecast_pages(with_gap)
    assert found.scale == pytest.approx(0.02 / weigh_stakes(with_gap.stake)[1])
    assert np.isfinite(found.loss).all()


@settings(max_examples=40, deadline=None)
@given(
    visits=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.floats(0.01, 50.0),
            st.one_of(st.just(0.0), st.floats(0.001, 1.0)),
            st.floats(0.0, 0.1),
        ),
        max_size=40,
    ),
    stake=st.lists(st.floats(0.0, 10.0), min_size=6, max_size=6),
)
def test_forecasts_are_finite_and_the_unit_of_gains_does_not_matter(
    visits: list[tuple[int, float, float, float]], stake: list[float]
) -> None:
    inputs = known([(p, w, s, g if s else 0.0) for p, w, s, g in visits], stake, [[0, 0, 0, 1, 1, 1], list(range(6))])
    found, doubled = forecast_pages(inputs), forecast_pages(replace(inputs, gain=2.0 * inputs.gain))
    for column in (found.changes_per_s, found.significant_per_s, found.loss, found.certainty):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (found.changes_per_s > 0).all()
    if not math.isnan(found.scale):
        assert doubled.loss == pytest.approx(2.0 * found.loss)


def test_rates_of_fast_and_slow_pages_come_near_the_truth() -> None:
    """Visits once a week: pages that change daily are seen to change every time, however often that is."""
    rng = np.random.default_rng(5)
    truth = np.repeat([1.0, 1 / 7, 1 / 60, 1 / 400], 300)  # a day
    visits = [
        (page, 1.0, float(rng.random() < -np.expm1(-7 * rate)), 0.0)
        for page, rate in enumerate(truth.tolist())
        for _ in range(20)
    ]
    inputs = known(visits, [1.0] * len(truth))
    found = forecast_pages(inputs).changes_per_s * 86400
    seen = inputs.changed.reshape(-1, 20).sum(axis=1)
    # of the page's own visits alone, with pseudo-observations of half a day, one changed and one not
    alone = [
        brentq(lambda x, k=k: 7 * k / np.expm1(7 * x) + 0.5 / np.expm1(0.5 * x) - 7 * (20 - k) - 0.5, 1e-9, 10.0)
        for k in range(21)
    ]
    plain = np.array(alone)[seen]
    means = [float(found[truth == rate].mean()) for rate in np.unique(truth)[::-1]]
    assert means[0] > 0.5  # 20 of 20 visits: at least that
    assert means[1] == pytest.approx(1 / 7, rel=0.15)
    assert means[2] == pytest.approx(1 / 60, rel=0.3)
    assert means == sorted(means, reverse=True)
    slow = truth < 0.1
    assert np.abs(found - truth)[slow].mean() < np.abs(plain - truth)[slow].mean()  # what the prior is for
