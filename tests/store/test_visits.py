"""Visits out of the journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.schema import open_state
from bowerbird.store.visits import read_hub_visits, read_media, read_visits


@pytest.fixture
def connection(folder: CrawlFolder) -> Iterator[Connection]:
    with closing(open_state(folder, write=True)) as connection:
        yield connection


def add(
    connection: Connection,
    url: int,
    at: float,
    outcome: Outcome = Outcome.OK,
    *,
    changed: bool = False,
    resemblance: float | None = None,
    kind: FetchKind = FetchKind.REFRESH,
    modified: int | None = None,
    validators: int = 0,
) -> None:
    connection.execute(
        "INSERT INTO fetches (id, url, kind, decided_at, bid, price, terms, fetched_at, elapsed_s, outcome, status,"
        " wire_bytes, changed, resemblance, content_hash, state, errors, interval_s, not_before, modified, validators)"
        " SELECT coalesce(max(id), 0) + 1, ?, ?, 0, 0, 0, '{}', ?, 0, ?, 0, ?, ?, ?, 0, 0, 0, 0, 0, ?, ? FROM fetches",
        (url, int(kind), at, int(outcome), 100 + url, int(changed), resemblance, modified, validators),
    )


def test_visits_are_by_page_and_time_and_errors_are_none(connection: Connection) -> None:
    add(connection, 3, 10.0)
    add(connection, 1, 11.0)
    add(connection, 3, 12.5, Outcome.TIMEOUT)
    add(connection, 3, 20.25, changed=True, resemblance=0.5, modified=15, validators=8)
    add(connection, 1, 21.0, Outcome.NOT_MODIFIED)
    add(connection, 1, 22.0, Outcome.GONE)
    add(connection, 9, 23.0)  # came after the columns were read
    visits = read_visits(connection, 5)
    assert visits.page.tolist() == [1, 1, 3, 3]
    assert visits.at.tolist() == [11.0, 21.0, 10.0, 20.25]
    assert visits.changed.tolist() == [False, False, False, True]
    assert visits.not_modified.tolist() == [False, True, False, False]
    assert visits.resemblance[3] == 0.5
    assert np.isnan(visits.resemblance[:3]).all()
    assert visits.wire_bytes.tolist() == [101, 101, 103, 103]
    assert visits.modified[3] == 15.0
    assert np.isnan(visits.modified[:3]).all()
    assert visits.validators.tolist() == [0, 0, 0, 8]


def test_kinds_of_bodies_are_by_row(connection: Connection) -> None:
    for url, media in ((1, "html"), (3, "text"), (7, "html")):
        connection.execute(
            "INSERT INTO versions VALUES (?, '', '', NULL, 0, ?, 0, NULL, NULL, NULL, NULL)", (url, media)
        )
    assert read_media(connection, 5) == ["", "html", "", "text", ""]


def test_an_empty_journal_has_none(connection: Connection) -> None:
    assert len(read_visits(connection, 5).page) == 0
    host, at = read_hub_visits(connection, np.zeros(5, dtype=np.uint32), np.zeros(5, dtype=np.uint8))
    assert (len(host), len(at)) == (0, 0)


def test_reads_of_sitemaps_are_by_host_and_time(connection: Connection) -> None:
    hosts = np.array([7, 7, 2, 2, 2], dtype=np.uint32)
    sitemap, feed, page = UrlKind.SITEMAP, UrlKind.FEED, UrlKind.PAGE
    kinds = np.array([sitemap, feed, sitemap, page, page], dtype=np.uint8)
    add(connection, 0, 30.0, kind=FetchKind.HUB)
    add(connection, 2, 20.0, kind=FetchKind.HUB)
    add(connection, 1, 10.0, kind=FetchKind.HUB)
    add(connection, 2, 40.0, Outcome.NOT_MODIFIED, kind=FetchKind.HUB)  # nothing new was read
    add(connection, 3, 50.0)
    add(connection, 4, 60.0, kind=FetchKind.HUB)  # a page that is a hub says nothing of others
    host, at = read_hub_visits(connection, hosts, kinds)
    assert host.tolist() == [2, 7, 7]
    assert at.tolist() == [20.0, 10.0, 30.0]
