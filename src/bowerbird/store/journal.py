"""What the journal of fetches tells of each URL."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.store.connection import Connection

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstFetches:
    """When each URL first had a page, 0 = never; and its chance where that fetch was drawn by lot, otherwise NaN."""

    at: F64
    propensity: F64


def begin_run(connection: Connection, at: float, policy: str) -> int:
    """A run of a crawl begins; its number."""
    number = int(connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0])
    connection.execute("INSERT INTO runs (id, started_at, policy) VALUES (?, ?, ?)", (number, at, policy))
    return number


def read_first_fetches(connection: Connection, count: int) -> FirstFetches:
    """Of the first `count` URLs, in one pass over the journal."""
    at, propensity = np.zeros(count), np.full(count, np.nan)
    rows = connection.scan(
        # from its beginning to its end: by the index of URLs, each row would be looked up, which takes thrice as long
        "SELECT url, fetched_at, CASE WHEN kind = ? THEN terms END FROM fetches NOT INDEXED"
        " WHERE outcome = ? AND url < ? ORDER BY id",
        (int(FetchKind.PROBE), int(Outcome.OK), count),
    )
    for row, fetched_at, terms in chain.from_iterable(rows):
        if at[row] == 0.0:
            at[row] = fetched_at
            if terms is not None:
                lot = orjson.loads(terms)
                if lot.get("stratum") == "frontier":
                    propensity[row] = float(lot["propensity"])
    return FirstFetches(at, propensity)
