"""Forward records: how often each page, as it is indexed now, has each word that searchers ask for.

The index knows the pages of a word, and not the words of a page. When a page is replaced, its record tells what it was
worth before. A small database beside the index (`forward.db`), written after each commit of the index. It can be
deleted at any time, and is made anew where it cannot be read: without a record, a page's next change is not measured.

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
_SETTINGS = ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -4000", "wal_autocheckpoint = 4000")
_PART = 500
_Failures = (sqlite3.Error, OSError, ValueError, OverflowError, IndexError, TypeError)


class ForwardRecords:
    """The records of one index. Nothing here fails: what cannot be read is as if it had never been there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        self.failures = 0
        self._entered = False
        self._connection: sqlite3.Connection | None = None
        self._pending: dict[int, tuple[int, bytes] | None] = {}

    @property
    def exists(self) -> bool:
        """Is there a file?"""
        return self._connection is not None or self.path.exists()

    def enter(self, marks: U32) -> I64:
        """Records are about these words from now on; the generation from which on each is known.

        Words that were not there are new: an older record does not tell that a page lacks them. Of words with the
        same mark only the first is kept.
        """
        since = np.full(len(marks), NEVER, dtype=np.int64)
        values, first = np.unique(marks, return_index=True)
        try:
            connection = self._open()
            generation, *blobs = connection.execute("SELECT generation, marks, since FROM state").fetchone()
            known, came = np.frombuffer(blobs[0], dtype="<u4"), np.frombuffer(blobs[1], dtype="<i8")
            place = np.searchsorted(known, values).clip(max=max(len(known) - 1, 0))
            fresh = known[place] != values if len(known) else np.ones(len(values), dtype=np.bool_)
            self.generation = max(self.generation, int(generation)) + bool(fresh.any())
            entered = np.full(len(values), self.generation, dtype="<i8")
            entered[~fresh] = came[place[~fresh]] if len(known) else 0
            connection.execute(
                "UPDATE state SET generation = ?, marks = ?, since = ?",
                (self.generation, values.astype("<u4").tobytes(), entered.tobytes()),
            )
        except _Failures:
            self._renew()
            return since
        self._entered = True
        since[first] = entered
        return since

    def read(self, pages: Sequence[int]) -> tuple[U8, I64, I64]:
        """Records of pages, one after another: (bytes, their ends, generations); generation -1 where there is none."""
        found: dict[int, tuple[int, bytes]] = {}
        wanted = [page for page in pages if page not in self._pending]
        try:
            if wanted and self.exists:
                connection = self._open()
                for start in range(0, len(wanted), _PART):
                    part = wanted[start : start + _PART]
                    marks = ",".join("?" * len(part))
                    rows = connection.execute(f"SELECT * FROM records WHERE page IN ({marks})", part)
                    found.update((page, (int(generation), bytes(data))) for page, generation, data in rows)
        except _Failures:
            self._renew()
            found = {}
        records = [self._pending.get(page) or found.get(page) or (-1, b"") for page in pages]
        ends = np.zeros(len(pages) + 1, dtype=np.int64)
        np.cumsum([len(data) for _, data in records], out=ends[1:])
        generations = np.array([generation for generation, _ in records], dtype=np.int64)
        return np.frombuffer(b"".join([data for _, data in records]), dtype=np.uint8), ends, generations

    def put(self, pages: Iterable[int], data: bytes, ends: I64) -> None:
        """Keep the records of pages, with the next commit; nothing of them before words have been entered."""
        if not self._entered:
            return
        bounds = ends.tolist()
        for page, start, end in zip(pages, bounds[:-1], bounds[1:], strict=True):
            self._pending[page] = (self.generation, data[start:end])

    def forget(self, pages: Iterable[int]) -> None:
        """These pages have no record any more."""
        self._pending.update(dict.fromkeys(pages))

    def commit(self) -> None:
        """Write what changed, in one transaction; after the index has committed."""
        pending, self._pending = self._pending, {}
        if not pending or not self.exists:
            return
        try:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                ((page, *record) for page, record in pending.items() if record is not None),
            )
            connection.executemany(
                "DELETE FROM records WHERE page = ?", ((page,) for page, record in pending.items() if record is None)
            )
            connection.execute("COMMIT")
        except _Failures:  # a record that is older than the page would mislead: better none
            self._renew()

    def close(self) -> None:
        """Let go of the file; what was not committed is dropped."""
        connection, self._connection = self._connection, None
        self._pending.clear()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError:  # not a database, or damaged
                self._renew()
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=5, check_same_thread=False)
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if version not in (0, FORMAT):
                raise sqlite3.DatabaseError(f"format {version}")
            connection.executescript(_TABLES)
        except BaseException:
            connection.close()
            raise
        return connection

    def _renew(self) -> None:
        """Give the file up; when words are entered again, another is begun."""
        self.failures += 1
        self._entered = False
        self.close()
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
