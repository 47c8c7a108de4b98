"""Policies on one budget: what they take, and what they may know."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.holistic_toy import FRESH, LINKED, MAIN, SEED, hand_made, small_world

from bowerbird.appraise.budget.decisions import Group
from bowerbird.appraise.hubs.due import values_at
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_policies import (
    AUTO,
    BREADTH_FIRST,
    CLAIRVOYANT,
    NOTHING,
    NUTCH,
    UNWATCHED,
    Bidding,
    make_chooser,
    quota_names,
)
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_sharing import OneOrder, Shares, best
from bowerbird.lab.holistic_studies import Pace, make_studies
from bowerbird.lab.holistic_world import F64, HOUR_S, I64, START_S
from bowerbird.model.errors import PolicyError
from bowerbird.model.factors import Factors
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
    chooser = Bidding(OneOrder())
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
    chooser = Bidding(OneOrder())
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
    chooser = Bidding(OneOrder())
    chooser.study(crawl, 0)
    chooser.values(crawl)
    for row in chooser.choose(crawl, 10).rows.tolist():
        crawl.fetch(row)
    kept = chooser.values(crawl)
    chooser.renewed = True
    assert chooser.values(crawl) == pytest.approx(kept)


def test_a_split_bids_what_auto_bids(warm: HolisticCrawl) -> None:
    """In the same state and at the same price for a new page: hubs net of it, kinds corrected, all that bids."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    choosers = [make_chooser(name) for name in (AUTO, "quota-60-20-20", UNWATCHED)]
    gross: list[F64] = []
    net: list[F64] = []
    for chooser in choosers:
        assert isinstance(chooser, Bidding)
        chooser.study(crawl, 0)
        if chooser.watcher is not None:
            chooser.watcher.factors = Factors(new=0.5, announced=2.0, refresh=0.8, hub=1.5)
        gross.append(chooser.values(crawl))
        chooser.price = float(np.quantile(gross[0][gross[0] > 0], 0.9))
        net.append(chooser.values(crawl))
    assert np.array_equal(gross[0], gross[1])
    assert np.array_equal(net[0], net[1])
    hubs = crawl.is_hub[: crawl.count] & (crawl.columns.fetches[: crawl.count] > 0)
    assert (net[1][hubs] < gross[1][hubs]).any()
    assert not np.allclose(net[0], net[2])  # that of a policy that does not correct


def test_a_new_page_costs_a_split_the_last_one_that_its_share_took(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    rng = np.random.default_rng(1)
    values = rng.random(crawl.count)
    rows, kinds = np.arange(crawl.count), crawl.kinds()
    shared = Shares((0.5, 0.25, 0.25)).share(values, rows, kinds, 12)
    assert [len(part) for part in shared.parts] == [6, 3, 3]
    assert shared.price == np.sort(values[kinds == Kind.NEW])[-6]
    assert Shares((0.0, 0.5, 0.5)).share(values, rows, kinds, 12).price is None  # none was taken: as it was
    few = np.concatenate([rows[kinds == Kind.NEW][:4], rows[kinds != Kind.NEW]])
    assert Shares((0.5, 0.25, 0.25)).share(values, few, kinds[few], 12).price == 0.0  # all are taken: they cost nothing
    assert OneOrder().share(values, rows, kinds, 12).price == np.sort(values)[-12]


def test_what_each_share_takes_last_is_at_its_margin(warm: HolisticCrawl) -> None:
    """The watch looks at fetches near the price, and each share of a split has its own."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    split = Bidding(Shares((0.4, 0.4, 0.2)))
    split.study(crawl, 0)
    assert split.watcher is not None
    choice = split.choose(crawl, 30)
    assert choice.kinds is not None
    made = split.watcher.decisions
    for kind, noted in ((Kind.NEW, made[Group.NEW] + made[Group.ANNOUNCED]), (Kind.REFRESH, made[Group.REFRESH])):
        assert min(one.prices for one in noted) == pytest.approx(1.0)
        bids = {one.row: one.prices for one in noted}
        mine = [place for place, row in enumerate(choice.rows.tolist()) if row in bids]
        assert {Kind(nth) for nth in choice.kinds[mine]} == {kind}
        least = min(choice.bids[mine])
        assert [bids[row] for row in choice.rows[mine].tolist()] == pytest.approx(choice.bids[mine] / least)


def test_quotas_spend_their_shares(warm: HolisticCrawl) -> None:
    spent = np.zeros(3)

    class Counted(Shares):
        def split(self, fetches: int, able: I64) -> I64:
            given = super().split(fetches, able)
            spent[:] += given
            return given

    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    split = Bidding(Counted((0.6, 0.2, 0.2)))
    for step in range(30):
        if step % 10 == 0:
            split.study(crawl, 0)
        for row in split.choose(crawl, 4).rows.tolist():
            crawl.fetch(row)
        crawl.pass_step()
    assert spent / spent.sum() == pytest.approx([0.6, 0.2, 0.2], abs=0.03)
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
