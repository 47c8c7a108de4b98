"""Sitemaps in every form met in the wild: XML, index, plain text, feed, packed or not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from lxml import etree

from bowerbird.page.charset import decode_bytes, sniff_charset
from bowerbird.page.dates import parse_date
from bowerbird.page.feeds import PERIODS_S, parse_feed
from bowerbird.page.media import looks_binary, maybe_gunzip
from bowerbird.page.xmltree import iterate_xml, local_name, namespace, read_text

MAX_ENTRIES = 50_000
MAX_UNPACKED_BYTES = 50 * 1024 * 1024
_CHANGE_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
_PERIODS_S = {"always": PERIODS_S["hourly"], **PERIODS_S}  # at each access: more often than anybody asks
_EXTENSIONS = ("sitemap-image", "sitemap-video", "sitemap-news", "sitemap-mobile", "sitemap-pagemap")
_URL = re.compile(r"https?://\S+\Z", re.IGNORECASE)


class SitemapEntry(NamedTuple):
    """A page, or another sitemap."""

    href: str
    lastmod_s: float | None
    changefreq: str
    priority: float | None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap, read. `cut` entries were left out because there were too many."""

    pages: list[SitemapEntry] = field(default_factory=list)
    children: list[SitemapEntry] = field(default_factory=list)
    cut: int = 0
    feed_period_s: float | None = None  # of a feed that serves as a sitemap

    @property
    def period_s(self) -> float | None:
        """Seconds between updates, as it says: the median over the pages whose `changefreq` it gives; `never` is none.

        >>> pages = [SitemapEntry("", None, said, None) for said in ("daily", "always", "never", "", "hourly")]
        >>> Sitemap(pages).period_s
        3600.0
        """
        periods = [_PERIODS_S[said] for entry in self.pages if (said := entry.changefreq) in _PERIODS_S]
        return median(periods) if periods else self.feed_period_s


def parse_sitemap(body: bytes, url: str) -> Sitemap | None:
    """Read a sitemap; None for what is not one. `url`, where it came from, names the thing in logs only.

    >>> parse_sitemap(b"<urlset><url><loc> http://a.example/ </loc></url></urlset>", "").pages[0].href
    'http://a.example/'
    """
    body = maybe_gunzip(body, MAX_UNPACKED_BYTES)
    head = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] == b"<" or head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _read_xml(body)
    if not head or looks_binary(head):
        return None
    return _read_lines(body)


def _read_xml(body: bytes) -> Sitemap | None:
    pages: list[SitemapEntry] = []
    children: list[SitemapEntry] = []
    cut = 0
    events = iterate_xml(body)
    try:
        for _, element in events:
            name = local_name(element)
            if name not in ("url", "sitemap"):
                if name in ("item", "entry") and not pages and not children:
                    return _read_feed(body)
                continue
            entry = _read_entry(element)
            element.clear()
            while element.getprevious() is not None:  # what has been read need not be kept
                del element.getparent()[0]
            if entry is None:
                continue
            if len(pages) + len(children) >= MAX_ENTRIES:
                cut += 1
            else:
                (pages if name == "url" else children).append(entry)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        pass  # what was read before the damage counts
    root = events.root
    if root is not None and local_name(root) in ("urlset", "sitemapindex", "url", "sitemap"):
        return Sitemap(pages, children, cut)
    if pages or children:
        return Sitemap(pages, children, cut)
    return _read_feed(body)


def _read_entry(element: Any) -> SitemapEntry | None:
    href = changefreq = ""
    lastmod_s: float | None = None
    priority: float | None = None
    for child in element.iterchildren():
        name = local_name(child)
        if name == "news" and lastmod_s is None:
            dates = [read_text(c) for c in child.iterchildren() if local_name(c) == "publication_date"]
            lastmod_s = parse_date(dates[0]) if dates else None
        if any(mark in namespace(child) for mark in _EXTENSIONS):
            continue
        if name == "loc":
            href = href or read_text(child)
        elif name == "lastmod":
            lastmod_s = parse_date(read_text(child)) or lastmod_s
        elif name == "changefreq":
            value = read_text(child).lower()
            changefreq = value if value in _CHANGE_FREQUENCIES else ""
        elif name == "priority":
            try:
                value_number = float(read_text(child))
            except ValueError:
                continue
            priority = value_number if 0.0 <= value_number <= 1.0 else None
    parent = element.getparent()
    if not href and parent is not None and local_name(parent) in ("urlset", "sitemapindex"):
        text = (element.text or "").strip()  # seen in the wild: the address without its loc element
        href = text if _URL.match(text) else ""
    return SitemapEntry(href, lastmod_s, changefreq, priority) if href else None


def _read_feed(body: bytes) -> Sitemap | None:
    feed = parse_feed(body)
    if feed is None:
        return None
    pages = [SitemapEntry(entry.href, entry.published_s, "", None) for entry in feed.entries]
    return Sitemap(pages, feed_period_s=feed.period_s)


def _read_lines(body: bytes) -> Sitemap | None:
    pages: list[SitemapEntry] = []
    cut = wrong = 0
    for line in decode_bytes(body, sniff_charset(body)).splitlines():
        href = line.strip()
        if not href:
            continue
        if not _URL.match(href):
            wrong += 1
        elif len(pages) < MAX_ENTRIES:
            pages.append(SitemapEntry(href, None, "", None))
        else:
            cut += 1
    return Sitemap(pages, [], cut) if pages and wrong <= len(pages) + cut else None
