"""Tables in, a Snapshot out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bowerbird
from bowerbird import UrlKind, UrlState

NOW = 1_800_000_000.0
A, B, NEW = "https://a.example/", "https://b.example/x", "https://a.example/new"
PAGES: dict[str, list[Any]] = {"page": [A, B, NEW], "last_fetched": [NOW - 100, NOW - 50, None]}
LINKS = {"source": [A, A, B, A, NEW], "target": [NEW, B, NEW, NEW, A]}
CLICKS = {"page": [B, A, B], "clicks": [1, 2, 3]}


def test_tables_are_put_together_by_name() -> None:
    snapshot = bowerbird.snapshot_of(
        PAGES, now=NOW, links=LINKS, clicks=CLICKS, queries={"query": ["red car"], "frequency": [2]}
    )
    assert snapshot.now == NOW
    assert snapshot.pages.state.tolist() == [UrlState.FETCHED, UrlState.FETCHED, UrlState.NEW]
    assert snapshot.pages.kind.tolist() == [UrlKind.PAGE] * 3
    assert snapshot.pages.host.tolist() == [0, 1, 0]
    assert snapshot.pages.in_degree.tolist() == [0, 1, 2]  # a page that is not fetched links to nothing yet
    assert snapshot.pages.fetches.tolist() == [1, 1, 0]
    assert snapshot.pages.first_seen.tolist() == [NOW - 100, NOW - 50, NOW]
    assert snapshot.hosts.known.tolist() == [2, 1]
    assert snapshot.hosts.fetched.tolist() == [1, 1]
    assert snapshot.links is not None
    assert [snapshot.links.out_links(row).tolist() for row in range(3)] == [[1, 2], [2], [0]]
    assert snapshot.clicks is not None
    assert snapshot.clicks.tolist() == [2.0, 4.0, 0.0]
    assert snapshot.workload is not None
    assert snapshot.workload.terms == ("car", "red")
    assert not any(getattr(snapshot.pages, name).flags.writeable for name in ("host", "state", "last_fetched"))


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_that_are_there_are_taken(make: Any) -> None:
    pages = make(
        {
            "url": [A, B, NEW],
            "state": ["fetched", "GONE", "new"],
            "kind": ["feed", "page", "page"],
            "host": ["one", "one", "two"],
            "depth": [0, 1, 2],
            "first_seen": [datetime.fromtimestamp(NOW - 500, UTC), datetime.fromtimestamp(NOW - 400, UTC), None],
            "last_fetched": [NOW - 100.5, NOW - 50.0, None],
            "last_changed": [NOW - 200.0, None, None],
            "hint_modified": [NOW - 20.0, None, None],
            "fetches": [7, 2, 0],
            "changes": [3, 0, 0],
            "errors": [0, 1, 0],
            "in_degree": [9, 8, 7],
            "interval_s": [60.0, 0.0, 0.0],
            "unheard": ["x", "y", "z"],
        }
    )
    columns = bowerbird.snapshot_of(pages, now=NOW).pages
    assert columns.state.tolist() == [UrlState.FETCHED, UrlState.GONE, UrlState.NEW]
    assert columns.kind.tolist() == [UrlKind.FEED, UrlKind.PAGE, UrlKind.PAGE]
    assert columns.host.tolist() == [0, 0, 1]
    assert columns.depth.tolist() == [0, 1, 2]
    assert columns.first_seen.tolist() == [NOW - 500, NOW - 400, NOW]
    assert columns.last_fetched.tolist() == [NOW - 100.5, NOW - 50, 0.0]
    assert columns.last_changed.tolist() == [NOW - 200, NOW - 50, 0]
    assert columns.hint_modified.tolist() == [NOW - 20, 0, 0]
    assert (columns.fetches.tolist(), columns.changes.tolist()) == ([7, 2, 0], [3, 0, 0])
    assert (columns.errors.tolist(), columns.in_degree.tolist()) == ([0, 1, 0], [9, 8, 7])
    assert columns.interval_s.tolist() == [60.0, 0.0, 0.0]
    assert columns.source.tolist() == [-1, -1, -1]


def test_states_may_be_numbers() -> None:
    pages = {"page": [A, B], "state": np.array([0, 5])}
    assert bowerbird.snapshot_of(pages, now=NOW).pages.state.tolist() == [UrlState.NEW, UrlState.EXCLUDED]


def test_the_columns_are_of_the_types_that_a_crawl_has() -> None:
    pages = bowerbird.snapshot_of(PAGES, now=NOW).pages
    for name, kind in bowerbird.PageColumns.__annotations__.items():
        assert f"np.{getattr(pages, name).dtype}" in kind, name


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"pages": {"page": [A, A]}}, f"pages: row 1: {A!r} comes a second time. Name each page once."),
        ({"pages": {"url": [A, None]}}, "pages: row 1: url is empty."),
        ({"links": {"source": [A], "target": ["no"]}}, "links: row 0: 'no' is not known. Add a row for it to pages,"),
        ({"links": pa.table({"source": [A, "no"], "target": [B, B]})}, "links: row 1: 'no' is not known."),
        ({"clicks": {"page": [A, "no"], "clicks": [1, 1]}}, "clicks: row 1: 'no' is not known."),
        ({"clicks": {"page": [A], "clicks": [float("nan")]}}, "clicks: row 0: clicks is nan, no number"),
        (
            {"pages": {"page": [A], "state": ["fresh"]}},
            "pages: row 0: state is 'fresh'. It must be one of new, fetched",
        ),
        ({"pages": {"page": [A], "kind": [3]}}, "pages: row 0: kind is '3'. It must be one of page, sitemap, feed."),
        ({"pages": {"page": [A], "state": ["fetched"]}}, "pages: row 0: its state is fetched, but last_fetched is"),
        ({"pages": {"page": [A], "last_fetched": [NOW + 5]}}, "which lies after now (1800000000). Mend it"),
        ({"pages": {"page": [A], "last_fetched": [-1.0]}}, "last_fetched is -1.0, no time from 1970 to 2106."),
        ({"pages": {"page": [A], "last_fetched": ["May"]}}, "pages: column last_fetched holds <U3, where numbers"),
        ({"pages": {"page": [A], "depth": [256]}}, "pages: row 0: depth is 256, no whole number from 0 to 255."),
        ({"pages": {"page": [A], "fetches": [1.5]}}, "pages: row 0: fetches is 1.5, no whole number from 0 to 65535."),
        ({"pages": {"page": [A], "interval_s": [None]}}, "pages: row 0: interval_s is empty, no number"),
        ({"pages": {"page": [A], "host": [None]}}, "pages: row 0: host is empty."),
    ],
)
def test_what_does_not_fit_is_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(bowerbird.TableError) as told:
        bowerbird.snapshot_of(**{"pages": PAGES, "now": NOW, **tables})
    assert said in str(told.value)


@pytest.mark.parametrize("now", [0.0, -1.0, float("nan"), float("inf"), 2.0**33])
def test_now_is_a_time(now: float) -> None:
    with pytest.raises(bowerbird.ConfigError, match=r"must be a time in seconds since 1970 UTC"):
        bowerbird.snapshot_of(PAGES, now=now)


def test_no_pages_are_no_trouble() -> None:
    snapshot = bowerbird.snapshot_of({"page": []}, now=NOW)
    assert (len(snapshot.pages), len(snapshot.hosts)) == (0, 0)
    bids = bowerbird.bid(snapshot, "in-degree")
    assert (len(bids), bids.order().tolist(), bids.next(5).tolist()) == (0, [], [])
