"""What the one budget of a crawl is spent on, for people and programs: the price in clicks, kinds, and what-if."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from bowerbird.appraise.budget.click_pages import lower_from_floor
from bowerbird.appraise.budget.in_clicks import horizon_of
from bowerbird.appraise.budget.what_if import (
    KINDS,
    HubVisits,
    NewPages,
    Outlook,
    Refreshes,
    Spending,
    Supply,
    differing_times,
    what_if,
)
from bowerbird.appraise.hubs.net_value import share_within
from bowerbird.appraise.one_budget import OneBudget
from bowerbird.appraise.refresh.refresh_gain import FEWEST_CHANGES
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.journal_spans import count_kinds, find_ends, first_at, time_of
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.crawl.watch_report import report_watch
from bowerbird.demand.workload import find_last_heard
from bowerbird.model.bid import Shape
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.store.connection import Connection
from bowerbird.store.repository import Repository

HOUR_S = 3600.0
SPAN_S = HOUR_S  # of what was fetched lately
LAST_ROWS = 100  # that are no probes
PROBES_AMONG = 20_000  # rows: who measures may have journalled many of them since


@dataclass(frozen=True, slots=True)
class Recent:
    """Fetches of the last hour of a crawl that somebody ran, or of its last run where that was shorter."""

    span_s: float
    fetches: dict[str, float]  # by kind
    sampled: bool = False  # told from a part of the journal

    @property
    def per_s(self) -> float:
        """Fetches a second."""
        return sum(self.fetches.values()) / self.span_s


def read_recent(connection: Connection, span_s: float = SPAN_S) -> Recent:
    """By the journal; told from a sample where there is much."""
    first, top = find_ends(connection)
    counts = {kind.label: 0.0 for kind in FetchKind}
    if not top:
        return Recent(span_s, counts)
    end = time_of(connection, top)
    run = connection.execute("SELECT started_at FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    begin = max(end - span_s, time_of(connection, first))
    if run is not None and begin < float(run[0]) < end:
        begin = float(run[0])
    found, sampled = count_kinds(connection, first_at(connection, begin, first, top), top + 1)
    for (kind, outcome), number in found.items():
        if outcome not in DECISIONS_WITHOUT_FETCH:
            counts[FetchKind(kind).label] += number
    return Recent(max(end - begin, 1.0), counts, sampled)


@dataclass(frozen=True, slots=True)
class LastFetch:
    """The last fetch that was decided in clicks."""

    bid_clicks: float
    price_clicks: float


def read_last_fetch(connection: Connection) -> LastFetch | None:
    """By the journal; None where the last decisions were not in clicks. Pages drawn by lot bid nothing."""
    (top,) = connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()
    rows = connection.execute(
        "SELECT bid, price, terms FROM fetches WHERE id > ? AND kind != ? ORDER BY id DESC LIMIT ?",
        (top - PROBES_AMONG, int(FetchKind.PROBE), LAST_ROWS),
    )
    for bid, price, terms in rows:
        unit = orjson.loads(terms).get("unit")
        if isinstance(unit, float):
            return LastFetch(float(bid) * unit, float(price) * unit)
    return None


def report_budget(
    policy: OneBudget,
    repository: Repository,
    settings: Settings,
    now: float,
    price: float | None,
    rate_per_s: float | None,
) -> dict[str, Any]:
    """One object: what bids are in and rest on, the price, fetches by kind, what was expected and what came of it.

    Without a `price` (of a crawl that runs) it is that of the last fetch.
    """
    snapshot = repository.snapshot(now)
    unit = policy.unit(snapshot)
    recent = read_recent(repository.connection)
    last = read_last_fetch(repository.connection)
    price_then = policy.reserve * unit if last is None else last.price_clicks
    missing = [method for method in policy.studied if kind_of(method).of(repository) is None]
    return {
        "unit_clicks": unit if unit > 0 else None,
        "price_clicks": (price_then if price is None else price * unit) if unit > 0 else None,
        "rests_on": policy.rests_on(snapshot),
        "by_clicks": policy.by_clicks(snapshot),
        "heard_s": _read_heard(repository, settings),
        "waits_for": missing,
        "horizon_days": settings.budget.horizon_days,
        "rate_per_s": rate_per_s,
        "span_s": recent.span_s,
        "fetches": recent.fetches,
        "sampled": recent.sampled,
        "watch": None if repository.watch is None else report_watch(repository.watch),
    }


def _read_heard(repository: Repository, settings: Settings) -> float | None:
    """How long clicks have been heard, as far as the crawl goes back; None without any of known time."""
    with open_demand(repository.folder, settings.demand, write=False) as log:
        until = find_last_heard(log)
        heard = [start for start, _, clicks in log.activity(0.0, until) if clicks]
    first_seen = repository.table.columns["first_seen"]
    since = float(first_seen.min()) if len(first_seen) else 0.0
    return max(until - max(heard[0], since), 0.0) if heard else None


def gather_supply(policy: OneBudget, snapshot: Snapshot, auction: Auction) -> Supply | None:
    """Everything that could be fetched, in units; None before all kinds have been studied."""
    scaled = policy.in_units(snapshot)
    pages, study, hub_study = scaled.pages, scaled.refresh_study, scaled.hub_study
    if policy.unit(snapshot) <= 0.0 or study is None or study.gain is None or hub_study is None:
        return None
    new = np.flatnonzero(pages.state == UrlState.NEW)
    bid = auction.values(snapshot.now, new)
    new, bid = new[bid > 0], bid[bid > 0]
    gain = lower_from_floor(bid)
    hubs = hub_study.hubs
    visited = pages.state[hubs.row] == UrlState.FETCHED
    counted = np.zeros(len(pages), dtype=np.bool_)
    counted[hubs.row[visited]] = True
    rows = np.arange(min(study.count, len(pages)))
    rows = rows[~np.isnan(study.gain[rows]) & (pages.state[rows] == UrlState.FETCHED) & ~counted[rows]]
    counted[rows] = True
    changes = study.rate_per_s[rows].astype(np.float64)
    most = np.full(len(rows), FEWEST_CHANGES) if study.most_changes is None else study.most_changes[rows]
    factor = 1.0 if snapshot.factors is None else snapshot.factors.hub
    cost = policy.costs(snapshot, rows)
    return Supply(
        NewPages(bid, gain),
        Refreshes(
            study.amplitude[rows].astype(np.float64),
            changes,
            study.gain[rows].astype(np.float64) * cost * changes,
            most,
            cost,
        ),
        HubVisits(
            hubs.amplitude[visited].astype(np.float64),
            hubs.decay_per_s[visited].astype(np.float64),
            hubs.rate_per_s[visited].astype(np.float64) * factor,
            hubs.profit[visited] * share_within(hubs.decay_per_s[visited], horizon_of(hub_study, policy.horizon_s)),
        ),
        policy.settings.min_interval_s,
        study.longest_s,
        hub_study.longest_s,
        _by_age_per_s(policy, snapshot, auction, counted),
        min(HOUR_S, policy.horizon_s),
        policy.reserve,
        policy.horizon_s,
        horizon_of(hub_study, policy.horizon_s),
        hub_study.page_spread,
    )


def _by_age_per_s(policy: OneBudget, snapshot: Snapshot, auction: Auction, counted: np.ndarray[Any, Any]) -> float:
    """Fetches a second of what is revisited by its age alone."""
    pages = snapshot.pages
    rest = np.flatnonzero(np.isin(pages.state, REVISITED) & ~counted)
    rest = rest[auction.bids["amplitude"][rest] > 0]
    settings = policy.settings
    interval = np.where(pages.kind[rest] == UrlKind.PAGE, settings.interval_s, settings.hub_interval_s)
    linear = auction.bids["shape"][rest] == Shape.LINEAR
    growth = (auction.bids["amplitude"][rest] * auction.bids["rate"][rest]).astype(np.float64)
    return float(np.where(linear, growth, 1.0 / np.maximum(interval, settings.min_interval_s)).sum())


def tell_growth(outlook: Outlook | None, price: float, lower: float) -> float | None:
    """How many times as large the budget would have to be for the price to fall so far; None where nobody knows."""
    spent = 0.0 if outlook is None else outlook.at(price).fetched_per_s
    return None if outlook is None or spent <= 0 else outlook.at(lower).fetched_per_s / spent


def report_what_if(
    outlook: Outlook, unit: float, budget_per_s: float, *, by_setting: bool, by_clicks: bool
) -> dict[str, Any]:
    """Fetches, clicks and quality lost by budget, as a multiple of the present one; quality where people clicked.

    Budgets that pay for more than anything bids the reserve for are left out.
    """
    asked_per_s = outlook.asked_per_s
    times = differing_times(budget_per_s, asked_per_s)
    return {
        "budget_per_s": budget_per_s,
        "asked_per_s": asked_per_s,
        "by_setting": by_setting,
        "unit_clicks": unit,
        "by_clicks": by_clicks,
        "rows": [
            _tell(often, one, unit, by_clicks)
            for often, one in zip(times, what_if(outlook, budget_per_s, times), strict=True)
        ],
    }


def _tell(times: float, one: Spending, unit: float, by_clicks: bool) -> dict[str, Any]:
    return {
        "times": times,
        "price_clicks": one.price * unit,
        "fetches_per_s": one.fetched_per_s,
        "clicks_per_hour": one.gained_per_s * unit * HOUR_S,
        "by_kind": {
            kind: {"fetches_per_s": float(often), "clicks_per_hour": float(gain) * unit * HOUR_S}
            for kind, often, gain in zip(KINDS, one.fetches_per_s, one.gains_per_s, strict=True)
        },
        "stale_quality": one.stale if by_clicks else None,
    }
