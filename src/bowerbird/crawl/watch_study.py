"""Looks back at what a live crawl fetched: what was expected of each fetch when it was decided, and what came of it.

New pages are clicked or not, refreshes gain what was measured while they were indexed, visits to hubs find new pages.
It reads only, beside a running crawl or without one; its file is all that it writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.budget.costs import Fetches, relative_cost
from bowerbird.appraise.budget.watch import (
    QUOTA,
    as_learnt,
    correct_kind,
    expected_by,
    put_by_bid,
    spread_evenly,
    watch_kind,
)
from bowerbird.appraise.hubs.studied import linked_from
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_visits import find_discoveries
from bowerbird.crawl.settings import Settings
from bowerbird.demand.tally import BIN_S
from bowerbird.demand.workload import find_last_heard, read_timed_clicks
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.model.watch import METHOD, KindWatch, Watch
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import read_visits_of
from bowerbird.store.watch_file import write_watch

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

FARTHEST_BACK = 500_000  # fetches: older ones are not looked at, however long a crawl has run
COSTS_OF = 20_000  # fetches, the last
HUBS = "echo"


class Group(IntEnum):
    """Kinds of fetches by what was expected of them; each has a quota, so that none crowds out another."""

    NEW = 0
    ANNOUNCED = 1
    REFRESH = 2
    HUB = 3


#: whose gains take time: of these a sample over the time that gains count for, of the others the last
SLOW = (Group.NEW, Group.ANNOUNCED)
_FETCHED = tuple(one for one in Outcome if one not in DECISIONS_WITHOUT_FETCH and not one.transient)
# terms are compact JSON: to look for a few characters is quicker than to read all of it
_BY_HUBS = f'instr(terms, \'"by":"{HUBS}"\')'
_GROUPS = f"""
    SELECT id,
      CASE WHEN {_BY_HUBS} THEN {Group.HUB:d}
        WHEN kind = {FetchKind.REFRESH:d} THEN {Group.REFRESH:d}
        WHEN instr(terms, '"announced":') THEN {Group.ANNOUNCED:d} ELSE {Group.NEW:d} END
    FROM fetches
    WHERE id > ?
      AND (kind = {FetchKind.REFRESH:d} OR (kind = {FetchKind.NEW:d} AND fetched_at >= ?) OR {_BY_HUBS})
      AND outcome IN ({",".join(str(int(one)) for one in _FETCHED)}) AND abs(bid) < 1e300
      AND instr(terms, '"unit":')
      AND NOT instr(terms, '"expected_found":null') AND NOT instr(terms, '"expected_gain":null')
    ORDER BY id"""
_CHOSEN = """
    SELECT url, kind, bid, price, fetched_at, changed, terms FROM fetches
    WHERE id IN (SELECT value FROM json_each(?) AS wanted) ORDER BY id"""


@dataclass(frozen=True, slots=True)
class Decision:
    """One fetch that was decided in clicks."""

    row: int
    kind: int
    bid: float
    price: float
    fetched_at: float
    changed: bool
    terms: dict[str, float | str | None]

    def number(self, name: str) -> float:
        """A term; NaN where there is none."""
        value = self.terms.get(name)
        return float(value) if isinstance(value, int | float) else math.nan


def make_watch(folder: CrawlFolder, settings: Settings, now: float) -> Watch:
    """Compare expectations with what came of them, and keep that in the crawl's folder."""
    began = time.perf_counter()
    studies = open_studies(folder, (HUBS,))
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        attach_studies(repository, studies)
        table = repository.table
        decisions = read_decisions(repository.connection, now - settings.budget.horizon_s)
        decisions = [one for one in decisions if one.row < table.columns.count]
        by_hub = [
            one for one in decisions if one.terms.get("by") == HUBS and not math.isnan(one.number("expected_found"))
        ]
        by_page = [one for one in decisions if one.terms.get("by") != HUBS]
        found = {one.row: one for one in by_page if one.kind == FetchKind.NEW and one.terms.get("basis") is not None}
        new = list(found.values())  # of several tries the last
        refreshes = [one for one in by_page if one.kind == FetchKind.REFRESH]
        kinds, appraisers, factors = compare(
            (
                (new, "new", "clicks", lambda some: compare_new(repository, settings, some, now)),
                (refreshes, "refresh", "share of Q", lambda some: compare_refreshes(repository, some)),
                (by_hub, "hub", "new pages", lambda some: compare_hubs(repository, some, now)),
            )
        )
        watch = Watch(
            now,
            kinds,
            appraisers,
            replace(factors if settings.budget.correct else Factors(), **read_costs(repository)),
            info={"decisions": float(len(decisions)), "seconds": time.perf_counter() - began},
        )
        write_watch(folder.study(METHOD), watch, table.seed, table.columns["hash"])
    finally:
        repository.close()
    return watch


def read_decisions(
    connection: Connection, since: float, most: int = QUOTA, back: int = FARTHEST_BACK
) -> list[Decision]:
    """Fetches that were decided in clicks, oldest first, at most so many of a kind among the last `back` of all.

    Of new pages those since a time, evenly by number; of refreshes and visits the last. What was never fetched is left
    out, and what nothing was expected of.
    """
    last = connection.execute("SELECT max(id) FROM fetches").fetchone()[0] or 0
    found = np.fromiter(connection.execute(_GROUPS, (last - back, since)), dtype=[("id", "i8"), ("group", "i8")])
    chosen: list[int] = []
    for group in Group:
        ids = found["id"][found["group"] == group]
        chosen += ids[spread_evenly(len(ids), most) if group in SLOW else slice(max(len(ids) - most, 0), None)].tolist()
    return [
        Decision(int(row), int(kind), float(bid), float(price), float(at), bool(changed), orjson.loads(terms))
        for row, kind, bid, price, at, changed, terms in connection.execute(_CHOSEN, (orjson.dumps(chosen).decode(),))
    ]


def read_costs(repository: Repository) -> dict[str, float]:
    """What visits to feeds and to sitemaps cost, in fetches of new pages: of the last that were answered."""
    connection, kinds = repository.connection, repository.table.columns["kind"]
    last = connection.execute("SELECT max(id) FROM fetches").fetchone()[0] or 0
    rows = connection.execute(
        # a running crawl may have found and fetched more since the columns were read
        "SELECT url, kind, wire_bytes, elapsed_s FROM fetches WHERE id > ? AND url < ? AND outcome IN (?, ?)",
        (last - COSTS_OF, len(kinds), int(Outcome.OK), int(Outcome.NOT_MODIFIED)),
    ).fetchall()
    url, kind, size, took = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 4
    of = kinds[url.astype(np.int64)]

    def mean(mine: npt.NDArray[np.bool_]) -> Fetches:
        count = int(np.count_nonzero(mine))
        return Fetches(count, float(size[mine].mean()), float(took[mine].mean())) if count else Fetches(0, 0.0, 0.0)

    pages = mean((kind == FetchKind.NEW) & (of == UrlKind.PAGE))
    return {
        "feed_cost": relative_cost(mean(of == UrlKind.FEED), pages),
        "sitemap_cost": relative_cost(mean(of == UrlKind.SITEMAP), pages),
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """By decision."""

    expected: F64
    realised: F64
    known: npt.NDArray[np.bool_]  # whether anything can be said
    events: F64  # that were expected: clicks, pages found, changes
    in_clicks: bool = False  # as bids are

    def watch(self, name: str, unit: str, mine: npt.NDArray[np.bool_]) -> KindWatch:
        """Some of them."""
        return watch_kind(name, self.expected[mine], self.realised[mine], unit, float(self.events[mine].sum()))

    def correct(self, mine: npt.NDArray[np.bool_], decisions: list[Decision]) -> float:
        """By what to multiply what is expected of some of them from now on."""
        prices = np.array([one.bid / max(one.price, 1e-300) for one in decisions])[mine]
        expected, realised = self.expected[mine], self.realised[mine]
        if not self.in_clicks:
            expected, realised = put_by_bid(expected, realised, prices)
        return correct_kind(expected, realised, self.events[mine], prices)


Part = tuple[list[Decision], str, str, Callable[[list[Decision]], Compared]]


def compare(parts: tuple[Part, ...]) -> tuple[tuple[KindWatch, ...], tuple[KindWatch, ...], Factors]:
    """By kind, and by who expected it; and the factors that follow."""
    kinds: list[KindWatch] = []
    appraisers: list[KindWatch] = []
    factors: dict[str, float] = {}
    for decisions, name, unit, look in parts:
        compared = look(decisions)
        known = compared.known
        names = np.array([name_appraiser(one) for one in decisions], dtype=object)
        groups = {name: known}
        if name == "new":  # two ways of expecting, corrected apart
            told = np.array(["announced" in one.terms for one in decisions], dtype=np.bool_)
            groups = {"new": known & ~told, "announced": known & told}
        for group, mine in groups.items():
            kinds.append(compared.watch(group, unit, mine))
            factors[group] = compared.correct(mine, decisions)
        for one in sorted({str(name) for name in names[known]}):
            appraisers.append(compared.watch(one, unit, known & (names == one)))
    return tuple(kinds), tuple(appraisers), Factors(**factors)


def name_appraiser(one: Decision) -> str:
    """Who expected it, and from what."""
    by, basis = str(one.terms.get("by", "?")), one.terms.get("basis")
    if "announced" in one.terms:
        return f"{by}: announced by a hub"
    return f"{by}: {basis}" if basis else by


def compare_new(repository: Repository, settings: Settings, decisions: list[Decision], now: float) -> Compared:
    """Clicks: those expected by now, without the factor that they had then, and those made since the fetch.

    What was expected of announced pages is as if hubs' pages had been known to get as much as they are known to now.
    """
    count = len(decisions)
    rows = np.array([one.row for one in decisions], dtype=np.int64)
    at = np.array([one.fetched_at for one in decisions], dtype=np.float64)
    with open_demand(repository.folder, settings.demand, write=False) as log:
        heard_until = min(find_last_heard(log), now)
        timed = read_timed_clicks(log, float(at.min(initial=now)))
    announced = np.array(["announced" in one.terms for one in decisions], dtype=np.bool_)
    factor = np.array(
        [one.number("factor_announced" if "announced" in one.terms else "factor_new") for one in decisions]
    )
    # a page that gains less than a unit bids 1 all the same: what was expected is beside it, but in the oldest journals
    units = np.array([one.number("units") if "units" in one.terms else one.bid for one in decisions])
    unit = np.array([one.number("unit") for one in decisions])
    clicks = np.nan_to_num(units) * unit / np.where(np.isnan(factor), 1.0, factor)
    half_life = np.array([one.number("half_life_s") for one in decisions])
    decay = np.where(announced & (half_life > 0), math.log(2.0) / np.maximum(half_life, 1e-9), 0.0)
    waited = heard_until - at
    told = np.array([one.number("horizon_s") for one in decisions])
    horizon = np.where(told > 0, told, settings.budget.horizon_s)  # as far ahead as was counted then
    expected = expected_by(clicks, decay, waited, horizon)
    then = np.array([one.number("hub_clicks") for one in decisions], dtype=np.float64)
    expected *= as_learnt(then, clicks_of_hubs(repository, rows, now), at)
    realised = np.zeros(count)
    if len(timed.urls) and count:
        found = repository.table.find(hash_urls(timed.urls, repository.table.seed))[timed.page]
        order = np.argsort(rows, kind="stable")
        place = np.minimum(np.searchsorted(rows[order], found), count - 1)
        mine = rows[order][place] == found
        which = order[place[mine]]
        after = timed.at[mine] - at[which]
        late = (after >= -BIN_S / 2) & (
            after <= horizon[which] + BIN_S / 2
        )  # bins before the fetch are of another time
        np.add.at(realised, which[late], timed.clicks[mine][late])
    return Compared(expected, realised, waited > 0, expected, in_clicks=True)


def clicks_of_hubs(repository: Repository, rows: I64, now: float) -> F64:
    """What pages get of the hub that announced each of these, as the last study has it; NaN where it has none."""
    study = repository.hub_study
    if study is None or not study.by_clicks or not len(study.hubs):
        return np.full(len(rows), np.nan)
    place = study.place(linked_from(repository.snapshot(now), rows))
    return np.where(place >= 0, study.hubs.profit[place].astype(np.float64), np.nan)


def compare_refreshes(repository: Repository, decisions: list[Decision]) -> Compared:
    """Shares of Q: those expected, and those measured; 0 where the page had not changed.

    Not every change is measured: those that were stand for the others. Where none was, nothing can be said.
    """
    expected = np.array([one.number("expected_gain") for one in decisions], dtype=np.float64)
    chance = np.array([one.number("expected_chance") for one in decisions], dtype=np.float64)
    changed = np.array([one.changed for one in decisions], dtype=np.bool_)
    found = np.array([find_gain(repository.connection, one) for one in decisions], dtype=np.float64)
    known = ~np.isnan(expected) & ~np.isnan(chance)
    told = known & changed & ~np.isnan(found)
    if not told.any() and (known & changed).any():
        known = np.zeros(len(decisions), dtype=np.bool_)
    mean = float(found[told].mean()) if told.any() else 0.0
    realised = np.where(changed, np.where(np.isnan(found), mean, found), 0.0)
    return Compared(np.nan_to_num(expected), realised, known, np.nan_to_num(chance))


def find_gain(connection: Connection, decision: Decision) -> float:
    """What was measured of one refresh; NaN where nothing was."""
    key = (decision.row, decision.fetched_at)
    found = connection.execute("SELECT gain FROM gains WHERE page = ? AND at = ?", key).fetchone()
    return math.nan if found is None else float(found[0])


def compare_hubs(repository: Repository, decisions: list[Decision], now: float) -> Compared:
    """New pages that a visit was expected to find, and those it found first."""
    expected = np.array([one.number("expected_found") for one in decisions], dtype=np.float64)
    realised, known = np.zeros(len(decisions)), np.zeros(len(decisions), dtype=np.bool_)
    if decisions:
        rows = np.unique(np.array([one.row for one in decisions], dtype=np.int64))
        since = math.floor(min(one.fetched_at for one in decisions))  # when URLs were found is known to the second
        visits = read_visits_of(repository.connection, rows, since)
        pages, columns = repository.snapshot(now).pages, repository.table.columns
        found = find_discoveries(pages, columns["hops"], columns["content_hash"] != 0, visits, since, now)
        many = np.bincount(found.visit, minlength=len(visits.page))
        of_visit = {(int(page), float(at)): n for n, (page, at) in enumerate(zip(visits.page, visits.at, strict=True))}
        for number, one in enumerate(decisions):
            visit = of_visit.get((one.row, one.fetched_at))
            if visit is not None:
                realised[number], known[number] = many[visit], True
    return Compared(expected, realised, known, expected)
