"""A study of a live crawl's hubs: what its folder holds is put together, and what is found is kept.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.hubs.announced import Announced
from bowerbird.appraise.hubs.study import HubInputs, HubPlan, HubVisits, study_hubs
from bowerbird.crawl.announced_levels import describe_pages
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_visits import Discoveries, choose_hubs, find_discoveries, read_hub_links
from bowerbird.crawl.settings import Settings
from bowerbird.demand.log import DAY_S
from bowerbird.demand.workload import TimedClicks, build_workload, find_last_heard, read_timed_clicks
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import read_hub_hints
from bowerbird.store.hub_study_file import write_hub_study
from bowerbird.store.journal import read_first_fetches
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import Visits, read_visits

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
RESERVE = 1.0
LIVE_WITHIN_S = 60.0


def make_hub_study(folder: CrawlFolder, settings: Settings, method: str, now: float) -> HubStudy:
    """Study the hubs of a crawl, and keep what was found in its folder."""
    began = time.perf_counter()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        inputs = gather_hubs(repository, settings, repository.snapshot(now))
        plan = HubPlan(
            settings.refresh.min_interval_s,
            settings.refresh.max_interval_s,
            settings.hubs.explore,
            math.log(2.0) / (settings.hubs.half_life_days * DAY_S),
        )
        # drawn anew in each study, and the same for all who make it of one state of the crawl
        study = study_hubs(inputs, method, plan, np.random.default_rng(repository.last_fetch_id))
        study = replace(study, info={**study.info, "seconds": time.perf_counter() - began})
        write_hub_study(folder.study(method), study, repository.table.seed, repository.table.columns["hash"])
    finally:
        repository.close()
    return study


def gather_hubs(repository: Repository, settings: Settings, snapshot: Snapshot) -> HubInputs:
    """Which URLs are hubs, and what their visits found."""
    pages, count = snapshot.pages, len(snapshot.pages)
    visits = read_visits(repository.connection, count)
    discoveries = find_discoveries(pages, repository.table.columns["hops"], visits, snapshot.now)
    rows, kinds = choose_hubs(repository, snapshot, visits, discoveries, settings.hubs.page_age_days * DAY_S)
    new_pages = np.zeros(count, dtype=np.bool_)
    new_pages[discoveries.page] = True
    links = read_hub_links(repository, rows, kinds, visits, new_pages)
    hints = read_hub_hints(repository.connection, count)
    per_s = 1.0 / settings.refresh.interval_s
    usual = np.where(kinds == HubKind.LISTING, per_s, max(1.0 / settings.refresh.hub_interval_s, per_s))
    _, announced_page = np.unique(links.page, return_inverse=True)
    return HubInputs(
        now_s=snapshot.now,
        count=count,
        row=rows,
        kind=kinds,
        host=pages.host[rows].astype(np.int64),
        period_s=np.array([hints[row].period_s if row in hints else 0.0 for row in rows.tolist()], dtype=np.float64),
        usual_per_s=usual,
        refreshed_per_s=np.where(pages.kind[rows] == UrlKind.PAGE, per_s, 0.0),
        visits=arrange_hub_visits(visits, discoveries, rows, links.turned),
        announced=gather_announced(repository, settings, snapshot, visits, discoveries, rows, links.page),
        link_hub=links.hub,
        link_page=announced_page.astype(np.int64),
        page_price=price_pages(repository, snapshot.now),
    )


def price_pages(repository: Repository, now: float) -> float:
    """What the fetch of a page costs, in profits of a mean new page: 0 while the price is the reserve.

    New pages bid 1, the reserve, and on top of it their profit in that of the mean one.
    """
    text = repository.meta("live")
    live = orjson.loads(str(text)) if text else {}
    recent = now - float(live.get("at", 0.0)) < LIVE_WITHIN_S
    return max(float(live.get("price", RESERVE)) - RESERVE, 0.0) if recent else 0.0


def arrange_hub_visits(visits: Visits, discoveries: Discoveries, rows: I64, turned: npt.NDArray[np.bool_]) -> HubVisits:
    """The visits to these rows in the order of time, without the first to each, and how many there were of each."""
    found = np.bincount(discoveries.visit, minlength=len(visits.page)).astype(np.float64)
    place = np.minimum(np.searchsorted(rows, visits.page), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[place] == visits.page) if len(rows) else np.zeros(0, dtype=np.int64)
    counts = np.bincount(place[mine], minlength=len(rows))
    first = np.full(len(rows), np.inf)
    np.minimum.at(first, place[mine], visits.at[mine])
    later = mine[np.diff(visits.page[mine], prepend=-1) == 0]
    later = later[np.argsort(visits.at[later], kind="stable")]
    return HubVisits(
        counts,
        first,
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
    page, hub, visit = (column[mine][order] for column in (discoveries.page, place, discoveries.visit))
    found_s = pages.first_seen[page].astype(np.float64)
    with open_demand(repository.folder, settings.demand, write=False) as log:
        heard_until = find_last_heard(log)
        clicks = read_timed_clicks(log, float(found_s.min(initial=snapshot.now)))
        workload = build_workload(log, snapshot.now)
    fetched_s = read_first_fetches(repository.connection, len(pages)).at[page]
    which, at, many = attach_timed(repository, clicks, page)
    return Announced(
        row=page,
        hub=hub,
        found_s=found_s,
        fetched_s=np.where(fetched_s > 0, fetched_s, np.inf),
        is_new=pages.state[page] == UrlState.NEW,
        level=describe_pages(repository.connection, workload, page, visit, linked),
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
