"""What the dashboard tells from the journal is what the journal holds."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.filling import make_folder

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.serve.dashboard_data import Observer, choose_window
from bowerbird.serve.dashboard_journal import read_busy_hosts, read_hubs, read_interval, read_last_errors
from bowerbird.serve.dashboard_survey import Survey, Surveyor
from bowerbird.serve.journal_intervals import IntervalReader
from bowerbird.store import schema
from bowerbird.store.connection import EmbeddedConnection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

Row = tuple[float, FetchKind, Outcome]


def make_journal(rows: list[Row]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", factory=EmbeddedConnection)
    connection.executescript(schema.MIGRATIONS[0])
    connection.executemany(
        "INSERT INTO fetches (url, kind, decided_at, bid, price, terms, fetched_at, elapsed_s, outcome, status,"
        " wire_bytes, changed, content_hash, state, errors, interval_s, not_before)"
        " VALUES (0, ?, ?, 1, 1, '{}', ?, 0, ?, 0, 0, 0, 0, 0, 0, 0, 0)",
        [(kind, at, at, outcome) for at, kind, outcome in rows],
    )
    return connection


ROWS = st.lists(
    st.tuples(st.floats(1000, 1300), st.sampled_from(FetchKind), st.sampled_from(Outcome)), max_size=80
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@settings(max_examples=60)
@given(ROWS, st.sampled_from([1.0, 10.0, 60.0]))
def test_intervals_hold_what_a_full_count_finds(rows: list[Row], width_s: float) -> None:
    connection = make_journal(rows)
    found = IntervalReader(read_interval).intervals(connection, 1000.0, 1320.0, width_s)
    for interval in found:
        last = interval is found[-1]  # it holds the one that has only just begun, too
        inside = [row for row in rows if interval.start <= row[0] and (last or row[0] < interval.start + width_s)]
        assert interval.counts == Counter((int(kind), int(outcome)) for _, kind, outcome in inside)
        assert interval.length_s > 0
    assert sum(sum(interval.counts.values()) for interval in found) == len(rows)
    connection.close()


def test_many_decisions_are_told_from_a_sample() -> None:
    rng = random.Random(5)
    kinds = rng.choices([FetchKind.NEW, FetchKind.REFRESH], [3, 1], k=40_000)
    connection = make_journal([(1000 + nth / 1000, kind, Outcome.OK) for nth, kind in enumerate(kinds)])
    (interval,) = IntervalReader(read_interval).intervals(connection, 960.0, 1060.0, 120.0)
    assert interval.sampled
    assert sum(interval.counts.values()) == pytest.approx(40_000)
    assert interval.fetches(FetchKind.NEW) == pytest.approx(30_000, rel=0.08)
    connection.close()


def test_what_has_passed_is_read_once_and_another_crawl_anew() -> None:
    connection = make_journal([(1000 + nth, FetchKind.NEW, Outcome.OK) for nth in range(600)])
    asked: list[str] = []
    reader = IntervalReader(read_interval)
    before = reader.intervals(connection, 1000.0, 1600.0, 10.0)
    connection.set_trace_callback(asked.append)
    assert reader.intervals(connection, 1000.0, 1600.0, 10.0) == before
    assert len(asked) < 400  # the last two minutes only
    connection.set_trace_callback(None)
    connection.execute("INSERT INTO meta VALUES ('hash_seed', 7)")
    connection.execute("UPDATE fetches SET kind = 1")
    again = reader.intervals(connection, 1000.0, 1600.0, 10.0)
    assert sum(interval.fetches(FetchKind.REFRESH) for interval in again) == 600
    connection.close()


def test_decisions_without_a_fetch_are_no_fetches() -> None:
    connection = make_journal([(1000.0, FetchKind.NEW, Outcome.ROBOTS), (1001.0, FetchKind.NEW, Outcome.OK)])
    found = IntervalReader(read_interval).intervals(connection, 1000.0, 1060.0, 60.0)
    assert sum(interval.fetches(FetchKind.NEW) for interval in found) == 1
    assert sum(interval.of_outcome(Outcome.ROBOTS) for interval in found) == 1
    connection.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "crawl")


def test_hubs_and_hosts_of_a_folder(root: Path) -> None:
    repository = Repository(CrawlFolder(root), write=True)
    now = time.time()
    feed = int(repository.add_urls(["http://a.example/feed"], at=now - 100, kind=UrlKind.FEED)[0][0])
    page = int(repository.add_urls(["http://b.example/list"], at=now - 100)[0][0])
    repository.add_urls([f"http://a.example/{n}" for n in range(5)], at=now - 50, source=feed)
    repository.add_urls([f"http://b.example/first-{n}" for n in range(9)], at=now - 90, source=page)
    repository.add_urls(["http://b.example/later"], at=now - 20, source=page)
    for row, at, outcome in (
        (feed, now - 90, Outcome.OK),
        (page, now - 90, Outcome.OK),
        (feed, now - 50, Outcome.OK),
        (page, now - 20, Outcome.OK),
        (page, now - 10, Outcome.TIMEOUT),
    ):
        kind = FetchKind.HUB if row == feed else FetchKind.NEW
        record = FetchRecord(row, kind, at, 1.0, 1.0, "{}", at, outcome, UrlState.FETCHED)
        record.error = "no answer" if outcome is Outcome.TIMEOUT else None
        repository.record(record)
    repository.commit()
    connection = repository.connection
    hubs = {hub.url: hub for hub in read_hubs(connection, 10)}
    assert (hubs["http://a.example/feed"].visits, hubs["http://a.example/feed"].found) == (2, 5)
    assert hubs["http://a.example/feed"].found_later == 5
    assert (hubs["http://b.example/list"].found, hubs["http://b.example/list"].found_later) == (10, 1)
    busy = {host.origin: (host.fetches, host.errors) for host in read_busy_hosts(connection, 10)}
    assert busy == {"http://a.example": (2, 0), "http://b.example": (3, 1)}
    assert read_last_errors(connection) == {"http://b.example": "no answer"}
    repository.close()


def test_a_young_crawl_is_shown_whole_and_an_old_one_by_the_hour() -> None:
    assert choose_window("auto", (0.0, 600.0), 600.0) == ("all", 600.0)
    assert choose_window("auto", (0.0, 90_000.0), 90_000.0) == ("hour", 3600.0)
    assert choose_window("day", (0.0, 90_000.0), 90_000.0) == ("day", 86_400.0)
    assert choose_window("auto", None, 5.0)[0] == "all"


def test_a_folder_that_vanishes_is_said_without_its_path(root: Path) -> None:
    observer = Observer(root)
    assert not observer.glance("all").problem
    CrawlFolder(root).config.unlink()
    problem = observer.glance("day").problem
    assert "not a crawl folder" in problem
    assert str(root) not in problem
    observer.close()


def test_a_survey_that_fails_is_told_and_another_is_taken() -> None:
    taken: list[int] = []

    def take() -> Survey:
        taken.append(1)
        if len(taken) == 1:
            raise ValueError("as nobody expected")
        return Survey(time.time(), 0.0)

    surveyor = Surveyor(take, every_s=60)
    with pytest.raises(ValueError, match="as nobody expected"):
        surveyor.latest(wait_s=5)
    with pytest.raises(ValueError, match="as nobody expected"):
        surveyor.latest()
    assert surveyor.latest(wait_s=5) is not None
    assert len(taken) == 2
    surveyor.close()


def test_a_survey_is_taken_beside_the_requests() -> None:
    taken: list[int] = []

    def take() -> Survey:
        taken.append(1)
        time.sleep(0.2)
        return Survey(time.time(), 0.2)

    surveyor = Surveyor(take, every_s=60)
    began = time.monotonic()
    assert surveyor.latest() is None
    assert time.monotonic() - began < 0.15
    first = surveyor.latest(wait_s=5)
    assert first is not None
    assert surveyor.latest() == first
    assert len(taken) == 1
    surveyor.close()
