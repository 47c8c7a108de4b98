"""Policies on one budget: what they take, and what they may know."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.holistic_toy import FRESH, LINKED, MAIN, SEED, hand_made, small_world

from bowerbird.appraise.hubs.due import values_at
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_policies import (
    AUTO,
    BREADTH_FIRST,
    CLAIRVOYANT,
    NOTHING,
    NUTCH,
    Bidding,
    Shares,
    best,
    make_chooser,
    quota_names,
)
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_studies import Pace, make_studies
from bowerbird.lab.holistic_world import HOUR_S, START_S
from bowerbird.model.errors import PolicyError
from bowerbird.model.url_state import UrlKind


@pytest.fixture(scope="module")
def warm() -> HolisticCrawl:
    return warm_up(small_world(), 0)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.integers(0, 50))
def test_the_best_are_the_best(values: list[float], count: int) -> None:
    column = np.array(values)
    taken = best(column, np.arange(len(values)), count)
    assert len(taken) == min(count, len(values))
    assert sorted(column[taken].tolist(), reverse=True) == sorted(values, reverse=True)[: len(taken)]
    assert column[taken].tolist() == sorted(column[taken].tolist(), reverse=True)


@given(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: sum(pair) <= 5),
    st.lists(st.integers(0, 9), min_size=30, max_size=60),
)
def test_shares_add_up_over_time(parts: tuple[int, int], steps: list[int]) -> None:
    shares = (parts[0] / 5, parts[1] / 5, (5 - sum(parts)) / 5)
    split = Shares(shares)
    given_ = np.array([split.split(step, np.full(3, 1000)) for step in steps])
    assert given_.sum(axis=1).tolist() == steps
    assert np.all(given_ >= 0)
    assert np.all(np.abs(given_.sum(axis=0) - np.array(shares) * sum(steps)) <= 4)
    assert not given_[:, np.array(shares) == 0].any()


def test_what_a_kind_cannot_use_goes_to_the_others() -> None:
    split = Shares((0.0, 1.0, 0.0))
    assert split.split(10, np.array([20, 3, 20])).sum() == 10
    assert Shares((0.5, 0.5, 0.0)).split(10, np.array([2, 1, 0])).tolist() == [2, 1, 0]


def test_an_unknown_policy_is_named_with_those_that_are_known() -> None:
    with pytest.raises(PolicyError, match=r"no policy 'quota-1-2-97'. Known: auto, .*quota-100-0-0"):
        make_chooser("quota-1-2-97")


def test_a_page_that_is_a_hub_is_fetched_for_what_gains_more(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    n = crawl.count
    hubs = np.flatnonzero(crawl.is_hub[:n] & (crawl.columns.kind[:n] == UrlKind.PAGE) & (crawl.columns.fetches[:n] > 0))
    crawl.recent_clicks[hubs[::2]] = 500.0  # what a main page has at stake itself
    chooser = Bidding(None)
    chooser.study(crawl, 0)
    choice = chooser.choose(crawl, n)
    assert chooser.policy is not None
    assert chooser.snapshot is not None
    assert choice.kinds is not None
    scaled = chooser.policy.in_units(chooser.snapshot)
    places = np.flatnonzero(np.isin(choice.rows, hubs))
    rows = choice.rows[places]
    visit, refresh = (
        values_at(one.appraise(scaled, rows), crawl.now) for one in (chooser.policy.hubs, chooser.policy.refresh)
    )
    expected = np.where(visit > refresh, int(Kind.HUB), int(Kind.REFRESH))
    assert choice.kinds[places].tolist() == expected.tolist()
    assert {*expected.tolist()} == {Kind.HUB, Kind.REFRESH}


def test_auto_takes_the_best_bids_of_all_kinds(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    chooser = Bidding(None)
    chooser.study(crawl, 0)
    values = chooser.values(crawl)
    choice = chooser.choose(crawl, 12)
    bidding = ~np.isnan(choice.bids)
    assert len(choice.rows) == 12
    assert choice.bids[bidding] == pytest.approx(values[choice.rows[bidding]])
    left = np.setdiff1d(np.arange(crawl.count), choice.rows)
    assert choice.price >= values[left].max() - 1e-9
    assert choice.price == np.nanmin(choice.bids)


def test_bids_that_were_kept_are_those_that_would_be_made(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    chooser = Bidding(None)
    chooser.study(crawl, 0)
    chooser.values(crawl)
    for row in chooser.choose(crawl, 10).rows.tolist():
        crawl.fetch(row)
    kept = chooser.values(crawl)
    chooser.renewed = True
    assert chooser.values(crawl) == pytest.approx(kept)


def test_quotas_spend_their_shares(warm: HolisticCrawl) -> None:
    done = replay(warm, "quota-40-20-40", 40.0, 0)
    spent = done.spent.sum(axis=0) / done.fetches
    assert spent[Kind.REFRESH] == pytest.approx(0.2, abs=0.03)
    assert spent[Kind.HUB] == pytest.approx(0.4, abs=0.03)
    assert len(quota_names()) == len(set(quota_names())) == 21


@pytest.mark.parametrize("policy", [AUTO, BREADTH_FIRST, NUTCH, CLAIRVOYANT, "quota-60-20-20"])
def test_a_replay_can_be_repeated_and_leaves_the_warm_crawl_alone(warm: HolisticCrawl, policy: str) -> None:
    before = (warm.count, warm.now, float(warm.clicks.sum()))
    one, same = replay(warm, policy, 10.0, 0), replay(warm, policy, 10.0, 0)
    assert np.array_equal(one.clicks, same.clicks)
    assert np.array_equal(one.spent, same.spent)
    assert (warm.count, warm.now, float(warm.clicks.sum())) == before
    steps = warm.world.steps - warm.world.warm_steps
    assert one.fetches <= steps * warm.world.fetches_per_step(10.0) + 1e-6
    assert np.all(one.quality <= 1.0 + 1e-9)


def test_more_is_gained_with_more_and_by_the_truth(warm: HolisticCrawl) -> None:
    idle = replay(warm, NOTHING, 10.0, 0).clicks.sum()
    gained = {name: replay(warm, name, 10.0, 0).clicks.sum() - idle for name in (AUTO, BREADTH_FIRST, CLAIRVOYANT)}
    assert gained[CLAIRVOYANT] > gained[AUTO] > gained[BREADTH_FIRST] > 0
    assert replay(warm, AUTO, 40.0, 0).clicks.sum() - idle > gained[AUTO]


def test_studies_know_nothing_that_was_not_seen(warm: HolisticCrawl) -> None:
    """A world in which all that the crawl has not seen is another leads to the same bids."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    world = copy.deepcopy(warm.world)
    seen = np.zeros(world.count, np.bool_)
    seen[crawl.page[: crawl.count]] = True
    world.base_per_s[:] *= 7.0
    world.profit[:] *= 3.0
    world.decay_per_s[:] *= 2.0
    world.change_rate_per_s[:] = 1.0
    world.change_loss[:] = 0.9
    other = copy.deepcopy(warm, {id(warm.world): world})
    one, two = (make_studies(each, Pace(), 0.0, None, 0) for each in (crawl, other))
    assert np.array_equal(one.frontier.worth, two.frontier.worth, equal_nan=True)
    assert np.array_equal(one.refresh.amplitude, two.refresh.amplitude, equal_nan=True)
    assert np.array_equal(one.hubs.hubs.amplitude, two.hubs.hubs.amplitude)


def test_breadth_first_and_nutch_have_their_orders() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    for page in (MAIN, SEED):
        crawl.fetch(int(crawl.row_of[page]))
    crawl.now = START_S + 3 * HOUR_S
    crawl.fetch(int(crawl.row_of[MAIN]))
    crawl.now = START_S + 4 * HOUR_S
    # LINKED was found first; of known URLs SEED is the oldest
    taken = make_chooser(BREADTH_FIRST).choose(crawl, 2).rows
    assert [int(crawl.page[row]) for row in taken] == [LINKED, SEED]
    due = make_chooser(NUTCH).choose(crawl, 9).rows
    assert {int(crawl.page[row]) for row in due} == {LINKED, FRESH}  # known ones are not due for 30 days


def test_clairvoyant_goes_where_the_clicks_are() -> None:
    crawl = HolisticCrawl(hand_made([(0.5, SEED, 0.9)]), 0)
    for page in (MAIN, SEED):
        crawl.fetch(int(crawl.row_of[page]))
    for _ in range(4):
        crawl.pass_step()
    taken = make_chooser(CLAIRVOYANT).choose(crawl, 3)
    assert [int(crawl.page[row]) for row in taken.rows] == [LINKED, SEED, MAIN]
    assert taken.bids[0] == pytest.approx(crawl.world.clicks_left(np.array([LINKED]), crawl.now)[0])
