"""Forward records: how often each page, as it is indexed now, has each word that searchers ask for.

The index knows the pages of a word, and not the words of a page. When a page is replaced, its record tells what it was
worth before. A small database beside the index, `forward.db`, that may be ahead of it or behind: what a crash leaves
unindexed is indexed again, and its records are dropped then. The file can be deleted at any time, and is made anew
where it is damaged: without a record, a page's next change is measured by the archive, or not at all. While another
process holds it, nothing is written, and the pages that would have been have no record any more.

A word stands there as a 32-bit mark, keyed by the secret of the demand log: who has only this file cannot tell which
word it is, nor test a guess. Without such a secret the marks are plain hashes, and words could be guessed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from bowerbird.index.forward_kernels import NEVER, U32
from bowerbird.index.word_kernels import I64, U8

FORMAT = 1
_TABLES = f"""
CREATE TABLE IF NOT EXISTS records (page INTEGER PRIMARY KEY, generation INTEGER NOT NULL, data BLOB NOT NULL);
-- the generation of the records that are made now; marks of the words that records have been kept of without a break
-- (uint32, ascending), and the generation in which each came (int64)
CREATE TABLE IF NOT EXISTS state (
  one INTEGER PRIMARY KEY, generation INTEGER NOT NULL, marks BLOB NOT NULL, since BLOB NOT NULL
);
INSERT OR IGNORE INTO state VALUES (1, 0, x'', x'');
PRAGMA user_version = {FORMAT};
"""
_SETTINGS = ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -1000", "wal_autocheckpoint = 4000")
_PART = 500
_LOCK_WAIT_S = 0.5  # indexing waits as long
_MOST_STALE = 100_000  # pages; a file that cannot be written for so long is given up
_Failures = (sqlite3.Error, OSError, ValueError, OverflowError, IndexError, TypeError)
_PASSING = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip
"""Errors that say nothing against what the file holds."""


class ForwardRecords:
    """The records of one index. Nothing here fails: what cannot be read is as if it had never been there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        self.failures = 0
        self._entered = False
        self._connection: sqlite3.Connection | None = None
        self._pending: dict[int, tuple[int, bytes] | None] = {}
        self._stale: set[int] = set()  # pages whose records in the file are of older versions, and could not be deleted
        self._unsaved: tuple[int, U32, I64] | None = None  # the state, where the file has an older one

    @property
    def exists(self) -> bool:
        """Is there a file?"""
        return self._connection is not None or self.path.exists()

    @property
    def waiting(self) -> int:
        """Pages whose records are not yet written."""
        return len(self._pending)

    def enter(self, marks: U32) -> I64:
        """Records are about these words from now on; the generation from which on each is known.

        Words that were not there are new: an older record does not tell that a page lacks them. Of words with the
        same mark only the first is kept.
        """
        since = np.full(len(marks), NEVER, dtype=np.int64)
        values, first = np.unique(marks, return_index=True)
        try:
            connection = self._open()
            generation, known, came = self._unsaved or _read_state(connection)
            place = np.searchsorted(known, values).clip(max=max(len(known) - 1, 0))
            fresh = known[place] != values if len(known) else np.ones(len(values), dtype=np.bool_)
            self.generation = max(self.generation, generation) + bool(fresh.any())
            entered = np.full(len(values), self.generation, dtype=np.int64)
            entered[~fresh] = came[place[~fresh]] if len(known) else 0
        except _Failures as error:
            self._fail(error)
            self._entered = False
            return since
        self._unsaved, self._entered = (self.generation, values, entered), True
        try:
            _write_state(connection, *self._unsaved)
            self._unsaved = None
        except _Failures as error:  # if it is only busy, the next commit writes it
            self._fail(error)
        if not self._entered:
            return since
        since[first] = entered
        return since

    def read(self, pages: Sequence[int]) -> tuple[U8, I64, I64]:
        """Records of pages, one after another: (bytes, their ends, generations); generation -1 where there is none."""
        found: dict[int, tuple[int, bytes]] = {}
        wanted = [page for page in pages if page not in self._pending and page not in self._stale]
        try:
            if wanted and self.exists:
                connection = self._open()
                for start in range(0, len(wanted), _PART):
                    part = wanted[start : start + _PART]
                    marks = ",".join("?" * len(part))
                    rows = connection.execute(f"SELECT * FROM records WHERE page IN ({marks})", part)
                    found.update((page, (int(generation), bytes(data))) for page, generation, data in rows)
        except _Failures as error:
            self._fail(error)
            found = {}
        records = [self._pending.get(page) or found.get(page) or (-1, b"") for page in pages]
        ends = np.zeros(len(pages) + 1, dtype=np.int64)
        np.cumsum([len(data) for _, data in records], out=ends[1:])
        generations = np.array([generation for generation, _ in records], dtype=np.int64)
        return np.frombuffer(b"".join([data for _, data in records]), dtype=np.uint8), ends, generations

    def put(self, pages: Iterable[int], data: bytes, ends: I64) -> None:
        """Keep the records of pages, with the next commit; nothing of them before words have been entered."""
        if not self._entered:
            if self.exists:
                self.forget(pages)
            return
        bounds = ends.tolist()
        for page, start, end in zip(pages, bounds[:-1], bounds[1:], strict=True):
            self._pending[page] = (self.generation, data[start:end])

    def forget(self, pages: Iterable[int]) -> None:
        """These pages have no record any more."""
        self._pending.update(dict.fromkeys(pages))

    def commit(self) -> None:
        """Write what changed, in one transaction."""
        pending, self._pending = self._pending, {}
        if not (pending or self._stale) or not self.exists:
            return
        gone = self._stale.difference(pending).union(page for page, record in pending.items() if record is None)
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            if self._unsaved is not None:
                _write_state(connection, *self._unsaved)
            connection.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                ((page, *record) for page, record in pending.items() if record is not None),
            )
            connection.executemany("DELETE FROM records WHERE page = ?", ((page,) for page in gone))
            connection.execute("COMMIT")
        except _Failures as error:  # a record that is older than the page would mislead: better none
            self._stale.update(pending)
            self._fail(error)
        else:
            self._stale, self._unsaved = set(), None

    def close(self) -> None:
        """Let go of the file; what was not committed is dropped."""
        self._pending.clear()
        if self._stale:
            self.commit()
            if self._stale:  # whoever opens the file next could not tell which of its records are stale
                self._renew()
        self._disconnect()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._renew()
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=_LOCK_WAIT_S, check_same_thread=False)
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version not in (0, FORMAT):
                raise sqlite3.DatabaseError(f"format {version}")
            if version != FORMAT:
                connection.executescript(_TABLES)
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _fail(self, error: Exception) -> None:
        if _is_damage(error) or len(self._stale) > _MOST_STALE:
            self._renew()
            return
        self.failures += 1
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _renew(self) -> None:
        """Give the file up; when words are entered again, another is begun."""
        self.failures += 1
        self._entered, self._unsaved = False, None
        self._pending.clear()
        self._stale.clear()
        self._disconnect()
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)


def _is_damage(error: Exception) -> bool:
    """Is the file no database, not whole or of another format? Else it may be read or written another time."""
    code = getattr(error, "sqlite_errorcode", None)
    return not isinstance(error, OSError) and (code is None or code & 0xFF not in _PASSING)


def _read_state(connection: sqlite3.Connection) -> tuple[int, U32, I64]:
    generation, marks, since = connection.execute("SELECT generation, marks, since FROM state").fetchone()
    return int(generation), np.frombuffer(marks, dtype="<u4"), np.frombuffer(since, dtype="<i8")


def _write_state(connection: sqlite3.Connection, generation: int, marks: U32, since: I64) -> None:
    connection.execute(
        "UPDATE state SET generation = ?, marks = ?, since = ?",
        (generation, marks.astype("<u4").tobytes(), since.astype("<i8").tobytes()),
    )
