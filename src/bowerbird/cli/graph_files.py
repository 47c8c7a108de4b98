"""Other people's graphs: files of links, clicks, queries and pages as arrays. Made for tens of millions of links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.appraise.frontier.ranking import NamedGraph, relate_pages
from bowerbird.cli.graph_columns import read_rows
from bowerbird.library.arrow_names import join_names, load_arrow
from bowerbird.library.column_names import CLICKS, FREQUENCIES, PAGES, QUERIES, SOURCES, TARGETS
from bowerbird.library.workloads import sum_queries
from bowerbird.model.errors import InputFileError

#: of files that a ranking can be written to
ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


def read_graph(links: Path, clicks: Path, crawled: Path | None = None) -> tuple[NamedGraph, tuple[str, ...]]:
    """Links and clicks, with what was left out or guessed.

    Without a file of crawled pages, those are the sources of links and the pages with clicks.
    """
    read = [read_rows(links, (SOURCES, TARGETS)), read_rows(clicks, (PAGES, CLICKS))]
    if crawled is not None:
        read.append(read_rows(crawled, (PAGES,)))
    joined = join_names([column for each in read for column in each.names])
    graph = relate_pages(joined.columns, read[1].amounts, joined.host, joined.names_of)
    return graph, tuple(note for each in read for note in each.notes)


def read_queries(path: Path) -> tuple[list[str], list[float], list[str]]:
    """Queries with their frequencies, and what was left out; one that is named twice counts with the sum."""
    read = read_rows(path, (QUERIES, FREQUENCIES))
    texts = read.names[0].dictionary.take(read.names[0].rows).to_pylist()
    total = sum_queries(texts, read.amounts.tolist())
    return list(total), list(total.values()), read.notes


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
