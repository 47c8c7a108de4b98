"""Has the frontier studied now and then while a crawl runs, by a process of its own, and takes up what it finds.

A study keeps a core busy for seconds to minutes; the crawl must not wait for it. Its file outlives the crawl: the next
run, and everybody who looks, goes on with it.
"""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import tempfile
import time
from typing import IO

from bowerbird.crawl.settings import Settings
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import read_study

log = logging.getLogger(__name__)

NICE = 10
FIRST_AFTER_S = 2.0
FEWEST_FETCHES = 20  # before there is anything to learn from
SOONEST_S = 5.0
UPKEEP = 10  # a study comes at least so many times its own length after the last
SAID_MOST = 4000  # bytes of what a study that failed said


class Studying:
    """Starts, ends and reads studies for the writer of a crawl. Without a method it only looks on."""

    def __init__(self, repository: Repository, method: str | None, settings: Settings) -> None:
        self.repository = repository
        self.method = method
        self.every_s = settings.frontier.study_every_s
        self.said = ""  # by the last study that failed, or of a file that could not be used
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._begun_at = -math.inf
        self._began_with = -1  # fetches
        self._due_at = self._soonest_at = time.monotonic() + FIRST_AFTER_S
        self._stamp: tuple[int, int] | None = None

    def keep_up(self) -> None:
        """Once a second or so: reap a study that ended, take up what it found, begin another when it is time."""
        if self.method is None:
            return
        if self._process is not None and self._process.poll() is not None:
            self._reap(self._process)
        self.take_up()
        if self._process is None and self._is_due() and self._has_news():
            self._begin()

    def take_up(self) -> None:
        """Read the study file if it is another than the last time."""
        if self.method is None:
            return
        path = self.repository.folder.study
        try:
            status = path.stat()
        except OSError:
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        table = self.repository.table
        read = read_study(path, table.seed, table.columns["hash"])
        if read.study is None:
            self._note(read.note)
        elif read.study.method == self.method:  # somebody may have had the crawl studied by another
            self.repository.study = read.study

    def close(self) -> None:
        """End, also in the middle of a study."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _is_due(self) -> bool:
        """After a while; sooner while the crawl is so young that it has doubled since."""
        doubled = self._began_with > 0 and self.repository.last_fetch_id >= 2 * self._began_with
        return time.monotonic() >= (min(self._due_at, self._soonest_at) if doubled else self._due_at)

    def _has_news(self) -> bool:
        fetches = self.repository.last_fetch_id
        return fetches > self._began_with and fetches >= FEWEST_FETCHES

    def _begin(self) -> None:
        command = [sys.executable, "-m", "bowerbird", "study", str(self.repository.folder.root)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the study has ended
        try:
            self._process = subprocess.Popen(
                [*command, "--policy", str(self.method), "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C is for us, and we end it
            )
        except OSError as error:
            self._note(f"the study could not be started ({error})")
            self._errors.close()
            self._errors = None
            self._due_at = time.monotonic() + self.every_s
            return
        self._begun_at, self._began_with = time.monotonic(), self.repository.last_fetch_id
        try:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        except OSError:
            pass  # it has ended already

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        took_s = time.monotonic() - self._begun_at
        self._soonest_at = self._begun_at + max(SOONEST_S, UPKEEP * took_s)
        self._due_at = self._begun_at + max(self.every_s, UPKEEP * took_s)
        self._process = None
        if self._errors is not None:
            self._errors.seek(0)
            said = self._errors.read(SAID_MOST).decode("utf-8", "replace").strip()
            self._errors.close()
            self._errors = None
            if process.returncode != 0:
                self._note(f"the study failed: {said}")

    def _note(self, text: str) -> None:
        if text != self.said:  # once is enough
            self.said = text
            log.warning("%s", text)
