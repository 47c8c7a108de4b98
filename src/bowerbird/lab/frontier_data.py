"""Data of the frontier experiments: pages, links between them, clicks on them. docs/lab-data.md has the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.lab.data_files import Column, Table, find_file, read_columns
from bowerbird.lab.text_files import find_html, find_records, read_html, read_records
from bowerbird.model.errors import InputFileError

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

#: views that are shares of the most viewed page become counts, so that 0.001 more is little beside them
VIEWS_SCALE = 1e5

_SOURCE = Column(("source", "src", "src_slug", "from"), 0)
_TARGET = Column(("target", "dst", "dst_slug", "to"), 1)
_ANCHOR = Column(("anchor",), 2, optional=True)
_PAGE = Column(("page", "slug", "url", "name", "article"), 0)
_CLICKS = Column(("clicks", "views", "count", "n"), 1, number=True)
_EDGE_CLICKS = Column(("clicks", "count", "n"), 2, number=True)
_PAGE_VIEWS = Column(("clicks", "views", "views_2024"), 2, number=True)
_TITLE = Column(("title",), 1, optional=True)
_PATH = Column(("path",), 0, optional=True)


@dataclass(frozen=True)
class FrontierData:
    """Pages by number, in the order of their names."""

    name: str
    pages: tuple[str, ...]
    sources: I64  # of the links: distinct, without links of a page to itself
    targets: I64
    clicks: F64  # by page
    titles: tuple[str, ...] | None = None  # by page, empty where none is known
    #: reads the text of all pages, by page, empty where there is none; None where the data has no text
    texts: Callable[[], tuple[str, ...]] | None = None
    texts_are: str = ""  # "html", "markdown"…
    anchors: tuple[tuple[int, str], ...] | None = None  # (target, text), distinct
    clicks_are: str = "clicks"
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(self.pages)

    def describe(self) -> dict[str, str | int | float]:
        """Sizes and sources, as a table of two columns."""
        clicked = int((self.clicks > 0).sum())
        linked = len(np.unique(self.targets))
        facts: dict[str, str | int | float] = {
            "data": self.name,
            "pages": self.count,
            "pages that some page links to": linked,
            "links (distinct, without self-links)": len(self.sources),
            "impact of a page": self.clicks_are,
            "pages with impact": clicked,
            "impact in all": round(float(self.clicks.sum()), 1),
            "share of the top 1% of pages": f"{self._top_share(0.01):.1%}",
            "text": self.texts_are or "none",
        }
        for place, note in enumerate(self.notes, 1):
            facts[f"note {place}"] = note
        return facts

    def _top_share(self, share: float) -> float:
        total = float(self.clicks.sum())
        top = np.sort(self.clicks)[::-1][: max(1, round(share * self.count))]
        return float(top.sum()) / total if total else 0.0


@dataclass(slots=True)
class _Clicks:
    """Clicks as a file has them: a name may occur more than once, its clicks add up."""

    names: list[str]
    values: F64
    are: str
    more: list[str]  # pages that are named without clicks
    titles: dict[str, str] | None = None
    paths: dict[str, str] | None = None  # of a file of texts -> page


def read_frontier_data(name: str, folder: Path) -> FrontierData:
    """Read a folder in the format of docs/lab-data.md; raises InputFileError that names what is missing or wrong."""
    links_path = find_file(folder, "links")
    if links_path is None:
        raise InputFileError(
            f"{folder}: no links.tsv (or .tsv.gz, .csv, .parquet) in it. Name a folder as docs/lab-data.md has it."
        )
    notes: list[str] = []
    links = read_columns(links_path, (_SOURCE, _TARGET, _ANCHOR))
    clicks = _read_clicks(folder, notes)
    _add_note(notes, links)
    names = {*links.texts["source"], *links.texts["target"], *clicks.names, *clicks.more, *_read_list(folder, notes)}
    pages = tuple(sorted(names))
    number = {page: place for place, page in enumerate(pages)}
    sources, targets = _number_links(links, number)
    by_page = np.zeros(len(pages))
    np.add.at(by_page, _numbers(clicks.names, number), clicks.values)
    if not by_page.any():
        raise InputFileError(f"{folder}: no page has any clicks. Without them there is no impact to measure.")
    if not len(sources):
        raise InputFileError(f"{links_path}: every link leads from a page to itself. There is no frontier to rank.")
    texts, texts_are = _find_texts(folder, number, clicks.paths)
    return FrontierData(
        name,
        pages,
        sources,
        targets,
        by_page,
        titles=tuple(clicks.titles.get(page, "") for page in pages) if clicks.titles else None,
        texts=texts,
        texts_are=texts_are,
        anchors=_read_anchors(links, number),
        clicks_are=clicks.are,
        notes=tuple(notes),
    )


def _read_clicks(folder: Path, notes: list[str]) -> _Clicks:
    """From whichever of the files is there."""
    for stem, are in (("clicks", "clicks"), ("search_clicks", "visits from search engines")):
        if path := find_file(folder, stem):
            table = read_columns(path, (_PAGE, _CLICKS))
            _add_note(notes, table)
            return _Clicks(table.texts["page"], table.numbers["clicks"], are, [])
    if path := find_file(folder, "click_edges"):
        table = read_columns(path, (_SOURCE, _TARGET, _EDGE_CLICKS))
        _add_note(notes, table)
        are = "clicks on links into it (a proxy for clicks in search results)"
        return _Clicks(table.texts["target"], table.numbers["clicks"], are, table.texts["source"])
    if path := find_file(folder, "pages"):
        return _read_pages(path, notes)
    raise InputFileError(
        f"{folder}: no clicks. One of clicks.tsv (page, clicks), search_clicks.tsv, click_edges.tsv (source, target, "
        "clicks) or pages.tsv (slug, title, views) is needed; docs/lab-data.md has the format."
    )


def _read_pages(path: Path, notes: list[str]) -> _Clicks:
    """A table of pages with views, which are shares of the most viewed page's where none is above 1."""
    table = read_columns(path, (_PAGE, _PAGE_VIEWS, _TITLE, _PATH))
    _add_note(notes, table)
    names, views = table.texts["page"], table.numbers["clicks"]
    are = "page views (a proxy for clicks in search results)"
    if len(views) and views.max() <= 1.0:
        views = views * VIEWS_SCALE
        are = f"page views as shares of the most viewed page's, times {VIEWS_SCALE:g} (a proxy for clicks)"
    titles = dict(zip(names, table.texts["title"], strict=True)) if "title" in table.texts else None
    paths = dict(zip(table.texts["path"], names, strict=True)) if "path" in table.texts else None
    return _Clicks(names, views, are, [], titles, paths)


def _read_list(folder: Path, notes: list[str]) -> list[str]:
    """Pages that may be without links and clicks, from a plain list of names."""
    path = find_file(folder, "articles")
    if path is None:
        return []
    table = read_columns(path, (_PAGE,))
    _add_note(notes, table)
    return table.texts["page"]


def _add_note(notes: list[str], table: Table) -> None:
    if note := table.note():
        notes.append(note)


def _numbers(names: list[str], number: dict[str, int]) -> I64:
    return np.fromiter(map(number.__getitem__, names), dtype=np.int64, count=len(names))


def _number_links(links: Table, number: dict[str, int]) -> tuple[I64, I64]:
    """Distinct links in the order of source and target; those of a page to itself are dropped."""
    sources, targets = _numbers(links.texts["source"], number), _numbers(links.texts["target"], number)
    keys = np.unique((sources * len(number) + targets)[sources != targets])
    return keys // len(number), keys % len(number)


def _read_anchors(links: Table, number: dict[str, int]) -> tuple[tuple[int, str], ...] | None:
    if "anchor" not in links.texts:
        return None
    found = zip(links.texts["target"], links.texts["anchor"], strict=True)
    return tuple(sorted({(number[target], text) for target, text in found if text}))


def _find_texts(
    folder: Path, number: dict[str, int], paths: dict[str, str] | None
) -> tuple[Callable[[], tuple[str, ...]] | None, str]:
    """How to read the pages' texts, when someone asks for them."""
    if packed := find_html(folder):
        return partial(_read_packed, packed, number), "html"
    for stem, are in (("texts", "text"), ("base", "markdown")):
        if lines := find_records(folder, stem):
            return partial(_read_lines, lines, number, paths or {}), are
    return None, ""


def _read_packed(path: Path, number: dict[str, int]) -> tuple[str, ...]:
    """Of a packed folder of HTML; pages that are links to other files of it have none."""
    texts = [""] * len(number)
    for page, body in read_html(path, lambda page, member: page in number and member.isfile()):
        texts[number[page]] = body.decode("utf-8", errors="replace")
    return tuple(texts)


def _read_lines(path: Path, number: dict[str, int], paths: dict[str, str]) -> tuple[str, ...]:
    """Of a file of {"page" or "path", "text"} lines; a path is looked up in pages.tsv."""

    def read(found: Any) -> tuple[int, str] | None:
        page = found["page"] if "page" in found else paths.get(found["path"], found["path"])
        place = number.get(page)
        return None if place is None else (place, str(found["text"]))

    texts = [""] * len(number)
    for pair in read_records(path, read, '"page" (or "path") and "text"'):
        if pair is not None:
            texts[pair[0]] = pair[1]
    return tuple(texts)
