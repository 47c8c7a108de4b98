"""Streams are bounded, and what could not be made durable is never acknowledged as if it were."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from bowerbird.crawl.guest_items import GuestItem, Taken
from bowerbird.integrations.urlfrontier import read_ahead
from bowerbird.integrations.urlfrontier.crawls import CrawlIdError, folder_name
from bowerbird.integrations.urlfrontier.desk import Desk, NotKeptError
from bowerbird.integrations.urlfrontier.read_ahead import ReadAhead
from bowerbird.integrations.urlfrontier.service import status_of
from bowerbird.integrations.urlfrontier.streams import PutStreams
from bowerbird.model.errors import DiskFullError


class EndlessSender:
    """A client that sends as fast as it is read."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.reads = 0
        self.written: list[bytes] = []

    async def read(self) -> bytes:
        self.reads += 1
        await asyncio.sleep(0)
        return self.message

    async def write(self, ack: bytes) -> None:
        self.written.append(ack)


@pytest.mark.parametrize(("size", "most"), [(10, read_ahead.AHEAD), (1 << 20, read_ahead.AHEAD_BYTES >> 20)])
def test_a_stream_stops_reading_while_nothing_gets_durable(size: int, most: int) -> None:
    async def run() -> int:
        sender = EndlessSender(b"x" * size)
        stuck = asyncio.Event()
        first: list[int] = []

        async def take(messages: list[bytes]) -> list[bytes]:
            first.append(len(messages))
            await stuck.wait()
            return []

        task = asyncio.ensure_future(read_ahead.pump(sender, take, ReadAhead()))
        for _ in range(20 * most):
            await asyncio.sleep(0)
        read = sender.reads
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not sender.written
        return read - first[0]

    assert asyncio.run(run()) <= most + 1


def test_messages_are_unpacked_so_many_at_a_time_in_their_order() -> None:
    """Ten streams send eight megabytes each: nothing is done, and then all of it."""
    size, count = 1 << 20, 10

    async def run() -> None:
        ahead = ReadAhead()
        go_on = asyncio.Event()
        open_now = most = 0
        order: list[bytes] = []

        async def take(messages: list[bytes]) -> list[bytes]:
            nonlocal open_now, most
            open_now += sum(map(len, messages))
            most = max(most, open_now)
            await go_on.wait()
            open_now -= sum(map(len, messages))
            order.extend(message[:2] for message in messages)
            return [message[:2] for message in messages]

        class Sender:
            def __init__(self, name: int) -> None:
                self.left = [bytes((name, n)) + bytes(size) for n in range(8, 0, -1)]
                self.heard: list[bytes] = []

            async def read(self) -> Any:
                await asyncio.sleep(0)
                return self.left.pop() if self.left else grpc.aio.EOF

            async def write(self, ack: bytes) -> None:
                self.heard.append(ack)

        senders = [Sender(name) for name in range(count)]
        tasks = [asyncio.ensure_future(read_ahead.pump(sender, take, ahead)) for sender in senders]
        for _ in range(500):
            await asyncio.sleep(0)
        assert size <= most <= read_ahead.ALL_UNPACKED_BYTES
        go_on.set()
        await asyncio.gather(*tasks)
        assert most <= read_ahead.ALL_UNPACKED_BYTES
        for name, sender in enumerate(senders):
            assert sender.heard == [bytes((name, n)) for n in range(1, 9)]
        assert (ahead.size, ahead.unpacked, ahead.streams) == (0, 0, 0)

    asyncio.run(run())


class DeafSender(EndlessSender):
    """One that hears of nothing it sent."""

    async def write(self, ack: bytes) -> None:
        await asyncio.Event().wait()


def test_all_streams_together_stop_reading_and_a_stuck_one_stops_no_other() -> None:
    """Thirty streams whose clients hear nothing; then one more, whose client does."""
    size, count = 1 << 20, 30

    async def run() -> None:
        ahead = ReadAhead()

        async def take(messages: list[bytes]) -> list[bytes]:
            return [b""] * len(messages)

        senders = [DeafSender(b"x" * size) for _ in range(count)]
        tasks = [asyncio.ensure_future(read_ahead.pump(sender, take, ahead)) for sender in senders]
        for _ in range(2_000):
            await asyncio.sleep(0)
        most = read_ahead.ALL_AHEAD_BYTES / size + count  # each may have read one message when the room was full
        assert read_ahead.ALL_AHEAD_BYTES / size - 1 <= sum(sender.reads for sender in senders) <= most
        other = EndlessSender(b"x" * size)
        tasks.append(asyncio.ensure_future(read_ahead.pump(other, take, ahead)))
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(other.written) > 10
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (ahead.size, ahead.unpacked, ahead.streams) == (0, 0, 0)

    asyncio.run(run())


class NoDisk:
    """Crawls on a disk that is full."""

    def __init__(self) -> None:
        self.items = 0

    def get_or_make(self, crawl_id: str) -> Any:
        def put(items: list[GuestItem]) -> list[Taken]:
            self.items += len(items)
            return [Taken.OK] * len(items)

        return SimpleNamespace(put=put)

    def commit(self) -> None:
        raise DiskFullError("state.db: the disk took no more")


def test_what_is_not_durable_has_failed() -> None:
    async def run() -> None:
        crawls: Any = NoDisk()
        desk = Desk(crawls)
        taken = await PutStreams(desk)._put([("", GuestItem("http://a.example/")), None])
        assert crawls.items == 1
        assert taken == [Taken.FAIL, Taken.FAIL]
        with pytest.raises(NotKeptError) as failed:
            await desk.do(lambda _: 1)
        assert status_of(failed.value)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(run())


def test_one_job_that_fails_leaves_the_others_alone() -> None:
    def fail(_: Any) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        crawls: Any = SimpleNamespace(commit=lambda: None)
        desk = Desk(crawls)
        good, bad, other = await asyncio.gather(
            desk.do(lambda _: 1), desk.do(fail), desk.do(lambda _: 2), return_exceptions=True
        )
        assert (good, other) == (1, 2)
        assert isinstance(bad, ZeroDivisionError)
        assert status_of(bad)[0] is grpc.StatusCode.INTERNAL

    asyncio.run(run())


def test_crawl_ids_are_names_of_folders_whatever_they_are() -> None:
    names = {folder_name(one) for one in ("", ".", "..", "a/b", "a%2Fb", "Ä", "x" * 200, "\x00")}
    assert len(names) == 8
    assert not any("/" in name or name.startswith(".") or "\x00" in name for name in names)
    with pytest.raises(CrawlIdError):
        folder_name("ä" * 100)
