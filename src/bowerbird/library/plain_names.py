"""Columns of page names as numbers: with Arrow where any of them is an Arrow column, otherwise without."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from bowerbird.library.arrow_names import JoinedNames, Names, encode_names, join_names, load_arrow

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def join_columns(columns: Sequence[Names | list[str]]) -> JoinedNames:
    """Number the names of all columns together, in the order in which they first come up."""
    if any(isinstance(column, Names) for column in columns):
        return join_names([column if isinstance(column, Names) else _encode(column) for column in columns])
    numbers: dict[str, int] = {}
    rows = [_number(column, numbers) for column in columns if isinstance(column, list)]
    names = np.array(list(numbers), dtype=object)
    return JoinedNames(rows, number_origins(names), lambda some: names[some].tolist())


def number_origins(names: Iterable[str]) -> npt.NDArray[np.uint32]:
    """A number for the origin of each URL; names that are no URLs are of one host.

    >>> number_origins(["http://a/1", "Home", "http://b/", "http://a/2"]).tolist()
    [0, 1, 2, 0]
    """
    found = (_ORIGIN.match(name) for name in names)
    return _number(("" if origin is None else origin[0] for origin in found), {}).astype(np.uint32)


def list_names(column: Names | list[str]) -> list[str]:
    """The names of a column, row by row."""
    if isinstance(column, list):
        return column
    listed: list[str] = column.dictionary.take(column.rows).to_pylist()
    return listed


def _number(names: Iterable[str], numbers: dict[str, int]) -> npt.NDArray[np.int64]:
    number = numbers.setdefault
    return np.fromiter((number(name, len(numbers)) for name in names), dtype=np.int64)


def _encode(names: list[str]) -> Names:
    pa = load_arrow()
    return encode_names(pa.chunked_array([pa.array(names, pa.string())]))
