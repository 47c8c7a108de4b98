"""Scores become expected clicks: a known curve is found again, means hold out of sample, order is kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bowerbird.appraise.frontier.calibration import (
    FEWEST_PAGES,
    LEAST_EXPOSURE,
    MOST_WEIGHT,
    PRIOR_MEAN,
    Calibration,
    calibrate,
    even_clicks,
    expose,
    full_exposure_s,
    has_too_little,
    pool_falling,
    prior_mean,
    time_heard,
    weigh_draws,
)

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def learn(scores: Array, clicks: Array) -> Calibration:
    return calibrate(scores, clicks.astype(np.float64), np.ones(len(scores)), np.ones(len(scores)))


def true_clicks(scores: Array) -> Array:
    """Rises, and levels off."""
    return 8.0 * scores / (1.0 + scores)


def test_a_known_monotone_curve_is_found_again() -> None:
    rng = np.random.default_rng(1)
    scores = rng.lognormal(0.0, 1.0, 20_000)
    curve = learn(scores, rng.poisson(true_clicks(scores)))
    assert curve.note.kind == "calibrated"
    asked = np.quantile(scores, np.linspace(0.01, 0.99, 50))
    np.testing.assert_allclose(curve.expect(asked), true_clicks(asked), rtol=0.2, atol=0.1)
    assert (np.diff(curve.clicks) >= 0).all()


@pytest.mark.parametrize("shape", ["levels off", "steep", "flat"])
def test_means_hold_on_pages_it_was_not_learnt_from(shape: str) -> None:
    rng = np.random.default_rng(2)
    scores = rng.pareto(1.5, 30_000) * 1e-6
    worth = {
        "levels off": true_clicks(scores * 1e6),
        "steep": 0.02 * (scores * 1e6) ** 1.2,
        "flat": np.full(30_000, 0.3),
    }
    clicks = rng.poisson(rng.gamma(0.5, np.minimum(worth[shape], 50.0) / 0.5)).astype(np.float64)
    curve = learn(scores[:15_000], clicks[:15_000])
    expected, got = curve.expect(scores[15_000:]), clicks[15_000:]
    bounds = np.quantile(scores[15_000:], [0, 0.5, 0.8, 0.95, 1.0])
    for low, high in pairwise(bounds):
        part = (scores[15_000:] >= low) & (scores[15_000:] <= high)
        error = np.sqrt(2.0) * got[part].std() / np.sqrt(np.count_nonzero(part))  # both halves are noisy
        assert expected[part].mean() == pytest.approx(got[part].mean(), abs=4 * error + 0.05 * curve.mean)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.integers(1, 200), elements=st.floats(0, 1e6)),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_higher_score_is_worth_more(scores: Array, seed: int, fed: bool) -> None:
    rng = np.random.default_rng(seed)
    clicks = rng.poisson(1.0, len(scores)) * (3 if fed else 0)
    curve = learn(scores, clicks)
    asked = np.concatenate([scores, rng.random(50) * 2e6])
    expected = curve.expect(asked)
    assert (expected >= 0).all()
    order = np.argsort(asked, kind="stable")
    rises = np.diff(asked[order]) > 0
    steps = np.diff(expected[order])
    assert (steps[rises] > 0).all()
    assert (steps[~rises] == 0).all()
    # a bid is kept in single precision: it may make equal, never turn round
    assert (np.diff(expected[order].astype(np.float32)) >= 0).all()


def test_the_best_differ_in_single_precision_even_where_the_curve_is_flat() -> None:
    rng = np.random.default_rng(3)
    scores = rng.lognormal(0.0, 1.0, 5000)
    curve = learn(scores, rng.poisson(true_clicks(scores)))
    asked = np.concatenate([rng.lognormal(0.0, 1.0, 1_000_000), 1e6 + np.arange(100.0)])
    bids = (1.0 + curve.expect(asked)).astype(np.float32)
    assert len(np.unique(bids[-100:])) == 100


def test_with_too_little_feedback_expected_clicks_are_in_proportion_to_the_score() -> None:
    scores = np.arange(1.0, 101.0)
    for clicks in (np.zeros(100), np.eye(1, 100).ravel() * 500):
        assert has_too_little(clicks)
        curve = learn(scores, clicks)
        assert curve.note.kind == "prior"
        assert "too little feedback" in curve.note.note
        assert curve.mean == pytest.approx(prior_mean(clicks.sum(), 100))
        expected = curve.expect(scores)
        assert expected.mean() == pytest.approx(curve.mean, rel=0.03)
        assert expected[99] / expected[9] == pytest.approx(10.0, rel=0.1)
    assert learn(scores[: FEWEST_PAGES - 1], np.full(FEWEST_PAGES - 1, 9.0)).note.kind == "prior"
    alike = learn(np.ones(100), np.full(100, 9.0)).note
    assert alike.kind == "prior"
    assert "all have the same score" in alike.note
    assert calibrate(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)).expect(np.ones(3)) == pytest.approx(
        PRIOR_MEAN, rel=0.03
    )


def test_one_page_cannot_be_worth_any_multiple_by_its_score_alone() -> None:
    scores = np.ones(10_000)
    scores[0] = 1e12
    expected = calibrate(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)).expect(scores)
    assert expected[0] < 1.1 * 100 * PRIOR_MEAN
    assert expected[0] > expected[1]


def test_young_pages_count_for_the_time_they_had() -> None:
    rng = np.random.default_rng(4)
    scores = rng.random(20_000) + 0.5
    age_s = rng.choice([1000.0, 10_000.0], 20_000, p=[0.4, 0.6])
    exposure = expose(age_s, full_exposure_s(age_s, 1e9))
    assert set(exposure.tolist()) == {0.1, 1.0}
    clicks = rng.poisson(2.0 * scores * exposure).astype(np.float64)
    curve = calibrate(scores, clicks, exposure, np.ones(20_000))
    assert curve.expect(np.array([0.75, 1.25])) == pytest.approx([1.5, 2.5], rel=0.1)
    assert learn(scores, clicks).expect(np.array([1.0]))[0] < 1.5  # without it they would all seem worth less


def test_exposure_is_bounded_and_needs_no_age() -> None:
    assert expose(np.zeros(0), full_exposure_s(np.zeros(0), 10.0)).tolist() == []
    assert expose(np.zeros(3), full_exposure_s(np.zeros(3), 10.0)).tolist() == [1.0, 1.0, 1.0]
    assert full_exposure_s(np.array([0.0, 5.0, 20.0, 20.0, 20.0]), 10.0) == 10.0
    assert expose(np.array([0.0, 5.0, 20.0, 20.0, 20.0]), 10.0).tolist() == [LEAST_EXPOSURE, 0.5, 1.0, 1.0, 1.0]


def test_clicks_that_fade_are_those_of_the_time_heard() -> None:
    """One click a day, each fading by half in 30 days: the log holds as many as `time_heard` has days."""
    for days in (1, 5, 60, 400):
        ages = np.arange(days) + 0.5
        assert (2.0 ** (-ages / 30.0)).sum() == pytest.approx(float(time_heard(days, 30.0)), rel=0.01)


def test_clicks_are_made_even_for_the_time_that_pages_were_there() -> None:
    """Pages of a host are clicked alike, of whatever age: those too young for it pass on what others of them do."""
    rng = np.random.default_rng(6)
    host = rng.integers(0, 4, 8000).astype(np.uint32)
    crawled = rng.random(8000) < 0.9
    age = rng.choice([0.0, 1.0, 5.0, 60.0], 8000)
    heard = time_heard(age, 30.0) / 5.0  # a full exposure is of five days
    rate = np.array([0.2, 0.6, 1.8, 5.4])[host]
    clicks = rng.poisson(rate * time_heard(age, 30.0)).astype(np.float64)
    redirects = crawled & (rng.random(8000) < 0.3)
    heard[redirects], clicks[redirects] = np.nan, 0.0
    even = even_clicks(clicks, heard, host, crawled)
    assert (even[~crawled | redirects] == 0).all()
    for one in range(4):
        pages = crawled & ~redirects & (host == one)
        for days in (0.0, 1.0, 5.0):
            assert even[pages & (age == days)].mean() == pytest.approx(5.0 * rate[pages][0], rel=0.1)
        assert (even[pages & (age == 60.0)] == clicks[pages & (age == 60.0)]).all()  # nothing is taken away
    assert even_clicks(clicks, np.full(8000, np.nan), host, crawled).tolist() == np.where(crawled, clicks, 0.0).tolist()


def test_pages_drawn_by_lot_weigh_by_their_chance() -> None:
    assert weigh_draws(np.array([np.nan, 0.5, 1e-9, 1.0])).tolist() == [1.0, 2.0, MOST_WEIGHT, 1.0]
    # pages chosen for their clicks mislead; those drawn by lot tell what the others of their score are worth
    rng = np.random.default_rng(5)
    scores = rng.random(4000)
    drawn = np.arange(4000) < 2000
    clicks = np.where(drawn, rng.poisson(0.5, 4000), rng.poisson(5.0, 4000)).astype(np.float64)
    weight = weigh_draws(np.where(drawn, 1e-6, np.nan))
    curve = calibrate(scores, clicks, np.ones(4000), weight)
    assert curve.mean == pytest.approx((0.5 * MOST_WEIGHT + 5.0) / (MOST_WEIGHT + 1), rel=0.05)


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            arrays(np.float64, n, elements=st.floats(0, 100)), arrays(np.float64, n, elements=st.floats(0.1, 10))
        )
    )
)
def test_pooling_keeps_the_mean_and_never_falls(given_: tuple[Array, Array]) -> None:
    rate, weight = given_
    pooled = pool_falling(rate, weight)
    assert (np.diff(pooled) >= -1e-9).all()
    assert float(pooled @ weight) == pytest.approx(float(rate @ weight), abs=1e-6)
    if (np.diff(rate) > 0).all():
        assert pooled.tolist() == rate.tolist()


@pytest.mark.parametrize(
    ("clicks", "total"),
    [(14.12, "1,410"), (1234.5, "123,000"), (0.4, "40"), (0.123456, "12.3")],
)
def test_the_note_has_three_digits_and_no_exponent(clicks: float, total: str) -> None:
    note = learn(np.arange(100.0), np.full(100, clicks)).note.note
    assert f"{total} clicks on 100 of 100 pages" in note
    assert "e+" not in note
