"""The workers of one machine for a crawl in PostgreSQL: started, started again when they end, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bowerbird.crawl.child import ONE_THREAD

SOON_S = 0.2
LATER_S = 15.0  # at most, between two starts of one that ends at once
LIVES_S = 5.0  # and it did not end at once


@dataclass(slots=True)
class _Place:
    process: subprocess.Popen[bytes] | None = None
    began_at: float = 0.0
    start_at: float = 0.0
    fell: int = 0  # times in a row, at once


class Crew:
    """So many workers; they die with this process."""

    def __init__(self, root: Path, count: int) -> None:
        self.root = root
        self.handed_in = 0  # pages and robots.txt, by all workers there were
        self._counts, self._count = os.pipe()  # a byte for each
        for end in (self._counts, self._count):
            os.set_blocking(end, False)
        self._places = [_Place() for _ in range(count)]
        self.keep_up()

    @property
    def pids(self) -> list[int]:
        """Those that were last seen alive."""
        return [place.process.pid for place in self._places if place.process is not None]

    def keep_up(self) -> None:
        """Now and then: in the place of those that ended others are started, at once or after a while."""
        now = time.monotonic()
        self._add_up()
        for place in self._places:
            if place.process is not None and place.process.poll() is not None:
                place.process = None
                place.fell = 0 if now - place.began_at > LIVES_S else place.fell + 1
                place.start_at = now + min(SOON_S * 2.0 ** min(place.fell, 10), LATER_S)
            if place.process is None and now >= place.start_at:
                place.process, place.began_at = self._start(), now

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "bowerbird.crawl.remote_worker", str(self.root), str(os.getpid())]
        return subprocess.Popen(
            [*command, str(self._count)],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            pass_fds=(self._count,),
        )

    def _add_up(self) -> None:
        with suppress(BlockingIOError):  # nothing more for now
            while counted := os.read(self._counts, 1 << 16):
                self.handed_in += len(counted)

    def close(self, patience_s: float = 6.0) -> None:
        """Let them finish what they are at, and end those that do not."""
        alive = [place.process for place in self._places if place.process is not None]
        for process in alive:
            process.terminate()
        give_up = time.monotonic() + patience_s
        for process in alive:
            try:
                process.wait(max(give_up - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._places = []
        self._add_up()
        os.close(self._counts)
        os.close(self._count)
