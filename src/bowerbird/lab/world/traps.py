"""Traps: addresses without end that no crawler should follow for long."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from bowerbird.lab.world.chance import mix, text_key


class TrapKind(IntEnum):
    """The ways in which a site goes on for ever."""

    CALENDAR = 0  # every month links to the next one
    FOLDERS = 1  # a relative link that grows: /a/a/a/
    SESSIONS = 2  # every page has ever new addresses with a session in them
    REDIRECTS = 3  # one redirect leads to the next


@dataclass(frozen=True, slots=True)
class Trap:
    """Where a trap begins, and what all its addresses match."""

    host: str
    kind: TrapKind
    entry: str
    pattern: str


ENTRIES = {
    TrapKind.CALENDAR: "/calendar/?month=2026-01",
    TrapKind.FOLDERS: "/archive/",
    TrapKind.SESSIONS: "/?sid=0123456789abcdef",
    TrapKind.REDIRECTS: "/go/0",
}
PATTERNS = {
    TrapKind.CALENDAR: r"/calendar/(\?month=\d{4,}-\d\d)?",
    TrapKind.FOLDERS: r"/(archive/)+",
    TrapKind.SESSIONS: r"(.*)[?&]sid=([0-9a-f]+)",
    TrapKind.REDIRECTS: r"/go/(\d+)",
}
_COMPILED = {kind: re.compile(pattern) for kind, pattern in PATTERNS.items()}
_MONTH = re.compile(r"month=(\d{1,6})-(\d\d)")


def match(kind: int, path: str) -> re.Match[str] | None:
    """Is this path one of a trap of that kind?"""
    return _COMPILED[TrapKind(kind)].fullmatch(path) if kind >= 0 else None


def months(path: str) -> tuple[str, str, str]:
    """The month a calendar page shows, the one before and the one after."""
    found = _MONTH.search(path)
    number = int(found[1]) * 12 + int(found[2]) - 1 if found else 2026 * 12
    return _month(number), _month(max(number - 1, 0)), _month(number + 1)


def _month(number: int) -> str:
    return f"{number // 12:04d}-{number % 12 + 1:02d}"


def next_redirect(path: str) -> str:
    """Where a redirect without end leads."""
    return f"/go/{int(path.removeprefix('/go/')[-15:]) + 1}"


def session_path(path: str, seed: int, given: str) -> str:
    """The address of a page with a session that has not been seen before."""
    sign = "&" if "?" in path else "?"
    return f"{path}{sign}sid={mix(seed, 31, text_key(path), text_key(given)):016x}"
