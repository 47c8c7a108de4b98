"""The scheduler: requests are durable, come by their bids, and are done when Scrapy has dealt with them.

Scrapy says nowhere that a response was dealt with. But its engine keeps each request in a set until callback, items and
all requests that the callback made are through; so what was handed out and is in that set no more is done. Requests
that a page made are durable with the page or before it.
"""

from __future__ import annotations

import logging
import pickle
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.request import request_from_dict

from bowerbird.crawl.guest_crawl import GuestCrawl, Visit, make_guest_folder
from bowerbird.integrations.scrapy.feedback import Answer, find_anchor, read_page, read_status
from bowerbird.integrations.scrapy.request_table import RequestTable
from bowerbird.model.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

log = logging.getLogger(__name__)

ROUND = "scrapy_round_over"  # in the crawl's folder: the last run ended with nothing left
TICK_S = 0.1
COMMIT_SHARE = 0.1  # of the time, at most, goes into commits
HANDED_OUT = "bowerbird_handed_out"  # in meta: what is made of such a request is not the spider's start
AHEAD = 4  # times CONCURRENT_REQUESTS are chosen at once
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
        self.root = Path(settings.get("BOWERBIRD_DIR") or Path(".bowerbird") / quote(_name_of(crawler), safe=""))
        self.policy: str | None = settings.get("BOWERBIRD_POLICY")
        self.reads_pages = settings.getbool("BOWERBIRD_READ_PAGES", True)
        self.repeats_start = settings.getbool("BOWERBIRD_REPEAT_START", False)
        self.per_host = max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1)
        self.ahead = AHEAD * max(settings.getint("CONCURRENT_REQUESTS"), 1)
        self._arrived: list[tuple[int, Request]] = []  # whose URLs have no row yet
        self._filtered: list[Request] = []  # whose links are not learnt yet
        self._chosen: list[tuple[int, Request]] = []  # the next is the last
        self._kept: dict[int, Request] = {}  # what cannot be written down
        self._unread = 0  # requests that this version of the spider cannot make sense of
        self._taken: dict[int, tuple[int, Request]] = {}  # by identity
        self._answers: dict[int, Answer] = {}  # by identity of the request
        self._committed_at = 0.0
        self._commit_took_s = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        """As Scrapy makes it."""
        return cls(crawler)

    # -- life

    def open(self, spider: Spider) -> None:
        """Open the folder, as the last run left it."""
        self.spider = spider
        made = not (self.root / "bowerbird.toml").exists()
        make_guest_folder(self.root)
        self.crawl = GuestCrawl(self.root, policy=self.policy)
        repository = self.crawl.repository
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
        self._gather()
        if reason == "finished" and not (self.requests.waiting or self._chosen or self._taken or self._unread):
            self.crawl.repository.set_meta(ROUND, 1)
        self._settle()
        self.crawl.close(self.requests.write)

    def _tick(self) -> None:
        self._gather()
        self._settle()
        self._commit()
        if self.crawl.upkeep_due():
            added, removed = self.crawl.keep_up(len(self._taken))
            self.requests.drop(removed)  # by `bowerbird forget`
            for url in self.crawl.repository.urls(added.tolist()):  # by `bowerbird add`
                self.enqueue_request(Request(url))

    def _commit(self) -> None:
        """Unless that was done so lately that it would cost too much; the next tick will."""
        began = time.monotonic()
        if not (self.requests.pending or self.crawl.pending):
            return
        if began - self._committed_at < self._commit_took_s / COMMIT_SHARE:
            return
        self.crawl.commit(self.requests.write)
        self.requests.written()
        self._committed_at = time.monotonic()
        self._commit_took_s = self._committed_at - began

    # -- in

    def has_pending_requests(self) -> bool:
        """Does anything wait?"""
        return bool(self.requests.waiting or self._chosen)

    def enqueue_request(self, request: Request) -> bool:
        """Take a request, unless it was seen before in this round and is to be filtered."""
        mark = self.fingerprint(request)
        seen = self.requests.find(mark)
        if seen is not None:
            again = _is_start(request) and seen < self.requests.before
            if not request.dont_filter or (again and not self.repeats_start):
                self.stats.inc_value("dupefilter/filtered")
                self._filtered.append(request)  # a link all the same
                return False
            mark += self.requests.columns.count.to_bytes(8, "big")  # one more of its kind
        elif request.dont_filter and not _is_start(request):
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
        sources = self.crawl.find([self._referrer(request) for _, request, _ in found]).tolist()
        depths = [min(max(_whole(request.meta.get("depth")), 0), 254) for _, request, _ in found]
        rows, added = self.crawl.repository.add_urls(urls, at=now, depth=depths, source=sources)
        self.requests.place([slot for slot, _, _ in found], rows, self.crawl.repository.table.columns["host"][rows])
        self.crawl.bid(added, now, offer=False)
        return [(request, url) for _, request, url in found]

    def _learn(self, linked: list[tuple[Request, str]], now: float) -> None:
        """The links that requests came by, to pages that are known by now, with their texts."""
        pages = [self._referrer(request) for request, _ in linked]
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

    def _referrer(self, request: Request) -> str:
        """The canonical URL of the page that a request came from; empty where it is not known."""
        header = request.headers.get("Referer")
        return (self.crawl.canonicaliser.canonical(header.decode("latin-1")) or "") if header else ""

    # -- out

    def next_request(self) -> Request | None:
        """The next request; None while nothing waits."""
        self._gather()
        if not self._chosen:
            self._choose()
        if not self._chosen:
            return None
        slot, request = self._chosen.pop()
        self._taken[id(request)] = (slot, request)
        self.stats.inc_value("scheduler/dequeued")
        return request

    def _choose(self) -> None:
        self._settle()
        if not self.requests.waiting:
            return
        now = self.crawl.clock.now()
        slots = self.requests.choose(self.crawl.market.auction, now, self.ahead, self.per_host)
        self.requests.take(slots)
        stored = self.requests.read(slots.tolist())
        for slot in reversed(slots.tolist()):
            request = self._kept.pop(slot, None)
            if request is None:
                try:
                    request = request_from_dict(pickle.loads(stored[slot]), spider=self.spider)
                except Exception as error:  # written by another version of the spider, perhaps
                    log.error("Bowerbird: a request cannot be read, and waits for another run: %s", error)
                    self._unread += 1
                    continue
            request.meta[HANDED_OUT] = True
            self._chosen.append((slot, request))

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

    def _gather(self) -> None:
        """Requests that Scrapy is through with are done, with all that they led to."""
        if not self._taken:
            return
        engine: Any = self.crawler.engine
        slot_of_engine = getattr(engine, "_slot", None) or getattr(engine, "slot", None)
        under_way = slot_of_engine.inprogress if slot_of_engine is not None else ()
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
        self._commit()


def _name_of(crawler: Crawler) -> str:
    return str(getattr(crawler.spider, "name", None) or crawler.spidercls.name)


def _is_start(request: Request) -> bool:
    """Did the spider's start make it? A retry or a redirect of such a request has its meta, too."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get(HANDED_OUT)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
