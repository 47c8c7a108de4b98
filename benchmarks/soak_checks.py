"""What `kill -9` must not lose. Two kinds of witness: what readers saw in the folder before, and who was outside of it.

The world has a log of every request it answered, the searchers count their clicks: neither goes through the crawl.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.live import read_live
from bowerbird.crawl.study_kinds import KINDS
from bowerbird.lab.world.wire import Access
from bowerbird.model.url_state import UrlState
from bowerbird.store.folder import WriterLock
from bowerbird.store.repository import Repository
from soak_watch import FolderWatch, connect, watch_factors

BACK_WITHIN_S = 60.0
PRICE_WITHIN = 2.0  # times the range that the price had before


@dataclass(slots=True)
class Learnt:
    """What a folder holds at a moment, as any reader finds it."""

    at: float
    urls: int
    url_marks: np.ndarray[Any, Any]  # (id, hash of the URL)
    fetches: int
    newest_fetch: float
    gains: int
    newest_gain: float
    clicks: int
    studies: dict[str, float]  # when each was made
    factors: dict[str, float]
    price: float  # in clicks
    pid: int
    forgotten: int
    notes: dict[str, str] = field(default_factory=dict)


def read_learnt(watch: FolderWatch) -> Learnt:
    """Whatever state the folder is in."""
    folder = watch.folder
    streams = open_studies(folder, watch.methods)
    repository = Repository(folder, write=False, default_interval_s=watch.settings.refresh.interval_s)
    with closing(repository), closing(connect(folder.root / "demand.db")) as demand:
        notes = attach_studies(repository, streams)
        for stream in streams.values():
            stream.close()
        database = repository.connection
        marks = np.array(database.execute("SELECT id, hash FROM urls ORDER BY id").fetchall(), dtype=np.int64)
        fetches, newest = database.execute("SELECT count(*), coalesce(max(fetched_at), 0) FROM fetches").fetchone()
        gains, newest_gain = database.execute("SELECT count(*), coalesce(max(at), 0) FROM gains").fetchone()
        live = read_live(repository)
        studies = {kind.name: kind.of(repository) for kind in KINDS}
        return Learnt(
            time.time(),
            len(marks),
            marks,
            int(fetches),
            float(newest),
            int(gains),
            float(newest_gain),
            _count_clicks(demand),
            {name: study.at for name, study in studies.items() if study is not None},
            watch_factors(repository),
            float(live.get("price", 0.0)) * float(live.get("unit", 0.0)),
            int(live.get("pid", 0)),
            int(np.count_nonzero(repository.table.columns["state"] == UrlState.FORGOTTEN)),
            {name: note for name, note in notes.items() if note},
        )


def _count_clicks(demand: sqlite3.Connection) -> int:
    try:
        return int(demand.execute("SELECT coalesce(sum(clicks), 0) FROM activity").fetchone()[0])
    except sqlite3.OperationalError:  # nobody has searched yet
        return 0


@dataclass(slots=True)
class Kill:
    """One kill, and what became of everything."""

    at: float
    older_s: float  # what was learnt longer ago than this must be there
    began: float  # the run that was killed
    before: Learnt
    prices: list[float]  # in clicks, as samples before had them
    minute: float = 0.0  # of the soak
    checks: list[dict[str, Any]] = field(default_factory=list)
    in_flight: list[str] = field(default_factory=list)
    restarted_at: float = 0.0
    back_s: float | None = None

    def check(self, name: str, ok: bool, detail: str) -> None:
        """Keep a result."""
        self.checks.append({"minute": round(self.minute, 1), "check": name, "ok": bool(ok), "detail": detail})


def check_survivors(kill: Kill, watch: FolderWatch, alive: Sequence[int]) -> None:
    """Right after the kill: nobody may be left who writes."""
    kill.check("all processes are gone", not alive, f"left: {list(alive)}" if alive else "none left")
    kill.check("the writer's lock is free", not WriterLock.is_held(watch.folder), "")


def check_folder(
    kill: Kill, watch: FolderWatch, log: Iterable[Access], clicks: Sequence[tuple[float, int]], earlier: Learnt | None
) -> Learnt:
    """After the kill, before the restart: what is in the folder against what was known before."""
    after, before = read_learnt(watch), kill.before
    limit = kill.at - kill.older_s
    same = len(after.url_marks) >= before.urls and bool((after.url_marks[: before.urls] == before.url_marks).all())
    kill.check("no URL is forgotten", same and after.forgotten <= before.forgotten, f"{before.urls} -> {after.urls}")
    kill.check(
        "the journal has every row that was seen",
        after.fetches >= before.fetches,
        f"{before.fetches} -> {after.fetches}, the newest {kill.at - after.newest_fetch:.1f} s before the kill",
    )
    missing, old, kill.in_flight = compare_with_log(kill, watch, log)
    kill.check(
        "what the web was asked for is in the journal",
        not missing,
        f"{len(missing)} of {old} requests older than {kill.older_s:.0f} s missing {missing[:3] or ''}; "
        f"{len(kill.in_flight)} younger ones lost",
    )
    told = max((count for at, count in clicks if at <= limit), default=0)
    kill.check("clicks", after.clicks >= max(told, before.clicks), f"{told} made, {after.clicks} recorded")
    kill.check(
        "measured gains",
        after.gains >= before.gains and after.newest_gain >= before.newest_gain,
        f"{before.gains} -> {after.gains}, the newest {kill.at - after.newest_gain:.1f} s before the kill"
        if after.gains
        else "none yet",
    )
    wanted = {**(earlier.studies if earlier is not None else {}), **before.studies}
    lost = [name for name, at in wanted.items() if after.studies.get(name, 0.0) < at]
    ages = ", ".join(f"{name} {kill.at - at:.0f} s" for name, at in after.studies.items())
    kill.check(
        "studies can be read, none is older", not lost and not after.notes, f"{ages} {after.notes or ''}{lost or ''}"
    )
    same_watch = after.studies.get("budget") != before.studies.get("budget") or after.factors == before.factors
    kill.check("factors of the watch", same_watch, ", ".join(f"{k} {v:.2f}" for k, v in after.factors.items()))
    kill.check(
        "the price",
        abs(after.price - before.price) <= 0.5 * before.price,
        f"{before.price:.3g} -> {after.price:.3g} clicks",
    )
    return after


def compare_with_log(kill: Kill, watch: FolderWatch, log: Iterable[Access]) -> tuple[list[str], int, list[str]]:
    """Requests of the run that ended: old ones missing in the journal, how many are old, young ones missing."""
    with closing(connect(watch.folder.database)) as database:
        recorded = Counter(
            url
            for (url,) in database.execute(
                "SELECT urls.url FROM fetches JOIN urls ON urls.id = fetches.url WHERE fetched_at >= ?",
                (kill.began - 1.0,),
            )
        )
    asked = sorted(
        (access.began_s, f"http://{access.host}{access.path}")
        for access in log
        if kill.began <= access.began_s <= kill.at and access.method == "GET" and access.path != "/robots.txt"
    )
    limit = kill.at - kill.older_s
    missing, young, old = [], [], 0
    for at, url in asked:
        old += at <= limit
        if recorded[url]:
            recorded[url] -= 1
        else:
            (missing if at <= limit else young).append(url)
    return missing, old, young


def check_return(kill: Kill, watch: FolderWatch, now: float) -> bool:
    """After the restart: is it at work, by what was learnt? True when there is nothing more to wait for."""
    with closing(connect(watch.folder.database)) as database:
        first = database.execute(
            "SELECT min(fetched_at) FROM fetches WHERE decided_at > ?", (kill.restarted_at,)
        ).fetchone()[0]
        (text,) = database.execute("SELECT value FROM meta WHERE key = 'live'").fetchone()
    live = orjson.loads(text)
    if first is not None and kill.back_s is None and live["pid"] != kill.before.pid:
        kill.back_s = float(first) - kill.restarted_at
        learnt = read_learnt(watch)
        low, high = min(kill.prices, default=0.0) / PRICE_WITHIN, max(kill.prices, default=np.inf) * PRICE_WITHIN
        kill.check("at work again", kill.back_s <= BACK_WITHIN_S, f"first fetch after {kill.back_s:.1f} s")
        if kill.before.price > 0:
            kill.check(
                "the price goes on",
                low <= learnt.price <= high,
                f"{learnt.price:.3g} clicks; before {kill.before.price:.3g}; allowed {low:.3g} to {high:.3g}",
            )
        basis = str(live["study_basis"])
        studied = len(kill.before.studies) < len(KINDS) or "none yet" not in basis
        kill.check("studies are taken up again", studied, basis)
    return kill.back_s is not None and now - kill.restarted_at >= kill.older_s


def check_leases(kill: Kill, watch: FolderWatch) -> None:
    """A while after the restart: what was in flight can be fetched, and is."""
    if kill.back_s is None:
        kill.check("at work again", False, "no fetch since the restart")
    wanted = list(dict.fromkeys(kill.in_flight))
    again, held = 0, []
    repository = Repository(watch.folder, write=False, default_interval_s=watch.settings.refresh.interval_s)
    with closing(repository):
        columns, now = repository.table.columns, time.time()
        for url in wanted:
            row = repository.table.find_url(url)
            if row is None:
                continue  # it had not been recorded: found again through its links
            fetched = columns["last_fetched"][row] > kill.restarted_at
            again += bool(fetched)
            if not fetched and columns["not_before"][row] > now + 1.0:
                held.append(url)
    kill.check(
        "no lease is stuck",
        not held,
        f"{len(wanted)} in flight, {again} fetched again, {len(held)} held {held[:3] or ''}",
    )
