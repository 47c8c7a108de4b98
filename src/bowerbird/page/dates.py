"""Dates as feeds and sitemaps write them, rightly or not, to seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import mktime_tz, parsedate_tz

_ISO = re.compile(
    r"\s*(\d{4})(?:-?(\d{1,2})(?:-?(\d{1,2}))?)?"
    r"(?:(?:\s*[Tt]\s*|\s+)(\d{1,2}):?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9})\d*)?)?)?"
    r"\s*(?:([Zz]|UTC|GMT)|([+-])(\d{1,2}):?(\d{2})?)?\s*\Z"
)
_MAX_CHARS = 100  # no date is longer; the patterns take quadratic time on long runs of spaces
_LAST_S = 253_402_300_800.0  # the year 10000


def parse_date(text: str | None) -> float | None:
    """Read an ISO 8601 / W3C or RFC 822 date; without a zone it is UTC; what cannot be read is None.

    >>> parse_date("2004-12-23T18:00:15Z"), parse_date("Thu, 05 Jan 17 13:34:52 +0100"), parse_date("soon")
    (1103824815.0, 1483619692.0, None)
    """
    text = text.strip() if text else ""
    if not text or len(text) > _MAX_CHARS:
        return None
    match = _ISO.match(text)
    if match is not None:
        return _read_iso(match)
    try:
        fields = parsedate_tz(text)
        seconds = None if fields is None else float(mktime_tz(fields))
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    return seconds if seconds is not None and -_LAST_S < seconds < _LAST_S else None


def _read_iso(match: re.Match[str]) -> float | None:
    year, month, day, hour, minute, second, fraction, _, sign, zone_h, zone_min = match.groups()
    zone: timezone = UTC
    try:
        if sign:
            offset = timedelta(hours=int(zone_h), minutes=int(zone_min or 0))
            zone = timezone(-offset if sign == "-" else offset)
        moment = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0) % 24,
            int(minute or 0),
            min(int(second or 0), 59),  # a leap second
            tzinfo=zone,
        )
        seconds = moment.timestamp() + (86_400 if hour == "24" else 0)
    except (ValueError, OverflowError):
        return None
    return seconds + (float(f"0.{fraction}") if fraction else 0.0)
