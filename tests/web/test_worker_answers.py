"""What a worker makes of answers at the limits of HTTP: a robots.txt too large, a body cut short, long validators."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.hostile_server import HostileServer, answer

from bowerbird.crawl.report import ROBOTS_JOB, FrameWriter, Job, Report, WorkerSetup
from bowerbird.crawl.settings import NetworkSettings, Settings, parse_settings
from bowerbird.crawl.worker import Worker
from bowerbird.model.errors import ConfigError
from bowerbird.model.outcome import Outcome
from bowerbird.web.robots import RobotsRules, rules_for_response

RULES = b"User-agent: *\nDisallow: /private\n" + b"# a long remark that says nothing at all\n" * 20_000
SITE = "http://example.org"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    settings = Settings(network=NetworkSettings(allow_addresses=("127.0.0.0/8",)))
    (tmp_path / "archive").mkdir()
    commands, commanding = os.pipe()
    reading, reports = os.pipe()
    running = Worker(WorkerSetup(0, str(tmp_path), "t", settings, (), 1), commands, FrameWriter(reports))
    yield running
    running.archive.close()
    running.fetcher.close()
    for descriptor in (commands, commanding, reading, reports):
        os.close(descriptor)


def fetch(worker: Worker, url: str, flags: int = 0) -> Report:
    worker._obey([Job(1, url, flags=flags)])
    end = time.monotonic() + 10
    while worker.fetcher.in_flight:
        assert time.monotonic() < end
        for result in worker.fetcher.poll(0.5):
            worker._handle(result)
    return worker._out.pop()


def rules_of(report: Report) -> RobotsRules:
    rules = rules_for_response(report.outcome, report.status, report.body, "bowerbird")
    assert rules is not None
    return rules


@pytest.mark.parametrize("hops", [0, 1])
@pytest.mark.parametrize("framing", ["length", "close", "gzip"])
def test_a_large_robots_file_is_obeyed_by_its_beginning(
    server: HostileServer, worker: Worker, framing: str, hops: int
) -> None:
    assert len(RULES) > 512 << 10
    plain = answer(RULES, headers=("Content-Type: text/plain",))
    server.routes["/file"] = {
        "length": plain,
        "close": lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + RULES),
        "gzip": answer(gzip.compress(RULES + os.urandom(600 << 10)), headers=("Content-Encoding: gzip",)),
    }[framing]
    server.routes["/robots.txt"] = answer(b"", "302 Found", ["Location: /file"]) if hops else server.routes["/file"]
    report = fetch(worker, server.url("/robots.txt"), ROBOTS_JOB)
    # OK, because what is not OK is kept as "no rules" and would permit all after a restart
    assert report.outcome is Outcome.OK and 500 << 10 < len(report.body) <= 512 << 10
    rules = rules_of(report)
    assert not rules.allows(f"{SITE}/private/x") and rules.allows(f"{SITE}/x")


def test_a_page_cut_short_is_archived_as_such(server: HostileServer, worker: Worker, tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(5000).hex().encode())
    headers = ("Content-Type: text/html", "Content-Encoding: gzip")
    server.routes["/whole"] = answer(packed, headers=headers)
    server.routes["/cut"] = answer(packed[:-500], headers=headers)
    for path, expected in (("/whole", False), ("/cut", True)):
        report = fetch(worker, server.url(path))
        assert report.outcome is Outcome.OK and report.place is not None
        kept = (tmp_path / "archive" / report.place.file).read_bytes()[report.place.offset :][: report.place.length]
        assert (b"WARC-Truncated: length\r\n" in gzip.decompress(kept)) is expected


@pytest.mark.parametrize(("length", "kept"), [(512, 512), (513, 0)])
def test_validators_too_long_to_keep_are_dropped(server: HostileServer, worker: Worker, length: int, kept: int) -> None:
    headers = ("Content-Type: text/html", "ETag: " + "e" * length, "Last-Modified: " + "m" * length)
    server.routes["/"] = answer(headers=headers)
    report = fetch(worker, server.url("/"))
    assert (report.etag, report.last_modified) == ("e" * kept, "m" * kept)


def test_the_page_may_address_the_product(server: HostileServer, worker: Worker) -> None:
    worker.reader.agent = "MyBot"
    server.routes["/"] = answer(b"<meta name=mybot content=noindex><p>words")
    server.routes["/other"] = answer(b"<meta name=bowerbird content=noindex><p>words")
    assert fetch(worker, server.url("/")).noindex
    assert not fetch(worker, server.url("/other")).noindex


@pytest.mark.parametrize("product", ["MyBot", "my-bot", "My_Bot"])
def test_a_product_that_settings_accept_can_be_addressed(product: str) -> None:
    assert parse_settings(f"[crawl]\nproduct = '{product}'\n", Path("t")).crawl.product == product
    rules = RobotsRules.parse(f"User-agent: {product}\nDisallow: /\n".encode(), product)
    assert not rules.allows(f"{SITE}/")


@pytest.mark.parametrize("product", ["MyBot2", "my.bot", "My Bot", "", "b\u00f6t"])
def test_a_product_that_no_robots_file_could_address_is_refused(product: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: crawl\.product: .*letters, '-' and '_' only"):
        parse_settings(f"[crawl]\nproduct = '{product}'\n", Path("t"))
