"""A folder that another program fetches for: people are told what that one is given, and our own crawl keeps out."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.crawl.crawling import run_command

from bowerbird.crawl.guest_crawl import make_guest_folder
from bowerbird.crawl.guest_frontier import GuestFrontier
from bowerbird.crawl.guest_items import GuestItem, read_hints
from bowerbird.crawl.guest_view import LineView
from bowerbird.crawl.session import CrawlSession, apply_requests
from bowerbird.crawl.view import CrawlView
from bowerbird.model.clock import ManualClock
from bowerbird.model.errors import FolderError

PLAIN = "breadth-first+adaptive"
Open = Callable[..., GuestFrontier]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_guest_folder(tmp_path / "crawl", {"crawl": {"policy": PLAIN}})
    return tmp_path / "crawl"


@pytest.fixture
def frontier(root: Path) -> Iterator[GuestFrontier]:
    """The frontier by the clock on the wall: who looks at it goes by that."""
    one = GuestFrontier(root, policy=PLAIN, delay_s=0.0)
    yield one
    one.abandon()


def put(frontier: GuestFrontier, *urls: str, **metadata: str) -> None:
    hints = read_hints({name: [value] for name, value in metadata.items()})
    frontier.put([GuestItem(url, hints=hints) for url in urls])
    frontier.commit()


def look(root: Path, count: int = 100) -> list[tuple[str, str]]:
    view = CrawlView(root)
    try:
        first = [(row["url"], row["when"]) for row in view.next(count)]
        assert [(row["url"], row["when"]) for row in view.next(count)] == first  # a look changes nothing
        return first
    finally:
        view.close()


def why(root: Path, url: str) -> tuple[str, str, str | None]:
    view = CrawlView(root)
    try:
        story = view.explain(url)
    finally:
        view.close()
    assert story["guest"]["text"] == story["expected"]["why"]
    return story["guest"]["state"], story["guest"]["text"], story["expected"]["at"]


def test_next_is_what_would_be_handed_out(root: Path, frontier: GuestFrontier) -> None:
    now = int(time.time())
    for depth, host in enumerate(("open", "leased", "blocked", "limited", "slow")):
        put(frontier, *(f"http://{host}.example/{n}" for n in range(3)), depth=str(depth))
    frontier.put([GuestItem("http://open.example/done", known=True)])
    frontier.put([GuestItem("http://open.example/later", known=True, refetch=now + 10_000)])
    frontier.put([GuestItem("http://open.example/again", known=True, refetch=now - 1)])
    frontier.block("blocked.example", now + 10_000.0)
    frontier.set_delay("slow.example", 10_000.0)
    frontier.take(key="slow.example", per_line=1, lease_s=1000.0)
    frontier.take(key="leased.example", per_line=2, lease_s=1000.0)
    frontier.limit("limited.example", 2)
    frontier.commit()
    told = look(root)
    given = [url for url, when in told if when == "now"]
    assert [url.split("/")[2] for url in given[:4]] == ["open.example"] * 4
    assert {url for url, when in told if when != "now"} == {
        "http://open.example/later",
        "http://slow.example/1",
        "http://slow.example/2",
    }
    assert look(root, 3) == told[:3]
    rows = frontier.take().rows
    frontier.commit()
    assert [one.url for one in frontier.places.standings(rows.tolist())] == given


def test_explain_says_why_not(root: Path, frontier: GuestFrontier) -> None:
    now = int(time.time())
    put(
        frontier, *(f"http://{host}.example/{n}" for host in ("open", "leased", "blocked", "limited") for n in range(2))
    )
    frontier.put([GuestItem("http://open.example/done", known=True)])
    frontier.put([GuestItem("http://open.example/later", known=True, refetch=now + 10_000)])
    frontier.block("blocked.example", now + 10_000.0)
    frontier.take(key="leased.example", per_line=1, lease_s=1000.0)
    frontier.limit("limited.example", 1)
    frontier.put([GuestItem("http://limited.example/0", known=True, refetch=now + 5)])
    frontier.set_delay("leased.example", 10_000.0)
    frontier.commit()
    assert why(root, "http://open.example/done")[:2] == ("done", "done for good by its owner")
    assert why(root, "http://open.example/done")[2] is None
    state, text, at = why(root, "http://leased.example/0")
    assert (state, text) == ("leased", f"with a fetcher until {at}")
    state, text, at = why(root, "http://blocked.example/1")
    assert (state, text) == ("blocked", f"its queue is blocked until {at}")
    assert why(root, "http://limited.example/1")[:2] == ("limit", "its queue has reached its limit of 1")
    state, text, at = why(root, "http://open.example/later")
    assert (state, text) == ("date", f"its owner wants it again from {at} on")
    state, text, at = why(root, "http://leased.example/1")
    assert (state, text) == ("delay", f"its queue gives again at {at}")
    assert why(root, "http://open.example/1")[0] == "ready"
    frontier.remove_line("open.example")
    frontier.commit()
    assert why(root, "http://open.example/1")[0] == "removed"
    frontier.note_active(False)
    assert why(root, "http://blocked.example/1")[0] == "inactive"
    assert look(root) == []


def test_the_commands_say_it_in_words(root: Path, frontier: GuestFrontier) -> None:
    put(frontier, "http://a.example/1", "http://a.example/2")
    frontier.put([GuestItem("http://a.example/1", known=True)])
    frontier.limit("a.example", 5)
    frontier.commit()
    told = run_command("explain", root, "http://a.example/1")
    assert "owner     done for good by its owner" in told.out
    assert "expected  never: done for good by its owner" in told.out
    assert "robots" not in told.out
    told = run_command("explain", root, "http://a.example/2")
    assert "queue a.example: delay 0 s, 0 with fetchers, 1 fetched of a limit of 5" in told.out
    assert "in line: it goes when a fetcher asks, 0 before it in its queue" in told.out
    assert "http://a.example/2" in run_command("next", root).out
    frontier.note_active(False)
    silent = run_command("next", root)
    assert "set inactive" in silent.err
    assert "Nothing bids" in silent.out


def test_one_who_looks_may_be_late(root: Path, frontier: GuestFrontier) -> None:
    """URLs, lines and leases that were committed after the columns were loaded do no harm."""
    put(frontier, "http://a.example/")
    view = CrawlView(root)
    try:
        assert view.repository.table.columns.count == 1
        put(frontier, *(f"http://b.example/{n}" for n in range(5)))
        frontier.take(lease_s=1000.0)
        frontier.commit()
        assert isinstance(view.guest, LineView)
        assert view.next(10) == []
        assert view.explain("http://a.example/")["guest"]["state"] == "leased"
    finally:
        view.close()


def test_our_own_crawl_keeps_out_until_it_takes_over(root: Path, frontier: GuestFrontier) -> None:
    put(frontier, "http://127.0.0.1:9/")
    frontier.close()
    with pytest.raises(FolderError, match="the frontier service fetches for this crawl"):
        CrawlSession(root)
    refused = run_command("crawl", root, "--for", "1s")
    assert refused.code == 2
    assert "--take-over" in refused.err
    assert "Traceback" not in refused.err
    taken = run_command("crawl", root, "--for", "1s", "--take-over", timeout_s=120.0)
    assert taken.code == 0, taken.err
    with sqlite3.connect(root / "state.db") as state:
        names = {name for (name,) in state.execute("SELECT name FROM sqlite_master")}
        assert state.execute("SELECT url FROM urls").fetchall() == [("http://127.0.0.1:9/",)]
        assert state.execute("SELECT key FROM meta WHERE key LIKE 'guest%'").fetchall() == []
    assert not {name for name in names if name.startswith("guest_")}
    assert CrawlView(root).guest is None
    CrawlSession(root).close()


def test_nobody_takes_over_while_the_other_runs(root: Path, frontier: GuestFrontier) -> None:
    put(frontier, "http://a.example/")
    refused = run_command("crawl", root, "--for", "1s", "--take-over")
    assert refused.code == 2
    assert "another process" in refused.err
    assert look(root) == [("http://a.example/", "now")]


def test_what_people_add_and_forget_waits_for_whoever_fetches(root: Path) -> None:
    clock = ManualClock(time.time())

    def start() -> GuestFrontier:
        return GuestFrontier(root, policy=PLAIN, clock=clock, delay_s=0.0)

    one = start()
    put(one, "http://a.example/forgotten", "http://a.example/kept")
    one.put([GuestItem("http://a.example/done", known=True)])
    one.close()
    urls = ("http://a.example/done", "http://a.example/new")
    assert not apply_requests(root, "add", urls)
    said = run_command("forget", root, "http://a.example/forgotten")
    assert "the frontier service takes that up when it next runs" in said.out
    two = start()
    two.crawl._upkept_at = 0.0
    two.keep_up()
    rows: Any = two.take().rows.tolist()
    found = {one.url for one in two.places.standings(rows)}
    assert found == {"http://a.example/kept", "http://a.example/done", "http://a.example/new"}
    two.close()
