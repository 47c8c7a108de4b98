"""The two streams that put URLs in: what has come is taken in together, and acknowledged when it is durable.

A stream reads ahead while what it read before is committed, up to a bound, and all streams together up to another; then
it stops reading, and the sender has to wait. So neither side can be flooded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from bowerbird.crawl.guest_items import GuestItem, Taken
from bowerbird.integrations.urlfrontier.crawls import CrawlIdError, Crawls
from bowerbird.integrations.urlfrontier.desk import Desk
from bowerbird.integrations.urlfrontier.messages import CLASSES
from bowerbird.integrations.urlfrontier.wire import read_info, read_item
from bowerbird.model.errors import BowerbirdError

log = logging.getLogger(__name__)

AHEAD = 2_000  # messages that a stream reads while the last ones are committed,
AHEAD_BYTES = 8 << 20  # or so much of them;
ALL_AHEAD_BYTES = 64 << 20  # of all streams together, beyond which each reads one message at a time
MOST_STREAMS = 200  # that put, open at once
MESSAGE_BYTES = 100  # that a message takes besides its own
AT_ONCE = 5_000  # URLs of one job: other calls get their turn between
AckMessage, BatchAck = CLASSES["AckMessage"], CLASSES["BatchAck"]
URLItem, DiscoveredBatch = CLASSES["URLItem"], CLASSES["DiscoveredBatch"]
Put = tuple[str, GuestItem] | None
"""A crawl ID and what is put there; None for what cannot be."""


def put_all(crawls: Crawls, puts: Sequence[Put]) -> list[Taken]:
    """Take in items of any crawls; what became of each, in their order."""
    out = [Taken.SKIPPED] * len(puts)
    by_crawl: dict[str, list[int]] = {}
    for place, put in enumerate(puts):
        if put is not None:
            by_crawl.setdefault(put[0], []).append(place)
    for crawl_id, places in by_crawl.items():
        try:
            frontier = crawls.get_or_make(crawl_id)
        except CrawlIdError as error:
            log.warning("%s", error)
            continue
        taken = frontier.put([put[1] for place in places if (put := puts[place]) is not None])
        for place, what in zip(places, taken, strict=True):
            out[place] = what
    return out


class PutStreams:
    """PutURLs and PutDiscovered."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._ahead = ReadAhead()

    async def PutURLs(self, context: Any) -> None:  # noqa: N802 - the interface's names
        """URLs one by one, found or dealt with."""

        async def take(read: list[bytes]) -> list[bytes]:
            messages = [URLItem.FromString(data) for data in read]
            taken = await self._put([read_item(message) for message in messages])
            return [
                AckMessage(ID=message.ID or _url_of(message), status=int(what)).SerializeToString()
                for message, what in zip(messages, taken, strict=True)
            ]

        await _pump(context, take, self._ahead)

    async def PutDiscovered(self, context: Any) -> None:  # noqa: N802
        """URLs that were found, many in a message."""

        async def take(read: list[bytes]) -> list[bytes]:
            batches = [DiscoveredBatch.FromString(data) for data in read]
            taken = await self._put([(info.crawlID, read_info(info)) for batch in batches for info in batch.items])
            out, first = [], 0
            for batch in batches:
                statuses = [int(what) for what in taken[first : first + len(batch.items)]]
                first += len(statuses)
                out.append(BatchAck(ID=batch.ID, statuses=statuses).SerializeToString())
            return out

        await _pump(context, take, self._ahead)

    async def _put(self, puts: list[Put]) -> list[Taken]:
        """Nothing that goes wrong here ends a stream: what could not be kept is said to have failed."""
        taken: list[Taken] = []
        for first in range(0, len(puts), AT_ONCE):
            some = puts[first : first + AT_ONCE]
            try:
                taken += await self.desk.do(partial(put_all, puts=some))
            except Exception as error:
                log.error("%d URLs could not be kept: %s", len(some), error)
                taken += [Taken.FAIL] * len(some)
        return taken


def _url_of(item: Any) -> str:
    which = item.WhichOneof("item")
    return "" if which is None else str(getattr(item, which).info.url)


class ReadAhead:
    """What all streams together have read and not acknowledged yet. One that has nothing may always read a message."""

    def __init__(self) -> None:
        self.streams = 0
        self.size = 0
        self._waiting: set[asyncio.Event] = set()

    def take(self, size: int) -> None:
        """So much was read."""
        self.size += size

    def give_back(self, size: int) -> None:
        """So much was acknowledged, or is lost with its stream."""
        self.size -= size
        for one in self._waiting:
            one.set()

    async def wait(self, room: asyncio.Event) -> None:
        """Until anything changes for this stream, or for all."""
        room.clear()
        self._waiting.add(room)
        try:
            await room.wait()
        finally:
            self._waiting.discard(room)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """One stream more, unless they are too many."""
        if self.streams >= MOST_STREAMS:
            raise TooManyStreamsError(
                f"there are {self.streams} streams that put URLs, and more are not served at once: let one stream of "
                "each fetcher put all its URLs, and close those that are done"
            )
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1


class TooManyStreamsError(BowerbirdError):
    """All streams that can be served are open."""


async def _pump(context: Any, take: Callable[[list[bytes]], Awaitable[list[bytes]]], ahead: ReadAhead) -> None:
    """Read messages, have them taken in, and send what is said of them, each at its own pace."""
    with ahead.stream():
        await _Pump(context, take, ahead).run()


class _Pump:
    """One stream that puts."""

    def __init__(self, context: Any, take: Callable[[list[bytes]], Awaitable[list[bytes]]], ahead: ReadAhead) -> None:
        self.context, self.take, self.ahead = context, take, ahead
        self.waiting: list[bytes] = []
        self.size = self.held = 0  # bytes that wait, and those that are not acknowledged: these as well
        self.news, self.room = asyncio.Event(), asyncio.Event()

    def _may_read(self) -> bool:
        if not self.held:
            return True
        return len(self.waiting) < AHEAD and self.size < AHEAD_BYTES and self.ahead.size < ALL_AHEAD_BYTES

    async def _read(self) -> None:
        try:
            while (message := await self.context.read()) is not grpc.aio.EOF:
                self.waiting.append(message)
                self._count(len(message) + MESSAGE_BYTES)
                self.news.set()
                while not self._may_read():
                    await self.ahead.wait(self.room)
        finally:
            self.news.set()

    def _count(self, size: int) -> None:
        self.size += size
        self.held += size
        self.ahead.take(size)

    def _release(self, size: int) -> None:
        self.held -= size
        self.ahead.give_back(size)

    async def run(self) -> None:
        """Until the sender has sent all, and has heard of all."""
        reading = asyncio.ensure_future(self._read())  # what goes wrong in here ends the call, whatever the sender does
        try:
            while self.waiting or not reading.done():
                if not self.waiting:
                    self.news.clear()
                    await self.news.wait()
                    continue
                messages, self.waiting = self.waiting, []
                size, self.size = self.size, 0
                self.room.set()
                for ack in await self.take(messages):
                    await self.context.write(ack)
                self._release(size)
            await reading
        finally:
            reading.cancel()
            self._release(self.held)
