"""What a fetcher of somebody else's puts into the frontier: a URL found, or one dealt with, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import xxhash

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind
from bowerbird.web.response import outcome_of_status

MOST_CLICKS = 10**9
_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_KINDS = {"page": UrlKind.PAGE, "sitemap": UrlKind.SITEMAP, "feed": UrlKind.FEED}


class Taken(IntEnum):
    """What became of something that was put: the numbers of the interface's acknowledgements."""

    OK = 0
    SKIPPED = 1  # known already, or no URL that can be crawled
    FAIL = 2  # it could not be kept


@dataclass(frozen=True, slots=True)
class Hints:
    """What metadata says that bids can go by."""

    referrer: str = ""  # as it was written
    anchor: str = ""
    depth: int = -1  # links from a start; -1 = not said
    kind: UrlKind = UrlKind.PAGE
    clicks: int = 0
    changed: bool | None = None
    content_hash: int = 0
    status: int = 0

    @property
    def outcome(self) -> Outcome:
        """What a fetch with this status came to; without one it is taken to have gone well."""
        return outcome_of_status(self.status, "there", True) if self.status else Outcome.OK


NO_HINTS = Hints()


@dataclass(slots=True)
class GuestItem:
    """A URL with what goes along with it; `known` ones were dealt with and may be fetched again from `refetch` on."""

    url: str
    key: str = ""
    metadata: bytes | None = None
    hints: Hints = NO_HINTS
    known: bool = False
    refetch: int = 0  # 0 = never again


def read_hints(metadata: Mapping[str, Sequence[str]]) -> Hints:
    """What is understood of metadata; what is not, or makes no sense, is passed over.

    >>> read_hints({"anchor": ["News"], "clicks": ["3"], "isFeed": ["true"], "depth": ["far"]})
    ... # doctest: +NORMALIZE_WHITESPACE
    Hints(referrer='', anchor='News', depth=-1, kind=<UrlKind.FEED: 2>, clicks=3, changed=None, content_hash=0,
          status=0)
    """

    def first(*names: str) -> str:
        for name in names:
            if name in metadata:
                values = metadata[name]
                if len(values):
                    return values[0]
        return ""

    digest = first("digest", "signature")
    kind = _KINDS.get(first("kind").lower(), UrlKind.PAGE)
    if first("isSitemap").lower() in _TRUE:
        kind = UrlKind.SITEMAP
    elif first("isFeed").lower() in _TRUE:
        kind = UrlKind.FEED
    status = _whole(first("fetch.statusCode", "status"), 9999)
    return Hints(
        first("referrer") or _last(metadata, "url.path"),
        first("anchor"),
        _whole(first("depth"), 254),
        kind,
        max(_whole(first("clicks"), MOST_CLICKS), 0),
        _truth(first("changed").lower()),
        (xxhash.xxh3_64_intdigest(digest.encode("utf-8", "replace")) >> 1 or 1) if digest else 0,
        status if 100 <= status < 600 else 0,
    )


def _last(metadata: Mapping[str, Sequence[str]], name: str) -> str:
    """The last of several values: of a path of URLs, the one that led here."""
    if name not in metadata:
        return ""
    values = metadata[name]
    return values[-1] if len(values) else ""


def _whole(text: str, most: int) -> int:
    """A whole number from 0 to `most`; -1 where it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        return -1
    return min(int(text), most)


def _truth(text: str) -> bool | None:
    return True if text in _TRUE else False if text in _FALSE else None
