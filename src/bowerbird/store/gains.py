"""Measured gains: what refreshes of pages gained their searchers, one row a measured refresh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.store.connection import Connection, upsert

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class MeasuredGain:
    """What one refresh of a page gained its searchers, measured while it was indexed."""

    page: int
    at: float  # when it was fetched
    since: float  # and the fetch before
    gain: float  # as a share of quality Q
    words: int  # of the workload, whose score changed
    marks: U64  # sealed, of the queries that gained most
    shares: F32  # of the gain, by query


@dataclass(frozen=True, slots=True)
class GainColumns:
    """All measured gains, by page, then by time."""

    page: I64
    at: F64
    since: F64
    gain: F64

    def __len__(self) -> int:
        return len(self.page)


def read_gains(connection: Connection) -> GainColumns:
    """Every measured gain."""
    rows = connection.execute("SELECT page, at, since, gain FROM gains ORDER BY page, at").fetchall()
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return GainColumns(table[:, 0].astype(np.int64), *(table[:, place].copy() for place in (1, 2, 3)))


def read_gains_of(connection: Connection, page: int, limit: int = 20) -> list[MeasuredGain]:
    """The last measured gains of a page, newest first."""
    rows = connection.execute(
        "SELECT page, at, since, gain, words, marks, shares FROM gains WHERE page = ? ORDER BY at DESC LIMIT ?",
        (page, limit),
    )
    return [
        MeasuredGain(
            int(found),
            at,
            since,
            gain,
            words,
            np.frombuffer(marks, dtype="<u8").astype(np.uint64),
            np.frombuffer(shares, dtype="<f4").astype(np.float32),
        )
        for found, at, since, gain, words, marks, shares in rows
    ]


def write_gains(connection: Connection, gains: Iterable[MeasuredGain]) -> None:
    """Keep gains; inside the caller's transaction. One that is measured again takes the place of the first."""
    connection.executemany(
        upsert("gains", "page, at, since, gain, words, marks, shares", "page, at"),
        (
            (
                gain.page,
                gain.at,
                gain.since,
                gain.gain,
                gain.words,
                gain.marks.astype("<u8").tobytes(),
                gain.shares.astype("<f4").tobytes(),
            )
            for gain in gains
        ),
    )
