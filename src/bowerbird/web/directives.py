"""What a page asks of crawlers itself: the X-Robots-Tag header and the robots meta element."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

# Directives that carry a value; any other `name:` addresses a crawler.
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_ADDRESS: Final = re.compile(r"\s*(\*|[A-Za-z][\w.-]*)\s*:").match
_MAX_VALUE_CHARS: Final = 4096


@dataclass(frozen=True, slots=True)
class Directives:
    """What a page forbids; combined with `|`, the stricter wins.

    >>> Directives(noindex=True) | Directives(nofollow=True)
    Directives(noindex=True, nofollow=True, noarchive=False)
    """

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False

    def __or__(self, other: Directives) -> Directives:
        return Directives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noarchive or other.noarchive,
        )


_NAMED: Final = {
    "noindex": Directives(noindex=True),
    "nofollow": Directives(nofollow=True),
    "none": Directives(noindex=True, nofollow=True),
    "noarchive": Directives(noarchive=True),
    "nocache": Directives(noarchive=True),
}


def parse_robots_tag(values: Iterable[str], agent: str, now_s: float | None = None) -> Directives:
    """Read all X-Robots-Tag headers of a response, as they apply to `agent` (our product token).

    A name before a colon restricts what follows in the same header to that crawler. Given `now_s`, an
    `unavailable_after` date that has passed means noindex. Of each value the first 4,096 characters are read.

    >>> parse_robots_tag(["noarchive", "otherbot: noindex", "bowerbird: nofollow"], "bowerbird")
    Directives(noindex=False, nofollow=True, noarchive=True)
    """
    ours = agent.partition("/")[0].strip().lower()
    found = Directives()
    for value in values:
        applies = True
        tokens = iter(value[:_MAX_VALUE_CHARS].split(","))
        for part in tokens:
            start = 0
            address = _ADDRESS(part)
            while address is not None and address[1].lower() not in _VALUED:
                applies = address[1].lower() in ("*", ours)
                start = address.end()
                address = _ADDRESS(part, start)
            if address is None:
                if applies:
                    found |= _read(part[start:])
            elif address[1].lower() == "unavailable_after":
                date = part[address.end() :].strip()
                if date.isalpha():  # the comma was the one after a weekday
                    date += "," + next(tokens, "")
                if applies and _has_passed(date, now_s):
                    found |= _NAMED["noindex"]
    return found


def parse_robots_meta(content: str, now_s: float | None = None) -> Directives:
    """Read the content of `<meta name="robots">`, or of one that names our crawler.

    >>> parse_robots_meta("NOINDEX, follow")
    Directives(noindex=True, nofollow=False, noarchive=False)
    """
    return parse_robots_tag((content,), "*", now_s)


def _read(token: str) -> Directives:
    found = Directives()
    for word in re.split(r"[\s;]+", token.lower()):  # some pages forget the commas
        if word in _NAMED:
            found |= _NAMED[word]
    return found


def _has_passed(date: str, now_s: float | None) -> bool:
    """Is this date (RFC 822, RFC 850 or ISO 8601) behind us? No, if it cannot be read."""
    if now_s is None:
        return False
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(date.strip())
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp() <= now_s
    return False
