"""What a person and a program see of the one budget: status, explain, what-if."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from tests.crawl.auto_past import PRICE, UNIT, make_auto_past

from bowerbird.appraise.budget.watch import watch_kind
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.one_budget import OneBudget
from bowerbird.cli.budget import budget_rows, price_text, watch_text
from bowerbird.cli.look import explain_command, status_command
from bowerbird.cli.watch import show_watch
from bowerbird.crawl.budget_report import gather_supply, read_last_fetch, read_recent
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.journal_spans import count_kinds, find_ends, first_at, spread_runs
from bowerbird.crawl.standing import find_due
from bowerbird.crawl.url_story import tell_past_worth
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import ResultClicked
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

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


def test_a_price_at_rest_is_that_of_the_last_fetch_for_programs_too(view: CrawlView) -> None:
    status = view.status()
    assert status["price"] == view.price() > view.policy.reserve
    budget = status["one_budget"]
    assert status["price"] == pytest.approx(budget["price_clicks"] / budget["unit_clicks"])


def test_status_in_words(root: Path) -> None:
    said = CliRunner().invoke(status_command, [str(root)]).output
    assert re.search(r"price [0-9.e+]+ units \(no click is known yet\)", said)
    assert " clicks (" not in said  # nobody clicked: there is nothing to count
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
    assert here["unit"] == "units"  # no click is known
    assert here["bid"] == pytest.approx(story["bid"]["value"], rel=1e-6)
    assert here["price"] == pytest.approx(PRICE * UNIT / unit)
    assert tree["name"] == "fetch (refresh)"
    bid, price, host, rank, sooner = tree["children"]
    assert bid == story["bid"]["tree"]
    assert (price["name"], price["value"]) == ("price in units", pytest.approx(PRICE * UNIT / unit))
    assert (host["name"], rank["name"], sooner["name"]) == ("host", "rank in line", "to be fetched sooner")
    said = {one["what"]: one["value"] for one in here["sooner"]}
    assert said["gain"] == pytest.approx(here["price"] / here["bid"], rel=1e-6)
    expected, cost = bid["children"][:2]
    assert (expected["name"], expected["value"]) == ("expected units of this fetch", pytest.approx(here["gain"]))
    assert (cost["name"], cost["value"]) == ("cost", pytest.approx(here["cost"]))
    assert here["gain"] == pytest.approx(bid["value"] * here["cost"])
    assert here["cost"] < 0.9  # its refreshes took few bytes
    assert " clicks" not in expected["note"]
    text = CliRunner().invoke(explain_command, [str(root), LATE]).output
    assert "units (" in text
    assert "to be fetched sooner" in text
    assert "times the expected gain" in text


def test_the_due_time_is_when_the_policy_would_bid_the_price(view: CrawlView) -> None:
    """Found by asking again at later moments: bids in clicks are bounded."""
    snapshot, auction = view.repository.snapshot(view.now), view._auction()
    assert isinstance(view.policy, OneBudget)
    row = view._find(LATE)[1]
    bid = auction.bid(row).value(view.now)
    due = find_due(view.policy, snapshot, auction.bid(row), row, 1.05 * bid)
    assert due is not None
    assert due > view.now
    for at, reached in ((due + 1.0, True), (view.now + 0.9 * (due - view.now), False)):
        then = replace(snapshot, now=at)
        value = float(values_at(view.policy.appraise(then, np.array([row])), at)[0])
        assert (value >= 1.05 * bid) == reached
    assert find_due(view.policy, snapshot, auction.bid(row), row, 1e30) is None


def test_a_hub_that_gains_nothing_above_the_price_has_a_time_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It bids 0 until its age bids for it: that is not never."""
    monkeypatch.setattr(CrawlView, "_price_in_clicks", lambda _: 1e6)
    monkeypatch.setattr(CrawlView, "price", lambda self: 50.0)
    made = CrawlView(root)
    try:
        story = made.explain(FEED)
    finally:
        made.close()
    assert story["bid"]["amplitude"] == 0.0
    due_in_s = story["standing"]["due_in_s"]
    assert due_in_s > 0
    assert story["expected"]["in_s"] == pytest.approx(due_in_s, abs=1.0)
    assert story["decision"]["value"].startswith("in ")
    assert story["expected"]["why"] == "by its age it will bid the price"
    assert "by its age it will bid the price in " in str(story["decision"])


def test_probes_since_the_last_fetch_do_not_hide_its_price(root: Path, tmp_path: Path) -> None:
    """`bowerbird quality --probe 200` journals as many; its run spends no budget, and has no price of its own."""
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    repository = Repository(folder, write=True)
    at = time.time()
    for _ in range(300):
        terms = '{"by":"lot","unit":0.5}'
        repository.record(FetchRecord(0, FetchKind.PROBE, at, 0.0, 9.0, terms, at, Outcome.OK, UrlState.FETCHED))
    repository.commit()
    last = read_last_fetch(repository.connection)
    repository.close()
    assert last is not None
    assert last.price_clicks == PRICE * UNIT


def test_what_if_is_of_the_bids_of_now(view: CrawlView) -> None:
    found = view.what_if()
    assert found is not None
    assert isinstance(view.policy, OneBudget)
    snapshot = view.repository.snapshot(view.now)
    supply = gather_supply(view.policy, snapshot, view._auction())
    assert set(supply.refresh.cost.round(3)) == {round(view.explain(LATE)["standing"]["cost"], 3)}  # one host
    assert (found["budget_per_s"], found["by_setting"]) == (0.01, True)
    rows = found["rows"]
    assert 0.005 < found["asked_per_s"] < 0.01  # twice the budget would be spent on nothing else
    assert [row["times"] for row in rows] == [0.25, 0.5, 1.0]
    gains = [row["clicks_per_hour"] for row in rows]
    assert 0 < gains[0] < gains[1] < gains[2]
    for row in rows:
        assert row["fetches_per_s"] <= 0.01 * row["times"] * (1 + 1e-6)
        assert sum(kind["clicks_per_hour"] for kind in row["by_kind"].values()) == pytest.approx(row["clicks_per_hour"])
        assert row["stale_quality"] is None  # nobody clicked: quality cannot be told


def test_without_a_budget_what_if_is_of_what_is_asked_for(root: Path, tmp_path: Path) -> None:
    """A young crawl is fast: were its speed the budget, a quarter of it would pay for all that bids."""
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    made = CrawlView(folder.root)
    try:
        tell(folder, at=made.now, price=1.0, rate_per_s=0.0, rate_of_settings=0.01)
        assert made.rate_per_s() is None
        found = made.what_if()
        assert found is not None
        assert not found["by_setting"]
        recent = read_recent(made.repository.connection).per_s
        assert found["budget_per_s"] == min(recent, found["asked_per_s"])
        assert len({row["clicks_per_hour"] for row in found["rows"]}) == len(found["rows"]) >= 3
        with closing(sqlite3.connect(folder.database)) as connection, connection:
            ended = connection.execute("SELECT max(fetched_at) FROM fetches").fetchone()[0]
            connection.execute("INSERT INTO runs (started_at, policy) VALUES (?, 'auto')", (ended - 1.0,))
            connection.execute("UPDATE fetches SET fetched_at = ? WHERE fetched_at > ?", (ended - 0.5, ended - 600.0))
        found = made.what_if()
        assert found is not None
        assert read_recent(made.repository.connection).per_s > found["asked_per_s"]
        assert found["budget_per_s"] == found["asked_per_s"]
        assert [row["times"] for row in found["rows"]] == [0.25, 0.5, 1.0]  # there is nothing to spend more on
        gains = [row["clicks_per_hour"] for row in found["rows"]]
        assert gains[0] < gains[1] < gains[2]
    finally:
        made.close()


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
        "too_little": False,
        "by_near": True,
    }
    assert watch_text(kind, 1.0) == "1 fetch: 2 clicks expected, 2 found, ratio (shrunk) 1.00 (95%: 0.50 … 2.00)"
    little = {**kind, "expected": 1e-5, "realised": 12.0, "ratio": 3.4, "too_little": True}
    assert watch_text(little, 1.0) == "1 fetch: 1e-05 clicks expected, 12 found, too little to compare"
    assert watch_text({**little, "drifts": True}, 1.0) == watch_text(little, 1.0)
    assert watch_text({**kind, "drifts": True}, 2.0).endswith(
        "; drifts; gains are multiplied by 2, by those near the price"
    )
    assert watch_text({**kind, "by_near": False}, 2.0).endswith(
        "; gains are multiplied by 2, by the newer half of all, for few bid near the price"
    )
    assert watch_text({**kind, "fetches": 0}, 1.0) == "nothing to compare yet with what was expected"


def test_where_hardly_anything_was_expected_there_is_no_ratio() -> None:
    few = watch_kind("new", np.array([1e-5]), np.array([12.0]), "clicks")
    some = watch_kind("hub", np.array([3.0]), np.array([4.0]), "new pages")
    report = {
        "kinds": [asdict(one) | {"drifts": one.drifts, "too_little": one.too_little} for one in (few, some)],
        "appraisers": [],
        "margins": [],
        "factors": asdict(Factors()),
    }
    said = StringIO()
    with redirect_stdout(said):
        show_watch(report)
    head, _, first, second, *rest = said.getvalue().splitlines()
    assert "ratio (shrunk)" in head
    assert "too little to compare" in first
    assert "1.12" in second  # (5 + 4)/(5 + 3)
    assert not any("by whom" in line for line in rest)


def told(**values: object) -> dict[str, Any]:
    one = {"unit_clicks": 0.5, "price_clicks": 2.0, "by_clicks": True, "heard_s": 1e9, "horizon_days": 30.0}
    return {"price": 4.0, "one_budget": {**one, **values}}


def test_a_price_says_what_its_clicks_are() -> None:
    assert price_text(told()) == "2 clicks within 30 days"
    assert price_text(told(heard_s=600.0)) == "2 clicks within 30 days (by the clicks of the last 10.0 min)"
    assert price_text(told(by_clicks=False)) == "4 units (no click is known yet)"


def test_how_long_clicks_have_been_heard(root: Path, tmp_path: Path) -> None:
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    made = CrawlView(folder.root)
    try:
        assert made.status()["one_budget"]["heard_s"] is None
        with open_demand(folder, made.settings.demand, write=True) as log:
            log.record([ResultClicked("word", LATE, 1, made.now - 7200.0), ResultClicked("word", LATE, 1, made.now)])
        heard_s = made.budget()["heard_s"]  # type: ignore[index]  # the policy is auto
        assert 7200.0 <= heard_s <= 7200.0 + 1200.0
    finally:
        made.close()


def tell(folder: CrawlFolder, **live: object) -> None:
    with closing(sqlite3.connect(folder.database)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('live', ?)", (orjson.dumps(live).decode(),))


def test_the_budget_is_that_of_the_crawl_that_runs(root: Path, tmp_path: Path) -> None:
    """Its command line may have set it; the settings say 0.01."""
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    made = CrawlView(folder.root)
    try:
        tell(folder, at=made.now, price=1.0, rate_per_s=6.0, rate_of_settings=0.01)
        assert made.status()["one_budget"]["rate_per_s"] == 6.0  # as in the last run
        what_if = made.what_if()
        assert what_if is not None
        assert what_if["budget_per_s"] == 6.0
        tell(folder, at=made.now, price=1.0, rate_per_s=6.0, rate_of_settings=2.0)
        assert made.rate_per_s() == 0.01  # the settings changed since
        lock = WriterLock(folder)
        try:
            assert made.rate_per_s() == 6.0
            assert "there is no budget" not in str(made.explain(LATE)["decision"])
            tell(folder, at=made.now, price=1.0, rate_per_s=0.0, rate_of_settings=0.01)
            assert made.rate_per_s() is None
            assert "there is no budget" in str(made.explain(LATE)["decision"])
        finally:
            lock.release()
    finally:
        made.close()


def test_a_crawl_whose_last_run_had_another_policy_has_no_such_budget(root: Path, tmp_path: Path) -> None:
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    with closing(sqlite3.connect(folder.database)) as connection, connection:
        connection.execute("INSERT INTO runs (started_at, policy, ended_at) VALUES (1, 'breadth-first+adaptive', 2)")
    said = CliRunner().invoke(status_command, [str(folder.root), "--json"]).output
    assert orjson.loads(said)["one_budget"] is None
    text = CliRunner().invoke(status_command, [str(folder.root)]).output
    assert "units" not in text
    assert "scales rest on" not in text


def test_the_speed_of_a_run_that_was_killed_is_what_it_told_last(root: Path, tmp_path: Path) -> None:
    folder = CrawlFolder(Path(shutil.copytree(root, tmp_path / "crawl")))
    with closing(sqlite3.connect(folder.database)) as connection, connection:
        connection.execute("INSERT INTO runs (started_at, policy, ended_at, fetched) VALUES (1, 'auto', 11, 20)")
        connection.execute("INSERT INTO runs (started_at, policy) VALUES (100, 'auto')")
    made = CrawlView(folder.root)
    try:
        assert made.last_run_speed() == 2.0  # of the run before: this one said nothing
        tell(folder, at=110.0, fetched=50, elapsed_s=10.0)
        assert made.last_run_speed() == 5.0
    finally:
        made.close()


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
        assert made.explain(LATE)["standing"]["price"] == pytest.approx(12.0)
    finally:
        made.close()
        lock.release()


def test_bids_of_a_crawl_that_rests_are_net_of_its_last_price(view: CrawlView, tmp_path: Path) -> None:
    assert view.rate_per_s() == 0.01
    assert view.repository.price == pytest.approx(PRICE * UNIT)
    assert view.price() == pytest.approx(PRICE * UNIT / view.policy.unit(view.repository.snapshot(view.now)))
    past = make_auto_past(tmp_path / "free", rate_per_s=0.0)
    past.repository.close()
    free = CrawlView(past.folder.root)
    try:
        assert (free.repository.price, free.price()) == (0.0, 1.0)  # without a budget all that bids the reserve is due
    finally:
        free.close()


def test_history_names_the_unit_of_each_decision(view: CrawlView, root: Path) -> None:
    """The unit changes with every study: without it bids of two times cannot be compared."""
    story = view.explain(LATE)
    unit = story["standing"]["unit_clicks"]
    for event in story["history"]:
        assert event["worth"]["unit"] == "units"
        assert event["worth"]["price"] == pytest.approx(PRICE * UNIT / unit)  # those of now
        assert event["worth"]["bid"] / event["worth"]["price"] == pytest.approx(event["bid"] / event["price"])
    text = CliRunner().invoke(explain_command, [str(root), LATE]).output
    price = f"{PRICE * UNIT / unit:.4g} units"
    assert text.partition("  history\n")[2].count(f"price {price}") == 2
    assert f", price {price}\n" in text.partition("  history\n")[0]  # as the price of now: it is the same
    row = view.next(1)[0]
    assert row["worth"] == {"bid": row["bid"], "price": row["price"], "unit": "units"}


def test_past_decisions_in_clicks_and_units() -> None:
    known, unknown = {"unit": 0.5}, {"unit": 0.5, "by_clicks": False}
    assert tell_past_worth(8.0, 2.0, known, (0.25, False)) == {"bid": 4.0, "price": 1.0, "unit": "clicks"}
    for now in ((0.25, True), (0.0, False)):
        assert tell_past_worth(8.0, 2.0, unknown, now) == {"bid": 8.0, "price": 2.0, "unit": "units of then"}
    assert tell_past_worth(8.0, 2.0, {}, (0.25, True)) == {"bid": 8.0, "price": 2.0, "unit": ""}


def test_the_journal_says_while_no_click_is_known(view: CrawlView) -> None:
    snapshot = view.repository.snapshot(view.now)
    assert not view.policy.by_clicks(snapshot)
    assert view.policy.common_terms(snapshot)["by_clicks"] is False
    assert snapshot.refresh_study is not None
    clicked = replace(snapshot, refresh_study=replace(snapshot.refresh_study, clicks_per_s=1.0))
    assert view.policy.by_clicks(clicked)
    assert "by_clicks" not in view.policy.common_terms(clicked)
