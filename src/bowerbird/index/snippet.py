"""The passage of a page that shows best why it was found, as plain text with ranges to highlight."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr

from bowerbird.index.analysis import SEPARATOR, restore

SNIPPET_CHARS = 240
_MAX_TEXT_CHARS = 50_000
_MAX_MATCHES_A_WORD = 100
_MAX_CONVERTED = 100
_FIRST_MULTIBYTE = 0x80
_LIGATURES = (("ss", "ß"), ("ae", "æ"), ("oe", "œ"))


def _build_fold() -> dict[int, str]:
    table = {}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base = unicodedata.normalize("NFKD", chr(code))[0]
        if base.isascii() and base.islower():
            table[code] = base
    return table


_FOLD = _build_fold()


@dataclass(frozen=True, slots=True)
class Highlighter:
    """Finds the words of one query in texts. Build it once a query, use it for every hit."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> Highlighter | None:
        """A highlighter for these words (as the index has them), or None where there are none."""
        forms = {form for word in words for form in (word, *(word.replace(*pair) for pair in _LIGATURES))}
        return cls(tuple(sorted(forms))) if forms else None

    def find(self, text: str) -> list[tuple[int, int]]:
        """The ranges of a prepared text that are words of the query, whole, with or without accents."""
        lower = _lower_in_place(text)
        if not lower.isascii():
            lower = lower.translate(_FOLD)
        return sorted(
            (start, end)
            for word in self.words
            for start, end in _occurrences(lower, word)
            if not (start and lower[start - 1].isalnum()) and not lower[end : end + 1].isalnum()
        )

    def find_in_bytes(self, data: bytes) -> list[tuple[int, int]]:
        """As `find`, in UTF-8 bytes, but without words that have accents in the text: far quicker."""
        lower = data.lower()
        return sorted(
            (start, end)
            for word in self.words
            for start, end in _occurrences(lower, word.encode())
            if not (_letter_before(lower, start) or _letter_after(lower, end))
        )


def make_snippet(
    prepared: str, highlighter: Highlighter | None, *, otherwise: str = "", length: int = SNIPPET_CHARS
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The best passage of a prepared text, and what to highlight in it.

    Where no word is found the passage is `otherwise` (a description), or else the beginning of the text.
    """
    text = prepared[:_MAX_TEXT_CHARS]
    data = text.encode()
    found: list[tuple[int, int]] = []
    if highlighter is not None:
        found = highlighter.find_in_bytes(data)
        if not found and len(data) != len(text):
            found = [
                (len(text[:start].encode()), len(text[:end].encode()))
                for start, end in highlighter.find(text)[:_MAX_CONVERTED]
            ]
    if not found or highlighter is None:
        fragment, cut = _cut(otherwise.encode() or data, 0, 0, 0, length)
        return restore(" ".join(fragment.split())) + (" …" if cut else ""), ()
    first, last = _best_window([data[start:end].lower() for start, end in found], found, length)
    start, end = found[first][0], found[last][1]
    begin = max(0, start - max(0, length - (end - start)) // 3)
    fragment, cut = _cut(data, begin, start, end, length)
    fragment = " ".join(fragment.split())
    if begin:
        fragment = "… " + fragment
    if cut:
        fragment += " …"
    return _without_separators(fragment, highlighter.find(fragment))


def _best_window(words: list[bytes], found: list[tuple[int, int]], length: int) -> tuple[int, int]:
    """The indexes of the first and last match of the window with most different words, then most matches."""
    best, best_value, right = (0, 0), (0, 0), 0
    inside: dict[bytes, int] = {}
    for left, word in enumerate(words):
        while right < len(found) and (found[right][1] - found[left][0] <= length or right == left):
            inside[words[right]] = inside.get(words[right], 0) + 1
            right += 1
        value = (len(inside), right - left)
        if value > best_value:
            best, best_value = (left, right - 1), value
        inside[word] -= 1
        if not inside[word]:
            del inside[word]
    return best


def _cut(data: bytes, begin: int, start: int, end: int, length: int) -> tuple[str, bool]:
    """Cut out `begin…begin+length` at spaces, keeping `start…end`; also whether something follows."""
    if begin:
        space = data.find(b" ", begin, start)
        begin = space + 1 if space >= 0 else begin
    stop = max(begin + length, end)
    if stop >= len(data):
        return data[begin:].decode(errors="ignore"), False
    space = data.rfind(b" ", max(end, begin + length // 2), stop)
    return data[begin : space if space > 0 else stop].decode(errors="ignore"), True


def _occurrences(text: AnyStr, word: AnyStr) -> Iterator[tuple[int, int]]:
    start = text.find(word)
    for _ in range(_MAX_MATCHES_A_WORD):
        if start < 0:
            return
        end = start + len(word)
        yield start, end
        start = text.find(word, end)


def _letter_before(data: bytes, start: int) -> bool:
    if not start:
        return False
    if data[start - 1] < _FIRST_MULTIBYTE:
        return data[start - 1 : start].isalnum()
    return data[max(0, start - 4) : start].decode(errors="ignore")[-1:].isalnum()


def _letter_after(data: bytes, end: int) -> bool:
    if end >= len(data) or data[end] < _FIRST_MULTIBYTE:
        return data[end : end + 1].isalnum()
    return data[end : end + 4].decode(errors="ignore")[:1].isalnum()


def _without_separators(fragment: str, found: list[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    if SEPARATOR not in fragment:
        return fragment, tuple(found)
    ranges: list[tuple[int, int]] = []
    for start, end in found:
        moved = start - fragment.count(SEPARATOR, 0, start)
        moved_end = moved + (end - start)
        if ranges and ranges[-1][1] == moved:
            ranges[-1] = (ranges[-1][0], moved_end)
        else:
            ranges.append((moved, moved_end))
    return restore(fragment), tuple(ranges)


def _lower_in_place(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
