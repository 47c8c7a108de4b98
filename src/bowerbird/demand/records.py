"""One line of a log as named fields, whatever the file format, and what happened according to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bowerbird.demand.events import MAX_QUERY_CHARS, normalise_query
from bowerbird.demand.tally import Tally
from bowerbird.web.url import Canonicaliser

#: field -> names under which logs have it; the first is the one we document
NAMES: dict[str, tuple[str, ...]] = {
    "query": ("query", "q", "user_query", "keyword", "search_query", "search", "term"),
    "count": ("count", "frequency", "freq", "n", "searches", "volume"),
    "time": ("time", "timestamp", "at", "date", "datetime", "querytime", "query_time", "@timestamp"),
    "results": ("results", "hits", "result_count", "total"),
    "url": ("url", "page", "clickurl", "click_url", "document", "title"),
    "rank": ("rank", "position", "itemrank", "item_rank"),
    "clicked": ("clicked", "click", "clicks"),
    "shown": ("shown", "urls"),
}
FIELD_OF = {name: field_name for field_name, names in NAMES.items() for name in names}
MAX_COUNT = 10**12
MAX_RANK = 100_000
#: A clock may be a little fast; a time a day ahead is a mistake in the file.
AHEAD_S = 86_400.0

_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE).match


class BadLine(ValueError):  # noqa: N818  it never leaves the room: a bad line is counted
    """A line that cannot be understood, with the reason."""


class Unused(Exception):  # noqa: N818
    """A line that is understood but says nothing of interest, with the reason."""


@dataclass(slots=True)
class Context:
    """What the lines do not say themselves."""

    at: float
    now: float
    url_prefix: str = ""
    canonicaliser: Canonicaliser = field(default_factory=Canonicaliser)

    def url_of(self, text: str) -> str:
        """The canonical URL of a URL or, with a prefix, of a page's name."""
        text = text.strip()
        if not _ABSOLUTE(text):
            if not self.url_prefix:
                raise BadLine(f"{text[:60]!r} is no URL; --url-prefix would make one of it")
            text = self.url_prefix + quote(text, safe=";@$!*(),/~:")
        url = self.canonicaliser.canonical(text)
        if url is None:
            raise BadLine(f"{text[:60]!r} is no URL that can be crawled")
        return url

    def time_of(self, value: Any) -> float:
        """Unix seconds of a time as logs write it."""
        at = parse_time(value)
        if at > self.now + AHEAD_S:
            raise BadLine(f"time {value!r} is in the future")
        return at


def parse_time(value: Any) -> float:
    """Unix seconds of a number (seconds, milliseconds or microseconds) or an ISO 8601 text (UTC unless it says).

    >>> parse_time("2024-12-11T04:56:49.419Z") == parse_time(1733893009419) == parse_time("1733893009.419")
    True
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = float(text)
        except ValueError:
            try:
                moment = datetime.fromisoformat(text)
                at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError):
                raise BadLine(f"time {text[:40]!r} is neither a number nor a date") from None
            if at < 0:
                raise BadLine(f"time {text[:40]!r} is before 1970") from None
            return at
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e17:
        raise BadLine(f"time {value!r} cannot be")
    return value / (1e6 if value > 1e14 else 1e3 if value > 1e11 else 1.0)


def parse_count(value: Any, what: str = "count", least: int = 0, most: int = MAX_COUNT) -> int:
    """A whole number."""
    try:
        number = int(value)
        if isinstance(value, float) and number != value:
            raise ValueError(value)
    except (TypeError, ValueError, OverflowError):
        raise BadLine(f"{what} {str(value)[:40]!r} is not a whole number") from None
    if not least <= number <= most:
        raise BadLine(f"{what} {number} is not from {least} to {most}")
    return number


def parse_query_text(value: Any) -> str:
    """A normalised query that is not empty."""
    if value is None:
        raise BadLine("no query")
    if not isinstance(value, str):
        raise BadLine(f"query {str(value)[:40]!r} is not a text")
    if len(value) > MAX_QUERY_CHARS:
        raise BadLine(f"query of {len(value):,} characters; {MAX_QUERY_CHARS:,} are allowed")
    text = normalise_query(value)
    if not text:
        raise BadLine("no query")
    return text


def parse_clicked(value: Any) -> int:
    """Clicks of true, false or a number."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "yes", "false", "no"):
        return int(value.strip().lower() in ("true", "yes"))
    return parse_count(value, "clicked")


def take_record(record: Mapping[str, Any], tally: Tally, context: Context) -> None:
    """Add what one record says; its keys are those of `NAMES`, empty values are absent.

    Without a URL it is a query that was asked. With a URL it is a result: with `clicked`, one that was shown
    and perhaps clicked; without, one that was clicked. A result does not count as another asking.
    """
    raw_query, raw_url, raw_time = record.get("query"), record.get("url"), record.get("time")
    timed = raw_time not in (None, "")
    at = context.time_of(raw_time) if timed else context.at
    count = parse_count(record["count"], least=1) if record.get("count") not in (None, "") else 1
    if raw_url in (None, ""):
        _take_query(record, tally, context, at, count, timed)
        return
    if not isinstance(raw_url, str):
        raise BadLine(f"url {str(raw_url)[:40]!r} is not a text")
    url = context.url_of(raw_url)
    query = tally.key_of(parse_query_text(raw_query)) if raw_query not in (None, "") else None
    rank = None
    if record.get("rank") not in (None, ""):
        rank = parse_count(record["rank"], "rank", 1, MAX_RANK)
    clicked = record.get("clicked")
    if clicked in (None, ""):
        tally.click(query, url, rank, at, count, timed=timed)
        return
    clicks = parse_clicked(clicked) * count
    if query is not None and rank is not None:
        tally.show(query, url, rank, at, count)
    elif not clicks:
        raise Unused("shown, without query or rank")
    tally.click(query, url, rank, at, clicks, timed=timed)


def take_row(record: Mapping[str, Any], tally: Tally, context: Context, seen: dict[tuple[str, str], bool]) -> None:
    """As `take_record`, in a table in which each result of one asking repeats its query and time.

    The first row of a query and time is an asking too. `seen` is to be the same for rows of one table: what
    was met, and whether in a row with a URL.
    """
    asking = (str(record.get("query") or ""), str(record.get("time") or ""))
    if "" in asking:
        take_record(record, tally, context)
        return
    with_url = record.get("url") not in (None, "")
    if not with_url and seen.get(asking):
        return
    take_record(record, tally, context)
    if with_url and asking not in seen:
        count = parse_count(record["count"], least=1) if record.get("count") not in (None, "") else 1
        tally.ask(parse_query_text(asking[0]), context.time_of(asking[1]), count)
    seen.setdefault(asking, with_url)


def _take_query(record: Mapping[str, Any], tally: Tally, context: Context, at: float, count: int, timed: bool) -> None:
    text = parse_query_text(record.get("query"))
    found = record.get("results")
    results = parse_count(found, "results") if found not in (None, "") else None
    shown = record.get("shown")
    if shown in (None, ""):
        urls = []
    elif isinstance(shown, list) and all(isinstance(url, str) for url in shown):
        urls = [context.url_of(url) for url in shown]
    else:
        raise BadLine("shown is not a list of URLs")
    tally.ask(text, at, count, results, timed=timed)
    key = tally.key_of(text) if urls else 0
    for rank, url in enumerate(urls, 1):
        tally.show(key, url, rank, at)
