"""How long a searcher waits: two-term queries against a real `bowerbird serve`, alone and while a crawl runs.

A crawl folder with many generated pages is written through the program's own archive, database and index (crawling so
many would measure the crawler, and other benchmarks do). Then `bowerbird serve` answers queries over HTTP, first alone,
then while `bowerbird crawl` fetches other pages from nginx into the same folder on the same machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from bowerbird.appraise.policy import PLAIN
from bowerbird.crawl.session import create_crawl
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.archive import ArchiveWriter
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import FetchRecord, Version
from bowerbird.store.repository import Repository
from bowerbird.web.url import split_words
from corpus import make_corpus, words
from nginx import Nginx
from reporting import machine, table, write_json

BAR_P99_MS = 50.0
BATCH = 5_000
HOSTS = 50
PAGE_WORDS = 300
PROGRAM = [sys.executable, "-m", "bowerbird.cli.main"]
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
#: what a template adds around the text of a page: parsing it again is part of making a snippet
FURNITURE = "".join(f'<li class="item"><a href="/part/{n}" title="Part {n}">Part {n}</a></li>\n' for n in range(60))


class Prose:
    """Words by Zipf's law, many pages at a time."""

    def __init__(self, seed: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        self.vocabulary = np.array(words(self.rng, 50_000))
        weight = 1.0 / (np.arange(len(self.vocabulary)) + 2.7)
        self.cumulative = np.cumsum(weight / weight.sum())

    def texts(self, count: int, length: int) -> list[str]:
        """`count` texts of `length` words."""
        picked = np.searchsorted(self.cumulative, self.rng.random((count, length)))
        return [" ".join(row) for row in self.vocabulary[picked].tolist()]

    def queries(self, count: int) -> list[str]:
        """Two words each: one of the frequent half, one of any kind, as searchers ask."""
        common = self.vocabulary[self.rng.integers(60, 2_000, count)]
        other = self.vocabulary[self.rng.integers(60, 20_000, count)]
        return [f"{first} {second}" for first, second in zip(common, other, strict=True)]


def fill(root: Path, pages: int, prose: Prose) -> None:
    """A crawl folder with this many pages fetched, archived and indexed."""
    folder = CrawlFolder(root)
    repository = Repository(folder, write=True)
    index = TantivyIndex.open(folder.index, write=True, texts=ArchiveTexts(repository))
    archive = ArchiveWriter(folder.archive, "filled", software="bowerbird", user_agent="bench")
    at = time.time() - 3600.0
    for first in range(0, pages, BATCH):
        count = min(BATCH, pages - first)
        titles = [title.capitalize() for title in prose.texts(count, 5)]
        urls = [
            f"http://site{number % HOSTS}.example/docs/{titles[number - first].lower().replace(' ', '-')}-{number}"
            for number in range(first, first + count)
        ]
        rows, _ = repository.add_urls(urls, at=at)
        for row, url, title, text in zip(rows.tolist(), urls, titles, prose.texts(count, PAGE_WORDS), strict=True):
            _add(repository, index, archive, row, url, title, text, at)
        archive.sync()
        index.commit()
        repository.commit(indexed_through=repository.last_fetch_id + count)
    index.close()
    archive.close()
    repository.write_checkpoint()
    repository.close()


def _add(
    repository: Repository,
    index: TantivyIndex,
    archive: ArchiveWriter,
    row: int,
    url: str,
    title: str,
    text: str,
    at: float,
) -> None:
    middle = len(text) // 2
    html = (
        f"<!doctype html><html lang=en><head><title>{title}</title></head><body><nav><ul>{FURNITURE}</ul></nav>"
        f"<main><h1>{title}</h1><p>{text[:middle]}</p><p>{text[middle:]}</p></main></body></html>"
    ).encode()
    place = archive.write_exchange(
        url=url,
        fetched_at=at,
        remote_ip="127.0.0.1",
        request_block=b"GET / HTTP/1.1\r\n\r\n",
        header_block=HEADERS,
        raw_body=html,
        metadata={},
    )
    file = repository.archive_file(place.file)
    repository.note_archive_end(file, place.offset + place.length)
    where = {"file": file, "offset": place.offset, "length": place.length}
    repository.record(
        FetchRecord(
            row,
            FetchKind.NEW,
            at,
            1.0,
            0.0,
            "{}",
            at,
            Outcome.OK,
            UrlState.FETCHED,
            status=200,
            wire_bytes=len(html),
            content_hash=row + 1,
            interval_s=30 * 86400.0,
            **where,
        )
    )
    repository.record_version(Version(row, "", "", None, at, "html", False, None, **where))
    index.add(Document(row, url, title, f"{title} {text}", "", split_words(url), url.split("/")[2], "en", at))


@contextmanager
def serving(root: Path) -> Iterator[int]:
    """`bowerbird serve` in a process of its own; its port."""
    command = [*PROGRAM, "serve", str(root), "--port", "0", "--rate", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        if not found:
            raise SystemExit("bowerbird serve did not start.")
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)


@contextmanager
def crawling(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`bowerbird crawl` on the same folder, as fast as it can."""
    process = subprocess.Popen([*PROGRAM, "crawl", str(root), "--once", "--quiet"])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def ask(port: int, queries: list[str], *, every_s: float, until: subprocess.Popen[bytes] | None = None) -> list[float]:
    """Milliseconds of each query, sent at its time whether or not the one before was quick; ends with `until`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    times: list[float] = []
    begin = time.perf_counter()
    for number, query in enumerate(queries):
        due = begin + number * every_s
        time.sleep(max(0.0, due - time.perf_counter()))
        if until is not None and until.poll() is not None:
            break
        connection.request("GET", "/api/search?" + urlencode({"q": query}))
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{query!r}: {answer.status} {body[:200]!r}")
        # from when it was due: a query that waited for the one before has waited
        times.append(1000 * (time.perf_counter() - due))
    connection.close()
    return times


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{share}_ms": round(float(np.percentile(times, share)), 2) for share in (50, 95, 99)}


def fetched(root: Path) -> int:
    with sqlite3.connect(root / "state.db") as database:
        return int(database.execute("SELECT count(*) FROM fetches").fetchone()[0])


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Fill, serve, ask alone, ask during a crawl."""
    load = round(os.getloadavg()[0], 2)  # what else the machine did: figures of a busy one say little
    site = make_corpus(options.crawl_pages)
    root = Path(tempfile.mkdtemp(prefix="bowerbird-serve-")) / "crawl"
    rows: list[dict[str, Any]] = []
    try:
        with Nginx(site / "site") as server:
            sections: dict[str, dict[str, object]] = {
                "crawl": {"contact": "bench@localhost", "policy": PLAIN},
                "politeness": {"delay_s": 0.0, "connections_per_host": 16},
                "network": {"allow_addresses": ["loopback"]},
            }
            create_crawl(root, [server.url], sections)
            prose = Prose()
            began = time.perf_counter()
            fill(root, options.pages, prose)
            print(f"{options.pages:,} pages filled in {time.perf_counter() - began:.0f} s", flush=True)
            with serving(root) as port:
                ask(port, prose.queries(50), every_s=0.0)  # the service has begun
                every_s = 1.0 / options.rate
                times = ask(port, prose.queries(options.queries), every_s=every_s)
                rows.append({"when": "alone", "queries": len(times), "crawled_per_s": 0, **percentiles(times)})
                print(table(rows[-1:]), flush=True)
                before = fetched(root)
                with crawling(root) as crawl:
                    while fetched(root) < before + 200 and crawl.poll() is None:
                        time.sleep(0.2)
                    before, began = fetched(root), time.perf_counter()
                    times = ask(port, prose.queries(options.queries), every_s=every_s, until=crawl)
                    speed = (fetched(root) - before) / (time.perf_counter() - began)
                rows.append(
                    {
                        "when": "while a crawl runs",
                        "queries": len(times),
                        "crawled_per_s": round(speed),
                        **percentiles(times),
                    }
                )
                print(table(rows[-1:]), flush=True)
    finally:
        shutil.rmtree(root.parent, ignore_errors=True)
    return {
        "machine": machine(),
        "load_before": load,
        "pages": options.pages,
        "rows": rows,
        "bar_p99_ms": BAR_P99_MS,
        "passed": rows[-1]["p99_ms"] < BAR_P99_MS and rows[-1]["queries"] >= 200,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000, help="pages to search in")
    parser.add_argument("--queries", type=int, default=500, help="queries in each part")
    parser.add_argument("--rate", type=float, default=20.0, help="queries a second")
    parser.add_argument("--crawl-pages", type=int, default=30_000, help="pages to crawl meanwhile")
    summary = measure(parser.parse_args())
    write_json("serve_latency", summary)
    print(json.dumps({key: summary[key] for key in ("load_before", "bar_p99_ms", "passed")}))


if __name__ == "__main__":
    main()
