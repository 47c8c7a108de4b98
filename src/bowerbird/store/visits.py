"""What the journal tells of refreshes: when each page was visited, and what the visit found."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.store.connection import Connection

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
CHUNK_ROWS = 200_000
SLACK_S = 3600.0  # between a decision and its fetch
_COLUMNS = "url, fetched_at, changed, resemblance, outcome, wire_bytes, modified, validators, elapsed_s"
_FOUND = f"outcome IN ({int(Outcome.OK)}, {int(Outcome.NOT_MODIFIED)})"


@dataclass(frozen=True, slots=True)
class Visits:
    """Fetches that found a page, or that it had not changed, by page and then by time. Errors are no visits."""

    page: I64
    at: F64
    changed: npt.NDArray[np.bool_]
    resemblance: F64  # to the version before, where it changed; NaN where that is not known
    not_modified: npt.NDArray[np.bool_]  # the host answered so, without sending the page
    wire_bytes: F64
    modified: F64  # the answer's Last-Modified; NaN where it had none
    validators: I64  # bits of model.validators.Validators
    elapsed_s: F64


def read_visits(connection: Connection, count: int) -> Visits:
    """Of the first `count` URLs, in one pass over the journal."""
    query = f"SELECT {_COLUMNS} FROM fetches NOT INDEXED WHERE {_FOUND} AND url < ? ORDER BY id"
    return _arrange([connection.scan(query, (count,), CHUNK_ROWS)])


def read_visits_of(connection: Connection, rows: I64, since: float) -> Visits:
    """Of these URLs, from about `since` on, each with the last visit before that; by the index, not the whole journal.

    Numbers of the journal ascend with time, and the index of URLs holds them.
    """
    first, wanted = _find_number(connection, since - SLACK_S), orjson.dumps(rows.tolist()).decode()
    recent = (
        f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN fetches INDEXED BY fetches_of_url"
        f" WHERE url = wanted.value AND fetches.id >= ? AND {_FOUND}"
    )
    before = (
        f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN fetches WHERE fetches.id ="
        " (SELECT id FROM fetches INDEXED BY fetches_of_url"
        f" WHERE url = wanted.value AND id < ? AND {_FOUND} ORDER BY fetches.id DESC LIMIT 1)"
    )
    return _arrange(connection.scan(query, (wanted, first), CHUNK_ROWS) for query in (recent, before))


def read_first_visits(connection: Connection, rows: I64) -> F64:
    """When each of these URLs first had a page; infinite where it has had none."""
    query = (
        "SELECT (SELECT fetched_at FROM fetches INDEXED BY fetches_of_url"
        " WHERE url = wanted.value AND outcome = ? ORDER BY id LIMIT 1) FROM json_each(?) AS wanted ORDER BY wanted.key"
    )
    found = connection.execute(query, (int(Outcome.OK), orjson.dumps(rows.tolist()).decode()))
    return np.array([np.inf if at is None else at for (at,) in found], dtype=np.float64)


def read_target(connection: Connection, row: int) -> int | None:
    """Where a URL was redirected to last; None where to nowhere that is known."""
    query = (
        "SELECT target FROM fetches INDEXED BY fetches_of_url WHERE url = ? AND outcome = ? ORDER BY id DESC LIMIT 1"
    )
    found = connection.execute(query, (row, int(Outcome.REDIRECT))).fetchone()
    return None if found is None or found[0] is None else int(found[0])


def read_targets(connection: Connection, count: int) -> npt.NDArray[np.int64]:
    """By row where a URL was redirected to last, of the first `count`; -1 where to nowhere that is known."""
    out = np.full(count, -1, dtype=np.int64)
    query = "SELECT url, coalesce(target, -1) FROM fetches WHERE outcome = ? AND url < ? ORDER BY id"
    found = np.array(connection.execute(query, (int(Outcome.REDIRECT), count)).fetchall(), dtype=np.int64)
    if len(found):
        out[found[:, 0]] = np.where(found[:, 1] < count, found[:, 1], -1)  # of the same URL the last one stays
    return out


def _find_number(connection: Connection, at: float) -> int:
    """The first number of the journal that was decided at a time or later."""
    top = int(connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()[0])

    def decided_at(number: int) -> float:
        row = connection.execute("SELECT decided_at FROM fetches WHERE id >= ? ORDER BY id LIMIT 1", (number,))
        return float(row.fetchone()[0])

    return bisect_left(range(top + 1), at, lo=1, key=decided_at)


def _arrange(answers: Iterable[Iterator[list[Any]]]) -> Visits:
    chunks: list[F64] = [np.zeros((0, 9))]
    for answer in answers:
        for rows in answer:
            chunks.append(np.array(rows, dtype=np.float64))  # None becomes NaN
    table = np.concatenate(chunks)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return Visits(
        table[:, 0].astype(np.int64),
        table[:, 1].copy(),
        table[:, 2] > 0,
        table[:, 3].copy(),
        table[:, 4] == int(Outcome.NOT_MODIFIED),
        table[:, 5].copy(),
        table[:, 6].copy(),
        table[:, 7].astype(np.int64),
        table[:, 8].copy(),
    )


def read_media(connection: Connection, count: int) -> list[str]:
    """By row, what kind of body was fetched last: "html", "text" …; empty where none was."""
    media = [""] * count
    for url, name in connection.execute("SELECT url, media FROM versions WHERE url < ?", (count,)):
        media[url] = name
    return media


def read_hub_visits(
    connection: Connection, hosts: npt.NDArray[np.uint32], kinds: npt.NDArray[np.uint8]
) -> tuple[I64, F64]:
    """When sitemaps and feeds were read, with the hosts they are of, by host and then by time; columns by URL.

    Pages that were visited as hubs are left out: they say nothing of when others changed.
    """
    rows = connection.execute(
        "SELECT url, fetched_at FROM fetches NOT INDEXED WHERE kind = ? AND outcome = ? AND url < ?",
        (int(FetchKind.HUB), int(Outcome.OK), len(hosts)),
    ).fetchall()
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    table = np.array(rows, dtype=np.float64)
    table = table[kinds[table[:, 0].astype(np.int64)] != UrlKind.PAGE]
    host = hosts[table[:, 0].astype(np.int64)].astype(np.int64)
    order = np.lexsort((table[:, 1], host))
    return host[order], table[order, 1]
