"""Which format a log has, from its first lines."""

from __future__ import annotations

import re
from collections import Counter

import orjson

from bowerbird.demand.columns import is_unknown_header, read_header
from bowerbird.demand.delimited import split_csv
from bowerbird.demand.records import BadLine
from bowerbird.model.errors import ConfigError, InputFileError

AUTO = "auto"
FORMATS = ("tsv", "csv", "jsonl", "ubi", "clickstream")
SNIFF_BYTES = 64 << 10
_LINES = 100
_CLICKSTREAM_TYPES = frozenset({"link", "external", "other"})
#: host, identity and user, perhaps after the virtual host; then [day/month/year:time zone] "request
_REQUEST = re.compile(r'\S+ [^\["]{1,200}\[\d{1,2}/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "').match
_UBI_KEYS = frozenset({"user_query", "action_name", "_source"})


def head_lines(head: bytes) -> list[str]:
    """The first lines of a file that are not empty."""
    lines = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\n")
    if len(lines) > 1 and len(head) >= SNIFF_BYTES:
        lines.pop()  # cut short
    return [line.rstrip("\r") for line in lines if line.strip()][:_LINES]


def recognise(head: bytes, asked: str, name: str) -> str:
    """The format to read a file by; raises where it cannot be the one that was named."""
    if asked not in (AUTO, *FORMATS):
        raise ConfigError(f"--format {asked}: not known; known are {AUTO}, {', '.join(FORMATS)}.")
    if b"\0" in head[:4096]:
        raise InputFileError(f"{name}: not a text file (it has zero bytes). Convert it to UTF-8 text.")
    lines = head_lines(head)
    if is_access_log(lines):
        raise InputFileError(
            f"{name}: the access log of a web server; its lines are requests with the addresses of visitors, not "
            "queries. Extract what was typed (such as q in GET /search?q=red+fox, percent-decoded), one query a line, "
            "and import that."
        )
    found = sniff(lines)
    if asked == AUTO or not lines:
        return found if asked == AUTO else asked
    wrong = {"tsv": ("jsonl", "ubi", "clickstream"), "csv": ("jsonl", "ubi", "clickstream", "tsv")}
    if found in wrong.get(asked, ()):
        raise InputFileError(f"{name}: not {asked}; it looks like {found}. Say --format {found}, or leave it out.")
    return asked


def sniff(lines: list[str]) -> str:
    """The most likely format.

    >>> sniff(["red car\\t3", "blue car\\t1"]), sniff(['{"query": "red car"}'])
    ('tsv', 'jsonl')
    """
    if not lines:
        return "tsv"
    if json_like := _sniff_json(lines):
        return json_like
    cells = [line.split("\t") for line in lines]
    if sum(len(row) == 4 and row[2] in _CLICKSTREAM_TYPES and row[3].isdecimal() for row in cells) > 0.5 * len(lines):
        return "clickstream"
    if sum(len(row) > 1 for row in cells) > 0.5 * len(lines):
        return "tsv"
    return "csv" if _is_csv(lines) else "tsv"


def is_access_log(lines: list[str]) -> bool:
    """The common or combined log format, as Apache and nginx write it?

    >>> is_access_log(['192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] "GET /search?q=fox HTTP/1.1" 200 512'])
    True
    """
    return bool(lines) and 2 * sum(_REQUEST(line) is not None for line in lines) > len(lines)


def _sniff_json(lines: list[str]) -> str:
    objects = []
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            objects.append(value)
    if not objects or 2 * len(objects) < len(lines):
        return ""
    if any(_UBI_KEYS & value.keys() and ("query" not in value or "query_id" in value) for value in objects):
        return "ubi"
    return "jsonl"


def _is_csv(lines: list[str]) -> bool:
    """A header, of known names or others; or as many cells, more than one, in every line; or lines that are quoted."""
    try:
        if lines[0].count(",") and read_header(split_csv(lines[0])) is not None:
            return True
        rows = [split_csv(line) for line in lines]
    except BadLine:
        return False
    widths = Counter(map(len, rows))
    like_first = [row for row in rows if len(row) == len(rows[0])]
    if len(rows[0]) > 1 and 2 * len(like_first) > len(rows) and is_unknown_header(like_first):
        return True
    return len(widths) == 1 and (next(iter(widths)) > 1 or lines[0].startswith('"'))
