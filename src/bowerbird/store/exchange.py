"""The tables over which a coordinator and its workers meet: who lives, what is leased to whom, what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bowerbird.store.connection import Connection

LIVES_S = 8.0  # since a worker last said so; after that it has ended itself, and what it held goes to others
MARGIN_S = 2.0  # in which it does
NOTICES_KEPT_S = 600
LEASE_COLUMNS = (
    "token, worker, url, etag, last_modified, flags, url_row, host, kind, decided_at, expires_at, bid, price, terms,"
    " waiting"
)
_WRITE_LEASES = f"INSERT INTO leases ({LEASE_COLUMNS}) VALUES ({','.join('?' * 15)})"
READ_REPORTS = "SELECT id, worker, data FROM reports WHERE id > ? AND id <> ALL(?::bigint[]) ORDER BY id LIMIT ?"
_LIVES_UNTIL = f"clock_timestamp() + interval '{LIVES_S} seconds'"
_LIVES = f"lives_until > clock_timestamp() - interval '{MARGIN_S} seconds'"


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is to fetch."""

    token: int
    url: str
    etag: str
    last_modified: str
    flags: int


# -- of a worker


def register(connection: Connection, machine: str, pid: int) -> int:
    """Become a worker; its number."""
    (number,) = connection.execute(
        f"INSERT INTO workers (machine, pid, lives_until) VALUES (?, ?, {_LIVES_UNTIL}) RETURNING id", (machine, pid)
    ).fetchone()
    return int(number)


def say_alive(connection: Connection, number: int) -> bool:
    """Go on for another while; False where the worker was given up or sent away."""
    found = connection.execute(
        f"UPDATE workers SET lives_until = {_LIVES_UNTIL} WHERE id = ? AND {_LIVES} AND NOT dismissed RETURNING id",
        (number,),
    ).fetchone()
    return found is not None


def leave(connection: Connection, number: int) -> None:
    """This worker fetches nothing any more: what it still holds may be given to others at once."""
    connection.execute("UPDATE workers SET lives_until = '-infinity' WHERE id = ?", (number,))


def read_orders(connection: Connection, number: int, after: int, takes_s: float) -> list[Order]:
    """What was leased to a worker since a token, if it can be fetched, in so many seconds, before the lease ends."""
    rows = connection.execute(
        "SELECT token, url, etag, last_modified, flags FROM leases WHERE worker = ? AND token > ?"
        " AND expires_at > extract(epoch FROM clock_timestamp()) + ? ORDER BY token",
        (number, after, takes_s),
    )
    return [Order(*row) for row in rows]


def hand_in(connection: Connection, number: int, data: bytes) -> None:
    """Leave a batch of reports."""
    connection.execute("INSERT INTO reports (worker, data) VALUES (?, ?)", (number, data))


def read_notices(connection: Connection, after: int) -> list[tuple[int, bytes]]:
    """What all workers are to hear since a notice."""
    return connection.execute("SELECT id, data FROM notices WHERE id > ? ORDER BY id", (after,)).fetchall()


# -- of the coordinator


def read_workers(connection: Connection) -> list[int]:
    """Those who live."""
    living = connection.execute(f"SELECT id FROM workers WHERE {_LIVES} AND NOT dismissed ORDER BY id")
    return [int(number) for (number,) in living]


def known_workers(connection: Connection) -> set[int]:
    """Those who were not given up yet."""
    return {int(number) for (number,) in connection.execute("SELECT id FROM workers")}


def give_up_dead(connection: Connection) -> list[int]:
    """Take out the workers that do not live any more; from here on they cannot come back."""
    dead = connection.execute(f"DELETE FROM workers WHERE NOT ({_LIVES}) RETURNING id").fetchall()
    return [int(number) for (number,) in dead]


def dismiss(connection: Connection, number: int) -> None:
    """Send a worker away: it hears of it within a second."""
    connection.execute("UPDATE workers SET dismissed = TRUE WHERE id = ?", (number,))


def write_leases(connection: Connection, rows: Iterable[Sequence[object]]) -> None:
    """Lease, durably; rows as LEASE_COLUMNS."""
    connection.executemany(_WRITE_LEASES, rows)


def read_leases(connection: Connection) -> list[tuple[object, ...]]:
    """All that is leased; rows as LEASE_COLUMNS."""
    return connection.execute(f"SELECT {LEASE_COLUMNS} FROM leases ORDER BY token").fetchall()


def forget_unwritten(connection: Connection, count: int) -> None:
    """Rows from `count` on were never written down: their numbers are given to other URLs from now on."""
    connection.execute("UPDATE leases SET waiting = -1 WHERE waiting >= ?", (count,))


def read_reports(connection: Connection, taken: list[int], most: int, after: int = 0) -> list[tuple[int, int, bytes]]:
    """Batches that were not taken: number, worker, data. Those of one worker are in the order it left them.

    Beside a long look at the database the rows that were deleted since it began are still there, and a reader from
    the first number on goes over all of them.
    """
    return connection.execute(READ_REPORTS, (after, taken, most)).fetchall()


def with_reports(connection: Connection, workers: list[int], taken: list[int]) -> set[int]:
    """Which of these workers have left reports that were not taken."""
    found = connection.execute(
        "SELECT DISTINCT worker FROM reports WHERE worker = ANY(?::bigint[]) AND id <> ALL(?::bigint[])",
        (workers, taken),
    )
    return {int(number) for (number,) in found}


def settle(connection: Connection, reports: list[int], tokens: list[int]) -> None:
    """These batches are taken, these leases over: in the transaction that makes durable what became of them."""
    connection.execute("DELETE FROM reports WHERE id = ANY(?::bigint[])", (reports,))
    connection.execute("DELETE FROM leases WHERE token = ANY(?::bigint[])", (tokens,))


def give_notice(connection: Connection, data: bytes) -> None:
    """Have all workers hear it."""
    connection.execute("INSERT INTO notices (at, data) VALUES (clock_timestamp(), ?)", (data,))
    connection.execute(f"DELETE FROM notices WHERE at < clock_timestamp() - interval '{NOTICES_KEPT_S} seconds'")
