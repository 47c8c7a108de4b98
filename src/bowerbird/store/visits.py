"""What the journal tells of refreshes: when each page was visited, and what the visit found."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
CHUNK_ROWS = 200_000


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


def read_visits(connection: sqlite3.Connection, count: int) -> Visits:
    """Of the first `count` URLs, in one pass over the journal."""
    cursor = connection.execute(
        "SELECT url, fetched_at, changed, resemblance, outcome, wire_bytes, modified, validators"
        " FROM fetches NOT INDEXED"
        " WHERE outcome IN (?, ?) AND url < ? ORDER BY id",
        (int(Outcome.OK), int(Outcome.NOT_MODIFIED), count),
    )
    chunks: list[F64] = [np.zeros((0, 8))]
    while rows := cursor.fetchmany(CHUNK_ROWS):
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
    )


def read_media(connection: sqlite3.Connection, count: int) -> list[str]:
    """By row, what kind of body was fetched last: "html", "text" …; empty where none was."""
    media = [""] * count
    for url, name in connection.execute("SELECT url, media FROM versions WHERE url < ?", (count,)):
        media[url] = name
    return media


def read_hub_visits(connection: sqlite3.Connection, hosts: npt.NDArray[np.uint32]) -> tuple[I64, F64]:
    """When sitemaps and feeds were read, with the hosts they are of, by host and then by time; `hosts` by URL."""
    rows = connection.execute(
        "SELECT url, fetched_at FROM fetches NOT INDEXED WHERE kind = ? AND outcome = ? AND url < ?",
        (int(FetchKind.HUB), int(Outcome.OK), len(hosts)),
    ).fetchall()
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    table = np.array(rows, dtype=np.float64)
    host = hosts[table[:, 0].astype(np.int64)].astype(np.int64)
    order = np.lexsort((table[:, 1], host))
    return host[order], table[order, 1]
