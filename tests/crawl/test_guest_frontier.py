"""The frontier for other people's fetchers: order by bids, what metadata teaches, and a model it must agree with."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.crawl.crawling import run_command

from bowerbird.crawl.guest_crawl import make_guest_folder
from bowerbird.crawl.guest_frontier import GuestFrontier
from bowerbird.crawl.guest_items import GuestItem, Hints, Taken, read_hints
from bowerbird.model.clock import ManualClock
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.repository import Repository

START_S = 1.7e9
PLAIN = "breadth-first+adaptive"
Open = Callable[..., GuestFrontier]


@pytest.fixture
def open_frontier(tmp_path: Path) -> Iterator[Open]:
    """Opens the one folder of a test, again and again; what is open at the end is closed."""
    opened: list[GuestFrontier] = []

    def make(clock: ManualClock | None = None, policy: str = PLAIN, delay_s: float = 0.0) -> GuestFrontier:
        make_guest_folder(tmp_path / "crawl")
        opened.append(
            GuestFrontier(tmp_path / "crawl", policy=policy, clock=clock or ManualClock(START_S), delay_s=delay_s)
        )
        return opened[-1]

    yield make
    if opened:
        opened[-1].abandon()


def urls_of(frontier: GuestFrontier, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[str]:
    frontier.commit()
    return [standing.url for standing in frontier.places.standings(rows.tolist())]


def take(frontier: GuestFrontier, **wanted: object) -> list[str]:
    return urls_of(frontier, frontier.take(**wanted).rows)  # type: ignore[arg-type]


def found(url: str, **metadata: str) -> GuestItem:
    return GuestItem(url, hints=read_hints({name: [value] for name, value in metadata.items()}))


def test_urls_are_handed_out_by_their_bids(open_frontier: Open) -> None:
    frontier = open_frontier(policy="in-degree")
    frontier.put([found("http://a.example/")])
    assert take(frontier) == ["http://a.example/"]
    frontier.put([GuestItem("http://a.example/", known=True, refetch=int(START_S) + 10**6)])
    frontier.put([found(f"http://b{n}.example/", referrer="http://a.example/") for n in range(4)])
    for n in range(4):
        frontier.put([found(f"http://c{n}.example/")])
        frontier.put([GuestItem(f"http://c{n}.example/", known=True)])
        frontier.put([found("http://b2.example/", referrer=f"http://c{n}.example/")])
    frontier.crawl.market.keep_up(START_S + 10, hungry=True)  # bids of linked pages are made anew
    frontier.clock.advance(10)  # type: ignore[attr-defined]
    assert take(frontier, most=1) == ["http://b2.example/"]  # the most linked one
    assert frontier.repository.table.columns["in_degree"].max() == 5


def test_lines_come_by_their_best_bids_and_are_bounded(open_frontier: Open) -> None:
    frontier = open_frontier()
    for depth, host in enumerate("abc"):
        frontier.put([found(f"http://{host}.example/{n}", depth=str(depth)) for n in range(5)])
    rows = frontier.take(lines=2, per_line=3).rows
    assert urls_of(frontier, rows) == [f"http://{host}.example/{n}" for host in "ab" for n in range(3)]
    assert take(frontier, per_line=3) == [f"http://c.example/{n}" for n in range(3)]
    assert take(frontier, per_line=4, most=2) == ["http://a.example/3", "http://b.example/3"]


def test_a_delay_counts_from_the_last_time_that_a_line_gave(open_frontier: Open) -> None:
    clock = ManualClock(START_S)
    frontier = open_frontier(clock, delay_s=5.0)
    frontier.put([found(f"http://a.example/{n}") for n in range(3)])
    assert take(frontier, per_line=1) == ["http://a.example/0"]
    assert take(frontier, per_line=2) == []
    clock.advance(5)
    assert take(frontier, per_line=2) == ["http://a.example/1"]
    frontier.close()
    again = open_frontier(clock, delay_s=5.0)
    assert take(again) == []
    clock.advance(5)
    assert take(again) == ["http://a.example/2"]


def test_a_clock_that_is_set_back_makes_no_lease_longer(open_frontier: Open) -> None:
    clock = ManualClock(START_S)
    frontier = open_frontier(clock)
    frontier.put([found("http://a.example/")])
    assert take(frontier, lease_s=60.0) == ["http://a.example/"]
    clock.advance(10)
    assert take(frontier) == []
    clock.advance(-3600.0)
    assert take(frontier) == []
    clock.advance(61)
    assert take(frontier) == ["http://a.example/"]


def test_a_date_is_waited_for_whatever_the_bid(open_frontier: Open) -> None:
    clock = ManualClock(START_S)
    frontier = open_frontier(clock)
    frontier.put([GuestItem("http://a.example/", known=True, refetch=int(START_S) + 100)])
    assert take(frontier) == []
    clock.advance(101)
    assert take(frontier) == ["http://a.example/"]  # long before our own interval of a week


def test_changes_and_digests_become_a_history(open_frontier: Open) -> None:
    clock = ManualClock(START_S)
    frontier = open_frontier(clock)

    def visit(**metadata: str) -> tuple[int, float]:
        clock.advance(3600)
        hints = read_hints({name: [value] for name, value in metadata.items()})
        frontier.put([GuestItem("http://a.example/", known=True, refetch=int(clock.now()) + 1, hints=hints)])
        frontier.commit()
        columns = frontier.repository.table.columns
        return int(columns["changes"][0]), float(columns["interval_s"][0])

    _, first_s = visit(digest="one")
    assert visit(digest="one") == (0, pytest.approx(first_s * 1.4))
    assert visit(digest="two") == (1, pytest.approx(first_s * 1.4 * 0.8))
    assert visit(changed="true")[0] == 2
    assert visit(changed="false")[0] == 2
    changes, interval_s = visit()  # nobody says whether it changed: nothing is learnt
    assert (changes, interval_s) == (2, visit()[1])
    assert visit(status="304")[0] == 2


def test_statuses_become_outcomes(open_frontier: Open) -> None:
    frontier = open_frontier()
    states = {"200": UrlState.FETCHED, "301": UrlState.REDIRECT, "404": UrlState.GONE, "403": UrlState.FAILED}
    for status in states:
        hints = read_hints({"fetch.statusCode": [status]})
        frontier.put([GuestItem(f"http://a.example/{status}", known=True, refetch=1, hints=hints)])
    transient = read_hints({"status": ["503"]})
    frontier.put([GuestItem("http://a.example/503", known=True, refetch=1, hints=transient)])
    frontier.put([GuestItem("http://a.example/503", known=True, refetch=0, hints=transient)])
    columns = frontier.repository.table.columns
    for row, state in enumerate(states.values()):
        assert columns["state"][row] == state
    assert columns["state"][4] == UrlState.FAILED  # its owner gave it up
    frontier.commit()
    journal = frontier.repository.connection.execute("SELECT outcome FROM fetches ORDER BY id").fetchall()
    assert journal[-1] == journal[-2] == (int(Outcome.THROTTLED),)


def test_the_journal_has_the_decision_that_a_lease_was(open_frontier: Open) -> None:
    frontier = open_frontier()
    frontier.put([found("http://a.example/", depth="3")])
    take(frontier)
    frontier.put([GuestItem("http://a.example/", known=True)])
    frontier.commit()
    decided_at, bid, terms, fetched_at = frontier.repository.connection.execute(
        "SELECT decided_at, bid, terms, fetched_at FROM fetches"
    ).fetchone()
    assert (decided_at, fetched_at, bid) == (START_S, START_S, pytest.approx(1.25))
    assert '"breadth-first"' in terms


def test_links_anchors_kinds_and_clicks_are_learnt(open_frontier: Open, tmp_path: Path) -> None:
    frontier = open_frontier()
    frontier.put([found("http://a.example/")])
    frontier.put([found("http://a.example/x", referrer="http://a.example/", anchor=" An\n anchor ")])
    frontier.put([found("http://a.example/y", referrer="http://a.example/", isSitemap="true", clicks="4")])
    assert frontier.put([found("http://a.example/x", referrer="http://a.example/y", clicks="2")]) == [Taken.SKIPPED]
    frontier.close()
    repository = Repository(frontier.crawl.folder, write=False)
    links = repository.links(0)
    assert links is not None
    assert sorted(links.current().tolist()) == [1, 2]
    assert repository.anchors(1) == ["An anchor"]
    assert repository.table.columns["kind"].tolist() == [UrlKind.PAGE, UrlKind.PAGE, UrlKind.SITEMAP]
    assert repository.table.columns["depth"].tolist() == [0, 1, 1]
    repository.close()
    clicks = sqlite3.connect(tmp_path / "crawl" / "demand.db").execute("SELECT url, clicks FROM pages ORDER BY url")
    assert clicks.fetchall() == [("http://a.example/x", 2), ("http://a.example/y", 4)]
    again = open_frontier()
    assert again.repository.table.columns["in_degree"].tolist() == [0, 2, 1]


def test_hints_of_any_text_are_read_or_passed_over() -> None:
    rng = random.Random(3)
    names = ["referrer", "anchor", "depth", "kind", "clicks", "changed", "digest", "status", "isFeed", "url.path"]
    for _ in range(300):
        metadata = {
            name: ["".join(map(chr, rng.choices(range(1, 0x300), k=rng.randrange(8)))) for _ in range(rng.randrange(3))]
            for name in rng.sample(names, 4)
        }
        hints = read_hints(metadata)
        assert -1 <= hints.depth <= 254
        assert hints.clicks >= 0
        assert hints.status == 0 or 100 <= hints.status < 600
    assert read_hints({"url.path": ["http://a.example/", "http://a.example/b"]}) == Hints(referrer="http://a.example/b")


def test_a_study_of_the_folder_puts_new_pages_in_order(open_frontier: Open, tmp_path: Path) -> None:
    clock = ManualClock(time.time())
    frontier = open_frontier(clock, policy="rw-eg")
    starts = [f"http://h{n}.example/" for n in range(25)]
    frontier.put([found(url) for url in starts])
    take(frontier)
    frontier.put([GuestItem(url, known=True, hints=read_hints({"clicks": ["9"]})) for url in starts[:3]])
    frontier.put([GuestItem(url, known=True) for url in starts[3:]])
    frontier.put([found(f"http://new.example/{n}", referrer=starts[n + 10]) for n in range(8)])
    liked = [found("http://new.example/liked", referrer=url, anchor="liked") for url in starts[:3]]
    frontier.put(liked)  # the pages that people go to link to it
    frontier.commit()
    studied = run_command("study", tmp_path / "crawl", "--policy", "rw-eg", timeout_s=120.0)
    assert studied.code == 0, studied.err
    frontier.crawl.studies.take_up()
    frontier.crawl.market.open(clock.now())
    assert take(frontier, most=1) == ["http://new.example/liked"]


IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # it opens folders hundreds of times
PAGES = [f"http://h{host}.example/{page}" for host in range(3) for page in range(4)]


class FrontierAgainstModel(RuleBasedStateMachine):
    """Random puts, takes, answers, pauses and restarts; a dict of what must hold beside the frontier."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=IN_MEMORY)
        self.root = Path(self.folder.name) / "crawl"
        make_guest_folder(self.root)
        self.clock = ManualClock(START_S)
        self.model: dict[str, tuple[str, float]] = {}  # URL -> state, and until when it is not handed out
        self.frontier = GuestFrontier(self.root, policy=PLAIN, clock=self.clock, delay_s=0.0)

    @rule(urls=st.lists(st.sampled_from(PAGES), max_size=5))
    def find(self, urls: list[str]) -> None:
        taken = self.frontier.put([GuestItem(url) for url in urls])
        self.frontier.commit()
        for url, what in zip(urls, taken, strict=True):
            assert what == (Taken.SKIPPED if url in self.model else Taken.OK)
            self.model.setdefault(url, ("waits", 0.0))

    @rule(per_line=st.integers(0, 3), lines=st.integers(0, 2), lease_s=st.sampled_from([5.0, 50.0]))
    def get(self, per_line: int, lines: int, lease_s: float) -> None:
        now = self.clock.now()
        rows = self.frontier.take(per_line=per_line, lines=lines, lease_s=lease_s).rows
        self.frontier.commit()
        urls = [standing.url for standing in self.frontier.places.standings(rows.tolist())]
        assert len(set(urls)) == len(urls)
        for url in urls:
            state, until = self.model[url]
            assert state != "done"
            assert until <= now
            self.model[url] = ("leased", now + lease_s)
        if not per_line and not lines:  # then everything that may go went
            assert all(state == "done" or until > now for state, until in self.model.values())

    @precondition(lambda self: self.model)
    @rule(data=st.data(), wait_s=st.sampled_from([0, 7, 70]))
    def answer(self, data: st.DataObject, wait_s: int) -> None:
        url = data.draw(st.sampled_from(sorted(self.model)))
        refetch = int(self.clock.now()) + wait_s if wait_s else 0
        assert self.frontier.put([GuestItem(url, known=True, refetch=refetch)]) == [Taken.OK]
        self.frontier.commit()
        self.model[url] = ("waits", float(refetch)) if refetch else ("done", 0.0)

    @rule(host=st.integers(0, 2))
    def remove(self, host: int) -> None:
        mine = [url for url in self.model if url.startswith(f"http://h{host}.")]
        assert self.frontier.remove_line(f"h{host}.example") == len(mine)
        self.frontier.commit()
        for url in mine:
            del self.model[url]

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(cleanly=st.booleans())
    def restart(self, cleanly: bool) -> None:
        if cleanly:
            self.frontier.close()
        else:
            self.frontier.abandon()
        self.frontier = GuestFrontier(self.root, policy=PLAIN, clock=self.clock, delay_s=0.0)

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "frontier"):
            return
        active, done = self.frontier.places.counts()
        assert int(done.sum()) == sum(state == "done" for state, _ in self.model.values())
        assert int(active.sum() + done.sum()) == len(self.model)
        self.frontier.leases.expire(self.clock.now())
        held = sum(state == "leased" and until > self.clock.now() for state, until in self.model.values())
        assert len(self.frontier.leases) == held == int(self.frontier.queues.columns["in_process"].sum())

    def teardown(self) -> None:
        if hasattr(self, "frontier"):
            self.frontier.abandon()
            self.folder.cleanup()


TestFrontierAgainstModel = FrontierAgainstModel.TestCase
TestFrontierAgainstModel.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
