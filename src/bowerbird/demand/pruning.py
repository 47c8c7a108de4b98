"""What is too old to matter is forgotten, a little at a time.

Old is relative to the latest known time in the log, not to the clock: a log of long ago, imported today, is whole.
A sweep looks at a bounded number of rows of each table, goes on where the last one ended and, at the end of a table,
begins anew. It runs within a transaction of the log, its places included, so an interruption costs nothing.
"""

from __future__ import annotations

import sqlite3

from bowerbird.demand.tally import BIN_S

KEEP_S = 2 * 365 * 86_400.0
#: a query or page that old is forgotten only when so little is left of it
MIN_WEIGHT = 1e-6
ROWS_PER_SWEEP = 5_000
SWEEP_EVERY = 32
#: rows of bytes for each line of a file: few, but large
TRACES_PER_SWEEP = 4

_FADED = "last_at < :oldest AND weight * decay(:latest - last_at) < :least"
#: table -> its key, and what is forgotten
_SWEPT: dict[str, tuple[tuple[str, ...], str]] = {
    "queries": (("key",), _FADED),
    "pages": (("key",), _FADED),
    "ranks": (("query", "page", "rank"), "last_at < :oldest"),
    "click_bins": (("page", "bin"), "bin < :oldest_bin"),
    "activity": (("bin",), "bin < :oldest_bin"),
    "query_ids": (("id",), "NOT EXISTS (SELECT 1 FROM queries WHERE key = query_ids.query)"),
}


def sweep(connection: sqlite3.Connection, rows: int = ROWS_PER_SWEEP) -> int:
    """Look at the next rows of each table and delete those that are too old; how many these were."""
    (latest_bin,) = connection.execute("SELECT max(bin) FROM activity").fetchone()
    if latest_bin is None:
        return 0
    latest = (latest_bin + 1) * float(BIN_S)
    values = {
        "latest": latest,
        "oldest": latest - KEEP_S,
        "oldest_bin": int((latest - KEEP_S) // BIN_S),
        "least": MIN_WEIGHT,
    }
    deleted = sum(_sweep_table(connection, table, values, rows) for table in _SWEPT)
    deleted += connection.execute(
        "DELETE FROM traces WHERE id IN (SELECT t.id FROM imports i JOIN traces t ON t.import = i.id "
        "WHERE i.started_at < :oldest LIMIT :most)",
        {"oldest": values["oldest"], "most": TRACES_PER_SWEEP},
    ).rowcount
    return deleted


def _sweep_table(connection: sqlite3.Connection, table: str, values: dict[str, float], rows: int) -> int:
    keys, condition = _SWEPT[table]
    names, places = ", ".join(keys), ", ".join(f":from{at}" for at in range(len(keys)))
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (f"swept {table}",)).fetchone()
    begin = [int(part) for part in found[0].split()] if found else [-1e19] * len(keys)
    span = {f"from{at}": value for at, value in enumerate(begin)}
    end = connection.execute(
        f"SELECT {names} FROM {table} WHERE ({names}) > ({places}) ORDER BY {names} LIMIT 1 OFFSET :rows",
        {**span, "rows": rows - 1},
    ).fetchone()
    where = f"({names}) > ({places}) AND {condition}"
    if end is None:
        connection.execute("DELETE FROM meta WHERE key = ?", (f"swept {table}",))
    else:
        where += f" AND ({names}) <= ({', '.join(f':to{at}' for at in range(len(keys)))})"
        span |= {f"to{at}": value for at, value in enumerate(end)}
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"swept {table}", " ".join(map(str, end))))
    return connection.execute(f"DELETE FROM {table} WHERE {where}", {**values, **span}).rowcount
