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

F64 = npt.NDArray[np.float64]

ENDINGS = (".tsv", ".csv", ".txt")
COMPRESSED = ("", ".gz", ".zst")
SHOWN_BAD_LINES = 3
#: a file with a larger share of bad lines is not what it is taken for
MAX_BAD_SHARE = 0.5
_FORMAT = "docs/lab-data.md has the format"


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: by any of its names where the file has a header, else by its place."""

    names: tuple[str, ...]
    place: int  # from 0
    number: bool = False  # finite and not negative; other values make a bad line
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

    def add_bad(self, line: int, reason: str) -> None:
        """Count a bad line; the first few are kept to be told."""
        self.bad += 1
        if len(self.samples) < SHOWN_BAD_LINES:
            self.samples.append((line, reason))

    def note(self) -> str:
        """What a report says about bad lines; empty when there are none."""
        if not self.bad:
            return ""
        told = "; ".join(f"line {line}: {reason}" for line, reason in sorted(self.samples))
        return f"{self.path.name}: {self.bad:,} of {self.rows + self.bad:,} lines were bad and left out ({told})."


def find_file(folder: Path, stem: str) -> Path | None:
    """The file of that name in any of the formats: links -> links.tsv, links.tsv.gz, links.csv, links.parquet…"""
    names = [f"{stem}{ending}{packed}" for ending in ENDINGS for packed in COMPRESSED]
    found = [folder / name for name in (*names, f"{stem}.parquet") if (folder / name).is_file()]
    if len(found) > 1:
        both = " and ".join(path.name for path in found)
        raise InputFileError(f"{folder}: {both} are both there. Keep the one that is to be read.")
    return found[0] if found else None


def read_columns(path: Path, wanted: Sequence[Column]) -> Table:
    """These columns of a file. A first line that holds one of their names is a header; `#` lines before it are skipped.

    Raises InputFileError that names the file, the line, the value and the remedy.
    """
    if path.suffix == ".parquet":
        table, raw = _read_parquet(path, wanted)
    else:
        table, raw = _read_delimited(path, wanted)
    _make_numbers(table, wanted, raw)
    if not table.rows and not table.bad:
        raise InputFileError(f"{path}: holds no rows. {_FORMAT}.")
    if table.bad > MAX_BAD_SHARE * (table.rows + table.bad):
        line, reason = min(table.samples)
        raise InputFileError(
            f"{path}, line {line}: {reason}. {table.bad:,} of {table.rows + table.bad:,} lines are bad, so this is "
            f"not the file it is taken for; {_FORMAT}."
        )
    return table


def read_bytes(path: Path) -> bytes:
    """A whole file, decompressed."""
    with Source.open(str(path)) as source:
        return b"".join(iter(lambda: source.read(BLOCK_BYTES), b""))


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
    delimiter = _delimiter_of(path, lines[first])
    head = next(csv.reader([lines[first]])) if delimiter == "," else lines[first].split(delimiter)
    places, header = _find_places(path, head, wanted)
    first += header
    columns = sorted(places.items(), key=lambda item: item[1])
    needed = 1 + max(place for _, place in columns)
    cells: dict[str, list[str]] = {name: [] for name, _ in columns}
    takers = [(cells[name].append, place) for name, place in columns]
    numbers: list[int] = []
    for line, row in _rows_of(lines, first, delimiter):
        if len(row) < needed:
            names = ", ".join(name for name, _ in columns)
            table.add_bad(line, f"{len(row)} columns where {needed} are needed ({names})")
            continue
        for take, place in takers:
            take(row[place])
        numbers.append(line)
    return table, _Raw(cells, numbers)


def _rows_of(lines: list[str], first: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their (last) line, from 1; empty lines are passed over."""
    if delimiter == "\t":  # no quotes in these: a page's name may hold one
        for number, line in enumerate(lines[first:], first + 1):
            if line:
                yield number, line.split("\t")
        return
    reader = csv.reader(lines[first:], delimiter=delimiter)
    for row in reader:
        if row:
            yield first + reader.line_num, row


def _read_lines(path: Path, table: Table) -> list[str]:
    """Lines without their ends; one that is not UTF-8 is noted, and empty."""
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
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


def _delimiter_of(path: Path, line: str) -> str:
    """By the file's name; a .csv may have semicolons, a .txt anything."""
    if ".tsv" in path.suffixes:
        return "\t"
    counts = {mark: line.count(mark) for mark in "\t,;"}
    if ".csv" in path.suffixes:
        return ";" if counts[";"] and not counts[","] else ","
    return next((mark for mark in counts if counts[mark]), "\t")


def _find_places(path: Path, head: Sequence[str], wanted: Sequence[Column]) -> tuple[dict[str, int], bool]:
    """Where each column is, and whether the first line is a header."""
    known = {cell.strip().lower(): place for place, cell in reversed(list(enumerate(head)))}
    named = {column.name: known[name] for column in wanted for name in reversed(column.names) if name in known}
    if not named:
        return {column.name: column.place for column in wanted if not column.optional}, False
    for column in wanted:
        if column.name not in named and not column.optional:
            raise InputFileError(
                f"{path}: no column {' or '.join(column.names)} in its header ({', '.join(head)}). {_FORMAT}."
            )
    return named, True


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
        places, header = _find_places(path, head, wanted)
        if not header and len(head) <= max(places.values()):
            names = ", ".join(places)
            raise InputFileError(f"{path}: {len(head)} columns where {len(places)} are needed ({names}). {_FORMAT}.")
        kept = {name: head[place] for name, place in places.items()}
        read = file.read(columns=list(dict.fromkeys(kept.values())))
    except (ArrowException, OSError) as error:
        raise InputFileError(f"{path}: cannot be read as Parquet ({error}). Write it again, or give TSV.") from error
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
            values = _parse(raw.cells[column.name])
            wrong = ~(np.isfinite(values) & (values >= 0))
            numbers[column.name] = values
            reason = "no number of 0 or more"
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


def _parse(cells: list[str]) -> F64:
    """Numbers, NaN where there is none."""
    try:
        return np.array(cells, dtype=np.float64) if cells else np.zeros(0)
    except ValueError:
        return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
