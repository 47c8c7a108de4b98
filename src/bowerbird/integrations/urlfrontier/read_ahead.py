"""Streams that put URLs in, and what they may hold: each of them, and all together.

A stream reads ahead while what it read before is committed, up to a bound, and all streams together up to another; then
it stops reading, and the sender has to wait. Messages are unpacked, which makes them many times larger, only so many at
a time. So neither side can be flooded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc

from bowerbird.model.errors import BowerbirdError

AHEAD = 2_000  # messages that a stream reads while the last ones are committed,
AHEAD_BYTES = 8 << 20  # or so much of them;
ALL_AHEAD_BYTES = 64 << 20  # of all streams together, beyond which each reads one message at a time
PART_BYTES = 1 << 20  # of a stream that are unpacked at once, or one message;
ALL_UNPACKED_BYTES = 8 << 20  # of all streams together
MESSAGE_BYTES = 100  # that a message takes besides its own
MOST_STREAMS = 200  # open at once

Take = Callable[[list[bytes]], Awaitable[list[bytes]]]
"""Takes messages in, and returns what is said of them."""


class TooManyStreamsError(BowerbirdError):
    """All streams that can be served are open."""


class ReadAhead:
    """What all streams together have read and not acknowledged yet. One that has nothing may always read a message."""

    def __init__(self) -> None:
        self.streams = 0
        self.size = 0
        self.unpacked = 0
        self._waiting: set[asyncio.Event] = set()
        self._door = asyncio.Lock()
        self._freed = asyncio.Event()

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

    @asynccontextmanager
    async def unpacking(self, size: int) -> AsyncIterator[None]:
        """Room for messages that are unpacked, in the order in which it is asked for."""
        async with self._door:
            while self.unpacked and self.unpacked + size > ALL_UNPACKED_BYTES:
                self._freed.clear()
                await self._freed.wait()
            self.unpacked += size
        try:
            yield
        finally:
            self.unpacked -= size
            self._freed.set()

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


async def pump(context: Any, take: Take, ahead: ReadAhead) -> None:
    """Read messages, have them taken in, and send what is said of them, each at its own pace."""
    with ahead.stream():
        await _Pump(context, take, ahead).run()


class _Pump:
    """One stream that puts."""

    def __init__(self, context: Any, take: Take, ahead: ReadAhead) -> None:
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
                size = len(message) + MESSAGE_BYTES
                self.waiting.append(message)
                self.size += size
                self.held += size
                self.ahead.take(size)
                self.news.set()
                while not self._may_read():
                    await self.ahead.wait(self.room)
        finally:
            self.news.set()

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
                messages, self.waiting, self.size = self.waiting, [], 0
                self.room.set()
                for part, size in in_parts(messages):
                    async with self.ahead.unpacking(size):
                        acks = await self.take(part)
                    for ack in acks:
                        await self.context.write(ack)
                    self._release(size)
            await reading
        finally:
            reading.cancel()
            self._release(self.held)


def in_parts(messages: list[bytes]) -> Iterator[tuple[list[bytes], int]]:
    """Messages in parts that are unpacked at once, with their sizes; the list is emptied on the way.

    >>> [(len(part), size) for part, size in in_parts([bytes(600_000), bytes(600_000), b""])]
    [(1, 600100), (2, 600200)]
    """
    messages.reverse()
    while messages:
        part = [messages.pop()]
        size = len(part[0]) + MESSAGE_BYTES
        while messages and size + len(messages[-1]) + MESSAGE_BYTES <= PART_BYTES:
            size += len(messages[-1]) + MESSAGE_BYTES
            part.append(messages.pop())
        yield part, size
