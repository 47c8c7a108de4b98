"""Bids for the pages that a crawl chose as seeds: visited as hubs are, whatever the policy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.hub_studies import DAY_S, hub_columns, hub_study, snapshot_with_hubs
from tests.appraise.seed_studies import seed_study
from tests.appraise.snapshots import NOW, snapshot_of

from bowerbird.appraise.policy import RefreshSettings, make_policy
from bowerbird.model.hub_study import HubKind
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

SETTINGS = RefreshSettings(interval_s=10 * DAY_S, hub_interval_s=0.25 * DAY_S)


def visited(count: int, **columns: object) -> Snapshot:
    values = {"state": UrlState.FETCHED, "kind": UrlKind.PAGE, "last_fetched": NOW - 0.1 * DAY_S, "fetches": 3}
    return snapshot_of(**{"interval_s": np.full(count, 10 * DAY_S), **values, **columns})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["breadth-first+fixed", "breadth-first+adaptive", "breadth-first+fixed+echo"])
def test_a_seed_is_visited_as_often_as_a_hub(name: str) -> None:
    policy = make_policy(name, SETTINGS)
    snapshot = replace(visited(3), seed_study=seed_study([1], 3))
    rows = np.arange(3)
    bids = policy.appraise(snapshot, rows)
    assert [bids.bid(row).value(NOW) for row in range(3)] == pytest.approx([0.01, 0.4, 0.01], rel=1e-5)
    assert [one.name for one in policy.bidders(snapshot, rows) if one] == [
        policy.refresh.name,
        policy.hubs.name,
        policy.refresh.name,
    ]
    assert json.loads(policy.terms(snapshot, rows)[1])["hub_interval_s"] == 0.25 * DAY_S
    tree = policy.explain(snapshot, 1)
    assert tree.note == f"by {policy.hubs.name}, which is due first"
    assert "a seed that the crawl chose" in tree.children[0].note
    assert tree.children[1].name == "its bid as a page to refresh"
    assert policy.explain(snapshot, 0).note == f"by {policy.refresh.name}"


def test_a_refresh_that_is_due_sooner_comes_first_and_both_are_told() -> None:
    policy = make_policy("breadth-first+fixed", replace(SETTINGS, interval_s=0.2 * DAY_S))
    snapshot = replace(visited(1), seed_study=seed_study([0], 1))
    assert policy.appraise(snapshot, np.arange(1)).bid(0).value(NOW) == pytest.approx(0.5, rel=1e-5)
    tree = policy.explain(snapshot, 0)
    assert tree.note == "by fixed, which is due first"
    assert tree.children[1].name == "its bid as a hub"


def test_seeds_that_are_gone_new_or_no_pages_bid_as_ever() -> None:
    state = [UrlState.GONE, UrlState.NEW, UrlState.REDIRECT, UrlState.FETCHED]
    plain = visited(4, state=state, kind=[UrlKind.PAGE, UrlKind.PAGE, UrlKind.PAGE, UrlKind.FEED])
    chosen = replace(plain, seed_study=seed_study([0, 1, 2, 3], 4))
    for name in ("breadth-first+fixed", "breadth-first+fixed+echo"):
        policy = make_policy(name, SETTINGS)
        one, other = policy.appraise(plain, np.arange(4)), policy.appraise(chosen, np.arange(4))
        assert [one.bid(row) for row in range(4)] == [other.bid(row) for row in range(4)]


def test_echo_goes_by_its_study_where_that_knows_the_seed() -> None:
    policy = make_policy("breadth-first+fixed+echo", SETTINGS)
    hubs = hub_columns(1, kind=HubKind.SEED, amplitude=20.0, interval_s=0.35 * DAY_S)
    snapshot = replace(visited(2), seed_study=seed_study([0, 1], 2), hub_study=hub_study(hubs, 2))
    bids = policy.hubs.appraise(snapshot, np.arange(2))
    assert bids.terms["basis"].tolist() == ["study", "hub-interval, until a study"]
    assert "kind" in str(policy.explain(snapshot, 0).as_dict())
    assert "seed" in str(policy.explain(snapshot, 0).as_dict())
    assert HubKind.SEED.label == "seed"


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 60),
    name=st.sampled_from(["breadth-first+fixed", "in-degree+user-centric", "host-fair+adaptive+echo"]),
)
def test_every_bid_is_explained_by_its_bidder(seed: int, count: int, name: str) -> None:
    policy = make_policy(name)
    plain = snapshot_with_hubs(seed, count, tuple(UrlState), tuple(UrlKind))
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(count)[: rng.integers(0, count + 1)].tolist()
    snapshot = replace(plain, seed_study=seed_study(chosen, count))
    rows = np.arange(count)
    bids, bidders, before = (
        policy.appraise(snapshot, rows),
        policy.bidders(snapshot, rows),
        policy.appraise(plain, rows),
    )
    for row in range(count):
        tree = policy.explain(snapshot, row)
        assert tree.value == pytest.approx(bids.bid(row).value(NOW), rel=1e-5)
        assert policy.appraise(snapshot, np.array([row])).bid(0) == bids.bid(row)
        bidder = bidders[row]
        assert bidder is None or f"by {bidder.name}" in tree.note
        if row not in chosen:
            assert bids.bid(row) == before.bid(row)
