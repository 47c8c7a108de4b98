"""The way back: single queries are forgotten, or everything. What is forgotten is erased on the disk, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from bowerbird.demand.events import normalise_query
from bowerbird.demand.log import DemandLog, renew_mark_key

_ALL = ("queries", "pages", "ranks", "click_bins", "activity", "query_ids", "imports", "checkpoints", "traces")
_ERASE = "INSERT OR REPLACE INTO meta VALUES ('erasing', 1)"


def forget_queries(log: DemandLog, texts: Iterable[str]) -> tuple[list[str], bool]:
    """Remove the text, counts and ranks of queries; gives those that the log did not have, and is it erased?

    Clicks by page and activity by time stay: they do not say what was asked.
    """
    unknown: list[str] = []
    texts_of = {log.key_of(normalise_query(text)): text for text in texts}

    def delete(connection: sqlite3.Connection) -> None:
        for key, text in texts_of.items():
            found = connection.execute("DELETE FROM queries WHERE key = ?", (key,)).rowcount
            for table in ("ranks", "query_ids"):
                found += connection.execute(f"DELETE FROM {table} WHERE query = ?", (key,)).rowcount
            if not found:
                unknown.append(text)
        connection.execute(_ERASE)

    return unknown, _erase(log, delete)


def forget_all(log: DemandLog) -> tuple[list[str], bool]:
    """Empty the log; what was imported can be imported again. Gives the same as `forget_queries`."""

    def delete(connection: sqlite3.Connection) -> None:
        for table in _ALL:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("DELETE FROM meta WHERE key LIKE 'swept %'")
        connection.execute(_ERASE)

    return [], _erase(log, delete)


def _erase(log: DemandLog, delete: Callable[[sqlite3.Connection], None]) -> bool:
    """Delete, then empty the write-ahead log; False where a reader at work prevents that until later.

    Marks of queries that were written elsewhere, also by a study at work now, mean nothing without their key.
    """

    def delete_with_key(connection: sqlite3.Connection) -> None:
        delete(connection)
        renew_mark_key(connection)

    log.apply(log.tally(), delete_with_key)
    log.flush()
    assert log.connection is not None
    return log.connection.execute("SELECT 1 FROM meta WHERE key = 'erasing'").fetchone() is None
