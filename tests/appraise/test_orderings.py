"""Each method prefers what its docstring says it prefers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.appraise.snapshots import NOW, snapshot_of

from bowerbird.appraise.frontier.breadth_first import BreadthFirst
from bowerbird.appraise.frontier.host_fair import HostFair
from bowerbird.appraise.frontier.in_degree import InDegree
from bowerbird.appraise.frontier.random_order import RandomOrder
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.policy import RefreshSettings, make_policy
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval, adapt_interval
from bowerbird.appraise.refresh.fixed import FixedInterval
from bowerbird.model.bid import Bids
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

DAY = 86400.0


def values(bids: Bids, now: float = NOW) -> list[float]:
    return [bids.bid(i).value(now) for i in range(len(bids))]


def all_rows(snapshot: Snapshot) -> np.ndarray:
    return np.arange(len(snapshot.pages))


# -- new pages


def test_breadth_first_goes_by_depth() -> None:
    snapshot = snapshot_of(depth=range(256))
    bids = values(BreadthFirst().appraise(snapshot, all_rows(snapshot)))
    assert all(near > far > 1 for near, far in pairwise(bids))
    assert bids[:3] == pytest.approx([2.0, 1.5, 4 / 3])


def test_in_degree_goes_by_in_links() -> None:
    snapshot = snapshot_of(in_degree=[0, 1, 2, 10, 1000, 2000, 10**6, 2**32 - 1])
    bids = values(InDegree().appraise(snapshot, all_rows(snapshot)))
    assert bids == sorted(bids)
    assert len(set(bids[:-1])) == 7
    assert bids[0] == 1.0
    assert bids[-1] <= 2.0


def test_random_order_is_uniform_fixed_by_url_and_seed() -> None:
    rows = np.arange(20_000)
    draw = RandomOrder().draw(rows)
    assert 0 <= draw.min() < 0.001
    assert 0.999 < draw.max() < 1
    assert draw.mean() == pytest.approx(0.5, abs=0.01)
    counts = np.bincount((draw * 20).astype(int), minlength=20)
    assert (abs(counts - 1000) < 5 * math.sqrt(1000)).all()
    assert abs(np.corrcoef(draw[:-1], draw[1:])[0, 1]) < 0.03
    assert np.array_equal(RandomOrder().draw(rows[::-1])[::-1], draw)
    assert abs(np.corrcoef(draw, RandomOrder(seed=1).draw(rows))[0, 1]) < 0.03


@given(
    one=st.tuples(st.integers(0, 800), st.integers(0, 255)), other=st.tuples(st.integers(0, 800), st.integers(0, 255))
)
def test_host_fair_goes_by_pages_fetched_of_the_host_then_depth(one: tuple[int, int], other: tuple[int, int]) -> None:
    snapshot = snapshot_of(hosts_fetched=[one[0], other[0]], host=[0, 1], depth=[one[1], other[1]])
    first, second = values(HostFair().appraise(snapshot, all_rows(snapshot)))
    assert min(first, second) > 1
    if one[0] < other[0]:
        assert first >= second
    if one[0] + 1 < other[0]:
        assert first > second
    if one[0] == other[0] and one[1] < other[1]:
        assert first >= second


def test_host_fair_takes_turns_between_hosts_fetched_a_hundred_times() -> None:
    snapshot = snapshot_of(hosts_fetched=[200, 201], host=[0, 1], depth=[9, 0])
    first, second = values(HostFair().appraise(snapshot, all_rows(snapshot)))
    assert first > second


# -- known pages


def test_fixed_is_due_after_the_interval_and_more_the_longer_it_waits() -> None:
    snapshot = snapshot_of(state=UrlState.FETCHED, last_fetched=NOW - np.array([0.0, 0.5, 1.0, 3.0]) * DAY, fetches=1)
    bids = FixedInterval(DAY).appraise(snapshot, all_rows(snapshot))
    assert values(bids) == pytest.approx([0.0, 0.5, 1.0, 3.0], rel=1e-6)
    assert values(bids, NOW + DAY) == pytest.approx([1.0, 1.5, 2.0, 4.0], rel=1e-6)


@pytest.mark.parametrize("policy", ["fixed", "adaptive"])
@pytest.mark.parametrize("state", [UrlState.REDIRECT, UrlState.GONE, UrlState.FAILED])
def test_what_is_gone_is_tried_again_after_its_own_interval(policy: str, state: UrlState) -> None:
    settings = RefreshSettings(interval_s=DAY, gone_interval_s=10 * DAY)
    snapshot = snapshot_of(
        state=[state, state], kind=[UrlKind.PAGE, UrlKind.SITEMAP], fetches=1, last_fetched=NOW, interval_s=10 * DAY
    )
    bids = make_policy(policy, settings).appraise(snapshot, all_rows(snapshot))
    assert [bids.bid(i).reaches(1.0, NOW) for i in (0, 1)] == pytest.approx([NOW + 10 * DAY] * 2, abs=60)


def test_adaptive_bids_by_each_page_s_own_interval() -> None:
    snapshot = snapshot_of(
        state=UrlState.FETCHED, last_fetched=NOW - DAY, fetches=3, interval_s=[DAY, 2 * DAY, DAY / 4, 0.0]
    )
    bids = AdaptiveInterval(10 * DAY).appraise(snapshot, all_rows(snapshot))
    assert values(bids) == pytest.approx([1.0, 0.5, 4.0, 0.1], rel=1e-6)  # 0 is a page without one yet


@given(
    interval_s=st.floats(0.0, 1e9),
    longer=st.floats(0.0, 3.0),
    shorter=st.floats(0.0, 0.99),
    min_s=st.floats(1.0, 1e4),
    span=st.floats(1.0, 1e5),
    changed=st.booleans(),
)
def test_nutch_s_rule_within_its_bounds(
    interval_s: float, longer: float, shorter: float, min_s: float, span: float, changed: bool
) -> None:
    max_s = min_s * span
    found = adapt_interval(interval_s, changed, longer=longer, shorter=shorter, min_s=min_s, max_s=max_s)
    free = interval_s - interval_s * shorter if changed else interval_s + interval_s * longer
    assert min_s <= found <= max_s
    assert found == pytest.approx(min(max(free, min_s), max_s), rel=1e-9)


def test_an_interval_settles_where_changes_and_no_changes_balance() -> None:
    """A page that changes every 10 hours: the interval moves around that time, neither bound is reached."""
    method = AdaptiveInterval(DAY)
    now, last_change, interval = 0.0, 0.0, DAY
    seen = []
    for _ in range(400):
        now += interval
        change = now - now % 36000.0
        interval = method.next_interval_s(interval, changed=change > last_change)
        last_change = change
        seen.append(interval)
    assert 0.3 * 36000 < np.mean(seen[100:]) < 3 * 36000
    assert min(seen[100:]) > method.min_s


def test_adaptive_and_fixed_part_ways_with_what_visits_find() -> None:
    fixed, adaptive = FixedInterval(DAY), AdaptiveInterval(DAY)
    assert [fixed.next_interval_s(interval, changed) for interval in (60.0, 1e9) for changed in (True, False)] == [
        DAY
    ] * 4
    assert adaptive.next_interval_s(DAY, True) == pytest.approx(0.8 * DAY)
    assert adaptive.next_interval_s(DAY, False) == pytest.approx(1.4 * DAY)
    assert adaptive.next_interval_s(0.0, False) == pytest.approx(1.4 * DAY)
    lively = quiet = DAY
    for _ in range(200):
        lively, quiet = adaptive.next_interval_s(lively, True), adaptive.next_interval_s(quiet, False)
    assert (lively, quiet) == (adaptive.min_s, adaptive.max_s)


# -- hubs


def test_hubs_come_before_pages_until_they_answered_and_then_at_their_interval() -> None:
    snapshot = snapshot_of(
        kind=UrlKind.SITEMAP,
        state=[UrlState.NEW, UrlState.NEW, UrlState.FETCHED, UrlState.FETCHED],
        fetches=[0, 2, 1, 1],  # the second was tried, and the host did not answer
        last_fetched=[0.0, NOW - 60, NOW - 3600, NOW],
    )
    bids = HubInterval(1800.0).appraise(snapshot, all_rows(snapshot))
    assert values(bids) == pytest.approx([3.0, 3.0, 2.0, 0.0], rel=1e-6)
    pages = snapshot_of(depth=[0, 1], in_degree=[10**6, 0], host=[0, 1])
    for method in (BreadthFirst(), InDegree(), HostFair(), RandomOrder()):
        assert max(values(method.appraise(pages, all_rows(pages)))) < HubInterval.FIRST_VISIT
