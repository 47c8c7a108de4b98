"""Columns of page names as numbers, with Arrow: made for tens of millions of links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.model.errors import ConfigError

I64 = npt.NDArray[np.int64]


def load_arrow() -> Any:
    """PyArrow, which graphs in files and tables of other libraries are read with."""
    try:
        import pyarrow
    except ImportError as error:
        raise ConfigError(
            "PyArrow is not installed: graphs in files, and tables of other libraries, are read with it. "
            "Install it with pip install 'bowerbird[parquet]'."
        ) from error
    return pyarrow


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names."""

    dictionary: Any  # an Arrow array of strings, each once
    rows: I64  # the place there of each row's; -1 where the cell is empty


@dataclass(frozen=True, slots=True)
class JoinedNames:
    """Columns of names as columns of numbers, counted in the order in which names first come up."""

    columns: list[I64]
    host: npt.NDArray[np.uint32]  # by name
    names_of: Callable[[I64], list[str]]


def encode_names(column: Any, *, trimmed: bool = False) -> Names:
    """One dictionary for a chunked column of names, as they are or without white space around them."""
    from pyarrow import compute

    pa = load_arrow()
    if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
        parts = [
            pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.string())) for part in column.chunks
        ]
        column = pa.chunked_array(parts, pa.dictionary(column.type.index_type, pa.string()))
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    names, rows = whole.dictionary, np.asarray(whole.indices.cast(pa.int64()).fill_null(-1))
    if trimmed and not (plain := compute.utf8_trim_whitespace(names)).equals(names):
        again = plain.dictionary_encode()
        places = np.asarray(again.indices, dtype=np.int64)
        names, rows = again.dictionary, np.where(rows < 0, -1, places[rows])
    empty = names.index("").as_py()
    return Names(names, np.where(rows == empty, -1, rows) if empty >= 0 else rows)


def keep_rows(column: Names, kept: npt.NDArray[np.bool_]) -> Names:
    """Some rows, with the names that are in them."""
    rows = column.rows[kept]
    used = np.zeros(len(column.dictionary), dtype=np.bool_)
    used[rows] = True
    return Names(column.dictionary.filter(load_arrow().array(used)), (np.cumsum(used) - 1)[rows])


def join_names(columns: Sequence[Names]) -> JoinedNames:
    """Number the names of all columns together; none of their cells is empty."""
    pa = load_arrow()
    joined = pa.concat_arrays([column.dictionary for column in columns]).dictionary_encode()
    number = np.asarray(joined.indices, dtype=np.int64)
    rows, first = [], 0
    for column in columns:
        rows.append(number[first : first + len(column.dictionary)][column.rows])
        first += len(column.dictionary)
    order = order_by_appearance(rows, len(joined.dictionary))
    place = np.zeros(len(joined.dictionary), dtype=np.int64)
    place[order] = np.arange(len(order))
    names = joined.dictionary.take(pa.array(order))
    return JoinedNames([place[row] for row in rows], number_hosts(names), lambda some: names.take(some).to_pylist())


def order_by_appearance(columns: Sequence[I64], count: int) -> I64:
    """Numbers 0…count-1 in the order in which they first come up; all of them have to.

    Methods that draw lots then draw the same for the same table, whatever it was kept in.

    >>> order_by_appearance([np.array([2, 0, 2]), np.array([1, 0])], 3).tolist()
    [2, 0, 1]
    """
    first = np.full(count, sum(map(len, columns)), dtype=np.int64)
    at = 0
    for column in columns:
        np.minimum.at(first, column, np.arange(at, at + len(column)))
        at += len(column)
    return np.argsort(first)


def number_hosts(names: Any) -> npt.NDArray[np.uint32]:
    """A number for the origin of each URL; names that are no URLs are of one host.

    >>> number_hosts(load_arrow().array(["http://a/1", "Home", "http://b/", "http://a/2"])).tolist()
    [0, 1, 2, 0]
    """
    from pyarrow import compute

    origins = compute.replace_substring_regex(names, r"(?s)^([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*).*$", r"\1")
    is_url = compute.match_substring_regex(names, r"^[A-Za-z][A-Za-z0-9+.-]*://")
    return np.asarray(compute.if_else(is_url, origins, "").dictionary_encode().indices, dtype=np.uint32)
