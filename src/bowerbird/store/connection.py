"""What the store asks of a database: the part of Python's way with databases that both kinds of store offer.

Statements are written once, in the SQL that SQLite and PostgreSQL share, with `?` for values; what PostgreSQL spells
otherwise is in `store/postgres.py`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

SCAN_ROWS = 20_000
ASKED_AT_ONCE = 500


class Rows(Protocol):
    """What a question brought."""

    def fetchone(self) -> Any:
        """The next row; None after the last."""

    def fetchall(self) -> list[Any]:
        """All the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A crawl's database as its store uses it. Outside BEGIN and COMMIT every statement stands for itself."""

    @property
    def in_transaction(self) -> bool:
        """Is there a BEGIN without its COMMIT?"""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows:
        """Ask or do one thing; the rows are at hand at once."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Do one thing with each of many rows."""

    def scan(self, sql: str, values: Sequence[Any] = (), rows: int = SCAN_ROWS) -> Iterator[list[Any]]:
        """Ask for more than fits in memory: the rows in pieces of at most so many, of one moment."""

    def ask_of(self, select: str, numbers: Sequence[int], order: str = "") -> Iterator[Any]:
        """What is known of many numbers: `select` ends with the column that has them."""

    def in_turn(self) -> AbstractContextManager[None]:
        """A transaction that no other of its kind goes beside."""

    def now(self) -> float:
        """What time it is for this crawl, in seconds since 1970, whatever this machine's clock says."""

    def close(self) -> None:
        """Let go of it."""


class EmbeddedConnection(sqlite3.Connection):
    """The database in the crawl folder."""

    def ask_of(self, select: str, numbers: Sequence[int], order: str = "") -> Iterator[Any]:
        """As `Connection.ask_of`, in as few questions as SQLite takes."""
        for first in range(0, len(numbers), ASKED_AT_ONCE):
            part = numbers[first : first + ASKED_AT_ONCE]
            yield from self.execute(f"{select} IN ({','.join('?' * len(part))}){order}", part)

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """As `Connection.in_turn`; in one file all who write take turns."""
        self.execute("BEGIN IMMEDIATE")
        with self:
            yield

    def now(self) -> float:
        """As `Connection.now`: of one machine it is the only clock."""
        return time.time()

    def scan(self, sql: str, values: Sequence[Any] = (), rows: int = SCAN_ROWS) -> Iterator[list[Any]]:
        """As `Connection.scan`."""
        cursor = self.execute(sql, values)
        while part := cursor.fetchmany(rows):
            yield part


def upsert(table: str, columns: str, key: str) -> str:
    """A statement that puts in a row, or in its place where the key is there already.

    >>> upsert("hints", "url, modified", "url")
    'INSERT INTO hints (url, modified) VALUES (?,?) ON CONFLICT (url) DO UPDATE SET modified = excluded.modified'
    """
    names, keys = columns.split(", "), key.split(", ")
    marks = ",".join("?" * len(names))
    change = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {change}"
