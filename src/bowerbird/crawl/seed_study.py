"""The seeds of a live crawl, chosen anew from what it knows by now.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings
from bowerbird.demand.workload import attach_clicks
from bowerbird.model.errors import ConfigError
from bowerbird.model.seed_study import SeedChange, SeedStudy
from bowerbird.model.snapshot import LinkGraph, PageColumns
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.recovery import load_graph
from bowerbird.store.repository import Repository
from bowerbird.store.seed_study_file import read_seed_study, write_seed_study
from bowerbird.store.visits import read_targets

if TYPE_CHECKING:
    from bowerbird.appraise.frontier.graph import FrontierGraph
    from bowerbird.appraise.seeds.renewal import Renewal

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

METHOD = "seeds"
CLICKS, PAGES = "clicks", "pages, with those to be found"
MEMORY_BYTES = 500_000_000  # of samples: the crawl needs some too
REMEMBERED = 20  # choices
MOST_HOPS = 10  # of redirects


@dataclass(frozen=True, slots=True)
class CrawledPages:
    """The fetched pages of a crawl by number, with the links between them and what each is worth."""

    graph: FrontierGraph
    weight: F64
    unit: str
    row: I64  # by number, ascending
    host: I64
    notes: tuple[str, ...]
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
    graph, uncrawled = _only_crawled(links, ends, crawled, is_page & (pages.state == UrlState.NEW))
    own = ~is_copy[crawled]
    waiting = int(uncrawled.sum())
    notes = [
        f"{uniqueness:.0%} of the URLs that were fetched turned out pages of their own; "
        f"{waiting:,} link{'' if waiting == 1 else 's'} to URLs not fetched yet count by that."
    ]
    with open_demand(repository.folder, settings.demand, write=False) as log:
        clicks = attach_clicks(log.page_clicks(now), repository.table.find_url, count)[crawled]
    clicks = np.where(own, clicks, 0.0)
    if clicks.sum() > 0:
        unit = CLICKS
        weight = click_weights(clicks, uncrawled, uniqueness, float(clicks.sum() / max(np.count_nonzero(own), 1)))
    else:
        unit = PAGES
        weight = np.where(own, page_weights(len(crawled)), 0.0) + uncrawled * uniqueness
        notes.append("No clicks are known: every page counts alike.")
    return CrawledPages(graph, weight, unit, crawled, pages.host[crawled].astype(np.int64), tuple(notes), links, ends)


def _find_ends(repository: Repository, pages: PageColumns) -> I64:
    """By row, where redirects from it end; itself where it is none, or where that is not known."""
    target = read_targets(repository.connection, len(pages))
    moved = (pages.state == UrlState.REDIRECT) & (target >= 0)
    ends = np.where(moved, target, np.arange(len(pages)))
    for _ in range(MOST_HOPS):
        again = moved[ends]
        if not again.any():
            break
        ends = np.where(again, target[ends], ends)
    return ends


def _only_crawled(links: LinkGraph, ends: I64, crawled: I64, is_new: BOOL) -> tuple[FrontierGraph, I64]:
    """The links among crawled pages, by their numbers; and of each, how many links lead to pages not fetched yet."""
    from bowerbird.appraise.frontier.graph import make_graph

    number = np.full(len(is_new), -1, np.int64)
    number[crawled] = np.arange(len(crawled))
    sources = np.repeat(number, np.diff(links.starts))
    from_crawled = sources >= 0
    sources, targets = sources[from_crawled], ends[links.targets[from_crawled]]
    new = is_new[targets]
    waiting = np.unique(sources[new] * len(is_new) + targets[new]) // max(len(is_new), 1)
    uncrawled = np.bincount(waiting, minlength=len(crawled))
    inner = number[targets] >= 0
    return make_graph(sources[inner], number[targets[inner]], len(crawled)), uncrawled


def make_seed_study(folder: CrawlFolder, settings: Settings, now: float) -> SeedStudy:
    """Choose the seeds of a crawl anew, and keep the choice in its folder."""
    began = time.perf_counter()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        seed, hashes = repository.table.seed, repository.table.columns["hash"]
        path = folder.study(METHOD)
        study = _study_seeds(repository, settings, now, read_seed_study(path, seed, hashes).study)
        study.info["seconds"] = time.perf_counter() - began
        write_seed_study(path, study, seed, hashes)
    finally:
        repository.close()
    return study


def _study_seeds(repository: Repository, settings: Settings, now: float, last: SeedStudy | None) -> SeedStudy:
    from bowerbird.appraise.seeds.depths import count_links_from
    from bowerbird.appraise.seeds.methods import SeedOptions
    from bowerbird.appraise.seeds.problem import SeedProblem
    from bowerbird.appraise.seeds.renewal import renew_seeds

    wanted = settings.seeds
    crawled = gather_crawled(repository, settings, now)
    before = _seeds_before(repository, crawled, last)
    problem = SeedProblem(crawled.graph, crawled.weight, wanted.hops)
    options = SeedOptions(memory_bytes=MEMORY_BYTES, rng=np.random.default_rng(repository.table.seed))
    renewal = renew_seeds(problem, wanted.k, crawled.number(before), wanted.worth_change, options)
    choice, bound = renewal.choice, renewal.best.bound
    rows = crawled.row[choice.seeds]
    leads_on = repository.table.columns["state"] == UrlState.FETCHED
    depth = count_links_from(rows, crawled.links, leads_on, crawled.ends)
    if last is not None:  # what was near once stays near: nothing is forgotten with a seed
        np.minimum(depth[: last.count], last.depth, out=depth[: last.count])
    change = SeedChange(
        at=now,
        value=choice.covered_value,
        before_value=renewal.before.covered_value,
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
        before=before,
        before_value=change.before_value,
        depth=depth,
        bound=None if bound is None else (bound.value, bound.confidence),
        history=history[-REMEMBERED:],
        info={
            "links": float(crawled.graph.edges),
            "samples": float(renewal.best.samples),
            "note": _tell(renewal, wanted.worth_change),
            "pages": " ".join(crawled.notes),
        },
    )


def _seeds_before(repository: Repository, crawled: CrawledPages, last: SeedStudy | None) -> I64:
    """Rows of the last choice, those that are gone too; the first time, of the seeds that people gave."""
    if last is not None:
        rows = crawled.ends[last.row]
    else:
        known = (repository.table.find_url(url) for url in repository.seeds())
        given = np.array([row for row in known if row is not None and row < len(crawled.ends)], dtype=np.int64)
        rows = crawled.row[crawled.number(crawled.ends[given])]
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]


def _tell(renewal: Renewal, worth_change: float) -> str:
    """Why this choice."""
    if not len(renewal.choice.seeds):
        return "no page is worth covering"
    old, best = renewal.before.covered_value, renewal.best.covered_value
    if renewal.is_new:
        more = f"by {best / old - 1.0:.1%}" if old > 0 else "where they covered nothing"
        return f"chosen anew: they cover more than the seeds before them, {more}" if best > old else "chosen anew"
    gained = max(best / old - 1.0, 0.0) if old > 0 else 0.0
    return f"kept: the best that were found cover {gained:.2%} more, and a change has to be worth {worth_change:.2%}"
