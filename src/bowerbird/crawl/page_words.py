"""The words of every known URL, for appraisers: those of the URL and of the links to it, as the index has words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from bowerbird.index.page_words import gather_words
from bowerbird.model.page_words import PageWords
from bowerbird.store.connection import Connection


def read_page_words(connection: Connection, count: int, urls: Iterable[str] | None = None) -> PageWords:
    """Of the first `count` URLs of a crawl, from its database; `urls` where they were read already."""
    known = read_urls(connection, count) if urls is None else urls
    anchors = connection.scan("SELECT target, text FROM anchors WHERE target < ? ORDER BY id", (count,))
    return gather_words(enumerate(known), chain.from_iterable(anchors), count)


def read_urls(connection: Connection, count: int) -> Iterator[str]:
    """The first `count` URLs of a crawl in order; an empty one where a number has none."""
    following = 0
    known = connection.scan("SELECT id, url FROM urls WHERE id < ? ORDER BY id", (count,))
    for number, url in chain.from_iterable(known):
        yield from repeat("", number - following)
        yield url
        following = number + 1
    yield from repeat("", count - following)
