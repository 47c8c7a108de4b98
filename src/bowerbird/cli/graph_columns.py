"""Columns of other people's graph files as arrays: TSV, CSV (.gz) or Parquet, with or without a header."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from bowerbird.model.errors import InputFileError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

SOURCES = ("source", "from", "src", "from_url", "source_url")
TARGETS = ("target", "to", "dst", "destination", "to_url", "target_url")
PAGES = ("page", "url", "name", "title", "slug")
CLICKS = ("clicks", "views", "count", "visits", "impact")
QUERIES = ("query", "text", "terms")
FREQUENCIES = ("frequency", "count", "clicks", "n")
_NUMBERS = (CLICKS, FREQUENCIES)
#: a first line of such words alone names columns, and no pages
_HEADER_WORDS = frozenset(
    word.removesuffix("s")
    for word in re.findall(
        r"\w+",
        "source src from origin start target dst dest destination to end url uri href address link linking linked page "
        "name title slug article document doc node id crawled fetched linksource linktarget the of",
    )
)
#: of one line; a larger number is no count of clicks, and sums of smaller ones are finite
MOST = 1e15
#: a file with a larger share of bad lines is not what it is taken for
MAX_BAD_SHARE = 0.5
_HEAD_LINES = 1000


def load_arrow() -> Any:
    """PyArrow, which only these files need."""
    try:
        import pyarrow
    except ImportError as error:
        raise InputFileError(
            "reading graphs needs PyArrow, which is not installed. Install Bowerbird with it: 'bowerbird[parquet]'."
        ) from error
    return pyarrow


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names."""

    dictionary: Any  # an Arrow array of strings, each once
    rows: I64  # the place there of each row's; -1 where the cell is empty


@dataclass(frozen=True, slots=True)
class Rows:
    """What a file says, without its bad lines."""

    names: list[Names]
    amounts: F64
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Chunked Arrow columns as they are in a file."""

    path: Path
    columns: list[Any]
    before: int | None  # lines before the first row; None where there are no lines
    notes: list[str] = field(default_factory=list)

    def place(self, row: int) -> str:
        """Where a row is, for messages; slow."""
        if self.before is None:
            return f"row {row + 1}"
        with _open(self.path) as source:
            lines = (number for number, line in enumerate(source, 1) if line.strip("\r\n") and number > self.before)
            return f"line {next(islice(lines, row, None), self.before + row + 1)}"


def read_rows(path: Path, wanted: Sequence[tuple[str, ...]]) -> Rows:
    """Rows whose cells all hold something; the others are counted and told."""
    read = _read_columns(path, wanted)
    has_number = wanted[-1] in _NUMBERS
    names = [_encode(column) for column in (read.columns[:-1] if has_number else read.columns)]
    amounts = _numbers(read, wanted[-1][0]) if has_number else np.zeros(0)
    bad = np.logical_or.reduce([column.rows < 0 for column in names])
    if has_number:
        bad |= np.isnan(amounts)
    wrong = np.flatnonzero(bad)
    if not len(wrong):
        return Rows(names, amounts, read.notes)
    said = f"{len(wrong):,} of {len(bad):,} lines have an empty cell, the first is {read.place(int(wrong[0]))}"
    if len(wrong) > MAX_BAD_SHARE * len(bad):
        raise InputFileError(f"{path}: {said}. {_format_of(wanted)}")
    kept = [_only(column, ~bad) for column in names]
    return Rows(kept, amounts[~bad] if has_number else amounts, [*read.notes, f"{path}: {said}; left out."])


def _read_columns(path: Path, wanted: Sequence[tuple[str, ...]]) -> _Columns:
    """By name where the file has a header with all the names, otherwise by place."""
    if path.is_dir():
        raise InputFileError(f"{path}: is a folder. Name a .tsv, .csv (.gz) or .parquet file, perhaps one in it.")
    if not path.is_file():
        raise InputFileError(f"{path}: no such file. Name a .tsv, .csv (.gz) or .parquet file.")
    pa = load_arrow()
    try:
        table, before, notes = (
            _read_parquet(path, wanted) if path.suffix == ".parquet" else _read_delimited(path, wanted)
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        said = str(error).strip().split("\n")[0]
        raise InputFileError(f"{path}: cannot be read ({said}). {_format_of(wanted)}") from error
    if not table.num_rows:
        raise InputFileError(f"{path}: holds no rows. {_format_of(wanted)}")
    return _Columns(path, [table.column(place) for place in range(len(wanted))], before, notes)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="\n")
    return path.open(encoding="utf-8-sig", newline="\n")


def _read_parquet(path: Path, wanted: Sequence[tuple[str, ...]]) -> tuple[Any, int | None, list[str]]:
    from pyarrow import parquet

    names = parquet.read_schema(path).names
    found = _find(names, wanted)
    if found is None:
        if len(names) < len(wanted):
            raise InputFileError(f"{path}: has {len(names)} columns ({', '.join(names)}). {_format_of(wanted)}")
        found = list(range(len(wanted)))
    kept = [names[place] for place in found]
    schema = parquet.read_schema(path)
    texts = [name for name in kept if str(schema.field(name).type) in ("string", "large_string")]
    return parquet.read_table(path, columns=kept, read_dictionary=texts).select(kept), None, []


def _read_delimited(path: Path, wanted: Sequence[tuple[str, ...]]) -> tuple[Any, int | None, list[str]]:
    """The table, the lines before its first row, and what was guessed."""
    import pyarrow as pa
    from pyarrow import csv

    with _open(path) as source:
        head = list(islice(source, _HEAD_LINES))
    skipped = 0
    while skipped < len(head) and (not head[skipped].strip() or head[skipped].startswith("#")):
        skipped += 1
    if skipped == len(head):
        raise InputFileError(f"{path}: holds no rows. {_format_of(wanted)}")
    comma = path.name.removesuffix(".gz").endswith(".csv")
    delimiter = "," if comma else "\t"
    first = [cell.strip().strip('"') for cell in head[skipped].rstrip("\r\n").split(delimiter)]
    if len(first) < len(wanted):
        raise InputFileError(
            f"{path}, line {skipped + 1}: {len(first)} column(s) where {len(wanted)} are needed, parted by "
            f"{'commas' if comma else 'tabs'}. {_format_of(wanted)}"
        )
    found, notes = _find(first, wanted), []
    has_header = found is not None
    if found is None and _looks_like_header(first, wanted):
        has_header, found = True, _find(first, wanted, by_word=True)
        notes.append(f"{path}: its first line ({', '.join(first)}) is taken for a header.")
    names = [f"f{place}" for place in range(len(first))]
    kept = [names[place] for place in (found or range(len(wanted)))]
    texts = pa.dictionary(pa.int32(), pa.string())  # a name is kept once a block, and not once a link
    kinds = {name: pa.string() if column in _NUMBERS else texts for name, column in zip(kept, wanted, strict=True)}
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=names, skip_rows=skipped + has_header, block_size=1 << 24),
        csv.ParseOptions(delimiter=delimiter, quote_char='"' if comma else False, newlines_in_values=False),
        csv.ConvertOptions(
            column_types=kinds,
            include_columns=kept,
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )
    return table, skipped + has_header, notes


def _find(header: Sequence[str], wanted: Sequence[tuple[str, ...]], *, by_word: bool = False) -> list[int] | None:
    """Where the wanted columns are; None where the header does not name all of them. By word: "Source page" will do.

    >>> _find(["n", "Target page", "Source page"], (SOURCES, TARGETS), by_word=True)
    [2, 1]
    """
    cells = [_words_of(name) if by_word else {name.strip().lower()} for name in header]
    found: list[int] = []
    for names in wanted:
        known = {word for name in names for word in _words_of(name.partition("_")[0])} if by_word else set(names)
        place = next((place for place, words in enumerate(cells) if words & known and place not in found), None)
        if place is None:
            return None
        found.append(place)
    return found


def _words_of(cell: str) -> set[str]:
    """The words of a column's name, in the singular: "Source pages", "source_page", "sourcePage"."""
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", cell)}


def _looks_like_header(first: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> bool:
    """A first line without a number where every other line has one; without numbers, one of header words alone."""
    if wanted[-1] in _NUMBERS:
        cell = first[len(wanted) - 1]
        return bool(cell) and not _is_number(cell)
    return all(
        re.fullmatch(r"[A-Za-z _-]+", cell) and _words_of(cell) <= _HEADER_WORDS for cell in first[: len(wanted)]
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _encode(column: Any) -> Names:
    """One dictionary for a chunked column of strings."""
    pa = load_arrow()
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    rows = np.asarray(whole.indices.fill_null(-1), dtype=np.int64)
    empty = whole.dictionary.index("").as_py()
    return Names(whole.dictionary, np.where(rows == empty, -1, rows) if empty >= 0 else rows)


def _only(column: Names, kept: npt.NDArray[np.bool_]) -> Names:
    """Some rows, with the names that are in them."""
    rows = column.rows[kept]
    used = np.zeros(len(column.dictionary), dtype=np.bool_)
    used[rows] = True
    return Names(column.dictionary.filter(load_arrow().array(used)), (np.cumsum(used) - 1)[rows])


def _numbers(read: _Columns, name: str) -> F64:
    """The last column as numbers; NaN where the cell is empty."""
    from pyarrow import compute

    pa = load_arrow()
    column = read.columns[-1]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = compute.utf8_trim_whitespace(column)
        column = compute.if_else(compute.equal(column, ""), pa.scalar(None, column.type), column)
    try:
        values = np.asarray(column.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowException as error:
        raise _no_number(read, name, _first_without_number(column)) from error
    empty = np.asarray(column.is_null())
    wrong = np.flatnonzero(~((values >= 0) & (values <= MOST)) & ~empty)
    if len(wrong):
        raise _no_number(read, name, int(wrong[0]))
    return values


def _no_number(read: _Columns, name: str, row: int) -> InputFileError:
    cell = str(read.columns[-1][row].as_py())[:60]
    return InputFileError(
        f"{read.path}, {read.place(row)}: {name} must be numbers from 0 to {MOST:g}, and this is {cell!r}. "
        "Mend the line, or leave it out."
    )


def _first_without_number(column: Any) -> int:
    """The row of the first cell that cannot be cast, by halving."""
    pa = load_arrow()
    low, high = 0, len(column)  # rows before `low` can be, not all of those before `high`
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(pa.float64())
            low = middle
        except pa.ArrowException:
            high = middle
    return low


def _format_of(wanted: Sequence[tuple[str, ...]]) -> str:
    names = ", ".join(names[0] for names in wanted)
    return f"It must have the columns {names}, by name or in this order."
