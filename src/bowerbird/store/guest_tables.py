"""What a crawl folder keeps for somebody else's fetcher: lines (queues), what goes along with URLs, and leases.

The tables are in `state.db`, so that one transaction holds a URL, its place in line and what its fetch taught. They are
made when they are first needed: a folder that only our own crawl knows has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bowerbird.store.connection import Connection

_TABLES = """
-- a line of URLs: settings NULL or 0 where nobody set them
CREATE TABLE IF NOT EXISTS guest_queues (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, delay_s REAL, blocked_until REAL NOT NULL DEFAULT 0,
  most INTEGER NOT NULL DEFAULT 0, produced_at REAL NOT NULL DEFAULT 0
);
-- a URL in a line: when it was put there, whether it is done for good, its spelling where that is not the canonical
-- one, and what its owner keeps with it
CREATE TABLE IF NOT EXISTS guest_urls (
  url INTEGER PRIMARY KEY, queue INTEGER NOT NULL, created INTEGER NOT NULL, done INTEGER NOT NULL, given TEXT,
  metadata BLOB
);
-- a URL that was handed out, and the decision that led to it
CREATE TABLE IF NOT EXISTS guest_leases (
  url INTEGER PRIMARY KEY, until REAL NOT NULL, decided_at REAL NOT NULL, bid REAL NOT NULL, terms TEXT NOT NULL
);
"""


GUEST_META = "guest_"  # begins the name of what a folder keeps for another program beside the tables


def make_tables(connection: Connection, tables: str) -> None:
    """All of them, or none."""
    with connection.in_turn():
        for table in tables.split(";\n"):
            if table.strip():
                connection.execute(table)


def make_guest_tables(connection: Connection) -> None:
    """Make the tables where there are none."""
    make_tables(connection, _TABLES)


def drop_guest_tables(connection: Connection) -> None:
    """Nobody else fetches for this crawl any more."""
    with connection.in_turn():
        for table in ("guest_queues", "guest_urls", "guest_leases", "guest_requests"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute("DELETE FROM meta WHERE key >= ? AND key < ?", (GUEST_META, GUEST_META + "~"))


@dataclass(slots=True)
class GuestLease:
    """A URL that somebody is fetching."""

    until: float
    decided_at: float
    bid: float
    terms: str


#: row, queue, created, done, given, metadata
GuestUrl = tuple[int, int, int, int, str | None, bytes | None]


class GuestWrites:
    """What the next commit writes to these tables."""

    def __init__(self) -> None:
        self.urls: dict[int, GuestUrl] = {}
        self.dropped: set[int] = set()
        self.queues: dict[int, tuple[object, ...]] = {}
        self.dropped_queues: set[int] = set()
        self.leases: dict[int, GuestLease] = {}
        self.ended: set[int] = set()

    def __bool__(self) -> bool:
        return any((self.urls, self.dropped, self.queues, self.dropped_queues, self.leases, self.ended))

    def write(self, connection: Connection) -> None:
        """Within the caller's transaction. A row is either written or dropped, by what was last said of it."""
        many = connection.executemany
        many("DELETE FROM guest_leases WHERE url = ?", ((row,) for row in self.ended))
        many(
            "INSERT OR REPLACE INTO guest_leases VALUES (?,?,?,?,?)",
            ((row, lease.until, lease.decided_at, lease.bid, lease.terms) for row, lease in self.leases.items()),
        )
        many("DELETE FROM guest_urls WHERE url = ?", ((row,) for row in self.dropped))
        many("INSERT OR REPLACE INTO guest_urls VALUES (?,?,?,?,?,?)", self.urls.values())
        many("DELETE FROM guest_queues WHERE id = ?", ((number,) for number in self.dropped_queues))
        many("INSERT OR REPLACE INTO guest_queues VALUES (?,?,?,?,?,?)", self.queues.values())

    def clear(self) -> None:
        """It is written."""
        for part in (self.urls, self.queues, self.leases):
            part.clear()
        for rows in (self.dropped, self.dropped_queues, self.ended):
            rows.clear()


def read_queues(connection: Connection) -> list[tuple[int, str, float | None, float, int, float]]:
    """All lines: number, key, delay, blocked until, limit, when something of it was last handed out."""
    return connection.execute("SELECT * FROM guest_queues ORDER BY id").fetchall()


def read_places(connection: Connection) -> Iterator[Sequence[tuple[int, int, int, int, int]]]:
    """Row, queue, created, done and bytes of metadata of every URL in a line, many at a time."""
    yield from connection.scan(
        "SELECT url, queue, created, done, coalesce(length(metadata), 0) FROM guest_urls ORDER BY url", rows=100_000
    )


def read_leases(connection: Connection) -> dict[int, GuestLease]:
    """Who has what until when, also where that is over."""
    return {int(row): GuestLease(*rest) for row, *rest in connection.execute("SELECT * FROM guest_leases")}


def read_belongings(connection: Connection, rows: Iterable[int]) -> dict[int, tuple[str | None, bytes | None]]:
    """The given spelling and the metadata of URLs; those without either are left out."""
    wanted, found = list(rows), {}
    for first in range(0, len(wanted), 500):
        part = wanted[first : first + 500]
        marks = ",".join("?" * len(part))
        for row, given, metadata in connection.execute(
            f"SELECT url, given, metadata FROM guest_urls WHERE url IN ({marks})"
            " AND (given IS NOT NULL OR metadata IS NOT NULL)",
            part,
        ):
            found[int(row)] = (given, metadata)
    return found
