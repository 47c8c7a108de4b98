"""CPU per page by stage: each stage of the pipeline alone, in this process, with the crawler's own functions.

CPU time counts all threads of the process (the index writer has its own) and the kernel's work for it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from bowerbird.appraise.policy import PLAIN, make_policy
from bowerbird.crawl.intake import IndexChange, Intake
from bowerbird.crawl.reading import Reader
from bowerbird.crawl.report import FrameReader, Place, Report, make_frame
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.session import create_crawl
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.clock import WallClock
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.page.charset import sniff_charset
from bowerbird.page.html import parse_html
from bowerbird.page.media import sniff_media
from bowerbird.page.shingles import sketch_text
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.leases import Lease, LeaseBook
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.archive import ArchiveWriter
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.web.address import AddressPolicy
from bowerbird.web.fetcher import Fetcher, FetchRequest, FetchResult
from bowerbird.web.robots import rules_for_response
from bowerbird.web.url import Canonicaliser
from corpus import CHILDREN, make_corpus
from nginx import Nginx
from reporting import machine, table, write_csv, write_json

MOST_PAGES = 3_000
FRAME = 16
COMMIT = 500
CONNECTIONS = 32


class Stopwatch:
    """CPU and wall seconds by stage, in the order of first use."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        total = self.spent.setdefault(stage, [0.0, 0.0])
        total[0] += time.process_time() - cpu
        total[1] += time.perf_counter() - wall

    def rows(self, pages: int) -> list[dict[str, Any]]:
        return [
            {"stage": stage, "cpu_ms_per_page": 1000 * cpu / pages, "wall_ms_per_page": 1000 * wall / pages}
            for stage, (cpu, wall) in self.spent.items()
        ]


def fetch_all(urls: list[str], settings: Settings, watch: Callable[[str], Any]) -> list[FetchResult]:
    policy = AddressPolicy(settings.network.allow_addresses)
    results: list[FetchResult] = []
    with Fetcher(settings.user_agent, settings.fetch, policy, WallClock()) as fetcher, watch("fetch"):
        waiting = list(enumerate(urls))[::-1]
        while len(results) < len(urls):
            while waiting and fetcher.in_flight < CONNECTIONS:
                token, url = waiting.pop()
                fetcher.submit(FetchRequest(token, url))
            results.extend(fetcher.poll(1.0))
    assert all(result.outcome is Outcome.OK for result in results)
    return sorted(results, key=lambda result: result.token)


def make_reader(settings: Settings, seed: str, hash_seed: int) -> Reader:
    scope = Scope(settings.scope_rules, (seed,))
    return Reader(Canonicaliser(settings.urls), scope, agent=settings.crawl.product, hash_seed=hash_seed)


def read_all(results: list[FetchResult], reader: Reader, watch: Callable[[str], Any]) -> list[Report]:
    """What Reader.read does, taken apart."""
    reports = [Report(r.token, r.url, r.outcome, r.started_at, r.elapsed_s, r.status) for r in results]
    with watch("parse"):
        for result, report in zip(results, reports, strict=True):
            report.media = sniff_media(result.body, result.header("content-type"), result.url).value
        pages = [parse_html(r.body, sniff_charset(r.body, r.header("content-type")), max_links=5000) for r in results]
    with watch("links, canonical form"):
        for result, page, report in zip(results, pages, reports, strict=True):
            reader._read_page(result.url, page, report, nofollow=False)
    with watch("hash, sketch"):
        for report in reports:
            report.content_hash = xxhash.xxh3_64_intdigest(f"{report.title}\n{report.text}".encode()) >> 1
            report.sketch = sketch_text(report.text)
    return reports


def archive_all(
    results: list[FetchResult],
    reports: list[Report],
    folder: CrawlFolder,
    settings: Settings,
    watch: Callable[[str], Any],
) -> None:
    writer = ArchiveWriter(
        folder.archive,
        "bench",
        software="bench",
        user_agent=settings.user_agent,
        max_file_bytes=settings.archive.max_file_mb << 20,
        gzip_level=settings.archive.gzip_level,
    )
    with watch("archive"):
        for result, report in zip(results, reports, strict=True):
            place = writer.write_exchange(
                url=result.url,
                fetched_at=result.started_at,
                remote_ip=result.remote_ip,
                request_block=result.request_block,
                header_block=result.header_block,
                raw_body=result.raw_body,
                metadata={"media": report.media, "language": report.language},
            )
            report.place = Place(place.file, place.offset, place.length, place.offset + place.length)
        writer.close()


def carry_all(reports: list[Report], watch: Callable[[str], Any]) -> list[Report]:
    """Through a pipe, as from a worker to the coordinator: both ends counted."""
    import fcntl

    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.set_blocking(read, False)
    frames = FrameReader(read)
    received: list[Report] = []
    with watch("between processes"):
        for first in range(0, len(reports), FRAME):
            os.write(write, make_frame(reports[first : first + FRAME]))  # the pipe holds a whole frame
            for batch in frames.read_available():
                received.extend(batch)
    os.close(read)
    os.close(write)
    return received


def store_all(
    reports: list[Report], repository: Repository, settings: Settings, watch: Callable[[str], Any]
) -> list[IndexChange]:
    """Dedupe and bookkeeping in the columns, then durable commits."""
    intake = Intake(repository, make_policy(settings.crawl.policy, settings.refresh), settings)
    changes: list[IndexChange] = []
    now = time.time()
    # a page's row is made by the page that links to it, so the first batches are small
    edges = [0, 1, *range(1 + CHILDREN, len(reports), FRAME), len(reports)]
    for first, end in pairwise(edges):
        answers = []
        for report in reports[first:end]:
            row = repository.table.find_url(report.url)
            assert row is not None, report.url
            lease = Lease(row, 0, 0, FetchKind.NEW, now, now + 300, 1.0, 0.0, '{"bid":"breadth-first"}')
            answers.append((lease, report))
        with watch("dedupe, links"):
            changes.extend(intake.take(answers, now).index)
        if first % COMMIT < FRAME or end == len(reports):
            with watch("store, commit"):
                repository.commit()
    return changes


def index_all(
    changes: list[IndexChange], folder: CrawlFolder, repository: Repository, watch: Callable[[str], Any]
) -> None:
    # as in a crawl: the archive can give the texts again, so the index does not keep them
    index = TantivyIndex.open(folder.index, write=True, heap_bytes=128 << 20, texts=lambda rows: [""] * len(rows))
    with watch("index"):
        for number, change in enumerate(changes):
            assert change.document is not None
            change.document.anchors = " \n".join(repository.anchors(change.page))
            index.add(change.document, replace=change.replace)
            if number % MOST_PAGES == MOST_PAGES - 1:
                index.commit()
        index.commit()
        index.close()


def schedule_all(repository: Repository, settings: Settings, pages: int, watch: Callable[[str], Any]) -> None:
    """Bids for all, then picks, URL texts, terms, robots and leases for as many fetches as there are pages."""
    policy = make_policy(settings.crawl.policy, settings.refresh)
    gate = HostGate(0.0, CONNECTIONS)
    auction = Auction(gate)
    leases = LeaseBook()
    columns = repository.table.columns
    rules = rules_for_response(Outcome.OK, 200, b"User-agent: *\nDisallow: /private/\n", "Bowerbird")
    assert rules is not None
    columns["state"][:] = 0  # the frontier as it was
    now, done, rows = time.time(), 0, np.arange(columns.count)
    with watch("schedule"):
        auction.place(rows, policy.appraise(repository.snapshot(now), rows), columns["host"][rows], offer=False)
        auction.refill(now, 0.0)
        while done < pages:
            picks = auction.pick(now, CONNECTIONS // 2, 0.0)
            if not picks:
                break
            taken = np.array([pick.row for pick in picks], dtype=np.int64)
            terms = policy.terms(repository.snapshot(now), taken)
            for pick, url, why in zip(picks, repository.urls(taken.tolist()), terms, strict=True):
                rules.allows(url)
                leases.open(Lease(pick.row, pick.host, 0, FetchKind.NEW, now, now + 300, pick.value, 0.0, why))
                auction.hold([pick.row], now + 300)
            for pick in picks:
                gate.give_back(pick.host, now)
            auction.place(taken, policy.appraise(repository.snapshot(now), taken), columns["host"][taken], offer=False)
            done += len(picks)
            now += 0.01
    assert done >= min(pages, columns.count) - CONNECTIONS, done


def profile(pages: int, page_words: int, path: Path | None = None) -> dict[str, Any]:
    """Measure every stage; prints and keeps the table."""
    corpus = make_corpus(pages, page_words)
    count = min(pages, MOST_PAGES)
    work = Path(tempfile.mkdtemp(prefix="bowerbird-bench-"))
    try:
        with Nginx(corpus / "site") as server:
            urls = [server.url.rstrip("/") + line for line in (corpus / "paths.txt").read_text().splitlines()[:count]]
            values: dict[str, dict[str, object]] = {
                "crawl": {"policy": PLAIN},
                "politeness": {"delay_s": 0.0},
                "network": {"allow_addresses": ["loopback"]},
            }
            create_crawl(work / "crawl", [server.url], values)
            folder = CrawlFolder(work / "crawl")
            settings = load_settings(folder.config)
            repository = Repository(folder, write=True)
            warm, watch = Stopwatch(), Stopwatch()
            read_all(fetch_all(urls[:20], settings, warm), make_reader(settings, server.url, 0), warm)
            results = fetch_all(urls, settings, watch)
        reports = read_all(results, make_reader(settings, urls[0], repository.table.seed), watch)
        archive_all(results, reports, folder, settings, watch)
        results.clear()
        reports = carry_all(reports, watch)
        changes = store_all(reports, repository, settings, watch)
        index_all(changes, folder, repository, watch)
        schedule_all(repository, settings, count, watch)
        repository.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    rows = watch.rows(count)
    total = sum(row["cpu_ms_per_page"] for row in rows)
    rows.append(
        {"stage": "all", "cpu_ms_per_page": total, "wall_ms_per_page": sum(r["wall_ms_per_page"] for r in rows)}
    )
    print(table(rows))
    print(f"{count} pages; load {os.getloadavg()[0]:.2f}")
    summary = {"machine": machine(), "pages": count, "stages": rows}
    write_json("stages", summary, path)
    write_csv("stages", rows)
    return summary
