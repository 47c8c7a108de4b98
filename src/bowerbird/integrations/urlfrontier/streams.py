"""The two streams that put URLs in: what has come is taken in together, and acknowledged when it is durable."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from bowerbird.crawl.guest_items import GuestItem, Taken
from bowerbird.integrations.urlfrontier.crawls import CrawlIdError, Crawls
from bowerbird.integrations.urlfrontier.desk import Desk, NotKeptError
from bowerbird.integrations.urlfrontier.messages import CLASSES
from bowerbird.integrations.urlfrontier.read_ahead import ReadAhead, pump
from bowerbird.integrations.urlfrontier.wire import read_info, read_item

log = logging.getLogger(__name__)

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

        await pump(context, take, self._ahead)

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

        await pump(context, take, self._ahead)

    async def _put(self, puts: list[Put]) -> list[Taken]:
        """Nothing that goes wrong here ends a stream: what could not be kept is said to have failed."""
        taken: list[Taken] = []
        for first in range(0, len(puts), AT_ONCE):
            some = puts[first : first + AT_ONCE]
            try:
                taken += await self.desk.do(partial(put_all, puts=some))
            except NotKeptError:  # the desk said so, once
                taken += [Taken.FAIL] * len(some)
            except Exception as error:
                log.error("%d URLs could not be kept: %s", len(some), error)
                taken += [Taken.FAIL] * len(some)
        return taken


def _url_of(item: Any) -> str:
    which = item.WhichOneof("item")
    return "" if which is None else str(getattr(item, which).info.url)
