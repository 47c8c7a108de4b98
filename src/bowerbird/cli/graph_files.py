"""Other people's graphs: files of links, clicks, queries and pages as arrays. Made for tens of millions of links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.appraise.frontier.ranking import NamedGraph, relate_pages
from bowerbird.cli.graph_columns import read_rows
from bowerbird.demand.workload import words_of
from bowerbird.library.arrow_names import join_names, load_arrow
from bowerbird.library.column_names import CLICKS, FREQUENCIES, PAGES, QUERIES, SOURCES, TARGETS
from bowerbird.library.workloads import sum_queries
from bowerbird.model.errors import ConfigError, InputFileError
from bowerbird.model.workload import Workload, make_workload


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


def read_workload(path: Path) -> tuple[Workload, list[str]]:
    """The queries of a file that have words, and what was left out."""
    texts, frequency, notes = read_queries(path)
    workload = make_workload(texts, frequency, words_of)
    if not len(workload):
        raise ConfigError(f"{path}: none of the queries has a word to look for.")
    return workload, notes


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """A table to a file of an ending of `table_files`; as in what is read, nothing is quoted in .tsv files."""
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
    cells = ([re.sub(r"[\t\r\n]", " ", str(cell)) for cell in np.asarray(each).tolist()] for each in columns.values())
    rows = map("\t".join, zip(*cells, strict=True))
    return "\n".join(["\t".join(columns), *rows, ""])
