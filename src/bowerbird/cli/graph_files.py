"""Other people's graphs: files of links, clicks, queries and pages as arrays. Made for tens of millions of links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.cli.graph_columns import (
    CLICKS,
    FREQUENCIES,
    PAGES,
    QUERIES,
    SOURCES,
    TARGETS,
    load_arrow,
    read_rows,
)
from bowerbird.model.errors import InputFileError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

#: of files that a ranking can be written to
ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


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
    notes: tuple[str, ...] = ()  # what was left out or guessed


def read_graph(links: Path, clicks: Path, crawled: Path | None = None) -> GraphFiles:
    """Links and clicks; without a file of crawled pages, those are the sources of links and the pages with clicks."""
    pa = load_arrow()
    read = [read_rows(links, (SOURCES, TARGETS)), read_rows(clicks, (PAGES, CLICKS))]
    if crawled is not None:
        read.append(read_rows(crawled, (PAGES,)))
    encoded = [column for each in read for column in each.names]
    joined = pa.concat_arrays([column.dictionary for column in encoded]).dictionary_encode()
    number = np.asarray(joined.indices, dtype=np.int64)
    rows, first = [], 0
    for column in encoded:
        here = number[first : first + len(column.dictionary)]
        rows.append(here[column.rows])
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
        np.bincount(rows[2], weights=read[1].amounts, minlength=count).astype(np.float64),
        known,
        int(np.count_nonzero(~linked[named])),
        int(np.count_nonzero(~known[named])),
        tuple(note for each in read for note in each.notes),
    )


def read_queries(path: Path) -> tuple[list[str], list[float], list[str]]:
    """Queries with their frequencies, and what was left out; one that is named twice counts with the sum."""
    read = read_rows(path, (QUERIES, FREQUENCIES))
    texts = read.names[0].dictionary.take(read.names[0].rows).to_pylist()
    total: dict[str, float] = {}
    for text, amount in zip(texts, read.amounts.tolist(), strict=True):
        if text.strip():
            total[text.strip()] = total.get(text.strip(), 0.0) + amount
    return list(total), list(total.values()), read.notes


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
    """A ranking to a file with one of `ENDINGS`; as in what is read, nothing is quoted in .tsv files."""
    pa = load_arrow()
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(pa.table(columns), path)
            return
        with pa.output_stream(str(path), compression="gzip" if path.suffix == ".gz" else None) as out:
            if ".csv" in path.suffixes[-2:]:
                from pyarrow import csv

                csv.write_csv(pa.table(columns), out)
            else:
                out.write(_as_lines(columns).encode("utf-8"))
    except OSError as error:
        raise InputFileError(f"{path}: cannot be written ({error}). Choose another place.") from error


def _as_lines(columns: dict[str, Any]) -> str:
    """Tabs and ends of lines in names become spaces.

    >>> _as_lines({"page": ['a\\t"b"'], "in_links": [2]})
    'page\\tin_links\\na "b"\\t2\\n'
    """
    texts = [re.sub(r"[\t\r\n]", " ", page) for page in columns["page"]]
    numbers = [np.asarray(column).tolist() for name, column in columns.items() if name != "page"]
    rows = ("\t".join(map(str, row)) for row in zip(texts, *numbers, strict=True))
    return "\n".join(["\t".join(columns), *rows, ""])
