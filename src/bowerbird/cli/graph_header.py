"""Is the first line of a graph file a header, and which column is what?

By name where the header is known. By place only where there is no header, or there are no other columns and the header
does not contradict; then it is told what was taken for what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bowerbird.lab.data_files import parse_numbers
from bowerbird.library.column_names import CLICKS, FREQUENCIES, SCORES, WEIGHTS, find_columns, tell_missing
from bowerbird.model.errors import InputFileError

_NUMBERS = (CLICKS, FREQUENCIES, SCORES, WEIGHTS)
_HEADER_WORDS = frozenset(
    word.removesuffix("s")
    for word in re.findall(
        r"\w+",
        "source src from origin start target dst dest destination to end url uri href address link linking linked page "
        "name title slug article document doc node id crawled fetched linksource linktarget the of anchor text",
    )
)
_PLAIN_NAME = re.compile(r"[^\W\d_][\w -]{0,39}").fullmatch
#: what a column may hold, and no header does
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*:/)?/.*", re.IGNORECASE | re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class Header:
    """Which column holds each of the wanted ones, and whether the first line says so or is a row."""

    places: list[int]
    is_there: bool
    notes: list[str] = field(default_factory=list)


def read_header(
    path: Path, first: Sequence[str], below: Sequence[Sequence[str]], wanted: Sequence[tuple[str, ...]]
) -> Header:
    """From the first line and some below it. Raises InputFileError where a header leaves it open which column is what.

    >>> read_header(Path("l.tsv"), ["n", "Target page", "Source page"], [], (("source",), ("target",))).places
    [2, 1]
    """
    known = find_columns(first, wanted)
    if known is not None:
        return Header(known, is_there=True)
    in_order = list(range(len(wanted)))
    if len(first) < len(wanted) or not _is_header(first, below, wanted):
        return Header(in_order, is_there=False)
    matches = _match_words(first, wanted)
    places = [found[0] for found in matches if len(found) == 1]
    if len(set(places)) < len(wanted):
        contradicted = any(set(found) - {place} for place, found in enumerate(matches))
        if contradicted or len(first) > len(wanted):
            raise InputFileError(f"{path}: {tell_missing(first, wanted)}")
        places = in_order
    taken = (f"column {place + 1} ({first[place]}) is {names[0]}" for place, names in zip(places, wanted, strict=True))
    said = f"{path}: its first line ({', '.join(first)}) is taken for a header: {', '.join(taken)}."
    return Header(places, is_there=True, notes=[said])


def _match_words(header: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> list[list[int]]:
    """For each wanted column those that have a word of its names, such as "Source page" or "from_page".

    Other words make it something else ("from_date"), but for numbers, of which few others are about.
    """
    cells = [_words_of(cell) for cell in header]
    found = []
    for names in wanted:
        known = {word for name in names for word in _words_of(name.partition("_")[0])}
        plain = _HEADER_WORDS | known
        found.append(
            [place for place, cell in enumerate(cells) if cell & known and (names in _NUMBERS or cell <= plain)]
        )
    return found


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]], wanted: Sequence[tuple[str, ...]]) -> bool:
    """Names where every line has a number, or above addresses or numbers alone; else words that name columns."""
    if wanted[-1] in _NUMBERS and first[len(wanted) - 1] and not any(map(_is_number, first)):
        return True
    if not all(map(_PLAIN_NAME, first)):
        return False
    columns = ([row[place] for row in below if place < len(row)] for place in range(len(first)))
    if any(cells and all(_ADDRESS(cell) or _is_number(cell) for cell in cells) for cells in columns):
        return True
    return sum(_words_of(cell) <= _HEADER_WORDS for cell in first if re.fullmatch("[A-Za-z _-]+", cell)) >= len(wanted)


def _words_of(cell: str) -> set[str]:
    """The words of a column's name, in the singular: "Source pages", "source_page", "sourcePage"."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", cell)}


def _is_number(cell: str) -> bool:
    """Also one below zero."""
    return bool(parse_numbers([cell.removeprefix("-")])[0] >= 0)
