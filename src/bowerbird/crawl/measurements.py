"""The quality of a crawl's repository as it was measured, one row a measurement, in `quality.db`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder

NAME = "quality.db"
CAUSES = ("rose", "fell", "unfetched", "gone")
_TABLE = """
CREATE TABLE IF NOT EXISTS measurements (
  at REAL PRIMARY KEY, quality REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
  probes INTEGER NOT NULL, queries INTEGER NOT NULL, demand_share REAL NOT NULL, causes TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Quality at a time with its 95% interval, and the share of it that each cause has cost."""

    at: float
    quality: float
    low: float
    high: float
    probes: int
    queries: int = 0
    demand_share: float = 1.0  # of the demand, in the queries that were looked at
    causes: dict[str, float] = field(default_factory=dict)


def read_quality(folder: CrawlFolder, since: float = 0.0, *, limit: int | None = None) -> list[Measurement]:
    """The measurements from `since` on, the newest `limit` of them, in the order of time; none without any."""
    path = folder.root / NAME
    if not path.exists():
        return []
    with _opened(path) as connection:
        rows = connection.execute(
            "SELECT at, quality, low, high, probes, queries, demand_share, causes FROM measurements"
            " WHERE at >= ? ORDER BY at DESC LIMIT ?",
            (since, -1 if limit is None else limit),
        ).fetchall()
    return [
        Measurement(at, quality, low, high, probes, queries, share, orjson.loads(causes))
        for at, quality, low, high, probes, queries, share, causes in reversed(rows)
    ]


def keep_measurement(folder: CrawlFolder, made: Measurement) -> None:
    """Add a measurement; one of the same moment is replaced."""
    with _opened(folder.root / NAME) as connection, connection:
        connection.execute(
            "INSERT OR REPLACE INTO measurements VALUES (?,?,?,?,?,?,?,?)",
            (
                made.at,
                made.quality,
                made.low,
                made.high,
                made.probes,
                made.queries,
                made.demand_share,
                orjson.dumps(made.causes).decode(),
            ),
        )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            connection.execute(_TABLE)
            yield connection
    except sqlite3.DatabaseError as error:
        raise FolderError(f"{path}: cannot be used ({error}). Move it away: measurements begin anew.") from error
