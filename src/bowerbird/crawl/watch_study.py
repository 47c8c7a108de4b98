"""Looks back at what a live crawl fetched: what was expected of each fetch when it was decided, and what came of it.

New pages are clicked or not, refreshes gain what was measured while they were indexed, visits to hubs find new pages.
It reads only, beside a running crawl or without one; its file is all that it writes.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.budget.costs import Fetches, relative_cost
from bowerbird.appraise.budget.watch import expected_by, factor_of, watch_kind
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_visits import find_discoveries
from bowerbird.crawl.settings import Settings
from bowerbird.demand.tally import BIN_S
from bowerbird.demand.workload import find_last_heard, read_timed_clicks
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.model.watch import METHOD, KindWatch, Watch
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import read_gains
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import read_visits_of
from bowerbird.store.watch_file import write_watch

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

MOST = 5_000  # decisions, the last: older ones were of studies that have learnt since
HUBS = "echo"
_UNIT = '%"unit"%'  # of decisions that were made in clicks


@dataclass(frozen=True, slots=True)
class Decision:
    """One fetch that was decided in clicks."""

    row: int
    kind: int
    bid: float
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
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        table = repository.table
        decisions = [one for one in read_decisions(repository.connection) if one.row < table.columns.count]
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
            replace(factors if settings.budget.correct else Factors(), hub_cost=read_hub_cost(repository.connection)),
            info={"decisions": float(len(decisions)), "seconds": time.perf_counter() - began},
        )
        write_watch(folder.study(METHOD), watch, table.seed, table.columns["hash"])
    finally:
        repository.close()
    return watch


def read_decisions(connection: sqlite3.Connection, most: int = MOST) -> list[Decision]:
    """The last fetches that were decided in clicks, oldest first; what was never fetched is left out."""
    last = connection.execute("SELECT max(id) FROM fetches").fetchone()[0] or 0
    found = connection.execute(
        "SELECT url, kind, bid, fetched_at, changed, outcome, terms FROM fetches"
        " WHERE id > ? AND terms LIKE ? ORDER BY id",
        (last - most, _UNIT),
    )
    out = []
    for row, kind, bid, at, changed, outcome, terms in found:
        made = Outcome(outcome)
        if made not in DECISIONS_WITHOUT_FETCH and not made.transient and math.isfinite(bid):
            out.append(Decision(int(row), int(kind), float(bid), float(at), bool(changed), orjson.loads(terms)))
    return out


def read_hub_cost(connection: sqlite3.Connection, most: int = MOST) -> float:
    """What a visit to a feed or sitemap costs, in fetches of new pages: of the last that were answered."""
    last = connection.execute("SELECT max(id) FROM fetches").fetchone()[0] or 0
    answered = (int(Outcome.OK), int(Outcome.NOT_MODIFIED))
    visits, pages = (
        Fetches(
            *connection.execute(
                "SELECT count(*), coalesce(avg(wire_bytes), 0), coalesce(avg(elapsed_s), 0) FROM fetches"
                " WHERE id > ? AND kind = ? AND outcome IN (?, ?)",
                (last - most, int(kind), *answered),
            ).fetchone()
        )
        for kind in (FetchKind.HUB, FetchKind.NEW)
    )
    return relative_cost(visits, pages)


@dataclass(frozen=True, slots=True)
class Compared:
    """By decision."""

    expected: F64
    realised: F64
    known: npt.NDArray[np.bool_]  # whether anything can be said
    events: F64  # that were expected: clicks, pages found, changes

    def watch(self, name: str, unit: str, mine: npt.NDArray[np.bool_]) -> KindWatch:
        """Some of them."""
        return watch_kind(name, self.expected[mine], self.realised[mine], unit, float(self.events[mine].sum()))

    def correct(self, name: str, mine: npt.NDArray[np.bool_]) -> float:
        """By what to multiply what is expected from now on; decisions are in the order of time."""
        newer = mine.copy()
        newer[np.flatnonzero(mine)[: np.count_nonzero(mine) // 2]] = False
        return factor_of(self.watch(name, "", mine), self.watch(name, "", newer))


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
            factors[group] = compared.correct(group, mine)
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
    """Clicks: those expected by now, without the factor that they had then, and those made since the fetch."""
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
    # a page that gains less than a unit bids 1 all the same: what was expected is beside it
    units = np.array([one.bid if "announced" in one.terms else one.number("units") for one in decisions])
    unit = np.array([one.number("unit") for one in decisions])
    clicks = np.nan_to_num(units) * unit / np.where(np.isnan(factor), 1.0, factor)
    half_life = np.array([one.number("half_life_s") for one in decisions])
    decay = np.where(announced & (half_life > 0), math.log(2.0) / np.maximum(half_life, 1e-9), 0.0)
    waited = heard_until - at
    expected = expected_by(clicks, decay, waited, settings.budget.horizon_s)
    realised = np.zeros(count)
    if len(timed.urls) and count:
        found = repository.table.find(hash_urls(timed.urls, repository.table.seed))[timed.page]
        order = np.argsort(rows, kind="stable")
        place = np.minimum(np.searchsorted(rows[order], found), count - 1)
        mine = rows[order][place] == found
        which = order[place[mine]]
        late = timed.at[mine] + BIN_S / 2 >= at[which]  # a bin that ended before the fetch was of another time
        np.add.at(realised, which[late], timed.clicks[mine][late])
    return Compared(expected, realised, waited > 0, expected)


def compare_refreshes(repository: Repository, decisions: list[Decision]) -> Compared:
    """Shares of Q: those expected, and those measured; 0 where the page had not changed.

    Not every change is measured: those that were stand for the others. Where none was, nothing can be said.
    """
    expected = np.array([one.number("expected_gain") for one in decisions], dtype=np.float64)
    chance = np.array([one.number("expected_chance") for one in decisions], dtype=np.float64)
    gains = read_gains(repository.connection)
    measured = {
        (int(page), float(at)): float(gain) for page, at, gain in zip(gains.page, gains.at, gains.gain, strict=True)
    }
    changed = np.array([one.changed for one in decisions], dtype=np.bool_)
    found = np.array([measured.get((one.row, one.fetched_at), math.nan) for one in decisions], dtype=np.float64)
    known = ~np.isnan(expected) & ~np.isnan(chance)
    told = known & changed & ~np.isnan(found)
    if not told.any() and (known & changed).any():
        known = np.zeros(len(decisions), dtype=np.bool_)
    mean = float(found[told].mean()) if told.any() else 0.0
    realised = np.where(changed, np.where(np.isnan(found), mean, found), 0.0)
    return Compared(np.nan_to_num(expected), realised, known, np.nan_to_num(chance))


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
