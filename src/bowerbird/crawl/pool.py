"""The worker processes: start them, feed them, hear them, and notice when one is lost."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bowerbird.crawl.child import Child, start_child
from bowerbird.crawl.report import Failure, FrameReader, Job, Report, Untell, Widen, WorkerSetup, make_frame
from bowerbird.model.errors import BowerbirdError
from bowerbird.schedule.leases import Lease, LeaseBook
from bowerbird.store.url_table import UrlTable

PIPE_BYTES = 1 << 20
OUTBOX_BYTES = 4 << 20
STILLBORN_AT_MOST = 8


@dataclass(slots=True)
class WorkerHandle:
    """One worker process and its pipes."""

    number: int
    process: Child
    commands: int
    reports: FrameReader
    outstanding: int = 0
    outbox: bytearray = field(default_factory=bytearray)  # what its pipe did not take yet
    untold_all: bool = False  # too many refusals to list: it is told to name everything again
    heard_at: float = 0.0  # when it last reported; 0 = not yet


class WorkerPool:
    """A fixed number of workers; a lost one is replaced. They start at once, and work from `begin` on."""

    syncs = False
    unsettled = 0

    def __init__(self, count: int, keep_fds: Sequence[int] = ()) -> None:
        self.setup: WorkerSetup | None = None
        self.keep_fds = tuple(keep_fds)
        self._poll = select.epoll()
        self._serial = 0
        self._stillborn = 0
        self.workers: dict[int, WorkerHandle] = {}
        for _ in range(count):
            self.start_one()

    def begin(self, setup: WorkerSetup) -> None:
        """Tell the workers what they work for."""
        self.setup = setup
        for worker in self.workers.values():
            self._set_up(worker, setup)

    def start_one(self) -> WorkerHandle:
        """Start a worker process. It inherits the writer lock, so that no other crawl starts while it lives."""
        number = self._serial
        self._serial += 1
        command_read, command_write = os.pipe()
        report_read, report_write = os.pipe()
        for fd in (command_write, report_write):
            with contextlib.suppress(OSError):  # an ordinary user has an allowance of pipe memory
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        process = start_child(command_read, report_write, self.keep_fds)
        os.close(command_read)
        os.close(report_write)
        os.set_blocking(report_read, False)
        worker = WorkerHandle(number, process, command_write, FrameReader(report_read))
        self.workers[number] = worker
        self._poll.register(report_read, select.EPOLLIN)
        if self.setup is not None:
            self._set_up(worker, self.setup)
        return worker

    @staticmethod
    def _set_up(worker: WorkerHandle, setup: WorkerSetup) -> None:
        own = replace(setup, number=worker.number, prefix=f"{setup.prefix}-{worker.number}")
        packed = pickle.dumps(own, protocol=5)
        view = memoryview(len(packed).to_bytes(4, "little") + packed)
        with contextlib.suppress(BrokenPipeError):  # it is lost already: `lost` says so
            while view:
                view = view[os.write(worker.commands, view) :]
        os.set_blocking(worker.commands, False)

    def restore(self, table: UrlTable) -> tuple[tuple[int, Lease], ...]:
        """No lease outlives the one who gave it: its workers die with it."""
        return ()

    def settle(self, tokens: list[int]) -> None:
        """Leases are in memory only."""

    def settled(self) -> None:
        """Nothing waits for a commit."""

    def send(self, number: int, jobs: list[Job], leases: LeaseBook) -> None:
        """Hand jobs to a worker."""
        worker = self.workers[number]
        worker.outstanding += len(jobs)
        self._push(worker, jobs)

    def widen(self, seeds: tuple[str, ...]) -> None:
        """The scope grows by these seeds."""
        if self.setup is not None:
            self.setup = replace(self.setup, scope_seeds=(*self.setup.scope_seeds, *seeds))
        for worker in self.workers.values():
            self._push(worker, Widen(seeds))

    def untell(self, hashes: list[int]) -> None:
        """These URLs were not taken."""
        for worker in self.workers.values():
            if len(worker.outbox) > OUTBOX_BYTES:
                worker.untold_all = True
            else:
                self._push(worker, Untell(tuple(hashes)))

    def _push(self, worker: WorkerHandle, message: Any) -> None:
        """Never waits: a worker may itself be waiting for us to read its reports."""
        worker.outbox += make_frame(message)
        self._flush(worker)

    def _flush(self, worker: WorkerHandle) -> None:
        try:
            while worker.outbox:
                del worker.outbox[: os.write(worker.commands, worker.outbox)]
                if not worker.outbox and worker.untold_all:
                    worker.untold_all = False
                    worker.outbox += make_frame(Untell(()))
        except BlockingIOError:
            pass  # the rest goes with the next turn
        except BrokenPipeError:
            worker.outbox.clear()  # it is lost: `lost` says so, and its leases are taken back

    def receive(self, timeout_s: float) -> tuple[list[Report], list[Failure]]:
        """Wait for reports at most that long."""
        reports: list[Report] = []
        failures: list[Failure] = []
        for worker in self.workers.values():
            if worker.outbox:
                self._flush(worker)
        ready = {fd for fd, _ in self._poll.poll(max(timeout_s, 0.0))}
        for worker in self.workers.values():
            if worker.reports.fd not in ready:
                continue
            for message in worker.reports.read_available():
                self._sort(message, worker, reports, failures)
            if worker.reports.closed:
                self._poll.unregister(worker.reports.fd)
        return reports, failures

    @staticmethod
    def _sort(message: Any, worker: WorkerHandle, reports: list[Report], failures: list[Failure]) -> None:
        if isinstance(message, Failure):
            failures.append(message)
        else:
            worker.heard_at = time.time()
            worker.outstanding -= len(message)
            reports.extend(message)

    def end_if_silent(self, number: int, since: float) -> None:
        """A worker that holds an expired lease and has said nothing since then hangs: end it, and it is replaced."""
        worker = self.workers.get(number)
        if worker is not None and worker.heard_at < since:
            worker.process.kill()

    def lost(self) -> list[int]:
        """Workers that ended by themselves; they are taken out. Raises when none lives long enough to report."""
        gone = [worker for worker in self.workers.values() if worker.reports.closed]
        for worker in gone:
            self._stillborn = 0 if worker.heard_at else self._stillborn + 1
            del self.workers[worker.number]
            os.close(worker.commands)
            os.close(worker.reports.fd)
            worker.process.kill()
            worker.process.wait()
        if self._stillborn > STILLBORN_AT_MOST:
            raise BowerbirdError(
                f"{self._stillborn} workers in a row ended before they reported: see their errors above."
            )
        return [worker.number for worker in gone]

    def close(self, patience_s: float = 2.0) -> None:
        """Let the workers end, and end those that do not."""
        give_up = time.monotonic() + patience_s
        for worker in self.workers.values():
            os.close(worker.commands)
        for worker in self.workers.values():
            try:
                worker.process.wait(max(give_up - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            os.close(worker.reports.fd)
        self.workers.clear()
        self._poll.close()
