from __future__ import annotations

import sqlite3

import numpy as np

from bowerbird.appraise.hubs.announced import Feature
from bowerbird.crawl.announced_levels import describe_pages
from bowerbird.model.page_types import PageType
from bowerbird.model.workload import EMPTY, make_workload
from bowerbird.store.connection import EmbeddedConnection

URLS = {
    3: "https://a.example/2026/11/16/tea-prices",
    5: "https://a.example/tag/tea",
    6: "https://a.example/nothing",
    9: "https://b.example/x",
}


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", factory=EmbeddedConnection)
    connection.execute("CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT)")
    connection.execute("CREATE TABLE anchors (id INTEGER PRIMARY KEY, target INTEGER, text TEXT)")
    connection.executemany("INSERT INTO urls VALUES (?, ?)", URLS.items())
    connection.executemany("INSERT INTO anchors (target, text) VALUES (?, ?)", [(9, "Green tea"), (6, "no word of it")])
    return connection


def test_what_is_known_of_a_page_before_it_is_fetched() -> None:
    workload = make_workload(["tea", "coffee"], [9.0, 1.0], str.split)
    page, visit = np.array(list(URLS)), np.array([7, 7, 7, 2])
    level = describe_pages(database(), workload, page, visit, np.array([3, 9, 9, 9, 4]))
    assert level[:, Feature.PLACE].tolist() == [0, 1, 2, 0]
    assert level[:, Feature.SHOWN].tolist() == [1, 0, 0, 3]
    assert level[:, Feature.TYPE].tolist() == [PageType.DATED, PageType.LISTING, PageType.PLAIN, PageType.PLAIN]
    asked = level[:, Feature.ASKED].tolist()
    assert asked[0] == asked[1] == asked[3] > asked[2] == 0  # by the URL, by the URL, by a link to it, not at all


def test_nothing_announced_and_nothing_asked() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert describe_pages(database(), EMPTY, nothing, nothing, nothing).shape == (0, len(Feature))
    level = describe_pages(database(), EMPTY, np.array([3]), np.array([0]), nothing)
    assert level[0].tolist() == [0, 0, PageType.DATED, 0]


def test_many_pages_of_one_visit_fall_into_classes_of_places() -> None:
    connection = database()
    connection.executemany("INSERT INTO urls VALUES (?, ?)", [(n, f"https://c.example/{n}") for n in range(100, 1500)])
    level = describe_pages(connection, EMPTY, np.arange(100, 1500), np.zeros(1400, np.int64), np.zeros(0, np.int64))
    assert (np.diff(level[:, Feature.PLACE]) >= 0).all()
    assert np.bincount(level[:, Feature.PLACE]).tolist()[:5] == [1, 1, 2, 4, 8]
