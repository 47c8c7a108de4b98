"""What a URL is to the crawl: its state, its kind, and the kind of fetch it asks for. Numbers are stored."""

from __future__ import annotations

from enum import IntEnum


class UrlState(IntEnum):
    """Where a URL stands in its life."""

    NEW = 0  # known, never fetched: the frontier
    FETCHED = 1  # has a page
    REDIRECT = 2  # answers with another URL
    GONE = 3  # 404 or 410
    FAILED = 4  # given up after repeated errors, or nothing we index
    EXCLUDED = 5  # robots.txt says no
    FORGOTTEN = 6  # removed by a person, never fetched again


class UrlKind(IntEnum):
    """What a URL holds."""

    PAGE = 0
    SITEMAP = 1
    FEED = 2


class FetchKind(IntEnum):
    """Where the budget goes."""

    NEW = 0
    REFRESH = 1
    HUB = 2
    PROBE = 3  # drawn by chance, to measure

    @property
    def label(self) -> str:
        """The name as people read it."""
        return self.name.lower()


REVISITED = (UrlState.FETCHED, UrlState.REDIRECT, UrlState.GONE, UrlState.FAILED)
