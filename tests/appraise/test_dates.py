"""What pages' own dates tell of how often they change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.appraise.refresh.change_rate import weigh_visits
from bowerbird.appraise.refresh.dates import LONGEST_QUIET_S, PageDates, fit_births, trust_past, weigh_quiet, weigh_told
from bowerbird.appraise.refresh.forecast import FIRST_RATE_PER_S, forecast_pages
from bowerbird.appraise.refresh.inputs import RefreshInputs

DAY = 86400.0


def dates_of(
    quiet_s: list[float], *, recall: float = 1.0, false: float = 0.0, told_s: np.ndarray | None = None
) -> PageDates:
    count = len(quiet_s)
    told = np.zeros(0) if told_s is None else told_s
    return PageDates(np.array(quiet_s), told, np.full(count, recall), np.full(count, false))


def inputs_of(
    intervals: np.ndarray, changed: np.ndarray, dates: PageDates | None, shift: float = 0.5, levels: int = 1
) -> RefreshInputs:
    """As many visits to each page: rows of `intervals` and `changed`."""
    count, times = intervals.shape
    return RefreshInputs(
        now_s=0.0,
        starts=np.arange(count + 1) * times,
        interval_s=intervals.ravel(),
        changed=changed.ravel(),
        shift=np.where(changed.ravel(), shift, 0.0),
        gain=np.zeros(changed.size),
        stake=np.ones(count),
        views=np.ones(count),
        levels=[np.arange(count) % levels],
        hint_age_s=np.full(count, np.nan),
        cost=np.ones(count),
        dates=dates,
    )


@given(
    rate=st.floats(1e-9, 1e-3),
    recall=st.floats(0.01, 1.0),
    false=st.floats(0.0, 1e-4),
    births=st.floats(0.0, 1e-4),
    quiet=st.floats(0.0, LONGEST_QUIET_S),
)
def test_evidence_has_the_slope_of_the_likelihood(
    rate: float, recall: float, false: float, births: float, quiet: float
) -> None:
    events, exposure = weigh_quiet(dates_of([quiet], recall=recall, false=false), np.ones(1), np.array([rate]), births)
    step = rate * 1e-4
    below = recall * (rate - step) + false + births
    # the difference of log(r·x + phi + h) - r·x·a between rate + step and rate - step
    slope = np.log1p(2 * recall * step / below) / (2 * step) - recall * quiet
    scale = recall / (recall * rate + false + births) + recall * quiet
    assert events[0] / rate - exposure[0] == pytest.approx(slope, abs=1e-5 * scale)
    assert 0.0 <= events[0] <= 1.0
    assert exposure[0] >= 0.0


def test_dates_that_tell_nothing() -> None:
    rates = np.full(4, 1 / DAY)
    dates = PageDates(
        np.array([np.nan, 50 * DAY, 0.0, 1e12]),
        np.zeros(0),
        np.array([1.0, 0.0, 0.9, 1.0]),
        np.array([0.0, 0.0, 1e3, 0.0]),
    )
    events, exposure = weigh_quiet(dates, np.ones(4), rates, 0.0)
    assert events[:2].tolist() == [0.0, 0.0]  # no date; one that never moves
    assert exposure[:2].tolist() == [0.0, 0.0]
    assert (events[2], exposure[2]) == (pytest.approx(0.0, abs=1e-6), 0.0)  # the time of the fetch
    assert exposure[3] == LONGEST_QUIET_S
    assert fit_births(dates_of([np.nan, np.nan]), np.ones(2), np.ones(2)) == 0.0


def test_births_are_told_from_changes() -> None:
    rng = np.random.default_rng(3)
    births, rate = 1 / (200 * DAY), 1 / (50 * DAY)
    rates = np.full(20_000, rate)
    quiet = np.minimum(rng.exponential(1 / rate, len(rates)), rng.exponential(1 / births, len(rates)))
    past = np.ones(len(rates))
    found = fit_births(dates_of(quiet.tolist()), past, rates)
    assert found == pytest.approx(births, rel=0.1)
    assert fit_births(dates_of(rng.exponential(1 / rate, 20_000).tolist()), past, 2 * rates) < 0.1 * births
    events, exposure = weigh_quiet(dates_of(quiet.tolist()), past, rates, found)
    assert events.sum() / exposure.sum() == pytest.approx(rate, rel=0.05)


def test_visits_decide_whether_a_page_is_as_it_was() -> None:
    dates = dates_of([300 * DAY, 300 * DAY, 300 * DAY, 3 * DAY, np.nan])
    rates = np.array([0.25, 0.25, 0.004, 0.25, 0.25]) / DAY
    found = trust_past(dates, rates, np.array([20.0, 0.5, 20.0, 20.0, 20.0]))
    assert found[0] < 1e-3  # twenty changes, and 300 days without any before
    assert found[1] > 0.3  # it is thought to change as often, but nobody has seen it
    assert found[2] > 0.8
    assert found[3] > 0.8
    assert found[4] == 0.0
    assert trust_past(dates_of([np.nan] * 2), np.ones(2), np.ones(2)).tolist() == [0.0, 0.0]


def test_false_dates_are_not_taken_for_changes() -> None:
    """A host that says "now" whatever it sends: its pages do not seem to change all the time."""
    count, times = 50, 6
    intervals = np.full((count, times), 5 * DAY)
    changed = np.random.default_rng(7).random((count, times)) < 0.5
    told = np.where(changed.ravel(), 0.0, np.nan)
    plain = forecast_pages(inputs_of(intervals, changed, None)).changes_per_s
    dates = dates_of([0.0] * count, recall=0.8, false=2 / DAY, told_s=told)
    np.testing.assert_allclose(forecast_pages(inputs_of(intervals, changed, dates)).changes_per_s, plain, rtol=0.05)


@pytest.mark.parametrize("recall", [1.0, 0.6])
def test_a_date_tells_how_often_a_page_changes_that_always_has_changed(recall: float) -> None:
    """Visits a week apart to pages that change daily say only "often"; the dates of the changes say how often."""
    rng = np.random.default_rng(5)
    count, times, rate = 400, 4, 1 / DAY
    intervals = np.full((count, times), 7 * DAY)
    changed = rng.random((count, times)) < -np.expm1(-rate * intervals)
    noted = np.where(changed, rng.exponential(1 / (recall * rate), changed.shape), np.nan)
    told = np.where(noted < intervals, noted, np.nan).ravel()
    dates = dates_of([np.nan] * count, recall=recall, told_s=told)
    page = np.repeat(np.arange(count), times)
    rates = np.full(count, rate)
    events, exposure = weigh_visits(np.arange(count + 1) * times, intervals.ravel(), changed.ravel(), rates)
    more = weigh_told(dates, page, intervals.ravel(), rates)
    assert (exposure + more[1] >= 0).all()
    assert (events + more[0]).sum() / (exposure + more[1]).sum() == pytest.approx(rate, rel=0.1)
    assert (events + more[0]).sum() > 20 * events.sum()  # what is known of them is far more
    useless = weigh_told(replace(dates, recall=np.zeros(count)), page, intervals.ravel(), rates)
    assert (np.abs(useless[0]).max(), np.abs(useless[1]).max()) == (0.0, 0.0)


def test_a_page_left_alone_for_long_before_its_first_fetch_is_expected_to_change_seldom() -> None:
    rng = np.random.default_rng(6)
    count = 600
    truth = np.where(np.arange(count) % 2, 1 / (400 * DAY), 1 / (5 * DAY))
    intervals = np.full((count, 2), 10 * DAY)
    changed = rng.random((count, 2)) < -np.expm1(-truth[:, None] * intervals)
    quiet = rng.exponential(1 / truth)
    told = np.full(2 * count, np.nan)
    plain = forecast_pages(inputs_of(intervals, changed, None))
    honest = forecast_pages(inputs_of(intervals, changed, dates_of(quiet.tolist(), told_s=told)))
    lying = forecast_pages(inputs_of(intervals, changed, dates_of(quiet.tolist(), recall=0.0, told_s=told)))
    np.testing.assert_allclose(lying.changes_per_s, plain.changes_per_s)
    np.testing.assert_allclose(lying.growth_per_s, plain.growth_per_s)

    def error(found: np.ndarray) -> float:
        return float(np.abs(np.log(found / truth)).mean())

    assert error(honest.changes_per_s) < 0.8 * error(plain.changes_per_s)
    old = quiet > 300 * DAY
    assert (honest.changes_per_s[old] < plain.changes_per_s[old]).all()
    assert np.median(honest.growth_per_s[old] / plain.growth_per_s[old]) < 0.5


def test_before_any_visit_dates_tell_pages_apart() -> None:
    nothing = inputs_of(np.zeros((3, 0)), np.zeros((3, 0), dtype=np.bool_), None)
    assert forecast_pages(nothing).changes_per_s.tolist() == [FIRST_RATE_PER_S] * 3
    found = forecast_pages(replace(nothing, dates=dates_of([DAY, 500 * DAY, np.nan]))).changes_per_s
    assert found[0] > found[2] > found[1]
    undated = forecast_pages(replace(nothing, dates=dates_of([np.nan] * 3))).changes_per_s
    assert undated.tolist() == [FIRST_RATE_PER_S] * 3
