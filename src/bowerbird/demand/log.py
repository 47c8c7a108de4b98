"""The demand log: queries, impressions and clicks of a crawl folder, kept as sums and without persons.

Guarantees: one `record` is one transaction; sums do not depend on the order of events; the text of a query is
nowhere in the files before the query was asked `min_occurrences` times.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bowerbird.demand.digests import Sealer
from bowerbird.demand.events import Event
from bowerbird.demand.pruning import SWEEP_EVERY, sweep
from bowerbird.demand.schema import BUSY_S, open_database, unusable
from bowerbird.demand.tally import BIN_S, KeyMaker, Tally, decay
from bowerbird.model.errors import FolderError

DAY_S = 86_400.0

_DECAYED = """CASE
  WHEN excluded.last_at = last_at THEN weight + excluded.weight
  WHEN excluded.last_at > last_at THEN
    excluded.weight + CASE weight WHEN 0 THEN 0 ELSE weight * decay(excluded.last_at - last_at) END
  ELSE weight + CASE excluded.weight WHEN 0 THEN 0 ELSE excluded.weight * decay(last_at - excluded.last_at) END END"""
_ASK = f"""
INSERT INTO queries (key, text, count, weight, last_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
  text = coalesce(text, CASE WHEN count + excluded.count >= ? THEN ? END), count = count + excluded.count,
  weight = {_DECAYED}, last_at = max(last_at, excluded.last_at)"""
_USE = """
INSERT INTO queries (key, count, weight, last_at, impressions, clicks) VALUES (?, 0, 0, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
  weight = CASE WHEN excluded.last_at > last_at AND weight > 0
    THEN weight * decay(excluded.last_at - last_at) ELSE weight END,
  last_at = max(last_at, excluded.last_at),
  impressions = impressions + excluded.impressions, clicks = clicks + excluded.clicks"""
_FOUND = """
UPDATE queries SET results = ?, results_at = ?
WHERE key = ? AND (results_at IS NULL OR results_at < ? OR (results_at = ? AND results < ?))"""
_CLICK = f"""
INSERT INTO pages (key, url, clicks, weight, last_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
  clicks = clicks + excluded.clicks, weight = {_DECAYED}, last_at = max(last_at, excluded.last_at)"""
_RANK = """
INSERT INTO ranks (query, page, rank, impressions, clicks, last_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (query, page, rank) DO UPDATE SET
  impressions = impressions + excluded.impressions, clicks = clicks + excluded.clicks,
  last_at = max(last_at, excluded.last_at)"""
_ACTIVITY = """
INSERT INTO activity VALUES (?, ?, ?)
ON CONFLICT (bin) DO UPDATE SET asked = asked + excluded.asked, clicks = clicks + excluded.clicks"""
_BIN = """
INSERT INTO click_bins VALUES (?, ?, ?) ON CONFLICT (page, bin) DO UPDATE SET clicks = clicks + excluded.clicks"""

# log2 of the decayed weight, but for a summand that is the same for all: it needs no call into Python for a row.
_SCORE = "CASE WHEN weight > 0 THEN log2(weight) + last_at / :half_life_s ELSE -1e300 END"
_KNOWN = "count >= :least AND text IS NOT NULL"
# Scores are rounded otherwise than weights: a margin first, then the exact order.
_TOP = f"""
  FROM queries WHERE {_KNOWN} AND {_SCORE} >= -1e-9 + coalesce((
    SELECT {_SCORE} FROM queries WHERE {_KNOWN} ORDER BY 1 DESC LIMIT 1 OFFSET :limit - 1), -1e300)
  ORDER BY weight * decay(:now - last_at) DESC, text LIMIT :limit"""
MARK_KEY = "mark key"
MARK_KEY_BYTES = 32
ERASE_TRIES = 3
ERASE_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class QueryStats:
    """One query of the log."""

    text: str
    count: int  # how often asked
    weight: float  # the same, decayed to the time asked for
    impressions: int  # results shown for it
    clicks: int
    results: int | None  # pages found when it was last asked, where known
    last_at: float


class RankCounts(NamedTuple):
    """How often which page was shown and clicked at which rank of which query; rows of equal length."""

    query: NDArray[np.int64]
    page: NDArray[np.int64]
    rank: NDArray[np.int64]
    impressions: NDArray[np.int64]
    clicks: NDArray[np.int64]


class QueryColumns(NamedTuple):
    """Texts and decayed frequencies, in no order."""

    texts: list[str]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole log, rare queries included."""

    asked: int
    distinct: int
    known: int  # distinct queries whose text is stored
    impressions: int
    clicks: int


def renew_mark_key(connection: sqlite3.Connection) -> None:
    """Make what marks of queries there are outside the log mean nothing; inside the caller's transaction."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (MARK_KEY, secrets.token_bytes(MARK_KEY_BYTES)))


class DemandLog:
    """The log of one crawl folder. Make one with `open`; one object is used by one thread at a time."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection | None, half_life_s: float, min_occurrences: int
    ) -> None:
        self.path = path
        self.half_life_s = half_life_s
        self.min_occurrences = min_occurrences
        self._connection = connection
        secret = self._value("secret")
        self._secret: bytes = secret if secret is not None else secrets.token_bytes(32)
        self.key_of = KeyMaker(self._secret)
        self.sealer = Sealer(self._secret)
        self._applied = 0
        if connection is not None:
            connection.create_function("decay", 1, lambda age_s: decay(age_s, half_life_s), deterministic=True)
            try:
                connection.execute("SELECT log2(1)")
            except sqlite3.OperationalError:  # SQLite may be built without
                connection.create_function("log2", 1, math.log2, deterministic=True)

    @classmethod
    def open(cls, path: Path, *, write: bool, half_life_s: float = 30 * DAY_S, min_occurrences: int = 2) -> DemandLog:
        """Open `demand.db`; for writing it is made where there is none, for reading it is then simply empty."""
        if not half_life_s > 0 or min_occurrences < 1:
            raise ValueError(f"half_life_s {half_life_s} and min_occurrences {min_occurrences} must be positive")
        if not path.parent.is_dir():
            raise FolderError(f"{path.parent}: no such folder. `bowerbird init {path.parent} --seed URL` makes one.")
        if not write and not path.exists():
            return cls(path, None, half_life_s, min_occurrences)
        log = cls(path, open_database(path, write=write), half_life_s, min_occurrences)
        if write:
            try:
                log._keep_privacy()
            except BaseException:
                log.close()
                raise
        return log

    def record(self, events: Iterable[Event]) -> None:
        """Add events, all or none."""
        tally = self.tally()
        for event in events:
            tally.add(event)
        self.apply(tally)

    def tally(self) -> Tally:
        """An empty batch to add events to."""
        return Tally(self.key_of, self.half_life_s)

    def apply(self, tally: Tally, also: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Write a batch in one transaction; `also` is done within it."""
        if not tally and also is None:
            return
        connection = self._writing()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._write(connection, tally)
                if also is not None:
                    also(connection)
                if self._applied % SWEEP_EVERY == 0:
                    sweep(connection)
                connection.execute("COMMIT")
                self._applied += 1
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
            raise unusable(self.path, error) from error

    def _write(self, connection: sqlite3.Connection, tally: Tally) -> None:
        least, many = self.min_occurrences, connection.executemany
        # In the order of the keys: neighbours share a page of the database.
        asked = [
            (key, text if sums[0] >= least else None, *sums, least, text)
            for key, (text, sums) in zip(self.key_of.many(tally.asked), tally.asked.items(), strict=True)
        ]
        asked.sort(key=lambda row: row[0])
        many(_ASK, asked)
        many(_FOUND, [(n, at, self.key_of(text), at, at, n) for text, (at, n) in tally.found.items()])
        many(_USE, sorted((key, at, shown, clicked) for key, (shown, clicked, at) in tally.query_uses.items()))
        page_keys = dict(zip(tally.page_clicks, self.key_of.many(tally.page_clicks), strict=True))
        many(_CLICK, sorted((page_keys[url], url, *sums) for url, sums in tally.page_clicks.items()))
        many(_RANK, sorted((query, page_keys[url], rank, *n) for (query, url, rank), n in tally.ranks.items()))
        many(_BIN, sorted((page_keys[url], number, clicks) for (url, number), clicks in tally.bins.items()))
        many(_ACTIVITY, [(number, *counts) for number, counts in sorted(tally.activity.items())])
        many("INSERT OR IGNORE INTO query_ids VALUES (?, ?)", sorted(tally.query_ids.items()))

    # -- reading

    def queries(self, now: float, limit: int | None = None) -> list[QueryStats]:
        """Queries that were asked often enough to be known, most frequent now first (ties: by text)."""
        rows = self._known("text, count, weight, impressions, clicks, results, last_at", now, limit)
        half_life_s = self.half_life_s
        stats = [
            QueryStats(text, count, weight * decay(now - last_at, half_life_s), shown, clicks, results, last_at)
            for text, count, weight, shown, clicks, results, last_at in rows
        ]
        stats.sort(key=lambda found: (-found.weight, found.text))
        return stats

    def query_columns(self, now: float, limit: int | None = None) -> QueryColumns:
        """As `queries`, only texts and weights, unsorted: the quick way to a workload."""
        rows = self._known("text, weight, last_at", now, limit)
        weights = np.array([row[1] for row in rows], dtype=np.float64)
        ages_s = now - np.array([row[2] for row in rows], dtype=np.float64)
        with np.errstate(over="ignore"):
            return QueryColumns([row[0] for row in rows], weights * np.exp2(-ages_s / self.half_life_s))

    def page_clicks(self, now: float) -> list[tuple[str, float]]:
        """Clicks by URL, decayed to `now`; most clicked first."""
        rows = self._rows("SELECT url, weight, last_at FROM pages WHERE clicks > 0")
        pages = [(url, weight * decay(now - at, self.half_life_s)) for url, weight, at in rows]
        pages.sort(key=lambda page: (-page[1], page[0]))
        return pages

    def click_bins(self, url: str) -> list[tuple[float, int]]:
        """Clicks of a URL in bins of 20 minutes: (start of the bin, clicks), in time order, empty bins left out."""
        rows = self._rows("SELECT bin, clicks FROM click_bins WHERE page = ? ORDER BY bin", self.key_of(url))
        return [(number * float(BIN_S), clicks) for number, clicks in rows]

    def activity(self, since: float, until: float) -> list[tuple[float, int, int]]:
        """Queries and clicks of known time in bins of 20 minutes: (start of the bin, asked, clicks), in time order."""
        rows = self._rows(
            "SELECT bin, asked, clicks FROM activity WHERE bin BETWEEN ? AND ? ORDER BY bin",
            int(since // BIN_S),
            int(until // BIN_S),
        )
        return [(number * float(BIN_S), asked, clicks) for number, asked, clicks in rows]

    def rank_counts(self) -> RankCounts:
        """Impressions and clicks by query, page and rank, to fit the visibility of ranks."""
        rows = self._rows("SELECT query, page, rank, impressions, clicks FROM ranks ORDER BY query, page, rank")
        columns = np.array(rows, dtype=np.int64).reshape(len(rows), 5).T
        return RankCounts(*(np.ascontiguousarray(column) for column in columns))

    def totals(self) -> Totals:
        """Sums over the whole log."""
        asked, distinct, known, shown = (
            self._rows("SELECT total(count), count(*), total(text IS NOT NULL), total(impressions) FROM queries")
            or [(0, 0, 0, 0)]
        )[0]
        clicks = (self._rows("SELECT total(clicks) FROM pages") or [(0,)])[0][0]
        return Totals(int(asked), int(distinct), int(known), int(shown), int(clicks))

    def query_of_id(self, identifier: str) -> int | None:
        """The key of the query that an imported query id stands for."""
        found = self._rows("SELECT query FROM query_ids WHERE id = ?", self.key_of(identifier))
        return int(found[0][0]) if found else None

    @property
    def connection(self) -> sqlite3.Connection | None:
        """The database, for the ledger of imports; None where there is none."""
        return self._connection

    def signing_key(self, purpose: str) -> bytes:
        """A key for signatures, of this database and for one purpose."""
        return hashlib.blake2b(purpose.encode(), key=self._secret, digest_size=32).digest()

    @property
    def mark_key(self) -> bytes:
        """Seals the marks of queries that are kept outside the log; another after each forgetting, and none goes back.

        It is read each time: another process may have forgotten something. A log of before there were such keys has
        one that follows from its secret, until it is next written to.
        """
        stored = self._value(MARK_KEY)
        return bytes(stored) if stored is not None else self.signing_key("query marks")

    def flush(self) -> None:
        """Bring what was written from the write-ahead log into the database, synced to disk; never waits."""
        connection = self._writing()
        if self._value("erasing"):
            self._erase(tries=1, wait_ms=0)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Let go of the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> DemandLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DemandLog({str(self.path)!r}, {'empty or closed' if self._connection is None else 'open'})"

    # -- within

    def _keep_privacy(self) -> None:
        """Where the threshold was raised since, texts of queries below it are forgotten, on the disk too."""
        connection = self._writing()
        if self._value(MARK_KEY) is None:
            self._rows("INSERT OR IGNORE INTO meta VALUES (?, ?)", MARK_KEY, secrets.token_bytes(MARK_KEY_BYTES))
        before = self._value("min_occurrences")
        if before == self.min_occurrences:
            if self._value("erasing"):
                self._erase()
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('min_occurrences', ?)", (self.min_occurrences,))
            connection.execute("UPDATE queries SET text = NULL WHERE count < ?", (self.min_occurrences,))
            raised = before is not None and before < self.min_occurrences
            if raised:
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('erasing', 1)")
                renew_mark_key(connection)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise unusable(self.path, error) from error
        if raised or self._value("erasing"):
            self._erase()

    def _erase(self, tries: int = ERASE_TRIES, wait_ms: int = ERASE_WAIT_MS) -> bool:
        """Empty the write-ahead log, in which erased texts still stand. A reader at work prevents it: then later."""
        connection = self._writing()
        try:
            connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
            try:
                for _ in range(tries):
                    ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    if not busy:
                        connection.execute("DELETE FROM meta WHERE key = 'erasing'")
                        return True
            finally:
                connection.execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise unusable(self.path, error) from error
        return False

    def _known(self, columns: str, now: float, limit: int | None) -> list[Any]:
        """Rows of queries whose text is known; with a limit only those most frequent, picked by the database."""
        values = {"least": self.min_occurrences}
        if limit is None:
            return self._named_rows(f"SELECT {columns} FROM queries WHERE {_KNOWN}", values)
        if limit <= 0:
            return []
        more = {"limit": limit, "now": now, "half_life_s": self.half_life_s}
        return self._named_rows(f"SELECT {columns} {_TOP}", values | more)

    def _value(self, key: str) -> Any:
        found = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return found[0][0] if found else None

    def _rows(self, query: str, *values: object) -> list[Any]:
        return self._named_rows(query, values)

    def _named_rows(self, query: str, values: Any) -> list[Any]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise unusable(self.path, error) from error

    def _writing(self) -> sqlite3.Connection:
        if self._connection is None:
            raise FolderError(f"{self.path}: it is not open for writing; open it with write=True")
        return self._connection
