"""Checks that every registered policy must pass; a new method gets them by its line in the registry."""

from __future__ import annotations

import dataclasses
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.snapshots import NOW, random_snapshot

from bowerbird.appraise.appraiser import Appraiser
from bowerbird.appraise.policy import (
    FRONTIER,
    HUBS,
    PLAIN,
    REFRESH,
    REFRESH_STUDIED,
    STUDIED,
    Policy,
    RefreshSettings,
    make_policy,
)
from bowerbird.model.bid import Bids, Shape
from bowerbird.model.errors import PolicyError
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState

HUB_KINDS = (UrlKind.SITEMAP, UrlKind.FEED)
#: name -> (how to make it, the states and the kinds it is asked about)
APPRAISERS = {
    **{f"frontier {name}": (make, (UrlState.NEW,), (UrlKind.PAGE,)) for name, make in FRONTIER.items()},
    **{
        f"refresh {name}": (lambda make=make: make(RefreshSettings()), REVISITED, (UrlKind.PAGE,))
        for name, make in REFRESH.items()
    },
    **{
        f"hubs {name}": (lambda make=make: make(RefreshSettings()), (UrlState.NEW, *REVISITED), HUB_KINDS)
        for name, make in HUBS.items()
    },
}
POLICIES = [
    *(f"{frontier}+{refresh}" for frontier in FRONTIER for refresh in ("fixed", "adaptive", "user-centric")),
    *(f"{frontier}+{refresh}" for frontier in ("in-degree", "rw-eg") for refresh in REFRESH_STUDIED[1:]),
    "in-degree+adaptive+echo",  # before a study; tests/appraise/test_studied_hubs.py has those with one
]
each_appraiser = pytest.mark.parametrize("which", APPRAISERS)
each_policy = pytest.mark.parametrize("name", POLICIES)
sizes = st.integers(0, 60)
seeds = st.integers(0, 2**32)


def made(which: str, seed: int, count: int) -> tuple[Appraiser, Snapshot]:
    make, states, kinds = APPRAISERS[which]
    return make(), random_snapshot(seed, count, states, kinds)


def columns_of(bids: Bids) -> list[np.ndarray]:
    return [bids.amplitude, bids.rate, bids.since, bids.shape]


def equal(one: Bids, other: Bids) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(columns_of(one), columns_of(other), strict=True))


def all_columns(snapshot: Snapshot) -> list[np.ndarray]:
    return [
        getattr(part, field.name) for part in (snapshot.pages, snapshot.hosts) for field in dataclasses.fields(part)
    ]


@each_appraiser
@settings(max_examples=25, deadline=None)
@given(seed=seeds, count=sizes)
def test_bids_are_whole_finite_and_not_negative(which: str, seed: int, count: int) -> None:
    appraiser, snapshot = made(which, seed, count)
    bids = appraiser.appraise(snapshot, np.arange(count))
    assert [len(column) for column in columns_of(bids)] == [count] * 4
    assert all(np.isfinite(column).all() for column in columns_of(bids))
    assert (bids.amplitude >= 0).all()
    assert (bids.rate >= 0).all()
    assert np.isin(bids.shape, list(Shape)).all()
    assert all(np.size(column) in (1, count) for column in bids.terms.values())
    assert all(np.isfinite(bids.bid(i).value(NOW)) and bids.bid(i).value(NOW) >= 0 for i in range(count))


@each_appraiser
@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=sizes)
def test_appraising_is_pure(which: str, seed: int, count: int) -> None:
    appraiser, snapshot = made(which, seed, count)
    assert not any(column.flags.writeable for column in all_columns(snapshot))
    rows = np.arange(count)
    rows.flags.writeable = False
    first = appraiser.appraise(snapshot, rows)
    again = APPRAISERS[which][0]().appraise(random_snapshot(seed, count, *APPRAISERS[which][1:]), rows)
    assert equal(first, again)
    assert equal(first, appraiser.appraise(snapshot, rows))


@each_appraiser
@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=st.integers(1, 60), pick=st.randoms(use_true_random=False))
def test_a_bid_does_not_depend_on_the_rows_around_it(which: str, seed: int, count: int, pick: random.Random) -> None:
    appraiser, snapshot = made(which, seed, count)
    some = pick.sample(range(count), pick.randint(0, count))
    whole = appraiser.appraise(snapshot, np.arange(count))
    part = appraiser.appraise(snapshot, np.array(some, dtype=np.int64))
    assert all(np.array_equal(a[some], b) for a, b in zip(columns_of(whole), columns_of(part), strict=True))


@each_appraiser
@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=st.integers(1, 20))
def test_the_explanation_adds_up_to_the_bid(which: str, seed: int, count: int) -> None:
    appraiser, snapshot = made(which, seed, count)
    bids = appraiser.appraise(snapshot, np.arange(count))
    for row in range(count):
        tree = appraiser.explain(snapshot, row)
        assert tree.value == pytest.approx(bids.bid(row).value(snapshot.now), rel=1e-6)
        assert json.loads(json.dumps(tree.as_dict()))["value"] == tree.value


@each_appraiser
def test_names_are_those_of_the_registry(which: str) -> None:
    appraiser = APPRAISERS[which][0]()
    assert which.endswith(appraiser.name)
    assert "+" not in appraiser.name


@pytest.mark.parametrize("name", REFRESH)
@given(interval_s=st.floats(0.0, 1e9), changed=st.booleans())
def test_the_next_interval_is_within_the_bounds(name: str, interval_s: float, changed: bool) -> None:
    settings = RefreshSettings()
    following = REFRESH[name](settings).next_interval_s(interval_s, changed)
    assert settings.min_interval_s <= following <= settings.max_interval_s


# -- the policies made of them


@each_policy
@settings(max_examples=20, deadline=None)
@given(seed=seeds, count=sizes)
def test_a_policy_asks_the_right_appraiser_for_each_row(name: str, seed: int, count: int) -> None:
    policy = make_policy(name)
    snapshot = random_snapshot(seed, count)
    bids = policy.appraise(snapshot, np.arange(count))
    assert policy.name == name
    assert len(bids) == count
    for row in range(count):
        state, kind = int(snapshot.pages.state[row]), int(snapshot.pages.kind[row])
        appraiser = policy.appraiser_of(state, kind)
        tree = policy.explain(snapshot, row)
        assert tree.value == pytest.approx(bids.bid(row).value(NOW), rel=1e-6)
        if appraiser is None:
            assert state in (UrlState.EXCLUDED, UrlState.FORGOTTEN)
            assert bids.amplitude[row] == 0
        else:
            assert equal(appraiser.appraise(snapshot, np.array([row])), policy.appraise(snapshot, np.array([row])))
            assert bids.bid(row) == appraiser.appraise(snapshot, np.array([row])).bid(0)
            assert appraiser.name in tree.note


@each_policy
@settings(max_examples=15, deadline=None)
@given(seed=seeds, count=sizes)
def test_terms_are_json_that_names_the_bidder(name: str, seed: int, count: int) -> None:
    policy = make_policy(name)
    snapshot = random_snapshot(seed, count)
    terms = policy.terms(snapshot, np.arange(count))
    assert len(terms) == count
    for row, text in enumerate(terms):
        appraiser = policy.appraiser_of(int(snapshot.pages.state[row]), int(snapshot.pages.kind[row]))
        facts = json.loads(text)
        if appraiser is None:
            assert facts == {}
            continue
        columns = appraiser.appraise(snapshot, np.array([row])).terms
        expected = {key: np.broadcast_to(column, 1).tolist()[0] for key, column in columns.items()}
        assert facts == {"by": appraiser.name, **json.loads(json.dumps(expected))}
        assert len(facts) > 1


def test_terms_may_be_one_value_for_all_or_none() -> None:
    class Plain:
        name = "plain"
        terms: dict[str, np.ndarray] = {}  # noqa: RUF012 - set by the test

        def appraise(self, snapshot: Snapshot, rows: np.ndarray) -> Bids:
            return Bids.build(np.ones(len(rows)), terms=self.terms)

    default = make_policy(PLAIN)
    policy = Policy(Plain(), default.refresh, default.hubs, default.settings)  # type: ignore[arg-type]  # it needs no explain here
    snapshot = random_snapshot(1, 3, (UrlState.NEW,), (UrlKind.PAGE,))
    assert policy.terms(snapshot, np.arange(3)) == ['{"by":"plain"}'] * 3
    Plain.terms = {"share": np.array(0.5)}
    assert policy.terms(snapshot, np.arange(3)) == ['{"by":"plain","share":0.5}'] * 3


def test_the_kind_of_a_fetch() -> None:
    policy = make_policy("echo")
    assert policy.fetch_kind(UrlState.NEW, UrlKind.PAGE, '{"by":"breadth-first"}') is FetchKind.NEW
    assert policy.fetch_kind(UrlState.GONE, UrlKind.PAGE, '{"by":"adaptive"}') is FetchKind.REFRESH
    assert policy.fetch_kind(UrlState.NEW, UrlKind.FEED, '{"by":"echo"}') is FetchKind.HUB
    assert policy.fetch_kind(UrlState.FETCHED, UrlKind.PAGE, '{"by":"echo","basis":"study"}') is FetchKind.HUB
    assert policy.fetch_kind(UrlState.FETCHED, UrlKind.PAGE, "{}") is FetchKind.REFRESH  # nobody said


def test_a_part_of_a_name_leaves_the_rest_to_the_default() -> None:
    assert make_policy("in-degree").name == "in-degree+adaptive"
    assert make_policy("fixed").name == "breadth-first+fixed"
    assert make_policy("indegree").name == "in-degree+adaptive"
    assert make_policy("fixed+rw-eg").name == "rw-eg+fixed"
    assert make_policy("fixed+random").name == "random+fixed"
    assert make_policy(PLAIN).name == PLAIN
    assert make_policy("fixed", base="learned").name == "learned+fixed"
    assert make_policy("rw", base="learned+fixed").name == "rw+fixed"
    assert make_policy("rw+adaptive", base="learned+fixed").name == "rw+adaptive"


@pytest.mark.parametrize(
    ("name", "both"),
    [
        ("sbr+ebr", "'sbr' and 'ebr' are both for known pages"),
        ("rw-eg+fixed+fixed", "'fixed' and 'fixed' are both for known pages"),
        ("rw+indegree", "'rw' and 'in-degree' are both for new pages"),
        ("rw+echo+hub-interval", "'echo' and 'hub-interval' are both for hubs"),
    ],
)
def test_two_of_a_kind_are_refused(name: str, both: str) -> None:
    for asked, base in ((name, PLAIN), ("sbr", name)):
        with pytest.raises(PolicyError) as caught:
            make_policy(asked, base=base)
        assert repr(name) in str(caught.value)
        assert both in str(caught.value)


def test_auto_has_all_parts_and_stands_alone() -> None:
    with pytest.raises(PolicyError, match="'auto' has all parts and stands alone"):
        make_policy("auto+echo")
    with pytest.raises(PolicyError, match=r"'auot' is not known; did you mean 'auto'\?"):
        make_policy("auot")
    with pytest.raises(PolicyError, match=r"'user-centrik' is not known; did you mean 'user-centric'\?"):
        make_policy("rw+user-centrik")


def test_only_methods_that_look_at_the_whole_crawl_are_studied() -> None:
    assert [name for name in FRONTIER if make_policy(name).studied] == list(STUDIED)
    assert all(make_policy(name).studied == (name,) for name in STUDIED)
    assert [name for name in REFRESH if make_policy(name).studied] == list(REFRESH_STUDIED)
    assert all(make_policy(name).studied == (name,) for name in REFRESH_STUDIED)
    assert make_policy("user-centric+rw-eg").studied == ("rw-eg", "user-centric")
    assert make_policy("rw-eg+user-centric").name == "rw-eg+user-centric"


def test_the_registry_names_the_methods_that_there_are() -> None:
    from bowerbird.appraise.refresh.methods import METHODS

    assert set(REFRESH_STUDIED) == set(METHODS)
    assert not set(FRONTIER) & set(REFRESH)
    assert not (set(FRONTIER) | set(REFRESH)) & set(HUBS)


@pytest.mark.parametrize("name", ["best", "", "breadth-first+often", "breadth-first+", "Random"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make_policy(name)
    message = str(caught.value)
    assert repr(name) in message
    assert all(known in message for known in (*FRONTIER, *REFRESH, *HUBS, PLAIN))
