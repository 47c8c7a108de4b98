"""Bids by a study of hubs: hubs themselves, pages that are hubs, and the new pages that hubs announced."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.hub_studies import DAY_S, hub_columns, hub_study, snapshot_with_hubs
from tests.appraise.snapshots import NOW, snapshot_of

from bowerbird.appraise.hubs.due import due_times, values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.hubs.studied import LARGEST_LIFT, StudiedHubs
from bowerbird.appraise.policy import HUB_STUDIED, HUBS, RefreshSettings, make_policy
from bowerbird.model.bid import Bid, Bids, Shape, saturating_gain, saturating_gain_inverse
from bowerbird.model.hub_study import HubKind
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState

ECHO = StudiedHubs("echo")
EVERY = (UrlState.NEW, *REVISITED)
seeds, sizes = st.integers(0, 2**32), st.integers(1, 60)


def with_study(snapshot: Snapshot, **values: object) -> Snapshot:
    hubs = values.pop("hubs", hub_columns(1))
    return replace(snapshot, hub_study=hub_study(hubs, len(snapshot.pages), **values))  # type: ignore[arg-type]


def visited(ages_s: list[float], kind: UrlKind = UrlKind.FEED) -> Snapshot:
    return snapshot_of(state=UrlState.FETCHED, kind=kind, last_fetched=NOW - np.array(ages_s), fetches=3)


# -- hubs


def test_a_hub_bids_what_its_study_says_since_its_last_visit() -> None:
    snapshot = with_study(visited([0.2 * DAY_S]))
    bid = ECHO.appraise(snapshot, np.arange(1)).bid(0)
    assert bid.shape is Shape.SATURATING
    assert bid.value(NOW) == pytest.approx(20.0 * saturating_gain(0.2), rel=1e-5)
    due = bid.reaches(1.0, NOW)
    assert due == pytest.approx(NOW - 0.2 * DAY_S + saturating_gain_inverse(1 / 20) * DAY_S, abs=5.0)


def test_an_overdue_hub_is_not_starved_by_pages_that_bid_more_than_it_can_gain() -> None:
    hubs = hub_columns(2, amplitude=[1.05, 20.0], interval_s=[4.0 * DAY_S, 0.35 * DAY_S])
    bids = ECHO.appraise(with_study(visited([40 * DAY_S, 0.4 * DAY_S]), hubs=hubs), np.arange(2))
    assert bids.bid(0).value(NOW) == pytest.approx(10.0, rel=1e-5)  # age/interval, where its gain is 1.05 at most
    assert bids.bid(1).shape is Shape.SATURATING


def test_a_hub_waits_four_times_its_interval_at_most_for_the_best_of_new_pages() -> None:
    """New pages that bid 1 before, of a hub whose pages have fifty times the mean profit, found this moment."""
    snapshot = new_pages([0.0], hubs=hub_columns(1, profit=50.0, amplitude=1.05, interval_s=DAY_S))
    best = float(ECHO.freshen(snapshot, np.array([1]), Bids.build([1.0])).amplitude[0])
    last = snapshot.pages.last_fetched.copy()
    last[0] = NOW - 4.01 * DAY_S
    late = replace(snapshot, pages=replace(snapshot.pages, last_fetched=last))
    assert 2.0 < best < ECHO.appraise(late, np.array([0])).bid(0).value(NOW)


def test_without_a_study_and_for_hubs_found_since_it_bids_as_hub_interval_does() -> None:
    plain = HubInterval()
    for snapshot in (visited([3600.0, 7200.0]), with_study(visited([3600.0, 7200.0]), method="another")):
        bids, expected = ECHO.appraise(snapshot, np.arange(2)), plain.appraise(snapshot, np.arange(2))
        assert np.array_equal(bids.rate, expected.rate)
        assert bids.terms["basis"].tolist() == ["hub-interval, until a study"] * 2
        assert "no study of hubs yet" in ECHO.explain(snapshot, 0).note
    snapshot = with_study(visited([3600.0, 7200.0]))
    bids = ECHO.appraise(snapshot, np.arange(2))
    assert bids.terms["basis"].tolist() == ["study", "hub-interval, until a study"]
    assert bids.bid(1) == plain.appraise(snapshot, np.arange(2)).bid(1)
    assert "not in the last study" in ECHO.explain(snapshot, 1).note


def test_a_hub_that_is_gone_is_tried_again_as_seldom_as_ever() -> None:
    snapshot = with_study(snapshot_of(state=UrlState.GONE, kind=UrlKind.FEED, last_fetched=NOW - DAY_S, fetches=3))
    assert ECHO.appraise(snapshot, np.arange(1)).bid(0) == HubInterval().appraise(snapshot, np.arange(1)).bid(0)


def test_explain_tells_rate_profit_decay_interval_and_due_time() -> None:
    hubs = hub_columns(1, turned=2, missed=7.0, period_s=3600.0, drawn_per_s=30 / DAY_S, decay_per_s=0.5 / DAY_S)
    tree = ECHO.explain(with_study(visited([0.1 * DAY_S]), hubs=hubs), 0)
    parts = {term.name: term for term in tree.children}
    assert parts["new_pages_per_day"].value == pytest.approx(10.0, rel=1e-6)
    assert "10 first found there on 4 visits after the first" in parts["new_pages_per_day"].note
    assert "updated every 60.0 minutes" in parts["new_pages_per_day"].note
    assert parts["new_pages_per_day"].children[0].value == pytest.approx(30.0, rel=1e-6)
    assert parts["clicks_per_new_page"].value == 1.0
    assert "the same for all hubs" in parts["clicks_per_new_page"].note
    assert parts["decay_per_day"].value == pytest.approx(0.5, rel=1e-6)
    assert "after 33.3 hours" in parts["decay_per_day"].note
    assert parts["interval_s"].value == pytest.approx(0.35 * DAY_S, rel=1e-6)
    assert parts["missed_pages"].value == 7.0
    assert "on 2 visits nothing" in parts["missed_pages"].note
    assert str(parts["due"].value).startswith("20")
    assert "kind" in parts
    assert json.dumps(tree.as_dict())


@settings(max_examples=40, deadline=None)
@given(seed=seeds, count=sizes)
def test_bids_of_hubs_keep_the_rules_of_all_appraisers(seed: int, count: int) -> None:
    snapshot = snapshot_with_hubs(seed, count, EVERY, (UrlKind.FEED, UrlKind.SITEMAP))
    rows = np.arange(count)
    bids = ECHO.appraise(snapshot, rows)
    assert np.isfinite(bids.amplitude).all()
    assert (bids.amplitude >= 0).all()
    assert (bids.rate >= 0).all()
    for row in range(count):
        one = ECHO.appraise(snapshot, np.array([row])).bid(0)
        assert one == bids.bid(row)
        assert ECHO.explain(snapshot, row).value == pytest.approx(one.value(NOW), rel=1e-6)


# -- policies with them


@settings(max_examples=60, deadline=None)
@given(
    seed=seeds, count=sizes, name=st.sampled_from(["breadth-first+fixed", "rw-eg+user-centric", "in-degree+adaptive"])
)
def test_a_policy_explains_each_bid_and_names_its_bidder(seed: int, count: int, name: str) -> None:
    policy = make_policy(f"{name}+echo")
    snapshot = snapshot_with_hubs(seed, count, tuple(UrlState), tuple(UrlKind))
    bids = policy.appraise(snapshot, np.arange(count))
    told = policy.terms(snapshot, np.arange(count))
    bidders = policy.bidders(snapshot, np.arange(count))
    for row in range(count):
        bid, tree = bids.bid(row), policy.explain(snapshot, row)
        assert policy.appraise(snapshot, np.array([row])).bid(0) == bid
        assert tree.value == pytest.approx(bid.value(NOW), rel=1e-5)
        bidder = bidders[row]
        if bidder is None:
            assert (told[row], bid.amplitude) == ("{}", 0.0)
        else:
            assert json.loads(told[row])["by"] == bidder.name
            kind = policy.fetch_kind(snapshot.pages.state[row], snapshot.pages.kind[row], told[row])
            assert (kind is FetchKind.HUB) == (bidder is policy.hubs)
            assert (kind is FetchKind.NEW) == (bidder is policy.frontier)
            assert f"by {bidder.name}" in tree.note


def test_a_page_that_is_a_hub_takes_the_bid_that_is_due_first() -> None:
    policy = make_policy("breadth-first+fixed+echo", RefreshSettings(interval_s=0.5 * DAY_S))
    ages = [0.2 * DAY_S, 0.2 * DAY_S, 0.2 * DAY_S]
    hubs = hub_columns(2, kind=HubKind.LISTING, amplitude=[20.0, 1.01], interval_s=[0.35 * DAY_S, 9 * DAY_S])
    snapshot = with_study(visited(ages, UrlKind.PAGE), hubs=hubs)
    rows = np.arange(3)
    assert [bidder.name for bidder in policy.bidders(snapshot, rows) if bidder] == ["echo", "fixed", "fixed"]
    bids = policy.appraise(snapshot, rows)
    assert bids.bid(0) == ECHO.appraise(snapshot, rows).bid(0)
    assert bids.bid(1) == policy.refresh.appraise(snapshot, rows).bid(1)
    tree = policy.explain(snapshot, 1)
    assert tree.note == "by fixed, which is due first"
    assert tree.children[1].name == "its bid as a hub"
    assert "new_pages_per_day" in str(tree.as_dict())
    assert policy.explain(snapshot, 0).children[1].name == "its bid as a page to refresh"
    assert len(policy.explain(snapshot, 2).children) == 1


def test_of_two_that_are_due_the_higher_bid_counts() -> None:
    hubs = hub_columns(2, amplitude=[20.0, 2.0])
    snapshot = with_study(visited([2 * DAY_S, 2 * DAY_S], UrlKind.PAGE), hubs=hubs)
    policy = make_policy("breadth-first+fixed+echo", RefreshSettings(interval_s=0.25 * DAY_S))
    # refresh bids 8; the first hub 20·g(2) = 11.9, the second age/interval = 5.7
    assert [bidder.name for bidder in policy.bidders(snapshot, np.arange(2)) if bidder] == ["echo", "fixed"]


def test_hubs_are_the_third_part_of_a_policys_name() -> None:
    assert make_policy("rw-eg+user-centric+echo").studied == ("rw-eg", "user-centric", "echo")
    assert make_policy("echo").name == "breadth-first+adaptive+echo"
    assert make_policy("echo+fixed").name == "breadth-first+fixed+echo"
    assert make_policy("fixed", base="echo").name == "breadth-first+fixed+echo"
    assert make_policy("hub-interval", base="rw+echo").name == "rw+adaptive"
    assert make_policy("rw").hubs.name == "hub-interval"
    assert list(HUBS) == ["hub-interval", *HUB_STUDIED]


# -- new pages


def new_pages(ages_s: list[float], **values: object) -> Snapshot:
    """New pages, all announced by the hub in row 0, which is the first row."""
    count = len(ages_s) + 1
    snapshot = snapshot_of(
        state=[UrlState.FETCHED, *[UrlState.NEW] * (count - 1)],
        first_seen=NOW - np.array([1e6, *ages_s]),
        last_fetched=[NOW - 60.0, *[0.0] * (count - 1)],
        source=[-1, *[0] * (count - 1)],
        depth=1,
    )
    page_row = np.arange(1, count)
    return with_study(snapshot, page_row=page_row, page_hub=np.zeros(count - 1, np.int64), **values)


def test_what_a_hub_announced_bids_more_and_fades_to_the_bid_of_any_new_page() -> None:
    policy, plain = make_policy("breadth-first+fixed+echo"), make_policy("breadth-first+fixed")
    snapshot = new_pages([0.0, 0.5 * DAY_S, 3 * DAY_S])
    rows = np.arange(1, 4)
    bids, usual = policy.appraise(snapshot, rows), plain.appraise(snapshot, rows)
    base = float(usual.amplitude[0])
    assert bids.bid(0).value(NOW) == pytest.approx(2 * base, rel=1e-5)
    assert bids.bid(1).value(NOW) == pytest.approx(2 * base * math.exp(-0.5), rel=1e-3)
    assert bids.bid(2) == usual.bid(2)  # exp(-3)·2 < 1: it counts as any other
    tree = policy.explain(snapshot, 2)
    assert "announced by" in str(tree.as_dict())
    assert [child.page for child in tree.children[0].children if child.page is not None] == [0]
    terms = [json.loads(text) for text in policy.terms(snapshot, rows)]
    assert terms[0]["announced"] == 2.0
    assert terms[0]["half_life_s"] == pytest.approx(math.log(2) * DAY_S, rel=1e-5)


def test_the_profit_of_its_hub_is_in_that_of_the_mean_new_page() -> None:
    policy = make_policy("breadth-first+fixed+echo")
    for profit, mean, factor in ((6.0, 2.0, 4.0), (0.0, 2.0, 1.0), (1e9, 1.0, 1.0 + LARGEST_LIFT)):
        snapshot = new_pages([0.0], hubs=hub_columns(1, profit=profit), mean_profit=mean)
        base = float(make_policy("breadth-first+fixed").appraise(snapshot, np.array([1])).amplitude[0])
        assert policy.appraise(snapshot, np.array([1])).bid(0).value(NOW) == pytest.approx(factor * base, rel=1e-5)


def test_a_page_that_promises_more_than_others_of_its_hub_bids_more() -> None:
    policy = make_policy("breadth-first+fixed+echo")
    snapshot = new_pages([0.0, 0.0], page_factor=np.array([3.0, 0.5], np.float32))
    base = float(make_policy("breadth-first+fixed").appraise(snapshot, np.array([1])).amplitude[0])
    bids = policy.appraise(snapshot, np.array([1, 2]))
    assert [bids.bid(k).value(NOW) / base for k in (0, 1)] == pytest.approx([4.0, 1.5], rel=1e-5)
    assert "own factor" in str(policy.explain(snapshot, 1).as_dict())


def test_pages_found_since_the_study_are_known_by_what_led_to_them() -> None:
    snapshot = new_pages([5.0, 5.0, 5.0])
    study = snapshot.hub_study
    assert study is not None
    study = replace(study, count=2, page_row=np.array([1]), page_hub=np.array([0]), page_factor=np.ones(1, np.float32))
    source = np.array([-1, 0, 0, 2], dtype=np.int32)
    hub = study.announced(np.arange(1, 4), source[1:])
    assert hub.tolist() == [0, 0, -1]  # in the study; since, by the hub; since, by another page
    old = replace(study, page_row=np.zeros(0, np.int64), page_hub=np.zeros(0, np.int64))
    assert old.announced(np.arange(1, 4), source[1:]).tolist() == [-1, 0, -1]


def test_pages_behind_a_redirect_found_since_the_study_are_known_by_the_hub_too() -> None:
    snapshot = new_pages([5.0, 5.0, 5.0, 5.0])
    study = snapshot.hub_study
    assert study is not None
    nothing = np.zeros(0, np.int64)
    study = replace(study, count=1, page_row=nothing, page_hub=nothing, page_factor=np.zeros(0, np.float32))
    moved = UrlState.REDIRECT
    pages = replace(
        snapshot.pages,
        state=np.array([UrlState.FETCHED, moved, moved, UrlState.NEW, UrlState.NEW], np.uint8),
        source=np.array([-1, 0, 1, 2, -1], np.int32),  # the hub, what it links to, where that leads, and from there
    )
    lift = ECHO.lift(replace(snapshot, hub_study=study, pages=pages), np.array([3, 4]))
    assert lift is not None
    assert lift.place.tolist() == [0]
    assert pages.source.tolist() == [-1, 0, 1, 2, -1]


# -- due times of columns

bids_of = st.builds(
    Bid,
    st.floats(0.0, 100.0, width=32),
    st.floats(0.0, 1.0, width=32),
    st.floats(NOW - 1e6, NOW + 1e3),
    st.sampled_from(list(Shape)),
)


@given(made=st.lists(bids_of, min_size=1, max_size=20), price=st.floats(0.01, 50.0))
def test_due_times_are_those_of_single_bids(made: list[Bid], price: float) -> None:
    columns = Bids(
        np.array([bid.amplitude for bid in made], np.float32),
        np.array([bid.rate for bid in made], np.float32),
        np.array([bid.since for bid in made]),
        np.array([int(bid.shape) for bid in made], np.uint8),
    )
    assert values_at(columns, NOW) == pytest.approx([bid.value(NOW) for bid in made], rel=1e-12, abs=1e-300)
    expected = [bid.reaches(price, NOW) for bid in made]
    found = due_times(columns, price, NOW)
    for one, other in zip(found.tolist(), expected, strict=True):
        assert one == pytest.approx(math.inf if other is None else other, rel=1e-9)
