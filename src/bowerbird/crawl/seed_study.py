"""The seeds of a live crawl, chosen anew from what it knows by now.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.free_memory import free_memory
from bowerbird.crawl.hub_visits import MOST_REDIRECTS
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import attach_clicks
from bowerbird.model.errors import ConfigError
from bowerbird.model.seed_study import METHOD, OUT_OF_REACH, SeedChange, SeedStudy
from bowerbird.model.snapshot import LinkGraph, PageColumns
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.recovery import count_links, load_graph
from bowerbird.store.repository import Repository
from bowerbird.store.seed_study_file import write_seed_study
from bowerbird.store.visits import read_targets
from bowerbird.web.traps import url_series

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.graph import FrontierGraph
    from bowerbird.appraise.seeds.renewal import Renewal

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

CLICKS, PAGES = "clicks", "pages and links to URLs not fetched yet"
MEMORY_BYTES = 500_000_000  # of samples, at most: the crawl needs some too
LEAST_SAMPLE_BYTES = 50_000_000
LINK_BYTES, PAGE_BYTES, URL_BYTES = 16, 260, 70  # of a link, a fetched page and a URL, at the peak
CHUNK_LINKS = 1_000_000  # looked through at a time
NO_PAGE = np.uint32(2**32 - 1)
REMEMBERED = 20  # choices


@dataclass(frozen=True, slots=True)
class CrawledPages:
    """The fetched pages of a crawl by number, with the links between them and what each is worth."""

    graph: FrontierGraph
    weight: F64
    unit: str
    row: I64  # by number, ascending
    host: I64
    notes: tuple[str, ...]
    clicks: F64  # of each, by the demand log; 0 of copies
    is_copy: BOOL
    uncrawled: I64  # links to URLs that are not fetched yet
    uniqueness: float  # the chance that such a URL is a page of its own
    links: LinkGraph  # of all that is known, by row
    ends: I64  # by row, where redirects from it end

    def number(self, rows: I64) -> I64:
        """The numbers of those of these rows that are fetched pages, in their order."""
        place = np.minimum(np.searchsorted(self.row, rows), len(self.row) - 1)
        return np.asarray(place[self.row[place] == rows], dtype=np.int64)


def gather_crawled(repository: Repository, settings: Settings, now: float) -> CrawledPages:
    """The crawled pages of a crawl folder; what they are worth in expected clicks, where there are any.

    What a page links to that is not crawled counts by the chance that it is a page of its own, told from what became
    of the URLs that were fetched. A link to what only redirects leads to where that ends.
    """
    from bowerbird.appraise.seeds.weights import click_weights, page_weights, uniqueness_of

    pages = repository.snapshot(now).pages
    count = len(pages)
    is_page = pages.kind == UrlKind.PAGE
    fetched = is_page & (pages.state == UrlState.FETCHED)
    tried = is_page & np.isin(pages.state, (UrlState.FETCHED, UrlState.REDIRECT, UrlState.GONE, UrlState.FAILED))
    crawled = np.flatnonzero(fetched)
    if not len(crawled):
        root = repository.folder.root
        raise ConfigError(f"{root}: has no fetched page yet, so nothing is known of its links. Let it crawl a while.")
    is_copy = np.zeros(count, np.bool_)
    copies = repository.connection.execute("SELECT url FROM versions WHERE duplicate_of IS NOT NULL")
    is_copy[[row for (row,) in copies if row < count]] = True
    uniqueness = uniqueness_of(int(np.count_nonzero(tried)), int(np.count_nonzero(fetched & ~is_copy)))
    links, ends = load_graph(repository.connection, count), _find_ends(repository, pages)
    goes_on = _goes_on(links, ends, _read_series(repository, count))
    graph, uncrawled = _only_crawled(links, ends, crawled, is_page & (pages.state == UrlState.NEW) & ~goes_on)
    own = ~is_copy[crawled]
    waiting, endless = int(uncrawled.sum()), int(np.count_nonzero(goes_on[crawled]))
    notes = [
        f"{uniqueness:.0%} of the URLs that were fetched turned out pages of their own; "
        f"{waiting:,} link{'' if waiting == 1 else 's'} to URLs not fetched yet count by that."
    ]
    if endless:
        notes.append(f"Pages of series that only lead on, as calendars do, count by their clicks alone: {endless:,}.")
    with open_demand(repository.folder, settings.demand, write=False) as log:
        clicks = attach_clicks(log.page_clicks(now), repository.table.find_url, count)[crawled]
    clicks = np.where(own, clicks, 0.0)
    if clicks.sum() > 0:
        unit = CLICKS
        weight = click_weights(clicks, uncrawled, uniqueness, float(clicks.sum() / max(np.count_nonzero(own), 1)))
    else:
        unit = PAGES
        weight = np.where(own & ~goes_on[crawled], page_weights(len(crawled)), 0.0) + uncrawled * uniqueness
        notes.append("No clicks are known: every page counts alike.")
    return CrawledPages(
        graph,
        weight,
        unit,
        crawled,
        pages.host[crawled].astype(np.int64),
        tuple(notes),
        clicks,
        ~own,
        uncrawled,
        uniqueness,
        links,
        ends,
    )


def _find_ends(repository: Repository, pages: PageColumns) -> I64:
    """By row, where redirects from it end; itself where it is none, or where that is not known."""
    target = read_targets(repository.connection, len(pages))
    moved = (pages.state == UrlState.REDIRECT) & (target >= 0)
    ends = np.where(moved, target, np.arange(len(pages)))
    for _ in range(MOST_REDIRECTS):
        again = moved[ends]
        if not again.any():
            break
        ends = np.where(again, target[ends], ends)
    return ends


def _read_series(repository: Repository, count: int) -> npt.NDArray[np.uint64]:
    """By row, the series that its URL belongs to; 0 where it is of none."""
    series = np.zeros(count, np.uint64)
    for row, url in repository.connection.execute("SELECT id, url FROM urls WHERE id < ?", (count,)):
        series[row] = url_series(url)
    return series


def _goes_on(links: LinkGraph, ends: I64, series: npt.NDArray[np.uint64]) -> BOOL:
    """By row, whether only URLs of its own series lead there: as in a calendar, which may never end."""
    by_own, by_others = np.zeros(len(series), np.bool_), np.zeros(len(series), np.bool_)
    for low, high in _pieces(links):
        source = np.repeat(np.arange(low, high), np.diff(links.starts[low : high + 1]))
        target = ends[links.targets[links.starts[low] : links.starts[high]]]
        own = (series[target] == series[source]) & (series[target] != 0)
        by_own[target[own]] = True
        by_others[target[~own]] = True
    return by_own & ~by_others


def _pieces(links: LinkGraph) -> Iterator[tuple[int, int]]:
    """Rows from, and up to, of which there are so many links that they can be looked at together."""
    pieces = np.arange(0, len(links.targets) + CHUNK_LINKS, CHUNK_LINKS)
    cuts = np.unique(np.append(np.searchsorted(links.starts[:-1], pieces), len(links.starts) - 1))
    return pairwise(cuts.tolist())


def _only_crawled(links: LinkGraph, ends: I64, crawled: I64, is_new: BOOL) -> tuple[FrontierGraph, I64]:
    """The links among crawled pages, by their numbers; and of each, how many links lead to pages not fetched yet."""
    from bowerbird.appraise.frontier.graph import graph_of_links

    count = len(is_new)
    number = np.full(count, NO_PAGE, np.uint32)
    number[crawled] = np.arange(len(crawled), dtype=np.uint32)
    lengths, uncrawled = np.zeros(len(crawled), np.int64), np.zeros(len(crawled), np.int64)
    inner, used = np.empty(len(links.targets), np.uint32), 0
    for low, high in _pieces(links):
        source = np.repeat(number[low:high], np.diff(links.starts[low : high + 1]))
        known = source != NO_PAGE
        source = source[known].astype(np.int64)
        target = ends[links.targets[links.starts[low] : links.starts[high]][known]]
        new = is_new[target]
        waiting = np.unique(source[new] * count + target[new]) // count
        page = number[target]
        inside = page != NO_PAGE
        for counts, found in ((uncrawled, waiting), (lengths, source[inside])):
            if len(found):
                some = np.bincount(found - found[0])
                counts[found[0] : found[0] + len(some)] += some
        kept = int(np.count_nonzero(inside))
        inner[used : used + kept] = page[inside]
        used += kept
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return graph_of_links(LinkGraph(starts, inner[:used]), np.ones(len(crawled), np.bool_)), uncrawled


def make_seed_study(folder: CrawlFolder, settings: Settings, now: float) -> SeedStudy:
    """Choose the seeds of a crawl anew, and keep the choice in its folder."""
    began = time.perf_counter()
    before = open_studies(folder, (METHOD,))
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        attach_studies(repository, before)
        study = _study_seeds(repository, settings, now, _find_room(repository))
        study.info["seconds"] = time.perf_counter() - began
        write_seed_study(folder.study(METHOD), study, repository.table.seed, repository.table.columns["hash"])
    finally:
        repository.close()
    return study


def _find_room(repository: Repository) -> int:
    """Bytes for samples, after the graph has taken its share; ConfigError where that does not fit.

    Half of what is free is for the crawl, which goes on meanwhile.
    """
    count = len(repository.table)
    fetched = int(np.count_nonzero(repository.table.columns["state"] == UrlState.FETCHED))
    links = count_links(repository.connection, count)
    need = LINK_BYTES * links + PAGE_BYTES * fetched + URL_BYTES * count + LEAST_SAMPLE_BYTES
    room = free_memory() // 2
    if need > room:
        raise ConfigError(
            f"{repository.folder.root}: seeds are not chosen: {links:,} links take about {need / 1e6:,.0f} MB, and "
            f"half of the free memory is {room / 1e6:,.0f} MB. Free some, or set seeds.study_every_s = 0."
        )
    return min(MEMORY_BYTES, LEAST_SAMPLE_BYTES + room - need)


def _study_seeds(repository: Repository, settings: Settings, now: float, memory_bytes: int) -> SeedStudy:
    from bowerbird.appraise.seeds.depths import count_links_from
    from bowerbird.appraise.seeds.methods import SeedOptions
    from bowerbird.appraise.seeds.problem import SeedProblem
    from bowerbird.appraise.seeds.renewal import renew_seeds

    wanted, last = settings.seeds, repository.seed_study
    crawled = gather_crawled(repository, settings, now)
    given = crawled.row[crawled.number(_find_given(repository, crawled))]
    before = np.zeros(0, np.int64) if last is None else _distinct(crawled.ends[last.row])
    before = before[~np.isin(before, given)]
    problem = SeedProblem(crawled.graph, crawled.weight, wanted.hops)
    options = SeedOptions(memory_bytes=memory_bytes, rng=np.random.default_rng(repository.table.seed))
    renewal = renew_seeds(
        problem, wanted.k, crawled.number(before), wanted.worth_change, options, crawled.number(given)
    )
    choice, bound = renewal.choice, renewal.bound
    rows = crawled.row[choice.seeds]
    leads_on = repository.table.columns["state"] == UrlState.FETCHED
    depth = count_links_from(rows, crawled.links, leads_on, crawled.ends)
    if last is not None:  # what was near once stays near: nothing is forgotten with a seed
        carried = np.full(len(depth), OUT_OF_REACH, np.uint8)
        carried[: last.count] = last.depth
        repository.table.pass_on_depth(carried, last.count)
        np.minimum(depth, carried, out=depth)
    change = SeedChange(
        at=now,
        value=renewal.together(choice),
        before_value=renewal.together(renewal.before),
        all_value=problem.positive,
        added=int(np.count_nonzero(~np.isin(rows, before))),
        dropped=int(np.count_nonzero(~np.isin(before, rows))),
    )
    history = (*(() if last is None else last.history), *((change,) if change.added or change.dropped else ()))
    return SeedStudy(
        at=now,
        method=METHOD,
        count=len(depth),
        k=wanted.k,
        hops=wanted.hops,
        row=rows,
        pages=choice.pages,
        value=choice.value,
        all_pages=crawled.graph.count,
        all_value=problem.positive,
        unit=crawled.unit,
        given=given,
        given_pages=renewal.given.covered_pages,
        given_value=renewal.given.covered_value,
        before=before,
        before_value=change.before_value,
        depth=depth,
        bound=None if bound is None else (bound.value, bound.confidence),
        history=history[-REMEMBERED:],
        info={
            "links": float(crawled.graph.edges),
            "samples": float(renewal.best.samples),
            "note": _tell(renewal, wanted.worth_change),
        },
    )


def _find_given(repository: Repository, crawled: CrawledPages) -> I64:
    """Rows of the seeds that people gave, or of where these redirect to."""
    known = (repository.table.find_url(url) for url in repository.seeds())
    return _distinct(crawled.ends[np.array([row for row in known if row is not None], dtype=np.int64)])


def _distinct(rows: I64) -> I64:
    """Each once, in the order of their first places."""
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]


def _tell(renewal: Renewal, worth_change: float) -> str:
    """Why this choice."""
    old, best = renewal.together(renewal.before), renewal.together(renewal.best)
    if best <= 0:
        return "no page is worth covering"
    if renewal.is_new:
        more = f"by {best / old - 1.0:.1%}" if old > 0 else "where they covered nothing"
        return f"chosen anew: they cover more than the seeds before them, {more}" if best > old else "chosen anew"
    gained = max(best / old - 1.0, 0.0) if old > 0 else 0.0
    return f"kept: the best that were found cover {gained:.2%} more, and a change has to be worth {worth_change:.2%}"
