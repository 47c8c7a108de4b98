"""The demand database: its tables and migrations. Several processes may write; each transaction is short."""

from __future__ import annotations

import secrets
import sqlite3
import time
from pathlib import Path

from bowerbird.demand.digests import Sealer
from bowerbird.model.errors import BowerbirdError, DiskFullError, FolderError

NAME = "demand.db"
BUSY_S = 30.0

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- one row a query; key = keyed hash of its text; the text only once it was asked often enough.
-- weight = sum of 2^(-(last_at - t)/half-life) over the times t it was asked
CREATE TABLE queries (
  key INTEGER PRIMARY KEY, text TEXT, count INTEGER NOT NULL, weight REAL NOT NULL, last_at REAL NOT NULL,
  impressions INTEGER NOT NULL DEFAULT 0, clicks INTEGER NOT NULL DEFAULT 0, results INTEGER, results_at REAL
);

-- one row a URL that was shown or clicked; weight as above, of its clicks
CREATE TABLE pages (
  key INTEGER PRIMARY KEY, url TEXT NOT NULL, clicks INTEGER NOT NULL, weight REAL NOT NULL, last_at REAL NOT NULL
);

CREATE TABLE ranks (
  query INTEGER NOT NULL, page INTEGER NOT NULL, rank INTEGER NOT NULL,
  impressions INTEGER NOT NULL, clicks INTEGER NOT NULL, PRIMARY KEY (query, page, rank)
) WITHOUT ROWID;

-- clicks of known time in bins of 20 minutes
CREATE TABLE click_bins (
  page INTEGER NOT NULL, bin INTEGER NOT NULL, clicks INTEGER NOT NULL, PRIMARY KEY (page, bin)
) WITHOUT ROWID;

-- all queries and clicks of known time, in bins of 20 minutes
CREATE TABLE activity (bin INTEGER PRIMARY KEY, asked INTEGER NOT NULL, clicks INTEGER NOT NULL);

-- keyed hash of an imported query's id -> query, so that clicks imported later find their query
CREATE TABLE query_ids (id INTEGER PRIMARY KEY, query INTEGER NOT NULL);

-- what was imported: positions count bytes after decompression
CREATE TABLE imports (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, format TEXT NOT NULL, started_at REAL NOT NULL,
  head_bytes INTEGER NOT NULL, head BLOB NOT NULL, lines INTEGER NOT NULL, bad INTEGER NOT NULL,
  complete INTEGER NOT NULL
);
CREATE TABLE checkpoints (
  import INTEGER NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, lines INTEGER NOT NULL,
  PRIMARY KEY (import, position), UNIQUE (position, digest)
) WITHOUT ROWID;
-- digests at doubling positions, by which an older, shorter copy of a file is known
CREATE TABLE marks (
  import INTEGER NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (import, position)
) WITHOUT ROWID;
"""

_SECOND = """
-- a database of the first days may lack it
CREATE TABLE IF NOT EXISTS activity (bin INTEGER PRIMARY KEY, asked INTEGER NOT NULL, clicks INTEGER NOT NULL);

-- the last time that a result was shown or clicked at a rank, so that old rows can go
ALTER TABLE ranks ADD COLUMN last_at REAL NOT NULL DEFAULT 0;
UPDATE ranks SET last_at = coalesce((SELECT last_at FROM queries WHERE key = query), 0);

-- digests at the end of each line between two checkpoints, by which an older, shorter copy of a file is known;
-- digest = that of everything before the position
DROP TABLE IF EXISTS marks;
CREATE TABLE traces (
  id INTEGER PRIMARY KEY, import INTEGER NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, ends BLOB NOT NULL
);
CREATE INDEX traces_by_place ON traces (position, digest);
CREATE INDEX traces_by_import ON traces (import);
"""

#: the n-th entry takes a database from version n to n + 1
MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND)
VERSION = len(MIGRATIONS)
TABLES = frozenset(
    ("meta", "queries", "pages", "ranks", "click_bins", "activity", "query_ids", "imports", "checkpoints", "traces")
)

_WRITER = (
    "page_size = 8192",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 8000",
    "cache_size = -2000",  # kilobytes
    "temp_store = MEMORY",  # a text that may not be stored is not spilled either
    "secure_delete = ON",
)
_READER = ("query_only = ON", "cache_size = -2000", "temp_store = MEMORY")


def open_database(path: Path, *, write: bool) -> sqlite3.Connection:
    """Connect; a writer makes the database where there is none and brings it up to date."""
    connection = _connect(path, write=write)
    try:
        version = _version(connection, path)
        if version > VERSION:
            raise FolderError(
                f"{path}: written by a newer Bowerbird (format {version}; this one knows up to {VERSION}). "
                "Upgrade Bowerbird to open it."
            )
        if write:
            _migrate(connection, path)
        elif version < VERSION:
            raise FolderError(
                f"{path}: format {version}, older than this Bowerbird's {VERSION}. "
                f"`bowerbird serve {path.parent}` brings it up to date."
            )
        _check_tables(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise unusable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, *, write: bool) -> sqlite3.Connection:
    mode = "rwc" if write else "rw"  # a reader, too, writes to the index of the write-ahead log
    connection = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_S,
            check_same_thread=False,
        )
        for setting in _WRITER if write else _READER:
            _set(connection, setting)
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        raise unusable(path, error) from error
    return connection


def _set(connection: sqlite3.Connection, setting: str) -> None:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
            return
        except sqlite3.OperationalError as error:
            # The change to a write-ahead log does not wait for another process that makes the same change.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError as error:
        raise unusable(path, error) from error


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection, path) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, path)  # another process may have been quicker
        if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise FolderError(f"{path}: a database, but not one of queries. Move it away.")
        for step in range(version, VERSION):
            for statement in MIGRATIONS[step].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            if step == 0:
                connection.execute("INSERT INTO meta VALUES ('secret', ?)", (secrets.token_bytes(32),))
            elif step == 1:
                _seal_digests(connection)
            connection.execute(f"PRAGMA user_version = {step + 1}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _seal_digests(connection: sqlite3.Connection) -> None:
    """The digests of imports were not keyed in the first format."""
    (secret,) = connection.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()
    connection.create_function("seal", 1, Sealer(secret).seal, deterministic=True)
    connection.execute("UPDATE imports SET head = seal(head)")
    connection.execute("UPDATE checkpoints SET digest = seal(digest)")


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if missing := sorted(TABLES - found):
        raise FolderError(
            f"{path}: it has no table {missing[0]!r}; it was damaged, or made by a version in development. "
            "Move it away; a new one is made, and logs can be imported again."
        )


def unusable(path: Path, error: sqlite3.DatabaseError) -> BowerbirdError:
    """What the database refused, in words for people."""
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return DiskFullError(f"{path}: the disk took no more ({text}). Free some space and start again.")
    if "locked" in text:
        return FolderError(f"{path}: another process holds it. Try again when that one has ended.")
    return FolderError(f"{path}: cannot be used ({text}). Check its permissions, or restore it from a copy.")
