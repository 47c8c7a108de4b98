"""The scheduler: requests are durable, come by their bids, and are done when Scrapy has dealt with them.

Scrapy says nowhere that a response was dealt with. But its engine keeps each request in a set until callback, items and
all requests that the callback made are through; so what was handed out and is in that set no more is done. Requests
that a page made are durable with the page or before it.
"""

from __future__ import annotations

import logging
import pickle
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import scrapy
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.request import request_from_dict

from bowerbird.crawl.guest_crawl import GuestCrawl, Visit, make_guest_folder
from bowerbird.crawl.guest_owner import SCRAPY
from bowerbird.crawl.guest_requests import PER_HOST, ROUND, RequestTable, make_request_table
from bowerbird.integrations.scrapy.feedback import Answer, find_anchor, read_page, read_status
from bowerbird.integrations.scrapy.request_facts import HANDED_OUT, depth_of, is_start, referrer_of
from bowerbird.integrations.scrapy.request_marks import RequestMarks
from bowerbird.model.errors import BowerbirdError, ConfigError
from bowerbird.store.connection import Connection
from bowerbird.store.disk_trouble import explain_trouble

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

TICK_S = 0.1
COMMIT_SHARE = 0.1  # of the time, at most, goes into commits, unless much waits for one
CANNOT_WRITE = "bowerbird_cannot_write"  # why a spider was closed
AHEAD = 4  # times CONCURRENT_REQUESTS are chosen at once, and may be dealt with and not durable
CANNOT_BE_KEPT = (pickle.PicklingError, ValueError, TypeError, AttributeError)


class Scheduler(BaseScheduler):
    """Scrapy's scheduler interface on a crawl folder."""

    def __init__(self, crawler: Crawler) -> None:
        if crawler.stats is None or crawler.request_fingerprinter is None:
            raise ConfigError("the crawler has no statistics or no fingerprinter yet: let Scrapy make its scheduler.")
        settings = crawler.settings
        self.crawler = crawler
        self.stats = crawler.stats
        self.fingerprint = crawler.request_fingerprinter.fingerprint
        name = str(getattr(crawler.spider, "name", None) or crawler.spidercls.name)
        self.root = Path(settings.get("BOWERBIRD_DIR") or Path(".bowerbird") / quote(name, safe=""))
        self.policy: str | None = settings.get("BOWERBIRD_POLICY")
        self.reads_pages = settings.getbool("BOWERBIRD_READ_PAGES", True)
        self.repeats_start = settings.getbool("BOWERBIRD_REPEAT_START", False)
        self.knows_by_canonical = settings.getbool("BOWERBIRD_CANONICAL_URLS", True)
        self.per_host = max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1)
        self.ahead = AHEAD * max(settings.getint("CONCURRENT_REQUESTS"), 1)
        self._arrived: list[tuple[int, Request]] = []  # whose URLs have no row yet
        self._filtered: list[Request] = []  # whose links are not learnt yet
        self._chosen: list[tuple[int, Request]] = []  # the next is the last
        self._risen: list[int] = []  # that came since and have to go before some of those
        self._kept: dict[int, Request] = {}  # what cannot be written down
        self._unread = 0  # requests that this version of the spider cannot make sense of
        self._taken: dict[int, tuple[int, Request]] = {}  # by identity
        self._answers: dict[int, Answer] = {}  # by identity of the request
        self._committed_at = 0.0
        self._commit_took_s = 0.0
        self._trouble: Exception | None = None  # nothing can be written any more

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        """As Scrapy makes it."""
        return cls(crawler)

    # -- life

    def open(self, spider: Spider) -> None:
        """Open the folder, as the last run left it."""
        try:
            self._open(spider)
        except (sqlite3.Error, OSError) as error:
            raise explain_trouble(error) or error from error

    def _open(self, spider: Spider) -> None:
        self.spider = spider
        if self._under_way() is None:
            raise ConfigError(
                f"Scrapy {scrapy.__version__} does not say which requests it is through with where the versions did "
                "that were tested (see docs/scrapy.md): what was fetched could not be told from what was lost. Use "
                "one of those."
            )
        made = not (self.root / "bowerbird.toml").exists()
        make_guest_folder(self.root)
        self.crawl = GuestCrawl(self.root, SCRAPY, policy=self.policy)
        self.marks = RequestMarks(self.fingerprint, self.crawl.canonicaliser if self.knows_by_canonical else None)
        repository = self.crawl.repository
        make_request_table(repository.connection)
        if repository.meta(PER_HOST) != self.per_host:  # for those who look at the folder
            repository.set_meta(PER_HOST, self.per_host)
        self.requests = RequestTable(repository.connection, repository.table.columns["host"])
        if repository.meta(ROUND):
            self.requests.clear()
            repository.connection.execute("DELETE FROM meta WHERE key = ?", (ROUND,))
        self.crawl.open()
        if not made:
            log.info("Bowerbird: %s: %d requests wait from before", self.root, self.requests.waiting)
        for signal, hear in (
            (signals.response_downloaded, self._downloaded),
            (signals.response_received, self._received),
        ):
            self.crawler.signals.connect(hear, signal)
        self._ticker = create_looping_call(self._tick)
        self._ticker.start(TICK_S, now=False)

    def close(self, reason: str) -> None:
        """Commit. After a crawl that came to its end the next one is a new round: nothing counts as seen."""
        self._ticker.stop()
        if self._trouble is not None:
            self.crawl.abandon()  # as it was last committed: what came after that is done again
            return
        try:
            self._gather()
            self._settle()
            is_over = reason == "finished" and not (
                self.requests.waiting or self._chosen or self._taken or self._unread
            )

            def write(connection: Connection) -> None:
                self.requests.write(connection)
                if is_over:
                    self.crawl.repository.set_meta(ROUND, 1)

            self.crawl.close(write)
        except Exception as error:
            self.crawl.abandon()
            self._tell_trouble(error)

    def _tick(self) -> None:
        if self._trouble is not None:
            return
        try:
            self._gather()
            self._settle()
            self._commit()
            if self.crawl.upkeep_due():
                self._keep_up()
        except Exception as error:
            self._fail(error)

    def _keep_up(self) -> None:
        out = [slot for slot, _ in self._taken.values()]
        added, removed = self.crawl.keep_up(len(out), handed_out=out)
        if removed:  # by `bowerbird forget`
            self._return(self._chosen)
            self._chosen = []
            self.requests.drop(removed)
        busy = {*out, *(slot for slot, _ in self._chosen)}
        for url in self.crawl.repository.urls(added.tolist()):  # by `bowerbird add`
            request = Request(url)
            seen = self.requests.find(self.marks.of(request))
            if seen is None or not (seen in busy or self.requests.columns["waits"][seen]):
                self.enqueue_request(request.replace(dont_filter=seen is not None))

    def _commit(self, *, now: bool = False) -> None:
        """Unless that was done so lately that it would cost too much; the next tick will."""
        began = time.monotonic()
        if self._trouble is not None or not (self.requests.pending or self.crawl.pending):
            return
        if not now and began - self._committed_at < self._commit_took_s / COMMIT_SHARE:
            return
        try:
            self.crawl.commit(self.requests.write)
        except Exception as error:
            self._fail(error)
            return
        self.requests.written()
        self._committed_at = time.monotonic()
        self._commit_took_s = self._committed_at - began

    def _fail(self, error: Exception) -> None:
        """Nothing can be kept any more: fetching on would lose what comes of it, so the spider ends here."""
        if self._trouble is not None:
            return
        self._trouble = error
        self._tell_trouble(error)
        engine: Any = self.crawler.engine
        closing = deferred_from_coro(engine.close_spider_async(reason=CANNOT_WRITE))
        closing.addErrback(lambda failure: log.error("Bowerbird: the spider could not be closed: %s", failure.value))

    def _tell_trouble(self, error: Exception) -> None:
        known = explain_trouble(error) if isinstance(error, sqlite3.Error | OSError) else None
        self.stats.set_value("bowerbird/cannot_write", str(known or error))
        log.error(
            "Bowerbird: %s: what the spider does cannot be written down any more: %s What was written before is safe: "
            "run the spider again when that is mended, and it goes on from there.",
            self.root,
            known or error,
            exc_info=None if known or isinstance(error, BowerbirdError) else error,
        )

    # -- in

    def has_pending_requests(self) -> bool:
        """Does anything wait?"""
        return bool(self.requests.waiting or self._chosen)

    def enqueue_request(self, request: Request) -> bool:
        """Take a request, unless it was seen before in this round and is to be filtered."""
        if self._trouble is not None:
            return False  # the page that it comes from is not done, and will make it again
        mark = self.marks.of(request)
        seen = self.requests.find(mark)
        if seen is not None:
            again = is_start(request) and seen < self.requests.before
            if not request.dont_filter or (again and not self.repeats_start):
                self.stats.inc_value("dupefilter/filtered")
                if self.marks.is_respelt(request, mark):
                    self.stats.inc_value("bowerbird/filtered_by_canonical_url")
                self._filtered.append(request)  # a link all the same
                return False
            mark += self.requests.columns.count.to_bytes(8, "big")  # one more of its kind
        elif request.dont_filter and not is_start(request):
            mark += self.requests.columns.count.to_bytes(8, "big")
        data: bytes | None = None
        try:
            data = pickle.dumps(request.to_dict(spider=self.spider), protocol=5)
        except CANNOT_BE_KEPT as error:
            if not self.stats.get_value("scheduler/unserializable"):
                log.warning("Bowerbird: %s cannot be written down, and would be lost in a crash: %s", request, error)
            self.stats.inc_value("scheduler/unserializable")
        slot = self.requests.add(mark, request.priority, data)
        if data is None:
            self._kept[slot] = request
        self._arrived.append((slot, request))
        if self._chosen and request.priority > self._chosen[0][1].priority:
            self._risen.append(slot)
        self.stats.inc_value("scheduler/enqueued")
        return True

    def _settle(self) -> None:
        """Give the URLs of new requests their rows and bids, and learn the links that they came by."""
        arrived, self._arrived = self._arrived, []
        filtered, self._filtered = self._filtered, []
        canonical = self.crawl.canonicaliser.canonical
        linked = [(request, url) for request in filtered if (url := canonical(request.url)) is not None]
        found = [(slot, request, url) for slot, request in arrived if (url := canonical(request.url)) is not None]
        now = self.crawl.clock.now()
        if found:
            linked += self._add(found, now)
        if linked:
            self._learn(linked, now)

    def _add(self, found: list[tuple[int, Request, str]], now: float) -> list[tuple[Request, str]]:
        """Rows and bids for the URLs of requests; the links that these are."""
        urls = [url for _, _, url in found]
        sources = self.crawl.find([referrer_of(request, self.crawl.canonicaliser) for _, request, _ in found]).tolist()
        depths = [depth_of(request) for _, request, _ in found]
        rows, added = self.crawl.repository.add_urls(urls, at=now, depth=depths, source=sources)
        self.requests.place([slot for slot, _, _ in found], rows, self.crawl.repository.table.columns["host"][rows])
        self.crawl.bid(added, now, offer=False)
        return [(request, url) for _, request, url in found]

    def _learn(self, linked: list[tuple[Request, str]], now: float) -> None:
        """The links that requests came by, to pages that are known by now, with their texts."""
        pages = [referrer_of(request, self.crawl.canonicaliser) for request, _ in linked]
        sources, rows = self.crawl.find(pages).tolist(), self.crawl.find([url for _, url in linked]).tolist()
        anchors = {
            url: answer.anchors
            for _, request in self._taken.values()
            if (answer := self._answers.get(id(request))) is not None
            and (url := self.crawl.canonicaliser.canonical(request.url)) is not None
        }
        links: dict[int, list[int]] = {}
        named: list[tuple[int, str]] = []
        for (request, url), page, source, row in zip(linked, pages, sources, rows, strict=True):
            if row < 0:
                continue
            if source >= 0:
                links.setdefault(source, []).append(row)
            anchor = find_anchor(request.meta, anchors.get(page, {}), url)
            if anchor:
                named.append((row, anchor))
        for source, targets in links.items():
            self.crawl.link(source, targets, now)
        if named:
            self.crawl.name([row for row, _ in named], [text for _, text in named])

    # -- out

    def next_request(self) -> Request | None:
        """The next request; None while nothing waits."""
        self._gather()
        if self._trouble is not None:
            return None
        if not self._chosen:
            self._choose()
        elif self._risen:
            self._overtake()
        if not self._chosen:
            return None
        slot, request = self._chosen.pop()
        self._taken[id(request)] = (slot, request)
        self.stats.inc_value("scheduler/dequeued")
        return request

    def _choose(self) -> None:
        self._settle()
        self._risen.clear()
        if self.requests.waiting:
            now = self.crawl.clock.now()
            self._chosen = self._take(
                self.requests.choose(self.crawl.market.auction, now, self.ahead, self.per_host).tolist()
            )[::-1]

    def _overtake(self) -> None:
        """Requests of a higher priority than some that were chosen go before these."""
        self._settle()
        now = self.crawl.clock.now()
        risen = self.requests.choose(self.crawl.market.auction, now, self.ahead, self.per_host, self._risen)
        self._risen.clear()
        line = self._chosen[::-1] + self._take(risen.tolist())
        line.sort(key=lambda entry: -entry[1].priority)  # those that were chosen before come first among equals
        self._return(line[self.ahead :])
        self._chosen = line[: self.ahead][::-1]

    def _take(self, slots: list[int]) -> list[tuple[int, Request]]:
        """These requests wait no more; those that can be read, ready to go."""
        self.requests.take(np.array(slots, dtype=np.int64))
        stored = self.requests.read(slots)
        out = []
        for slot in slots:
            request = self._kept.pop(slot, None)
            if request is None:
                try:
                    request = request_from_dict(pickle.loads(stored[slot]), spider=self.spider)
                except Exception as error:  # written by another version of the spider, perhaps
                    log.error("Bowerbird: a request cannot be read, and waits for another run: %s", error)
                    self._unread += 1
                    continue
            request.meta[HANDED_OUT] = True
            out.append((slot, request))
        return out

    def _return(self, entries: Sequence[tuple[int, Request]]) -> None:
        """These wait again."""
        self.requests.put_back([slot for slot, _ in entries])
        self._kept.update((slot, request) for slot, request in entries if not self.requests.is_written(slot))

    # -- what became of them

    def _downloaded(self, response: Response, request: Request) -> None:
        if id(request) in self._taken:
            self._answers[id(request)] = read_status(response)

    def _received(self, response: Response, request: Request) -> None:
        if id(request) not in self._taken:
            return
        answer = self._answers.setdefault(id(request), read_status(response))  # a cache has no download
        if self.reads_pages:
            read_page(response, answer, self.crawl.canonicaliser)

    def _under_way(self) -> Collection[Request] | None:
        """What the engine has and is not through with; None where it has no place for that."""
        found: Collection[Request] | None = getattr(getattr(self.crawler.engine, "_slot", None), "inprogress", None)
        return found

    def _gather(self) -> None:
        """Requests that Scrapy is through with are done, with all that they led to."""
        if not self._taken:
            return
        under_way = self._under_way()
        if under_way is None:
            return
        through = [key for key, (_, request) in self._taken.items() if request not in under_way]
        if not through:
            return
        self._settle()  # first: it looks at the pages that requests came from
        now = self.crawl.clock.now()
        visits: dict[int, Visit] = {}
        for key in through:
            slot, _ = self._taken.pop(key)
            self.requests.finish(slot)
            answer = self._answers.pop(key, None)
            row = int(self.requests.columns["row"][slot])
            if answer is not None and row >= 0:
                visits[row] = Visit(row, now, answer.outcome, answer.status, content_hash=answer.content_hash)
        self.crawl.record(list(visits.values()))
        self.crawl.bid(np.array(list(visits), dtype=np.int64), now, offer=False)
        self._commit(now=self.requests.finished >= self.ahead)
