"""What searchers asked, for the dashboard: over time, and the queries that the crawl serves worst."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.needs import weigh_needs
from bowerbird.crawl.settings import load_settings
from bowerbird.demand.log import DAY_S, QueryStats
from bowerbird.demand.tally import BIN_S
from bowerbird.model.errors import BowerbirdError
from bowerbird.store.folder import CrawlFolder

NEEDIEST = 10
CANDIDATES = 200
SAMPLES = 360
HISTORY_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class NeedyQuery:
    """A query with what is known of it; `need` is in the unit of its frequency."""

    text: str
    count: int
    results: int | None
    clicks: int
    need: float


@dataclass(frozen=True, slots=True)
class DemandGlance:
    """Queries and clicks a minute over time, how many there were in all, and the neediest queries."""

    at: float = 0.0
    cost_s: float = 0.0
    times: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    clicked: list[float] = field(default_factory=list)
    queries: int = 0
    clicks: int = 0
    neediest: list[NeedyQuery] = field(default_factory=list)
    problem: str = ""


def unserved(query: QueryStats) -> float:
    """How much a query's searchers go without, told from the log alone: asked often, few results, few clicks."""
    return query.weight / (1.0 + (query.results or 0)) * (1.0 - min(query.clicks / max(query.count, 1), 1.0))


def rank_by_need(folder: CrawlFolder, queries: list[QueryStats]) -> list[NeedyQuery]:
    """Ask the index each query, and put those first that better pages would help most."""
    try:
        needs = weigh_needs(folder, queries)
        found = [
            NeedyQuery(query.text, query.count, need.results, query.clicks, need.need)
            for query, need in zip(queries, needs, strict=True)
        ]
    except (BowerbirdError, OSError, ValueError):  # without an index the log has to do
        found = [NeedyQuery(one.text, one.count, one.results, one.clicks, unserved(one)) for one in queries]
    return sorted((one for one in found if one.need > 0), key=lambda one: (-one.need, one.text))


class DemandWatch:
    """Reads the demand log from time to time; what was added between two readings is the demand of that time."""

    def __init__(self, folder: CrawlFolder, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.clock = clock
        self._sums: deque[tuple[float, int, int]] = deque(maxlen=SAMPLES)

    def look(self) -> DemandGlance:
        """The demand now, and as it was at the readings before."""
        began = time.perf_counter()
        now = self.clock()
        try:
            demand = load_settings(self.folder.config).demand
            with open_demand(self.folder, demand, write=False) as log:
                totals = log.totals()
                earlier = log.activity(now - HISTORY_S, now)
                queries = log.queries(now, CANDIDATES)
            neediest = rank_by_need(self.folder, queries)[:NEEDIEST]
        except (BowerbirdError, sqlite3.Error, OSError) as error:
            return DemandGlance(
                now,
                time.perf_counter() - began,
                problem=str(error).replace(str(self.folder.root), self.folder.root.resolve().name),
            )
        self._note(now, totals.asked, totals.clicks)
        times, asked, clicked = self._rates(earlier)
        return DemandGlance(
            now,
            time.perf_counter() - began,
            times,
            asked,
            clicked,
            totals.asked,
            totals.clicks,
            neediest,
        )

    def _note(self, now: float, asked: int, clicks: int) -> None:
        if self._sums and (asked < self._sums[-1][1] or clicks < self._sums[-1][2]):
            self._sums.clear()  # another log is there by now
        self._sums.append((now, asked, clicks))

    def _rates(self, earlier: list[tuple[float, int, int]]) -> tuple[list[float], list[float], list[float]]:
        """Queries and clicks a minute: by the log's bins up to the first reading, between readings from then on."""
        sums = list(self._sums)
        past = [one for one in earlier if one[0] + BIN_S <= sums[0][0]][-SAMPLES:]
        minutes_a_bin = BIN_S / 60.0
        steps = [(b, (b[0] - a[0]) / 60.0, a) for a, b in pairwise(sums) if b[0] > a[0]]
        times = [start + BIN_S / 2 for start, _, _ in past] + [after[0] for after, _, _ in steps]
        asked = [count / minutes_a_bin for _, count, _ in past]
        asked += [(after[1] - before[1]) / minutes for after, minutes, before in steps]
        clicked = [count / minutes_a_bin for _, _, count in past]
        clicked += [(after[2] - before[2]) / minutes for after, minutes, before in steps]
        return times, asked, clicked
