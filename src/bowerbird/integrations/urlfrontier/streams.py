"""The two streams that put URLs in: what has come is taken in together, and acknowledged when it is durable.

A stream reads ahead while what it read before is committed, up to a bound; then it stops reading, and the sender has to
wait. So neither side can be flooded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import grpc

from bowerbird.crawl.guest_items import GuestItem, Taken
from bowerbird.integrations.urlfrontier.crawls import CrawlIdError, Crawls
from bowerbird.integrations.urlfrontier.desk import Desk
from bowerbird.integrations.urlfrontier.messages import CLASSES
from bowerbird.integrations.urlfrontier.wire import read_info, read_item

log = logging.getLogger(__name__)

AHEAD = 2_000  # messages that a stream reads while the last ones are committed,
AHEAD_BYTES = 8 << 20  # or so much of them
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

    async def PutURLs(self, context: Any) -> None:  # noqa: N802 - the interface's names
        """URLs one by one, found or dealt with."""

        async def take(read: list[bytes]) -> list[bytes]:
            messages = [URLItem.FromString(data) for data in read]
            taken = await self._put([read_item(message) for message in messages])
            return [
                AckMessage(ID=message.ID or _url_of(message), status=int(what)).SerializeToString()
                for message, what in zip(messages, taken, strict=True)
            ]

        await _pump(context, take)

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

        await _pump(context, take)

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


async def _pump(context: Any, take: Callable[[list[bytes]], Awaitable[list[bytes]]]) -> None:
    """Read messages, have them taken in, and send what is said of them, each at its own pace."""
    waiting: list[bytes] = []
    size = 0  # bytes that wait
    news, room = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        nonlocal size
        try:
            while (message := await context.read()) is not grpc.aio.EOF:
                waiting.append(message)
                size += len(message)
                news.set()
                while len(waiting) >= AHEAD or size >= AHEAD_BYTES:
                    room.clear()
                    await room.wait()
        finally:
            news.set()

    reading = asyncio.ensure_future(read())  # what goes wrong in here ends the call at once, whatever the sender does
    try:
        while waiting or not reading.done():
            if not waiting:
                news.clear()
                await news.wait()
                continue
            messages, waiting, size = waiting, [], 0
            room.set()
            for ack in await take(messages):
                await context.write(ack)
        await reading
    finally:
        reading.cancel()
