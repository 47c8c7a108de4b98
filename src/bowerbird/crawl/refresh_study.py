"""A study of a live crawl's fetched pages: what its folder holds is put together for a method, and kept.

It reads only, beside a running crawl or without one; the study file is all that it writes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.budget.costs import HostFetches, host_costs
from bowerbird.appraise.refresh.dates import PageDates
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.priors import page_levels
from bowerbird.appraise.refresh.signals import SignalQuality, learn_hosts, shrink_shares
from bowerbird.appraise.refresh.study import KnownPages, RefreshPlan, study_refreshes
from bowerbird.crawl.demand_log import choose_visibility, open_demand
from bowerbird.crawl.page_words import read_urls
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.stakes import Standing, weigh_answers
from bowerbird.crawl.study import measure_clicks
from bowerbird.demand.workload import build_workload
from bowerbird.model.page_types import type_pages
from bowerbird.model.refresh_study import RefreshStudy, ValidatorTrust
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.model.validators import Validators
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import GainColumns, read_gains
from bowerbird.store.refresh_study_file import write_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.visits import Visits, read_hub_visits, read_media, read_visits

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

HONEST = (9.5, 0.5)  # changes that moved a host's validators, and that did not, before any is known
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
    modified: F64  # NaN where the answer had no date
    validators: I64
    elapsed_s: F64
    quiet_s: F64  # by page: how long before its first fetch it was modified, by its own date; NaN without one


def make_refresh_study(folder: CrawlFolder, settings: Settings, method: str, now: float) -> RefreshStudy:
    """Study the fetched pages of a crawl by a method of `METHODS`, and keep what was found in its folder."""
    began = time.perf_counter()
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        table = repository.table
        snapshot = repository.snapshot(now)
        inputs, pages, visits, trust = gather_inputs(repository, settings, snapshot)
        hint = snapshot.pages.hint_modified[pages.rows].astype(np.float64)
        hubs = read_hub_visits(repository.connection, snapshot.pages.host, snapshot.pages.kind)
        signals = hear_signals(visits, hint, pages, *hubs)
        refresh = settings.refresh
        plan = RefreshPlan(
            refresh.interval_s, refresh.min_interval_s, refresh.max_interval_s, refresh.explore, refresh.threshold
        )
        study = study_refreshes(inputs, method, pages, plan, signals)
        study = replace(study, trust=trust, info={**study.info, "seconds": time.perf_counter() - began})
        write_refresh_study(folder.study(method), study, table.seed, table.columns["hash"])
    finally:
        repository.close()
    return study


def gather_inputs(
    repository: Repository, settings: Settings, snapshot: Snapshot
) -> tuple[RefreshInputs, KnownPages, PageVisits, ValidatorTrust]:
    """What is known of the fetched pages, and how far their hosts' validators are believed."""
    columns, count = snapshot.pages, len(snapshot.pages)
    here = (columns.kind == UrlKind.PAGE) & (columns.state == UrlState.FETCHED)
    rows = np.flatnonzero(here)
    hosts = columns.host[rows].astype(np.int64)
    pages = KnownPages(rows, hosts, count, len(snapshot.hosts))
    every = read_visits(repository.connection, count)
    visits = arrange_visits(every, rows)
    standing = weigh_standing(repository, settings, snapshot.now, count)
    urls = list(compress(read_urls(repository.connection, count), here.tolist()))
    types = type_pages(urls, compress(read_media(repository.connection, count), here.tolist()))
    hint = columns.hint_modified[rows].astype(np.float64)
    honest, dated = trust_validators(visits, pages), trust_dates(visits, pages)
    interval_s = np.maximum(visits.at - visits.since, 0.0)
    inputs = RefreshInputs(
        now_s=snapshot.now,
        starts=visits.starts,
        interval_s=np.where(visits.not_modified, honest[hosts[visits.page]], 1.0) * interval_s,
        changed=visits.changed,
        shift=visits.shift,
        gain=match_gains(visits, rows, read_gains(repository.connection)),
        stake=standing.stake[rows],
        views=standing.views[rows],
        levels=page_levels(urls, hosts, page_types=types),
        hint_age_s=np.where(hint > 0, snapshot.now - hint, np.nan),
        cost=expect_cost(visits, every, pages),
        dates=PageDates(visits.quiet_s, date_changes(visits), dated.recall[hosts], dated.false_rate_per_s[hosts]),
        clicks_per_s=measure_clicks(repository, settings, snapshot),
    )
    trust = ValidatorTrust(
        honest.astype(np.float32), dated.recall.astype(np.float32), dated.false_rate_per_s.astype(np.float32)
    )
    return inputs, pages, visits, trust


def arrange_visits(visits: Visits, rows: I64) -> PageVisits:
    """The visits to these pages, without the first to each: that has nothing to compare with."""
    place = np.minimum(np.searchsorted(rows, visits.page), max(len(rows) - 1, 0))
    mine = np.flatnonzero(rows[place] == visits.page) if len(rows) else np.zeros(0, dtype=np.int64)
    page, at = place[mine], visits.at[mine]
    fresh = np.diff(page, prepend=-1) != 0
    again, first = np.flatnonzero(~fresh), np.flatnonzero(fresh)
    quiet_s = np.full(len(rows), np.nan)
    quiet_s[page[first]] = np.maximum(at[first] - visits.modified[mine[first]], 0.0)  # NaN stays NaN
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
        visits.modified[kept],
        visits.validators[kept],
        visits.elapsed_s[kept],
        quiet_s,
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


def expect_cost(visits: PageVisits, every: Visits, pages: KnownPages) -> F64:
    """By page what a refresh costs in first fetches of its host: little where it says "not modified"."""
    first = np.flatnonzero((np.diff(every.page, prepend=-1) != 0) & np.isin(every.page, pages.rows))
    new = pages.hosts[np.searchsorted(pages.rows, every.page[first])]
    by_host = host_costs(
        HostFetches(pages.hosts[visits.page], visits.wire_bytes, visits.elapsed_s),
        HostFetches(new, every.wire_bytes[first], every.elapsed_s[first]),
        pages.host_count,
    )
    return by_host[pages.hosts]


def date_changes(visits: PageVisits) -> F64:
    """By visit, how long before it the page had changed by its new date; NaN where that tells nothing."""
    dated = visits.changed & _is(visits, Validators.DATE_MOVED) & (visits.modified > visits.since)
    return np.where(dated, np.maximum(visits.at - visits.modified, 0.0), np.nan)


def trust_dates(visits: PageVisits, pages: KnownPages) -> SignalQuality:
    """How good Last-Modified is, by host, from visits that could compare: did it move, had the page changed?

    A new date that is older than the visit before is no date of the change, and one that moved on an unchanged page is
    false. "Not modified" is a date that did not move and a page that did not change.
    """
    compared = _is(visits, Validators.DATE_SAME | Validators.DATE_MOVED)
    dated_page = np.zeros(len(pages.rows), dtype=np.bool_)
    dated_page[visits.page[compared]] = True
    still = ~visits.changed & (compared | (visits.not_modified & dated_page[visits.page]))
    used = np.flatnonzero(still | (visits.changed & compared & _came_anyway(visits, pages)))
    on = _is(visits, Validators.DATE_MOVED) & (~visits.changed | (visits.modified > visits.since))
    interval_s = np.maximum(visits.at - visits.since, 0.0)[used]
    return learn_hosts(
        pages.hosts[visits.page[used]], interval_s, on[used], visits.changed[used], groups=pages.host_count
    )


def trust_validators(visits: PageVisits, pages: KnownPages) -> F64:
    """By host the share of changes that move the validators a server goes by: the ETag, or else the date."""
    etag = _is(visits, Validators.ETAG_SAME | Validators.ETAG_MOVED)
    date = _is(visits, Validators.DATE_SAME | Validators.DATE_MOVED)
    used = visits.changed & (etag | date) & _came_anyway(visits, pages)
    moved = np.where(etag, _is(visits, Validators.ETAG_MOVED), _is(visits, Validators.DATE_MOVED))
    host, count = pages.hosts[visits.page], pages.host_count
    hits, misses = np.bincount(host[used & moved], minlength=count), np.bincount(host[used & ~moved], minlength=count)
    return shrink_shares(hits.astype(np.float64), misses.astype(np.float64), *HONEST)


def _came_anyway(visits: PageVisits, pages: KnownPages) -> BOOL:
    """Whether a whole answer would have come with the same validators too: only then it tells whether they move.

    A host that says "not modified" sends a page that was asked for on condition because its validators moved.
    """
    host = pages.hosts[visits.page]
    obeys = np.zeros(pages.host_count, dtype=np.bool_)
    obeys[host[visits.not_modified]] = True
    return ~visits.not_modified & (~obeys[host] | _is(visits, Validators.UNASKED))


def _is(visits: PageVisits, bits: Validators) -> BOOL:
    return np.asarray((visits.validators & int(bits)) != 0, np.bool_)


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
    return learn_hosts(host[told], interval, on, visits.changed[told], groups=pages.host_count)


def _read_between(hub_host: I64, hub_at: F64, host: I64, first: F64, last: F64) -> BOOL:
    """Whether a sitemap or feed of the host was read from `first` to `last`, to the second."""
    if not len(hub_host):
        return np.zeros(len(host), dtype=np.bool_)
    keys = (hub_host << SECOND_BITS) + hub_at.astype(np.int64)
    place = np.searchsorted(keys, (host << SECOND_BITS) + last.astype(np.int64), side="right") - 1
    latest = keys[np.maximum(place, 0)]
    return (place >= 0) & (latest >= (host << SECOND_BITS) + first.astype(np.int64))
