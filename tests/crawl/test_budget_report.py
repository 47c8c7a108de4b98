"""What a person and a program see of the one budget: status, explain, what-if."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from tests.crawl.auto_past import PRICE, UNIT, make_auto_past

from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.one_budget import OneBudget
from bowerbird.cli.budget import budget_rows, price_text, watch_text
from bowerbird.cli.look import explain_command, status_command
from bowerbird.crawl.budget_report import read_last_fetch, read_recent
from bowerbird.crawl.journal_spans import count_kinds, find_ends, first_at, spread_runs
from bowerbird.crawl.standing import find_due
from bowerbird.crawl.view import CrawlView
from bowerbird.store.folder import CrawlFolder, WriterLock

FEED = "http://a.example/feed"
LATE = "http://a.example/topic/late-3"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    past = make_auto_past(tmp_path_factory.mktemp("auto") / "crawl", rate_per_s=0.01)
    past.repository.close()
    return past.folder.root


@pytest.fixture
def view(root: Path) -> Iterator[CrawlView]:
    made = CrawlView(root)
    yield made
    made.close()


def test_status_says_what_a_unit_is_and_what_scales_rest_on(view: CrawlView) -> None:
    one = view.status()["one_budget"]
    assert one["unit_clicks"] > 0
    assert one["price_clicks"] == pytest.approx(PRICE * UNIT)  # of the last fetch: nothing runs
    assert one["rests_on"] == "links and changes: no click is known yet"
    assert one["waits_for"] == []
    assert one["rate_per_s"] == 0.01
    assert {kind: one["fetches"][kind] for kind in ("new", "hub")} == {"new": 40.0, "hub": 40.0}
    kinds = {kind["name"]: kind for kind in one["watch"]["kinds"]}
    assert kinds["hub"]["fetches"] == 40
    assert kinds["hub"]["expected"] == 240.0
    assert kinds["hub"]["drifts"]
    assert one["watch"]["factors"]["hub"] < 1.0


def test_status_in_words(root: Path) -> None:
    said = CliRunner().invoke(status_command, [str(root)]).output
    assert "price 2 clicks" in said
    assert "scales rest on links and changes: no click is known yet" in said
    assert "40 fetches: 240 new pages expected" in said
    assert "drifts; gains are multiplied by" in said


def test_before_the_studies_status_says_what_is_missing(tmp_path: Path) -> None:
    past = make_auto_past(tmp_path / "crawl", studies=False)
    past.repository.close()
    made = CrawlView(past.folder.root)
    try:
        status = made.status()
        assert status["one_budget"]["unit_clicks"] is None
        assert status["one_budget"]["waits_for"] == ["informed", "user-centric", "echo"]
        assert price_text(status) == "1"
        ((_, text),) = budget_rows(status["one_budget"])
        assert "not in clicks yet: there is no study by informed, user-centric, echo" in text
        assert made.what_if() is None
        assert made.explain(FEED)["standing"]["unit_clicks"] is None
    finally:
        made.close()


def test_another_policy_has_no_such_budget(root: Path) -> None:
    made = CrawlView(root, "breadth-first")
    try:
        assert made.status()["one_budget"] is None
        assert made.what_if() is None
        decision = made.explain(LATE)["decision"]
        assert [node["name"] for node in decision["children"]][1] == "price"
    finally:
        made.close()


def test_explain_is_one_tree_in_clicks(view: CrawlView, root: Path) -> None:
    story = view.explain(LATE)
    here, tree = story["standing"], story["decision"]
    unit = view.policy.unit(view.repository.snapshot(view.now))
    assert here["unit_clicks"] == pytest.approx(unit)
    assert here["bid"] == pytest.approx(story["bid"]["value"] * unit, rel=1e-6)
    assert here["price"] == pytest.approx(PRICE * UNIT)
    assert tree["name"] == "fetch (refresh)"
    bid, price, host, rank, sooner = tree["children"]
    assert bid == story["bid"]["tree"]
    assert price["value"] == pytest.approx(PRICE * UNIT)
    assert (host["name"], rank["name"], sooner["name"]) == ("host", "rank in line", "to be fetched sooner")
    said = {one["what"]: one["value"] for one in here["sooner"]}
    assert said["gain"] == pytest.approx(here["price"] / here["bid"], rel=1e-6)
    text = CliRunner().invoke(explain_command, [str(root), LATE]).output
    assert "clicks (" in text
    assert "to be fetched sooner" in text
    assert "times the expected clicks" in text


def test_the_due_time_is_when_the_policy_would_bid_the_price(view: CrawlView) -> None:
    """Found by asking again at later moments: bids in clicks are bounded."""
    snapshot, auction = view.repository.snapshot(view.now), view._auction()
    assert isinstance(view.policy, OneBudget)
    row = view._find(LATE)[1]
    bid = auction.bid(row).value(view.now)
    due = find_due(view.policy, snapshot, auction, row, 1.05 * bid)
    assert due is not None
    assert due > view.now
    for at, reached in ((due + 1.0, True), (view.now + 0.9 * (due - view.now), False)):
        then = replace(snapshot, now=at)
        value = float(values_at(view.policy.appraise(then, np.array([row])), at)[0])
        assert (value >= 1.05 * bid) == reached
    assert find_due(view.policy, snapshot, auction, row, 1e30) is None


def test_what_if_is_of_the_bids_of_now(view: CrawlView) -> None:
    found = view.what_if()
    assert found is not None
    assert (found["budget_per_s"], found["by_setting"]) == (0.01, True)
    rows = found["rows"]
    assert [row["times"] for row in rows] == [0.25, 0.5, 1.0, 2.0, 4.0]
    gains = [row["clicks_per_hour"] for row in rows]
    assert gains == sorted(gains)
    assert gains[0] > 0
    for row in rows:
        assert row["fetches_per_s"] <= 0.01 * row["times"] * (1 + 1e-6)
        assert sum(kind["clicks_per_hour"] for kind in row["by_kind"].values()) == pytest.approx(row["clicks_per_hour"])
        assert row["stale_quality"] is None  # nobody clicked: quality cannot be told


def test_the_journal_is_read_from_its_end(view: CrawlView) -> None:
    connection = view.repository.connection
    recent = read_recent(connection, span_s=300.0)
    assert recent.span_s == pytest.approx(300.0)
    assert recent.fetches["new"] == pytest.approx(30, abs=1)
    last = read_last_fetch(connection)
    assert last is not None
    assert (last.bid_clicks, last.price_clicks) == (PRICE * 1.25 * UNIT, PRICE * UNIT)
    first, top = find_ends(connection)
    counts, sampled = count_kinds(connection, first, top + 1)
    assert sum(counts.values()) == top + 1 - first
    assert not sampled
    assert first_at(connection, view.now, first, top) == top + 1


def test_runs_are_spread_over_all_of_a_stretch() -> None:
    runs, weight = spread_runs(1000, 1_000_000)
    assert len(runs) == 16
    assert runs[0][0] == 1000
    assert runs[-1][1] == 1_000_000
    assert weight * sum(after - first for first, after in runs) == pytest.approx(999_000)


def test_a_kind_as_expected_has_no_factor() -> None:
    kind = {
        "fetches": 1,
        "expected": 2.0,
        "realised": 2.0,
        "unit": "clicks",
        "ratio": 1.0,
        "low": 0.5,
        "high": 2.0,
        "drifts": False,
    }
    assert watch_text(kind, 1.0) == "1 fetch: 2 clicks expected, 2 found, ratio 1.00 (95%: 0.50 … 2.00)"
    assert watch_text({**kind, "fetches": 0}, 1.0) == "nothing to compare yet with what was expected"


def test_the_price_of_a_crawl_that_bids_by_older_studies_is_the_same_in_clicks(root: Path, tmp_path: Path) -> None:
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    lock = WriterLock(folder)
    made = CrawlView(folder.root)
    try:
        unit = made.policy.unit(made.repository.snapshot(made.now))
        live = {"at": made.now, "price": 6.0, "unit": 2.0 * unit}
        with closing(sqlite3.connect(folder.database)) as connection, connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('live', ?)", (orjson.dumps(live).decode(),))
        assert made.price() == pytest.approx(12.0)
        assert made.status()["one_budget"]["price_clicks"] == pytest.approx(12.0 * unit)
        assert made.explain(LATE)["standing"]["price"] == pytest.approx(12.0 * unit)
    finally:
        made.close()
        lock.release()
