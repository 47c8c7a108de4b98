"""The state database: its tables, and the migrations that bring an older folder up to date."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bowerbird.model.errors import BowerbirdError, DiskFullError, FolderError
from bowerbird.store.connection import Connection, EmbeddedConnection
from bowerbird.store.folder import CrawlFolder

_FIRST = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- every URL ever known; id = row number in the columns; written once
CREATE TABLE urls (
  id INTEGER PRIMARY KEY, url TEXT NOT NULL, hash INTEGER NOT NULL, host INTEGER NOT NULL,
  kind INTEGER NOT NULL, depth INTEGER NOT NULL, hops INTEGER NOT NULL,
  first_seen REAL NOT NULL, source INTEGER NOT NULL  -- the URL that led here, -1 = given by a person
);

-- an origin: scheme, name, port
CREATE TABLE hosts (
  id INTEGER PRIMARY KEY, origin TEXT NOT NULL, domain TEXT NOT NULL,
  robots_at REAL, robots_status TEXT, robots_body BLOB, crawl_delay_s REAL,
  errors INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0,
  pages INTEGER NOT NULL DEFAULT 0, duplicates INTEGER NOT NULL DEFAULT 0, last_fetch REAL NOT NULL DEFAULT 0
);

-- the journal: one row a decision, with its bid and what became of it; append-only
CREATE TABLE fetches (
  id INTEGER PRIMARY KEY, url INTEGER NOT NULL, kind INTEGER NOT NULL,
  decided_at REAL NOT NULL, bid REAL NOT NULL, price REAL NOT NULL, terms TEXT NOT NULL,
  fetched_at REAL NOT NULL, elapsed_s REAL NOT NULL, outcome INTEGER NOT NULL, status INTEGER NOT NULL,
  wire_bytes INTEGER NOT NULL, changed INTEGER NOT NULL, resemblance REAL, content_hash INTEGER NOT NULL,
  state INTEGER NOT NULL, errors INTEGER NOT NULL, interval_s REAL NOT NULL, not_before REAL NOT NULL,
  file INTEGER, offset INTEGER, length INTEGER, target INTEGER, error TEXT
);
CREATE INDEX fetches_of_url ON fetches (url);

-- the current version of each fetched URL: what a conditional GET and a change test need
CREATE TABLE versions (
  url INTEGER PRIMARY KEY, etag TEXT NOT NULL, last_modified TEXT NOT NULL, sketch BLOB,
  fetched_at REAL NOT NULL, media TEXT NOT NULL, noindex INTEGER NOT NULL, duplicate_of INTEGER,
  file INTEGER, offset INTEGER, length INTEGER
);

-- out-links of a page: row numbers (uint32), and first/last seen where they differ from the row's
CREATE TABLE links (
  source INTEGER PRIMARY KEY, seen_at REAL NOT NULL, targets BLOB NOT NULL, first_seen BLOB, last_seen BLOB
);

-- the first few distinct anchor texts that point to a URL
CREATE TABLE anchors (id INTEGER PRIMARY KEY, target INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX anchors_of_target ON anchors (target);

CREATE TABLE archive_files (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
CREATE TABLE patterns (
  id INTEGER PRIMARY KEY, found INTEGER NOT NULL, novel INTEGER NOT NULL, duplicate INTEGER NOT NULL
);
-- when a sitemap or feed said a URL was last modified
CREATE TABLE hints (url INTEGER PRIMARY KEY, modified INTEGER NOT NULL);
-- sums over the journal, kept with it so that nobody has to count it
CREATE TABLE totals (
  kind INTEGER NOT NULL, outcome INTEGER NOT NULL, fetches INTEGER NOT NULL, wire_bytes INTEGER NOT NULL,
  PRIMARY KEY (kind, outcome)
) WITHOUT ROWID;
CREATE TABLE seeds (url TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE inbox (id INTEGER PRIMARY KEY, verb TEXT NOT NULL, url TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, started_at REAL NOT NULL, ended_at REAL, policy TEXT NOT NULL,
  fetched INTEGER NOT NULL DEFAULT 0
);
"""

_GAINS = """
-- what refreshes gained searchers, measured while they were indexed: a share of the quality, the words whose score
-- changed, and sealed marks (uint64) of the queries that gained most with their shares (float32)
CREATE TABLE gains (
  page INTEGER NOT NULL, at REAL NOT NULL, since REAL NOT NULL, gain REAL NOT NULL, words INTEGER NOT NULL,
  marks BLOB NOT NULL, shares BLOB NOT NULL, PRIMARY KEY (page, at)
) WITHOUT ROWID;
"""

_VALIDATORS = """
-- the Last-Modified of an answer (seconds; NULL = none), and what its validators did since the version before: bits of
-- model.validators.Validators
ALTER TABLE fetches ADD COLUMN modified INTEGER;
ALTER TABLE fetches ADD COLUMN validators INTEGER NOT NULL DEFAULT 0;
"""

_HUB_HINTS = """
-- what a feed or sitemap says of itself: seconds between updates (0 = nothing), and its WebSub hub
CREATE TABLE hub_hints (url INTEGER PRIMARY KEY, period_s REAL NOT NULL, websub TEXT NOT NULL);
"""

#: rows that each commit found new links to, since the last checkpoint: so that the next start need not count all links
_NEW_LINKS = """
CREATE TABLE new_links (id INTEGER PRIMARY KEY, targets BLOB NOT NULL);
"""

#: the n-th entry takes a database from version n to n + 1
MIGRATIONS: tuple[str, ...] = (_FIRST, _GAINS, _VALIDATORS, _HUB_HINTS, _NEW_LINKS)
VERSION = len(MIGRATIONS)

#: kilobytes: what is read again soon is in memory anyway (store/columns.py, the system's own cache of files)
_READER = ("query_only = ON", "cache_size = -1000", "temp_store = MEMORY")
_WRITER = (
    "page_size = 8192",  # takes effect in a new file only
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 4000",
    "cache_size = -2000",
    "temp_store = MEMORY",
)


def connect(path: Path, *, write: bool) -> EmbeddedConnection:
    """Open the database; readers never block the writer (write-ahead log), commits are synced to disk."""
    mode = "rwc" if write else "rw"  # a reader makes no file; but it writes to the log's index, so "ro" will not do
    name = f"{path.absolute().as_uri()}?mode={mode}"
    settings = _WRITER if write else _READER
    connection = None
    try:
        connection = sqlite3.connect(
            name, uri=True, isolation_level=None, timeout=30, check_same_thread=False, factory=EmbeddedConnection
        )
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.DatabaseError as error:
        if connection is not None:
            connection.close()
        raise _unusable(path, error) from error
    return connection


def _unusable(path: Path, error: sqlite3.DatabaseError) -> BowerbirdError:
    if "full" in str(error) or "disk I/O" in str(error):
        return DiskFullError(f"{path}: the disk took no more ({error}). Free some space and start again.")
    if "readonly" in str(error):
        return FolderError(
            f"{path}: may not be written, and even those who only read it write to its log. "
            "Change the permissions of the folder, or copy it to where you may write."
        )
    return FolderError(f"{path}: cannot be opened ({error}). Check its permissions, or restore it from a copy.")


def check_version(connection: sqlite3.Connection, path: Path) -> int:
    """The database's version; raises when it is newer than this program or not ours."""
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    if version > VERSION:
        raise FolderError(
            f"{path}: written by a newer Bowerbird (format {version}; this one knows up to {VERSION}). "
            "Upgrade Bowerbird to open it."
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database up to date, one version in one transaction each."""
    version = check_version(connection, path)
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise FolderError(f"{path}: a database, but not of a crawl. Move it away, or choose another folder.")
    for step in range(version, VERSION):
        connection.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[step]} PRAGMA user_version = {step + 1}; COMMIT;")


def open_database(path: Path, *, write: bool) -> EmbeddedConnection:
    """Connect, and see to the version: a writer brings the database up to date, a reader needs it to be."""
    connection = connect(path, write=write)
    try:
        if write:
            migrate(connection, path)
        elif (version := check_version(connection, path)) < VERSION:
            raise FolderError(
                f"{path}: format {version}, older than this Bowerbird's {VERSION}. "
                f"`bowerbird crawl {path.parent}` brings it up to date."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def read_now(folder: CrawlFolder) -> float:
    """What time it is for a crawl: by its database's clock where several machines have one each."""
    with closing(open_state(folder, write=False)) as connection:
        return connection.now()


def open_state(folder: CrawlFolder, *, write: bool) -> Connection:
    """The database of a crawl folder, wherever it is."""
    if folder.store_url is None:
        return open_database(folder.database, write=write)
    from bowerbird.store.postgres_schema import open_postgres

    return open_postgres(folder.store_url, write=write)
