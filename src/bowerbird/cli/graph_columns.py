"""Columns of other people's graph files as arrays: TSV, CSV (.gz, .zst) or Parquet, with or without a header.

As in lab data, bad lines are counted, left out and told; a file of which most lines are bad is an error.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from bowerbird.cli.graph_header import read_header
from bowerbird.lab.data_files import MOST, SHOWN_BAD_LINES, Table, delimiter_of, mend_rows, parse_numbers
from bowerbird.library.arrow_names import Names, encode_names, keep_rows, load_arrow
from bowerbird.library.column_names import CLICKS, FREQUENCIES, SCORES, find_columns, tell_missing
from bowerbird.model.errors import InputFileError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_NUMBERS = (CLICKS, FREQUENCIES, SCORES)
_HEAD_LINES = 1000


@dataclass(frozen=True, slots=True)
class Rows:
    """What a file says, without its bad lines."""

    names: list[Names]
    amounts: F64
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Chunked Arrow columns as they are in a file."""

    columns: list[Any]
    bad: Table  # lines that make no row
    before: int | None  # lines before the first row; None where there are no lines
    mended: list[str] | None = None  # the lines that were read, where they are not the file's
    notes: list[str] = field(default_factory=list)

    def add_bad(self, rows: I64, reasons: Sequence[str]) -> None:
        """Count rows that hold something wrong; the first few come with reasons. Slow, for it looks for their lines."""
        self.bad.bad += len(rows) - len(reasons)
        for line, reason in zip(self._lines_of(rows[: len(reasons)]), reasons, strict=True):
            self.bad.add_bad(line, reason)

    def _lines_of(self, rows: I64) -> list[int]:
        """Of a few rows, ascending: rows are the lines that are not empty."""
        if self.before is None:
            return [row + 1 for row in rows.tolist()]
        if self.mended is not None:
            return self._count_lines(self.mended, rows)
        with _open(self.bad.path) as source:
            return self._count_lines(source, rows)

    def _count_lines(self, lines: Iterable[str], rows: I64) -> list[int]:
        found, number, row, left = [], 0, -1, set(rows.tolist())
        for number, line in enumerate(lines, 1):
            if number > (self.before or 0) and line.strip("\r\n"):
                row += 1
                if row in left:
                    found.append(number)
        self.bad.lines = max(self.bad.lines, number - (self.mended is not None))
        return found


def read_rows(path: Path, wanted: Sequence[tuple[str, ...]], *, trimmed: bool = False) -> Rows:
    """Rows whose cells all hold what they should; the others are counted and told.

    Names are taken as they are, or without white space around them.
    """
    read = _read_columns(path, wanted)
    has_number = wanted[-1] in _NUMBERS
    try:
        texts = read.columns[:-1] if has_number else read.columns
        names = [encode_names(column, trimmed=trimmed) for column in texts]
        amounts = _numbers(read.columns[-1]) if has_number else np.zeros(0)
    except load_arrow().ArrowException as error:  # columns of lists, of bytes that are no text…
        said = str(error).strip().split("\n")[0]
        raise InputFileError(f"{path}: holds what is no text or number ({said}). {_format_of(path, wanted)}") from error
    wrong = [column.rows < 0 for column in names]
    if has_number:
        wrong.append(~((amounts >= 0) & (amounts <= MOST)))  # NaN is neither
    bad = np.logical_or.reduce(wrong)
    rows = np.flatnonzero(bad)
    read.bad.rows = len(bad) - len(rows)
    if len(rows):
        read.add_bad(rows, [_reason(read, wanted, wrong, int(row)) for row in rows[:SHOWN_BAD_LINES]])
    read.bad.check(_format_of(path, wanted).replace("It", "it", 1).removesuffix("."))
    if not read.bad.rows:
        raise InputFileError(f"{path}: holds no rows. {_format_of(path, wanted)}")
    notes = [*read.notes, read.bad.note()] if read.bad.bad else read.notes
    if not len(rows):
        return Rows(names, amounts, notes)
    kept = [keep_rows(column, ~bad) for column in names]
    return Rows(kept, amounts[~bad] if has_number else amounts, notes)


def _reason(read: _Columns, wanted: Sequence[tuple[str, ...]], wrong: Sequence[npt.NDArray[np.bool_]], row: int) -> str:
    place = next(place for place, each in enumerate(wrong) if each[row])
    cell = read.columns[place][row].as_py()
    if cell is None or not str(cell).strip():
        return f"{wanted[place][0]} is empty"
    return f"{wanted[place][0]} is {str(cell)[:60]!r}, no number from 0 to {MOST:g}"


def _read_columns(path: Path, wanted: Sequence[tuple[str, ...]]) -> _Columns:
    """By name; in files of text that have no header, or no other columns, otherwise by place."""
    if path.is_dir():
        raise InputFileError(f"{path}: is a folder. Name a .tsv, .csv (.gz, .zst) or .parquet file, perhaps one in it.")
    if not path.is_file():
        raise InputFileError(f"{path}: no such file. Name a .tsv, .csv (.gz, .zst) or .parquet file.")
    pa = load_arrow()
    try:
        read = _read_parquet(path, wanted) if path.suffix == ".parquet" else _read_delimited(path, wanted)
    except (pa.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        said = str(error).strip().split("\n")[0]
        raise InputFileError(f"{path}: cannot be read ({said}). {_format_of(path, wanted)}") from error
    if not len(read.columns[0]) and not read.bad.bad:
        raise InputFileError(f"{path}: holds no rows. {_format_of(path, wanted)}")
    return read


def _open(path: Path) -> TextIO:
    """Lines of text, whatever they hold."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="\n")
    if path.suffix == ".zst":
        import zstandard

        raw = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True)
        return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="\n")
    return path.open(encoding="utf-8-sig", errors="replace", newline="\n")


def name_parquet_columns(path: Path, wanted: Sequence[tuple[str, ...]]) -> list[str]:
    """The columns of a Parquet file that are read, by name alone: they all have names."""
    from pyarrow import parquet

    names = parquet.read_schema(path).names
    found = find_columns(names, wanted)
    if found is None:
        raise InputFileError(f"{path}: {tell_missing(names, wanted)}")
    return [names[place] for place in found]


def _read_parquet(path: Path, wanted: Sequence[tuple[str, ...]]) -> _Columns:
    from pyarrow import parquet

    kept = name_parquet_columns(path, wanted)
    schema = parquet.read_schema(path)
    texts = [name for name in kept if str(schema.field(name).type) in ("string", "large_string")]
    table = parquet.read_table(path, columns=kept, read_dictionary=texts).select(kept)
    return _Columns(table.columns, Table(path, unit="row"), None)


def _read_delimited(path: Path, wanted: Sequence[tuple[str, ...]]) -> _Columns:
    """As fast as can be; a file with lines that do not fit is read again, line by line."""
    pa = load_arrow()
    with _open(path) as source:
        head = list(islice(source, _HEAD_LINES))
    skipped = 0
    while skipped < len(head) and (not head[skipped].strip() or head[skipped].startswith("#")):
        skipped += 1
    if skipped == len(head):
        raise InputFileError(f"{path}: holds no rows. {_format_of(path, wanted)}")
    # one column in a file of any name: its cells may hold commas
    delimiter = delimiter_of(path, head[skipped]) if len(wanted) > 1 or ".csv" in path.suffixes else "\t"
    first = [_plain(cell) for cell in head[skipped].rstrip("\r\n").split(delimiter)]
    rows = ([_plain(cell) for cell in line.rstrip("\r\n").split(delimiter)] for line in head[skipped + 1 :])
    header = read_header(path, first, [row for row in rows if row != [""]], wanted)
    places = header.places
    before = skipped + header.is_there
    if len(first) >= len(wanted):
        try:
            columns = _parse(path, wanted, delimiter, places, len(first), before)
            if delimiter == "\t" or not any(map(_has_line_end, columns)):
                return _Columns(columns, Table(path), before, notes=header.notes)
        except pa.ArrowInvalid:
            pass  # some line has other columns than the first, or is no UTF-8
    named = [(names[0], place) for names, place in zip(wanted, places, strict=True)]
    mended, bad = mend_rows(path, before, delimiter, named)
    whole = pa.BufferReader("\n".join(mended).encode("utf-8"))
    columns = _parse(whole, wanted, delimiter, range(len(wanted)), len(wanted), 0) if any(mended) else []
    return _Columns(columns or [pa.chunked_array([[]], pa.string())] * len(wanted), bad, 0, mended, header.notes)


def _plain(cell: str) -> str:
    return cell.strip().strip('"')


def _parse(
    source: Any, wanted: Sequence[tuple[str, ...]], delimiter: str, places: Sequence[int], width: int, before: int
) -> list[Any]:
    """Columns of a file, or of a stream of it."""
    import pyarrow as pa
    from pyarrow import csv

    names = [f"f{place}" for place in range(width)]
    kept = [names[place] for place in places]
    texts = pa.dictionary(pa.int32(), pa.string())  # a name is kept once a block, and not once a link
    kinds = {name: pa.string() if column in _NUMBERS else texts for name, column in zip(kept, wanted, strict=True)}
    table = csv.read_csv(
        source,
        csv.ReadOptions(column_names=names, skip_rows=before, block_size=1 << 24),
        csv.ParseOptions(delimiter=delimiter, quote_char=False if delimiter == "\t" else '"', newlines_in_values=False),
        csv.ConvertOptions(
            column_types=kinds,
            include_columns=kept,
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )
    columns: list[Any] = table.columns
    return columns


def _has_line_end(column: Any) -> bool:
    """Whether a quote was left open, or goes on in the next line."""
    from pyarrow import compute

    pa = load_arrow()
    chunks = (chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk for chunk in column.chunks)
    return any(compute.any(compute.match_substring(chunk, "\n")).as_py() for chunk in chunks)


def _numbers(column: Any) -> F64:
    """Cells as numbers; NaN where there is none."""
    from pyarrow import compute

    pa = load_arrow()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.asarray(column.cast(pa.float64()), dtype=np.float64)
    column = compute.utf8_trim_whitespace(column)
    try:
        return np.asarray(
            compute.if_else(compute.equal(column, ""), pa.scalar(None, column.type), column).cast(pa.float64()),
            dtype=np.float64,
        )
    except pa.ArrowException:  # each text once, for most are numbers and occur often
        whole = column.dictionary_encode().unify_dictionaries().combine_chunks()
        values = parse_numbers([cell or "" for cell in whole.dictionary.to_pylist()])
        rows = np.asarray(whole.indices.fill_null(-1), dtype=np.int64)
        return np.where(rows < 0, np.nan, values[rows])


def _format_of(path: Path, wanted: Sequence[tuple[str, ...]]) -> str:
    names = ", ".join(names[0] for names in wanted)
    return f"It must have the columns {names}, by name{'' if path.suffix == '.parquet' else ' or in this order'}."
