"""A worker of a crawl in PostgreSQL: a process on any machine that sees the crawl's folder.

It fetches and reads as every worker does (`crawl/worker.py`); a thread carries orders and reports between it and the
database. Every second it says there that it lives. When it could not for so long that others may have its hosts by now,
it ends itself, whatever it is doing: so no host is ever asked by two. Until then a session that was lost is replaced by
another: a restart of the database costs it nothing.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from bowerbird.crawl.report import Job, Report, WorkerSetup, make_frame
from bowerbird.crawl.report_wire import WireError, pack_reports, unpack_notice
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.worker import Worker, die_with_parent
from bowerbird.model.clock import FollowingClock
from bowerbird.model.errors import BowerbirdError, StoreError, StoreLostError
from bowerbird.store import exchange
from bowerbird.store.archive import sync_file
from bowerbird.store.committed import CommittedState
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres_schema import open_postgres
from bowerbird.store.pulse import GIVEN_UP

TURN_S = 0.03
IDLE_TURN_S = 0.15  # when nothing came for a while
IDLE_AFTER_S = 2.0
ALIVE_EVERY_S = 1.0
WATCH_EVERY_S = 0.2
BATCH_REPORTS = 64
PATIENCE_S = 3.0  # for what is in flight when it is told to stop
TRY_AGAIN_S, TRY_AGAIN_MOST_S = 0.1, 1.0


def archive_prefix(number: int) -> str:
    """How the archive files of a worker begin; no other's ever did."""
    return f"bowerbird-w{number:06d}"


def steady_clock() -> float:
    """Seconds that pass also while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Line:
    """Between a worker and the database, in a thread of its own."""

    def __init__(
        self,
        connection: Connection,
        connect: Callable[[], Connection],
        number: int,
        archive: Path,
        commands: int,
        fetch_takes_s: float,
        stopping: threading.Event,
        count: int = -1,
    ) -> None:
        self.connection = connection
        self._connect = connect  # again
        self.clock = FollowingClock(lambda: self.connection.now())
        self.number = number
        self.archive = archive
        self.fetch_takes_s = fetch_takes_s  # at most
        self.in_flight: Callable[[], int] = lambda: 0
        os.set_blocking(commands, False)
        self._commands = commands
        self._outbox = bytearray()
        self._queue: queue.Queue[list[Report]] = queue.Queue(16)
        self._batch: list[Report] = []  # on its way
        self._wake = threading.Event()
        self._count = count  # who started it hears there, byte by byte, how much was handed in
        self._stopping = stopping  # it takes no more orders; what is in flight has a little time
        self._closing = threading.Event()
        self._lives_until = steady_clock() + exchange.LIVES_S
        self._said_at = self._busy_at = -1e9
        self._last_token = 0
        self._last_notice = 0
        self._thread = threading.Thread(target=self._run, name="line", daemon=True)

    def start(self) -> None:
        """Begin to take orders."""
        self._thread.start()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def send(self, message: list[Report]) -> None:
        """Put reports in line; waits while many are."""
        self._queue.put(message)
        self._wake.set()

    def check(self) -> None:
        """Before anything is fetched: may it still be?"""
        if steady_clock() > self._lives_until:
            os._exit(GIVEN_UP)

    def close(self) -> None:
        """Hand in what is left, say goodbye, end."""
        self._closing.set()
        self._wake.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            time.sleep(WATCH_EVERY_S)
            self.check()

    def _run(self) -> None:
        try:
            stop_at = None
            while not self._closing.is_set():
                try:
                    self._exchange()
                except StoreLostError as error:
                    self._come_back(error)
                    continue
                if self._stopping.is_set() and stop_at is None:
                    stop_at = steady_clock() + PATIENCE_S
                elif stop_at is not None and self._commands >= 0 and (not self.in_flight() or steady_clock() > stop_at):
                    os.close(self._commands)
                    self._commands = -1
                idle = steady_clock() - self._busy_at > IDLE_AFTER_S
                self._wake.wait(IDLE_TURN_S if idle else TURN_S)
                self._wake.clear()
            self._hand_in()
            exchange.leave(self.connection, self.number)
        except BaseException as error:  # without the line there is nothing to do here, and nobody to say so
            print(f"bowerbird: worker {self.number}: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    def _exchange(self) -> None:
        self._say_alive()
        self._hand_in()
        self._flush()
        if not self._stopping.is_set():
            self._take_orders()

    def _come_back(self, error: StoreLostError) -> None:
        """Another session, for as long as this worker lives. What it was about to say it says again."""
        print(f"bowerbird: worker {self.number}: {error} Trying again.", file=sys.stderr, flush=True)
        self.connection.close()
        pause_s = TRY_AGAIN_S
        while True:
            self.check()
            try:
                self.connection = self._connect()
                return
            except StoreLostError:
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, TRY_AGAIN_MOST_S)

    def _say_alive(self) -> None:
        now = steady_clock()  # before it is said: others count from later on
        if now - self._said_at < ALIVE_EVERY_S:
            return
        if not exchange.say_alive(self.connection, self.number):
            os._exit(GIVEN_UP)
        self._said_at, self._lives_until = now, now + exchange.LIVES_S
        self.clock.follow()
        for number, data in exchange.read_notices(self.connection, self._last_notice):
            self._last_notice = number
            try:
                self._command(unpack_notice(bytes(data)))
            except WireError:
                continue

    def _hand_in(self) -> None:
        """What was archived is synced first: the coordinator, perhaps on another machine, cannot see to that."""
        while self._batch or not self._queue.empty():
            while len(self._batch) < BATCH_REPORTS and not self._queue.empty():
                self._batch.extend(self._queue.get())
            for name in {report.place.file for report in self._batch if report.place is not None}:
                sync_file(self.archive / name)
            exchange.hand_in(self.connection, self.number, pack_reports(self._batch))
            if self._count >= 0:
                with suppress(OSError):  # nobody listens, or not for long: it is only said to people
                    os.write(self._count, bytes(len(self._batch)))
            self._batch = []
            self._busy_at = steady_clock()
            self._say_alive()

    def _take_orders(self) -> None:
        orders = exchange.read_orders(self.connection, self.number, self._last_token, self.fetch_takes_s)
        if orders:
            self._busy_at = steady_clock()
            self._last_token = orders[-1].token
            self._command([Job(one.token, one.url, one.etag, one.last_modified, one.flags) for one in orders])

    def _command(self, message: object) -> None:
        """To the worker."""
        self._outbox += make_frame(message)
        self._flush()

    def _flush(self) -> None:
        """Never waits: the worker may itself be waiting for its reports to be taken."""
        with suppress(BlockingIOError):  # the rest goes with the next turn
            while self._outbox and self._commands >= 0:
                del self._outbox[: os.write(self._commands, self._outbox)]


def work(root: Path, count: int = -1) -> None:
    """Be a worker until told to stop; `count` is where its reports are counted."""
    folder = CrawlFolder(root)
    settings = load_settings(folder.config)
    url = folder.store_url
    if url is None:
        raise StoreError(f"{root}: its database is in the folder, so only `bowerbird crawl` can fetch for it.")
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    connect = partial(open_postgres, url, write=True)
    connection = connect()
    number = exchange.register(connection, socket.gethostname(), os.getpid())
    state = CommittedState(folder, connection=connection)
    setup = WorkerSetup(
        number,
        str(root),
        archive_prefix(number),
        settings,
        state.seeds(),
        int(str(state.meta("hash_seed"))),
    )
    reading, writing = os.pipe()
    line = Line(connection, connect, number, folder.archive, writing, settings.fetch.total_s, stopping, count)
    worker = Worker(setup, reading, line, line.check, line.clock)
    line.in_flight = lambda: worker.fetcher.in_flight
    line.start()
    worker.run()
    line.close()
    line.connection.close()
    os.close(reading)


def main(arguments: list[str]) -> int:
    """Entry of the process: the crawl's folder, the parent's pid, and where reports are counted."""
    root, parent = Path(arguments[0]), int(arguments[1])
    die_with_parent(parent)
    gc.set_threshold(50_000, 20, 50)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(root, int(arguments[2]))
    except BowerbirdError as error:
        print(f"bowerbird: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
