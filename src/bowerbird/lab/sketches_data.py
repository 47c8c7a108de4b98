"""Data of the sketch experiments: pages with text, links with anchors, queries. docs/lab-data.md has the format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from bowerbird.lab.bm25 import TermCounts, count_terms, make_engine
from bowerbird.lab.data_files import Column, find_file, read_columns
from bowerbird.lab.text_files import find_html, find_records, read_html, read_records
from bowerbird.model.errors import InputFileError
from bowerbird.model.page_words import PageWords, make_page_words
from bowerbird.model.workload import Workload, make_workload
from bowerbird.page.html import parse_html

I64 = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Lucene's English stop words
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with",
    )
)
_WORD = re.compile(r"[a-z0-9]+")
_SOURCE = Column(("source", "src", "from", "linksource"), 0)
_TARGET = Column(("target", "dst", "to", "linktarget"), 1)
_ANCHOR = Column(("anchor",), 2, optional=True)
_PAGE = Column(("page", "article", "name"), 0)
_QUERY = Column(("query", "q"), 0)
_FREQUENCY = Column(("frequency", "count", "n"), 1, number=True)
_MAX_LINKS = 100_000
#: with fewer pages there is hardly one to hold back in each split, and nothing to learn from
LEAST_PAGES = 20


def split_words(text: str) -> list[str]:
    """`[a-z0-9]+` of the lower-cased text."""
    return _WORD.findall(text.lower())


def split_query(text: str) -> list[str]:
    """The words of a query or of an anchor that are no stop words."""
    return [word for word in split_words(text) if word not in STOP_WORDS]


@dataclass(frozen=True, slots=True)
class SketchesData:
    """Pages by number, in the order of their names."""

    name: str
    pages: tuple[str, ...]
    counts: TermCounts  # of the pages' texts
    sources: I64  # of the links, one for each anchor
    targets: I64
    anchors: tuple[tuple[str, ...], ...]  # the words of each, without stop words; the link's place may have none
    workload: Workload  # queries that some page answers
    asked: int  # distinct queries in the files
    asked_for: float  # their frequency in all
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(self.pages)

    def describe(self) -> dict[str, str | int | float]:
        """Sizes, as a table of two columns."""
        facts: dict[str, str | int | float] = {
            "data": self.name,
            "pages": self.count,
            "words of text": int(self.counts.lengths.sum()),
            "links with an anchor": len(self.sources),
            "distinct queries": self.asked,
            "queries that some page answers": len(self.workload),
            "their share of all searches": f"{self.workload.frequency.sum() / max(self.asked_for, 1):.1%}",
        }
        for place, note in enumerate(self.notes, 1):
            facts[f"note {place}"] = note
        return facts

    def words_known(self, crawled: BoolArray) -> PageWords:
        """URL words of every page and the anchors of links from crawled pages: what a crawler knows of a page."""
        texts: list[list[Sequence[str]]] = [[split_query(_readable(page))] for page in self.pages]
        for place in np.flatnonzero(crawled[self.sources]).tolist():
            texts[self.targets[place]].append(self.anchors[place])
        return make_page_words(texts)


def read_sketches_data(name: str, folder: Path) -> SketchesData:
    """Read a folder in the format of docs/lab-data.md; raises InputFileError that names what is missing or wrong."""
    notes: list[str] = []
    found = _read_html(folder) or _read_texts(folder)
    if found is None:
        raise InputFileError(
            f"{folder}: no texts. html.tar.xz, or pages.jsonl(.gz) of {{page, text}} lines, is needed; "
            "docs/lab-data.md has the format."
        )
    texts, links = found
    listed = find_file(folder, "articles")
    if listed is not None:  # a tarball may hold files that are no pages of the collection
        kept = set(read_columns(listed, (_PAGE,)).texts["page"])
        texts = {page: text for page, text in texts.items() if page in kept}
    if len(texts) < LEAST_PAGES:
        raise InputFileError(
            f"{folder}: {len(texts)} page(s) with text, too few: a fifth of them is held back, and its first 1% "
            f"measured. Give at least {LEAST_PAGES}, better some hundred."
        )
    if not links:
        links = _read_links(folder)
    pages = tuple(sorted(texts))
    number = {page: place for place, page in enumerate(pages)}
    inside = [link for link in links if link[0] in number and link[1] in number and link[0] != link[1]]
    counts = count_terms(split_words(texts[page]) for page in pages)
    queries = read_queries(folder, notes)
    return SketchesData(
        name,
        pages,
        counts,
        np.array([number[source] for source, _, _ in inside], dtype=np.int64),
        np.array([number[target] for _, target, _ in inside], dtype=np.int64),
        tuple(tuple(split_query(anchor)) for _, _, anchor in inside),
        keep_answered(queries, counts),
        len(queries),
        sum(queries.values()),
        tuple(notes),
    )


Link = tuple[str, str, str]


def _read_html(folder: Path) -> tuple[dict[str, str], list[Link]] | None:
    """Texts and links of a packed folder of HTML; links lead to its files."""
    path = find_html(folder)
    if path is None:
        return None
    texts: dict[str, str] = {}
    links: list[Link] = []
    for name, body in read_html(path):
        page = parse_html(body, None, max_links=_MAX_LINKS)
        texts[name] = page.text
        links.extend((name, _file_of(link.href), link.anchor) for link in page.links)
    # an href is a URL: what the file's name has as %C3 is %25C3 there
    return texts, [(source, target if target in texts else unquote(target), anchor) for source, target, anchor in links]


def _file_of(href: str) -> str:
    """The name of the file that a link leads to, without folder, ending and fragment."""
    return href.partition("#")[0].rpartition("/")[2].rpartition(".")[0]


def _read_texts(folder: Path) -> tuple[dict[str, str], list[Link]] | None:
    """A file of {"page", "text"} lines."""
    path = find_records(folder, "pages", "texts")
    if path is None:
        return None
    records = read_records(path, lambda found: (str(found["text"]), str(found["page"])), '"page" and "text"')
    return {page: text for text, page in records}, []


def _read_links(folder: Path) -> list[Link]:
    path = find_file(folder, "links")
    if path is None:
        raise InputFileError(f"{folder}: no links.tsv(.gz) (source, target, anchor). docs/lab-data.md has the format.")
    table = read_columns(path, (_SOURCE, _TARGET, _ANCHOR))
    sources, targets = table.texts["source"], table.texts["target"]
    return list(zip(sources, targets, table.texts.get("anchor") or [""] * len(sources), strict=True))


def read_queries(folder: Path, notes: list[str]) -> dict[str, float]:
    """From queries.tsv in the folder, or from all files of the folder `queries` beside it; frequencies add up."""
    own = find_file(folder, "queries")
    beside = folder.resolve().parent / "queries"
    paths: Iterable[Path] = [own] if own is not None else sorted([*beside.glob("*.tsv.gz"), *beside.glob("*.tsv")])
    queries: dict[str, float] = {}
    for path in paths:
        table = read_columns(path, (_QUERY, _FREQUENCY))
        if note := table.note():
            notes.append(note)
        for text, frequency in zip(table.texts["query"], table.numbers["frequency"].tolist(), strict=True):
            queries[text] = queries.get(text, 0.0) + frequency
    if not queries:
        raise InputFileError(
            f"{folder}: no queries. queries.tsv(.gz) (query, frequency) in it, or a folder `queries` beside it, is "
            "needed; docs/lab-data.md has the format."
        )
    return queries


def keep_answered(queries: dict[str, float], counts: TermCounts) -> Workload:
    """The queries whose non-stop terms are all on one page."""
    workload = make_workload(list(queries), queries.values(), split_query)
    every = np.ones(len(counts.lengths), dtype=np.bool_)
    results = make_engine(counts, every).search(workload.starts, number_terms(workload, counts))
    some = np.diff(results.starts) > 0
    kept = [text for text, answered in zip(workload.queries, some.tolist(), strict=True) if answered]
    if not kept:
        raise InputFileError("none of the queries has all of its words on one page. Give queries that fit the pages.")
    return make_workload(kept, workload.frequency[some].tolist(), split_query)


def number_terms(workload: Workload, counts: TermCounts) -> I64:
    """The members of a workload by the numbers that the texts' terms have; -1 for a term no text has."""
    number = np.array([counts.terms.get(term, -1) for term in workload.terms], dtype=np.int64)
    members: I64 = number[workload.members]
    return members


def _readable(page: str) -> str:
    """A page's name or URL as words."""
    return unquote(page).replace("_", " ")
