"""The workload and the clicks of a log, as columns of a Snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowerbird.demand.log import DemandLog
from bowerbird.demand.tally import BIN_S
from bowerbird.index.analysis import tokenize
from bowerbird.index.query import parse_query
from bowerbird.model.workload import Workload, make_workload

_SIGNS = frozenset('":-“”„‟«»')


def words_of(query: str) -> tuple[str, ...]:
    """The words that a query asks for, as the index has them; its filters and excluded words are not among them.

    >>> words_of("Crème brûlée -sugar site:example.org")
    ('creme', 'brulee')
    """
    return tuple(tokenize(query)) if _SIGNS.isdisjoint(query) else parse_query(query).words


def build_workload(log: DemandLog, now: float, limit: int | None = None) -> Workload:
    """What searchers ask now: the `limit` most frequent queries, all by default.

    Queries without any word (only signs, only filters) are left out: no change of the index can serve them.
    """
    texts, weights = log.query_columns(now, limit)
    return replace(make_workload(texts, weights.tolist(), words_of), mark_key=log.mark_key)


def find_last_heard(log: DemandLog) -> float:
    """The time of the latest query or click of the log, 0 without any: nothing is known of what came later."""
    connection = log.connection
    if connection is None:
        return 0.0
    latest = (
        "SELECT max(coalesce((SELECT max(last_at) FROM pages), 0), coalesce((SELECT max(last_at) FROM queries), 0))"
    )
    return float(connection.execute(latest).fetchone()[0])


def mark_heard(log: DemandLog) -> tuple[object, ...]:
    """Another whenever queries or clicks were counted, imported or forgotten since; reads few rows."""
    connection = log.connection
    if connection is None:
        return ()
    times = connection.execute("SELECT count(*), total(asked), total(clicks) FROM activity").fetchone()
    imports = connection.execute("SELECT count(*), total(lines), total(complete) FROM imports").fetchone()
    return (*times, *imports, log.mark_key)


@dataclass(frozen=True, slots=True)
class TimedClicks:
    """Clicks of known time, in bins of 20 minutes: of which URL, at the middle of which bin, how many."""

    urls: list[str]
    page: NDArray[np.int64]  # place in urls
    at: NDArray[np.float64]
    clicks: NDArray[np.float64]


def read_timed_clicks(log: DemandLog, since: float = 0.0) -> TimedClicks:
    """All clicks from the bin of `since` on."""
    connection = log.connection
    numbers: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    if connection is not None:
        found = connection.execute(
            "SELECT pages.url, bin, click_bins.clicks FROM click_bins JOIN pages ON pages.key = click_bins.page"
            " WHERE bin >= ?",
            (int(since // BIN_S),),
        )
        rows = [(numbers.setdefault(url, len(numbers)), number, clicks) for url, number, clicks in found]
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    at, clicks = (columns[:, 1].astype(np.float64) + 0.5) * BIN_S, columns[:, 2].astype(np.float64)
    return TimedClicks(list(numbers), columns[:, 0].copy(), at, clicks)


def attach_clicks(
    page_clicks: Iterable[tuple[str, float]], row_of: Callable[[str], int | None], rows: int
) -> NDArray[np.float64]:
    """Clicks by URL as a column: one value a URL row, 0 where there were none.

    `row_of` gives the row of a URL, None (or a row outside the table) where it is not known.

    >>> attach_clicks([("b", 2.0), ("x", 9.0)], {"a": 0, "b": 1}.get, 2).tolist()
    [0.0, 2.0]
    """
    column = np.zeros(rows, dtype=np.float64)
    for url, clicks in page_clicks:
        row = row_of(url)
        if row is not None and 0 <= row < rows:
            column[row] += clicks
    return column
