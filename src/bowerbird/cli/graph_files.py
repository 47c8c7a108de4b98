"""Other people's graphs: files of links, clicks, queries and pages as arrays. Made for tens of millions of links."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

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
_HEAD_LINES = 1000


@dataclass(frozen=True, slots=True)
class GraphFiles:
    """Pages by number, in no particular order, with what the files say of them."""

    names: Any  # an Arrow array of strings
    sources: I64
    targets: I64
    clicks: F64  # by page
    crawled: npt.NDArray[np.bool_]
    unlinked_clicks: int  # pages with clicks that no link names
    ignored_clicks: int  # pages with clicks that are not among those that were crawled


def read_graph(links: Path, clicks: Path, crawled: Path | None = None) -> GraphFiles:
    """Links and clicks; without a file of crawled pages, those are the sources of links and the pages with clicks."""
    pa = load_arrow()
    ends = _read_columns(links, (SOURCES, TARGETS))
    clicked = _read_columns(clicks, (PAGES, CLICKS))
    amounts = _numbers(clicked[1], clicks, CLICKS[0])
    extra = _read_columns(crawled, (PAGES,)) if crawled is not None else []
    encoded = [_encode(column) for column in (*ends, clicked[0], *extra)]
    joined = pa.concat_arrays([column.dictionary for column in encoded]).dictionary_encode()
    number = np.asarray(joined.indices, dtype=np.int64)
    rows, first = [], 0
    for column in encoded:
        here = number[first : first + len(column.dictionary)]
        rows.append(here[np.asarray(column.indices, dtype=np.int64)])
        first += len(column.dictionary)
    count = len(joined.dictionary)
    linked = np.zeros(count, dtype=np.bool_)
    linked[rows[0]] = linked[rows[1]] = True
    known = np.zeros(count, dtype=np.bool_)
    if crawled is None:
        known[rows[0]] = known[rows[2]] = True
    else:
        known[rows[3]] = True
    named = np.unique(rows[2])
    return GraphFiles(
        joined.dictionary,
        rows[0],
        rows[1],
        np.bincount(rows[2], weights=amounts, minlength=count).astype(np.float64),
        known,
        int(np.count_nonzero(~linked[named])),
        int(np.count_nonzero(~known[named])),
    )


def read_queries(path: Path) -> tuple[list[str], list[float]]:
    """Queries with their frequencies; one that is named twice counts with the sum."""
    texts, amounts = _read_columns(path, (QUERIES, FREQUENCIES))
    total: dict[str, float] = {}
    for text, amount in zip(texts.to_pylist(), _numbers(amounts, path, FREQUENCIES[0]).tolist(), strict=True):
        if text and text.strip():
            total[text.strip()] = total.get(text.strip(), 0.0) + amount
    return list(total), list(total.values())


def number_hosts(names: Any) -> npt.NDArray[np.uint32]:
    """A number for the origin of each URL; names that are no URLs are of one host.

    >>> number_hosts(load_arrow().array(["http://a/1", "Home", "http://b/", "http://a/2"])).tolist()
    [0, 1, 2, 0]
    """
    from pyarrow import compute

    origins = compute.replace_substring_regex(names, r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*).*$", r"\1")
    is_url = compute.match_substring_regex(names, r"^[A-Za-z][A-Za-z0-9+.-]*://")
    return np.asarray(compute.if_else(is_url, origins, "").dictionary_encode().indices, dtype=np.uint32)


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """A ranking to a .parquet, .csv or .tsv file."""
    pa = load_arrow()
    table = pa.table(columns)
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, path)
        else:
            from pyarrow import csv

            csv.write_csv(table, path, csv.WriteOptions(delimiter="," if path.suffix == ".csv" else "\t"))
    except OSError as error:
        raise InputFileError(f"{path}: cannot be written ({error}). Choose another place.") from error


def load_arrow() -> Any:
    """PyArrow, which only these files need."""
    try:
        import pyarrow
    except ImportError as error:
        raise InputFileError(
            "reading graphs needs PyArrow, which is not installed. Install Bowerbird with it: 'bowerbird[parquet]'."
        ) from error
    return pyarrow


def _read_columns(path: Path, wanted: Sequence[tuple[str, ...]]) -> list[Any]:
    """Chunked Arrow columns, by name where the file has a header with all the names, otherwise by place."""
    if not path.is_file():
        raise InputFileError(f"{path}: no such file. Name a .tsv, .csv (.gz) or .parquet file.")
    pa = load_arrow()
    try:
        table = _read_parquet(path, wanted) if path.suffix == ".parquet" else _read_delimited(path, wanted)
    except (pa.ArrowException, OSError, UnicodeDecodeError, EOFError) as error:
        said = str(error).strip().split("\n")[0]
        raise InputFileError(f"{path}: cannot be read ({said}). {_format_of(wanted)}") from error
    if not table.num_rows:
        raise InputFileError(f"{path}: holds no rows. {_format_of(wanted)}")
    return [table.column(place) for place in range(len(wanted))]


def _read_parquet(path: Path, wanted: Sequence[tuple[str, ...]]) -> Any:
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
    return parquet.read_table(path, columns=kept, read_dictionary=texts).select(kept)


def _read_delimited(path: Path, wanted: Sequence[tuple[str, ...]]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="\n") as source:
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
    found = _find(first, wanted)
    has_header = found is not None or _looks_like_header(first, wanted)
    names = [f"f{place}" for place in range(len(first))]
    kept = [names[place] for place in (found or range(len(wanted)))]
    texts = pa.dictionary(pa.int32(), pa.string())  # a name is kept once a block, and not once a link
    numbers = (CLICKS, FREQUENCIES)
    kinds = {name: pa.string() if column in numbers else texts for name, column in zip(kept, wanted, strict=True)}
    return csv.read_csv(
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


def _find(header: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> list[int] | None:
    """Where the wanted columns are; None where the header does not name all of them."""
    plain = [name.strip().lower() for name in header]
    found = []
    for names in wanted:
        place = next((plain.index(name) for name in names if name in plain), None)
        if place is None or place in found:
            return None
        found.append(place)
    return found


def _looks_like_header(first: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> bool:
    """A first line without a number where every other line has one."""
    if wanted[-1] not in (CLICKS, FREQUENCIES):
        return False
    try:
        float(first[len(wanted) - 1])
    except ValueError:
        return True
    return False


def _encode(column: Any) -> Any:
    """One dictionary for a chunked column of strings."""
    pa = load_arrow()
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


def _numbers(column: Any, path: Path, name: str) -> F64:
    pa = load_arrow()
    try:
        values = np.asarray(column.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowException as error:
        said = str(error).strip().split("\n")[0]
        raise InputFileError(f"{path}: {name} must be numbers ({said}).") from error
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise InputFileError(
            f"{path}: row {wrong[0] + 1}: {name} is {values[wrong[0]]}; it must be a number that is not negative."
        )
    return values


def _format_of(wanted: Sequence[tuple[str, ...]]) -> str:
    names = ", ".join(names[0] for names in wanted)
    return f"It must have the columns {names}, by name or in this order."
