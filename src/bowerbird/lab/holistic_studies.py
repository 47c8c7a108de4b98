"""What a crawl of a holistic world makes of what it knows: the product's own studies, and a Snapshot for bids."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bowerbird.appraise.frontier.calibration import weigh_draws
from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.frontier.inputs import Inputs
from bowerbird.appraise.frontier.study import Feedback, set_news_apart, study_frontier
from bowerbird.appraise.hubs.announced import SIZES, Announced, Feature
from bowerbird.appraise.hubs.page_worth import halve_places
from bowerbird.appraise.hubs.study import HubInputs, HubPlan, HubVisits, study_hubs
from bowerbird.appraise.one_budget import FRONTIER, HUBS, REFRESH
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.study import KnownPages, RefreshPlan, study_refreshes
from bowerbird.lab.holistic_crawl import HolisticCrawl
from bowerbird.lab.holistic_world import DAY_S, F64, HOUR_S, I64, START_S
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.page_types import PageType
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.study import FrontierStudy
from bowerbird.model.url_state import UrlKind, UrlState

#: what `auto` learns from pages' words and places takes minutes a replay, and pages here have none: the walk bids alone
FRONTIER_METHOD = "rw-eg"
LEAST_EXPOSURE = 0.05
STAKE_SHAPE = 0.3  # clicks that the mean of its host weighs beside a page's own: they differ widely


@dataclass(frozen=True, slots=True)
class Studies:
    """The three of one time."""

    frontier: FrontierStudy
    refresh: RefreshStudy
    hubs: HubStudy


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals that a person would set, a crawl's defaults: without a price, pages and hubs come round after them."""

    page_s: float = 7 * DAY_S
    hub_s: float = 6 * HOUR_S
    listing_s: float = 7 * DAY_S
    shortest_s: float = 60.0
    longest_s: float = 365 * DAY_S
    explore: float = 0.05


def take_snapshot(
    crawl: HolisticCrawl, studies: Studies | None, factors: Factors | None = None, price: float = 0.0
) -> Snapshot:
    """What bids may look at now; `price` is what the last fetches cleared at, in clicks."""
    return Snapshot(
        now=crawl.now,
        pages=crawl.view(),
        hosts=crawl.hosts(),
        study=studies.frontier if studies else None,
        refresh_study=studies.refresh if studies else None,
        hub_study=studies.hubs if studies else None,
        factors=factors,
        price=price,
    )


def make_studies(crawl: HolisticCrawl, pace: Pace, page_price: float, before: Studies | None, seed: int) -> Studies:
    """Study all that is known now; `page_price` is what the last fetches cleared at, in clicks.

    That of new pages takes longest and moves least: it is made every other time.
    """
    frontier = None if before is None or before.frontier.at < before.refresh.at else before.frontier
    return Studies(
        frontier or study_new(crawl, before.frontier if before else None, seed),
        study_known(crawl, pace),
        study_announcers(crawl, pace, page_price / max(before.hubs.mean_profit, 1e-12) if before else 0.0, seed),
    )


def study_new(crawl: HolisticCrawl, before: FrontierStudy | None, seed: int) -> FrontierStudy:
    """Expected clicks of the frontier within `world.exposed_s`, by links from pages that are clicked."""
    n = crawl.count
    columns = crawl.columns
    is_page = columns.kind[:n] == UrlKind.PAGE
    crawled = is_page & (columns.state[:n] == UrlState.FETCHED)
    frontier = np.flatnonzero(is_page & (columns.state[:n] == UrlState.NEW))
    sources, targets = np.concatenate(crawl.link_source), np.concatenate(crawl.link_target)
    inputs = Inputs(
        now=crawl.now,
        graph=make_graph(sources, targets, n, crawled),
        clicks=crawl.clicks[:n],
        host=columns.host[:n],
        first_seen=columns.first_seen[:n].astype(np.float64),
        rng=np.random.default_rng([seed, round(crawl.now)]),
        frontier=frontier,
        start=None if before is None else before.score.astype(np.float64),
    )
    watched_s = crawl.heard_until_s - crawl.first_fetched[:n]
    usable = crawled & (watched_s > 0)
    announced = np.zeros(n, np.bool_)
    announced[np.array(crawl.hub_visits.page, dtype=np.int64)] = True
    usable = set_news_apart(usable, announced)
    exposure, heard = np.ones(n), np.maximum(watched_s, 0.0) / crawl.world.exposed_s
    exposure[usable] = np.maximum(heard[usable], LEAST_EXPOSURE)
    feedback = Feedback(usable, exposure, weigh_draws(crawl.propensity[:n]), heard=heard)
    study = study_frontier(inputs, FRONTIER_METHOD, frontier, feedback)
    return replace(study, method=FRONTIER, info={**study.info, "exposed_s": crawl.world.exposed_s})


def study_known(crawl: HolisticCrawl, pace: Pace) -> RefreshStudy:
    """When each fetched page is worth a refresh, by what its past visits found and what it has at stake."""
    n, world = crawl.count, crawl.world
    columns = crawl.columns
    rows = np.flatnonzero((columns.kind[:n] == UrlKind.PAGE) & (columns.state[:n] == UrlState.FETCHED))
    log = crawl.visits
    visited = np.array(log.row, dtype=np.int64)
    mine = np.isin(visited, rows)
    order = np.flatnonzero(mine)[np.argsort(visited[mine], kind="stable")]
    shift = np.array(log.shift)[order]
    rate, total = rate_clicks(crawl, rows)
    stake = rate / max(total, 1e-12)
    pages = crawl.page[rows]
    inputs = RefreshInputs(
        now_s=crawl.now,
        starts=np.searchsorted(visited[order], np.append(rows, n)).astype(np.int64),
        interval_s=np.array(log.interval_s)[order],
        changed=shift > 0,
        shift=shift,
        # a share of what was clicked then, as one of what is clicked now: the crawl has grown
        gain=np.array(log.gain)[order] * np.array(log.clicked_per_s)[order] / max(total, 1e-12),
        stake=stake,
        views=stake,
        levels=(world.host[pages], world.dated[pages].astype(np.int64), world.group[pages]),
        hint_age_s=np.full(len(rows), np.nan),
        cost=np.ones(len(rows)),
        clicks_per_s=total,
    )
    known = KnownPages(rows, columns.host[rows].astype(np.int64), n, world.host_count)
    plan = RefreshPlan(pace.page_s, pace.shortest_s, pace.longest_s, pace.explore)
    return study_refreshes(inputs, REFRESH, known, plan)


def rate_clicks(crawl: HolisticCrawl, rows: I64) -> tuple[F64, float]:
    """Clicks a second of each of these pages, of late, shrunk to the mean of its host; and of all together."""
    clicks, watched = crawl.recent_clicks[rows], np.maximum(crawl.recent_s[rows] - crawl.world.step_s, 0.0)
    host = crawl.columns.host[rows].astype(np.int64)
    mean = (clicks.sum() + 1.0) / (watched.sum() + DAY_S)
    hosts = crawl.world.host_count
    usual = (np.bincount(host, clicks, hosts) + 1.0) / (np.bincount(host, watched, hosts) + 1.0 / mean)
    rate = (clicks + STAKE_SHAPE) / (watched + STAKE_SHAPE / usual[host])
    steps = [float(part.sum()) for part in crawl.click_log.clicks[-round(DAY_S / crawl.world.step_s) or -1 :]]
    return rate, sum(steps) / (max(len(steps), 1) * crawl.world.step_s)


def study_announcers(crawl: HolisticCrawl, pace: Pace, page_price: float, seed: int) -> HubStudy:
    """How much each hub announces, how long interest in it lasts, when each is worth a visit."""
    n, world, log = crawl.count, crawl.world, crawl.hub_visits
    columns = crawl.columns
    rows = np.flatnonzero(crawl.is_hub[:n] & (columns.state[:n] == UrlState.FETCHED))
    kinds = world.hub_kind[crawl.page[rows]]
    usual = np.where(kinds == HubKind.LISTING, 1.0 / pace.listing_s, 1.0 / pace.hub_s)
    return study_hubs(
        HubInputs(
            now_s=crawl.now,
            count=n,
            row=rows,
            kind=kinds,
            host=columns.host[rows].astype(np.int64),
            period_s=np.zeros(len(rows)),
            usual_per_s=usual,
            visits=HubVisits(
                columns.fetches[rows].astype(np.int64),
                np.searchsorted(rows, np.array(log.row, dtype=np.int64)),
                np.array(log.at_s),
                np.array(log.gap_s),
                np.array(log.found, dtype=np.float64),
                np.array(log.turned, dtype=np.bool_),
            ),
            announced=describe_announced(crawl, rows),
            link_hub=np.searchsorted(rows, np.array(log.link_hub, dtype=np.int64)),
            link_page=np.unique(np.array(log.link_page, dtype=np.int64), return_inverse=True)[1].astype(np.int64),
            page_price=page_price,
        ),
        HUBS,
        HubPlan(pace.shortest_s, pace.longest_s, pace.explore, math.log(2.0) / world.half_life_s),
        seed,
    )


def describe_announced(crawl: HolisticCrawl, hubs: I64) -> Announced:
    """The new pages that hubs announced, and the clicks on them."""
    log = crawl.hub_visits
    page = np.array(log.page, dtype=np.int64)  # found one after the other: ascending
    level = np.zeros((len(page), len(SIZES)), dtype=np.int64)
    level[:, Feature.PLACE] = halve_places(np.array(log.page_place, dtype=np.int64), SIZES[Feature.PLACE])
    times = np.bincount(np.array(log.link_page, dtype=np.int64), minlength=crawl.count)
    level[:, Feature.SHOWN] = np.minimum(times[page], SIZES[Feature.SHOWN] - 1)
    level[:, Feature.TYPE] = int(PageType.DATED)
    clicked = np.concatenate(crawl.click_log.row) if crawl.click_log.row else np.zeros(0, np.int64)
    at = np.concatenate(crawl.click_log.at_s) if crawl.click_log.row else np.zeros(0)
    many = np.concatenate(crawl.click_log.clicks) if crawl.click_log.row else np.zeros(0)
    place = np.full(crawl.count, -1, dtype=np.int64)
    place[page] = np.arange(len(page))
    told = place[clicked] >= 0
    return Announced(
        row=page,
        hub=np.searchsorted(hubs, np.array(log.page_hub, dtype=np.int64)),
        found_s=crawl.columns.first_seen[page].astype(np.float64),
        gap_s=np.array(log.page_gap_s),
        fetched_s=crawl.first_fetched[page],
        is_new=crawl.columns.state[page] == UrlState.NEW,
        level=level,
        heard_until_s=max(crawl.heard_until_s, START_S),
        click_page=place[clicked[told]],
        click_at_s=at[told],
        clicks=many[told],
    )
