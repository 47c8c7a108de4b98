"""What the rest of the program knows of a search engine; another engine can stand behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Document:
    """One page as it is searched. `page` is the URL's number in the store and the key in the index."""

    page: int
    url: str
    title: str
    text: str
    anchors: str
    url_words: str
    host: str
    language: str
    fetched_at: float
    duplicate_of: int | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer. `highlights` are (start, end) ranges of characters in `snippet`, which is plain text."""

    page: int
    url: str
    title: str
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    score: float
    fetched_at: float
    language: str
    duplicate_of: int | None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits asked for, how many there are in all, and how long it took."""

    hits: list[Hit]
    total: int
    seconds: float
    query: str


class SearchIndex(Protocol):
    """A full-text index of pages. What is added or removed is seen, and durable, after `commit`."""

    def add(self, document: Document, *, replace: bool = False) -> None:
        """Add a page; with `replace`, take its earlier version out first (needed if it may be there)."""

    def remove(self, page: int) -> None:
        """Take a page out; nothing happens if it is not there."""

    def commit(self) -> None:
        """Make everything since the last commit durable and visible to every reader, all at once."""

    def search(self, query: str, limit: int = 10, offset: int = 0) -> SearchAnswer:
        """Answer what a person typed. Any text is a query; none is an error."""

    def pages(self) -> NDArray[np.int64]:
        """The page numbers in the index, ascending, one for each document."""

    def count(self) -> int:
        """How many documents are committed."""

    def close(self) -> None:
        """Let go of files and locks. What was not committed is dropped."""
