"""A study of a live crawl's hubs: what its folder holds is put together, and what is found is kept.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.announced import ENOUGH, LONGEST_MEMORY_S, MEMORY_S, SIZES, Announced
from bowerbird.appraise.hubs.study import HubInputs, HubPlan, HubVisits, study_hubs
from bowerbird.appraise.policy import REFRESH_STUDIED
from bowerbird.crawl.announced_levels import describe_pages
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_visits import (
    NO_HUB,
    Discoveries,
    choose_hubs,
    find_discoverers,
    find_discoveries,
    name_hubs,
    read_hub_links,
)
from bowerbird.crawl.live import price_in_clicks, read_live
from bowerbird.crawl.settings import Settings
from bowerbird.demand.log import DAY_S
from bowerbird.demand.workload import TimedClicks, build_workload, find_last_heard, read_timed_clicks
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.seed_study import METHOD as SEEDS
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import read_hub_hints
from bowerbird.store.hub_study_file import write_hub_study
from bowerbird.store.refresh_study_file import read_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import Visits, read_first_visits, read_visits_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
RESERVE = 1.0
PRIOR_PAGES = 0.25  # new ones found by a visit after the usual interval, before any hub was visited twice
LIVE_WITHIN_S = 60.0


def make_hub_study(folder: CrawlFolder, settings: Settings, method: str, now: float) -> HubStudy:
    """Study the hubs of a crawl, and keep what was found in its folder."""
    began = time.perf_counter()
    chosen = open_studies(folder, (SEEDS,) if settings.seeds.study_every_s > 0 else ())
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        attach_studies(repository, chosen)
        inputs = gather_hubs(repository, settings, repository.snapshot(now))
        plan = HubPlan(
            settings.refresh.min_interval_s,
            settings.refresh.max_interval_s,
            settings.hubs.explore,
            math.log(2.0) / (settings.hubs.half_life_days * DAY_S),
            PRIOR_PAGES / settings.refresh.hub_interval_s,
        )
        study = study_hubs(inputs, method, plan, repository.table.seed)
        study = replace(study, info={**study.info, "seconds": time.perf_counter() - began})
        write_hub_study(folder.study(method), study, repository.table.seed, repository.table.columns["hash"])
    finally:
        repository.close()
    return study


def gather_hubs(repository: Repository, settings: Settings, snapshot: Snapshot) -> HubInputs:
    """Which URLs are hubs, and what their visits found."""
    pages, count = snapshot.pages, len(snapshot.pages)
    columns, since = repository.table.columns, snapshot.now - MEMORY_S
    named = name_hubs(repository, snapshot, settings.hubs.page_age_days * DAY_S)
    looked_at = np.union1d(np.flatnonzero(named != NO_HUB), find_discoverers(repository, pages, since))
    visits = read_visits_of(repository.connection, looked_at, since)
    had_page = columns["content_hash"] != 0
    discoveries = find_discoveries(pages, columns["hops"], had_page, visits, since, snapshot.now)
    rows, kinds = choose_hubs(pages, named, visits, discoveries)
    past, announced = visits, discoveries
    if (
        len(discoveries.page) < ENOUGH
    ):  # too few to learn from what they gain: it changes slowly, so older ones tell, too
        since = snapshot.now - LONGEST_MEMORY_S
        past = read_visits_of(repository.connection, rows, since)
        announced = find_discoveries(pages, columns["hops"], had_page, past, since, snapshot.now)
    links = read_hub_links(repository, rows, kinds, visits, mark_rows(count, announced.link))
    recent = mark_rows(count, discoveries.link)[links.page]
    hints = read_hub_hints(repository.connection, count)
    per_s = 1.0 / settings.refresh.interval_s
    usual = np.where(kinds == HubKind.LISTING, per_s, max(1.0 / settings.refresh.hub_interval_s, per_s))
    refreshed = read_refresh_rates(repository, rows, per_s)
    _, announced_page = np.unique(links.page[recent], return_inverse=True)
    return HubInputs(
        now_s=snapshot.now,
        count=count,
        row=rows,
        kind=kinds,
        host=pages.host[rows].astype(np.int64),
        period_s=np.array([hints[row].period_s if row in hints else 0.0 for row in rows.tolist()], dtype=np.float64),
        usual_per_s=usual,
        refreshed_per_s=np.where(pages.kind[rows] == UrlKind.PAGE, np.minimum(refreshed, usual), 0.0),
        visits=arrange_hub_visits(
            visits, discoveries, rows, links.turned, pages.fetches[rows], snapshot.now - MEMORY_S
        ),
        announced=gather_announced(repository, settings, snapshot, past, announced, rows, links.page),
        link_hub=links.hub[recent],
        link_page=announced_page.astype(np.int64),
        page_price=price_pages(repository, snapshot.now),
    )


def mark_rows(count: int, rows: I64) -> npt.NDArray[np.bool_]:
    """By row, whether it is among these."""
    out = np.zeros(count, dtype=np.bool_)
    out[rows] = True
    return out


def price_pages(repository: Repository, now: float) -> float:
    """What the fetch of a page costs, in profits of a mean new page: 0 while the price is the reserve.

    New pages bid 1, the reserve, and on top of it their profit in that of the mean one. A price in clicks is of `auto`,
    which sees to that itself.
    """
    live = read_live(repository)
    recent = now - float(live.get("at", 0.0)) < LIVE_WITHIN_S and price_in_clicks(live) == 0.0
    return max(float(live.get("price", RESERVE)) - RESERVE, 0.0) if recent else 0.0


def read_refresh_rates(repository: Repository, rows: I64, usual_per_s: float) -> F64:
    """Refreshes a second of these rows by the study of refreshes that the last crawl went by; as usual without one."""
    run = repository.connection.execute("SELECT policy FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    out = np.full(len(rows), usual_per_s)
    for method in str(run[0]).split("+") if run else ():
        path, table = repository.folder.study(method), repository.table
        if method in REFRESH_STUDIED and path.is_file():
            study = read_refresh_study(path, table.seed, table.columns["hash"]).study
            if study is not None:
                known = np.flatnonzero(rows < study.count)
                interval = study.interval_s[rows[known]].astype(np.float64)
                out[known[interval > 0]] = 1.0 / interval[interval > 0]
    return out


def arrange_hub_visits(
    visits: Visits,
    discoveries: Discoveries,
    rows: I64,
    turned: npt.NDArray[np.bool_],
    fetches: npt.NDArray[np.uint16],
    since: float,
) -> HubVisits:
    """The visits to these rows in the order of time, without the first read of each, and how many there were of each.

    Where some are older than what was read, all `fetches` count as visits.
    """
    found = np.bincount(discoveries.visit, minlength=len(visits.page)).astype(np.float64)
    place = np.minimum(np.searchsorted(rows, visits.page), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[place] == visits.page) if len(rows) else np.zeros(0, dtype=np.int64)
    counts = np.bincount(place[mine], minlength=len(rows))
    first = np.full(len(rows), np.inf)
    np.minimum.at(first, place[mine], visits.at[mine])
    later = mine[np.diff(visits.page[mine], prepend=-1) == 0]
    later = later[np.argsort(visits.at[later], kind="stable")]
    return HubVisits(
        np.where(first < since, np.maximum(counts, fetches), counts),
        place[later],
        visits.at[later],
        visits.at[later] - visits.at[later - 1],
        found[later],
        turned[later],
    )


def gather_announced(
    repository: Repository,
    settings: Settings,
    snapshot: Snapshot,
    visits: Visits,
    discoveries: Discoveries,
    rows: I64,
    linked: I64,
) -> Announced:
    """The new pages that hubs announced: when each was found and fetched, and its clicks."""
    pages = snapshot.pages
    source = visits.page[discoveries.visit]
    place = np.minimum(np.searchsorted(rows, source), max(len(rows) - 1, 0))
    mine = rows[place] == source if len(rows) else np.zeros(0, dtype=np.bool_)
    order = np.argsort(discoveries.page[mine], kind="stable")
    columns = (discoveries.page, discoveries.link, place, discoveries.visit)
    page, link, hub, visit = (column[mine][order] for column in columns)
    found_s = pages.first_seen[link].astype(np.float64)
    level = np.zeros((len(page), len(SIZES)), dtype=np.int64)
    with open_demand(repository.folder, settings.demand, write=False) as log:
        heard_until = find_last_heard(log)
        which, at, many = attach_timed(repository, read_timed_clicks(log, found_s.min(initial=snapshot.now)), page)
        if len(which):  # without clicks all are alike
            workload = build_workload(log, snapshot.now)
            level = describe_pages(repository.connection, workload, page, visit, linked, link)
    return Announced(
        row=page,
        hub=hub,
        found_s=found_s,
        gap_s=visits.at[visit] - visits.at[visit - 1],
        fetched_s=read_first_visits(repository.connection, page),
        is_new=pages.state[page] == UrlState.NEW,
        level=level,
        heard_until_s=min(heard_until, snapshot.now),
        click_page=which,
        click_at_s=at,
        clicks=many,
    )


def attach_timed(repository: Repository, clicks: TimedClicks, page: I64) -> tuple[I64, F64, F64]:
    """Of the clicks, those on these pages (ascending rows): place of the page, time, clicks."""
    if not len(clicks.urls) or not len(page):
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    row = repository.table.find(hash_urls(clicks.urls, repository.table.seed))
    place = np.minimum(np.searchsorted(page, row), len(page) - 1)
    place = np.where(page[place] == row, place, -1)[clicks.page]
    known = place >= 0
    return place[known], clicks.at[known], clicks.clicks[known]
