"""Scrapy with our scheduler: a real spider over a made-up web, killed and resumed; and the scheduler by itself."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
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

import bowerbird.integrations.scrapy.scheduler as scheduler_module
from bowerbird.integrations.scrapy import Scheduler
from bowerbird.integrations.scrapy.feedback import read_page, read_status
from bowerbird.integrations.scrapy.request_table import RequestTable
from bowerbird.integrations.scrapy.scheduler import HANDED_OUT
from bowerbird.lab.world import Access, World, WorldServer, WorldSpec
from bowerbird.lab.world.wire import Faults
from bowerbird.store.connection import EmbeddedConnection
from bowerbird.web.url import Canonicaliser

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "scrapy_spider"
SPEC = WorldSpec(
    seed=8, frozen=True, hosts=8, pages=160, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=3000
)
CONCURRENT = 8


def start_spider(folder: Path, seeds: list[str], *more: str) -> subprocess.Popen[bytes]:
    """The example's spider, in the example's project: nothing of it knows that it is a test."""
    listed = folder / "seeds.txt"
    listed.write_text("\n".join(seeds), encoding="utf-8")
    options = {
        "BOWERBIRD_DIR": str(folder / "crawl"),
        "BOWERBIRD_POLICY": "in-degree",
        "CONCURRENT_REQUESTS": str(CONCURRENT),
        "LOG_LEVEL": "WARNING",
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"seeds={listed}", "-a", "within=http://127.0."]
    command += [part for name, value in options.items() for part in ("-s", f"{name}={value}")]
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen([*command, *more], cwd=PROJECT, stderr=log)


def addresses(log: list[Access]) -> Counter[tuple[str, str]]:
    return Counter((access.host, access.path) for access in log if access.path != "/robots.txt")


def dealt_with(folder: Path) -> set[tuple[str, str]]:
    """Pages that are done, as a folder has them that nobody holds."""
    with sqlite3.connect(folder / "crawl" / "state.db") as state:
        urls = state.execute(
            "SELECT urls.url FROM guest_requests JOIN urls ON urls.id = guest_requests.url WHERE request IS NULL"
        ).fetchall()
    return {(url.split("/")[2], "/" + url.split("/", 3)[3]) for (url,) in urls}


def test_a_spider_is_killed_twice_and_resumes_without_loss_or_repeats(tmp_path: Path) -> None:
    with WorldServer(World(SPEC), faults=Faults(latency_ms=25.0)) as server:
        want = server.world.reachable(SPEC.start_s, nofollow=True)
        seeds = server.world.seeds()
        before = 0
        for share in (0.25, 0.6):
            process = start_spider(tmp_path, seeds)
            deadline = time.monotonic() + 240
            while len(server.log()) < share * len(want) and time.monotonic() < deadline:
                assert process.poll() is None, (tmp_path / "log.txt").read_text()
                time.sleep(0.02)
            process.kill()
            process.wait()
            log = server.log()
            done = dealt_with(tmp_path)
            assert len(done) >= before
            before = len(done)
            # what was fetched and is not done was in flight: with the downloader, or on its way through the spider
            assert len({page for page in addresses(log) if page not in done}) <= 10 * CONCURRENT
            after = len(log)
            finished = done
        process = start_spider(tmp_path, seeds)
        assert process.wait(240) == 0, (tmp_path / "log.txt").read_text()
        everything = server.log()
        later = addresses(everything[after:])
        assert not finished & set(later)  # what was done before the kill is not fetched again
        assert max(later.values()) == 1
        fetched = addresses(everything)
        assert want <= set(fetched)
        assert max(fetched.values()) <= 3  # in flight at both deaths, at most
        assert sum(fetched.values()) - len(fetched) <= 20 * CONCURRENT
        assert (tmp_path / "log.txt").read_text() == ""
        _look_at(tmp_path / "crawl", want)

        # that round is over: the next one asks for everything again, and knows what changed
        process = start_spider(tmp_path, seeds, "-s", "CLOSESPIDER_PAGECOUNT=40")
        assert process.wait(240) == 0
        again = addresses(server.log()[len(everything) :])
        assert 30 <= len(again) <= 40 + 10 * CONCURRENT
        status = run_command("status", tmp_path / "crawl", "--json").json()
        assert status["budget"]["refresh"] >= 30


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
        self.crawler.engine = SimpleNamespace(_slot=SimpleNamespace(inprogress=self.under_way))  # type: ignore[assignment]
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
