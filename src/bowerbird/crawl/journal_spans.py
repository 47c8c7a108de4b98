"""Stretches of the journal by time, read in bounded steps: numbers of its rows ascend with time.

So the number at which a time begins is found by bisection, and how many decisions lie between two is a difference. What
they were is told from all of them where they are few, and from evenly spread runs of rows where they are many.
"""

from __future__ import annotations

from collections.abc import Iterator

from bowerbird.store.connection import Connection

RUNS, RUN_ROWS = 16, 64
EXACT_ROWS = 20_000  # so many are counted within milliseconds
MOST_A_MINUTE = 100_000


def find_ends(connection: Connection) -> tuple[int, int]:
    """The first and the last number, (1, 0) in an empty journal. Asked in one question, SQLite reads all rows."""
    (first,) = connection.execute("SELECT coalesce(min(id), 1) FROM fetches").fetchone()
    (top,) = connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()
    return int(first), int(top)


def time_of(connection: Connection, number: int) -> float:
    """When the decision with this number, or the next there is, was carried out; infinite after the last."""
    row = connection.execute("SELECT fetched_at FROM fetches WHERE id >= ? ORDER BY id LIMIT 1", (number,)).fetchone()
    return float(row[0]) if row else float("inf")


def first_at(connection: Connection, at: float, first: int, top: int) -> int:
    """The number of the first decision at or after a time; one more than the last when there is none."""
    low, high = first, top + 1
    while low < high:
        middle = (low + high) // 2
        if time_of(connection, middle) < at:
            low = middle + 1
        else:
            high = middle
    return low


def spread_runs(first: int, after: int, runs: int = RUNS, rows: int = RUN_ROWS) -> tuple[list[tuple[int, int]], float]:
    """Stretches of the numbers [first, after) to read, and how many decisions each that is read stands for.

    >>> spread_runs(10, 20)
    ([(10, 20)], 1.0)
    >>> spread_runs(0, 100, runs=3, rows=10)
    ([(0, 10), (45, 55), (90, 100)], 3.3333333333333335)
    """
    number = max(after - first, 0)
    if number <= runs * rows:
        return [(first, after)], 1.0
    begins = (first + run * (number - rows) // (runs - 1) for run in range(runs))
    return [(begin, begin + rows) for begin in begins], number / (runs * rows)


def count_kinds(
    connection: Connection, first: int, after: int, exact: int = EXACT_ROWS
) -> tuple[dict[tuple[int, int], float], bool]:
    """Kinds and outcomes of decisions [first, after), and whether these, more than `exact`, were told from a sample."""
    query = "SELECT kind, outcome, count(*) FROM fetches WHERE id >= ? AND id < ? GROUP BY kind, outcome"
    stretches, weight = ([(first, after)], 1.0) if after - first <= exact else spread_runs(first, after)
    counts: dict[tuple[int, int], float] = {}
    for kind, outcome, number in _ask(connection, query, stretches):
        counts[kind, outcome] = counts.get((kind, outcome), 0.0) + number * weight
    return counts, len(stretches) > 1


def last_minute_speed(connection: Connection, now: float) -> float:
    """Decisions a second over the last minute."""
    _, top = find_ends(connection)
    query = "SELECT count(*) FROM fetches WHERE id > ? AND fetched_at > ?"
    (recent,) = connection.execute(query, (top - MOST_A_MINUTE, now - 60)).fetchone()
    return float(recent) / 60


def _ask(connection: Connection, query: str, stretches: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    for stretch in stretches:
        yield from connection.execute(query, stretch)
