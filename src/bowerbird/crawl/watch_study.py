"""Looks back at what a live crawl fetched: what was expected of each fetch when it was decided, and what came of it.

New pages are clicked or not, refreshes gain what was measured while they were indexed, visits to hubs find new pages.
It reads only, beside a running crawl or without one; its file is all that it writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.budget.correction import F64, Compared, correct_kind, take_telling, watch_margin
from bowerbird.appraise.budget.costs import Fetches, relative_cost
from bowerbird.appraise.budget.decisions import (
    HUBS,
    Decision,
    Group,
    compare_new,
    compare_refreshes,
    compare_visits,
    horizons_of,
    rows_of,
    sort_decisions,
    take_quota,
    times_of,
)
from bowerbird.appraise.budget.watch import QUOTA
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hub_visits import find_discoveries
from bowerbird.crawl.journal_spans import find_ends, first_at, spread_runs
from bowerbird.crawl.settings import Settings
from bowerbird.demand.tally import BIN_S
from bowerbird.demand.workload import TimedClicks, find_last_heard, read_timed_clicks
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.model.watch import METHOD, NEAR_KINDS, KindWatch, Watch
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import hash_urls
from bowerbird.store.visits import read_visits_of
from bowerbird.store.watch_file import write_watch

LAST = 200_000  # rows of the journal, and so many more in runs over the time that gains count for
RUNS, RUN_ROWS = 1000, 200
COSTS_OF = 20_000  # fetches, the last
_FETCHED = tuple(one for one in Outcome if one not in DECISIONS_WITHOUT_FETCH and not one.transient)
# terms are compact JSON: to look for a few characters is quicker than to read all of it
_BY_HUBS = f'instr(terms, \'"by":"{HUBS}"\')'
_GROUPS = f"""
    SELECT id,
      CASE WHEN {_BY_HUBS} THEN {Group.HUB:d}
        WHEN kind = {FetchKind.REFRESH:d} THEN {Group.REFRESH:d}
        WHEN instr(terms, '"announced":') THEN {Group.ANNOUNCED:d} ELSE {Group.NEW:d} END
    FROM fetches
    WHERE id >= ? AND id < ?
      AND (kind = {FetchKind.REFRESH:d} OR (kind = {FetchKind.NEW:d} AND fetched_at >= ?) OR {_BY_HUBS})
      AND outcome IN ({",".join(str(int(one)) for one in _FETCHED)}) AND abs(bid) < 1e300
      AND instr(terms, '"unit":')
      AND NOT instr(terms, '"expected_found":null') AND NOT instr(terms, '"expected_gain":null')
    ORDER BY id"""
_CHOSEN = """
    SELECT url, kind, bid, price, fetched_at, terms, changed FROM fetches
    WHERE id IN (SELECT value FROM json_each(?) AS wanted) ORDER BY id"""


def make_watch(folder: CrawlFolder, settings: Settings, now: float) -> Watch:
    """Compare expectations with what came of them, and keep that in the crawl's folder."""
    began = time.perf_counter()
    studies = open_studies(folder, (HUBS,))
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    try:
        attach_studies(repository, studies)
        table = repository.table
        decisions = read_decisions(repository.connection, now - settings.budget.horizon_s)
        groups = sort_decisions([one for one in decisions if one.row < table.columns.count])
        compared = {group: look_back(repository, settings, group, some, now) for group, some in groups.items()}
        known = {group: one.of(one.known) for group, one in compared.items()}
        factors = Factors(**{group.label: correct_kind(one) for group, one in known.items()})
        watch = Watch(
            now,
            tuple(one.watch(group.label, group.unit) for group, one in known.items()),
            tuple(watch for group, some in groups.items() for watch in by_appraiser(group, some, compared[group])),
            replace(factors if settings.budget.correct else Factors(), **read_costs(repository)),
            info={
                "decisions": float(len(decisions)),
                "seconds": time.perf_counter() - began,
                NEAR_KINDS: " ".join(group.label for group, one in known.items() if take_telling(one)[1]),
            },
            margins=tuple(watch_margin(one, group.label) for group, one in known.items()),
        )
        write_watch(folder.study(METHOD), watch, table.seed, table.columns["hash"])
    finally:
        repository.close()
    return watch


def read_decisions(
    connection: Connection, since: float, most: int = QUOTA, last: int = LAST, runs: int = RUNS, rows: int = RUN_ROWS
) -> list[Decision]:
    """Fetches that were decided in clicks, oldest first, at most so many of a kind; however long the journal is.

    Of new pages those since a time, evenly by number: from runs of rows, spread over all that was journalled since. Of
    refreshes and visits the last: among the `last` rows, and where these have too few, in the runs, too. What was never
    fetched is left out, and what nothing was expected of.
    """
    first, top = find_ends(connection)
    spread, _ = spread_runs(first_at(connection, since, first, top), top + 1, runs, rows)
    over_time = _find_groups(connection, spread, since)
    newest = np.union1d(over_time, _find_groups(connection, [(max(top + 1 - last, first), top + 1)], since))
    chosen: list[int] = []
    for group in Group:
        found = over_time if group.is_slow else newest
        ids = found["id"][found["group"] == group]
        chosen += ids[take_quota(group, len(ids), most)].tolist()
    return [
        Decision(int(row), int(kind), float(bid), float(price), float(at), orjson.loads(terms), bool(changed))
        for row, kind, bid, price, at, terms, changed in connection.execute(_CHOSEN, (orjson.dumps(chosen).decode(),))
    ]


def _find_groups(connection: Connection, stretches: Sequence[tuple[int, int]], since: float) -> npt.NDArray[np.void]:
    """Numbers and groups of what can be compared in stretches of the journal."""
    found = (row for stretch in stretches for row in connection.execute(_GROUPS, (*stretch, since)))
    return np.fromiter(found, dtype=[("id", "i8"), ("group", "i8")])


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


def by_appraiser(group: Group, decisions: Sequence[Decision], compared: Compared) -> list[KindWatch]:
    """Decisions of one group by who expected what."""
    known, names = compared.known, np.array([one.appraiser for one in decisions], dtype=object)
    some = sorted(set(names[known].tolist()))
    return [compared.of(known & (names == name)).watch(name, group.unit) for name in some]


def look_back(
    repository: Repository, settings: Settings, group: Group, decisions: Sequence[Decision], now: float
) -> Compared:
    """What was expected of decisions of one group, and what came of them."""
    if group is Group.REFRESH:
        changed = np.array([one.changed for one in decisions], dtype=np.bool_)
        found = np.array([find_gain(repository.connection, one) for one in decisions], dtype=np.float64)
        return compare_refreshes(decisions, changed, found)
    if group is Group.HUB:
        return compare_visits(decisions, count_found(repository, decisions, now))
    with open_demand(repository.folder, settings.demand, write=False) as log:
        heard_until = min(find_last_heard(log), now)
        timed = read_timed_clicks(log, min((one.fetched_at for one in decisions), default=now))
    horizon_s = horizons_of(decisions, settings.budget.horizon_s)
    clicked = count_clicks(repository, decisions, timed, horizon_s, heard_until)
    return compare_new(decisions, repository.snapshot(now), clicked, heard_until, horizon_s)


def count_clicks(
    repository: Repository, decisions: Sequence[Decision], timed: TimedClicks, horizon_s: F64, heard_until: float
) -> F64:
    """Clicks made since each fetch, within its horizon.

    They are known by spans of time: of one that is partly later, or that still goes on, as many as there is time of it.
    """
    clicked = np.zeros(len(decisions))
    if not len(timed.urls) or not decisions:
        return clicked
    rows, at = rows_of(decisions), times_of(decisions)
    found = repository.table.find(hash_urls(timed.urls, repository.table.seed))[timed.page]
    order = np.argsort(rows, kind="stable")
    place = np.minimum(np.searchsorted(rows[order], found), len(rows) - 1)
    mine = rows[order][place] == found
    which = order[place[mine]]
    # what is clicked in the span of the fetch came after it; spans before it are of another time
    first = np.maximum(timed.at[mine] - BIN_S / 2, at[which])
    last = np.minimum(timed.at[mine] + BIN_S / 2, heard_until)
    within = np.minimum(last, at[which] + horizon_s[which]) - first
    share = np.clip(within / np.maximum(last - first, 1e-9), 0.0, 1.0)
    np.add.at(clicked, which, timed.clicks[mine] * share)
    return clicked


def find_gain(connection: Connection, decision: Decision) -> float:
    """What was measured of one refresh; NaN where nothing was."""
    key = (decision.row, decision.fetched_at)
    found = connection.execute("SELECT gain FROM gains WHERE page = ? AND at = ?", key).fetchone()
    return math.nan if found is None else float(found[0])


def count_found(repository: Repository, decisions: Sequence[Decision], now: float) -> F64:
    """New pages that each visit found first; NaN where the visit is not known."""
    found = np.full(len(decisions), np.nan)
    if decisions:
        since = math.floor(min(one.fetched_at for one in decisions))  # when URLs were found is known to the second
        visits = read_visits_of(repository.connection, np.unique(rows_of(decisions)), since)
        pages, columns = repository.snapshot(now).pages, repository.table.columns
        first = find_discoveries(pages, columns["hops"], columns["content_hash"] != 0, visits, since, now)
        many = np.bincount(first.visit, minlength=len(visits.page))
        of_visit = {(int(page), float(at)): n for n, (page, at) in enumerate(zip(visits.page, visits.at, strict=True))}
        for number, one in enumerate(decisions):
            visit = of_visit.get((one.row, one.fetched_at))
            if visit is not None:
                found[number] = many[visit]
    return found
