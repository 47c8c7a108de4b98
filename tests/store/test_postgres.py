"""What is PostgreSQL's own: text it does not take, one writer by election, the tables over which workers are fed."""

from __future__ import annotations

import builtins
import importlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
from tests.store.stored import AT, add_and_fetch, make_folder, new_schema, open_repository

from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.model.errors import FolderError, StoreError, StoreLostError
from bowerbird.store import exchange, pulse
from bowerbird.store.committed import CommittedState
from bowerbird.store.election import SharedClaim, is_claimed
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.postgres import SERVER_WAITS_MS, WE_WAIT_MS, PostgresConnection, explain, plain_url, translate
from bowerbird.store.postgres_schema import create_store, find_root, open_postgres
from bowerbird.store.repository import Repository


@pytest.fixture
def shared(postgres: PostgresServer, tmp_path: Path) -> CrawlFolder:
    return make_folder(tmp_path / "crawl", new_schema(postgres))


@pytest.fixture
def connection(shared: CrawlFolder) -> Iterator[PostgresConnection]:
    assert shared.store_url is not None
    with closing(open_postgres(shared.store_url, write=True)) as connection:
        yield connection


# -- the dialect


def test_text_that_postgres_does_not_take_is_kept_as_far_as_it_goes(shared: CrawlFolder) -> None:
    repository = open_repository(shared)
    row = add_and_fetch(repository, "https://a.example/")
    repository.record_anchors(np.array([row]), np.array([7], dtype=np.uint16), ["a\0b \ud800c"])
    repository.commit()
    assert repository.anchors(row) == ["a\ufffdb ?c"]
    repository.close()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM b WHERE c = ?", "SELECT a FROM b WHERE c = %s"),
        ("SELECT a FROM b NOT INDEXED WHERE c LIKE 'x%'", "SELECT a FROM b WHERE c LIKE 'x%%'"),
        ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        ("BEGIN IMMEDIATE", "BEGIN"),
        ("SELECT file, offset FROM b WHERE instr(c, 'd')", "SELECT file, \"offset\" FROM b WHERE 0 < strpos(c, 'd')"),
    ],
)
def test_statements_are_put_into_the_dialect(sql: str, expected: str) -> None:
    assert translate(sql) == expected


def test_a_list_of_numbers_is_a_table(connection: PostgresConnection) -> None:
    rows = connection.execute("SELECT wanted.value FROM json_each(?) AS wanted ORDER BY wanted.key", ("[5, 3, 9]",))
    assert [value for (value,) in rows] == [5, 3, 9]


def test_sums_are_numbers_of_python(connection: PostgresConnection) -> None:
    row = connection.execute("SELECT sum(x), avg(x) FROM (VALUES (1::bigint), (2::bigint)) AS t(x)").fetchone()
    assert row == (3, 1.5)
    assert [type(value) for value in row] == [int, float]


def test_a_scan_is_of_one_moment_and_leaves_no_transaction(shared: CrawlFolder, connection: PostgresConnection) -> None:
    writer = open_repository(shared)
    writer.add_urls([f"https://a.example/{n}" for n in range(50)], at=AT)
    writer.commit()
    scan = connection.scan("SELECT id FROM urls ORDER BY id", rows=20)
    assert len(next(scan)) == 20
    writer.add_urls(["https://a.example/late"], at=AT)
    writer.commit()
    assert sum(map(len, scan)) == 30
    assert not connection.in_transaction
    writer.close()


def test_a_reader_cannot_write(shared: CrawlFolder) -> None:
    reader = open_repository(shared, write=False)
    with pytest.raises(StoreError, match="read-only"):
        reader.set_meta("colour", "blue")
    reader.close()


# -- the session


def test_the_other_end_is_given_up_also_while_it_owes_an_answer(connection: PostgresConnection) -> None:
    with closing(socket.socket(fileno=os.dup(connection.raw.fileno()))) as ours:
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == WE_WAIT_MS
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert connection.execute("SHOW tcp_user_timeout").fetchone() == (str(SERVER_WAITS_MS),)
    assert SERVER_WAITS_MS < 10_000  # and another has been elected by then


@pytest.mark.parametrize(
    ("said", "holds"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_what_is_committed_is_on_the_disk_whatever_the_server_is_set_to(
    postgres: PostgresServer, said: str, holds: str
) -> None:
    with closing(PostgresConnection(f"{postgres.url()}?options=-csynchronous_commit%3D{said}", write=True)) as session:
        assert session.execute("SHOW synchronous_commit").fetchone() == (holds,)


def end_session(connection: PostgresConnection, by: PostgresConnection) -> None:
    """As a restart of the server does."""
    number = connection.raw.info.backend_pid
    by.execute("SELECT pg_terminate_backend(?::int)", (number,))
    while by.execute("SELECT 1 FROM pg_stat_activity WHERE pid = ?", (number,)).fetchone():
        time.sleep(0.01)


def test_one_who_reads_goes_on_when_its_session_was_lost(shared: CrawlFolder, connection: PostgresConnection) -> None:
    writer = open_repository(shared)
    row = add_and_fetch(writer, "https://a.example/")
    writer.commit()
    reader = CommittedState(shared)
    for _ in range(2):
        end_session(reader.connection, connection)  # type: ignore[arg-type]  # of a crawl in PostgreSQL
        assert reader.url(row) == "https://a.example/"
    end_session(reader.connection, connection)  # type: ignore[arg-type]  # as above
    assert [len(part) for part in reader.connection.scan("SELECT id FROM urls")] == [1]
    reader.close()
    writer.close()


def test_a_look_at_one_moment_does_not_become_one_at_two(shared: CrawlFolder, connection: PostgresConnection) -> None:
    assert shared.store_url is not None
    with closing(open_postgres(shared.store_url, write=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT 1")
        end_session(reader, connection)
        with pytest.raises(StoreLostError):
            reader.execute("SELECT 1")
        assert reader.execute("SELECT 1").fetchone() == (1,)


def test_one_who_writes_never_gets_another_session(shared: CrawlFolder, connection: PostgresConnection) -> None:
    """The lock went with it."""
    assert shared.store_url is not None
    with closing(open_postgres(shared.store_url, write=True)) as writer:
        end_session(writer, connection)
        for _ in range(2):
            with pytest.raises(StoreLostError):
                writer.execute("SELECT 1")


def test_the_server_notices_that_one_is_gone_whose_statement_still_runs(
    shared: CrawlFolder, connection: PostgresConnection
) -> None:
    """Else a coordinator that was killed would keep the lock until then."""
    assert shared.store_url is not None
    script = (
        "import sys; from bowerbird.store.postgres import PostgresConnection as P; c = P(sys.argv[1], write=True);"
        "print(c.raw.info.backend_pid, flush=True); c.execute('SELECT pg_sleep(600)')"
    )
    with subprocess.Popen([sys.executable, "-c", script, shared.store_url], stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        number = int(sleeper.stdout.readline())
        sleeping = "SELECT 1 FROM pg_stat_activity WHERE pid = ? AND query LIKE '%pg_sleep%'"
        while not connection.execute(sleeping, (number,)).fetchone():
            time.sleep(0.02)
        sleeper.kill()
    give_up = time.monotonic() + 60
    while connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = ?", (number,)).fetchone():
        assert time.monotonic() < give_up
        time.sleep(0.1)


def test_a_seed_may_be_longer_than_a_row_of_a_tree(shared: CrawlFolder) -> None:
    long = [f"https://a.example/{random.Random(seed).randbytes(3000).hex()}" for seed in (1, 2)]  # not to be compressed
    for _ in range(2):
        repository = open_repository(shared)
        repository.note_inbox_done(0, (*long, "https://a.example/"))
        repository.commit()
        assert repository.seeds() == tuple(sorted([*long, "https://a.example/"]))
        repository.close()


# -- whose it is


def test_a_folder_and_its_database_know_each_other(shared: CrawlFolder) -> None:
    assert shared.store_url is not None
    assert find_root(shared.store_url) == shared.root
    assert shared.store.stat().st_mode & 0o077 == 0
    shared.check()


def test_a_database_with_a_crawl_is_not_taken_for_another(shared: CrawlFolder, tmp_path: Path) -> None:
    assert shared.store_url is not None
    create_store(shared, shared.store_url)  # an init that was cut short is repeated
    other = CrawlFolder(tmp_path / "other")
    other.root.mkdir()
    with pytest.raises(StoreError, match="holds a crawl already"):
        create_store(other, shared.store_url)
    assert not other.store.exists()


def test_a_database_of_something_else_is_left_alone(postgres: PostgresServer, tmp_path: Path) -> None:
    url = new_schema(postgres)
    with closing(PostgresConnection(url, write=True)) as connection:
        connection.execute("CREATE TABLE urls (id BIGINT)")
        with pytest.raises(StoreError, match="not of a crawl"):
            create_store(CrawlFolder(tmp_path), url)
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").fetchone() == (
            1,
        )


def test_an_empty_database_has_no_crawl(postgres: PostgresServer) -> None:
    with pytest.raises(FolderError, match="bowerbird init"):
        find_root(new_schema(postgres))


def test_a_database_that_cannot_be_reached_is_said_without_its_password() -> None:
    with pytest.raises(StoreLostError, match=r"postgresql://me@127.0.0.1:9/x: .*Is it running") as raised:
        open_postgres("postgresql://me:secret@127.0.0.1:9/x", write=False)
    assert "secret" not in str(raised.value)
    assert plain_url("postgresql://me@h/x") == "postgresql://me@h/x"


def test_a_server_that_runs_and_lets_nobody_in_is_told_from_one_that_does_not_run(postgres: PostgresServer) -> None:
    for url, remedy in (
        (postgres.url("nodb"), "make the database"),
        (postgres.url().replace("bowerbird@", "nobody@"), "correct the user"),
    ):
        with pytest.raises(StoreLostError, match=f"does not exist.*The server runs: {remedy}") as raised:
            open_postgres(url, write=False)
        assert "Is it running" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (psycopg.errors.InvalidCatalogName(), "make the database"),
        (psycopg.errors.InvalidAuthorizationSpecification(), "correct the user"),
        (psycopg.errors.InvalidPassword(), "correct the password"),
        (psycopg.OperationalError('FATAL: password authentication failed for user "me"'), "correct the password"),
        (psycopg.OperationalError("fe_sendauth: no password supplied"), "correct the password"),
        (psycopg.OperationalError('FATAL: no pg_hba.conf entry for host "::1"'), "correct the user"),
        (psycopg.OperationalError('FATAL: Peer authentication failed for user "me"'), "correct the user"),
        (psycopg.OperationalError("FATAL: the database system is starting up"), "Is it running?"),
        (psycopg.errors.AdminShutdown(), "Is it running?"),
    ],
)
def test_each_refusal_has_its_remedy(error: psycopg.Error, remedy: str) -> None:
    said = explain(error, "postgresql://me@h/x")
    assert isinstance(said, StoreLostError)  # a worker that had a session waits for it to come back
    assert remedy in str(said)


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(StoreError, match="postgresql://"):
        PostgresConnection("postgresql://[", write=False)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.partition(".")[0] == "psycopg":
            raise ImportError("No module named 'psycopg'")
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "bowerbird.store.postgres")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StoreError, match=r"bowerbird\[postgres\]"):
        importlib.import_module("bowerbird.store.postgres")


# -- the election


def test_one_writes_and_the_next_does_when_that_one_is_gone(shared: CrawlFolder) -> None:
    assert shared.store_url is not None
    first, second = SharedClaim(shared), SharedClaim(shared)
    assert not WriterLock.is_held(shared)
    assert first.win()
    assert not second.win()
    assert is_claimed(shared.store_url)
    with pytest.raises(FolderError, match="one writer"):
        SharedClaim.wait(shared, 0.1)
    first.release()
    began = time.monotonic()
    while not second.win():
        assert time.monotonic() - began < 5
    assert second.term > first.term
    second.release()
    assert not is_claimed(shared.store_url)


def test_two_crawls_of_one_database_have_two_writers(postgres: PostgresServer, tmp_path: Path) -> None:
    claims = [SharedClaim(make_folder(tmp_path / name, new_schema(postgres))) for name in "ab"]
    assert all(claim.win() for claim in claims)
    for claim in claims:
        claim.release()


def test_one_who_lost_its_session_cannot_write(shared: CrawlFolder) -> None:
    claim, heir = SharedClaim(shared), SharedClaim(shared)
    assert claim.win()
    repository = Repository(shared, write=True, connection=claim.connection)
    add_and_fetch(repository, "https://a.example/")
    repository.commit()
    add_and_fetch(repository, "https://a.example/late")
    heir.connection.execute("SELECT pg_terminate_backend(?::int)", (claim.connection.raw.info.backend_pid,))
    while not heir.win():
        time.sleep(0.01)
    with pytest.raises(StoreLostError):
        repository.commit()
    again = Repository(shared, write=True, connection=heir.connection)
    assert again.last_fetch_id == 1
    assert again.table.find_url("https://a.example/late") is None
    add_and_fetch(again, "https://a.example/other")
    assert again.commit() == 2
    repository.close()
    again.close()


# -- the pulse of whoever writes


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "EVERY_S", 0.05)
    monkeypatch.setattr(pulse, "SILENT_S", 1.0)


def until(found: Callable[[], object]) -> object:
    give_up = time.monotonic() + 60
    while not (value := found()):
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return value


@pytest.mark.usefixtures("hurried")
def test_one_who_is_busy_keeps_its_office(shared: CrawlFolder) -> None:
    """It asks nothing of the database for three times as long as one may be silent."""
    claim, heir = SharedClaim(shared), SharedClaim(shared)
    assert claim.win()
    give_up = time.monotonic() + 3 * pulse.SILENT_S
    while time.monotonic() < give_up:
        assert heir.end_silent() == ""
        time.sleep(0.05)
    assert not heir.win()
    assert claim.connection.execute("SELECT 1").fetchone() == (1,)
    claim.release()
    heir.release()


@pytest.mark.usefixtures("hurried")
def test_one_who_is_silent_loses_its_office(shared: CrawlFolder) -> None:
    claim, heir = SharedClaim(shared), SharedClaim(shared)
    assert claim.win()
    assert claim._pulse is not None
    claim._pulse.close()  # as all of it does when the process is stopped
    assert until(heir.end_silent) == f"process {os.getpid()} on {socket.gethostname()}"
    assert until(heir.win)
    assert heir.end_silent() == ""
    with pytest.raises(StoreLostError):
        claim.connection.execute("SELECT 1")
    heir.release()
    claim.release()


@pytest.mark.usefixtures("hurried")
def test_the_pulse_comes_back_when_its_session_was_lost(shared: CrawlFolder, connection: PostgresConnection) -> None:
    claim = SharedClaim(shared)
    assert claim.win()

    def beats() -> set[int]:
        asked = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'UPDATE pulse%'"
        return {pid for (pid,) in connection.execute(asked)} - {claim.connection.raw.info.backend_pid}

    before = until(beats)
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'UPDATE pulse%' AND pid <> ?",
        (claim.connection.raw.info.backend_pid,),
    )
    assert until(lambda: beats() and beats() != before)
    assert connection.execute("SELECT term FROM pulse").fetchall() == [(claim.term,)]
    claim.release()


def test_nobody_takes_office_for_whose_pulse_the_server_has_no_session(
    shared: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be taken for silent, and so would the next."""

    def refuse(url: str, *, write: bool) -> PostgresConnection:
        raise StoreLostError("too many clients already")

    claim, heir = SharedClaim(shared), SharedClaim(shared)
    with monkeypatch.context() as full:
        full.setattr(pulse, "PostgresConnection", refuse)
        with pytest.raises(StoreLostError, match="too many clients"):
            claim.win()
    claim.release()
    assert until(heir.win)
    heir.release()


@pytest.mark.usefixtures("hurried")
def test_the_pulse_goes_on_when_the_server_s_disk_has_room_again(
    shared: CrawlFolder, connection: PostgresConnection
) -> None:
    claim = SharedClaim(shared)
    assert claim.win()

    def beats_after(at: object) -> bool:
        return bool(connection.execute("SELECT 1 FROM pulse WHERE at > ?", (at,)).fetchone())

    claim.connection.run_script(
        "CREATE SEQUENCE refused; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM nextval('refused'); RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$;"
        " CREATE TRIGGER full_disk BEFORE UPDATE ON pulse FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    assert until(lambda: connection.execute("SELECT is_called FROM refused").fetchone()[0])
    (at,) = connection.execute("SELECT at FROM pulse").fetchone()
    claim.connection.run_script("DROP TRIGGER full_disk ON pulse")
    assert until(lambda: beats_after(at))
    claim.release()


@pytest.mark.usefixtures("hurried")
def test_one_whose_statement_never_returns_is_noticed(shared: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs in a COPY, which is no idle session; its pulse goes on until it is sure."""
    monkeypatch.setattr(pulse, "STUCK_S", 1.5)
    said: list[str] = []
    claim, heir = SharedClaim(shared, said.append), SharedClaim(shared)
    assert claim.win()
    go_on, ended = threading.Event(), threading.Event()

    def rows() -> Iterator[tuple[object, ...]]:
        yield (1, "https://a.example/", 1, 0, 0, 0, 0, AT, -1)
        go_on.wait(60)
        yield (2, "https://a.example/2", 2, 0, 0, 0, 0, AT, -1)

    def write() -> None:
        with pytest.raises(StoreLostError):
            claim.connection.executemany("INSERT INTO urls VALUES (?,?,?,?,?,?,?,?,?)", rows())
        ended.set()

    writing = threading.Thread(target=write)
    writing.start()
    began = time.monotonic()
    until(lambda: said)
    assert time.monotonic() - began >= pulse.STUCK_S
    assert "no answer" in said[0]
    assert until(heir.end_silent)
    assert until(heir.win)
    go_on.set()
    writing.join(60)
    assert ended.is_set()
    assert heir.connection.execute("SELECT count(*) FROM urls").fetchone() == (0,)
    claim.release()
    heir.release()


def test_people_who_post_at_once_lose_nothing(shared: CrawlFolder) -> None:
    writer = open_repository(shared)
    urls = {f"https://a.example/{person}/{n}" for person in range(3) for n in range(20)}

    def post(person: int) -> None:
        poster = open_repository(shared)
        for n in range(20):
            poster.post("add", [f"https://a.example/{person}/{n}"], AT)
        poster.close()

    people = [threading.Thread(target=post, args=(person,)) for person in range(3)]
    for one in people:
        one.start()
    seen: set[str] = set()
    end = time.monotonic() + 60
    while seen != urls and time.monotonic() < end:
        waiting = writer.connection.execute("SELECT id, url FROM inbox ORDER BY id").fetchall()
        if waiting:
            seen |= {url for _, url in waiting}
            writer.note_inbox_done(waiting[-1][0], ())
            writer.commit()
    for one in people:
        one.join()
    assert seen == urls
    writer.close()


# -- workers, leases and reports


def lease(token: int, worker: int, expires_at: float) -> tuple[object, ...]:
    url = f"https://a.example/{token}"
    return (token, worker, url, "", "", 0, token, 3, 0, AT, expires_at, 1.0, 1.0, "{}", -1)


def test_orders_are_a_worker_s_own_in_order_and_in_time(connection: PostgresConnection) -> None:
    now = connection.now()
    rows = [lease(5, 1, now + 100), lease(3, 1, now + 100), lease(4, 2, now + 100), lease(6, 1, now + 20)]
    exchange.write_leases(connection, [*rows, lease(7, 1, now - 1)])
    assert [order.token for order in exchange.read_orders(connection, 1, 0, 30.0)] == [3, 5]
    assert [order.token for order in exchange.read_orders(connection, 1, 3, 10.0)] == [5, 6]
    assert exchange.read_orders(connection, 2, 0, 30.0)[0].url == "https://a.example/4"
    assert [row[0] for row in exchange.read_leases(connection)] == [3, 4, 5, 6, 7]


def test_reports_go_with_the_commit_that_settles_them(shared: CrawlFolder) -> None:
    repository = open_repository(shared)
    connection = repository.connection
    exchange.write_leases(connection, [lease(1, 9, AT), lease(2, 9, AT)])
    for data in (b"one", b"two", b"three"):
        exchange.hand_in(connection, 9, data)
    first, second, _ = exchange.read_reports(connection, [], 10)
    assert [data for _, _, data in exchange.read_reports(connection, [first[0]], 1)] == [b"two"]
    taken = [first[0], second[0]]

    def fail(_: object) -> None:
        exchange.settle(connection, taken, [1])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        repository.commit(also=fail)
    assert len(exchange.read_reports(connection, [], 10)) == 3
    repository.commit(also=lambda _: exchange.settle(connection, taken, [1]))
    assert [data for _, _, data in exchange.read_reports(connection, [], 10)] == [b"three"]
    assert [row[0] for row in exchange.read_leases(connection)] == [2]
    assert exchange.with_reports(connection, [8, 9], []) == {9}
    repository.close()


def test_a_worker_lives_while_it_says_so_and_never_comes_back(connection: PostgresConnection) -> None:
    one, two, three = (exchange.register(connection, "here", pid) for pid in (11, 12, 13))
    assert exchange.say_alive(connection, one)
    exchange.leave(connection, two)
    exchange.dismiss(connection, three)
    assert exchange.read_workers(connection) == [one]
    assert exchange.give_up_dead(connection) == [two]
    assert exchange.known_workers(connection) == {one, three}
    assert not exchange.say_alive(connection, two)
    assert not exchange.say_alive(connection, three)
    connection.execute("UPDATE workers SET lives_until = clock_timestamp() - interval '3 seconds' WHERE id = ?", (one,))
    assert not exchange.say_alive(connection, one)  # others may have its hosts
    assert exchange.give_up_dead(connection) == [one]
    assert exchange.register(connection, "here", 14) > three


def test_notices_are_heard_in_order_and_forgotten(connection: PostgresConnection) -> None:
    exchange.give_notice(connection, b"one")
    exchange.give_notice(connection, b"two")
    (first, _), (_, data) = exchange.read_notices(connection, 0)
    assert data == b"two"
    assert len(exchange.read_notices(connection, first)) == 1
    connection.execute("UPDATE notices SET at = at - interval '1 hour'")
    exchange.give_notice(connection, b"three")
    assert [data for _, data in exchange.read_notices(connection, 0)] == [b"three"]
