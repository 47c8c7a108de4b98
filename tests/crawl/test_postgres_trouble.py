"""Crawls in PostgreSQL when something fails that is not killed: the database is restarted, a coordinator hangs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.crawl.crawling import QUICK, command_line, run_command, wait_for
from tests.store.stored import new_schema

from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.fleet import Elected, Fleet
from bowerbird.crawl.remote_worker import archive_prefix
from bowerbird.crawl.report import Place, Report
from bowerbird.crawl.report_wire import pack_reports
from bowerbird.crawl.session import CrawlSession, create_crawl
from bowerbird.lab.fleet_trial import judge_manners, read_finished
from bowerbird.lab.postgres_server import MISSING, PostgresServer, find_programs
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.clock import FollowingClock
from bowerbird.model.errors import StoreLostError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store import exchange
from bowerbird.store.archive import ArchivePlace, ArchiveWriter
from bowerbird.store.archive_reader import read_exchange
from bowerbird.store.election import SharedClaim
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres import PostgresConnection
from bowerbird.store.pulse import GIVEN_UP

DELAY_S = 0.05
SPEC = WorldSpec(seed=5, frozen=True, hosts=16, pages=240, crawl_delay_share=0.0, host_skew=0.3)
SETTINGS = {
    **QUICK,
    "crawl": {**QUICK["crawl"], "max_errors": 20, "nice": 0},
}
#: a process whose pulse is quicker, so that a test need not wait for minutes
HURRIED = "from bowerbird.store import pulse; pulse.EVERY_S, pulse.SILENT_S, pulse.STUCK_S = 0.2, 4.0, {stuck_s};"
#: the commit after twenty fetches begins to copy rows in that never come
HANGS = """
import threading
from bowerbird.store.unwritten import Unwritten
write = Unwritten.write
def hang(self, connection, after, *more):
    write(self, connection, after, *more)
    if after.fetch > 20:
        connection.executemany("INSERT INTO patterns VALUES (?,?,?,?)", iter(threading.Event().wait, True))
Unwritten.write = hang
"""
MAIN = "from bowerbird.cli.main import main; main()"
Pages = set[str]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def make(root: Path, seeds: list[str], store: str, delay_s: float = DELAY_S) -> Path:
    create_crawl(root, seeds, {**SETTINGS, "politeness": {"delay_s": delay_s}}, store)
    return root


@pytest.fixture
def web() -> Iterator[WorldServer]:
    with WorldServer(World(SPEC)) as server:
        yield server


def pages_of(web: WorldServer) -> Pages:
    return {"http://{}{}".format(*place) for place in web.world.reachable(SPEC.start_s, sitemaps=True)}


def assert_all_is_fetched(root: Path, web: WorldServer) -> None:
    """Every page, and politely."""
    finished = read_finished(root, web.world)
    assert [url for url in pages_of(web) if finished[url][0] != UrlState.FETCHED] == []
    manners = judge_manners(web.log())
    assert manners.most_at_once == 1
    assert manners.shortest_between_s >= DELAY_S


@contextmanager
def started(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def hurried(*arguments: object, more: str = "", stuck_s: float = 900.0) -> list[str]:
    return [sys.executable, "-c", f"{HURRIED.format(stuck_s=stuck_s)}{more}\n{MAIN}", *map(str, arguments)]


class Looking:
    """Looks at the database whenever it is there."""

    def __init__(self, url: str) -> None:
        self.connection = PostgresConnection(url, write=False)

    def fetches(self) -> int:
        """That are durable; -1 while the database is not there."""
        try:
            return int(self.connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()[0])
        except StoreLostError:
            return -1

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def store(postgres: PostgresServer) -> str:
    return new_schema(postgres)


@pytest.fixture
def looking(store: str) -> Iterator[Looking]:
    with closing(Looking(store)) as looking:
        yield looking


@pytest.mark.skipif(find_programs() is None, reason=MISSING)
def test_all_come_back_after_restarts_of_the_database(web: WorldServer, tmp_path: Path) -> None:
    """One that ends sessions in good order, and one as after a crash, of a server set to lose what it committed."""
    with PostgresServer() as server:
        root, log = make(tmp_path / "crawl", web.world.seeds(), server.url(), 0.2), tmp_path / "log"
        with (
            closing(Looking(server.url())) as looking,
            started(command_line("work", root, "--workers", 2), log),
            started(command_line("crawl", root, "--workers", 0, "--once", "--quiet"), log) as crawl,
        ):
            assert wait_for(lambda: looking.fetches() > 40, 120)
            before = exchange.known_workers(looking.connection)
            server.stop()
            server.start()
            so_far = looking.fetches()
            assert wait_for(lambda: looking.fetches() > so_far + 20, 120), log.read_text()
            assert exchange.known_workers(looking.connection) == before  # none had to begin anew
            server.stop(at_once=True)
            time.sleep(1.5)
            server.start()
            assert crawl.wait(200) == 0, log.read_text()
        assert_all_is_fetched(root, web)
        said = log.read_text()
        assert said.count("Standing for election again") == 2
        assert "Trying again." in said
        assert "Traceback" not in said


def test_another_finishes_for_one_that_hangs_in_a_commit(
    store: str, looking: Looking, web: WorldServer, tmp_path: Path
) -> None:
    root, log = make(tmp_path / "crawl", web.world.seeds(), store), tmp_path / "log"
    with started(command_line("work", root, "--workers", 2), log):
        hanging = hurried("crawl", root, "--workers", 0, "--quiet", more=HANGS, stuck_s=10.0)
        with started(hanging, tmp_path / "hanging") as first:
            assert wait_for(lambda: looking.fetches() > 20, 120)
            with started(command_line("crawl", root, "--workers", 0, "--once", "--quiet"), log) as second:
                assert first.wait(60) == GIVEN_UP
                assert second.wait(200) == 0, log.read_text()
    assert "this process hangs" in (tmp_path / "hanging").read_text()
    assert_all_is_fetched(root, web)


def test_one_that_is_stopped_loses_its_office_and_gets_over_it(
    store: str, looking: Looking, web: WorldServer, tmp_path: Path
) -> None:
    root, log = make(tmp_path / "crawl", web.world.seeds(), store), tmp_path / "log"
    options = ("crawl", root, "--workers", 0, "--once", "--quiet")
    with (
        started(command_line("work", root, "--workers", 2), tmp_path / "work"),
        started(hurried(*options), tmp_path / "stopped") as first,
    ):
        assert wait_for(lambda: looking.fetches() > 20, 120)
        with started(hurried(*options), log) as second:
            assert wait_for(lambda: "standing by" in log.read_text(), 60)
            first.send_signal(signal.SIGSTOP)
            assert wait_for(lambda: "waiting for it" in log.read_text(), 60), log.read_text()
            assert f"process {first.pid} on" in log.read_text()
            first.send_signal(signal.SIGCONT)
            assert second.wait(200) == 0, log.read_text()
            assert first.wait(60) == 0, (tmp_path / "stopped").read_text()
    assert "Standing for election again" in (tmp_path / "stopped").read_text()
    assert_all_is_fetched(root, web)


def test_pages_are_counted_over_all_elections(store: str, looking: Looking, web: WorldServer, tmp_path: Path) -> None:
    root, log = make(tmp_path / "crawl", web.world.seeds(), store, 0.4), tmp_path / "log"
    with started(command_line("work", root, "--workers", 1), tmp_path / "work") as work:
        command = command_line("crawl", root, "--workers", 0, "--pages", 100)
        with started(command, log) as crawl:
            assert wait_for(lambda: looking.fetches() > 20, 120)
            looking.connection.execute("SELECT pg_terminate_backend(backend) FROM pulse")
            assert crawl.wait(120) == 0, log.read_text()
        work.send_signal(signal.SIGINT)
        assert work.wait(60) == 0
    lines = (tmp_path / "work").read_text().splitlines()
    assert lines[0] == f"1 worker for {root}: whoever crawls gives the orders. Ctrl-C ends it."
    handed_in = re.fullmatch(r"(\d+) fetches handed in, those of robots.txt with them\.", lines[-1])
    assert handed_in
    assert int(handed_in[1]) >= 100
    said = log.read_text()
    before = re.findall(r"^(\d+) fetches before this election; from here on it is counted anew$", said, re.MULTILINE)
    assert len(before) == 1
    assert 20 < int(before[0]) < 100
    assert said.count("Standing for election again") == 1
    assert run_command("status", root, "--json").json()["fetches"] == 100
    assert "100 fetches in" in said


def test_time_counts_while_another_coordinates(postgres: PostgresServer, tmp_path: Path) -> None:
    root = make(tmp_path / "crawl", ["http://127.0.0.1:9/"], new_schema(postgres))
    claim = SharedClaim.wait(CrawlFolder(root))
    ran = run_command("crawl", root, "--workers", 0, "--for", "1s", timeout_s=60)
    claim.release()
    assert (ran.code, ran.out) == (0, "Stopped while another process coordinated the crawl.\n")


def test_what_a_worker_archived_before_it_left_stays(postgres: PostgresServer, tmp_path: Path) -> None:
    """Its reports were not settled: nothing acknowledges its file yet, and nobody writes to it any more."""
    root = make(tmp_path / "crawl", ["http://127.0.0.1:9/"], new_schema(postgres))
    folder, url = CrawlFolder(root), "http://127.0.0.1:9/"
    claim = SharedClaim.wait(folder)
    connection = claim.connection
    worker = exchange.register(connection, "here", os.getpid())
    archive = ArchiveWriter(folder.archive, archive_prefix(worker), software="test", user_agent="test")
    now = connection.now()
    kept: list[ArchivePlace] = [
        archive.write_exchange(
            url=url,
            fetched_at=now,
            remote_ip="127.0.0.1",
            request_block=b"GET / HTTP/1.1\r\n\r\n",
            header_block=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
            raw_body=b"<title>kept</title>",
            metadata={},
        )
        for _ in range(2)  # of the second no report came: it may stay, and nobody looks at it
    ]
    archive.close()
    place = kept[0]
    lease = (1, worker, url, "", "", 0, 0, 0, int(FetchKind.NEW), now, now + 600, 1.0, 1.0, "{}", -1)
    exchange.write_leases(connection, [lease])
    told: dict[str, Any] = {"media": "html", "title": "kept", "text": "kept", "content_hash": 7}
    end = place.offset + place.length
    report = Report(
        1, url, Outcome.OK, now, status=200, place=Place(place.file, place.offset, place.length, end), **told
    )
    exchange.hand_in(connection, worker, pack_reports([report]))
    exchange.leave(connection, worker)
    assert exchange.give_up_dead(connection) == [worker]

    clock = FollowingClock(connection.now)
    with CrawlSession(root, clock=clock, elected=Elected(claim, Fleet(connection, clock))) as session:
        tally = session.run(RunLimits(once=True))
        assert tally.fetched == 1
        version = session.repository.version(0)
        assert version is not None
        assert session.repository.archive_ends() == {place.file: end}
    assert read_exchange(folder.archive, place, url=url).raw_body == b"<title>kept</title>"
    assert (folder.archive / place.file).stat().st_size > end
