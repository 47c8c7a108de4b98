"""Snapshot in, bids out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.appraise.hub_studies import snapshot_with_hubs
from tests.appraise.snapshots import random_study

import bowerbird
from bowerbird.appraise.policy import FRONTIER, REFRESH, STUDIED
from bowerbird.model.url_state import UrlKind, UrlState

NOW, DAY_S = 1_800_000_000.0, 86_400.0
HALF, WHOLE = 100, 200
NAMES = [f"https://h{page % 7}.example/{('news', 'old')[page % 2]}/{page}" for page in range(WHOLE)]


def make_tables(seed: int = 1) -> dict[str, Any]:
    """The first half fetched and linking; every second of them changes often."""
    rng = np.random.default_rng(seed)
    age_s = rng.integers(1000, 20 * 86400, HALF).astype(float)
    pages = {"page": NAMES, "last_fetched": [*(NOW - age_s).tolist(), *([None] * HALF)]}
    targets = [*rng.integers(0, WHOLE, 1500).tolist(), *range(HALF, WHOLE)]
    links = {
        "source": [NAMES[page] for page in rng.integers(0, HALF, len(targets))],
        "target": [NAMES[page] for page in targets],
    }
    clicks = {"page": NAMES[:HALF], "clicks": rng.poisson(3.0, HALF)}
    visits: dict[str, list[Any]] = {"page": [], "time": [], "changed": []}
    for page in range(HALF):
        for back in range(8):
            visits["page"].append(NAMES[page])
            visits["time"].append(NOW - age_s[page] - back * DAY_S)
            visits["changed"].append(bool(rng.random() < (0.05, 0.9)[page % 2]))
    return {"pages": pages, "links": links, "clicks": clicks, "visits": visits}


TABLES = make_tables()
SNAPSHOT = bowerbird.snapshot_of(
    TABLES["pages"],
    now=NOW,
    links=TABLES["links"],
    clicks=TABLES["clicks"],
    queries={"query": ["news 150", "old"], "frequency": [5, 1]},
)


@pytest.mark.parametrize("method", [method for method in FRONTIER if method != "informed"])
def test_every_method_for_new_pages_bids(method: str) -> None:
    bids = bowerbird.bid(SNAPSHOT, method, pages=TABLES["pages"])
    values = bids.value()
    assert (values[HALF:] >= 1.0).all()
    assert np.isfinite(values).all()
    assert (bids.snapshot.study is not None) == (method in STUDIED)
    assert bids.explain(WHOLE - 1).value == pytest.approx(values[-1], rel=1e-5)


@pytest.mark.parametrize("method", REFRESH)
def test_every_method_for_known_pages_bids(method: str) -> None:
    bids = bowerbird.bid(SNAPSHOT, f"in-degree+{method}", pages=NAMES, visits=pl.DataFrame(TABLES["visits"]))
    values = bids.value()
    assert np.isfinite(values).all()
    assert (values[:HALF] > 0.0).all()
    later = bids.value(NOW + 30 * DAY_S)
    assert (later[:HALF] >= values[:HALF]).all()
    assert bids.explain(0).value == pytest.approx(values[0], rel=1e-5)


def test_pages_that_change_often_are_due_sooner_in_proportion() -> None:
    bids = bowerbird.bid(SNAPSHOT, "in-degree+proportional", pages=NAMES, visits=TABLES["visits"])
    study = bids.snapshot.refresh_study
    assert study is not None
    assert np.median(study.interval_s[1:HALF:2]) < 0.3 * np.median(study.interval_s[0:HALF:2])
    assert bids.snapshot.pages.fetches[:HALF].tolist() == [8] * HALF
    assert bids.snapshot.pages.changes[1:HALF:2].mean() > 5.0
    assert SNAPSHOT.pages.fetches[:HALF].tolist() == [1] * HALF  # the one that was passed in is as it was


def test_new_pages_bid_in_the_order_of_the_ranking() -> None:
    ranking = bowerbird.rank(TABLES["links"], TABLES["clicks"], method="rw-eg")
    bids = bowerbird.bid(SNAPSHOT, "rw-eg")
    study = bids.snapshot.study
    assert study is not None
    rows = [NAMES.index(page) for page in ranking.page]
    assert sorted(rows) == list(range(HALF, WHOLE))
    # pages have other numbers here, and sums another order
    np.testing.assert_allclose(study.score[rows], ranking.score, rtol=1e-5)
    values = bids.value()
    assert (np.diff(study.score[rows]) <= 1e-6).all()
    assert values[HALF:].mean() == pytest.approx(2.0, rel=1e-5)  # the frontier's average page


@given(st.integers(0, 10_000), st.floats(0.0, 400.0))
def test_the_order_is_that_of_values_and_next_has_one_of_each_host(seed: int, days: float) -> None:
    rng = np.random.default_rng(seed)
    pages = {
        "page": NAMES[:40],
        "last_fetched": [None if rng.random() < 0.5 else NOW - rng.uniform(0, 1e7) for _ in range(40)],
        "depth": rng.integers(0, 4, 40),
    }
    snapshot = bowerbird.snapshot_of(pages, now=NOW)
    bids, now = bowerbird.bid(snapshot, "breadth-first"), NOW + days * DAY_S
    values, order = bids.value(now), bids.order(now=now)
    assert order.tolist() == sorted(np.flatnonzero(values > 0).tolist(), key=lambda row: (-values[row], row))
    assert bids.order(5, now).tolist() == order[:5].tolist()
    chosen = bids.next(40, now)
    best = {}
    for row in order.tolist():
        if values[row] >= 1.0 + 1e-6:
            best.setdefault(int(snapshot.pages.host[row]), row)
    hosts = snapshot.pages.host[chosen]
    assert len(set(hosts.tolist())) == len(hosts)
    assert set(best.values()) <= set(chosen.tolist())
    assert bids.next(2, now).tolist() == chosen[:2].tolist()


def test_a_page_is_due_when_its_bid_reaches_the_price() -> None:
    pages = {
        "page": ["a", "b", "c"],
        "last_fetched": [NOW - 10 * DAY_S, NOW - DAY_S, None],
        "interval_s": [7 * DAY_S] * 3,
    }
    bids = bowerbird.bid(bowerbird.snapshot_of(pages, now=NOW), "breadth-first+adaptive")
    assert bids.due()[[0, 2]].tolist() == [NOW, NOW]
    assert bids.due()[1] == pytest.approx(NOW + 6 * DAY_S, abs=1.0)
    assert bids.due(price=3.0)[2] == np.inf
    assert bids.value(float(bids.due()[1]) + 1.0)[1] == pytest.approx(1.0, abs=1e-4)


def test_a_study_is_made_once() -> None:
    studied = bowerbird.study(SNAPSHOT, "rw-eg")
    assert studied.study is not None
    assert bowerbird.bid(studied, "rw-eg").snapshot.study is studied.study
    other = bowerbird.bid(studied, "pagerank").snapshot.study
    assert other is not None
    assert other.method == "pagerank"


def test_a_snapshot_with_the_studies_of_a_crawl_bids_as_in_a_crawl() -> None:
    snapshot = snapshot_with_hubs(3, 60, tuple(UrlState), tuple(UrlKind))
    rng = np.random.default_rng(4)
    snapshot = dataclasses.replace(snapshot, study=random_study(rng, snapshot, "informed"))
    bids = bowerbird.bid(snapshot, "auto")
    own = bowerbird.make_policy("auto").appraise(snapshot, np.arange(60))
    assert bids.snapshot is snapshot
    assert bids.bids.amplitude.tolist() == own.amplitude.tolist()
    assert set(np.flatnonzero(bids.value() > 0)) == set(bids.order().tolist())


def test_an_appraiser_of_ones_own_takes_part() -> None:
    class Longest:
        name = "longest-name"

        def appraise(self, snapshot: bowerbird.Snapshot, rows: Any) -> bowerbird.Bids:
            return bowerbird.Bids.build(1.0 + np.array([len(NAMES[row]) for row in rows]))

        def explain(self, snapshot: bowerbird.Snapshot, row: int) -> bowerbird.Term:
            return bowerbird.Term("length", float(len(NAMES[row])))

    policy = dataclasses.replace(bowerbird.make_policy("adaptive"), frontier=Longest())
    bids = bowerbird.bid(SNAPSHOT, policy)
    assert bids.value()[HALF:].tolist() == [1.0 + len(name) for name in NAMES[HALF:]]
    assert bids.explain(HALF).note == "by longest-name"


@pytest.mark.parametrize(
    ("policy", "more", "error", "said"),
    [
        ("auto", {}, bowerbird.PolicyError, "policy 'auto': bids by studies of hubs, which are made of a crawl's"),
        ("rw-eg+echo", {}, bowerbird.PolicyError, "bids by studies of hubs"),
        ("nix", {}, bowerbird.PolicyError, "policy 'nix': 'nix' is not known"),
        ("user-centric", {}, bowerbird.ConfigError, "user-centric learns from visits. Pass pages= and visits="),
        (
            "learned",
            {},
            bowerbird.ConfigError,
            "policy 'learned': reads the words of page names (learned). Pass pages=",
        ),
        ("learned", {"pages": ["a"]}, bowerbird.TableError, "pages: has 1 rows, but the snapshot has 200."),
        (
            "sbr",
            {"pages": NAMES, "visits": {"page": ["no"], "time": [1.0], "changed": [True]}},
            bowerbird.TableError,
            "visits: row 0: 'no' is not known. Add a row for it to pages, or leave it out.",
        ),
        (
            "sbr",
            {"pages": NAMES, "visits": {"page": NAMES[:1], "time": [NOW + 1], "changed": [True]}},
            bowerbird.TableError,
            "visits: row 0: its time is empty, or lies after now.",
        ),
        (
            "sbr",
            {"pages": NAMES, "visits": {"page": NAMES[:1], "time": [NOW], "changed": ["yes"]}},
            bowerbird.TableError,
            "visits: column changed must be true or false in every row, or 1 or 0.",
        ),
    ],
)
def test_what_cannot_be_bid_for_is_refused(policy: str, more: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as told:
        bowerbird.bid(SNAPSHOT, policy, **more)
    assert said in str(told.value)


def test_what_a_snapshot_lacks_is_said() -> None:
    bare = bowerbird.snapshot_of(TABLES["pages"], now=NOW)
    with pytest.raises(bowerbird.ConfigError, match=r"looks at links, of which the snapshot has none. Pass links="):
        bowerbird.bid(bare, "rw-eg")
    linked = bowerbird.snapshot_of(TABLES["pages"], now=NOW, links=TABLES["links"])
    with pytest.raises(bowerbird.ConfigError, match=r"needs queries to look for. Pass queries= to the snapshot"):
        bowerbird.bid(linked, "hybrid", pages=NAMES)
    bids = bowerbird.bid(linked, "informed", pages=NAMES)
    assert bids.snapshot.study is not None
    assert bids.snapshot.study.info["by"] == "pagerank"
    for wrong in (-1, WHOLE):
        with pytest.raises(bowerbird.ConfigError, match=f"row {wrong}: the snapshot has rows 0 to 199"):
            bids.explain(wrong)
    with pytest.raises(bowerbird.ConfigError, match="n -1: must be 0 or more"):
        bids.next(-1)
