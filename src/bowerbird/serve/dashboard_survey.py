"""A look at the whole crawl (every URL and its bid): it takes time, so it is taken rarely, beside the requests."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from bowerbird.appraise.policy import HUB_STUDIED
from bowerbird.crawl.hub_report import report_hubs
from bowerbird.crawl.view import CrawlView
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.url_state import UrlState
from bowerbird.serve.service import BusyError
from bowerbird.store.hub_study_file import read_hub_study

COMING = 12
HOSTS = 8
HUBS = 12
VIEW_LIFE_S = 5.0
SURVEY_EVERY_S = 10.0
MOST_INSIDE = 8
SURVEY_SHARE = 0.1  # of the time may go into surveys


@dataclass(frozen=True, slots=True)
class HostLine:
    """A host with URLs in line, or in trouble."""

    origin: str
    waiting: int
    errors: int
    until: float


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen, when, and what it cost."""

    at: float
    cost_s: float
    status: dict[str, Any] = field(default_factory=dict)
    coming: list[dict[str, Any]] = field(default_factory=list)
    lines: list[HostLine] = field(default_factory=list)
    troubled: list[HostLine] = field(default_factory=list)
    hubs: dict[str, Any] | None = None  # by the last study of them, where there is one
    what_if: dict[str, Any] | None = None  # what other budgets would gain, where bids are in clicks
    probe_share: float | None = None  # of the fetches, by the settings
    problem: str = ""


class Lookout:
    """A crawl opened for looking, shared for some seconds: one who asks twice does not load it twice."""

    def __init__(self, root: Path, life_s: float = VIEW_LIFE_S) -> None:
        self.root = root
        self.life_s = life_s
        self._lock = threading.Lock()
        self._line = threading.Lock()
        self._inside = 0
        self._view: CrawlView | None = None
        self._opened_at = 0.0
        self._timer: threading.Timer | None = None

    @contextmanager
    def view(self) -> Iterator[CrawlView]:
        """The crawl as of some seconds ago at most; one user at a time, and who finds a long line is told so."""
        with self._line:
            if self._inside >= MOST_INSIDE:
                raise BusyError
            self._inside += 1
        try:
            with self._lock:
                yield from self._looking()
        finally:
            with self._line:
                self._inside -= 1

    def _looking(self) -> Iterator[CrawlView]:
        if self._timer is not None:
            self._timer.cancel()
        if self._view is None or time.monotonic() - self._opened_at > self.life_s:
            self._close()
            self._opened_at = time.monotonic()
            self._view = CrawlView(self.root)
        try:
            yield self._view
        except BowerbirdError:
            raise
        except BaseException:
            self._close()  # it may be the folder that changed: look anew next time
            raise
        finally:
            # a large crawl's columns take a gigabyte: they are not kept for nobody
            self._timer = threading.Timer(2 * self.life_s, self.close)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Let go of the crawl."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._close()

    def _close(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None


def take_survey(lookout: Lookout) -> Survey:
    """Status, the next fetches, and the hosts with the longest lines and the most trouble."""
    began = time.perf_counter()
    try:
        with lookout.view() as view:
            status = view.status()
            coming = view.next(COMING)
            lines, troubled = _host_lines(view)
            hubs = _studied_hubs(view)
            what_if = view.what_if()
            probe_share = view.settings.quality.probe_share
    except (BowerbirdError, BusyError, OSError, sqlite3.Error) as error:
        return Survey(
            time.time(),
            time.perf_counter() - began,
            problem=str(error).replace(str(lookout.root), lookout.root.resolve().name),
        )
    took_s = time.perf_counter() - began
    return Survey(time.time(), took_s, status, coming, lines, troubled, hubs, what_if, probe_share)


def _studied_hubs(view: CrawlView) -> dict[str, Any] | None:
    table = view.repository.table
    study = read_hub_study(view.folder.study(HUB_STUDIED[0]), table.seed, table.columns["hash"]).study
    return None if study is None or not len(study.hubs) else report_hubs(view, study, HUBS)


def _host_lines(view: CrawlView) -> tuple[list[HostLine], list[HostLine]]:
    table = view.repository.table
    hosts = table.hosts.columns
    waiting = np.bincount(table.columns["host"][table.columns["state"] == UrlState.NEW], minlength=len(hosts))
    errors = hosts["errors"]

    def lines(order: np.ndarray[Any, np.dtype[np.int64]]) -> list[HostLine]:
        return [
            HostLine(table.hosts.origins[host], int(waiting[host]), int(errors[host]), float(hosts["not_before"][host]))
            for host in order.tolist()
        ]

    longest = np.argsort(-waiting, kind="stable")[:HOSTS]
    worst = np.argsort(-errors.astype(np.int64), kind="stable")[:HOSTS]
    return lines(longest[waiting[longest] > 0]), lines(worst[errors[worst] > 0])


class Costed(Protocol):
    """What a look at something gave: when, and how long it took."""

    @property
    def at(self) -> float:
        """Unix seconds."""

    @property
    def cost_s(self) -> float:
        """Seconds it took."""


S = TypeVar("S", bound=Costed)


class Surveyor(Generic[S]):
    """Keeps a recent survey while somebody asks for it; never makes anybody wait for long."""

    def __init__(self, take: Callable[[], S], every_s: float = SURVEY_EVERY_S) -> None:
        self.take = take
        self.every_s = every_s
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="survey")
        self._pending: Future[S] | None = None
        self._last: S | None = None

    def latest(self, wait_s: float = 0.0) -> S | None:
        """The last survey; a new one is begun when it is old. `wait_s`: how long to wait for the very first."""
        with self._lock:
            if self._pending is not None and self._pending.done():
                done, self._pending = self._pending, None  # one that failed is told once, and another is begun
                self._last = done.result()
            last = self._last
            stale = last is None or time.time() - last.at > max(self.every_s, last.cost_s / SURVEY_SHARE)
            if stale and self._pending is None:
                self._pending = self._pool.submit(self.take)
            pending = self._pending
        if last is not None or pending is None:
            return last
        wait([pending], wait_s)
        return pending.result() if pending.done() else None

    def close(self) -> None:
        """Wait for the survey under way and end."""
        self._pool.shutdown(wait=True, cancel_futures=True)
