"""Data of the echo experiments: worlds of hubs from folders whose files decide how they are read.

| files | world |
|---|---|
| articles, clicks_20min | sections of a news site, with clicks; a link stays 24 hours on its section, newest first |
| link_events, sources | index pages with the real appearances and disappearances of links; profit is their presence |
| items, snapshots | a list of items with votes; an item's host is its hub, and links to it for 7 days, newest first |

docs/lab-data.md has the formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from bowerbird.lab.data_files import Column, Table, find_file, parse_numbers, read_columns
from bowerbird.lab.echo_world import BIN_S, DAY_S, F64, HOUR_S, I64, EchoWorld
from bowerbird.model.errors import InputFileError

_FORMAT = "docs/lab-data.md has the format"
SECTION_STAY_S = 24 * HOUR_S
HOST_STAY_S = 7 * DAY_S
#: a host with fewer items is no hub
LEAST_ITEMS = 3

_ARTICLE = Column(("article", "page"), 0)
_SECTION = Column(("source", "hub", "section"), 1)
_FIRST_CLICK = Column(("first_click_s", "appeared_s"), 2, number=True)
_BIN = Column(("bin",), 1, number=True)
_CLICKS = Column(("clicks", "count", "n"), 2, number=True)
_SOURCE = Column(("source_id", "source", "hub"), 0)
_PAGE = Column(("page_id", "page"), 1)
_FIRST_SEEN = Column(("first_seen",), 2, number=True)
_PREVIOUS = Column(("prev_snapshot",), 3, optional=True)
_LAST_SEEN = Column(("last_seen",), 4, number=True)
_GONE = Column(("gone_at",), 5, optional=True)
_PLACE = Column(("first_pos", "position"), 7, optional=True)
_NAME = Column(("name",), 1)
_ITEM = Column(("item_id", "item"), 0)
_URL = Column(("url",), 1)
_ITEM_SEEN = Column(("first_seen",), 2, number=True)
_SNAPSHOT = Column(("snapshot_unix", "snapshot"), 0, number=True)
_ITEM_AT = Column(("item_id", "item"), 2)
_VOTES = Column(("upvotes", "votes"), 3, number=True)


@dataclass(frozen=True, slots=True)
class Span:
    """Which days of a data set are replayed and scored, by what is left out at either end."""

    skip: float  # days before the replay
    learn: float  # days of the replay before the scored ones
    tail: float  # days of the replay after the scored ones
    cut: float  # days after the replay

    def times(self, length_s: float) -> tuple[float, float, float, float]:
        """begin, end, scored from, scored to; of short data at most half is left out.

        >>> [time / DAY_S for time in Span(2, 3, 1, 0).times(16.98 * DAY_S)]
        [2.0, 16.0, 5.0, 15.0]
        """
        out = self.skip + self.learn + self.tail + self.cut
        days = length_s / DAY_S
        if out > days / 2:
            scale = days / 2 / out
            begin, end = self.skip * scale, days - self.cut * scale
            return begin * DAY_S, end * DAY_S, (begin + self.learn * scale) * DAY_S, (end - self.tail * scale) * DAY_S
        begin, end = self.skip, float(int(days)) - self.cut
        return begin * DAY_S, end * DAY_S, (begin + self.learn) * DAY_S, (end - self.tail) * DAY_S


GLOBO_SPAN = Span(2, 3, 1, 0)
FRONTPAGES_SPAN = Span(0, 7, 1, 3)
HACKERNEWS_SPAN = Span(0, 60, 3, 0)


def read_echo_world(name: str, folder: Path) -> EchoWorld:
    """The world of a folder, by the files that it has; an InputFileError names what is wrong."""
    if find_file(folder, "articles"):
        return read_globo(name, folder)
    if find_file(folder, "link_events"):
        return read_frontpages(name, folder)
    if find_file(folder, "items"):
        return read_hackernews(name, folder)
    raise InputFileError(
        f"{folder}: none of articles.tsv, link_events.csv and items.csv (or .gz, .zst, .parquet) is there. {_FORMAT}."
    )


def read_globo(name: str, folder: Path) -> EchoWorld:
    """articles (article, source, first_click_s) and clicks_20min (article, bin, clicks): a hub is a section."""
    notes: list[str] = []
    articles = _read(folder, "articles", (_ARTICLE, _SECTION, _FIRST_CLICK), notes)
    clicks = _read(folder, "clicks_20min", (_ARTICLE, _BIN, _CLICKS), notes)
    pages, number = _number_pages(articles, "article")
    sections, hub = np.unique(np.array(articles.texts["source"]), return_inverse=True)
    appeared = articles.numbers["first_click_s"]
    page = _find_pages(clicks, "article", number, "articles", notes)
    known = page >= 0
    bins = np.floor(clicks.numbers["bin"][known])
    ends = (bins + 1) * BIN_S
    born = appeared[page[known]]
    begins = np.where(born < ends, np.maximum(bins * BIN_S, born), bins * BIN_S)  # there are no clicks before the first
    gains = _sort_gains(page[known], begins, ends, clicks.numbers["clicks"][known])
    begin, end, scored_from, scored_to = GLOBO_SPAN.times(_length(articles, appeared, float(gains[2].max(initial=0.0))))
    count = len(pages)
    return EchoWorld(
        name,
        begin,
        end,
        scored_from,
        scored_to,
        tuple(sections.tolist()),
        np.zeros(len(sections), dtype=np.int64),
        pages,
        appeared,
        appeared < begin,
        hub.astype(np.int64),
        np.arange(count, dtype=np.int64),
        appeared.copy(),
        appeared + SECTION_STAY_S,
        np.zeros(count, dtype=np.int64),
        *gains,
        notes=(
            "A page appears with its first click, and its section links to it for 24 hours: neither was recorded.",
            *notes,
        ),
    )


def read_frontpages(name: str, folder: Path) -> EchoWorld:
    """link_events (source_id, page_id, first_seen, prev_snapshot, last_seen, gone_at, first_pos) and sources."""
    notes: list[str] = []
    wanted = (_SOURCE, _PAGE, _FIRST_SEEN, _PREVIOUS, _LAST_SEEN, _GONE, _PLACE)
    events = _read(folder, "link_events", wanted, notes)
    sources = _read(folder, "sources", (_SOURCE, _NAME), notes)
    names = dict(zip(sources.texts["source_id"], sources.texts["name"], strict=True))
    place_of = {source: place for place, source in enumerate(dict.fromkeys([*names, *events.texts["source_id"]]))}
    hub = np.array([place_of[source] for source in events.texts["source_id"]], dtype=np.int64)
    hubs = tuple(names.get(source, source) for source in place_of)
    pages, page = np.unique(np.array(events.texts["page_id"]), return_inverse=True)
    start = float(events.numbers["first_seen"].min())
    from_s = events.numbers["first_seen"] - start
    last_s = events.numbers["last_seen"] - start
    gone_s = _optional(events, "gone_at") - start
    to_s = np.where(np.isnan(gone_s), last_s, gone_s)
    if (to_s < from_s).any():
        place = int(np.flatnonzero(to_s < from_s)[0])
        raise InputFileError(
            f"{events.path}: source {events.texts['source_id'][place]}, page {events.texts['page_id'][place]} is gone "
            f"at {to_s[place] + start:.0f}, before it was first seen at {from_s[place] + start:.0f}. {_FORMAT}."
        )
    position = np.nan_to_num(_optional(events, "first_pos"), nan=1.0)
    appeared = np.full(len(pages), np.inf)
    np.minimum.at(appeared, page, from_s)
    old = np.zeros(len(pages), dtype=bool)
    old[page[np.isnan(_optional(events, "prev_snapshot"))]] = True
    if old.all():
        raise InputFileError(
            f"{events.path}: every page has a link without prev_snapshot, so that none is new. {_FORMAT}."
        )
    begin, end, scored_from, scored_to = FRONTPAGES_SPAN.times(_length(events, from_s))
    there = to_s > from_s
    gains = _sort_gains(page[there], from_s[there], to_s[there], (to_s - from_s)[there] / HOUR_S)
    return EchoWorld(
        name,
        begin,
        end,
        scored_from,
        scored_to,
        hubs,
        np.unique(np.array([hub_name.split("/")[0] for hub_name in hubs]), return_inverse=True)[1].astype(np.int64),
        tuple(pages.tolist()),
        appeared,
        old | (appeared < begin),
        hub,
        page.astype(np.int64),
        from_s,
        to_s,
        np.maximum(position - 1, 0).astype(np.int64),
        *gains,
        unit="hours of presence",
        notes=(
            "There are no clicks: the hours that links to a page still last, over all hubs, stand for them.",
            *notes,
        ),
    )


def read_hackernews(name: str, folder: Path) -> EchoWorld:
    """items (item_id, url, first_seen) and snapshots (snapshot_unix, rank, item_id, upvotes): a hub is a host."""
    notes: list[str] = []
    items = _read(folder, "items", (_ITEM, _URL, _ITEM_SEEN), notes)
    votes = _read(folder, "snapshots", (_SNAPSHOT, _ITEM_AT, _VOTES), notes)
    hosts = np.array([host_of(url) for url in items.texts["url"]])
    names, where, counts = np.unique(hosts, return_inverse=True, return_counts=True)
    kept = (counts[where] >= LEAST_ITEMS) & (hosts != "")
    if not kept.any():
        raise InputFileError(f"{items.path}: no host has {LEAST_ITEMS} items or more. {_FORMAT}.")
    hubs, hub = np.unique(where[kept], return_inverse=True)
    pages = tuple(item for item, keep in zip(items.texts["item_id"], kept.tolist(), strict=True) if keep)
    number = {page: place for place, page in enumerate(pages)}
    start = float(items.numbers["first_seen"].min())
    appeared = items.numbers["first_seen"][kept] - start
    page = np.array([number.get(item, -1) for item in votes.texts["item_id"]], dtype=np.int64)
    known = page >= 0
    gains = _votes_to_come(page[known], votes.numbers["snapshot_unix"][known] - start, votes.numbers["upvotes"][known])
    begin, end, scored_from, scored_to = HACKERNEWS_SPAN.times(_length(items, appeared))
    return EchoWorld(
        name,
        begin,
        end,
        scored_from,
        scored_to,
        tuple(names[hubs].tolist()),
        np.zeros(len(hubs), dtype=np.int64),
        pages,
        appeared,
        appeared <= begin,  # what the first snapshot shows was there before
        hub.astype(np.int64),
        np.arange(len(pages), dtype=np.int64),
        appeared.copy(),
        appeared + HOST_STAY_S,
        np.zeros(len(pages), dtype=np.int64),
        *gains,
        unit="votes",
        budgets=(1.0, 2.0, 4.0),  # with fewer, hubs that have so few pages can hardly be visited at all
        notes=("Votes still to come stand for clicks, and each host links to an item for 7 days.", *notes),
    )


def host_of(url: str) -> str:
    """The host of a URL without a leading www; empty where there is none.

    >>> host_of("https://www.bbc.com/news"), host_of("item?id=1")
    ('bbc.com', '')
    """
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _votes_to_come(page: I64, at_s: F64, votes: F64) -> tuple[I64, F64, F64, F64]:
    """Spans between an item's snapshots with the votes it got in each; fewer votes than before are none."""
    order = np.lexsort((at_s, page))
    page, at_s, votes = page[order], at_s[order], votes[order]
    most = votes.copy()
    first = np.concatenate([[True], page[1:] != page[:-1]]) if len(page) else np.zeros(0, dtype=bool)
    # the running maximum within each item: shift items apart, so that one item's votes do not reach into the next
    shift = np.cumsum(first) * (votes.max(initial=0.0) + 1.0)
    most = np.maximum.accumulate(votes + shift) - shift
    inner = np.flatnonzero(~first)
    gained = most[inner] - most[inner - 1]
    kept = inner[(gained > 0) & (at_s[inner] > at_s[inner - 1])]
    return _sort_gains(page[kept], at_s[kept - 1], at_s[kept], most[kept] - most[kept - 1])


def _read(folder: Path, stem: str, wanted: tuple[Column, ...], notes: list[str]) -> Table:
    path = find_file(folder, stem)
    if path is None:
        raise InputFileError(f"{folder}: no {stem}.tsv or .csv (.gz). {_FORMAT}.")
    table = read_columns(path, wanted)
    if note := table.note():
        notes.append(note)
    return table


def _number_pages(table: Table, column: str) -> tuple[tuple[str, ...], dict[str, int]]:
    pages = tuple(table.texts[column])
    number = {page: place for place, page in enumerate(pages)}
    if len(number) < len(pages):
        twice = next(page for place, page in enumerate(pages) if number[page] != place)
        raise InputFileError(f"{table.path}: {column} {twice!r} has two lines. Keep one of them; {_FORMAT}.")
    return pages, number


def _find_pages(table: Table, column: str, number: dict[str, int], where: str, notes: list[str]) -> I64:
    """Pages by number, -1 for those that the other file does not have."""
    page = np.array([number.get(name, -1) for name in table.texts[column]], dtype=np.int64)
    unknown = np.flatnonzero(page < 0)
    if len(unknown):
        name = table.texts[column][int(unknown[0])]
        notes.append(f"{table.path.name}: {len(unknown):,} rows are of pages that {where} lacks (e.g. {name!r}).")
    return page


def _optional(table: Table, column: str) -> F64:
    """Numbers of a column that may be absent or have empty cells: NaN there."""
    if column not in table.texts:
        return np.full(table.rows, np.nan)
    return parse_numbers([cell or "nan" for cell in table.texts[column]])


def _sort_gains(page: I64, from_s: F64, to_s: F64, clicks: F64) -> tuple[I64, F64, F64, F64]:
    order = np.lexsort((from_s, page))
    return page[order].astype(np.int64), from_s[order], to_s[order], clicks[order]


def _length(table: Table, *times: F64 | float) -> float:
    length = max(float(np.max(each)) for each in times)
    if length <= 0:
        raise InputFileError(
            f"{table.path}: everything appears at one time, so that nothing can be replayed. {_FORMAT}."
        )
    return length
