"""The one event model: a query was asked, a result was shown at a rank, a result was clicked.

Times are Unix seconds, ranks start at 1, URLs are canonical. An event has no place for who did it.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

#: A query is at most so long; what people type is shorter, what programs send need not be kept whole.
MAX_QUERY_CHARS = 1000

_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")


@dataclass(frozen=True, slots=True)
class QueryAsked:
    """Somebody searched; `results` is how many pages were found, where known."""

    text: str
    at: float
    count: int = 1
    results: int | None = None


@dataclass(frozen=True, slots=True)
class ResultShown:
    """A result was on the page that a searcher got."""

    query: str
    url: str
    rank: int
    at: float


@dataclass(frozen=True, slots=True)
class ResultClicked:
    """A searcher went to a page; the query and the rank may be unknown."""

    query: str | None
    url: str
    rank: int | None
    at: float
    count: int = 1


Event = QueryAsked | ResultShown | ResultClicked


def normalise_query(text: str) -> str:
    """The form in which equal queries are one: lower case, composed letters (NFC), single spaces.

    >>> normalise_query("  Crème\\tBRÛLÉE ")
    'crème brûlée'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_CONTROLS).lower())
        text = text.encode("utf-8", "ignore").decode()  # a lone surrogate cannot be stored
    elif text.isprintable():
        text = text.lower()
    else:
        text = text.translate(_CONTROLS).lower()
    return " ".join(text.split())[:MAX_QUERY_CHARS].rstrip()
