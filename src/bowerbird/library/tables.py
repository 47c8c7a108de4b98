"""Tables of other programs: whatever speaks Arrow (PyArrow, Polars, pandas), or a mapping of names to columns.

A program that hands over a table is wrong where the table is, so nothing is left out or guessed: the first bad cell is
told, with its row counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bowerbird.library.arrow_names import Names, encode_names, load_arrow
from bowerbird.library.column_names import tell_missing
from bowerbird.model.errors import ConfigError, TableError
from bowerbird.model.workload import MOST_COUNT

F64 = npt.NDArray[np.float64]
SHOWN = 60  # letters of a bad cell


class ArrowTable(Protocol):
    """A table that can be read as a stream of Arrow batches: of PyArrow, Polars, pandas from 2.2 on, DuckDB…"""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream."""


class DataFrame(Protocol):
    """A table that can be read by the older interchange protocol."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """What is exchanged."""


#: what a table may be; a mapping has arrays, lists or series of one length
Table = ArrowTable | DataFrame | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OpenTable:
    """The columns of a table by name: chunked Arrow arrays, or arrays and lists."""

    what: str  # as people call it, in messages
    columns: Mapping[str, Any]
    count: int

    def find(self, names: Sequence[str]) -> str:
        """The column that has one of these names; the first name wins, in small letters or large."""
        known = {name.strip().lower(): name for name in self.columns}
        found = next((name for name in names if name in known), None)
        if found is None:
            raise TableError(f"{self.what}: {tell_missing(list(self.columns), [names])}")
        return known[found]

    def has(self, name: str) -> bool:
        """Whether there is a column of this name."""
        return any(name == one.strip().lower() for one in self.columns)

    def names(self, names: Sequence[str]) -> Names | list[str]:
        """A column of texts; whole numbers become their digits. No cell is empty."""
        name = self.find(names)
        column = self.columns[name]
        if not _is_arrow(column):
            return self._texts(name, column)
        pa = load_arrow()
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (_is_text(pa, kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise self._wrong_type(name, str(kind), "text or whole numbers")
        try:
            read = encode_names(column)
        except pa.ArrowException as error:
            said = str(error).strip().split("\n")[0]
            raise TableError(f"{self.what}: column {name} cannot be read ({said}). Give it as text.") from error
        bad = np.flatnonzero(read.rows < 0)
        if len(bad):
            raise self._empty(name, int(bad[0]))
        return read

    def numbers(
        self, names: Sequence[str], *, least: float = 0.0, most: float = MOST_COUNT, whole: bool = False
    ) -> F64:
        """A column of numbers within bounds."""
        name = self.find(names)
        values = self._floats(name)
        bad = ~((values >= least) & (values <= most))  # NaN is neither
        if whole:
            bad |= values != np.floor(values)
        rows = np.flatnonzero(bad)
        if len(rows):
            kind = "whole number" if whole else "number"
            raise TableError(
                f"{self.what}: row {rows[0]}: {name} is {self._cell(name, int(rows[0]))}, no {kind} from {least:g} to "
                f"{most:g}. Mend such rows, or leave them out."
            )
        return values

    def times(self, names: Sequence[str]) -> F64:
        """A column of times in seconds since 1970 UTC, from numbers or any type of times; NaN where a cell is empty."""
        name = self.find(names)
        column = self.columns[name]
        if _is_arrow(column):
            pa = load_arrow()
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
                values = np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64) / 1e6
            else:
                values = self._floats(name)
        else:
            values = self._clock(name, column)
        bad = np.flatnonzero((values < 0) | (values >= 2.0**32))
        if len(bad):
            raise TableError(
                f"{self.what}: row {bad[0]}: {name} is {self._cell(name, int(bad[0]))}, no time from 1970 to 2106. "
                "Give seconds since 1970 UTC, or a column of times."
            )
        return values

    def flags(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """A column of yes and no; 1 and 0 will do."""
        name = self.find(names)
        column = self.columns[name]
        if _is_arrow(column):
            pa = load_arrow()
            if pa.types.is_boolean(column.type):
                column = column.cast(pa.uint8())
            whole = pa.types.is_integer(column.type)
            values = np.asarray(column.cast(pa.float64(), safe=False)) if whole else np.full(1, np.nan)
        else:
            array = _as_array(column)
            values = array.astype(np.float64) if array.dtype.kind in "biu" or not array.size else np.full(1, np.nan)
        if not np.isin(values, (0.0, 1.0)).all():
            raise TableError(f"{self.what}: column {name} must be true or false in every row, or 1 or 0.")
        return values.astype(np.bool_)

    def _floats(self, name: str) -> F64:
        column = self.columns[name]
        if _is_arrow(column):
            pa = load_arrow()
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            kind = column.type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
                return np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)
            if pa.types.is_null(kind):
                return np.full(self.count, np.nan)
            raise self._wrong_type(name, str(kind), "numbers")
        array = _as_array(column)
        if array.dtype.kind in "iuf" or not array.size:
            return array.astype(np.float64)
        if array.dtype.kind == "O":
            cells = array.tolist()
            odd = next((one for one in cells if one is not None and not _is_number(one)), None)
            if odd is None:
                return np.array([_float(one) for one in cells], dtype=np.float64)
            raise self._wrong_type(name, type(odd).__name__, "numbers")
        raise self._wrong_type(name, str(array.dtype), "numbers")

    def _clock(self, name: str, column: Any) -> F64:
        array = _as_array(column)
        if array.dtype.kind == "M":
            parts = array.astype("datetime64[us]")
            return np.where(np.isnat(parts), np.nan, parts.astype(np.int64) / 1e6)
        if array.dtype.kind == "O" and any(isinstance(one, datetime) for one in array.tolist()):
            cells = array.tolist()
            odd = next((one for one in cells if not (one is None or _is_nan(one) or isinstance(one, datetime))), None)
            if odd is not None:
                raise self._wrong_type(name, type(odd).__name__, "times")
            return np.array([_seconds(one) for one in cells], dtype=np.float64)
        return self._floats(name)

    def _texts(self, name: str, column: Any) -> list[str]:
        array = column if isinstance(column, list) else np.asarray(column)
        if isinstance(array, np.ndarray) and array.size and array.dtype.kind not in "OUTiu":
            raise self._wrong_type(name, str(array.dtype), "text or whole numbers")
        cells = array if isinstance(array, list) else array.tolist()
        out: list[str] = []
        for row, cell in enumerate(cells):
            if isinstance(cell, str):
                if not cell:
                    raise self._empty(name, row)
                out.append(str(cell))
            elif isinstance(cell, int | np.integer) and not isinstance(cell, bool):
                out.append(str(int(cell)))
            elif cell is None or _is_nan(cell):
                raise self._empty(name, row)
            else:
                raise self._wrong_type(name, type(cell).__name__, "text or whole numbers")
        try:
            "".join(out).encode()
        except UnicodeEncodeError:  # half of a pair of surrogates
            row = next(row for row, cell in enumerate(out) if cell != cell.encode(errors="ignore").decode())
            told = out[row].encode(errors="backslashreplace").decode()[:SHOWN]
            raise TableError(
                f"{self.what}: row {row}: {name} is {told!r}, no text that UTF-8 has. Mend it, or leave such rows out."
            ) from None
        return out

    def _cell(self, name: str, row: int) -> str:
        cell = self.columns[name][row]
        cell = cell.as_py() if hasattr(cell, "as_py") else cell
        cell = cell.item() if isinstance(cell, np.generic) else cell
        return "empty" if cell is None else str(cell)[:SHOWN]

    def _empty(self, name: str, row: int) -> TableError:
        return TableError(f"{self.what}: row {row}: {name} is empty. Leave such rows out.")

    def _wrong_type(self, name: str, kind: str, wanted: str) -> TableError:
        return TableError(f"{self.what}: column {name} holds {kind}, where {wanted} are needed. Convert it.")


def open_table(what: str, table: Table) -> OpenTable:
    """The columns of a table, of one length."""
    if isinstance(table, Mapping):
        columns = {str(name): _read_column(what, str(name), column) for name, column in table.items()}
    elif hasattr(table, "__arrow_c_stream__") or hasattr(table, "__dataframe__"):
        columns = _read_foreign(what, table)
    else:
        raise TableError(
            f"{what}: a {type(table).__name__} is no table. Give a table of PyArrow, Polars or pandas, or a mapping of "
            "column names to arrays."
        )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise TableError(f"{what}: its columns are not of one length: {told}. Give as many cells in each.")
    return OpenTable(what, columns, max(lengths.values(), default=0))


def open_names(what: str, table: Table | Sequence[str], names: Sequence[str]) -> Names | list[str]:
    """A column of names, of a table that has it or by itself: a list, an array, a series."""
    if isinstance(table, str):
        raise TableError(f"{what}: {table[:SHOWN]!r} is one name. Give a list of names, or a table.")
    if isinstance(table, Mapping) or any(hasattr(table, mark) for mark in ("columns", "schema", "__dataframe__")):
        return open_table(what, table).names(names)  # type: ignore[arg-type]  # no list or array has such marks
    return open_table(what, {names[0]: table}).names(names[:1])


def _read_foreign(what: str, table: Any) -> dict[str, Any]:
    """By PyArrow; without it, column by column where the table gives its columns as arrays."""
    try:
        pa = load_arrow()
    except ConfigError:
        try:
            return {str(name): np.asarray(table[name]) for name in table.columns}
        except (AttributeError, TypeError, KeyError, ImportError):
            pass
        raise
    try:
        if hasattr(table, "__arrow_c_stream__"):
            read = pa.table(table)
        else:
            from pyarrow.interchange import from_dataframe

            read = from_dataframe(table)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        said = str(error).strip().split("\n")[0]
        raise TableError(
            f"{what}: cannot be read as an Arrow table ({said}). Columns must each hold values of one type."
        ) from error
    return dict(zip(read.column_names, read.columns, strict=True))


def _read_column(what: str, name: str, column: Any) -> Any:
    """A column of a mapping, as Arrow or as an array."""
    if isinstance(column, list | tuple):
        return list(column)
    if not isinstance(column, np.ndarray) and (
        hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__")
    ):
        try:
            pa = load_arrow()
            return pa.chunked_array(column if hasattr(column, "__arrow_c_stream__") else [pa.array(column)])
        except ConfigError:
            pass  # it may give an array all the same
        except (pa.ArrowException, TypeError, ValueError) as error:
            said = str(error).strip().split("\n")[0]
            raise TableError(f"{what}: column {name} cannot be read as an Arrow array ({said}).") from error
    array = np.asarray(column)
    if array.ndim != 1:
        raise TableError(f"{what}: column {name} has {array.ndim} dimensions. Give one value a row.")
    return array


def _as_array(column: Any) -> npt.NDArray[Any]:
    """One value a row; lists in a list are no rows of a matrix."""
    if isinstance(column, np.ndarray):
        return column
    try:
        array = np.asarray(column)
    except ValueError:  # lists of several lengths
        array = np.zeros((0, 0))
    if array.ndim != 1:
        array = np.empty(len(column), dtype=object)
        for row, cell in enumerate(column):
            array[row] = cell
    return array


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "chunks") and hasattr(column, "type")


def _is_text(pa: Any, kind: Any) -> bool:
    is_view = getattr(pa.types, "is_string_view", lambda kind: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind))


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float | Decimal | np.number) and not isinstance(cell, bool)


def _is_nan(cell: object) -> bool:
    return isinstance(cell, float) and bool(np.isnan(cell))


def _float(cell: Any) -> float:
    """NaN for what no float can be, so that its row is told."""
    try:
        return float("nan") if cell is None else float(cell)
    except (ValueError, OverflowError):
        return float("nan")


def _seconds(moment: object) -> float:
    """A time without a zone is in UTC."""
    if not isinstance(moment, datetime):
        return np.nan
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
