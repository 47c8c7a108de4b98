"""A study of a live crawl's fetched pages: what its folder holds is put together for a method, and kept.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.priors import page_levels
from bowerbird.appraise.refresh.signals import SignalQuality, learn_signals
from bowerbird.appraise.refresh.study import KnownPages, RefreshPlan, study_refreshes
from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.page_words import read_urls
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.stakes import Standing, weigh_answers
from bowerbird.demand.workload import build_workload
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import GainColumns, read_gains
from bowerbird.store.refresh_study_file import write_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.visits import Visits, read_hub_visits, read_visits

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

BYTES_SHARE = 0.5  # of the cost of a fetch; the rest is its turn at the host, whatever comes back
COST_PRIOR = 20.0  # visits that the mean of all hosts weighs
SECOND_BITS = 33  # a host and a second in one whole number


@dataclass(frozen=True, slots=True)
class PageVisits:
    """Visits after the first fetch, of the pages in `rows`: page i has starts[i] … starts[i + 1] - 1."""

    starts: I64
    page: I64  # place in rows
    at: F64
    since: F64  # the fetch before
    changed: BOOL
    shift: F64
    not_modified: BOOL
    wire_bytes: F64


def make_refresh_study(folder: CrawlFolder, settings: Settings, method: str, now: float) -> RefreshStudy:
    """Study the fetched pages of a crawl by a method of `METHODS`, and keep what was found in its folder."""
    began = time.perf_counter()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        table = repository.table
        snapshot = repository.snapshot(now)
        inputs, pages, visits = gather_inputs(repository, settings, snapshot)
        hint = snapshot.pages.hint_modified[pages.rows].astype(np.float64)
        hubs = read_hub_visits(repository.connection, snapshot.pages.host)
        signals = hear_signals(visits, hint, pages, *hubs)
        refresh = settings.refresh
        plan = RefreshPlan(
            refresh.interval_s, refresh.min_interval_s, refresh.max_interval_s, refresh.explore, refresh.threshold
        )
        study = study_refreshes(inputs, method, pages, plan, signals)
        study = replace(study, info={**study.info, "seconds": time.perf_counter() - began})
        write_refresh_study(folder.study(method), study, table.seed, table.columns["hash"])
    finally:
        repository.close()
    return study


def gather_inputs(
    repository: Repository, settings: Settings, snapshot: Snapshot
) -> tuple[RefreshInputs, KnownPages, PageVisits]:
    """What is known of the fetched pages."""
    columns, count = snapshot.pages, len(snapshot.pages)
    here = (columns.kind == UrlKind.PAGE) & (columns.state == UrlState.FETCHED)
    rows = np.flatnonzero(here)
    hosts = columns.host[rows].astype(np.int64)
    pages = KnownPages(rows, hosts, count, len(snapshot.hosts))
    visits = arrange_visits(read_visits(repository.connection, count), rows)
    standing = weigh_standing(repository, settings, snapshot.now, count)
    urls = list(compress(read_urls(repository.connection, count), here.tolist()))
    hint = columns.hint_modified[rows].astype(np.float64)
    inputs = RefreshInputs(
        now_s=snapshot.now,
        starts=visits.starts,
        interval_s=np.maximum(visits.at - visits.since, 0.0),
        changed=visits.changed,
        shift=visits.shift,
        gain=match_gains(visits, rows, read_gains(repository.connection)),
        stake=standing.stake[rows],
        views=standing.views[rows],
        levels=page_levels(urls, hosts),
        hint_age_s=np.where(hint > 0, snapshot.now - hint, np.nan),
        cost=expect_cost(visits, hosts, pages.host_count),
    )
    return inputs, pages, visits


def arrange_visits(visits: Visits, rows: I64) -> PageVisits:
    """The visits to these pages, without the first to each: that has nothing to compare with."""
    place = np.minimum(np.searchsorted(rows, visits.page), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[place] == visits.page) if len(rows) else np.zeros(0, dtype=np.int64)
    page, at = place[mine], visits.at[mine]
    again = np.flatnonzero(np.diff(page, prepend=-1) == 0)
    kept = mine[again]
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.bincount(page[again], minlength=len(rows)), out=starts[1:])
    changed = visits.changed[kept]
    alike = visits.resemblance[kept]
    # pages too short for a sketch: whatever changed, changed wholly
    shift = np.where(changed, np.where(np.isnan(alike), 1.0, 1.0 - alike), 0.0)
    return PageVisits(
        starts,
        page[again],
        at[again],
        at[again - 1],
        changed,
        shift,
        visits.not_modified[kept],
        visits.wire_bytes[kept],
    )


def match_gains(visits: PageVisits, rows: I64, gains: GainColumns) -> F64:
    """The measured gain of each visit: 0 where the page had not changed, NaN where nobody measured."""
    out = np.where(visits.changed, np.nan, 0.0)
    page = np.concatenate([rows[visits.page], gains.page])
    at = np.concatenate([visits.at, gains.at])
    number = np.arange(len(page))
    order = np.lexsort((number, at, page))
    before, after = order[:-1], order[1:]
    same = (page[before] == page[after]) & (at[before] == at[after])
    pair = same & (before < len(visits.at)) & (after >= len(visits.at))
    visit = before[pair]
    found = gains.gain[after[pair] - len(visits.at)]
    out[visit] = np.where(visits.changed[visit], found, 0.0)
    return out


def weigh_standing(repository: Repository, settings: Settings, now: float, count: int) -> Standing:
    """By row, what pages have at stake and what is seen of them."""
    with open_demand(repository.folder, settings.demand, write=False) as log:
        workload = build_workload(log, now, settings.quality.max_queries)
        visibility = choose_visibility(settings.demand, log)
    return weigh_answers(repository.folder, workload, visibility, count)


def expect_cost(visits: PageVisits, hosts: I64, host_count: int) -> F64:
    """By page what a refresh costs relative to a whole fetch: less where its host says "not modified" in few bytes.

    A fetch takes a turn at its host whatever comes back, so half of the cost is there in any case.
    """
    host = hosts[visits.page]
    short = visits.not_modified
    if not short.any() or short.all():
        return np.ones(len(hosts))
    whole = max(float(visits.wire_bytes[~short].mean()), 1.0)
    saved = np.where(short, 1.0 - np.minimum(visits.wire_bytes / whole, 1.0), 0.0)
    asked = np.bincount(host, minlength=host_count)
    mean = (np.bincount(host, saved, host_count) + COST_PRIOR * saved.mean()) / (asked + COST_PRIOR)
    return np.asarray(1.0 - BYTES_SHARE * mean[hosts], np.float64)


def hear_signals(visits: PageVisits, hint: F64, pages: KnownPages, hub_host: I64, hub_at: F64) -> SignalQuality:
    """How good the dates in sitemaps and feeds are, by host, from what later visits found; `hint` by page, 0 = none.

    Only the latest date of a page is kept. The visit that came first after it had a signal if a sitemap or feed of
    the host was read in between, later ones had none; of earlier visits nothing is known, and they are left out. That
    does not favour either answer: looking back from now, the last visit with a signal is as far away as chance has it.
    """
    date, host = hint[visits.page], pages.hosts[visits.page]
    told = np.flatnonzero((date > 0) & (date <= visits.at))
    heard = _read_between(hub_host, hub_at, host[told], date[told], visits.at[told])
    on = (date[told] > visits.since[told]) & heard
    interval = np.maximum(visits.at - visits.since, 0.0)[told]
    return learn_signals(host[told], interval, on, visits.changed[told], groups=pages.host_count)


def _read_between(hub_host: I64, hub_at: F64, host: I64, first: F64, last: F64) -> BOOL:
    """Whether a sitemap or feed of the host was read from `first` to `last`, to the second."""
    if not len(hub_host):
        return np.zeros(len(host), dtype=np.bool_)
    keys = (hub_host << SECOND_BITS) + hub_at.astype(np.int64)
    place = np.searchsorted(keys, (host << SECOND_BITS) + last.astype(np.int64), side="right") - 1
    latest = keys[np.maximum(place, 0)]
    return (place >= 0) & (latest >= (host << SECOND_BITS) + first.astype(np.int64))
