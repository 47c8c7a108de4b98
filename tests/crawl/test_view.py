"""Looking beside a crawl that runs: what is newer than the look has names too."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.crawl.auto_past import make_auto_past
from tests.crawl.crawling import make_crawl, set_policy

from bowerbird.appraise.policy import AUTO, PLAIN
from bowerbird.crawl import view as view_module
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.policy_choice import PolicyChoice
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import QueryAsked
from bowerbird.demand.workload import build_workload
from bowerbird.model.outcome import Outcome
from bowerbird.model.study import mark_queries, seal_marks
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.gains import MeasuredGain
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

SEED = "http://a.example/"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl", [SEED])


@pytest.fixture
def writer(root: Path) -> Iterator[Repository]:
    repository = Repository(CrawlFolder(root), write=True)
    yield repository
    repository.close()


def test_a_redirect_to_a_url_newer_than_the_look(root: Path, writer: Repository) -> None:
    view = CrawlView(root)
    assert view.status()["known"] == 1
    now = time.time()
    rows, _ = writer.add_urls(["http://a.example/new"], at=now, source=0)
    record = FetchRecord(0, FetchKind.NEW, now, 1.0, 1.0, "{}", now, Outcome.REDIRECT, UrlState.REDIRECT)
    record.target = int(rows[0])
    writer.record(record)
    writer.commit()
    assert view.explain(SEED)["history"][0]["redirects_to"] == "http://a.example/new"
    view.close()


@pytest.mark.parametrize(
    ("robots", "url", "kind", "how"),
    [
        (b"", "http://a.example/sitemap.xml", UrlKind.SITEMAP, "looked for at a well-known place"),
        (
            b"Sitemap: http://a.example/sitemap.xml",
            "http://a.example/sitemap.xml",
            UrlKind.SITEMAP,
            "named in robots.txt",
        ),
        (b"Sitemap: http://a.example/s/1.xml", "http://a.example/s/1.xml", UrlKind.SITEMAP, "named in robots.txt"),
        (b"", "http://a.example/feed", UrlKind.FEED, "looked for at a well-known place"),
    ],
)
def test_what_no_page_led_to_was_not_always_given(
    root: Path, writer: Repository, robots: bytes, url: str, kind: UrlKind, how: str
) -> None:
    now = time.time()
    writer.table.hosts.columns["robots_at"][0] = now - 10 * 86_400  # too old to obey, but not to tell
    writer.table.hosts.dirty.add(0)
    writer.record_robots(0, "ok", robots)
    writer.add_urls([url], at=now, kind=kind, depth=1)
    writer.add_urls(["http://a.example/linked"], at=now, depth=1, source=0)
    writer.commit()
    view = CrawlView(root)
    try:
        assert view.found_how(url) == how
        assert view.found_how(SEED) == "given by a person"
        assert view.found_how("http://a.example/linked") == f"on {SEED}"
    finally:
        view.close()


def test_a_search_does_not_load_the_columns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "Repository", None)
    view = CrawlView(root)
    assert view.search("anything", 10).total == 0
    view.close()


def test_next_and_explain_bid_as_the_running_crawl_does(root: Path, writer: Repository) -> None:
    def policy(given: str | None = None) -> str:
        view = CrawlView(root, given)
        try:
            return str(view.next(1)[0]["terms"]["by"])
        finally:
            view.close()

    assert policy() == "breadth-first"
    writer.connection.execute("INSERT INTO runs (started_at, policy) VALUES (1, 'random+adaptive')")
    assert policy() == "breadth-first"  # that run was killed
    lock = WriterLock(CrawlFolder(root))
    try:
        assert policy() == "random"
        assert policy("in-degree") == "in-degree"
        writer.connection.execute("UPDATE runs SET ended_at = 2")
        assert policy() == "breadth-first"  # somebody else writes: `add`
    finally:
        lock.release()


@pytest.mark.parametrize("price", [2.0, 1e9, 1e15])
def test_what_is_due_in_ages_waits_until_nothing_better_is_left(
    root: Path, writer: Repository, monkeypatch: pytest.MonkeyPatch, price: float
) -> None:
    now = time.time()
    record_page(writer, now - 60.0, Outcome.OK, UrlState.FETCHED)
    monkeypatch.setattr(CrawlView, "price", lambda _: price)
    view = CrawlView(root)
    (seed,) = (one for one in view.next(10) if one["url"] == SEED)
    view.close()
    if price < 10:
        assert datetime.fromisoformat(seed["when"]).timestamp() > now
    else:
        assert seed["when"] == "when nothing better is left"


@pytest.mark.parametrize("at", [None, 0.0, math.inf, 1e15, 253_402_300_800.0])
def test_no_clock_tells_a_time_that_no_calendar_has(at: float | None) -> None:
    assert clock_text(at) is None
    assert clock_text(253_402_300_799.0) == "9999-12-31T23:59:59+00:00"


def test_looking_at_one_slow_host_does_not_go_through_its_bids_one_by_one(
    root: Path, writer: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"http://a.example/{number}" for number in range(3000)]
    writer.add_urls(urls, at=time.time(), depth=[1 + number % 7 for number in range(len(urls))])
    writer.commit()
    asked: list[int] = []
    one_bid = Auction.bid
    monkeypatch.setattr(Auction, "bid", lambda self, row: asked.append(row) or one_bid(self, row))
    view = CrawlView(root)
    rows = view.next(50)
    story = view.explain(urls[-1])
    view.close()
    assert len({row["url"] for row in rows}) == 50
    waiting = [row["bid"] for row in rows if row["when"] != "now"]
    assert waiting == sorted(waiting, reverse=True)
    assert 0 < story["expected"]["before_it_on_host"] <= len(urls)
    assert len(asked) < 100


def test_explain_shows_the_bid_that_next_shows_also_where_a_host_repeats_itself(root: Path, writer: Repository) -> None:
    hosts = writer.table.hosts
    hosts.columns["pages"][0], hosts.columns["duplicates"][0] = 80, 50
    hosts.dirty.add(0)
    writer.commit()
    view = CrawlView(root)
    try:
        (row,) = view.next(1)
        story = view.explain(SEED)
    finally:
        view.close()
    bid = story["bid"]
    assert bid["value"] == pytest.approx(row["bid"])
    tree = bid["tree"]
    assert (tree["name"], tree["note"]) == ("bid", "by breadth-first")
    assert tree["value"] == pytest.approx(row["bid"]) == pytest.approx(2.0)  # what the price sees: before the weight
    assert tree["children"][0]["name"] == "1 + 1/(1 + depth)"
    assert story["host"]["trap_score"] == pytest.approx(0.5)


def record_page(writer: Repository, at: float, outcome: Outcome, state: UrlState) -> None:
    writer.record(FetchRecord(0, FetchKind.REFRESH, at, 1.0, 1.0, "{}", at, outcome, state))
    writer.commit()


def tell_gain(writer: Repository, at: float, marks: Sequence[int] = ()) -> None:
    shares = np.full(len(marks), 0.5, dtype=np.float32)
    writer.record_gains([MeasuredGain(0, at, at - 50.0, 0.01, 3, np.array(marks, dtype=np.uint64), shares)])
    writer.commit()


def explain_known(root: Path) -> dict[str, Any]:
    view = CrawlView(root, "breadth-first+user-centric")
    try:
        tree: dict[str, Any] = view.explain(SEED)["bid"]["tree"]
    finally:
        view.close()
    return tree


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Outcome.FORGOTTEN, UrlState.FORGOTTEN), (Outcome.ROBOTS, UrlState.EXCLUDED)],
    ids=["forgotten", "excluded"],
)
def test_a_page_with_measured_gains_that_is_fetched_no_more_is_explained(
    root: Path, writer: Repository, outcome: Outcome, state: UrlState
) -> None:
    now = time.time()
    record_page(writer, now - 9.0, Outcome.OK, UrlState.FETCHED)
    tell_gain(writer, now - 9.0)
    assert "gains measured" in str(explain_known(root))
    record_page(writer, now, outcome, state)
    tree = explain_known(root)
    assert tree["name"] == "no bid"
    assert state.name.lower() in tree["note"]
    assert "gains measured" not in str(tree)


@pytest.mark.parametrize("most", [(1, 10), (10, 1)], ids=["of gains", "of new pages"])
def test_a_query_is_named_whichever_looks_at_so_many(tmp_path: Path, most: tuple[int, int]) -> None:
    sections = {"frontier": {"max_queries": most[0]}, "quality": {"max_queries": most[1]}}
    root = make_crawl(tmp_path / "crawl", [SEED], sections)
    folder, now = CrawlFolder(root), time.time()
    with open_demand(folder, load_settings(folder.config).demand, write=True) as log:
        log.record([QueryAsked("often asked", now, 50), QueryAsked("seldom asked", now, 5)])
        workload = build_workload(log, now)
    marks = seal_marks(mark_queries(workload.queries), workload.mark_key).tolist()
    writer = Repository(folder, write=True)
    record_page(writer, now, Outcome.OK, UrlState.FETCHED)
    tell_gain(writer, now, marks)
    writer.close()
    tree = str(explain_known(root))
    assert "query 'often asked'" in tree
    assert "query 'seldom asked'" in tree


@pytest.mark.parametrize(
    ("last", "hint"),
    [
        ("breadth-first+adaptive", ""),
        ("rw-eg+adaptive", "--policy rw-eg shows its bids"),
        ("breadth-first+fixed", "--policy fixed shows its bids"),
        ("rw-eg+fixed", "--policy rw-eg+fixed shows its bids"),
        ("breadth-first+adaptive+echo", "--policy echo shows its bids"),
        ("of-another-version+adaptive", ""),
    ],
)
def test_a_hint_tells_of_the_policy_that_the_last_crawl_had(
    root: Path, writer: Repository, last: str, hint: str
) -> None:
    def look(asked: str | None = None) -> PolicyChoice:
        view = CrawlView(root, asked)
        view.close()
        return view.choice

    assert look().hint() == ""  # there was no run yet
    writer.connection.execute("INSERT INTO runs (started_at, policy) VALUES (1, ?)", (last,))
    said = f"the last crawl ran with {last}, the settings say breadth-first+adaptive: {hint}" if hint else ""
    assert look().hint() == said
    assert look("random").hint() == ""
    lock = WriterLock(CrawlFolder(root))
    try:
        assert look().hint() == ""  # it is the one that is looked by
        if last == "rw-eg+fixed":
            assert look("random").policy.name == "random+fixed"
    finally:
        lock.release()
    studied = ("rw-eg",) if last.startswith("rw-eg") else ("echo",) if last.endswith("echo") else ()
    assert look().to_study().studied == studied
    assert look("random").to_study().studied == ()


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        (AUTO, PLAIN),  # a crawl made before `auto` was the default
        (AUTO, "rw-eg+adaptive"),
        (AUTO, "breadth-first+adaptive+echo"),
        (AUTO, "informed+user-centric+echo"),
        (PLAIN, AUTO),
        ("informed+user-centric+echo", AUTO),
    ],
)
def test_a_hint_beside_auto_names_the_whole_policy(root: Path, writer: Repository, settings: str, last: str) -> None:
    def look(asked: str | None = None) -> PolicyChoice:
        view = CrawlView(root, asked)
        view.close()
        return view.choice

    set_policy(root, settings)
    for ran, hint in ((settings, ""), (last, f"--policy {last} shows its bids")):
        writer.connection.execute("INSERT INTO runs (started_at, policy) VALUES (1, ?)", (ran,))
        said = f"the last crawl ran with {last}, the settings say {settings}: {hint}" if hint else ""
        assert look().hint() == said
    assert look(last).policy.name == last  # what the hint names is what the crawl had
    assert look().to_study().name == (settings if settings != PLAIN else AUTO)


def test_a_page_fetched_just_now_is_not_called_overdue(tmp_path: Path) -> None:
    past = make_auto_past(tmp_path / "crawl")
    row = past.add("http://a.example/topic/late-1", past.now)
    past.repository.record(
        FetchRecord(row, FetchKind.REFRESH, past.now, 1.0, 1.0, "{}", past.now, Outcome.OK, UrlState.FETCHED)
    )
    past.repository.commit()
    past.repository.close()
    view = CrawlView(tmp_path / "crawl")
    try:
        story = view.explain("http://a.example/topic/late-1")
    finally:
        view.close()
    (bound,) = [one for one in story["bid"]["tree"]["children"] if one["name"] == "bound"]
    assert bound["note"] == "not before the shortest interval"
    assert bound["value"] == pytest.approx(story["bid"]["value"], rel=0.01)
    (of_study,) = bound["children"]
    assert "overdue" not in of_study["note"]
    assert of_study["name"] == "gain of a refresh/price"


def test_next_goes_by_the_last_price_while_no_crawl_runs(tmp_path: Path) -> None:
    past = make_auto_past(tmp_path / "crawl", rate_per_s=5.0)
    past.repository.close()
    view = CrawlView(tmp_path / "crawl")
    try:
        price = view.price()
        line = view.next(200)
    finally:
        view.close()
    assert price > view.policy.reserve
    assert {row["price"] for row in line} == {price}
    below = [row["when"] for row in line if row["bid"] < price]
    assert below
    assert "now" not in below
