"""What a soak looks at while it runs: processes and their memory, the crawl folder, the journal. Reads only."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter, defaultdict
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import psutil

from bowerbird.appraise.budget.click_pages import MOST_TIMES
from bowerbird.appraise.hubs.studied import fresh_pages
from bowerbird.appraise.policy import AUTO, make_policy
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.crawl.study_kinds import KINDS, methods_of
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

PARTS = ("coordinator", "workers", "studies")
KIND_NAMES = tuple(kind.label for kind in FetchKind)
BOUND_SLACK = 0.999  # ages are read a moment after the decision


def connect(path: Path) -> sqlite3.Connection:
    """A database that is only read."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)


def own_bytes(pid: int) -> int:
    """Memory that is its own: without what it has mapped of files, such as the index, which the system lends."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def part_of(process: psutil.Process, main: int) -> str:
    """Which part of a crawl a process is."""
    if process.pid == main:
        return "coordinator"
    return "studies" if "study" in process.cmdline()[1:6] else "workers"


class Processes:
    """Memory and CPU time of a crawl and of what runs beside it."""

    def __init__(self) -> None:
        self.crawl: psutil.Process | None = None
        self.beside: dict[str, psutil.Process] = {}
        self.spent_s: Counter[str] = Counter()  # CPU seconds of crawls that have ended
        self._latest_s = 0.0
        self._peeks: dict[str, list[int]] = defaultdict(list)

    def follow(self, pid: int) -> None:
        """A crawl was started."""
        self.spent_s["crawl"] += self._latest_s
        self._latest_s = 0.0
        self._peeks.clear()
        self.crawl = psutil.Process(pid)

    def tree(self) -> list[psutil.Process]:
        """The coordinator first, then all that it started."""
        return [] if self.crawl is None else [self.crawl, *self.crawl.children(recursive=True)]

    def peek(self) -> None:
        """Every few seconds: studies live for seconds only."""
        sums: Counter[str] = Counter()
        own: Counter[str] = Counter()
        cpu_s = 0.0
        assert self.crawl is not None
        with suppress(psutil.Error):
            for process in self.tree():
                with suppress(psutil.Error, OSError):
                    part = part_of(process, self.crawl.pid)
                    own[part] += own_bytes(process.pid)
                    sums[part] += process.memory_info().rss
                    times = process.cpu_times()
                    cpu_s += times.user + times.system
                    # those of studies that ended
                    cpu_s += times.children_user + times.children_system if part == "coordinator" else 0.0
        if sums["coordinator"]:
            self._latest_s = max(cpu_s, self._latest_s)
            for part in PARTS:
                self._peeks[f"{part}_rss"].append(sums[part])
                self._peeks[f"{part}_own"].append(own[part])
            for name, process in self.beside.items():
                with suppress(psutil.Error, OSError):
                    self._peeks[f"{name}_rss"].append(process.memory_info().rss)
                    self._peeks[f"{name}_own"].append(own_bytes(process.pid))

    def take(self) -> dict[str, Any]:
        """Bytes since the last call, PSS and CPU seconds as they are now.

        Of the peeks the least: what is kept is there at every one, and what the index's writer, a merge or a process
        that is being forked takes for a moment comes on top. Of studies, which come and go, the most.
        """
        self.peek()
        peeks, self._peeks = self._peeks, defaultdict(list)
        if not peeks["coordinator_own"]:
            return {}
        out: dict[str, Any] = {
            name: max(found) if name == "studies_rss" else min(found)
            for name, found in peeks.items()
            if name != "studies_own"
        }
        for name in [name for name in peeks if name.endswith("_own")]:
            out[name.replace("_own", "_usual")] = float(np.median(peeks[name]))
        pss: Counter[str] = Counter()
        with suppress(psutil.Error, OSError):
            for process in self.tree():
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                kilobytes = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
                pss[part_of(process, self.tree()[0].pid)] += kilobytes * 1024
        out |= {f"{part}_pss": pss[part] for part in PARTS if pss[part]}
        out["crawl_cpu_s"] = self.spent_s["crawl"] + self._latest_s
        for name, process in self.beside.items():
            with suppress(psutil.Error, OSError):
                times = process.cpu_times()
                children = 0.0 if name == "soak" else times.children_user + times.children_system
                out[f"{name}_cpu_s"] = times.user + times.system + children
        return out


class Journal:
    """Fetches by kind, and those that explore: drawn by lot, first visits to hubs, what waited the longest interval."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.last = 0
        self.fetched: Counter[str] = Counter()
        self.explored: Counter[str] = Counter()
        self.prices: list[tuple[float, float]] = []
        self._seen: dict[int, float] = {}
        self.longest_s: dict[str, float] = {}

    def read_on(self) -> None:
        """Rows since the last call."""
        with closing(connect(self.database)) as database:
            rows = database.execute(
                "SELECT id, url, kind, decided_at, fetched_at, terms FROM fetches WHERE id > ? ORDER BY id",
                (self.last,),
            ).fetchall()
        for number, url, kind_number, decided_at, fetched_at, terms in rows:
            kind = KIND_NAMES[kind_number]
            self.last = number
            self.fetched[kind] += 1
            before = self._seen.get(url)
            self._seen[url] = fetched_at
            if kind == "probe":
                told = orjson.loads(terms)
                if 0.0 < float(told.get("propensity", 0.0)) <= 1.0:
                    self.explored[f"lot: {told['stratum']}"] += 1
            elif kind == "hub" and before is None:
                self.explored["hub: first visit"] += 1
            elif before is not None and kind in ("refresh", "hub"):
                longest_s = self.longest_s.get(kind, np.inf)
                if decided_at - before >= BOUND_SLACK * longest_s and orjson.loads(terms).get("bound"):
                    self.explored[f"{kind}: longest interval"] += 1


class FolderWatch:
    """The crawl folder at one moment after another."""

    def __init__(self, root: Path) -> None:
        self.folder = CrawlFolder(root)
        self.settings: Settings = load_settings(self.folder.config)
        self.methods = methods_of(make_policy(AUTO), self.settings)
        self.journal = Journal(self.folder.database)
        self.prices: list[tuple[float, float]] = []  # time, in units

    def sample(self) -> dict[str, Any]:
        """One row."""
        now = time.time()
        streams = open_studies(self.folder, self.methods)
        repository = Repository(self.folder, write=False, default_interval_s=self.settings.refresh.interval_s)
        with closing(repository):
            notes = attach_studies(repository, streams)
            for stream in streams.values():
                stream.close()
            live = orjson.loads(str(repository.meta("live") or "{}"))
            columns = repository.table.columns
            states = np.bincount(columns["state"], minlength=len(UrlState))
            out: dict[str, Any] = {
                "at": now,
                "known": int(columns.count),
                "states": {state.name.lower(): int(states[state]) for state in UrlState},
                "price": float(live.get("price", 0.0)),
                "unit": float(live.get("unit", 0.0)),
                "behind": int(live.get("indexed_behind", 0)),
                "live_age_s": now - float(live.get("at", 0.0)),
                "notes": {name: note for name, note in notes.items() if note},
            }
            studies = {kind.name: kind.of(repository) for kind in KINDS}
            out["study_age_s"] = {name: now - study.at for name, study in studies.items() if study is not None}
            out["factors"] = watch_factors(repository)
            if out["unit"] > 0.0:
                self.prices.append((now, out["price"]))
            out["waits"] = self._waits(repository, now)
            hubs = repository.hub_study
            news = [] if hubs is None else hubs.page_row[columns["state"][hubs.page_row] == UrlState.NEW]
            out["announced"] = len(fresh_pages(repository.snapshot(now), news)) if len(news) else 0
        self.journal.read_on()
        out["fetches"] = dict(self.journal.fetched)
        out["explored"] = dict(self.journal.explored)
        out["sizes"] = self._sizes()
        return out

    def _waits(self, repository: Repository, now: float) -> dict[str, Any]:
        """By kind the longest that a fetched URL has been left alone, and the longest that it is promised."""
        columns = repository.table.columns
        here = (columns["state"] == UrlState.FETCHED) & (columns["not_before"] <= now)
        page = columns["kind"] == UrlKind.PAGE
        out: dict[str, Any] = {}
        for name, mine, study in (
            ("refresh", here & page, repository.refresh_study),
            ("hub", here & ~page, repository.hub_study),
        ):
            if study is None or not mine.any():
                continue
            self.journal.longest_s[name] = study.longest_s
            # a price that was higher a while ago was the one to wait for
            price = max((price for at, price in self.prices if at >= now - study.longest_s), default=1.0)
            promised_s = promise(study.longest_s, price)
            age_s = now - columns["last_fetched"][np.flatnonzero(mine)]
            out[name] = {
                "longest_s": float(age_s.max()),
                "median_s": float(np.median(age_s)),
                "interval_s": study.longest_s,
                "promised_s": promised_s,
                "over": int(np.count_nonzero(age_s > promised_s)),
                "count": len(age_s),
            }
        new = (columns["state"] == UrlState.NEW) & page
        if new.any():
            wait_s = now - columns["first_seen"][np.flatnonzero(new)].astype(np.float64)
            out["new"] = {"longest_s": float(wait_s.max()), "median_s": float(np.median(wait_s)), "count": len(wait_s)}
        return out

    def _sizes(self) -> dict[str, int]:
        """Bytes of the parts of the folder."""
        root = self.folder.root
        sizes: Counter[str] = Counter()
        for path in root.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    top = path.relative_to(root).parts[0]
                    top = next((name for name in ("state.db", "demand.db") if top.startswith(name)), top)
                    sizes[top] += path.stat().st_size
        with closing(connect(self.folder.database)) as database:  # these are parts of state.db
            rows = (
                "SELECT coalesce(sum(length(targets) + coalesce(length(first_seen), 0)"
                " + coalesce(length(last_seen), 0)), 0) FROM links"
            )
            sizes["links (in state.db)"] = int(database.execute(rows).fetchone()[0])
            rows = "SELECT coalesce(sum(length(terms)), 0) + 120 * count(*) FROM fetches"
            sizes["journal (in state.db, about)"] = int(database.execute(rows).fetchone()[0])
        return dict(sizes)


def promise(longest_s: float, price: float) -> float:
    """The longest that anything is left alone at a price in units: "No starving" of docs/budget.md."""
    return longest_s * min(max(price, 1.0), MOST_TIMES)


def watch_factors(repository: Repository) -> dict[str, float]:
    """What expectations are corrected by."""
    watch = repository.watch
    if watch is None:
        return {}
    names = type(watch.factors).__dataclass_fields__
    return {name: float(getattr(watch.factors, name)) for name in names}
