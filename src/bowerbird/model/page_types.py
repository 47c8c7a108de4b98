"""What kind of page a URL leads to, as far as its form and the kind of body tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class PageType(IntEnum):
    """Kinds that change at rates of their own: main pages and listings often, articles seldom."""

    PLAIN = 0
    MAIN = 1  # of a host
    LISTING = 2  # tags, categories, archives, searches, further pages of a list
    DATED = 3  # an article: a day or a month in its path
    QUERY = 4  # any other query string
    DIRECTORY = 5  # ends with a slash, or is its index
    FILE = 6  # not HTML by its ending
    TEXT = 7  # not HTML by its body
    SOURCE = 8  # a feed or a sitemap where a page was expected


_SORTED_BY = {"category", "categories"}.union(
    *({name, f"{name}s"} for name in ("tag", "topic", "label", "author", "archive")),
)
_LISTS = _SORTED_BY | {"section", "sections", "search", "browse", "latest", "recent", "blog", "news", "forum", "forums"}
_LISTED = re.compile(r"(?:^|&)(?:page|q|s|query|search|tag|cat|category|sort|order|offset|start)=")
_DATE = re.compile(r"[/_-](?:19|20)\d\d[/_-]?(?:0[1-9]|1[0-2])(?:[/_-]|[0-3]\d|$)")
_INDEX = re.compile(r"(?:index|default|home)(?:\.\w+)?$")
_FILES = (
    ".pdf",
    ".txt",
    ".md",
    ".rst",
    ".csv",
    ".tsv",
    ".json",
    ".xml",
    ".yaml",
    ".yml",
    ".doc",
    ".docx",
    ".odt",
    ".ps",
)
_BODIES = {"text": PageType.TEXT, "feed": PageType.SOURCE, "sitemap": PageType.SOURCE}


def type_pages(urls: Iterable[str], media: Iterable[str]) -> npt.NDArray[np.int64]:
    """The PageType of each page; `media` is "html", "text", "feed", "sitemap", or empty where that is not known.

    >>> type_pages(["https://a.example/", "https://a.example/tag/tea", "https://a.example/tea"], ["html"] * 3).tolist()
    [1, 2, 0]
    """
    pairs = zip(urls, media, strict=True)
    return np.array([_BODIES[kind] if kind in _BODIES else _type_url(url) for url, kind in pairs], dtype=np.int64)


def _type_url(url: str) -> PageType:
    start = url.find("/", url.find("://") + 3)
    path, _, query = (url[start:] if start >= 0 else "/").partition("#")[0].lower().partition("?")
    head, _, last = path.rpartition("/")
    if last and _INDEX.match(last):
        last = ""
    if not (head or last or query):
        return PageType.MAIN
    above, _, name = head.rpartition("/") if not last else (head, "", last)
    parent = above.rpartition("/")[2]
    if name in _LISTS or parent in _SORTED_BY or parent == "page" or (query and _LISTED.search(query)):
        return PageType.LISTING
    if _DATE.search(path):
        return PageType.DATED
    if query:
        return PageType.QUERY
    if not last:
        return PageType.DIRECTORY
    return PageType.FILE if last.endswith(_FILES) else PageType.PLAIN
