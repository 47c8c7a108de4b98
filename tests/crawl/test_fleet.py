"""Workers on other machines, as a coordinator has them; and what one who takes over finds of the one before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.stored import AT, INTERVAL_S, add_and_fetch, make_folder, new_schema

from bowerbird.crawl.fleet import LATE_NUMBERS, TERM_BITS, Elected, Fleet
from bowerbird.crawl.report import ROBOTS_JOB, Job, Report
from bowerbird.crawl.report_wire import pack_reports
from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.model.clock import FollowingClock
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.schedule.leases import LOST_ROW, ROBOTS_ROW, Lease, LeaseBook
from bowerbird.store import exchange
from bowerbird.store.election import SharedClaim
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository


@pytest.fixture
def folder(postgres: PostgresServer, tmp_path: Path) -> CrawlFolder:
    return make_folder(tmp_path / "crawl", new_schema(postgres))


class Office:
    """One who coordinates: what it writes by, and its fleet."""

    def __init__(self, folder: CrawlFolder) -> None:
        self.claim = SharedClaim.wait(folder)
        self.repository = Repository(
            folder, write=True, default_interval_s=INTERVAL_S, connection=self.claim.connection
        )
        self.fleet = Fleet(self.claim.connection, FollowingClock(self.claim.connection.now))
        self.book = LeaseBook(Elected(self.claim, self.fleet).first_token)
        self.fleet.lost()

    def lease(self, worker: int, url: str, row: int, host: int = 0, flags: int = 0, waiting: int = -1) -> int:
        lease = Lease(row, host, worker, FetchKind.NEW, AT, AT + 1e9, 1.0, 1.0, "{}", waiting)
        token = self.book.open(lease)
        self.fleet.send(worker, [Job(token, url, flags=flags)], self.book)
        return token

    def commit(self) -> None:
        over = self.book.take_over()
        self.repository.commit(also=lambda _: self.fleet.settle(over))
        self.fleet.settled()

    def close(self) -> None:
        self.repository.close()


@pytest.fixture
def office(folder: CrawlFolder) -> Iterator[Office]:
    office = Office(folder)
    yield office
    office.close()


def report(token: int, url: str = "https://a.example/") -> bytes:
    return pack_reports([Report(token, url, Outcome.OK, AT)])


def join(office: Office) -> int:
    number = exchange.register(office.claim.connection, "here", 1)
    office.fleet.lost()
    return number


def test_a_lease_is_written_before_it_can_be_answered_and_goes_with_the_commit(office: Office) -> None:
    connection, worker = office.claim.connection, join(office)
    row = add_and_fetch(office.repository, "https://a.example/")
    token = office.lease(worker, "https://a.example/", row)
    assert office.fleet.workers[worker].outstanding == 1
    assert exchange.read_orders(connection, worker, 0, 1.0) == []
    assert office.fleet.receive(0.0) == ([], [])
    assert [order.token for order in exchange.read_orders(connection, worker, 0, 1.0)] == [token]
    exchange.hand_in(connection, worker, report(token))
    (found,), _ = office.fleet.receive(1.0)
    assert found.token == token
    assert office.fleet.receive(0.0) == ([], [])  # once
    assert (office.fleet.workers[worker].outstanding, office.fleet.unsettled) == (0, 1)
    assert len(exchange.read_leases(connection)) == 1
    assert office.book.close(token) is not None
    office.commit()
    assert exchange.read_leases(connection) == []
    assert exchange.read_reports(connection, [], 9) == []
    assert office.fleet.unsettled == 0


def test_a_batch_whose_number_is_long_past_is_taken_all_the_same(office: Office) -> None:
    """It was given before many others, and committed after them."""
    connection, worker = office.claim.connection, join(office)
    put = "INSERT INTO reports (id, worker, data) VALUES (?, ?, ?)"
    connection.execute(put, (5 * LATE_NUMBERS, worker, report(1)))
    assert [one.token for one in office.fleet.receive(1.0)[0]] == [1]
    connection.execute(put, (4 * LATE_NUMBERS + 1, worker, report(2)))
    assert [one.token for one in office.fleet.receive(0.0)[0]] == [2]
    connection.execute(put, (7, worker, report(3)))
    assert [one.token for one in office.fleet.receive(60.0)[0]] == [3]
    assert office.fleet.receive(0.0) == ([], [])


def test_one_who_is_gone_is_not_given_up_while_an_old_number_of_it_was_not_taken(office: Office) -> None:
    connection, worker = office.claim.connection, join(office)
    put = "INSERT INTO reports (id, worker, data) VALUES (?, ?, ?)"
    connection.execute(put, (5 * LATE_NUMBERS, worker, report(1)))
    office.fleet.receive(1.0)
    office.fleet._look_at = time.monotonic() + 1e6
    connection.execute(put, (7, worker, report(3)))
    exchange.leave(connection, worker)
    assert office.fleet.lost() == []
    assert [one.token for one in office.fleet.receive(0.0)[0]] == [3]
    assert office.fleet.lost() == [worker]


def test_beside_a_long_look_at_the_database_a_poll_reads_no_more_than_before(
    office: Office, folder: CrawlFolder
) -> None:
    connection, worker = office.claim.connection, join(office)
    with closing(Repository(folder, write=False)) as export:
        export.connection.execute("BEGIN")
        export.connection.execute("SELECT count(*) FROM urls").fetchone()
        for _ in range(5):
            connection.executemany(
                "INSERT INTO reports (worker, data) VALUES (?,?)", [(worker, report(1))] * LATE_NUMBERS
            )
            connection.execute("DELETE FROM reports")
        exchange.hand_in(connection, worker, report(2))
        assert len(office.fleet.receive(1.0)[0]) == 1

        def read_blocks(after: int) -> int:
            rows = connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {exchange.READ_REPORTS}", (after, office.fleet._taken, 9)
            ).fetchone()
            return int(rows[0][0]["Plan"]["Shared Hit Blocks"])

        few, all_of_them = read_blocks(office.fleet._latest - LATE_NUMBERS), read_blocks(0)
        assert few < 0.5 * all_of_them


def test_reports_that_cannot_be_read_are_left_out(office: Office) -> None:
    connection, worker = office.claim.connection, join(office)
    exchange.hand_in(connection, worker, b"nothing of ours")
    exchange.hand_in(connection, worker, report(5))
    reports, _ = office.fleet.receive(0.0)
    assert [one.token for one in reports] == [5]
    office.commit()
    assert exchange.read_reports(connection, [], 9) == []


def test_whoever_takes_over_finds_leases_and_what_was_not_settled(folder: CrawlFolder) -> None:
    first = Office(folder)
    worker = join(first)
    first.repository.add_urls(["https://a.example/"], at=AT)
    first.commit()
    first.repository.add_urls(["https://new.example/found"], at=AT)  # is not written down
    known = first.lease(worker, "https://a.example/", 0)
    lost = first.lease(worker, "https://new.example/found", 1, host=1)
    robots = first.lease(worker, "https://new.example/robots.txt", ROBOTS_ROW, 1, ROBOTS_JOB, waiting=1)
    first.fleet.receive(0.0)
    exchange.hand_in(first.claim.connection, worker, report(known))
    assert len(first.fleet.receive(0.0)[0]) == 1  # taken, but not settled
    first.close()

    second = Office(folder)
    table = second.repository.table
    restored = dict(second.fleet.restore(table))
    rows, _ = second.repository.add_urls(["https://other.example/"], at=AT)
    assert rows.tolist() == [1]  # the number that the lost one had
    assert sorted(restored) == [known, lost, robots]
    assert restored[known].row == 0
    assert restored[lost].row == LOST_ROW
    assert (restored[robots].row, restored[robots].waiting) == (ROBOTS_ROW, -1)
    assert (
        table.hosts.origins[restored[lost].host] == table.hosts.origins[restored[robots].host] == "https://new.example"
    )
    assert [one.token for one in second.fleet.receive(0.0)[0]] == [known]
    assert second.book.open(restored[lost]) > max(restored)  # no token is given twice
    assert second.claim.term << TERM_BITS > max(restored)
    second.close()


def test_a_worker_is_lost_when_what_it_left_was_taken(office: Office) -> None:
    connection, worker = office.claim.connection, join(office)
    exchange.hand_in(connection, worker, report(7))
    exchange.leave(connection, worker)
    assert office.fleet.lost() == []
    assert worker not in office.fleet.workers
    office.fleet.receive(0.0)
    assert office.fleet.lost() == [worker]
    assert office.fleet.lost() == []


def test_leases_of_workers_that_are_long_gone_come_back_at_a_take_over(folder: CrawlFolder) -> None:
    first = Office(folder)
    worker = join(first)
    first.repository.add_urls(["https://a.example/"], at=AT)
    first.commit()
    first.lease(worker, "https://a.example/", 0)
    first.fleet.receive(0.0)
    first.claim.connection.execute("DELETE FROM workers")
    first.close()
    second = Office(folder)
    second.fleet.restore(second.repository.table)
    assert second.fleet.lost() == [worker]
    second.close()


def test_one_is_heard_by_the_database_s_clock(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of this machine is an hour late."""
    connection, worker = office.claim.connection, join(office)
    before = connection.now()
    late = time.time() - 3600.0
    monkeypatch.setattr(time, "time", lambda: late)
    exchange.hand_in(connection, worker, report(7))
    office.fleet.receive(0.0)
    office.fleet.end_if_silent(worker, before)
    assert exchange.say_alive(connection, worker)


def test_the_clock_is_read_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = office.claim.connection
    monkeypatch.setattr(FollowingClock, "EVERY_S", 0.0)
    monkeypatch.setattr(connection, "now", lambda: 5e9)
    office.fleet.clock._read = connection.now
    office.fleet.lost()
    assert office.fleet.clock.now() == pytest.approx(5e9, abs=60)


def test_one_that_says_nothing_is_sent_away(office: Office) -> None:
    worker = join(office)
    office.fleet.end_if_silent(worker, AT)
    assert not exchange.say_alive(office.claim.connection, worker)
