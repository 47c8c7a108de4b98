"""A crawl in PostgreSQL whose processes are killed at random: started, shot at, started again, and judged at the end.

What the servers saw tells whether hosts were treated politely; what the database holds, whether anything was lost.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from bowerbird.lab.world.wire import Access
from bowerbird.lab.world.world import World
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.url_state import UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

STOP_S = 20.0
LOOK_S = 0.02

#: by URL: state, content and where it links to
Finished = dict[str, tuple[int, int, frozenset[str]]]


@dataclass(slots=True)
class Trial:
    """How a trial went."""

    kills: Counter[str] = field(default_factory=Counter)  # by role
    take_overs_s: list[float] = field(default_factory=list)  # from a coordinator's end to the next one's first lease
    starts_s: list[float] = field(default_factory=list)  # the same where nobody stood by: with the start of a process
    took_s: float = 0.0
    said: str = ""


class _Command:
    """One `bowerbird …` process that is started again whenever it ends before the trial does."""

    def __init__(self, role: str, arguments: Iterable[object], log: Path) -> None:
        self.role = role
        self._line = [sys.executable, "-m", "bowerbird", *map(str, arguments)]
        self._log = log
        self.process = self._start()
        self.start_at: float | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def keep_up(self, rng: random.Random) -> int | None:
        """Start it again a moment after its end; the code it ended with when it ended by itself."""
        code = self.process.poll()
        if code is None:
            return None
        if code >= 0:
            return code
        if self.start_at is None:
            self.start_at = time.monotonic() + rng.uniform(0.0, 1.0)
        elif time.monotonic() >= self.start_at:
            self.process, self.start_at = self._start(), None
        return None

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def run_trial(
    root: Path,
    *,
    workers: int = 4,
    candidates: int = 2,
    kill_every_s: tuple[float, float] = (1.0, 4.0),
    kills: int | None = None,
    fetches_between: int = 20,
    limit_s: float = 600.0,
    seed: int = 1,
) -> Trial:
    """Crawl to the end with `--once` while processes are killed; raises when that does not come in time.

    The first kills go round the roles, so that each has its turn; then whoever is drawn. Between two kills some fetches
    must have become durable: on a machine that is too slow to start anything in between, nothing would ever end.
    """
    rng, trial, log = random.Random(seed), Trial(), root / "trial.log"
    began = time.monotonic()
    with ExitStack() as stack:
        commands = [
            *(
                _Command("candidate", ("crawl", root, "--workers", 0, "--once", "--quiet"), log)
                for _ in range(candidates)
            ),
            *(_Command("supervisor", ("work", root, "--workers", 1), log) for _ in range(workers)),
        ]
        for command in commands:
            stack.callback(command.close)
        watch = stack.enter_context(closing(_Watch(root)))
        next_kill = began + rng.uniform(*kill_every_s) + 2.0
        fetches_at = 0
        turns = ["coordinator", "worker", "supervisor", "candidate"]
        while True:
            codes = [command.keep_up(rng) for command in commands]
            ended = [code for code in codes if code is not None]
            if any(ended):
                raise BowerbirdError(f"a process gave up with {max(ended)}: {log.read_text(errors='replace')[-2000:]}")
            if ended:
                break
            if time.monotonic() - began > limit_s:
                raise BowerbirdError(f"not at its end after {limit_s:g} s: {log.read_text(errors='replace')[-2000:]}")
            watch.look(trial)
            done = sum(trial.kills.values())
            may = watch.fetches >= fetches_at + fetches_between and (kills is None or done < kills)
            if time.monotonic() >= next_kill and may:
                role = turns[done % 4] if done < 8 else rng.choice(turns)
                if _kill(role, commands, watch, rng):
                    trial.kills[role] += 1
                    next_kill, fetches_at = time.monotonic() + rng.uniform(*kill_every_s), watch.fetches
            time.sleep(LOOK_S)
        trial.took_s = time.monotonic() - began
    trial.said = log.read_text(errors="replace")
    return trial


def _kill(role: str, commands: list[_Command], watch: _Watch, rng: random.Random) -> bool:
    """End one of a role as `kill -9` does; False when there is none at this moment."""
    alive = [(command.role, command.process.pid) for command in commands if command.process.poll() is None]
    if role == "coordinator":
        found = [pid for _, pid in alive if pid == watch.leader]
    elif role == "worker":
        found = [child for command, pid in alive if command == "supervisor" for child in _children(pid)]
    else:
        found = [pid for command, pid in alive if command == role and pid != watch.leader]
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(rng.choice(found), signal.SIGKILL)
    if role == "coordinator":
        watch.killed()
    return True


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class _Watch:
    """Looks at the database: who coordinates, and when a new one began to."""

    def __init__(self, root: Path) -> None:
        from bowerbird.store.postgres import PostgresConnection

        url = CrawlFolder(root).store_url
        assert url is not None
        self.connection = PostgresConnection(url, write=False)
        self.leader = 0
        self.fetches = 0
        self._killed_at: float | None = None
        self._stood_by = False
        self._last_term = 0

    def killed(self) -> None:
        """The coordinator was."""
        self._killed_at, self._last_term, self.leader = time.monotonic(), self._term(), 0
        (waiting,) = self.connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock(%'"
        ).fetchone()
        self._stood_by = waiting > 0

    def _term(self) -> int:
        ask = self.connection.execute
        (term,) = ask("SELECT coalesce(max(token), 0) >> 40 FROM leases").fetchone()
        return max(int(term), self._last_term)

    def look(self, trial: Trial) -> None:
        """Now and then."""
        from bowerbird.crawl.live import read_live
        from bowerbird.store.committed import CommittedState

        (fetches,) = self.connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()
        self.fetches = int(fetches)
        live = read_live(CommittedState(CrawlFolder(Path()), connection=self.connection))
        if self._killed_at is None:
            self.leader = int(live.get("pid", 0))
        elif self._term() > self._last_term:
            took = trial.take_overs_s if self._stood_by else trial.starts_s
            took.append(time.monotonic() - self._killed_at)
            self._killed_at = None

    def close(self) -> None:
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Manners:
    """How the hosts were treated, as they saw it."""

    requests: int
    again: int  # requests for what had been asked for before
    most_at_once: int  # requests to one host
    shortest_between_s: float  # from the beginning of one request of a host to that of the next
    shortest_gap_s: float  # from the end of one: a server that is busy notes an end after the client has the answer


def judge_manners(log: list[Access]) -> Manners:
    """Of all requests."""
    by_host: dict[str, list[Access]] = {}
    for access in log:
        by_host.setdefault(access.host, []).append(access)
    between, gaps = [np.inf], [np.inf]
    for visits in by_host.values():
        visits.sort(key=lambda access: access.began_s)
        between += [after.began_s - before.began_s for before, after in pairwise(visits)]
        gaps += [after.began_s - before.ended_s for before, after in pairwise(visits)]
    asked = Counter((access.host, access.path) for access in log)
    most = max(access.in_flight for access in log)
    return Manners(len(log), len(log) - len(asked), most, float(min(between)), float(min(gaps)))


def _place(url: str) -> tuple[str, str]:
    host, _, path = url.partition("//")[2].partition("/")
    return host, f"/{path}"


def read_finished(root: Path, world: World) -> Finished:
    """All that a crawl knows in the end, by URL: so that crawls that met the pages in another order can be compared.

    Without traps: how far a crawl goes into one depends on what it met before.
    """
    repository = Repository(CrawlFolder(root), write=False)
    try:
        columns = repository.table.columns
        urls = [
            str(url) for (url,) in chain.from_iterable(repository.connection.scan("SELECT url FROM urls ORDER BY id"))
        ]
        trap = [world.is_trap(*_place(url)) for url in urls]
        finished: Finished = {}
        for row, url in enumerate(urls):
            if trap[row]:
                continue
            links = repository.links(row) if columns["state"][row] == UrlState.FETCHED else None
            linked = [] if links is None else links.current().tolist()
            targets = frozenset(urls[target] for target in linked if not trap[target])
            finished[url] = (int(columns["state"][row]), int(columns["content_hash"][row]), targets)
        return finished
    finally:
        repository.close()
