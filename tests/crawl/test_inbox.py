"""URLs that people add and forget, while a crawl runs and while it does not."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, interrupt, make_crawl, running_crawl, wait_for
from tests.web.hostile_server import HostileServer, answer

from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState


@pytest.fixture
def site() -> Iterator[HostileServer]:
    """A small site by hand: a home page and three others, one of them with a word of its own."""
    with HostileServer() as server:
        server.routes["/robots.txt"] = answer(b"", "404 Not Found")
        server.routes["/"] = answer(b"<title>Home</title><p>home <a href=/a>a</a> <a href=/b>b</a>")
        server.routes["/a"] = answer(b"<title>A</title><p>an albatross over the water")
        server.routes["/b"] = answer(b"<title>B</title><p>a bittern in the reeds")
        server.routes["/unlinked"] = answer(b"<title>U</title><p>an umbrellabird in the trees")
        yield server


def asked(server: HostileServer, path: str) -> int:
    return sum(request.startswith(f"GET {path} ".encode()) for request in server.requests)


def test_forget_while_nothing_runs(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")], {"refresh": {"interval_s": 0.5, "min_interval_s": 0.5}})
    left = Left(root)
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert left.search("albatross") == [site.url("/a")]
    ran = command("forget", root, site.url("/a"))
    assert ran.code == 0
    assert ran.out == "1 forgotten.\n"
    assert left.search("albatross") == []
    left.check_agreement(tmp_path / "copy")
    before = asked(site, "/a"), asked(site, "/b")
    assert command("crawl", root, "--for", "3s", "--workers", 1).code == 0
    assert asked(site, "/a") == before[0]
    assert asked(site, "/b") > before[1]
    assert left.search("albatross") == []
    assert left.search("bittern") == [site.url("/b")]

    ran = command("add", root, site.url("/a"))
    assert ran.code == 0
    assert ran.out == "1 added.\n"
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert asked(site, "/a") > before[0]
    assert left.search("albatross") == [site.url("/a")]
    left.check_agreement(tmp_path / "copy2")


def test_forget_a_url_never_seen(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")])
    ran = command("forget", root, site.url("/b"), site.url("/"))
    assert ran.code == 0
    assert ran.err.splitlines() == [
        f"{site.url('/b')}: not known to this crawl so far. Noted all the same: it will never be fetched."
    ]
    assert ran.out == "2 forgotten.\n"
    assert command("forget", root, site.url("/b")).err == ""
    assert command("add", root, site.url("/")).code == 0
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert asked(site, "/a") == 1
    assert asked(site, "/b") == 0
    assert Left(root).states()[site.url("/b")] is UrlState.FORGOTTEN


def test_add_and_forget_while_the_crawl_runs(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")], {"refresh": {"interval_s": 0.5, "min_interval_s": 0.5}})
    left = Left(root)
    with running_crawl(root, "--workers", 1) as process:
        assert wait_for(lambda: left.search("albatross") == [site.url("/a")])
        ran = command("add", root, site.url("/unlinked"))
        assert ran.code == 0
        assert "running crawl" in ran.out
        assert wait_for(lambda: left.search("umbrellabird") == [site.url("/unlinked")], 8)

        ran = command("forget", root, site.url("/a"), site.url("/never-seen"))
        assert ran.code == 0
        assert "running crawl" in ran.out
        assert ran.err.startswith(f"{site.url('/never-seen')}: not known")
        assert len(ran.err.splitlines()) == 1
        assert wait_for(lambda: left.search("albatross") == [], 8)
        assert wait_for(lambda: left.states()[site.url("/a")] is UrlState.FORGOTTEN, 4)
        assert left.states()[site.url("/never-seen")] is UrlState.FORGOTTEN
        assert command("add", root, site.url("/brief")).code == 0
        assert command("forget", root, site.url("/brief")).code == 0
        time.sleep(0.3)
        before = asked(site, "/a"), asked(site, "/b")
        assert wait_for(lambda: asked(site, "/b") > before[1] + 1, 8)
        assert asked(site, "/a") == before[0]

        assert command("add", root, site.url("/a")).code == 0
        assert wait_for(lambda: left.search("albatross") == [site.url("/a")], 8)
        assert interrupt(process).code == 0
    assert left.one("SELECT count(*) FROM inbox") == 0
    left.check_agreement(tmp_path / "copy")


def test_forgotten_while_it_is_being_fetched(site: HostileServer, tmp_path: Path, command: Command) -> None:
    """The answer that still comes must not bring the page back; what it links to is not lost to other pages."""
    slow = answer(b"<title>S</title><p>a secretarybird on the plain <a href=/late>late</a>")
    site.routes["/after"] = answer(b"<p>after <a href=/late>late</a>")
    site.routes["/late"] = answer(b"<p>late")

    def answer_late(connection: socket.socket) -> None:
        site.pause(4.0)
        connection.sendall(slow)

    site.routes["/slow"] = answer_late
    root = make_crawl(tmp_path / "crawl", [site.url("/"), site.url("/slow")])
    left = Left(root)
    with running_crawl(root, "--workers", 1) as process:
        assert wait_for(lambda: asked(site, "/slow") == 1)
        assert command("forget", root, site.url("/slow")).code == 0
        assert wait_for(lambda: left.states()[site.url("/slow")] is UrlState.FORGOTTEN, 4)
        time.sleep(4.5)
        assert command("add", root, site.url("/after")).code == 0
        assert wait_for(lambda: asked(site, "/late") == 1, 8)
        assert interrupt(process).code == 0
    assert left.states()[site.url("/slow")] is UrlState.FORGOTTEN
    assert left.search("secretarybird") == []
    assert left.outcomes(site.url("/slow")) == [Outcome.FORGOTTEN]
    assert asked(site, "/slow") == 1
    left.check_agreement(tmp_path / "copy")


def test_a_new_host_widens_the_scope(site: HostileServer, tmp_path: Path, command: Command) -> None:
    spec = WorldSpec(seed=2, frozen=True, hosts=3, pages=30, mean_links=4, crawl_delay_share=0.0, trap_share=0.0)
    with WorldServer(World(spec)) as server:
        far = server.world.hosts
        root = make_crawl(tmp_path / "crawl", [site.url("/")], {"crawl": {"scope": "host"}})
        left = Left(root)
        assert command("crawl", root, "--once", "--workers", 1).code == 0
        assert server.log() == []
        with running_crawl(root, "--workers", 1) as process:
            assert wait_for(lambda: left.one("SELECT count(*) FROM runs") == 2)
            home = f"http://{far[0]}/"
            assert command("add", root, home).code == 0
            own = {path for host, path in server.world.reachable(spec.start_s, sitemaps=True) if host == far[0]}
            assert wait_for(lambda: own <= {access.path for access in server.log()}, 12)
            assert interrupt(process).code == 0
        assert {access.host for access in server.log()} == {far[0]}
        assert home in left.fetches(Outcome.OK)


def test_nothing_is_recovered_after_a_clean_end(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/"), site.url("/gone")])
    left = Left(root)
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    for request in (("forget", "/a"), ("add", "/a"), ("add", "/gone"), ("forget", "/"), ("forget", "/b")):
        assert command(request[0], root, site.url(request[1])).code == 0
        assert left.one("SELECT value FROM meta WHERE key = 'indexed_through'") == left.one(
            "SELECT max(id) FROM fetches"
        )
    ran = command("crawl", root, "--for", "1s", "--workers", 1)
    assert ran.code == 0
    assert "recovered" not in ran.err
    assert command("forget", root, site.url("/a")).code == 0
    assert left.indexed() == []  # not a lost index: there is nothing to search
    assert "recovered" not in command("crawl", root, "--for", "1s", "--workers", 1).err
    left.check_agreement(tmp_path / "copy")


def test_what_a_crash_kept_from_the_index_is_not_hidden(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")])
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    with closing(sqlite3.connect(root / "state.db")) as database, database:
        database.execute("UPDATE meta SET value = 1 WHERE key = 'indexed_through'")
    assert command("forget", root, site.url("/a")).code == 0
    assert "brought up to date" in command("crawl", root, "--for", "1s", "--workers", 1).err
    Left(root).check_agreement(tmp_path / "copy")


def test_a_second_add_changes_nothing(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")])
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert command("add", root, site.url("/a"), site.url("/a#part")).code == 0
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert asked(site, "/a") == 1


def test_forget_then_add_at_once_leaves_it_in_line(site: HostileServer, tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", [site.url("/")])
    left = Left(root)
    with running_crawl(root, "--workers", 1) as process:
        assert wait_for(lambda: left.search("albatross") == [site.url("/a")])
        assert command("forget", root, site.url("/a")).code == 0
        assert command("add", root, site.url("/a")).code == 0
        assert wait_for(lambda: asked(site, "/a") == 2, 4)
        assert wait_for(lambda: left.search("albatross") == [site.url("/a")], 8)
        assert interrupt(process).code == 0
    left.check_agreement(tmp_path / "copy")


def test_a_page_that_was_gone_and_is_back_is_found_again(site: HostileServer, tmp_path: Path, command: Command) -> None:
    refresh = {"interval_s": 0.3, "min_interval_s": 0.3, "gone_interval_s": 0.5}
    root = make_crawl(tmp_path / "crawl", [site.url("/")], {"refresh": refresh})
    left = Left(root)
    page = site.routes["/a"]
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert left.search("albatross") == [site.url("/a")]
    del site.routes["/a"]
    assert command("crawl", root, "--for", "2s", "--workers", 1).code == 0
    assert left.states()[site.url("/a")] is UrlState.GONE
    assert left.search("albatross") == []
    site.routes["/a"] = page
    assert command("crawl", root, "--for", "3s", "--workers", 1).code == 0
    assert left.search("albatross") == [site.url("/a")]
    left.check_agreement(tmp_path / "copy")


@pytest.mark.parametrize("header", ["X-Robots-Tag: noindex", "X-Other: x"])
def test_noindex_comes_and_goes(site: HostileServer, tmp_path: Path, command: Command, header: str) -> None:
    """A page with unchanged text enters and leaves the index as its directive says."""
    body = b"<title>A</title><p>an albatross over the water"
    hidden = answer(body, headers=("Content-Type: text/html", "X-Robots-Tag: noindex"))
    shown = answer(body)
    first, second = (hidden, shown) if "noindex" in header else (shown, hidden)
    root = make_crawl(tmp_path / "crawl", [site.url("/")], {"refresh": {"interval_s": 0.3, "min_interval_s": 0.3}})
    left = Left(root)
    site.routes["/a"] = first
    assert command("crawl", root, "--once", "--workers", 1).code == 0
    assert (left.search("albatross") == []) == (first is hidden)
    site.routes["/a"] = second
    assert command("crawl", root, "--for", "5s", "--workers", 1).code == 0
    assert (left.search("albatross") == []) == (second is hidden)
    left.check_agreement(tmp_path / "copy")
