"""The study of all hubs at once: rates, interest, the budget, and what bids come of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.hubs.announced import SIZES, Announced, Feature, rate_pages, share_left
from bowerbird.appraise.hubs.intervals import poisson_amplitude, share_budget
from bowerbird.appraise.hubs.study import (
    KNOWN_VISITS,
    HubInputs,
    HubPlan,
    HubVisits,
    clear_hubs,
    follow_hour,
    study_hubs,
)
from bowerbird.appraise.refresh.clearing import Clearing
from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import HubKind, HubStudy

NOW = 1_700_000_000.0
DAY_S = 86400.0
HOUR_S = 3600.0
PLAN = HubPlan(60.0, 365 * DAY_S, 0.1, math.log(2.0) / (2 * DAY_S))
NO_PAGES = Announced(
    *(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.bool_)),
    np.zeros((0, len(SIZES)), np.int64),
    0.0,
    *(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)),
)


def inputs_of(rates_per_day: list[float], visits: int = 40, gap_s: float = 6 * HOUR_S, seed: int = 0) -> HubInputs:
    """Feeds of hosts of their own that announce so many pages a day, each visited so often after the first visit."""
    rng = np.random.default_rng(seed)
    count = len(rates_per_day)
    hub = np.tile(np.arange(count), visits)
    at = NOW - gap_s * (visits - np.repeat(np.arange(visits), count)).astype(np.float64)
    found = rng.poisson(np.array(rates_per_day)[hub] * gap_s / DAY_S).astype(np.float64)
    made = HubVisits(
        np.full(count, visits + 1),
        hub,
        at,
        np.full(len(hub), gap_s),
        found,
        np.zeros(len(hub), np.bool_),
    )
    return HubInputs(
        now_s=NOW,
        count=count + 10,
        row=np.arange(count) * 1 + 3,
        kind=np.full(count, int(HubKind.FEED), np.uint8),
        host=np.arange(count),
        period_s=np.zeros(count),
        usual_per_s=np.full(count, 1.0 / (6 * HOUR_S)),
        visits=made,
        announced=NO_PAGES,
        link_hub=np.zeros(0, np.int64),
        link_page=np.zeros(0, np.int64),
    )


def study(inputs: HubInputs, seed: int = 1, plan: HubPlan = PLAN) -> HubStudy:
    return study_hubs(inputs, "echo", plan, seed)


def test_busy_hubs_come_round_sooner_within_the_same_budget() -> None:
    found = study(inputs_of([100.0, 20.0, 4.0, 0.5] * 5))
    hubs = found.hubs
    assert found.budget_per_s == pytest.approx(20 / (6 * HOUR_S))
    assert found.info["spent"] == pytest.approx(found.budget_per_s, rel=1e-3)
    by_rate = [float(np.median(hubs.interval_s[nth::4])) for nth in range(4)]
    assert by_rate == sorted(by_rate)
    assert by_rate[0] < 4 * HOUR_S < 6 * HOUR_S < by_rate[3]
    assert hubs.rate_per_s[::4] * DAY_S == pytest.approx(100.0, rel=0.35)
    assert hubs.rate_per_s.tolist() == hubs.drawn_per_s.tolist()  # known well: not drawn


def test_a_hub_that_yields_nothing_is_visited_seldom_but_not_never() -> None:
    hubs = study(inputs_of([50.0] * 9 + [0.0])).hubs
    longest = 6 * HOUR_S / PLAN.explore
    assert hubs.found[9] == 0
    assert hubs.rate_per_s[9] > 0
    assert 3 * float(hubs.interval_s[:9].max()) < float(hubs.interval_s[9]) <= longest * 1.0001


def test_before_hubs_were_visited_twice_news_comes_at_the_rate_that_the_plan_expects() -> None:
    """In the time of the crawl: a day of a world that runs fast may last for minutes."""
    nothing = inputs_of([100.0, 20.0], visits=0)
    for per_s in (1.0 / DAY_S, 0.025):
        hubs = study(nothing, plan=replace(PLAN, prior_per_s=per_s)).hubs
        assert hubs.rate_per_s == pytest.approx(per_s, rel=1e-3)
    known = inputs_of([100.0] * 5)
    slow, fast = (study(known, plan=replace(PLAN, prior_per_s=per_s)).hubs for per_s in (1.0 / DAY_S, 0.025))
    assert fast.rate_per_s == pytest.approx(slow.rate_per_s, rel=0.05)  # it says nothing against what was seen


def test_without_clicks_all_hubs_are_alike_but_for_their_rates() -> None:
    found = study(inputs_of([30.0, 10.0, 3.0]))
    assert not found.by_clicks
    assert found.hubs.profit.tolist() == [1.0] * 3
    assert found.hubs.decay_per_s.tolist() == pytest.approx([PLAN.decay_per_s] * 3)
    assert "no click" in str(found.info["note"])
    assert len(found.curve.age_s) == 0


def with_clicks(inputs: HubInputs, profits: list[float], half_lives_s: list[float], pages: int = 300) -> HubInputs:
    """Each hub announced so many pages in the last weeks, fetched after ten minutes, clicked as told."""
    rng = np.random.default_rng(5)
    count = len(profits)
    hub = np.repeat(np.arange(count), pages)
    found = NOW - rng.uniform(0.0, 20 * DAY_S, len(hub))
    order = np.argsort(found)
    hub, found = hub[order], found[order]
    page, at = [], []
    for nth, (of, when) in enumerate(zip(hub.tolist(), found.tolist(), strict=True)):
        decay = math.log(2.0) / half_lives_s[of]
        ages = rng.exponential(1.0 / decay, rng.poisson(profits[of]))
        seen = ages[(ages > 600.0) & (when + ages < NOW)]
        page += [nth] * len(seen)
        at += ((when + seen) // 1200 * 1200 + 600).tolist()
    announced = Announced(
        np.arange(len(hub)) + 1000,
        hub,
        found,
        np.zeros(len(hub)),
        found + 600.0,
        np.zeros(len(hub), np.bool_),
        np.zeros((len(hub), len(SIZES)), np.int64),
        NOW,
        np.array(page),
        np.array(at),
        np.ones(len(page)),
    )
    return replace(inputs, announced=announced)


def test_profit_and_decay_are_learnt_from_clicks_also_of_young_pages() -> None:
    inputs = with_clicks(inputs_of([10.0, 10.0, 10.0]), [20.0, 5.0, 5.0], [DAY_S, DAY_S, 6 * HOUR_S])
    found = study(inputs)
    assert found.by_clicks
    assert found.hubs.profit.tolist() == pytest.approx([20.0, 5.0, 5.0], rel=0.15)
    half_lives = math.log(2.0) / found.hubs.decay_per_s.astype(float)
    assert half_lives.tolist() == pytest.approx([DAY_S, DAY_S, 6 * HOUR_S], rel=0.25)
    assert found.hubs.interval_s[0] < found.hubs.interval_s[1]  # the same rate, four times the profit
    assert (np.diff(found.curve.clicks) >= 0).all()
    assert found.curve.clicks[-1] == pytest.approx(10.0, rel=0.1)  # the mean of all three
    assert "note" not in found.info


@pytest.mark.parametrize("half_life_s", [45.0, 300.0, 1800.0])
def test_profit_is_learnt_where_interest_is_gone_within_a_bin_of_the_log(half_life_s: float) -> None:
    """Clicks are known to twenty minutes only, and all pages were found in the last two half-lives."""
    rng, pages = np.random.default_rng(3), 2000
    decay = math.log(2.0) / half_life_s
    found = np.sort(NOW - rng.uniform(0.0, 2 * half_life_s, pages))
    fetched = found + rng.uniform(0.0, 0.3 * half_life_s, pages)
    page, at = [], []
    for nth, when in enumerate(found.tolist()):
        ages = rng.exponential(1.0 / decay, rng.poisson(6.0))
        seen = when + ages[(when + ages > fetched[nth]) & (when + ages < NOW)]
        page += [nth] * len(seen)
        at += (seen // 1200 * 1200 + 600).tolist()
    announced = Announced(
        np.arange(pages) + 1000,
        np.zeros(pages, np.int64),
        found,
        np.zeros(pages),
        np.where(fetched < NOW, fetched, np.inf),
        fetched >= NOW,
        np.zeros((pages, len(SIZES)), np.int64),
        NOW,
        np.array(page),
        np.array(at),
        np.ones(len(page)),
    )
    plan = replace(PLAN, shortest_s=1.0, decay_per_s=decay)
    made = study(replace(inputs_of([10.0]), announced=announced), plan=plan)
    assert float(made.hubs.profit[0]) == pytest.approx(6.0, rel=0.25)
    assert math.log(2.0) / float(made.hubs.decay_per_s[0]) == pytest.approx(half_life_s, rel=0.4)


def test_single_pages_are_told_apart_by_their_features_where_clicks_say_so() -> None:
    inputs = with_clicks(inputs_of([10.0, 10.0]), [4.0, 8.0], [DAY_S, DAY_S], pages=400)
    pages = inputs.announced
    level = np.zeros_like(pages.level)
    level[:, Feature.PLACE] = np.arange(len(level)) % 2
    level[:, Feature.TYPE] = np.arange(len(level)) % 5
    clicks = np.where(level[pages.click_page, Feature.PLACE] == 0, 3.0, 1.0)  # the top is read three times as much
    profit, decay = np.array([8.0, 16.0]), np.full(2, math.log(2.0) / DAY_S)
    factors = rate_pages(replace(pages, level=level, clicks=clicks), NOW, profit, decay)
    top, below = factors[level[:, Feature.PLACE] == 0], factors[level[:, Feature.PLACE] == 1]
    assert top.mean() / below.mean() == pytest.approx(3.0, rel=0.2)
    assert top.std() / top.mean() < 0.1  # the kind of URL makes no difference here
    nothing = replace(pages, level=level, click_page=pages.click_page[:0], click_at_s=np.zeros(0), clicks=np.zeros(0))
    assert rate_pages(nothing, NOW, profit, decay).tolist() == [1.0] * len(level)


def test_what_is_left_when_a_page_is_found_is_the_mean_over_when_it_appeared() -> None:
    ages = np.linspace(0.0, 5.0, 200_001)
    assert share_left(0.7, 5.0) == pytest.approx(np.exp(-0.7 * ages).mean(), rel=1e-5)
    assert share_left([0.0, 1e-12], [9.0, 1.0]).tolist() == [1.0, 1.0]


def found_late(half_life_s: float, gap_s: float, profit: float) -> HubInputs:
    """A hub whose pages appear evenly and are found at the end of gaps, with the clicks that they get from then on."""
    inputs = with_clicks(inputs_of([10.0], gap_s=gap_s), [profit], [half_life_s], pages=600)
    pages, rng = inputs.announced, np.random.default_rng(7)
    share = math.log(2.0) / half_life_s
    left = np.exp(-share * rng.uniform(0.0, gap_s, len(pages.row)))
    heard = rng.random(len(pages.clicks)) < left[pages.click_page]
    fewer = replace(
        pages,
        gap_s=np.full(len(pages.row), gap_s),
        click_page=pages.click_page[heard],
        click_at_s=pages.click_at_s[heard],
        clicks=pages.clicks[heard],
    )
    return replace(inputs, announced=replace(fewer, is_new=np.ones(len(pages.row), np.bool_)))


@pytest.mark.parametrize("gap_s", [HOUR_S, DAY_S, 3 * DAY_S])
def test_profit_is_that_of_a_page_when_it_appears_however_late_pages_are_found(gap_s: float) -> None:
    made = study(found_late(DAY_S, gap_s, 20.0))
    assert float(made.hubs.profit[0]) == pytest.approx(20.0, rel=0.12)
    left = float(share_left(math.log(2.0) / DAY_S, gap_s))
    assert float(made.hubs.left[0]) == pytest.approx(left, rel=0.1)
    # what is left of a page when it is found is what it bids by
    assert made.factors(made.page_row, made.page_hub).mean() == pytest.approx(left, rel=0.12)
    assert made.factors(np.array([10**9]), np.array([0]))[0] == pytest.approx(left, rel=0.1)  # found since the study


def test_the_hours_of_the_week_are_kept_with_the_study() -> None:
    inputs = inputs_of([40.0] * 5, visits=600, gap_s=HOUR_S)
    by_day = (inputs.visits.at_s // HOUR_S) % 24 >= 12  # when all is announced
    made = study(replace(inputs, visits=replace(inputs.visits, found=np.where(by_day, inputs.visits.found, 0.0))))
    assert made.pattern.shape == (168,)
    assert float(made.pattern.mean()) == pytest.approx(1.0, rel=1e-4)
    hour = np.arange(168) % 24
    assert made.pattern[(hour >= 13) & (hour < 23)].min() > 1.4
    assert made.pattern[(hour >= 1) & (hour < 10)].max() < 0.6


def test_profits_count_relative_to_the_mean_so_the_unit_of_clicks_moves_no_bid() -> None:
    rates = inputs_of([30.0, 10.0])
    few, many = (study(with_clicks(rates, [4.0 * k, 12.0 * k], [DAY_S, DAY_S], 800)) for k in (1, 10))
    assert few.hubs.interval_s.tolist() == pytest.approx(many.hubs.interval_s.tolist(), rel=0.1)
    assert many.mean_profit == pytest.approx(10 * few.mean_profit, rel=0.1)


def test_clicks_after_the_last_that_was_heard_are_not_missed() -> None:
    inputs = with_clicks(inputs_of([10.0]), [10.0], [DAY_S])
    deaf = replace(inputs.announced, heard_until_s=NOW - 30 * DAY_S)
    assert not study(replace(inputs, announced=deaf)).by_clicks


def test_what_a_hub_says_of_itself_counts_while_little_is_known_and_no_longer() -> None:
    few, many = (
        replace(inputs_of([0.2] * 8, visits=visits), period_s=np.r_[HOUR_S, np.zeros(7)]) for visits in (1, 30)
    )
    early, late = study(few).hubs, study(many).hubs
    assert early.rate_per_s[0] > 1.3 * early.rate_per_s[1:].max()
    assert late.rate_per_s[0] < 1.0 / DAY_S
    assert early.period_s.tolist() == [HOUR_S] + [0.0] * 7


def test_little_known_hubs_are_tried_by_lot() -> None:
    inputs = inputs_of([5.0] * 30, visits=2)
    one, again, other = study(inputs, 1).hubs, study(inputs, 1).hubs, study(inputs, 2).hubs
    assert np.array_equal(one.drawn_per_s, again.drawn_per_s)
    assert not np.array_equal(one.drawn_per_s, other.drawn_per_s)
    assert np.array_equal(one.rate_per_s, other.rate_per_s)
    assert (one.drawn_per_s >= one.rate_per_s).all()  # a low draw is no reason to leave a hub alone
    assert 0 < np.count_nonzero(one.drawn_per_s > one.rate_per_s) < 30
    known = inputs_of([5.0] * 30, visits=KNOWN_VISITS)
    assert np.array_equal(study(known, 1).hubs.drawn_per_s, study(known, 2).hubs.drawn_per_s)


def test_a_hub_is_drawn_once_a_visit_and_not_at_each_study() -> None:
    inputs = inputs_of([5.0] * 30, visits=2)
    one = study(inputs).hubs.drawn_per_s
    later = study(replace(inputs, now_s=NOW + 60.0)).hubs.drawn_per_s
    assert np.array_equal(one, later)
    count = inputs.visits.count.copy()
    count[4] += 1
    visited = study(replace(inputs, visits=replace(inputs.visits, count=count))).hubs.drawn_per_s
    assert np.flatnonzero(visited != one).tolist() == [4]


def test_what_one_hub_says_of_itself_moves_no_other() -> None:
    plain = inputs_of([2.0] * 31, visits=2)
    said = np.zeros(31)
    said[0] = 365 * DAY_S
    alone, told = study(plain).hubs, study(replace(plain, period_s=said)).hubs
    assert np.array_equal(alone.rate_per_s[1:], told.rate_per_s[1:])
    monthly = study(replace(plain, period_s=np.where(said > 0, 30 * DAY_S, 0.0))).hubs
    assert told.rate_per_s[0] == monthly.rate_per_s[0] < alone.rate_per_s[0]  # no less than once a month is believed
    at_once, soon = (
        study(replace(plain, period_s=np.where(said > 0, period, 0.0))).hubs.rate_per_s[0] for period in (1.0, 300.0)
    )
    assert at_once == soon > alone.rate_per_s[0]


def busy_by_day(now_s: float) -> HubInputs:
    """Forty hubs, visited each hour for three weeks, that announce by day only."""
    count, visits = 40, 21 * 24
    rng = np.random.default_rng(8)
    hub = np.tile(np.arange(count), visits)
    at = now_s // HOUR_S * HOUR_S - HOUR_S * (visits - np.repeat(np.arange(visits), count)).astype(np.float64)
    by_day = (at - 1.0) // HOUR_S % 24 >= 12
    found = rng.poisson(np.where(by_day, 0.5, 0.02)).astype(np.float64)
    nothing = np.zeros(len(hub), np.bool_)
    made = HubVisits(np.full(count, visits + 1), hub, at, np.full(len(hub), HOUR_S), found, nothing)
    return replace(inputs_of([5.0] * count), now_s=now_s, visits=made)


def test_busy_hours_have_more_visits_and_quiet_ones_fewer() -> None:
    midnight = NOW // DAY_S * DAY_S
    often, shapes = [], []
    for hour in range(24):
        found = study(busy_by_day(midnight + hour * HOUR_S))
        assert (found.hubs.interval_s <= found.longest_s * 1.0001).all()
        often.append(float((1.0 / found.hubs.interval_s.astype(float)).sum()) / found.budget_per_s)
        shapes.append(found.hubs)
        assert found.info["spent"] == pytest.approx(found.budget_per_s, rel=1e-3)
    quiet, busy = np.mean(often[2:11]), np.mean(often[14:23])
    assert busy > 1.2
    assert quiet < 0.6
    assert 0.75 < np.mean(often) < 1.0  # frequencies go by the root of the hour's factor
    hubs = shapes[16]
    priced = hubs.shape == Shape.SATURATING
    assert priced.any()
    x = hubs.bid_rate_per_s[priced].astype(float) * hubs.interval_s[priced]
    assert hubs.amplitude[priced] * (-np.expm1(-x) - x * np.exp(-x)) == pytest.approx(1.0, rel=1e-3)  # as it is shown


def test_an_hour_as_others_changes_nothing_and_one_without_news_starves_nobody() -> None:
    inputs = inputs_of([1.0] * 4)
    rates, decay = np.array([100.0, 30.0, 10.0, 0.001]) / DAY_S, np.full(4, 1.0 / DAY_S)
    cleared = clear_hubs(inputs, PLAN, rates, np.ones(4), decay, 3 * DAY_S)
    same = follow_hour(cleared, 1.0, PLAN.shortest_s, 3 * DAY_S)
    assert same.interval_s == pytest.approx(cleared.interval_s, rel=1e-4)
    assert same.shape.tolist() == cleared.shape.tolist()
    dead = follow_hour(cleared, 1e-9, PLAN.shortest_s, 3 * DAY_S)
    assert dead.interval_s.tolist() == [3 * DAY_S] * 4
    assert dead.amplitude.tolist() == [1.0] * 4
    assert dead.rate_per_s == pytest.approx(1.0 / (3 * DAY_S))
    hectic = follow_hour(cleared, 1e9, PLAN.shortest_s, 3 * DAY_S)
    assert hectic.interval_s.tolist() == [PLAN.shortest_s] * 3 + [3 * DAY_S]


def test_missed_pages_are_those_that_the_rate_promised_and_nobody_saw() -> None:
    inputs = inputs_of([24.0, 24.0], visits=20)
    turned = inputs.visits.turned.copy()
    turned[-2] = True  # the last visit of the first hub
    found = inputs.visits.found.copy()
    found[-2] = 2.0
    hubs = study(replace(inputs, visits=replace(inputs.visits, turned=turned, found=found))).hubs
    assert hubs.turned.tolist() == [1, 0]
    assert hubs.missed[0] == pytest.approx(float(hubs.rate_per_s[0]) * 6 * HOUR_S - 2.0, rel=1e-4)
    assert hubs.missed[1] == 0


def test_few_hubs_cover_most_pages() -> None:
    inputs = replace(inputs_of([10.0] * 5), link_hub=np.r_[np.zeros(85), np.arange(15) % 5].astype(np.int64))
    found = study(replace(inputs, link_page=np.arange(100)))
    assert found.cover_hub.tolist() == [0]
    assert found.cover_share[0] == pytest.approx(0.88)
    assert found.info["announced"] == 100


def test_announced_pages_on_the_frontier_are_remembered() -> None:
    inputs = with_clicks(inputs_of([10.0, 10.0]), [1.0, 1.0], [DAY_S, DAY_S], 20)
    is_new = np.arange(len(inputs.announced.row)) % 3 == 0
    found = study(replace(inputs, announced=replace(inputs.announced, is_new=is_new)))
    assert found.page_row.tolist() == inputs.announced.row[is_new].tolist()
    assert found.page_hub.tolist() == inputs.announced.hub[is_new].tolist()


def test_a_crawl_without_hubs_is_studied_too() -> None:
    found = study(inputs_of([]))
    assert len(found.hubs) == 0
    assert found.longest_s == PLAN.longest_s
    assert np.isfinite([found.price, found.mean_profit]).all()


# -- the market of visits


def clear_again(inputs: HubInputs, found: HubStudy, plan: HubPlan) -> Clearing:
    """Over all hours, where the study tells of the present one."""
    rate, decay = (column.astype(float) for column in (found.hubs.drawn_per_s, found.hubs.decay_per_s))
    return clear_hubs(inputs, plan, rate, np.ones(len(rate)), decay, found.longest_s)


@settings(max_examples=60, deadline=None)
@given(
    rates=st.lists(st.floats(0.01, 500.0), min_size=1, max_size=30),
    explore=st.floats(0.01, 0.9),
    seed=st.integers(0, 2**32),
)
def test_the_budget_is_spent_and_the_bounds_hold(rates: list[float], explore: float, seed: int) -> None:
    inputs = inputs_of(rates, visits=3, seed=seed)
    plan = replace(PLAN, explore=explore)
    found = study(inputs, plan=plan)
    interval = found.hubs.interval_s.astype(float)
    assert (interval >= plan.shortest_s * 0.999).all()
    assert (interval <= found.longest_s * 1.001).all()
    assert float((1.0 / clear_again(inputs, found, plan).interval_s).sum()) == pytest.approx(
        found.budget_per_s, rel=5e-3
    )
    fresh = found.hubs.shape == Shape.SATURATING
    x = found.hubs.bid_rate_per_s[fresh].astype(float) * interval[fresh]
    value = found.hubs.amplitude[fresh] * (-np.expm1(-x) - x * np.exp(-x))
    assert value == pytest.approx(np.ones(fresh.sum()), rel=1e-3)  # due at 1


def test_without_bounds_it_is_the_best_schedule_for_visits() -> None:
    rates = np.array([100.0, 30.0, 10.0, 3.0]) / DAY_S
    inputs = inputs_of([1.0] * 4)
    profit, decay = np.array([1.0, 2.0, 0.5, 1.0]), np.full(4, 1.0 / DAY_S)
    cleared = clear_hubs(inputs, replace(PLAN, shortest_s=1.0), rates, profit, decay, 1e9)
    best = share_budget(poisson_amplitude(profit, decay, rates), decay, np.zeros(4), float(inputs.usual_per_s.sum()))
    assert cleared.interval_s == pytest.approx(best.interval_s, rel=1e-3)
    assert cleared.price == pytest.approx(best.price, rel=1e-3)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), pages=st.integers(1, 30))
def test_visits_that_refreshes_make_anyway_count(seed: int, pages: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = inputs_of(rng.exponential(20.0, pages + 5).tolist(), visits=3, seed=seed)
    is_page = np.arange(pages + 5) < pages
    weekly, hourly = 1.0 / (7 * DAY_S), 1.0 / (6 * HOUR_S)
    inputs = replace(
        inputs,
        usual_per_s=np.where(is_page, weekly, hourly),
        refreshed_per_s=np.where(is_page, weekly, 0.0),
    )
    found = study(inputs)
    often = 1.0 / clear_again(inputs, found, PLAN).interval_s
    spent = float(np.maximum(often, np.where(is_page, weekly, 0.0)).sum())
    assert found.budget_per_s == pytest.approx(5 * hourly + pages * weekly)
    assert spent == pytest.approx(found.budget_per_s, rel=0.03)


def test_where_pages_cost_more_than_they_gain_their_hub_waits_longest() -> None:
    rates, decay = np.full(3, 20.0 / DAY_S), np.full(3, 1.0 / DAY_S)
    profit = np.array([5.0, 5.0, 1.0])
    longest = 10 * DAY_S
    free, dear = (
        clear_hubs(replace(inputs_of([1.0] * 3), page_price=price), PLAN, rates, profit, decay, longest)
        for price in (0.0, 1.0)
    )
    assert free.interval_s[2] < longest / 4
    assert dear.interval_s[2] == pytest.approx(longest)
    assert dear.interval_s[0] < free.interval_s[0]  # what is saved goes to the others
