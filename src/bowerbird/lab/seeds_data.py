"""Data of the seeds experiment: links, and what pages are worth, where that is known. docs/lab-data.md has the form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.seeds.methods import SeedOptions, fits_exactly
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.lab.data_files import Column, find_file, read_bytes, read_columns
from bowerbird.lab.frontier_data import read_frontier_data
from bowerbird.lab.seeds_measures import MOST_HOPS
from bowerbird.model.errors import InputFileError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

#: files that say what pages are worth, as the frontier experiment has them
VALUE_FILES = ("clicks", "search_clicks", "click_edges", "pages")
#: graphs of numbered pages are in the order of URLs as a rule: so many in a row stand for a site
BLOCK_PAGES = 1_000
NO_VALUES = "1 each: the data has no values"
#: of names that have parts, most have more than one
_MOST = 0.5
#: digits that fit into 64 bits for certain
_DIGITS = 18
_TAB, _LINE_END = 9, 10
_SOURCE = Column(("source", "src", "src_slug", "from"), 0)
_TARGET = Column(("target", "dst", "dst_slug", "to"), 1)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)/?(.*)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class SeedsData:
    """Pages by number with links, values and sites."""

    name: str
    count: int
    sources: I64
    targets: I64
    value: F64  # by page
    value_is: str = NO_VALUES
    site: I64 | None = None  # by page, from 0; None where names tell no sites
    sites_are: str = "none: names tell no sites"
    notes: tuple[str, ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether pages differ in what they are worth."""
        return self.value_is != NO_VALUES

    @cached_property
    def graph(self) -> FrontierGraph:
        """All pages as crawled ones."""
        return make_graph(self.sources, self.targets, self.count)

    @cached_property
    def greedy_is_exact(self) -> bool:
        """Whether the product's method counts exactly here, so that no seed of a generator moves it."""
        return fits_exactly(SeedProblem(self.graph, self.value, MOST_HOPS), SeedOptions())

    def describe(self) -> dict[str, str | int | float]:
        """Sizes and sources, as a table of two columns."""
        linked = np.zeros(self.count, np.bool_)
        linked[self.sources] = linked[self.targets] = True
        facts: dict[str, str | int | float] = {
            "data": self.name,
            "pages": self.count,
            "pages with links": int(linked.sum()),
            "links (distinct, without self-links)": self.graph.edges,
            "value of a page": self.value_is,
            "pages with value": int((self.value > 0).sum()),
            "value in all": round(float(self.value.sum()), 1),
            "share of it on pages with links": f"{float(self.value[linked].sum() / self.value.sum()):.1%}",
            "sites": self.sites_are if self.site is None else f"{int(self.site.max()) + 1:,}: {self.sites_are}",
        }
        for place, note in enumerate(self.notes, 1):
            facts[f"note {place}"] = note
        return facts


def read_seeds_data(name: str, folder: Path) -> SeedsData:
    """Read a folder in the format of docs/lab-data.md; raises InputFileError that names what is missing or wrong."""
    links, edges = find_file(folder, "links"), find_file(folder, "edges")
    if links is not None and edges is not None:
        raise InputFileError(
            f"{folder}: {links.name} and {edges.name} are both there. Keep the one that is to be read."
        )
    path = links or edges
    if path is None:
        raise InputFileError(
            f"{folder}: no links.tsv or edges.tsv (or .tsv.gz, .csv, .parquet) in it. docs/lab-data.md has the format."
        )
    valued = next((found for stem in VALUE_FILES if (found := find_file(folder, stem))), None)
    if valued is not None:
        if links is None:
            raise InputFileError(
                f"{path}: call it links{''.join(path.suffixes)} where there is {valued.name} beside it."
            )
        return _read_valued(name, folder)
    numbered = _read_numbers(path)
    return _read_named(name, path) if numbered is None else _make_numbered(name, path, *numbered)


def _read_valued(name: str, folder: Path) -> SeedsData:
    read = read_frontier_data(name, folder)
    site, are = find_sites(read.pages)
    return SeedsData(name, read.count, read.sources, read.targets, read.clicks, read.clicks_are, site, are, read.notes)


def _read_named(name: str, path: Path) -> SeedsData:
    table = read_columns(path, (_SOURCE, _TARGET))
    first, second = table.texts["source"], table.texts["target"]
    names = {*first, *second}
    pages = sorted(names, key=(lambda page: (int(page), page)) if all(map(_is_number, names)) else None)
    number = {page: place for place, page in enumerate(pages)}
    sources, targets = (
        np.fromiter(map(number.__getitem__, column), np.int64, len(column)) for column in (first, second)
    )
    _check_links(path, sources, targets)
    site, are = find_sites(pages)
    notes = (table.note(),) if table.bad else ()
    return SeedsData(name, len(pages), sources, targets, np.ones(len(pages)), site=site, sites_are=are, notes=notes)


def _make_numbered(name: str, path: Path, sources: I64, targets: I64) -> SeedsData:
    """Pages are the numbers that occur."""
    numbers, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    first, second = places[: len(sources)].astype(np.int64), places[len(sources) :].astype(np.int64)
    _check_links(path, first, second)
    site, are = _cut_blocks(numbers)
    return SeedsData(name, len(numbers), first, second, np.ones(len(numbers)), site=site, sites_are=are)


def _check_links(path: Path, sources: I64, targets: I64) -> None:
    if not (sources != targets).any():
        raise InputFileError(f"{path}: every link leads from a page to itself, so seeds cover nothing but themselves.")


def _read_numbers(path: Path) -> tuple[I64, I64] | None:
    """Two columns of numbers and nothing else, read at once: millions of lines are usual. None where it is not that."""
    if path.suffix == ".parquet" or ".csv" in path.suffixes:
        return None
    content = read_bytes(path)
    if not content or content.translate(None, b"0123456789\t\n"):
        return None
    if not content.endswith(b"\n"):
        content += b"\n"
    marks = np.frombuffer(content, np.uint8)
    at = np.flatnonzero(marks < ord("0"))
    lengths = np.diff(at, prepend=-1) - 1
    in_turn = len(at) % 2 == 0 and (marks[at[::2]] == _TAB).all() and (marks[at[1::2]] == _LINE_END).all()
    if not in_turn or lengths.min() < 1 or lengths.max() > _DIGITS:
        return None
    pairs = np.fromstring(content.decode("ascii"), np.int64, sep=" ").reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def find_sites(names: Sequence[str]) -> tuple[I64 | None, str]:
    """Sites by host, or by the first part of names with several; blocks of names that are numbers. None where none.

    >>> find_sites(["http://a/1", "http://b/2", "http://a/3"])[0].tolist()
    [0, 1, 0]
    >>> find_sites(["Web/API", "Web/CSS", "Games", "Games/Tools"])
    (array([1, 1, 0, 0]), 'by the first part of the name')
    >>> find_sites(["Zagreb", "AC/DC", "Split"])
    (None, 'none: names tell no sites')
    """
    if all(map(_is_number, names)):
        return _cut_blocks(np.array([int(name) for name in names], np.int64))
    urls = [_URL.fullmatch(name) for name in names]
    paths = list(names)
    if all(urls):
        hosts = [found[1].lower() for found in urls if found]
        if len(set(hosts)) > 1:
            return _number(hosts), "by host"
        paths = [found[2] for found in urls if found]
    paths = [path.lstrip("/") for path in paths]
    firsts = [path.split("/")[0] for path in paths]
    if sum("/" in path for path in paths) >= _MOST * len(paths) and len(set(firsts)) > 1:
        return _number(firsts), "by the first part of the name"
    return None, "none: names tell no sites"


def _cut_blocks(numbers: I64) -> tuple[I64 | None, str]:
    blocks = np.unique(numbers // BLOCK_PAGES, return_inverse=True)[1].astype(np.int64)
    if not len(blocks) or not blocks.any():
        return None, "none: too few numbered pages"
    return blocks, f"blocks of {BLOCK_PAGES:,} page numbers, a stand-in: neighbours are of one site as a rule"


def _number(texts: Sequence[str]) -> I64:
    found: I64 = np.unique(np.array(texts, dtype=np.str_), return_inverse=True)[1].astype(np.int64)
    return found


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= _DIGITS
