"""Scrapy with our scheduler: a real spider over a made-up web, killed and resumed; and the scheduler by itself."""

from __future__ import annotations

import importlib
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scrapy
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Request, Response
from scrapy.utils.test import get_crawler
from tests.crawl.crawling import run_command
from twisted.internet.defer import Deferred

import bowerbird.integrations.scrapy
import bowerbird.integrations.scrapy.scheduler as scheduler_module
from bowerbird.crawl.guest_frontier import GuestFrontier
from bowerbird.crawl.guest_requests import RequestTable, make_request_table
from bowerbird.crawl.session import CrawlSession, apply_requests
from bowerbird.crawl.view import CrawlView
from bowerbird.integrations.scrapy import Scheduler
from bowerbird.integrations.scrapy.feedback import read_page, read_status
from bowerbird.integrations.scrapy.needed_version import LEAST
from bowerbird.integrations.scrapy.request_facts import HANDED_OUT
from bowerbird.integrations.scrapy.scheduler import AHEAD, CANNOT_WRITE
from bowerbird.lab.world import Access, TrapKind, World, WorldServer, WorldSpec
from bowerbird.lab.world.wire import Faults
from bowerbird.model.errors import ConfigError, DiskFullError, FolderError
from bowerbird.store.connection import EmbeddedConnection
from bowerbird.store.repository import Repository
from bowerbird.web.url import Canonicaliser

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "scrapy_spider"
SPEC = WorldSpec(
    seed=8, frozen=True, hosts=8, pages=160, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=3000
)
CONCURRENT = 8
SCRAPED_BYTES = 8 << 10  # with the spider at once; what comes then is not asked for

# What may be fetched and not be done when the process dies, however slow the machine is: the requests with the
# downloader; answers with the spider, each of which counts a kilobyte at least, and those that came after it had
# enough; and pages that are done, fewer than are committed at once whatever the time.
MOST_IN_FLIGHT = CONCURRENT + (SCRAPED_BYTES // 1024 + 1) + (AHEAD * CONCURRENT - 1)


def start_spider(folder: Path, seeds: list[str], *more: str, most_bytes: int = 0) -> subprocess.Popen[bytes]:
    """The example's spider, in the example's project: nothing of it knows that it is a test.

    With `most_bytes` no file can be longer: the disk is full.
    """
    listed = folder / "seeds.txt"
    listed.write_text("\n".join(seeds), encoding="utf-8")
    options = {
        "BOWERBIRD_DIR": str(folder / "crawl"),
        "BOWERBIRD_POLICY": "in-degree",
        "CONCURRENT_REQUESTS": str(CONCURRENT),
        "LOG_LEVEL": "WARNING",
        "SCRAPER_SLOT_MAX_ACTIVE_SIZE": str(SCRAPED_BYTES),
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"seeds={listed}", "-a", "within=http://127.0."]
    command += [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen([*command, *more], cwd=PROJECT, stderr=log)
    if most_bytes:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return process


def addresses(log: list[Access]) -> Counter[tuple[str, str]]:
    return Counter((access.host, access.path) for access in log if access.path != "/robots.txt")


def settled_log(server: WorldServer) -> list[Access]:
    """The server's log when it has read and answered all that a process sent before it died."""
    log, same = server.log(), 0
    while same < 5:  # each time the server's loop goes round
        time.sleep(0.05)
        same = same + 1 if len(server.log()) == len(log) else 0
        log = server.log()
    return log


def dealt_with(folder: Path) -> set[tuple[str, str]]:
    """Pages that are done, as a folder has them that nobody holds."""
    with sqlite3.connect(folder / "crawl" / "state.db") as state:
        urls = state.execute(
            "SELECT urls.url FROM guest_requests JOIN urls ON urls.id = guest_requests.url WHERE request IS NULL"
        ).fetchall()
    return {(url.split("/")[2], "/" + url.split("/", 3)[3]) for (url,) in urls}


def test_a_spider_is_killed_twice_and_resumes_without_loss_or_repeats(tmp_path: Path) -> None:
    """Whatever a run asks for was not done before it, so a repeat is a page that was in flight when a process died."""
    with WorldServer(World(SPEC), faults=Faults(latency_ms=25.0)) as server:
        want = server.world.reachable(SPEC.start_s, nofollow=True)
        seeds = server.world.seeds()
        done: set[tuple[str, str]] = set()
        may_repeat: Counter[tuple[str, str]] = Counter()
        before = 0  # entries of the server's log
        for share in (0.25, 0.6):
            process = start_spider(tmp_path, seeds)
            deadline = time.monotonic() + 240
            while len(server.log()) < share * len(want) and time.monotonic() < deadline:
                assert process.poll() is None, (tmp_path / "log.txt").read_text()
                time.sleep(0.02)
            process.kill()
            process.wait()
            log = settled_log(server)
            asked = addresses(log[before:])
            assert not done & set(asked)
            assert max(asked.values()) == 1
            before = len(log)
            later = dealt_with(tmp_path)
            assert done <= later
            done = later
            in_flight = set(asked) - done
            assert len(in_flight) <= MOST_IN_FLIGHT
            may_repeat.update(in_flight)
        process = start_spider(tmp_path, seeds)
        assert process.wait(240) == 0, (tmp_path / "log.txt").read_text()
        everything = server.log()
        asked = addresses(everything[before:])
        assert not done & set(asked)
        assert max(asked.values()) == 1
        fetched = addresses(everything)
        assert want <= set(fetched)
        assert {page: times - 1 for page, times in fetched.items() if times > 1} == dict(may_repeat)
        assert (tmp_path / "log.txt").read_text() == ""
        _look_at(tmp_path / "crawl", want)

        # that round is over: the next one asks for everything again, and knows what changed
        process = start_spider(tmp_path, seeds, "-s", "CLOSESPIDER_PAGECOUNT=40")
        assert process.wait(240) == 0
        again = addresses(server.log()[len(everything) :])
        assert 30 <= len(again) <= 40 + MOST_IN_FLIGHT
        status = run_command("status", tmp_path / "crawl", "--json").json()
        assert status["budget"]["refresh"] >= 30


def test_a_spider_ends_where_every_link_has_another_session(tmp_path: Path) -> None:
    """Killed and run again: of a page with sessions no spelling is asked for once another was dealt with."""
    options = ("-s", "DEPTH_LIMIT=8", "-s", "REDIRECT_MAX_TIMES=3", "-s", "LOG_LEVEL=CRITICAL")  # for the other traps
    with WorldServer(World(replace(SPEC, trap_share=1.0)), faults=Faults(latency_ms=10.0)) as server:
        world = server.world
        trapped = {trap.host for trap in world.traps() if trap.kind is TrapKind.SESSIONS}
        seeds = [*world.seeds(), *(f"http://{host}/?sid={7:016x}" for host in trapped)]
        seeds = [seed for seed in seeds if seed not in {f"http://{host}/" for host in trapped}]

        def asked(first: int) -> Counter[tuple[str, str]]:
            pages = ((access.host, access.path.partition("?sid=")[0]) for access in settled_log(server)[first:])
            return Counter(page for page in pages if page[0] in trapped and page[1] != "/robots.txt")

        process = start_spider(tmp_path, seeds, *options)
        deadline = time.monotonic() + 240
        while len(server.log()) < 60 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
        one, first = asked(0), len(settled_log(server))
        assert max(one.values(), default=1) == 1
        done = dealt_with(tmp_path)
        process = start_spider(tmp_path, seeds, *options)
        assert process.wait(240) == 0, (tmp_path / "log.txt").read_text()
        two = asked(first)
        assert max(two.values(), default=1) == 1
        assert not done & set(two)
        want = {page for page in world.reachable(SPEC.start_s, nofollow=True) if page[0] in trapped}
        assert want <= set(one) | set(two)
        assert any("?sid=" in access.path for access in server.log())


def test_a_spider_on_a_full_disk_ends_and_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with WorldServer(World(SPEC)) as server:
        want = server.world.reachable(SPEC.start_s, nofollow=True)
        process = start_spider(tmp_path, server.world.seeds(), "-s", "LOG_LEVEL=INFO", most_bytes=400_000)
        process.wait(240)
        said = (tmp_path / "log.txt").read_text()
        assert "cannot be written down any more" in said
        assert "the disk took no more" in said
        assert f"Spider closed ({CANNOT_WRITE})" in said
        assert "Traceback" not in said
        assert 0 < len(server.log()) < len(want)
        done = dealt_with(tmp_path)
        before = len(server.log())
        (tmp_path / "log.txt").unlink()
        process = start_spider(tmp_path, server.world.seeds())
        assert process.wait(240) == 0
        assert (tmp_path / "log.txt").read_text() == ""
        assert not done & set(addresses(server.log()[before:]))
        assert want <= set(addresses(server.log()))


def _look_at(folder: Path, want: set[tuple[str, str]]) -> None:
    """The folder is a crawl's as any other."""
    status = run_command("status", folder, "--json").json()
    assert (status["running"], status["fetched"]) == (False, len(want))
    with sqlite3.connect(folder / "state.db") as state:
        linked = state.execute(
            "SELECT url, text FROM anchors JOIN urls ON urls.id = anchors.target WHERE urls.source >= 0"
        ).fetchall()
    assert len(linked) > len(want) / 2  # pages were read, too: a plain spider does not say what its links are called
    told = run_command("explain", folder, linked[0][0], "--json").json()
    assert told["found_on"].startswith("http://127.0.")
    assert told["in_links"] >= 1
    assert linked[0][1] in told["anchors"]


class OneSpider(scrapy.Spider):
    name = "one/spider"

    def parse(self, response: Response) -> None: ...

    def parse_more(self, response: Response, word: str = "") -> None: ...


class Bench:
    """A scheduler with as much of an engine as it looks at."""

    def __init__(self, root: Path, **options: Any) -> None:
        given = {"BOWERBIRD_DIR": str(root), "BOWERBIRD_POLICY": "breadth-first", **options}
        self.crawler = get_crawler(OneSpider, given)
        self.crawler.spider = OneSpider.from_crawler(self.crawler)
        self.under_way: set[Request] = set()
        self.closed: list[str] = []

        async def close(reason: str) -> None:
            self.closed.append(reason)

        slot = SimpleNamespace(inprogress=self.under_way)
        self.crawler.engine = SimpleNamespace(_slot=slot, close_spider_async=close)  # type: ignore[assignment]
        self.scheduler = Scheduler.from_crawler(self.crawler)
        self.scheduler.open(self.crawler.spider)

    def put(self, *requests: Request) -> list[bool]:
        return [self.scheduler.enqueue_request(request) for request in requests]

    def next(self) -> Request | None:
        request = self.scheduler.next_request()
        if request is not None:
            self.under_way.add(request)
        return request

    def finish(self, request: Request, response: Response | None = None) -> None:
        if response is not None:
            for signal in (scrapy.signals.response_downloaded, scrapy.signals.response_received):
                self.crawler.signals.send_catch_log(signal, response=response, request=request, spider=None)
        self.under_way.discard(request)
        self.scheduler._tick()

    def crash(self) -> None:
        self.scheduler._settle()
        self.scheduler._commit_took_s = 0.0
        self.scheduler._commit()
        self.scheduler.crawl.abandon()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    idle = SimpleNamespace(start=lambda *_, **__: None, stop=lambda: None)
    monkeypatch.setattr(scheduler_module, "create_looping_call", lambda _: idle)
    monkeypatch.setattr(scheduler_module, "deferred_from_coro", Deferred.fromCoroutine)  # no loop runs here
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path / "crawl", **options))
        return made[-1]

    yield make
    made[-1].scheduler.crawl.abandon()


def test_requests_survive_whole_and_in_flight_ones_come_back(bench: Callable[..., Bench]) -> None:
    one = bench()
    spider = one.crawler.spider
    request = Request(
        "http://a.example/x#frag",
        spider.parse_more,
        method="POST",
        body=b"\x00body",
        headers={"X-Name": "value"},
        meta={"deep": {"list": [1, "two"]}},
        cb_kwargs={"word": "wört"},
        priority=3,
        errback=spider.parse,
    )
    assert one.put(request, Request("http://a.example/y")) == [True, True]
    assert one.put(Request("http://a.example/y")) == [False]
    taken = one.next()
    assert taken is not None
    one.crash()

    two = bench()
    assert two.scheduler.has_pending_requests()
    again = two.next()
    assert again is not None
    assert again.meta.pop(HANDED_OUT) is True
    assert again.to_dict(spider=two.crawler.spider) == request.to_dict(spider=spider)
    assert again.callback == two.crawler.spider.parse_more
    two.finish(again, Response("http://a.example/x", status=200, body=b"hi"))
    other = two.next()
    assert other is not None
    assert other.url == "http://a.example/y"
    assert two.next() is None
    two.crash()

    three = bench()
    assert [three.next(), three.next()] != [None, None]
    assert three.put(Request("http://a.example/y")) == [False]
    columns = three.scheduler.crawl.repository.table.columns
    assert columns["fetches"].tolist() == [1, 0]


def test_what_a_page_led_to_is_durable_with_the_page(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.put(Request("http://a.example/"))
    page = one.next()
    assert page is not None
    body = b"<title>T</title><a href=/b>Some  anchor</a>"
    response = HtmlResponse(page.url, body=body, headers={"Content-Type": "text/html"}, encoding="utf-8", request=page)
    for signal in (scrapy.signals.response_downloaded, scrapy.signals.response_received):
        one.crawler.signals.send_catch_log(signal, response=response, request=page, spider=None)
    one.put(Request("http://a.example/b", headers={"Referer": page.url}, meta={"depth": 1}))
    assert one.put(Request("http://a.example/b", headers={"Referer": "http://a.example/b"})) == [False]
    one.put(Request("http://a.example/c"))
    assert one.put(Request("http://a.example/b", headers={"Referer": "http://a.example/c"})) == [False]
    one.finish(page)
    one.scheduler.crawl.abandon()  # as it was committed by itself

    two = bench()
    repository = two.scheduler.crawl.repository
    assert repository.anchors(1) == ["Some anchor"]
    assert repository.table.columns["depth"].tolist() == [0, 1, 0]
    assert repository.table.columns["in_degree"].tolist() == [0, 2, 0]  # a filtered request is a link, too
    assert {request.url for request in iter(two.next, None)} == {"http://a.example/b", "http://a.example/c"}


def test_filtering_is_scrapys_but_for_start_requests_that_were_seen(bench: Callable[..., Bench]) -> None:
    start = {"is_start_request": True}
    one = bench()
    assert one.put(Request("http://a.example/", dont_filter=True, meta=start)) == [True]
    assert one.put(Request("http://a.example/")) == [False]  # a link to a start page does not fetch it again
    assert one.put(Request("http://a.example/", dont_filter=True)) == [True]  # a retry, for example
    assert one.put(Request("http://a.example/", dont_filter=True, meta=start)) == [True]  # the spider's wish
    one.crash()
    two = bench()
    assert two.put(Request("http://a.example/", dont_filter=True, meta=start)) == [False]
    assert two.scheduler.requests.waiting == 3
    two.crash()
    three = bench(BOWERBIRD_REPEAT_START=True)
    assert three.put(Request("http://a.example/", dont_filter=True, meta=start)) == [True]


def test_another_spelling_of_a_url_that_was_seen_is_filtered(bench: Callable[..., Bench]) -> None:
    one = bench()
    page = "http://a.example/x?sid="
    assert one.put(Request(page + "0" * 16), Request(page + "1" * 16)) == [True, False]  # it waits
    taken = one.next()
    assert taken is not None
    assert taken.url == page + "0" * 16  # as the spider said it
    assert one.put(Request("http://a.example/x?utm_source=y")) == [False]  # it is under way
    one.finish(taken)
    one.crash()
    two = bench()
    assert two.put(Request(page + "2" * 16), Request("http://a.example/x#top")) == [False, False]  # it was dealt with
    assert two.put(Request("http://a.example/x")) == [False]
    for request in (
        Request(page + "3" * 16, method="POST", body=b"1"),
        Request(page + "3" * 16, method="POST", body=b"2"),
        Request(page + "3" * 16, dont_filter=True),
        taken.replace(dont_filter=True),  # as a retry is
        Request("http://a.example/x?story=3"),
    ):
        assert two.put(request) == [True], request
    assert two.put(Request(page + "4" * 16, method="POST", body=b"2")) == [False]
    assert two.crawler.stats is not None
    assert two.crawler.stats.get_value("bowerbird/filtered_by_canonical_url") == 2
    assert two.crawler.stats.get_value("dupefilter/filtered") == 4


def test_a_redirect_to_another_spelling_of_the_same_url_is_followed(bench: Callable[..., Bench]) -> None:
    """Many a site sends a visitor without a session to the same page with one, or back."""
    one = bench()
    plain, named = "http://a.example/x", "http://a.example/x?sid=" + "0" * 16
    assert one.put(Request(plain)) == [True]
    there = Request(named, meta={"redirect_urls": [plain]})
    back = Request(plain, meta={"redirect_urls": [plain, named]})
    assert one.put(there, back, there, back) == [True, True, False, False]
    assert one.put(Request(plain, meta={"redirect_urls": ["http://a.example/y"]})) == [False]


def test_scrapys_fingerprints_decide_where_that_is_wished(bench: Callable[..., Bench]) -> None:
    one = bench(BOWERBIRD_CANONICAL_URLS=False)
    spelt = [Request(f"http://a.example/x?sid={n:016}") for n in range(3)]
    assert one.put(*spelt, spelt[0]) == [True, True, True, False]
    assert one.crawler.stats is not None
    assert one.crawler.stats.get_value("bowerbird/filtered_by_canonical_url") is None


def test_a_finished_crawl_begins_a_new_round_and_a_stopped_one_does_not(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.put(Request("http://a.example/"))
    request = one.next()
    assert request is not None
    one.finish(request)
    one.scheduler.close("shutdown")
    two = bench()
    assert two.put(Request("http://a.example/")) == [False]
    two.scheduler.close("finished")
    three = bench()
    assert three.put(Request("http://a.example/")) == [True]


def test_what_cannot_be_written_down_is_kept_in_memory_and_said(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture
) -> None:
    one = bench()
    assert one.put(Request("http://a.example/", meta={"lock": open(os.devnull)})) == [True]  # noqa: SIM115, PTH123
    assert "cannot be written down" in caplog.text
    request = one.next()
    assert request is not None
    assert not request.meta["lock"].closed
    request.meta["lock"].close()
    one.finish(request)
    assert one.put(Request("data:,not-a-page"), Request("http://b.example/")) == [True, True]
    found = {request.url for request in (one.next(), one.next()) if request is not None}
    assert found == {"data:,not-a-page", "http://b.example/"}


def test_priority_first_then_bids(bench: Callable[..., Bench]) -> None:
    one = bench()
    for n in range(3):
        one.put(Request(f"http://deep.example/{n}", meta={"depth": 3}), Request(f"http://flat.example/{n}"))
    one.put(Request("http://deep.example/first", priority=5, meta={"depth": 9}))
    order = [request.url for request in iter(one.next, None)]
    assert order[0] == "http://deep.example/first"
    assert {url.split("/")[2] for url in order[1:4]} == {"flat.example"}


def test_a_higher_priority_goes_before_what_was_chosen_ahead(bench: Callable[..., Bench]) -> None:
    one = bench(CONCURRENT_REQUESTS=4)
    one.put(*(Request(f"http://a.example/{n}", priority=n % 2) for n in range(40)))
    first = one.next()
    assert first is not None
    assert first.priority == 1
    assert len(one.scheduler._chosen) == 15
    lock = open(os.devnull)  # noqa: SIM115, PTH123
    one.put(
        Request("http://b.example/low", priority=-1), Request("http://b.example/kept", priority=5, meta={"l": lock})
    )
    one.put(*(Request(f"http://b.example/{n}", priority=n % 5) for n in range(30)))
    assert one.scheduler.has_pending_requests()
    order = list(iter(one.next, None))
    lock.close()
    assert [request.priority for request in order] == sorted((request.priority for request in order), reverse=True)
    assert order[0].url == "http://b.example/kept"
    assert len({request.url for request in order}) == len(order) == 39 + 32
    assert not one.scheduler.has_pending_requests()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.integers(-3, 3), st.none()), max_size=60))
def test_the_next_request_always_has_the_highest_priority(steps: list[int | None]) -> None:
    """A number puts a request of that priority; None takes the next."""
    idle = SimpleNamespace(start=lambda *_, **__: None, stop=lambda: None)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler_module, "create_looping_call", lambda _: idle)
        one = Bench(Path(folder) / "crawl", CONCURRENT_REQUESTS=1)
        waiting: list[int] = []
        for n, step in enumerate([*steps, *[None] * len(steps)]):
            if step is not None:
                assert one.put(Request(f"http://h{n % 3}.example/{n}", priority=step)) == [True]
                waiting.append(step)
                continue
            request = one.next()
            if request is None:
                assert not waiting
            else:
                assert request.priority == max(waiting)
                waiting.remove(request.priority)
            assert one.scheduler.has_pending_requests() == bool(waiting)
        one.scheduler.crawl.abandon()


def test_what_cannot_be_committed_ends_the_spider_and_is_done_again(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bench()
    one.put(Request("http://a.example/"), Request("http://a.example/b"))
    page = one.next()
    assert page is not None
    one.scheduler._tick()
    one.scheduler._commit_took_s = 0.0  # the next is due at once

    def full(*_: object, **__: object) -> None:
        raise DiskFullError("state.db: the disk took no more.")

    monkeypatch.setattr(one.scheduler.crawl.repository, "commit", full)
    assert one.put(Request("http://a.example/c")) == [True]
    one.finish(page, Response("http://a.example/", status=200, body=b"hi"))
    assert one.closed == [CANNOT_WRITE]
    assert "the disk took no more" in caplog.text
    assert one.crawler.stats is not None
    assert "no more" in one.crawler.stats.get_value("bowerbird/cannot_write")
    assert one.next() is None
    assert one.put(Request("http://a.example/d")) == [False]  # nothing piles up
    one.scheduler._tick()
    assert one.closed == [CANNOT_WRITE]
    one.scheduler.close(CANNOT_WRITE)

    two = bench()
    found = {request.url for request in iter(two.next, None)}
    assert found == {"http://a.example/", "http://a.example/b"}


def test_many_pages_that_are_done_are_committed_however_long_a_commit_takes(bench: Callable[..., Bench]) -> None:
    one = bench(CONCURRENT_REQUESTS=2)
    one.put(*(Request(f"http://a.example/{n}") for n in range(20)))
    one.scheduler._tick()
    one.scheduler._commit_took_s = 1e9
    connection = one.scheduler.crawl.repository.connection
    for n in range(1, 20):
        page = one.next()
        assert page is not None
        one.finish(page)
        (durable,) = connection.execute("SELECT count(*) FROM guest_requests WHERE request IS NULL").fetchone()
        assert n - durable < AHEAD * 2
        one.scheduler._commit_took_s = 1e9


def test_a_last_commit_that_fails_ends_no_round(
    bench: Callable[..., Bench], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bench()
    one.put(Request("http://a.example/"))
    page = one.next()
    assert page is not None
    one.scheduler._tick()
    one.under_way.clear()

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "commit", full)
        one.scheduler.close("finished")
    assert "the disk took no more" in caplog.text
    two = bench()
    again = two.next()
    assert again is not None
    assert again.url == "http://a.example/"


def test_people_are_told_what_scrapy_is_given(bench: Callable[..., Bench], tmp_path: Path) -> None:
    def look() -> tuple[list[tuple[str, str]], dict[str, str]]:
        view = CrawlView(tmp_path / "crawl")
        try:
            coming = [(row["url"].rpartition("/")[2], row["when"]) for row in view.next(10)]
            urls = view.repository.urls(range(view.repository.table.columns.count))
            return coming, {url.rpartition("/")[2]: view.explain(url)["guest"]["text"] for url in urls}
        finally:
            view.close()

    one = bench()
    one.put(Request("http://a.example/done"))
    done = one.next()
    assert done is not None
    one.put(*(Request(f"http://a.example/{n}", priority=n) for n in range(3)))
    out = one.next()
    assert out is not None
    assert out.url == "http://a.example/2"
    one.scheduler.crawl._upkept_at = one.scheduler._commit_took_s = 0.0
    one.finish(done, Response(done.url, status=200, body=b"hi"))
    coming, told = look()
    assert coming == [("1", "now"), ("0", "now")]
    assert told["2"] == "Scrapy is fetching it"
    assert told["1"] == "a request for it waits: it goes in its turn"
    assert told["done"] == "dealt with in this round, which goes on"
    one.crash()
    coming, told = look()
    assert coming == [(name, "when the spider runs") for name in ("2", "1", "0")]
    assert told["2"] == "a request for it waits: it goes when the spider runs"
    with pytest.raises(FolderError, match="Scrapy fetches for this crawl"):
        CrawlSession(tmp_path / "crawl")

    # what people add and forget while no spider runs is taken up by the next
    assert not apply_requests(tmp_path / "crawl", "add", ["http://a.example/done", "http://a.example/added"])
    assert not apply_requests(tmp_path / "crawl", "forget", ["http://a.example/2"])
    two = bench()
    two.scheduler.crawl._upkept_at = 0.0
    two.scheduler._tick()
    names = [request.url.rpartition("/")[2] for request in iter(two.next, None)]
    assert names[0] == "1"
    assert sorted(names) == ["0", "1", "added", "done"]
    two.under_way.clear()
    two.scheduler.close("finished")
    coming, told = look()
    assert coming == []
    assert set(told.values()) == {"the last round is over: the next run of the spider begins another"}


def test_what_was_chosen_and_is_forgotten_does_not_go(bench: Callable[..., Bench], tmp_path: Path) -> None:
    one = bench()
    one.put(*(Request(f"http://a.example/{n}") for n in range(5)))
    assert one.next() is not None
    assert len(one.scheduler._chosen) == 4
    one.scheduler._tick()
    apply_requests(tmp_path / "crawl", "forget", ["http://a.example/3"])
    one.scheduler.crawl._upkept_at = 0.0
    one.scheduler._tick()
    rest = {request.url for request in iter(one.next, None)}
    assert rest == {f"http://a.example/{n}" for n in (1, 2, 4)}


def test_a_scrapy_that_does_not_say_what_is_under_way_is_refused(bench: Callable[..., Bench], tmp_path: Path) -> None:
    one = bench()
    one.put(Request("http://a.example/"))
    assert one.next() is not None
    one.crawler.engine._slot = None  # type: ignore[union-attr]
    one.scheduler._tick()
    assert len(one.scheduler._taken) == 1  # nothing is done because nobody knows
    other = Scheduler.from_crawler(one.crawler)
    with pytest.raises(ConfigError, match="through with"):
        other.open(OneSpider.from_crawler(one.crawler))


def test_a_folder_of_the_frontier_service_is_refused(bench: Callable[..., Bench], tmp_path: Path) -> None:
    one = bench()
    one.scheduler.close("shutdown")
    with pytest.raises(FolderError, match="Scrapy fetches for this crawl"):
        GuestFrontier(tmp_path / "crawl")
    bench()  # and it is free


def test_an_older_scrapy_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapy, "version_info", (2, 17, 4))
    monkeypatch.setattr(scrapy, "__version__", "2.17.4")
    with pytest.raises(ConfigError, match=r"Scrapy 2\.17\.4 is too old .* 2\.18 or later"):
        importlib.reload(bowerbird.integrations.scrapy)
    pyproject = tomllib.loads((PROJECT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    least = ".".join(map(str, LEAST))
    assert pyproject["project"]["optional-dependencies"]["scrapy"] == [f"scrapy>={least}"]
    assert f"({least} or later)" in (PROJECT.parents[1] / "docs" / "scrapy.md").read_text(encoding="utf-8")


def test_strange_pages_cost_nothing() -> None:
    canonicaliser = Canonicaliser()
    for body, kind in ((b"", "text/html"), (b"\xff\xfe\x00", "text/html"), (b"<a href='http://['>x", "text/html")):
        response = HtmlResponse("http://a.example/", body=body, headers={"Content-Type": kind}, encoding="utf-8")
        answer = read_status(response)
        read_page(response, answer, canonicaliser)
        assert answer.anchors == {}
    image = Response("http://a.example/", body=b"\x89PNG", headers={"Content-Type": "image/png"})
    answer = read_status(image)
    read_page(image, answer, canonicaliser)
    assert answer.content_hash


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3), st.sampled_from([0.0, 1.0, 1.5, 2.0])), max_size=40),
    st.integers(1, 20),
    st.integers(1, 3),
)
def test_choice_is_by_priority_then_fair_then_by_bid(
    requests: list[tuple[int, int, float]], wanted: int, per_host: int
) -> None:
    with sqlite3.connect(":memory:", isolation_level=None, factory=EmbeddedConnection) as connection:
        make_request_table(connection)
        table = RequestTable(connection, np.zeros(0, dtype=np.uint32))
        for n, (priority, _, _) in enumerate(requests):
            table.add(n.to_bytes(4, "big"), priority, b"x")
        hosts = np.array([host for _, host, _ in requests], dtype=np.uint32)
        table.place(range(len(requests)), np.arange(len(requests)), hosts)
        values = np.array([value for _, _, value in requests])
        auction: Any = SimpleNamespace(values=lambda now, rows: values[rows])
        chosen = table.choose(auction, 0.0, wanted, per_host).tolist()
    assert len(chosen) == len(set(chosen)) == min(wanted, len(requests))
    priorities = [requests[slot][0] for slot in chosen]
    assert priorities == sorted((priority for priority, _, _ in requests), reverse=True)[: len(chosen)]
    left = set(range(len(requests))) - set(chosen)
    for slot in left:  # nothing that was left is better than what was taken of its own host and priority
        same = [other for other in chosen if requests[other][:2] == requests[slot][:2]]
        assert all(values[other] >= values[slot] for other in same)


def test_what_is_made_of_a_start_request_is_not_the_start(bench: Callable[..., Bench]) -> None:
    """A retry of one inherits its meta; taken for the spider's start that was sent again, it would be lost."""
    one = bench()
    start = Request("http://a.example/", meta={"is_start_request": True}, dont_filter=True)
    assert one.scheduler.enqueue_request(start)
    assert one.next() is not None
    one.crash()
    two = bench()
    assert not two.scheduler.enqueue_request(start)  # the spider starts anew: it is in line already
    taken = two.next()
    assert taken is not None
    retry = taken.replace(dont_filter=True)
    assert two.scheduler.enqueue_request(retry)
