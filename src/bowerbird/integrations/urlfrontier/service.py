"""The calls of the interface that ask, steer and look. What they mean is in docs/urlfrontier.md."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from bowerbird.crawl.guest_frontier import MAX_KEY_CHARS, GuestFrontier, Handed
from bowerbird.crawl.guest_lines import MOST_AT_ONCE, MOST_BYTES_AT_ONCE
from bowerbird.integrations.urlfrontier.crawls import DEFAULT, CrawlIdError, Crawls
from bowerbird.integrations.urlfrontier.desk import Desk, NotKeptError
from bowerbird.integrations.urlfrontier.messages import CLASSES
from bowerbird.integrations.urlfrontier.read_ahead import TooManyStreamsError
from bowerbird.integrations.urlfrontier.streams import PutStreams
from bowerbird.integrations.urlfrontier.wire import crawl_field, write_info, write_item
from bowerbird.model.errors import BowerbirdError, DiskFullError
from bowerbird.store.disk_trouble import explain_trouble

log = logging.getLogger(__name__)

T = TypeVar("T")
LEASE_S = 30.0
PAGE = 100  # values of a list, unless somebody asks for another number
MOST_LISTED = 10_000  # values of one list of queues
REMOVED_AT_ONCE = 5_000
DAY_S = 86_400
TRACE = 5
LEVELS = (TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
Empty, Long = CLASSES["Empty"], CLASSES["Long"]


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A call that cannot be answered, with the status that says so."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def check_key(request: Any) -> None:
    """Whatever is asked: a key that no line can have is a mistake."""
    key = getattr(request, "key", "")
    if len(key) > MAX_KEY_CHARS:
        raise Refusal(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"key {key[:40]!r}…: {len(key)} characters; a key has at most {MAX_KEY_CHARS}",
        )


def need_key(key: str, what: str) -> str:
    """The key of a line, where a call makes no sense without."""
    if not key:
        raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, f"key is empty: {what}")
    return key


def status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    """The status of whatever went wrong; mistakes of ours are told in the log only."""
    if isinstance(error, Refusal):
        return error.code, str(error)
    if isinstance(error, CrawlIdError):
        return grpc.StatusCode.INVALID_ARGUMENT, str(error)
    if isinstance(error, DecodeError):
        return grpc.StatusCode.INVALID_ARGUMENT, f"a message cannot be read: {error}"
    if isinstance(error, sqlite3.Error | OSError):
        error = explain_trouble(error) or error
    if isinstance(error, DiskFullError | TooManyStreamsError) or (
        isinstance(error, NotKeptError) and error.is_disk_full
    ):
        return grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)
    if isinstance(error, BowerbirdError):
        return grpc.StatusCode.UNAVAILABLE, str(error)
    log.error("a call failed", exc_info=error)
    return grpc.StatusCode.INTERNAL, f"the service failed ({type(error).__name__}); its log says more"


def find_crawl(crawls: Crawls, crawl_id: str) -> GuestFrontier:
    """The frontier of a crawl that there is."""
    frontier = crawls.get(crawl_id)
    if frontier is None:
        raise Refusal(grpc.StatusCode.NOT_FOUND, f"crawlID {crawl_id[:80]!r}: there is no such crawl")
    return frontier


class FrontierService(PutStreams):
    """One method a call; unary ones return their answer, streams write theirs."""

    def __init__(self, desk: Desk, address: str) -> None:
        super().__init__(desk)
        self.address = address

    # -- nodes and crawls

    async def ListNodes(self, request: Any) -> Any:  # noqa: N802 - the interface's names
        """This node is all there is."""
        return CLASSES["StringList"](values=[self.address])

    async def ListCrawls(self, request: Any) -> Any:  # noqa: N802
        """IDs of the crawls."""
        return CLASSES["StringList"](values=await self.desk.look(lambda crawls: crawls.ids()))

    async def DeleteCrawl(self, request: Any) -> Any:  # noqa: N802
        """Remove a crawl with all its URLs."""
        return Long(value=await self.desk.look(lambda crawls: crawls.delete(request.value)))  # it makes room

    async def SetActive(self, request: Any) -> Any:  # noqa: N802
        """Hand URLs out, or not."""
        await self.desk.do(lambda crawls: crawls.set_active(request.state))
        return Empty()

    async def GetActive(self, request: Any) -> Any:  # noqa: N802
        """Are URLs handed out?"""
        return CLASSES["Boolean"](state=await self.desk.look(lambda crawls: crawls.active))

    async def SetLogLevel(self, request: Any) -> Any:  # noqa: N802
        """How much is logged, by a package or by all of ours."""
        if not 0 <= request.level < len(LEVELS):
            raise Refusal(
                grpc.StatusCode.INVALID_ARGUMENT, f"level {request.level}: must be from 0 to {len(LEVELS) - 1}"
            )
        package = request.package or "bowerbird"
        if package not in logging.root.manager.loggerDict:  # one more for every name would be for ever
            raise Refusal(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"package {package[:80]!r}: there is no such logger; they are named by module, as bowerbird.crawl",
            )
        logging.getLogger(package).setLevel(LEVELS[request.level])
        return Empty()

    # -- queues

    async def _in(self, crawl_id: str, work: Callable[[GuestFrontier], T]) -> T:
        """Change something in a crawl that there is."""
        return await self.desk.do(lambda crawls: work(find_crawl(crawls, crawl_id)))

    async def _at(self, crawl_id: str, work: Callable[[GuestFrontier], T]) -> T:
        """Look at something in a crawl that there is."""
        return await self.desk.look(lambda crawls: work(find_crawl(crawls, crawl_id)))

    async def ListQueues(self, request: Any) -> Any:  # noqa: N802
        """Keys of the queues: those that hold URLs and are not blocked, or all."""
        size = min(request.size or PAGE, MOST_LISTED)

        def work(frontier: GuestFrontier) -> tuple[list[str], int]:
            queues, numbers = frontier.queues, frontier.queues.numbers()
            if not request.include_inactive:
                active, _ = frontier.places.counts()
                blocked = queues.columns["blocked_until"] > frontier.clock.now()
                numbers = numbers[(active[numbers] > 0) & ~blocked[numbers]]
            part = numbers[request.start : request.start + size].tolist()
            return [queues.keys_by_number[number] for number in part], len(numbers)

        values, total = await self._at(request.crawlID, work)
        return CLASSES["QueueList"](
            values=values, total=total, start=request.start, size=len(values), crawlID=request.crawlID or DEFAULT
        )

    async def GetStats(self, request: Any) -> Any:  # noqa: N802
        """Counts of a queue or of a crawl."""

        def work(frontier: GuestFrontier) -> dict[str, Any]:
            active, done = frontier.places.counts(request.key)
            lines = frontier.queues.numbers()
            if request.key:
                lines = lines[lines == frontier.queues.get(request.key, -1)]
            held = frontier.queues.columns["in_process"][lines]
            counted = {} if request.key else {"metadata_too_large": frontier.oversized}
            return {
                "size": int(active[lines].sum()),
                "inProcess": int(held.sum()),
                "counts": {
                    "completed": int(done[lines].sum()),
                    "active_queues": int(np.count_nonzero((active[lines] > 0) | (held > 0))),
                    **counted,
                },
                "numberOfQueues": len(lines),
            }

        return CLASSES["Stats"](crawlID=request.crawlID or DEFAULT, **await self._at(request.crawlID, work))

    async def DeleteQueue(self, request: Any) -> Any:  # noqa: N802
        """Remove a queue with all its URLs."""
        key = need_key(request.key, "name the queue to delete; DeleteCrawl deletes a whole crawl")
        removed = await self._remove(request, int(time.time()))
        return Long(value=removed + await self._in(request.crawlID, lambda frontier: frontier.remove_line(key)))

    async def BlockQueueUntil(self, request: Any) -> Any:  # noqa: N802
        """Hand out nothing of a queue until a time."""
        key = need_key(request.key, "name the queue to block")
        until = min(float(request.time), 2.0**40)
        await self._in(request.crawlID, lambda frontier: frontier.block(key, until))
        return Empty()

    async def SetDelay(self, request: Any) -> Any:  # noqa: N802
        """Seconds between two times that something of a queue is handed out."""
        delay_s = float(request.delay_requestable)
        if request.key or request.crawlID:
            await self._in(request.crawlID, lambda frontier: frontier.set_delay(request.key, delay_s))
        else:
            await self.desk.do(lambda crawls: crawls.set_delay(delay_s))
        return Empty()

    async def SetCrawlLimit(self, request: Any) -> Any:  # noqa: N802
        """How many URLs of a queue are fetched, at most."""
        key = need_key(request.key, "name the queue to limit")
        if not await self._in(request.crawlID, lambda frontier: frontier.limit(key, request.limit)):
            raise Refusal(grpc.StatusCode.NOT_FOUND, f"key {key[:80]!r}: there is no such queue in this crawl")
        return Empty()

    # -- URLs

    async def GetURLs(self, request: Any, context: Any) -> None:  # noqa: N802
        """Hand out URLs that are due, by their bids; they are leased, durably, before the first one is sent."""
        any_crawl = request.WhichOneof("item") != "crawlID"

        def work(crawls: Crawls) -> list[tuple[str, GuestFrontier, Handed]]:
            if not crawls.active:
                return []
            frontier = None if any_crawl else crawls.get(request.crawlID)
            mine = crawls.in_turn() if any_crawl else [(request.crawlID or DEFAULT, frontier)]
            out, left, room, lines = [], MOST_AT_ONCE, MOST_BYTES_AT_ONCE, request.max_queues
            for name, one in mine:
                if one is None or left <= 0 or room <= 0 or (request.max_queues and lines <= 0):
                    continue
                handed = one.take(
                    key=request.key,
                    per_line=request.max_urls_per_queue,
                    lines=lines,
                    lease_s=request.delay_requestable or LEASE_S,
                    most=left,
                    most_bytes=room,
                )
                left -= len(handed.rows)
                room -= int(one.places.columns["size"][handed.rows].sum())
                lines -= len(handed.produced_at) if lines else 0
                out.append((name, one, handed))
            return out

        def undo(found: list[tuple[str, GuestFrontier, Handed]]) -> None:
            for _, one, handed in found:
                one.give_back(handed)

        found = await self.desk.do(work, undo)
        log.debug("GetURLs: %d URLs", sum(len(handed.rows) for _, _, handed in found))
        for name, one, handed in found:
            field = crawl_field(name)
            for part in one.places.portions(handed.rows):
                late = one.clock.now() >= handed.until
                if late or self.desk.crawls.get(name) is not one:
                    return  # they are not this caller's any more: it took its time, or the crawl is gone
                for message in [write_info(standing, field) for standing in one.places.standings(part.tolist())]:
                    await context.write(message)

    async def GetURLStatus(self, request: Any) -> Any:  # noqa: N802
        """A URL as it stands."""

        def work(frontier: GuestFrontier) -> Any:
            row = frontier.find(request.url, request.key)
            if row is None:
                raise Refusal(grpc.StatusCode.NOT_FOUND, f"url {request.url[:200]!r}: not in this crawl or queue")
            return write_item(next(frontier.places.standings([row])), crawl_field(request.crawlID or DEFAULT))

        return await self._at(request.crawlID, work)

    async def ListURLs(self, request: Any, context: Any) -> None:  # noqa: N802
        """URLs as they stand, in the order in which they came."""
        crawl = crawl_field(request.crawlID or DEFAULT)
        skip, left = request.start, request.size or PAGE
        rows = await self._at(request.crawlID, lambda frontier: frontier.places.members(request.key))
        if not request.filter:  # nothing has to be looked at to be passed over
            rows, skip = rows[skip : skip + left], 0
        async for standings in self._chunks(rows, request):
            for standing in standings[skip : skip + left]:
                await context.write(write_item(standing, crawl))
            sent = max(min(len(standings) - skip, left), 0)
            skip, left = max(skip - len(standings), 0), left - sent
            if not left:
                return

    async def CountURLs(self, request: Any) -> Any:  # noqa: N802
        """How many URLs there are."""
        rows = await self._at(request.crawlID, lambda frontier: frontier.places.members(request.key))
        if not request.filter:
            return Long(value=len(rows))
        return Long(value=sum([len(standings) async for standings in self._chunks(rows, request)]))

    async def _chunks(self, rows: Any, request: Any) -> AsyncIterator[list[Any]]:
        """Of these rows, those that are still there and match the filter, so many at a time."""
        wanted = request.filter.lower() if request.ignoreCase else request.filter

        def matches(url: str) -> bool:
            return wanted in (url.lower() if request.ignoreCase else url)

        for part in await self._at(request.crawlID, lambda frontier: list(frontier.places.portions(rows))):

            def work(frontier: GuestFrontier, part: Any = part) -> list[Any]:
                there = part[frontier.places.are_in_line(part)]
                return [one for one in frontier.places.standings(there.tolist()) if not wanted or matches(one.url)]

            yield await self._at(request.crawlID, work)

    async def PurgeURLs(self, request: Any) -> Any:  # noqa: N802
        """Remove URLs that were put in more than so many days ago."""
        before = time.time() - request.days * DAY_S
        return Long(value=await self._remove(request, before))

    async def _remove(self, request: Any, before: float | None = None) -> int:
        """Take URLs out, so many at a time: other calls get their turn between."""
        removed = 0

        def work(frontier: GuestFrontier) -> int:
            return frontier.remove(frontier.places.members(request.key, before)[:REMOVED_AT_ONCE])

        while (some := await self._in(request.crawlID, work)) > 0:
            removed += some
        return removed
