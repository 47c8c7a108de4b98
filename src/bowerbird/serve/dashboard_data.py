"""What the dashboard shows, gathered from a crawl folder: read-only, bounded, and remembered for a moment."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson

from bowerbird.crawl.measurements import Measurement, read_quality
from bowerbird.model.errors import BowerbirdError
from bowerbird.serve.dashboard_demand import DemandGlance, DemandWatch
from bowerbird.serve.dashboard_journal import (
    BusyHost,
    Hub,
    Interval,
    choose_width_s,
    read_bounds,
    read_busy_hosts,
    read_hubs,
    read_interval,
    read_last_errors,
    read_totals,
)
from bowerbird.serve.dashboard_spending import Spent, largest, read_origins, read_spent
from bowerbird.serve.dashboard_survey import Lookout, Survey, Surveyor, take_survey
from bowerbird.serve.journal_intervals import IntervalReader
from bowerbird.store import schema
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder, WriterLock

WINDOWS: dict[str, float | None] = {
    "10 minutes": 600.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 7 * 86_400.0,
    "all": None,
}
INTERVALS = 60
BUSY_HOSTS = 10
GLANCE_LIFE_S = 1.0
SLOWER_LIFE_S = 5.0
LIVE_WITHIN_S = 10.0
FIRST_SURVEY_WAIT_S = 1.5
QUALITY_POINTS = 240
QUALITY_READ = 2000  # two weeks of measurements every ten minutes
T = TypeVar("T")


class Kept(Generic[T]):
    """A value made when asked for and kept for some seconds; those who ask at once wait for one making."""

    def __init__(self, life_s: float) -> None:
        self.life_s = life_s
        self._lock = threading.Lock()
        self._value: T | None = None
        self._good_until = float("-inf")

    def get(self, make: Callable[[], T]) -> T:
        """The value, made anew when it is old. What is slow to make is kept longer."""
        with self._lock:
            if self._value is None or time.monotonic() >= self._good_until:
                began = time.monotonic()
                self._value = make()
                ended = time.monotonic()
                self._good_until = ended + max(self.life_s, 5 * (ended - began)) if self.life_s > 0 else ended
            return self._value


@dataclass(frozen=True, slots=True)
class Sources:
    """Lists that change slowly: hosts and hubs."""

    busy: list[BusyHost]
    last_errors: dict[str, str]
    hubs: list[Hub]


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything the dashboard shows of one moment."""

    at: float
    name: str  # of the folder: where it lies is nobody's business on a network
    window: str
    problem: str = ""
    running: bool = False
    live: dict[str, Any] = field(default_factory=dict)
    start: float = 0.0
    end: float = 0.0
    width_s: float = 60.0
    intervals: list[Interval] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    origins: dict[int, str] = field(default_factory=dict)  # of the hosts with the most fetches
    totals: dict[tuple[int, int], int] = field(default_factory=dict)
    quality: list[Measurement] = field(default_factory=list)
    sources: Sources = field(default_factory=lambda: Sources([], {}, []))
    survey: Survey | None = None
    demand: DemandGlance = field(default_factory=DemandGlance)


class Observer:
    """Where the dashboard gets its data. Safe to ask from many threads."""

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.time, lookout: Lookout | None = None) -> None:
        self.folder = CrawlFolder(root)
        self.name = root.resolve().name
        self.clock = clock
        self.lookout = lookout or Lookout(root)
        self.surveyor = Surveyor(lambda: take_survey(self.lookout))
        self.demand = Surveyor(DemandWatch(self.folder, clock=clock).look, SLOWER_LIFE_S)
        self._wait_s = FIRST_SURVEY_WAIT_S
        self._decided = IntervalReader(read_interval)
        self._spent = IntervalReader(read_spent, remembered=1000)
        self._reading = threading.Lock()
        self._glances: dict[str, Kept[Glance]] = {name: Kept(GLANCE_LIFE_S) for name in ("auto", *WINDOWS)}
        self._sources: Kept[Sources] = Kept(SLOWER_LIFE_S)

    def glance(self, window: str = "auto") -> Glance:
        """The crawl now, with what happened within a window of time."""
        name = window if window in self._glances else "auto"
        # both begin at once; only the very first look waits for them, and not for long
        wait_s, self._wait_s = self._wait_s, 0.0
        self.demand.latest()
        self.surveyor.latest(wait_s)
        self.demand.latest(wait_s)
        return self._glances[name].get(lambda: self._look(name))

    def without_path(self, text: str) -> str:
        """A message that names the folder, not where it lies."""
        return text.replace(str(self.folder.root), self.name)

    def close(self) -> None:
        """Let go of everything."""
        self.surveyor.close()
        self.demand.close()
        self.lookout.close()

    def _look(self, window: str) -> Glance:
        try:
            self.folder.check()
            with closing(schema.open_state(self.folder, write=False)) as connection, self._reading:
                return self._read(connection, window, connection.now())
        except (BowerbirdError, sqlite3.Error, OSError) as error:
            return Glance(self.clock(), self.name, window, problem=self.without_path(str(error)))

    def _read(self, connection: Connection, window: str, now: float) -> Glance:
        running = WriterLock.is_held(self.folder)
        live = self._live(connection, now) if running else {}
        bounds = read_bounds(connection)
        # a crawl that rests is shown as it was when it stopped
        end = now if running or bounds is None else min(bounds[1] + 1.0, now)
        window, span_s = choose_window(window, bounds, end)
        width_s = choose_width_s(span_s, INTERVALS)
        intervals = self._decided.intervals(connection, end - span_s, end, width_s) if bounds else []
        spent = self._spent.intervals(connection, end - span_s, end, width_s) if bounds else []
        return Glance(
            now,
            self.name,
            window,
            running=running,
            live=live,
            start=end - span_s,
            end=end,
            width_s=width_s,
            intervals=intervals,
            spent=spent,
            origins=read_origins(connection, largest((part.hosts for part in spent), BUSY_HOSTS)),
            totals=read_totals(connection),
            quality=self.quality(QUALITY_READ),
            sources=self._sources.get(lambda: read_sources(connection)),
            survey=self.surveyor.latest(),
            demand=self.demand.latest() or DemandGlance(),
        )

    def quality(self, newest: int) -> list[Measurement]:
        """So many of the newest measurements of quality; none when they cannot be read."""
        try:
            found = read_quality(self.folder, limit=newest)
        except BowerbirdError:
            return []
        return [one for one in found if math.isfinite(one.quality + one.low + one.high)]

    @staticmethod
    def _live(connection: Connection, now: float) -> dict[str, Any]:
        row = connection.execute("SELECT value FROM meta WHERE key = 'live'").fetchone()
        live: dict[str, Any] = orjson.loads(str(row[0])) if row else {}
        return live if now - float(live.get("at", 0)) < LIVE_WITHIN_S else {}


def read_sources(connection: Connection) -> Sources:
    """The lists that change slowly."""
    return Sources(read_busy_hosts(connection, 8), read_last_errors(connection), read_hubs(connection, 10))


def choose_window(name: str, bounds: tuple[float, float] | None, end: float) -> tuple[str, float]:
    """The window's name and length; left to us, it is all of a young crawl and the last hour of an older one."""
    age_s = max(end - bounds[0], 10.0) if bounds else 60.0
    if name == "auto":
        name = "all" if age_s <= 5400 else "hour"
    span_s = WINDOWS[name]
    return name, age_s if span_s is None else span_s


def thin(points: list[Measurement], limit: int = QUALITY_POINTS) -> list[Measurement]:
    """At most so many measurements, evenly spread, the last among them."""
    if len(points) <= limit:
        return points
    return [points[round(nth * (len(points) - 1) / (limit - 1))] for nth in range(limit)]
