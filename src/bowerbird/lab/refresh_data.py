"""Data of the refresh experiments: every weekly version of a site's pages, and what searchers ask of it.

docs/lab-data.md has the format. Pages count that are there at the start and never deleted in the weeks of the replay.
Lines of weeks.jsonl that say nothing of such weeks are left out, and told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.lab.data_files import Column, Table, find_file, read_bytes, read_columns
from bowerbird.lab.refresh_measures import HEADLINE, least_pages, pages_a_week
from bowerbird.lab.refresh_terms import I32, I64, SHINGLE_TOKENS, TermNumbers, changed_shares
from bowerbird.lab.sketches_data import read_queries
from bowerbird.model.errors import InputFileError

FloatArray = npt.NDArray[np.float64]
I16 = npt.NDArray[np.int16]

#: texts of queries, and how often each is asked
Titles = tuple[list[str], list[float]]

#: of a longer file, the weeks after these are left out
WEEKS = 48
STATUSES = ("A", "M", "D")  # added, modified, deleted
_FORMAT = "docs/lab-data.md has the format"
_SOURCE = Column(("source", "src", "src_slug", "from"), 0)
_TARGET = Column(("target", "dst", "dst_slug", "to"), 1)
_PATH = Column(("path", "page"), 0)
_SLUG = Column(("slug",), 1)
_TITLE = Column(("title",), 2)
_VIEWS = Column(("views_2024", "views"), 5, number=True)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries as sets of distinct terms: query i has `terms[starts[i]:starts[i + 1]]`, ascending."""

    starts: I64
    terms: I32
    frequency: FloatArray

    def __len__(self) -> int:
        return len(self.frequency)

    def keep(self, kept: npt.NDArray[np.bool_]) -> QuerySet:
        """Some of the queries."""
        sizes = np.diff(self.starts)
        starts = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return QuerySet(starts, self.terms[np.repeat(kept, sizes)], self.frequency[kept])

    def split(self) -> QuerySet:
        """[UC05] the workload as single-term queries, whose frequencies are the sums of those that have the term."""
        terms, places = np.unique(self.terms, return_inverse=True)
        frequency = np.bincount(places, weights=np.repeat(self.frequency, np.diff(self.starts)), minlength=len(terms))
        starts = np.arange(len(terms) + 1, dtype=np.int64)
        return QuerySet(starts, terms.astype(np.int32), frequency.astype(np.float64))


@dataclass(frozen=True)
class RefreshData:
    """Pages by number in the order of their paths; versions by page, then week, each page's first that of week 0."""

    name: str
    pages: tuple[str, ...]
    first: I64  # versions of page p are first[p]…first[p + 1] - 1
    week: I16  # by version: the week whose end it is the page's text at
    starts: I64  # the tokens of version v are tokens[starts[v]:starts[v + 1]]
    tokens: I32
    in_links: I64  # by page: distinct other pages of the site that link to it at week 0
    workloads: Mapping[str, QuerySet]
    weeks: int = WEEKS
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(self.pages)

    @property
    def updates(self) -> int:
        """How many versions there are after week 0."""
        return len(self.week) - self.count

    @cached_property
    def page(self) -> I32:
        """By version, its page."""
        return np.repeat(np.arange(self.count, dtype=np.int32), np.diff(self.first))

    @cached_property
    def changed_share(self) -> FloatArray:
        """By version, the share of shingles of 5 tokens that it and its predecessor do not have in common; first: 0."""
        shares: FloatArray = changed_shares(self.starts, self.tokens, self.page, SHINGLE_TOKENS)
        return shares

    def updated_in(self, week: int) -> I64:
        """The versions that became live in a week."""
        return np.flatnonzero(self.week == week)

    def describe(self) -> dict[str, str | int | float]:
        """Sizes, as a table of two columns."""
        facts: dict[str, str | int | float] = {
            "data": self.name,
            "pages": self.count,
            "weeks": self.weeks,
            "updates": self.updates,
            "pages that ever change": int((np.diff(self.first) > 1).sum()),
            "words of text at the start": int(np.diff(self.starts)[self.first[:-1]].sum()),
        }
        facts |= {f"distinct queries, {name}": len(queries) for name, queries in self.workloads.items()}
        facts |= {f"note {place}": note for place, note in enumerate(self.notes, 1)}
        return facts


def read_refresh_data(name: str, folder: Path, weeks: int = WEEKS) -> RefreshData:
    """Read base.jsonl, weeks.jsonl, links.tsv and, if there, pages.tsv; an InputFileError names what is wrong.

    The replay is as long as the file, of `weeks` weeks at most.
    """
    notes: list[str] = []
    start = _read_records(_find_records(folder, "base"), ("path", "text"))
    base = {str(record["path"]): str(record["text"]) for _, record in start}
    changes = _read_changes(_find_records(folder, "weeks"), base, weeks, notes)
    gone = {record["path"] for record in changes if record["status"] == "D"}
    pages = tuple(sorted(path for path in base if path not in gone))
    if not pages:
        raise InputFileError(f"{folder}: no page is there at the start and never deleted. {_FORMAT}.")
    if not pages_a_week(HEADLINE, len(pages)):
        needed = least_pages(HEADLINE)
        notes.append(f"{len(pages)} pages: {HEADLINE:.0%} a week is 0 pages; at least {needed} are needed.")
    number = {path: place for place, path in enumerate(pages)}
    later = {
        (number[record["path"]], int(record["week"])): str(record["text"])
        for record in changes
        if record["path"] in number
    }
    keys = sorted([(place, 0) for place in range(len(pages))] + list(later))
    terms = TermNumbers()
    starts, tokens = terms.read([later[key] if key[1] else base[pages[key[0]]] for key in keys])
    first = np.searchsorted(np.array([place for place, _ in keys]), np.arange(len(pages) + 1)).astype(np.int64)
    listed = _read_pages(folder, number, notes)
    in_links = _count_in_links(folder, number if listed is None else number | listed[0], notes)
    titles, views = listed[1] if listed else ([_front_title(base[path]) for path in pages], (1.0 + in_links).tolist())
    asked = read_queries(folder, notes)
    workloads = {
        "web": make_queries(terms, asked.keys(), asked.values()),
        "site": make_queries(terms, titles, views),
    }
    weeks_of = np.array([week for _, week in keys], dtype=np.int16)
    last = max(int(record["week"]) for record in changes)
    return RefreshData(name, pages, first, weeks_of, starts, tokens, in_links, workloads, last, tuple(notes))


def read_added_pages(folder: Path, known: Collection[str], weeks: int = WEEKS) -> dict[str, int]:
    """Pages that were added within the weeks and not deleted in them, with the week of each; not those `known`."""
    added: dict[str, int] = {}
    gone = set()
    for _, record in _read_records(_find_records(folder, "weeks"), ("week", "status", "path")):
        if 0 < record["week"] <= weeks and record["path"] not in known:
            if record["status"] == "A":
                added.setdefault(record["path"], int(record["week"]))
            elif record["status"] == "D":
                gone.add(record["path"])
    return {path: week for path, week in added.items() if path not in gone}


def make_queries(terms: TermNumbers, texts: Iterable[str], frequency: Iterable[float]) -> QuerySet:
    """Queries with the same set of terms are one, whose frequency is their sum; those without a term or weight go."""
    asked = list(texts)
    starts, tokens = terms.read(asked)
    bounds, flat = starts.tolist(), tokens.tolist()
    added: dict[tuple[int, ...], float] = {}
    for place, weight in enumerate(frequency):
        key = tuple(sorted(set(flat[bounds[place] : bounds[place + 1]])))
        if key and weight > 0:
            added[key] = added.get(key, 0.0) + weight
    sizes = np.fromiter(map(len, added), dtype=np.int64, count=len(added))
    return QuerySet(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.fromiter((term for key in added for term in key), dtype=np.int32, count=int(sizes.sum())),
        np.fromiter(added.values(), dtype=np.float64, count=len(added)),
    )


def _read_changes(path: Path, base: Mapping[str, str], weeks: int, notes: list[str]) -> list[dict[str, Any]]:
    """What happens in the weeks of the replay; lines that cannot be a part of it are left out, and told."""
    table, late = Table(path), 0
    kept: list[tuple[int, dict[str, Any]]] = []
    added = set()
    for line, record in _read_records(path, ("week", "status", "path")):
        table.lines = line
        if record["status"] == "A":
            added.add(record["path"])
        if record["status"] not in STATUSES:
            table.add_bad(line, f"status {record['status']!r} is none of {', '.join(STATUSES)}")
        elif record["week"] == 0:
            table.add_bad(line, "week 0 is the start, whose texts are in base.jsonl")
        elif record["week"] > weeks:
            late += 1
        else:
            kept.append((line, record))
    found = []
    for line, record in kept:
        if record["path"] in base or record["path"] in added:
            found.append(record)
        else:
            table.add_bad(line, f"{record['path']!r} is not in base.jsonl and was never added")
    table.rows = len(found) + late
    if late:
        notes.append(f"{path.name}: weeks after {weeks} are left out ({late:,} lines).")
    if note := table.note():
        notes.append(note)
    table.check(_FORMAT)
    if not found:
        raise InputFileError(
            f"{path}: nothing changes in the weeks 1 to {weeks}, so there is nothing to replay. Give a line for each "
            f"page that changed in a week, the first week 1; {_FORMAT}."
        )
    return found


def _find_records(folder: Path, stem: str) -> Path:
    names = [f"{stem}.jsonl{ending}" for ending in ("", ".gz", ".zst")]
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise InputFileError(f"{folder}: no {stem}.jsonl(.gz). {_FORMAT}.")
    return path


def _read_records(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    """With the numbers of their lines."""
    for line, data in enumerate(read_bytes(path).split(b"\n"), 1):
        if not data.strip():
            continue
        try:
            record = orjson.loads(data)
            missing = [name for name in needed if name not in record]
            if "week" in needed and not missing and (not isinstance(record["week"], int) or record["week"] < 0):
                raise ValueError(f"week {record['week']!r} is no number of 0 or more")
            if "status" in record and record["status"] in ("A", "M") and not isinstance(record.get("text"), str):
                missing.append("text")
            if missing:
                raise ValueError(f"no {' and no '.join(missing)}")
        except (orjson.JSONDecodeError, TypeError, ValueError) as error:
            raise InputFileError(f"{path}, line {line}: {error}. {_FORMAT}.") from error
        yield line, record


def _read_pages(folder: Path, number: dict[str, int], notes: list[str]) -> tuple[dict[str, int], Titles] | None:
    """Pages by slug, and what the site's searchers ask: the titles, as often as their pages are viewed.

    People also ask for pages that go later, so that all titles count.
    """
    path = find_file(folder, "pages")
    if path is None:
        return None
    table = read_columns(path, (_PATH, _SLUG, _TITLE, _VIEWS))
    if note := table.note():
        notes.append(note)
    named = zip(table.texts["path"], table.texts["slug"], strict=True)
    slugs = {slug: number[name] for name, slug in named if name in number}
    return slugs, (table.texts["title"], table.numbers["views_2024"].tolist())


def _count_in_links(folder: Path, number: dict[str, int], notes: list[str]) -> I64:
    path = find_file(folder, "links")
    if path is None:
        raise InputFileError(f"{folder}: no links.tsv(.gz) (source, target). {_FORMAT}.")
    table = read_columns(path, (_SOURCE, _TARGET))
    if note := table.note():
        notes.append(note)
    links = zip(table.texts["source"], table.texts["target"], strict=True)
    found = {(source, number[target]) for source, target in links if target in number}
    targets = [target for source, target in found if number.get(source) != target]
    return np.bincount(np.array(targets, dtype=np.int64), minlength=max(number.values()) + 1)


def _front_title(text: str) -> str:
    """The title in the front matter of a Markdown file; empty where there is none.

    >>> _front_title('---\\ntitle: "Pods"\\n---\\ntitle: not this')
    'Pods'
    """
    if not text.startswith("---"):
        return ""
    found = _FRONT_TITLE.search(text.split("\n---", 1)[0])
    return found.group(1).strip("\"'") if found else ""
