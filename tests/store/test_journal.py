"""What the journal tells of first fetches is what one would find by reading it row by row."""

from __future__ import annotations

import sqlite3
from random import Random

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.store.connection import EmbeddedConnection
from bowerbird.store.journal import read_first_fetches
from bowerbird.store.schema import MIGRATIONS

URLS = 8
_ROW = st.tuples(
    st.integers(0, URLS + 2),
    st.sampled_from([FetchKind.NEW, FetchKind.PROBE]),
    st.sampled_from([Outcome.OK, Outcome.OK, Outcome.GONE]),
    st.sampled_from(["frontier", "fetched", None]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_ROW, max_size=40), st.randoms())
def test_first_fetches_are_those_of_the_journal(
    rows: list[tuple[int, FetchKind, Outcome, str | None]], rnd: Random
) -> None:
    connection = sqlite3.connect(":memory:", factory=EmbeddedConnection)
    connection.executescript(MIGRATIONS[0])
    at, chance = np.zeros(URLS), np.full(URLS, np.nan)
    stored = []
    for number, (url, kind, outcome, stratum) in enumerate(rows, start=1):
        terms = {"by": "x"} if stratum is None else {"stratum": stratum, "propensity": number / 100}
        stored.append((number, url, int(kind), orjson.dumps(terms).decode(), 1000.0 + number, int(outcome)))
        if outcome is Outcome.OK and url < URLS and not at[url]:
            at[url] = 1000.0 + number
            if kind is FetchKind.PROBE and stratum == "frontier":
                chance[url] = number / 100
    rnd.shuffle(stored)
    connection.executemany(
        "INSERT INTO fetches (id, url, kind, terms, fetched_at, outcome, decided_at, bid, price, elapsed_s, status,"
        " wire_bytes, changed, content_hash, state, errors, interval_s, not_before)"
        " VALUES (?,?,?,?,?,?,0,0,0,0,0,0,0,0,0,0,0,0)",
        stored,
    )
    first = read_first_fetches(connection, URLS)
    connection.close()
    np.testing.assert_array_equal(first.at, at)
    np.testing.assert_array_equal(first.propensity, chance)
