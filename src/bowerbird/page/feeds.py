"""RSS 0.9x, 1.0 and 2.0, Atom and JSON Feed: which pages does a feed announce, how often does it change?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urljoin

import orjson

from bowerbird.page.charset import read_header_charset
from bowerbird.page.dates import parse_date
from bowerbird.page.xmltree import local_name, namespace, parse_xml, read_text

MAX_ENTRIES = 5000
_MAX_TITLE_CHARS = 500
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_ALTERNATE = frozenset({"", "alternate", "http://www.iana.org/assignments/relation/alternate"})
#: words for how often something is updated, of the syndication module and of sitemaps
PERIODS_S = {
    "hourly": 3600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": 2_592_000.0,
    "yearly": 31_536_000.0,
}
# The first that can be read is taken: when a page appeared says more than when it was edited.
_DATES = ("pubdate", "published", "date", "issued", "created", "updated", "modified", "dcterms:modified")
_FOREIGN = ("search.yahoo.com/mrss", "itunes", "purl.org/rss/1.0/modules", "georss", "slash", "feedburner")


class FeedEntry(NamedTuple):
    """A page that a feed announces."""

    href: str
    title: str
    published_s: float | None


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed, read; `hub` is its WebSub hub."""

    title: str
    entries: list[FeedEntry] = field(default_factory=list)
    ttl_s: float | None = None
    hub: str | None = None
    update_period_s: float | None = None

    @property
    def period_s(self) -> float | None:
        """Seconds between updates, as the feed says: its update period, else how long it may be kept (`ttl`).

        >>> Feed("", ttl_s=3600.0).period_s, Feed("", ttl_s=3600.0, update_period_s=60.0).period_s
        (3600.0, 60.0)
        """
        return self.update_period_s or self.ttl_s


def parse_feed(body: bytes, content_type: str = "") -> Feed | None:
    """Read any feed; None for what is not one. Entries that lead nowhere are left out.

    >>> parse_feed(b"<rss><channel><title>T</title><item><link>http://a.example/1</link></item></channel></rss>")
    Feed(title='T', entries=[FeedEntry(href='http://a.example/1', title='', published_s=None)], ttl_s=None, \
hub=None, update_period_s=None)
    """
    if body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return _parse_json(body)
    root = parse_xml(body, read_header_charset(content_type))
    return None if root is None else read_feed(root)


def read_feed(root: Any) -> Feed | None:
    """Read a feed from its XML tree."""
    name = local_name(root)
    if name == "feed":
        return _read_tree(root, root, root.iterchildren())
    if name not in ("rss", "rdf", "channel"):
        return None
    channel = root if name == "channel" else next((c for c in root.iterchildren() if local_name(c) == "channel"), root)
    inside = list(channel.iterchildren())
    # RSS 1.0 and 0.90 put the items beside the channel
    beside = [] if channel is root else [child for child in root.iterchildren() if child is not channel]
    return _read_tree(root, channel, inside + beside)


def _read_tree(root: Any, channel: Any, children: Any) -> Feed:
    base = _join(root.get(_XML_BASE), channel.get(_XML_BASE)) if channel is not root else root.get(_XML_BASE)
    title = ""
    hub: str | None = None
    ttl_s: float | None = None
    period_s: float | None = None
    frequency = 1.0
    entries: list[FeedEntry] = []
    pending = list(children)
    for child in pending:
        name = local_name(child)
        if name in ("item", "entry"):
            if len(entries) < MAX_ENTRIES:
                entry = _read_entry(child, base)
                if entry is not None:
                    entries.append(entry)
        elif name == "items":  # some generators wrap the items
            pending.extend(c for c in child.iterchildren() if local_name(c) == "item")
        elif name == "title" and not title and not _is_foreign(child):
            title = read_text(child)[:_MAX_TITLE_CHARS]
        elif name == "link" and "hub" in (child.get("rel") or "").lower().split() and hub is None:
            hub = (child.get("href") or "").strip() or None
        elif name == "ttl":
            minutes = _read_number(read_text(child))
            ttl_s = minutes * 60 if minutes else None
        elif name == "updateperiod":
            period_s = PERIODS_S.get(read_text(child).lower())
        elif name == "updatefrequency":
            frequency = _read_number(read_text(child)) or 1.0
    if period_s is None and frequency != 1.0:
        period_s = PERIODS_S["daily"]  # the default of the syndication module
    return Feed(title, entries, ttl_s, hub, None if period_s is None else period_s / frequency)


def _read_entry(entry: Any, base: str | None) -> FeedEntry | None:
    base = _join(base, entry.get(_XML_BASE))
    href = guid = title = ""
    best_rank = 3
    dates: dict[str, str] = {}
    for child in entry.iterchildren():
        name = local_name(child)
        if name == "link":
            found, rank = _read_link(child)
            if found and rank < best_rank:
                href, best_rank = _join(_join(base, child.get(_XML_BASE)), found) or "", rank
        elif name in ("guid", "id"):
            guid = guid or read_text(child)
        elif name == "title":
            if not title and not _is_foreign(child):
                title = read_text(child)[:_MAX_TITLE_CHARS]
        elif name in _DATES and name not in dates:
            dates[name] = read_text(child)
    if not href and not guid:  # an element that was not closed has swallowed the link
        strays = (c for c in entry.iter("{*}link") if local_name(c.getparent()) not in ("source", "content", "image"))
        href = next((found for found in (_read_link(stray)[0] for stray in strays) if _is_web(found)), "")
    if not href:
        href = next((link for link in (guid, entry.get(_ABOUT) or "") if _is_web(link)), "")
    if not href:
        return None
    published_s = next((s for name in _DATES if name in dates and (s := parse_date(dates[name])) is not None), None)
    return FeedEntry(href, title, published_s)


def _read_link(link: Any) -> tuple[str, int]:
    """Where a link leads, and how much it is worth: 0 is the page itself."""
    if (link.get("rel") or "").strip().lower() not in _ALTERNATE:
        return "", 3
    href = (link.get("href") or "").strip()
    if href:
        kind = (link.get("type") or "").lower()
        return href, 1 if not kind or "html" in kind else 2
    if _is_foreign(link):
        return "", 3
    return "".join(read_text(link).split()), 0


def _is_foreign(element: Any) -> bool:
    space = namespace(element)
    return bool(space) and any(mark in space.lower() for mark in _FOREIGN)


def _join(base: str | None, href: str | None) -> str | None:
    if not base or not href:
        return href or base
    try:
        return urljoin(base, href)
    except ValueError:
        return href


def _is_web(href: str) -> bool:
    return href[:8].lower().startswith(("http://", "https://"))


def _read_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < 1e9 else None


def _parse_json(body: bytes) -> Feed | None:
    try:
        data = orjson.loads(body.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None
    if not isinstance(data, dict) or "jsonfeed.org" not in str(data.get("version")):
        return None
    entries: list[FeedEntry] = []
    items = data.get("items")
    for item in items[:MAX_ENTRIES] if isinstance(items, list) else []:
        if not isinstance(item, dict):
            continue
        links = (_read_string(item, key) for key in ("url", "external_url", "id"))
        href = next((link for link in links if _is_web(link)), "")
        if href:
            date = _read_string(item, "date_published") or _read_string(item, "date_modified")
            entries.append(FeedEntry(href, _read_string(item, "title")[:_MAX_TITLE_CHARS], parse_date(date)))
    hubs = data.get("hubs")
    hub = next((_read_string(h, "url") for h in hubs if isinstance(h, dict)), "") if isinstance(hubs, list) else ""
    return Feed(_read_string(data, "title"), entries, hub=hub or None)


def _read_string(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""
