"""Has pages, hubs and seeds studied while a crawl runs, by a process of its own, and takes up what it finds.

A study keeps a core busy for seconds to minutes; the crawl must not wait for it. Its file outlives the crawl: the next
run, and everybody who looks, goes on with it. The process does not: it ends with the crawl, however that ends.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import IO

from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.seed_report import last_change_text
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.crawl.study_troubles import Trouble, read_troubles, write_trouble
from bowerbird.demand.workload import mark_heard
from bowerbird.model.errors import BowerbirdError
from bowerbird.model.study import FrontierStudy
from bowerbird.store.repository import Repository

log = logging.getLogger(__name__)

NICE = 10
FIRST_AFTER_S = 2.0
SOONEST_S = 5.0
UPKEEP = 10  # a study comes at least so many times the time of a core that the last took after that,
REST = 2  # and so many times its length: on a busy machine most of that was waiting
SAID_MOST = 4000  # bytes of what a study that failed said, the last: the reason is at the end
LONGEST_S = 1800.0  # a study that takes longer than this, doubled each time that one was ended for it,
LONGEST_TIMES = 20  # and so many times longer than the one before, hangs
ORPHAN_CHECK_S = 1.0
PR_SET_PDEATHSIG = 1  # of prctl
MOST_DOUBLINGS = 20
TOLD = "seeds_told_at"  # in the crawl's folder: the last change of seeds that was told


class Studies:
    """The studies that a crawl needs, by a method each for new pages, known pages, hubs and seeds: one at a time."""

    def __init__(self, repository: Repository, methods: Iterable[str], settings: Settings) -> None:
        self.repository = repository
        self.seeds_said = ""  # of the last change of seeds that was news in this run
        self._told_at = str(repository.meta(TOLD) or "")
        self.parts = tuple(Studying(repository, method, settings) for method in methods)

    @property
    def is_busy(self) -> bool:
        """Is a study under way?"""
        return any(part.is_busy for part in self.parts)

    def keep_up(self, *, may_begin: bool = True) -> None:
        """Once a second or so: as `Studying` does, and whoever waits longest begins first."""
        for part in sorted(self.parts, key=lambda part: part.begun_at):
            part.keep_up(may_begin=may_begin and not self.is_busy)
        self._tell_seeds()

    def _tell_seeds(self) -> None:
        """Each change once, also one that was made while no crawl ran."""
        seeds = self.repository.seed_study
        if seeds is None or not seeds.history or repr(seeds.history[-1].at) == self._told_at:
            return
        self._told_at = repr(seeds.history[-1].at)
        self.repository.set_meta(TOLD, self._told_at)
        self.seeds_said = last_change_text(seeds)
        log.info("%s", self.seeds_said)

    def take_up(self) -> None:
        """Read the study files that are others than the last time."""
        for part in self.parts:
            part.take_up()

    def tell(self) -> tuple[str, float]:
        """What the studies that bids go by rest on, and the age of the oldest; nothing where none is needed."""
        said = [part.tell() for part in self.parts if part.kind.is_bid_by]
        return " + ".join(basis for basis, _ in said), max((age_s for _, age_s in said), default=0.0)

    def close(self) -> None:
        """End, also in the middle of a study."""
        for part in self.parts:
            part.close()


class Studying:
    """Starts, ends and reads the studies by one method, for the writer of a crawl."""

    def __init__(self, repository: Repository, method: str, settings: Settings) -> None:
        self.repository = repository
        self.method = method
        self.kind = kind_of(method)
        self.settings = settings
        self.every_s = self.kind.every_s(settings)
        self.said = ""  # by the last study that failed, or of a file that could not be used
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._begun_at = -math.inf
        self._took_s = 0.0  # by the last study that was made
        self._spent_before_s = 0.0
        self._hangs = False
        self._ended = 0  # times in a row, because it took too long
        self._killed = 0  # times in a row, by somebody else: the system, when memory is short
        self._began_with = -1  # fetches
        self._began_heard: object = None  # of searchers
        self._listened_at = -math.inf
        self._due_at = self._soonest_at = time.monotonic() + FIRST_AFTER_S
        self._trouble = read_troubles(repository).get(method)
        if self._trouble is not None:
            self._ended, self._killed = self._trouble.ended, self._trouble.killed
            wait_s = max(self._trouble.wait_s(repository.connection.now()), FIRST_AFTER_S)
            self._due_at = self._soonest_at = time.monotonic() + wait_s
        self._stamp: tuple[int, int] | None = None

    @property
    def is_busy(self) -> bool:
        """Is a study under way?"""
        return self._process is not None

    @property
    def begun_at(self) -> float:
        """When the last study was begun, by the monotonic clock."""
        return self._begun_at

    def keep_up(self, *, may_begin: bool = True) -> None:
        """Once a second or so: reap a study that ended, take up what it found, begin another when it is time."""
        if self._process is not None:
            if self._process.poll() is not None:
                self._reap(self._process)
            elif not self._hangs and time.monotonic() - self._begun_at > self._longest_s():
                self._hangs = True
                self._process.kill()  # also one that was stopped; it is reaped when it is gone
        self.take_up()
        if may_begin and self._process is None and self._is_due() and self._has_news():
            self._begin()

    def take_up(self) -> None:
        """Read the study file if it is another than the last time."""
        path = self.repository.folder.study(self.method)
        try:
            status = path.stat()
        except OSError:
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        seed, hashes = self.repository.table.seed, self.repository.table.columns["hash"]
        read = self.kind.read(path, seed, hashes, False, None)
        if read.study is not None and read.study.method == self.method:  # else somebody renamed it
            self.kind.put(self.repository, read.study)
            if self._trouble is not None and read.study.at > self._trouble.at:  # made by hand, perhaps
                self._ended = self._killed = 0
                self._due_at = min(self._due_at, time.monotonic() + self.every_s)
                self._keep_trouble(None)
            if self.kind.waits and self._begun_at == -math.inf:  # made before this run
                age_s = max(self.repository.connection.now() - read.study.at, 0.0)
                self._due_at = max(self._due_at, time.monotonic() + self.every_s - age_s)
        if read.note:
            self._note(read.note)

    def tell(self) -> tuple[str, float]:
        """What the study that bids go by rests on, and its age."""
        study = self.kind.of(self.repository)
        if study is None:
            return "none yet", 0.0
        basis = study.calibration.kind if isinstance(study, FrontierStudy) else self.method
        return basis, max(self.repository.connection.now() - study.at, 0.0)

    def close(self) -> None:
        """End, also in the middle of a study."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _longest_s(self) -> float:
        return max(LONGEST_S * 2.0 ** min(self._ended, MOST_DOUBLINGS), LONGEST_TIMES * self._took_s)

    def _is_due(self) -> bool:
        """After a while; sooner while the crawl is so young that it has doubled since."""
        doubled = self._began_with > 0 and self.repository.last_fetch_id >= 2 * self._began_with
        return time.monotonic() >= (min(self._due_at, self._soonest_at) if doubled else self._due_at)

    def _has_news(self) -> bool:
        """Was anything fetched since the last study, or heard of searchers?"""
        if not self.kind.is_ripe(self.repository):
            return False
        return self.repository.last_fetch_id > self._began_with or self._has_heard()

    def _has_heard(self) -> bool:
        """Did searchers ask or click since? One look in the time between two studies is enough."""
        if time.monotonic() - self._listened_at < self.every_s:
            return False
        heard = self._listen()
        return heard is not None and heard != self._began_heard

    def _listen(self) -> object:
        """A mark of all that was heard of searchers; None where the log cannot be read now."""
        self._listened_at = time.monotonic()
        try:
            with open_demand(self.repository.folder, self.settings.demand, write=False) as demand:
                return mark_heard(demand)
        except (BowerbirdError, OSError, sqlite3.Error):
            return None

    def _begin(self) -> None:
        command = [sys.executable, "-m", "bowerbird", "study", str(self.repository.folder.root)]
        heard = self._listen()
        with suppress(OSError):  # a full disk: then what goes wrong is not told
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the study has ended
        try:
            self._process = subprocess.Popen(
                [*command, "--policy", self.method, "--json", "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if self._errors is None else self._errors,
                start_new_session=True,  # Ctrl-C is for us, and we end it
            )
        except OSError as error:
            self._note(f"the study could not be started ({error})")
            self._take_errors()
            self._due_at = time.monotonic() + self.every_s
            return
        self._begun_at, self._began_with = time.monotonic(), self.repository.last_fetch_id
        self._began_heard, self._spent_before_s = heard, spent_by_children_s()
        self._hangs = False
        try:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        except OSError:
            pass  # it has ended already

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        took_s = time.monotonic() - self._begun_at
        most_s = self._longest_s()
        self._killed = self._killed + 1 if process.returncode == -signal.SIGKILL and not self._hangs else 0
        self._ended = self._ended + 1 if self._hangs else 0
        longer = 2.0 ** min(self._killed, MOST_DOUBLINGS)
        # a worker that was lost meanwhile counts, too, up to what a study can have taken
        most = took_s * len(os.sched_getaffinity(0))
        spent_s = took_s if self._hangs else min(spent_by_children_s() - self._spent_before_s, most)
        pause_s = max(UPKEEP * spent_s, REST * took_s)
        self._soonest_at = self._begun_at + longer * max(SOONEST_S, pause_s)
        self._due_at = self._begun_at + longer * max(self.every_s, pause_s)
        if self._ended:
            self._due_at = max(self._due_at, time.monotonic() + self.every_s)
        if self._killed or self._ended:
            self._soonest_at = self._due_at
        self._process = None
        said = self._take_errors()
        wait_s = self._due_at - time.monotonic()
        if self._ended:
            self._fail(f"the study was ended: it took more than {most_s:.0f} s; the next is in {wait_s:.0f} s")
        elif self._killed:
            self._fail(f"the study was killed, perhaps because memory is short; the next is in {wait_s:.0f} s")
        elif process.returncode != 0:
            self._fail(f"the study failed: {said or f'it ended with {process.returncode}'}")
        else:
            self._took_s = took_s
            self._keep_trouble(None)

    def _fail(self, text: str) -> None:
        """Tell it, and have the next run know."""
        self._note(text)
        now = self.repository.connection.now()
        wait_s = self._due_at - time.monotonic() if self._ended or self._killed else 0.0
        self._keep_trouble(Trouble(now, now + max(wait_s, 0.0), self._ended, self._killed, text))

    def _keep_trouble(self, trouble: Trouble | None) -> None:
        self._trouble = trouble
        with suppress(sqlite3.Error):  # a full disk: then the next run does not know
            write_trouble(self.repository, self.method, trouble)

    def _take_errors(self) -> str:
        """The last that the study said of what went wrong."""
        errors, self._errors = self._errors, None
        if errors is None:
            return ""
        with errors:
            errors.seek(max(errors.seek(0, os.SEEK_END) - SAID_MOST, 0))
            return errors.read().decode("utf-8", "replace").strip()

    def _note(self, text: str) -> None:
        if text != self.said:  # once is enough
            self.said = text
            log.warning("%s", text)


def spent_by_children_s() -> float:
    """CPU time of all processes that this one began and that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def end_with_parent(parent: int) -> None:
    """Have this process end when that which started it is gone: nobody would take up what it finds.

    The kernel sees to it where it can (Linux), even while this process is stopped; a thread looks now and then, too.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went before that
        os._exit(1)
    threading.Thread(target=_watch_parent, args=(parent,), name="parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_CHECK_S)
    os._exit(1)
