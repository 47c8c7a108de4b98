"""Which column of a table is what: by its header, or by what is in it where that leaves no doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bowerbird.demand.records import FIELD_OF, NAMES, BadLine, parse_time
from bowerbird.model.errors import InputFileError

#: a whole number from here on is a time, not a count
FIRST_TIME_S = 100_000_000
#: longer ones are not even converted: that takes for ever, or is refused
MAX_DIGITS = 20

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*").fullmatch
_NAME = re.compile(r"[@#]?[^\W\d_][\w .:/#()-]{0,39}").fullmatch
_WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE).match
_MEANING = {
    "query": "the query",
    "count": "the frequency",
    "time": "the time",
    "results": "the number of results",
    "url": "the page",
    "rank": "the rank",
    "clicked": "the clicks",
    "shown": "the pages shown",
}
_KNOWN = (
    f"query ({', '.join(NAMES['query'][1:])}), {', '.join(name for name in NAMES if name not in ('query', 'shown'))}"
)


def describe_columns(columns: Sequence[str | None]) -> str:
    """What is read from which column, in words; the query first.

    >>> describe_columns(["count", "query", None])
    'column 2 is the query, column 1 the frequency; not read: column 3'
    """
    if len(columns) == 1:
        return "each line is a query"
    read = [(number, field) for number, field in enumerate(columns, 1) if field in _MEANING]
    read.sort(key=lambda column: column[1] != "query")
    parts = [f"column {number} {'' if at else 'is '}{_MEANING[field or '']}" for at, (number, field) in enumerate(read)]
    rest = [str(number) for number, field in enumerate(columns, 1) if field not in _MEANING]
    if rest:
        parts[-1] += f"; not read: column{'s' if len(rest) > 1 else ''} {', '.join(rest)}"
    return ", ".join(parts)


def choose_columns(rows: Sequence[Sequence[str]], name: str, separator: str, *, headed: bool) -> list[str | None]:
    """Fields by column of a table without a known header; raises where it is in doubt which column is the query.

    `headed`: the first row is the first line of the file.
    """
    kinds = [_kind(cells) for cells in zip(*rows, strict=True)]
    if len(kinds) == 1:
        return ["query"]
    if headed and is_unknown_header(rows):
        said = ", ".join(cell.strip() for cell in rows[0])
        raise InputFileError(
            f"{name}: its first line ({_shorten(said)}) looks like a header, but none of these is a known name for the "
            f"query. Known are {_KNOWN}. Rename the column that holds the queries to query; others are left out."
        )
    texts = [number for number, kind in enumerate(kinds, 1) if kind == "query"]
    if len(texts) > 1:
        whole = " If each line is one query, say --format tsv." if separator == "," else ""
        raise InputFileError(
            f"{name}: columns {', '.join(map(str, texts))} are texts, and no header says which is the query. Give it a "
            f"first line that names its columns; known are {_KNOWN}.{whole}"
        )
    if not texts:
        raise InputFileError(
            f"{name}: no column of it looks like queries. Give it a first line that names its columns "
            "(query, count, time, url, rank, clicked), or say --format."
        )
    return [kind if kind in _MEANING and kind not in kinds[:number] else None for number, kind in enumerate(kinds)]


def is_unknown_header(rows: Sequence[Sequence[str]]) -> bool:
    """Is the first row one of names, above a column of numbers or times, or with a name that we know?

    >>> is_unknown_header([["user", "phrase", "day"], ["u1", "red fox", "2026-01-01"]])
    True
    >>> is_unknown_header([["red fox", "3"], ["blue", "4"]])
    False
    """
    names = [cell.strip().strip("\ufeff") for cell in rows[0]]
    if len(set(names)) < len(names) or not all(map(_NAME, names)) or any(map(_is_time, names)):
        return False
    below = [_kind(cells) for cells in zip(*rows[1:], strict=True)]
    return any(kind in ("count", "time") for kind in below) or sum(name.lower() in FIELD_OF for name in names) > 1


def _shorten(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= 120 else plain[:119] + "…"


def read_header(cells: Sequence[str]) -> list[str | None] | None:
    """Fields by column where these cells are a header, None where they are data.

    >>> read_header(["Query", "Frequency", "AnonID"])
    ['query', 'count', None]
    >>> read_header(["title", "35"]) is None
    True
    """
    names = [cell.strip().strip("\ufeff").lower() for cell in cells]
    if any(_NUMBER(name) for name in names):
        return None
    if len(names) == 1:
        return ["query"] if names[0] in ("query", "queries", "q") else None
    fields: list[str | None] = []
    for name in names:
        field = FIELD_OF.get(name)
        fields.append(field if field not in fields else None)
    if "query" in fields and (len(set(fields)) > 1):
        return fields
    return fields if "url" in fields and ("clicked" in fields or "count" in fields) else None


def is_asked_by_rows(header: Sequence[str], columns: Sequence[str | None], rows: Sequence[Sequence[str]]) -> bool:
    """Does a table of results say in the rows of results when a query was asked?

    So it does if its time is called that of the query, or if no row is a query only: otherwise these are the
    askings, and the times of results are those of clicks.

    >>> is_asked_by_rows(["Query", "QueryTime", "ClickURL"], ["query", "time", "url"], [["red", "2006-03-01", ""]])
    True
    """
    if not {"query", "time", "url"} <= set(columns):
        return False
    url, time = columns.index("url"), columns.index("time")
    if header[time].strip().lower() in ("querytime", "query_time"):
        return True
    return bool(rows) and all(row[url].strip() for row in rows if len(row) == len(columns))


def _kind(cells: Sequence[str]) -> str:
    filled = [cell.strip() for cell in cells if cell.strip()]
    if not filled:
        return "empty"
    good = 0.9 * len(filled)
    if sum(cell.isdecimal() and len(cell) <= MAX_DIGITS and int(cell) < FIRST_TIME_S for cell in filled) >= good:
        return "count"
    if sum(_is_time(cell) for cell in filled) >= good:
        return "time"
    return "address" if sum(_WEB_ADDRESS(cell) is not None for cell in filled) >= good else "query"


def _is_time(cell: str) -> bool:
    try:
        parse_time(cell)
    except BadLine:
        return False
    return True
