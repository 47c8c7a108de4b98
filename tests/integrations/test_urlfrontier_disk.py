"""While nothing can be written nothing is taken in or handed out, and it goes on when it can be written again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from bowerbird.crawl.guest_items import GuestItem, Taken
from bowerbird.integrations.urlfrontier import desk as desk_module
from bowerbird.integrations.urlfrontier.crawls import Crawls
from bowerbird.integrations.urlfrontier.desk import Desk, NotKeptError
from bowerbird.integrations.urlfrontier.messages import CLASSES
from bowerbird.integrations.urlfrontier.service import FrontierService, status_of
from bowerbird.model.errors import DiskFullError
from bowerbird.store.repository import Repository

TOO_MUCH = grpc.StatusCode.RESOURCE_EXHAUSTED


class Disk:
    """Is there room?"""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.refused = 0
        commit = Repository.commit

        def maybe(repository: Repository, **options: Any) -> int:
            if self.is_full:
                self.refused += 1
                raise DiskFullError("state.db: the disk took no more")
            return commit(repository, **options)

        monkeypatch.setattr(Repository, "commit", maybe)


Run = Callable[[Callable[[FrontierService, Disk], Awaitable[None]]], None]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Has something done with a service on a disk that fills up, and looks what is there afterwards."""
    monkeypatch.setattr(desk_module, "RETRY_EVERY_S", 0.0)

    def do(what: Callable[[FrontierService, Disk], Awaitable[None]]) -> None:
        crawls = Crawls(tmp_path / "service", policy="breadth-first+adaptive", delay_s=0.0)
        disk = Disk(monkeypatch)

        async def wait() -> None:
            await what(FrontierService(Desk(crawls), "here"), disk)

        try:
            asyncio.run(wait())
        finally:
            for frontier in crawls:
                frontier.abandon()

    return do


class Answer:
    def __init__(self) -> None:
        self.urls: list[str] = []

    async def write(self, message: bytes) -> None:
        self.urls.append(CLASSES["URLInfo"].FromString(message).url)


async def get(service: FrontierService, **fields: Any) -> list[str]:
    answer = Answer()
    await service.GetURLs(CLASSES["GetParams"](crawlID="", **fields), answer)
    return answer.urls


async def put(service: FrontierService, *urls: str) -> list[Taken]:
    return await service._put([("", GuestItem(url)) for url in urls])


async def size(service: FrontierService) -> int:
    return int((await service.GetStats(CLASSES["QueueWithinCrawlParams"]())).size)


def test_nothing_piles_up_and_all_goes_on_when_there_is_room(run: Run) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        assert await put(service, "http://a.example/") == [Taken.OK]
        disk.is_full = True
        assert await put(service, "http://b.example/") == [Taken.FAIL]
        for n in range(50):
            assert await put(service, *(f"http://c.example/{n}/{m}" for m in range(20))) == [Taken.FAIL] * 20
        assert await size(service) == 2  # looking goes on; what came after the first failure was not even begun
        with pytest.raises(NotKeptError) as refused:
            await service.SetDelay(CLASSES["QueueDelayParams"](key="d.example", delay_requestable=5))
        assert status_of(refused.value)[0] is TOO_MUCH
        assert disk.refused > 50  # each time it was tried
        disk.is_full = False
        assert await put(service, "http://b.example/", "http://c.example/0/0") == [Taken.SKIPPED, Taken.OK]
        assert sorted(await get(service)) == ["http://a.example/", "http://b.example/", "http://c.example/0/0"]

    run(what)


def test_nothing_is_handed_out_on_a_lease_that_is_not_durable(run: Run) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        urls = [f"http://{host}.example/{n}" for host in "ab" for n in range(3)]
        assert await put(service, *urls) == [Taken.OK] * 6
        (frontier,) = service.desk.crawls
        frontier.set_delay("a.example", 3600.0)
        assert await get(service, key="b.example", max_urls_per_queue=1) == ["http://b.example/0"]
        disk.is_full = True
        for _ in range(3):
            with pytest.raises(NotKeptError):
                await get(service, delay_requestable=604_800)
        assert len(frontier.leases) == 1
        disk.is_full = False
        again = await get(service, delay_requestable=600)  # nobody has to wait a week, nor an hour
        assert again == [url for url in urls if url != "http://b.example/0"]
        assert await get(service, delay_requestable=600) == []
        written = frontier.repository.connection.execute("SELECT count(*) FROM guest_leases").fetchone()
        assert written == (6,)

    run(what)


def test_upkeep_alone_finds_that_there_is_room_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "UPKEEP_EVERY_S", 0.001)

    async def what(service: FrontierService, disk: Disk) -> None:
        disk.is_full = True
        assert await put(service, "http://a.example/") == [Taken.FAIL]
        upkeep = asyncio.ensure_future(service.desk.keep_up())
        (frontier,) = service.desk.crawls
        while disk.refused < 5:
            await asyncio.sleep(0.001)
        assert frontier.pending
        disk.is_full = False
        while frontier.pending:
            await asyncio.sleep(0.001)
        assert not upkeep.done()
        upkeep.cancel()
        await asyncio.gather(upkeep, return_exceptions=True)

    run(what)


def test_what_a_caller_did_not_wait_for_is_in_line_again(run: Run) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        await put(service, "http://a.example/")
        gone = asyncio.ensure_future(get(service, delay_requestable=600))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert await get(service) == ["http://a.example/"]

    run(what)


def test_a_crawl_can_be_deleted_to_make_room(run: Run) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        await service._put([("other", GuestItem("http://a.example/"))])
        disk.is_full = True
        assert await put(service, "http://a.example/") == [Taken.FAIL]
        assert (await service.DeleteCrawl(CLASSES["DeleteCrawlMessage"](value="other"))).value == 1

    run(what)


def test_a_service_that_cannot_write_its_state_has_not_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space") as refused:
            await service.SetActive(CLASSES["Active"](state=False))
        assert status_of(refused.value)[0] is TOO_MUCH
        assert (await service.GetActive(CLASSES["Local"]())).state

    run(what)


def test_trouble_has_the_status_that_says_what_it_is() -> None:
    assert status_of(sqlite3.OperationalError("database or disk is full"))[0] is TOO_MUCH
    assert status_of(NotKeptError(sqlite3.OperationalError("disk I/O error")))[0] is TOO_MUCH
    locked = NotKeptError(sqlite3.OperationalError("database is locked"))
    assert status_of(locked)[0] is grpc.StatusCode.UNAVAILABLE


def test_one_crawl_that_cannot_be_written_leaves_the_others_alone(run: Run) -> None:
    async def what(service: FrontierService, disk: Disk) -> None:
        await service._put([("other", GuestItem("http://a.example/"))])
        first, second = service.desk.crawls

        def refuse() -> None:
            raise DiskFullError("full")

        broken: Any = SimpleNamespace(commit=refuse)
        second.put([GuestItem("http://b.example/")])
        service.desk.crawls._open = {"DEFAULT": broken, "other": second}
        with pytest.raises(DiskFullError):
            service.desk.crawls.commit()
        assert not second.pending
        service.desk.crawls._open = {"DEFAULT": first, "other": second}

    run(what)
