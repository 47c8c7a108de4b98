"""Bounds on crawler traps: sites that make new URLs without making new pages.

A calendar links to next month for ever, a broken relative link nests `/a/b/a/b`, a shop has a URL for each
order of its filters. What such URLs share is a pattern. A pattern gets a first allowance of URLs; its pages
then earn it more by being new, or lose it by being copies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from xxhash import xxh3_64_intdigest

_NUMBERED: Final = re.compile(
    r"/(?:\d+|\d{1,4}[-_.]\d{1,2}(?:[-_.]\d{1,4})?)(?:\.[A-Za-z]\w*)?(?=/|$)|(?:19|20)\d\d[-_]\d\d"
).search
_DIGITS: Final = re.compile(r"\d+")
_POSITIVE: Final = (1 << 63) - 1
_COUNT_BITS: Final = 32
_COUNT_MASK: Final = (1 << _COUNT_BITS) - 1


def has_repeated_path(url: str, limit: int = 3) -> bool:
    """Does one path segment occur more than `limit` times, or a pair of them `limit` times in a row?

    >>> has_repeated_path("http://example.com/a/b/a/b/a/b/"), has_repeated_path("http://example.com/a/b/c/a")
    (True, False)
    """
    start = url.find("/", 8)
    if start < 0:
        return False
    segments = url[start + 1 :].partition("?")[0].split("/")
    if not segments[-1]:
        segments.pop()
    if len(segments) <= limit or len(set(segments)) == len(segments):
        return False
    if max(Counter(segments).values()) > limit:
        return True
    run = 0
    for i in range(2, len(segments)):
        run = run + 1 if segments[i] == segments[i - 2] else 0
        if run >= 2 * (limit - 1):
            return True
    return False


def url_pattern(url: str) -> int | None:
    """The pattern a canonical URL belongs to, as a number from 0 to 2^63 - 1 (which SQLite can hold).

    URLs of one pattern have the same origin, the same path but for its digits, and the same query keys. None
    for a URL without query, number or date: such URLs are written by people and do not explode.

    >>> url_pattern("http://example.com/a/17?x=1&y=2") == url_pattern("http://example.com/a/4?y=3&x=5")
    True
    >>> url_pattern("http://example.com/about") is None
    True
    """
    address, mark, query = url.partition("?")
    start = address.find("/", 8)
    if start < 0:
        start = len(address)
    path = address[start:]
    if mark:
        keys = sorted({part.partition("=")[0] for part in query.split("&")})
        path = f"{path}?{'&'.join(keys)}"
    elif _NUMBERED(path) is None:
        return None
    return int(xxh3_64_intdigest((address[:start] + _DIGITS.sub("0", path)).encode())) & _POSITIVE


def url_series(url: str) -> int:
    """The series a URL belongs to, as a number above 0: URLs that differ in digits only; 0 for one without digits.

    Narrower than a pattern: pages of a wiki that are told apart by a word in the query are no series.

    >>> url_series("http://a.example/calendar?month=2026-01") == url_series("http://a.example/calendar?month=2031-12")
    True
    >>> url_series("http://a.example/wiki?title=Bower"), url_series("http://a.example/1") == url_series("http://b.example/1")
    (0, False)
    """
    start = url.find("/", 8)
    path = url[start:] if start >= 0 else ""
    digitless, found = _DIGITS.subn("0", path)
    return (int(xxh3_64_intdigest((url[:start] + digitless).encode())) & _POSITIVE) + 1 if found else 0


class PatternBudget:
    """How many URLs of one pattern are taken before its pages show that they are worth it.

    A pattern with `novel` new pages and `duplicate` copies among those fetched has the allowance

        max(base / 4, base + growth · novel - growth/5 · duplicate)

    and admits URLs until it has admitted that many. A copy costs a fifth of what a new page earns: with the
    defaults a pattern goes on for as long as about a fifth of its pages are new (an archive whose every
    article has a print version is half copies and must not starve), one of copies only stops at `base`, or
    at a quarter of it if the copies show up early. A refused URL is not remembered: found again, it is asked
    about again, and by then the pattern may have earned it.

    >>> budget = PatternBudget(base=2, growth=10)
    >>> [budget.admit(7) for _ in range(3)]
    [True, True, False]
    >>> budget.credit(7, novel=True)
    >>> budget.admit(7)
    True
    """

    def __init__(self, base: int = 200, growth: int = 20, max_patterns: int = 1_000_000) -> None:
        self.base = base
        self.growth = growth
        self.max_patterns = max_patterns
        # found, novel and duplicate in one integer: a million patterns as lists would take 250 MB
        self._counts: dict[int, int] = {}
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._counts)

    def admit(self, pattern: int) -> bool:
        """Take one more URL of this pattern? If so, it is counted."""
        counts = self._counts.pop(pattern, 0)
        found, novel, duplicate = _unpack(counts)
        admitted = found < self.allowance(novel, duplicate)
        # put back last, so that the first in the table is the one not met for longest
        self._counts[pattern] = counts + 1 if admitted else counts
        if admitted:
            self._changed.add(pattern)
        self._make_room()
        return admitted

    def credit(self, pattern: int, novel: bool) -> None:
        """A page of this pattern was fetched: it was new content, or (nearly) a copy of a page we had."""
        self._counts[pattern] = self._counts.get(pattern, 0) + (1 << (_COUNT_BITS if novel else 2 * _COUNT_BITS))
        self._changed.add(pattern)
        self._make_room()

    def allowance(self, novel: int, duplicate: int) -> int:
        """How many URLs a pattern with such pages may have."""
        return max(self.base // 4, 1, self.base + self.growth * novel - self.growth * duplicate // 5)

    def changed(self) -> list[tuple[int, int, int, int]]:
        """What to write down: (pattern, found, novel, duplicate) of all that changed since the last call."""
        rows = [(pattern, *_unpack(self._counts[pattern])) for pattern in sorted(self._changed)]
        self._changed.clear()
        return rows

    def restore(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Put back what `changed` gave earlier."""
        for pattern, found, novel, duplicate in rows:
            self._counts[pattern] = found | novel << _COUNT_BITS | duplicate << 2 * _COUNT_BITS
        self._make_room()

    def _make_room(self) -> None:
        excess = len(self._counts) - self.max_patterns
        if excess > 0:
            # some at a time: finding the first of a table is slow when many before it were taken out
            for pattern in list(islice(self._counts, excess + self.max_patterns // 16)):
                del self._counts[pattern]
                self._changed.discard(pattern)


def _unpack(counts: int) -> tuple[int, int, int]:
    return counts & _COUNT_MASK, counts >> _COUNT_BITS & _COUNT_MASK, counts >> 2 * _COUNT_BITS
