"""Crawls in PostgreSQL: the same as in a folder, by workers of their own, and whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.crawl.crawling import QUICK, Left, interrupt, is_one_line, run_command, running_crawl, wait_for
from tests.store.stored import new_schema

from bowerbird.crawl.session import apply_requests, create_crawl
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.fleet_trial import judge_manners, read_finished, run_trial
from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.url_state import UrlState
from bowerbird.store import exchange
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres import PostgresConnection
from bowerbird.store.pulse import GIVEN_UP
from bowerbird.store.repository import Repository
from bowerbird.store.schema import read_now

DELAY_S = 0.05
SPEC = WorldSpec(seed=3, frozen=True, hosts=24, pages=300, crawl_delay_share=0.0, host_skew=0.3, redirect_share=0.04)
SETTINGS = {
    **QUICK,
    "crawl": {**QUICK["crawl"], "max_errors": 20, "nice": 0},
    "politeness": {"delay_s": DELAY_S},
}
Story = dict[str, Any]


def make(root: Path, seeds: list[str], store: str | None = None) -> Path:
    create_crawl(root, seeds, {name: dict(section) for name, section in SETTINGS.items()}, store)
    return root


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Story:
    """A world crawled in PostgreSQL while processes are killed, and then in a folder."""
    base = tmp_path_factory.mktemp("postgres")
    with WorldServer(World(SPEC)) as server:
        seeds = server.world.seeds()
        root = make(base / "shared", seeds, new_schema(postgres))
        trial = run_trial(root, workers=3, kills=5, kill_every_s=(0.5, 1.5), fetches_between=10, limit_s=280.0)
        manners = judge_manners(server.log())
        assert run_command("crawl", make(base / "embedded", seeds), "--once", timeout_s=200).code == 0
        pages = server.world.reachable(SPEC.start_s, sitemaps=True)
    return {
        "root": root,
        "trial": trial,
        "manners": manners,
        "embedded": read_finished(base / "embedded", server.world),
        "shared": read_finished(root, server.world),
        "pages": {"http://{}{}".format(*place) for place in pages},
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestKilledAtRandom:
    def test_each_role_was_killed_and_another_coordinator_took_over(self, story: Story) -> None:
        trial = story["trial"]
        assert set(trial.kills) == {"coordinator", "worker", "supervisor", "candidate"}
        assert trial.kills.total() == 5
        assert max(trial.take_overs_s, default=0.0) < 10.0  # of those for which one stood by at that moment

    def test_every_page_is_fetched(self, story: Story) -> None:
        assert len(story["pages"]) > 200
        assert [url for url in story["pages"] if story["shared"][url][0] != UrlState.FETCHED] == []

    def test_the_end_is_that_of_a_crawl_in_a_folder(self, story: Story) -> None:
        shared, embedded = story["shared"], story["embedded"]
        assert {url: shared.get(url) for url in embedded} == embedded
        assert set(shared) == set(embedded)

    def test_no_host_was_asked_by_two_or_too_soon(self, story: Story) -> None:
        manners = story["manners"]
        assert manners.most_at_once == 1
        assert manners.shortest_between_s >= DELAY_S

    def test_what_was_fetched_is_found(self, story: Story) -> None:
        root = story["root"]
        repository = Repository(CrawlFolder(root), write=False)
        urls = repository.urls(range(len(repository.table)))
        left = repository.connection.execute("SELECT (SELECT count(*) FROM leases), (SELECT count(*) FROM reports)")
        assert left.fetchone() == (0, 0)
        repository.close()
        assert story["pages"] <= {urls[row] for row in Left(root).indexed()}
        found = run_command("search", root, "the")
        assert found.code == 0
        assert "pages in" in found.out


@pytest.fixture
def shared(postgres: PostgresServer, tmp_path: Path) -> Path:
    """A crawl with nothing to fetch."""
    return make(tmp_path / "crawl", ["http://127.0.0.1:9/"], new_schema(postgres))


@pytest.mark.slow
def test_a_crawl_by_its_url_from_beginning_to_end(postgres: PostgresServer, tmp_path: Path) -> None:
    """As a person would, command by command."""
    url, root = new_schema(postgres), tmp_path / "crawl"
    with WorldServer(World(SPEC)) as server:
        seed = server.world.seeds()[0]
        options = ("--seed", seed, "--allow-addresses", "loopback", "--delay", "0.05", "--scope", "anywhere")
        made = run_command("init", root, "--store", url, *options)
        assert made.code == 0, made.err
        assert not CrawlFolder(root).database.exists()
        with running_crawl(Path(root), "--workers", 2, "--policy", "breadth-first", "--quiet") as crawl:
            assert wait_for(lambda: run_command("status", url, "--json").json()["fetched"] > 10, 90)
            assert run_command("status", root, "--json").json()["running"] is True
            assert run_command("forget", url, seed).out.startswith("1 forgotten: the running crawl")
            assert wait_for(lambda: "forgotten" in run_command("explain", url, seed).out, 60)
            candidate = subprocess.Popen(
                [sys.executable, "-m", "bowerbird", "crawl", url, "--workers", "0"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert candidate.stderr is not None
            assert "standing by" in candidate.stderr.readline()
            ended = interrupt(candidate, 60)
            assert (ended.code, ended.out) == (0, "Stopped while another process coordinated the crawl.\n")
            ended = interrupt(crawl, 60)
            assert ended.code == 0, ended.err
            assert "fetches in" in ended.out
    for arguments in (("next", url), ("search", url, "the"), ("explain", url, seed), ("add", url, seed)):
        ran = run_command(*arguments)
        assert ran.code == 0, ran.err
        assert ran.out


def test_who_looks_goes_by_the_database_s_clock(
    shared: Path, connection: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's is a day late."""
    late = time.time() - 86400.0
    monkeypatch.setattr(time, "time", lambda: late)
    with closing(CrawlView(shared)) as view:
        assert view.now == pytest.approx(connection.now(), abs=60)
        assert view.next(1)[0]["url"] == "http://127.0.0.1:9/"  # it was found today, and is in line
    assert read_now(CrawlFolder(shared)) == pytest.approx(connection.now(), abs=60)
    apply_requests(shared, "add", ["http://127.0.0.1:9/more"])
    ((found,),) = connection.execute("SELECT first_seen FROM urls WHERE url LIKE '%more'").fetchall()
    assert found == pytest.approx(connection.now(), abs=60)


@pytest.fixture
def worker(shared: Path) -> Iterator[subprocess.Popen[bytes]]:
    reading, counting = os.pipe()
    command = [sys.executable, "-m", "bowerbird.crawl.remote_worker", str(shared), str(os.getpid()), str(counting)]
    worker = subprocess.Popen(command, pass_fds=(counting,))
    yield worker
    worker.kill()
    worker.wait()
    os.close(reading)
    os.close(counting)


@pytest.fixture
def connection(shared: Path) -> Iterator[PostgresConnection]:
    url = CrawlFolder(shared).store_url
    assert url is not None
    connection = PostgresConnection(url, write=True)
    yield connection
    connection.close()


@pytest.mark.slow
def test_a_worker_that_was_stopped_for_too_long_ends_itself(
    worker: subprocess.Popen[bytes], connection: PostgresConnection
) -> None:
    """Others may have its hosts by then."""
    assert wait_for(lambda: exchange.read_workers(connection) != [], 60)
    os.kill(worker.pid, signal.SIGSTOP)
    dead: list[int] = []

    def is_given_up() -> bool:
        dead.extend(exchange.give_up_dead(connection))
        return bool(dead)

    began = time.monotonic()
    assert wait_for(is_given_up, 30, 0.2)
    assert time.monotonic() - began < exchange.LIVES_S + exchange.MARGIN_S + 5
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.wait(10) == GIVEN_UP


def test_a_worker_that_is_told_to_stop_says_goodbye(
    worker: subprocess.Popen[bytes], connection: PostgresConnection
) -> None:
    assert wait_for(lambda: exchange.read_workers(connection) != [], 60)
    worker.terminate()
    assert worker.wait(30) == 0
    assert len(exchange.give_up_dead(connection)) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init", "DIR", "--store", "mysql://x/y", "--seed", "http://a.example/"), "not the URL of a PostgreSQL"),
        (("init", "DIR", "--store", "postgresql://127.0.0.1:9/x", "--seed", "http://a.example/"), "Is it running?"),
        (("status", "postgresql://127.0.0.1:9/x"), "Is it running?"),
        (("work", "EMBEDDED"), "has its own workers"),
        (("crawl", "EMBEDDED", "--workers", "0"), "nothing would be fetched"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    embedded = make(tmp_path / "embedded", ["http://127.0.0.1:9/"])
    places = {"DIR": str(tmp_path / "above" / "new"), "EMBEDDED": str(embedded)}
    ran = run_command(*(places.get(one, one) for one in arguments))
    assert ran.code == 2
    assert said in ran.err
    assert is_one_line(ran.err)
    assert [path.name for path in tmp_path.iterdir()] == ["embedded"]  # nothing is left of what was refused


def test_a_folder_that_is_not_on_this_machine_is_named(shared: Path) -> None:
    url = CrawlFolder(shared).store_url
    elsewhere = shared.rename(shared.parent / "elsewhere")
    ran = run_command("status", url)
    assert ran.code == 2
    assert str(shared) in ran.err
    assert "is not on this machine" in ran.err
    assert run_command("status", elsewhere).code == 0
    probe = run_command("quality", elsewhere, "--probe", "1")
    assert probe.code == 2
    assert "cannot be done yet" in probe.err
