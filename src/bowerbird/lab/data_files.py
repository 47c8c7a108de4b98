"""Files of lab data: columns of a delimited file (plain, gzip, Zstandard) or of Parquet, by name or by position.

Real files have bad lines. They are counted, left out and reported; a file of which most lines are bad is an error.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.demand.sources import BLOCK_BYTES, Source
from bowerbird.model.errors import InputFileError
from bowerbird.model.workload import MOST_COUNT

F64 = npt.NDArray[np.float64]

ENDINGS = (".tsv", ".csv", ".txt")
COMPRESSED = ("", ".gz", ".zst")
SHOWN_BAD_LINES = 3
#: a file with a larger share of bad lines is not what it is taken for
MAX_BAD_SHARE = 0.5
MOST = MOST_COUNT
#: a quoted cell with more lines in it is one whose quote was never closed
MOST_CELL_LINES = 20
_FORMAT = "docs/lab-data.md has the format"


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: by any of its names where the file has a header, else by its place."""

    names: tuple[str, ...]
    place: int  # from 0
    number: bool = False  # from 0 to MOST; other values make a bad line
    optional: bool = False  # found by name only; it may be absent, and its texts empty

    @property
    def name(self) -> str:
        """What it is called in messages and in the result."""
        return self.names[0]


@dataclass(slots=True)
class Table:
    """Columns that were read, equally long, and what was met on the way."""

    path: Path
    texts: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, F64] = field(default_factory=dict)
    rows: int = 0
    bad: int = 0
    samples: list[tuple[int, str]] = field(default_factory=list)  # line number and reason of the first bad lines
    lines: int = 0  # of the file, with its header and comments, so that no line's number is above it
    unit: str = "line"

    def add_bad(self, line: int, reason: str) -> None:
        """Count a bad line; the first few of the file are kept to be told."""
        self.bad += 1
        if len(self.samples) < SHOWN_BAD_LINES or line < self.samples[-1][0]:
            self.samples = sorted([*self.samples, (line, reason)])[:SHOWN_BAD_LINES]

    def note(self) -> str:
        """What a report says about bad lines; empty when there are none."""
        if not self.bad:
            return ""
        total = max(self.lines, self.rows + self.bad)
        return f"{self.path.name}: {self.bad:,} of {total:,} {self.unit}s were bad and left out ({self._told()})."

    def check(self, remedy: str) -> None:
        """Raises InputFileError where most rows are bad."""
        if self.bad > MAX_BAD_SHARE * (self.rows + self.bad):
            line, reason = self.samples[0]
            raise InputFileError(
                f"{self.path}, {self.unit} {line}: {reason}. {self.bad:,} of {self.rows + self.bad:,} {self.unit}s "
                f"are bad, so this is not the file it is taken for; {remedy}."
            )

    def _told(self) -> str:
        told = "; ".join(f"{self.unit} {line}: {reason}" for line, reason in self.samples)
        return f"{told}; …" if self.bad > len(self.samples) else told


def find_file(folder: Path, stem: str) -> Path | None:
    """The file of that name in any of the formats: links -> links.tsv, links.tsv.gz, links.csv, links.parquet…"""
    names = [f"{stem}{ending}{packed}" for ending in ENDINGS for packed in COMPRESSED]
    found = [folder / name for name in (*names, f"{stem}.parquet") if (folder / name).is_file()]
    if len(found) > 1:
        both = " and ".join(path.name for path in found)
        raise InputFileError(f"{folder}: {both} are both there. Keep the one that is to be read.")
    return found[0] if found else None


def read_columns(path: Path, wanted: Sequence[Column]) -> Table:
    """These columns of a file, by the header's names where it has one; `#` lines before the first row are skipped.

    Raises InputFileError that names the file, the line, the value and the remedy.
    """
    if path.suffix == ".parquet":
        table, raw = _read_parquet(path, wanted)
    else:
        table, raw = _read_delimited(path, wanted)
    _make_numbers(table, wanted, raw)
    if not table.rows and not table.bad:
        raise InputFileError(f"{path}: holds no rows. {_FORMAT}.")
    table.check(_FORMAT)
    return table


def mend_rows(path: Path, first: int, delimiter: str, columns: Sequence[tuple[str, int]]) -> tuple[list[str], Table]:
    """These columns alone of the lines from `first` on, for a reader that wants all rows alike; a bad line is empty.

    Lines keep their numbers: those before `first`, and those that a quoted cell goes on in, are empty too.
    """
    table = Table(path)
    lines = _read_lines(path, table)
    mended = [""] * len(lines)
    for line, row in _wide_rows(lines, first, delimiter, columns, table):
        cells = (row[place] for _, place in columns)
        mended[line - 1] = delimiter.join(cells if delimiter == "\t" else (_quote(cell, delimiter) for cell in cells))
    return mended, table


def _quote(cell: str, delimiter: str) -> str:
    if '"' not in cell and delimiter not in cell and "\n" not in cell:
        return cell
    return '"' + cell.replace('"', '""').replace("\n", " ") + '"'


def read_bytes(path: Path) -> bytes:
    """A whole file, decompressed."""
    with Source.open(str(path)) as source:
        return b"".join(iter(lambda: source.read(BLOCK_BYTES), b""))


def one_line(error: BaseException) -> str:
    """What an error says, without the lists that some go on with.

    >>> one_line(ValueError("cannot be opened:\\n- as gz\\n- as xz"))
    'cannot be opened'
    """
    said = str(error).strip().split("\n")[0].strip()
    return said.rstrip(":") or type(error).__name__


@dataclass(slots=True)
class _Raw:
    """Rows before their numbers are read: cells by wanted column, and the line each row is from."""

    cells: dict[str, list[str]]
    lines: list[int]


def _read_delimited(path: Path, wanted: Sequence[Column]) -> tuple[Table, _Raw]:
    table = Table(path)
    lines = _read_lines(path, table)
    first = 0
    while first < len(lines) and (not lines[first].strip() or lines[first].startswith("#")):
        first += 1
    if first == len(lines):
        raise InputFileError(f"{path}: holds no rows. {_FORMAT}.")
    delimiter = delimiter_of(path, lines[first])
    head = lines[first].split("\t") if delimiter == "\t" else _cut_row(lines, first, delimiter)[0]
    places, header = _find_places(path, head if isinstance(head, list) else [], wanted)
    first += header
    columns = sorted(places.items(), key=lambda item: item[1])
    cells: dict[str, list[str]] = {name: [] for name, _ in columns}
    takers = [(cells[name].append, place) for name, place in columns]
    numbers: list[int] = []
    for line, row in _wide_rows(lines, first, delimiter, columns, table):
        for take, place in takers:
            take(row[place])
        numbers.append(line)
    return table, _Raw(cells, numbers)


def _wide_rows(
    lines: list[str], first: int, delimiter: str, columns: Sequence[tuple[str, int]], table: Table
) -> Iterator[tuple[int, list[str]]]:
    """Rows that reach to the last of the columns; the others are noted."""
    needed = 1 + max(place for _, place in columns)
    for line, row in _rows_of(lines, first, delimiter, table):
        if len(row) < needed:
            names = ", ".join(name for name, _ in columns)
            table.add_bad(line, f"{len(row)} columns where {needed} are needed ({names})")
            continue
        yield line, row


def _rows_of(lines: list[str], first: int, delimiter: str, table: Table) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their (first) line, from 1; empty lines are passed over, broken ones noted."""
    if delimiter == "\t":  # no quotes in these: a page's name may hold one
        for number, line in enumerate(lines[first:], first + 1):
            if line:
                yield number, line.split("\t")
        return
    place = first
    while place < len(lines):
        if '"' in lines[place]:
            row, after = _cut_row(lines, place, delimiter)
            if isinstance(row, str):
                table.add_bad(place + 1, row)
            else:
                yield place + 1, row
            place = after
            continue
        if lines[place]:
            yield place + 1, lines[place].split(delimiter)
        place += 1


def _cut_row(lines: list[str], place: int, delimiter: str) -> tuple[list[str] | str, int]:
    """The cells of the row that begins here, or what is wrong with it; and the place of the line after it."""
    alone = lines[place].count('"') % 2 == 0
    reach = [lines[place]] if alone else [f"{line}\n" for line in lines[place : place + MOST_CELL_LINES]]
    reader = csv.reader(reach, delimiter=delimiter, strict=not alone)
    try:
        row = next(reader, [])
    except csv.Error as error:
        wrong = f"a quote in {lines[place][:60]!r} is not closed" if not alone else f"not CSV ({one_line(error)})"
        return wrong, place + 1
    return row, place + reader.line_num


def _read_lines(path: Path, table: Table) -> list[str]:
    """Lines without their ends; one that is not UTF-8 is noted, and empty."""
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    table.lines = data.count(b"\n") + (not data.endswith(b"\n"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        lines = []
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                lines.append(line.decode("utf-8").rstrip("\r"))
            except UnicodeDecodeError as error:
                table.add_bad(number, f"not UTF-8 at byte {error.start + 1}")
                lines.append("")
        return lines
    lines = text.split("\n")  # not splitlines(): names may hold other separators
    return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def delimiter_of(path: Path, line: str) -> str:
    """What parts cells: by the file's name; a .csv may have semicolons, a .txt anything."""
    if ".tsv" in path.suffixes:
        return "\t"
    counts = {mark: line.count(mark) for mark in "\t,;"}
    if ".csv" in path.suffixes:
        return ";" if counts[";"] and not counts[","] else ","
    return next((mark for mark in counts if counts[mark]), "\t")


def _find_places(
    path: Path, head: Sequence[str], wanted: Sequence[Column], *, only_names: bool = False
) -> tuple[dict[str, int], bool]:
    """Where each column is, and whether the first line is a header; `only_names` where it can be nothing else."""
    known = {cell.strip().lower(): place for place, cell in reversed(list(enumerate(head)))}
    named = {column.name: known[name] for column in wanted for name in reversed(column.names) if name in known}
    if not named or not (only_names or _is_header(head, wanted, named)):
        return {column.name: column.place for column in wanted if not column.optional}, False
    for column in wanted:
        if column.name not in named and not column.optional:
            raise InputFileError(
                f"{path}: no column {' or '.join(column.names)} in its header ({', '.join(head)}). {_FORMAT}."
            )
    return named, True


def _is_header(head: Sequence[str], wanted: Sequence[Column], named: dict[str, int]) -> bool:
    """A line with names is one where a number should be and is none; without numbers, where all names are there."""
    required = [column for column in wanted if not column.optional]
    numbers = [named.get(column.name, column.place) for column in required if column.number]
    if not numbers:
        return all(column.name in named for column in required)
    return any(place >= len(head) or not _is_number(head[place]) for place in numbers)


def _read_parquet(path: Path, wanted: Sequence[Column]) -> tuple[Table, _Raw]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputFileError(
            f"{path}: reading Parquet needs pyarrow. Install bowerbird[lab], or give a TSV file."
        ) from error
    table = Table(path)
    try:
        file = parquet.ParquetFile(path)
        head = file.schema_arrow.names
        places, header = _find_places(path, head, wanted, only_names=True)
        if not header and len(head) <= max(places.values()):
            names = ", ".join(places)
            raise InputFileError(f"{path}: {len(head)} columns where {len(places)} are needed ({names}). {_FORMAT}.")
        kept = {name: head[place] for name, place in places.items()}
        read = file.read(columns=list(dict.fromkeys(kept.values())))
    except (ArrowException, OSError) as error:
        raise InputFileError(
            f"{path}: cannot be read as Parquet ({one_line(error)}). Write it again, or give TSV."
        ) from error
    columns: dict[str, list[Any]] = {name: read.column(column).to_pylist() for name, column in kept.items()}
    lines: list[int] = []
    cells: dict[str, list[str]] = {name: [] for name in columns}
    for line, row in enumerate(zip(*columns.values(), strict=True), 1):
        if None in row:
            table.add_bad(line, f"no {list(columns)[row.index(None)]}")
            continue
        for name, value in zip(columns, row, strict=True):
            cells[name].append(str(value))
        lines.append(line)
    return table, _Raw(cells, lines)


def _make_numbers(table: Table, wanted: Sequence[Column], raw: _Raw) -> None:
    """Fill in the table; rows with a cell that should be a number and is none are bad."""
    kept = np.ones(len(raw.lines), dtype=bool)
    numbers: dict[str, F64] = {}
    for column in wanted:
        if column.name not in raw.cells:
            continue
        if column.number:
            values = parse_numbers(raw.cells[column.name])
            wrong = ~((values >= 0) & (values <= MOST))  # NaN is neither
            numbers[column.name] = values
            reason = "no number of 0 or more" if not (values > MOST).any() else f"no number from 0 to {MOST:g}"
        elif column.optional:
            continue
        else:
            wrong = np.array([not cell for cell in raw.cells[column.name]], dtype=bool)
            reason = "empty"
        for place in np.flatnonzero(wrong & kept).tolist():
            table.add_bad(raw.lines[place], f"{column.name} is {raw.cells[column.name][place][:60]!r}, {reason}")
        kept &= ~wrong
    table.rows = int(kept.sum())
    whole = table.rows == len(kept)
    for column in wanted:
        if column.name in numbers:
            table.numbers[column.name] = numbers[column.name][kept]
        elif column.name in raw.cells:
            cells = raw.cells[column.name]
            table.texts[column.name] = cells if whole else _chosen(cells, kept)


def _chosen(cells: list[str], kept: npt.NDArray[np.bool_]) -> list[str]:
    return [cell for cell, keep in zip(cells, kept.tolist(), strict=True) if keep]


def parse_numbers(cells: list[str]) -> F64:
    """Numbers of cells, NaN where there is none."""
    try:
        return np.array(cells, dtype=np.float64) if cells else np.zeros(0)
    except ValueError:
        return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
