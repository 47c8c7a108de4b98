"""Tables of queries: TSV and CSV, with or without a header.

A log repeats itself, so equal lines are counted first and each distinct line is read once; most blocks are
plain enough that a line needs no more than a cut at the tab.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bowerbird.demand.columns import choose_columns, is_asked_by_rows, is_unknown_header, read_header
from bowerbird.demand.events import MAX_QUERY_CHARS, normalise_query
from bowerbird.demand.lines import Notes, numbered_lines
from bowerbird.demand.records import (
    AHEAD_S,
    FIELD_OF,
    BadLine,
    Context,
    Unused,
    parse_count,
    parse_query_text,
    parse_time,
    take_record,
    take_row,
)
from bowerbird.demand.tally import Tally

SAMPLE_LINES = 100

_UNTIDY = re.compile(
    r"  |, | ,|[ \t]\n|\n[ ]|\t | \t|\n\t|[\x00-\x08\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028-\u202f\u205f\u3000]"
)


class Delimited:
    """Columns of a table, by field; None is a column that is not read."""

    def __init__(
        self,
        separator: str,
        columns: Sequence[str | None],
        *,
        header: bool,
        context: Context,
        asked_by_rows: bool = False,
    ) -> None:
        self.name = "csv" if separator == "," else "tsv"
        self.separator = separator
        self.columns = tuple(columns)
        self.header = header
        self.context = context
        self.asked_by_rows = asked_by_rows  # rows of one query and time are one asking
        self._seen: dict[tuple[str, str], bool] = {}
        self._plain = set(self.columns) <= {"query", "count"}
        self._timed = not self._plain and set(self.columns) <= {"query", "count", "time"}

    def take(self, block: bytes, tally: Tally, notes: Notes) -> None:
        """Add a block of whole lines."""
        if self._plain and not (self.separator == "," and b'"' in block):
            try:
                text = block.decode("utf-8")
            except UnicodeDecodeError:
                pass  # line by line then, to find which
            else:
                self._take_plain(text, tally, notes)
                return
        if self._timed and self._take_times(block, tally, notes):
            return
        # Rows of one asking stand together: those of the last rows before a block's end are all it needs to know.
        self._seen = dict(list(self._seen.items())[-SAMPLE_LINES:])
        for number, cells in self._rows(block, notes):
            try:
                self._take_cells(cells, tally)
            except BadLine as error:
                notes.add_bad(number, str(error))
            except Unused as error:
                notes.add_unused(str(error))

    # -- the quick way: only queries and counts

    def _take_plain(self, text: str, tally: Tally, notes: Notes) -> None:
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        if notes.lines == 0:
            text = text.removeprefix("\ufeff")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        before = notes.lines
        notes.lines += len(lines)
        times = Counter(lines)
        if before == 0 and self.header and lines:
            times[lines[0]] -= 1
            notes.blank += 1
        bad = self._count_lines(times, _is_tidy(text), tally, notes)
        if bad:
            for number, line in enumerate(lines, before + 1):
                if line in bad and not (number == 1 and self.header):
                    notes.add_bad(number, bad[line])

    def _count_lines(self, times: Counter[str], tidy: bool, tally: Tally, notes: Notes) -> dict[str, str]:
        counts: dict[str, int] = {}
        bad: dict[str, str] = {}
        separator = self.separator
        ordered = self.columns == ("query", "count")
        single = self.columns == ("query",)
        get = counts.get
        for line, repeats in times.items():
            if ordered:
                query, _, written = line.partition(separator)
            elif single:
                query, written = line, "1"
            else:  # count, query
                written, _, query = line.partition(separator)
            if len(query) > MAX_QUERY_CHARS or (not ordered and separator == "\t" and "\t" in query):
                query = ""  # the careful way below finds what is wrong
            elif tidy and query.isascii():
                query = query.lower()
            else:
                query = normalise_query(query)
            if query and repeats and written.isdecimal() and len(written) < 12 and (count := int(written)):
                counts[query] = get(query, 0) + count * repeats
                continue
            if not repeats or not line or line.isspace():
                notes.blank += repeats
                continue
            try:
                self._check(line)
                query, count = self._query_and_count(line)
                counts[query] = get(query, 0) + count * repeats
            except BadLine as error:
                bad[line] = str(error)
        counts.pop("", None)
        tally.ask_all(counts, self.context.at)
        return bad

    def _check(self, line: str) -> None:
        cells = line.count(self.separator) + 1
        if len(self.columns) == 1:
            if cells > 1 and self.separator == "\t":
                raise BadLine(f"{cells} columns instead of 1")
        elif cells != len(self.columns):
            raise BadLine(f"{cells} column{'s' if cells > 1 else ''} instead of {len(self.columns)}")

    def _query_and_count(self, line: str) -> tuple[str, int]:
        if len(self.columns) == 1:
            return parse_query_text(line), 1
        values = dict(zip(self.columns, line.split(self.separator), strict=True))
        return parse_query_text(values["query"]), parse_count(values["count"], least=1)

    # -- the quick way with times: column by column, where every line is in order

    def _take_times(self, block: bytes, tally: Tally, notes: Notes) -> bool:
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\n")
        if notes.lines == 0:
            block = block.partition(b"\n")[2] if self.header else block.removeprefix(b"\xef\xbb\xbf")
        width = len(self.columns)
        if (self.separator == "," and b'"' in block) or not _is_even(block, self.separator, width):
            return False
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError:
            return False
        cells = text.replace("\n", self.separator).split(self.separator)
        columns = {column: cells[place::width] for place, column in enumerate(self.columns)}
        times_s = self._times_of(columns["time"])
        counts = self._counts_of(columns.get("count"))
        queries = columns["query"]
        if times_s is None or counts is False or max(map(len, queries)) > MAX_QUERY_CHARS:
            return False
        if text.isascii() and _is_tidy(text):
            queries = [query.lower() for query in queries]
        else:
            known = {query: normalise_query(query) for query in set(queries)}
            queries = [known[query] for query in queries]
        if not all(queries):
            return False
        if self.header and notes.lines == 0:
            notes.lines += 1
            notes.blank += 1
        notes.lines += len(queries)
        tally.ask_timed(queries, times_s, None if counts is True else counts)
        return True

    def _times_of(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        try:
            times_s = np.array(list(map(float, cells)))
            times_s /= np.where(times_s > 1e14, 1e6, np.where(times_s > 1e11, 1e3, 1.0))
        except ValueError:
            try:
                times_s = np.array(list(map(parse_time, cells)))
            except BadLine:
                return None
        good = (times_s >= 0) & (times_s <= self.context.now + AHEAD_S)
        return times_s if bool(good.all()) else None

    def _counts_of(self, cells: Sequence[str] | None) -> NDArray[np.int64] | bool:
        """The counts; True: none are written, each is 1; False: some are not in order."""
        if cells is None:
            return True
        if not all(cell.isdecimal() and len(cell) < 12 for cell in set(cells)):
            return False
        counts = np.array(list(map(int, cells)), dtype=np.int64)
        return counts if bool((counts > 0).all()) else False

    # -- row by row

    def _rows(self, block: bytes, notes: Notes) -> Iterator[tuple[int, list[str]]]:
        for number, line in numbered_lines(block, notes, skip_first=self.header):
            if self.separator == "\t":
                cells = line.split("\t")
            else:
                try:
                    cells = split_csv(line)
                except BadLine as error:
                    notes.add_bad(number, str(error))
                    continue
            if len(cells) != len(self.columns):
                if len(self.columns) == 1 and self.separator == ",":
                    cells = [line]
                else:
                    many = "s" if len(cells) > 1 else ""
                    notes.add_bad(number, f"{len(cells)} column{many} instead of {len(self.columns)}")
                    continue
            yield number, cells

    def _take_cells(self, cells: list[str], tally: Tally) -> None:
        record = {column: cell for column, cell in zip(self.columns, cells, strict=True) if column is not None}
        if self.asked_by_rows:
            take_row(record, tally, self.context, self._seen)
        else:
            take_record(record, tally, self.context)


def _is_tidy(text: str) -> bool:
    """Are its plain ASCII cells normalised but for their case?"""
    return not text.startswith((" ", "\t")) and not text.endswith((" ", "\t")) and _UNTIDY.search(text) is None


def _is_even(block: bytes, separator: str, width: int) -> bool:
    """Has every line so many cells?"""
    content = np.frombuffer(block, dtype=np.uint8)
    cuts = content[(content == ord(separator)) | (content == ord("\n"))]
    if not len(content) or (len(cuts) + 1) % width:
        return False
    is_end = np.append(cuts, ord("\n")).reshape(-1, width) == ord("\n")
    return bool(is_end[:, -1].all() and not is_end[:, :-1].any())


def split_csv(line: str) -> list[str]:
    """The cells of one CSV line."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        raise BadLine(f"not CSV ({error})") from None


def make_delimited(separator: str, head: Sequence[str], context: Context, name: str) -> Delimited:
    """A reader for the table that begins with these lines."""
    rows = []
    for line in head[:SAMPLE_LINES]:
        try:
            rows.append(line.split("\t") if separator == "\t" else split_csv(line))
        except BadLine:
            continue
    if not rows:
        return Delimited(separator, ("query",), header=False, context=context)
    columns = read_header(rows[0])
    if columns is not None:
        by_rows = is_asked_by_rows(rows[0], columns, rows[1:])
        return Delimited(separator, columns, header=True, context=context, asked_by_rows=by_rows)
    widths = Counter(len(row) for row in rows)
    width = widths.most_common(1)[0][0]
    even = [row for row in rows if len(row) == width]
    headed = even[0] is rows[0]
    uneven = len(widths) > 1 and not (headed and is_unknown_header(even))
    if separator == "," and (uneven or width > len(FIELD_OF)):
        # Commas within plain queries: only a table has as many in each line.
        return Delimited(separator, ("query",), header=False, context=context)
    chosen = choose_columns(even, name, separator, headed=headed)
    return Delimited(separator, chosen, header=False, context=context)
