"""The words of every known URL, for appraisers: those of the URL and of the links to it, as the index has words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import repeat

from bowerbird.index.page_words import gather_words
from bowerbird.model.page_words import PageWords


def read_page_words(connection: sqlite3.Connection, count: int, urls: Iterable[str] | None = None) -> PageWords:
    """Of the first `count` URLs of a crawl, from its database; `urls` where they were read already."""
    known = read_urls(connection, count) if urls is None else urls
    anchors = connection.execute("SELECT target, text FROM anchors WHERE target < ? ORDER BY id", (count,))
    return gather_words(enumerate(known), anchors, count)


def read_urls(connection: sqlite3.Connection, count: int) -> Iterator[str]:
    """The first `count` URLs of a crawl in order; an empty one where a number has none."""
    following = 0
    for number, url in connection.execute("SELECT id, url FROM urls WHERE id < ? ORDER BY id", (count,)):
        yield from repeat("", number - following)
        yield url
        following = number + 1
    yield from repeat("", count - following)
