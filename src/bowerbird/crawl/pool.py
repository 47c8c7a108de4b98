"""The worker processes: start them, feed them, hear them, and notice when one is lost."""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bowerbird.crawl.report import Failure, FrameReader, Job, Report, Untell, Widen, WorkerSetup, send_frame
from bowerbird.model.errors import BowerbirdError

PIPE_BYTES = 1 << 20
UNTELL_AT_ONCE = 5000
STILLBORN_AT_MOST = 8


@dataclass(slots=True)
class WorkerHandle:
    """One worker process and its pipes."""

    number: int
    process: subprocess.Popen[bytes]
    commands: int
    reports: FrameReader
    outstanding: int = 0
    heard_at: float = 0.0  # when it last reported; 0 = not yet


class WorkerPool:
    """A fixed number of workers; a lost one is replaced."""

    def __init__(self, setup: WorkerSetup, count: int, keep_fds: Sequence[int] = ()) -> None:
        self.setup = setup
        self.keep_fds = tuple(keep_fds)
        self._poll = select.epoll()
        self._serial = 0
        self._stillborn = 0
        self.workers: dict[int, WorkerHandle] = {}
        for _ in range(count):
            self.start_one()

    def start_one(self) -> WorkerHandle:
        """Start a worker process. It inherits the writer lock, so that no other crawl starts while it lives."""
        number = self._serial
        self._serial += 1
        command_read, command_write = os.pipe()
        report_read, report_write = os.pipe()
        for fd in (command_write, report_write):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bowerbird.crawl.worker",
                str(command_read),
                str(report_write),
                str(os.getpid()),
            ],
            pass_fds=(command_read, report_write, *self.keep_fds),
            stdin=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(report_write)
        os.set_blocking(report_read, False)
        setup = pickle.dumps(replace(self.setup, number=number, prefix=f"{self.setup.prefix}-{number}"), protocol=5)
        worker = WorkerHandle(number, process, command_write, FrameReader(report_read))
        self.workers[number] = worker
        self._poll.register(report_read, select.EPOLLIN)
        view = memoryview(len(setup).to_bytes(4, "little") + setup)
        while view:
            view = view[os.write(command_write, view) :]
        return worker

    def send(self, number: int, jobs: list[Job]) -> None:
        """Hand jobs to a worker. The pipe holds far more than a worker may have outstanding."""
        worker = self.workers[number]
        worker.outstanding += len(jobs)
        try:
            send_frame(worker.commands, jobs)
        except BrokenPipeError:
            pass  # it is lost: `lost` says so, and its leases are taken back

    def widen(self, seeds: tuple[str, ...]) -> None:
        """The scope grows by these seeds."""
        self.setup = replace(self.setup, scope_seeds=(*self.setup.scope_seeds, *seeds))
        self._broadcast(Widen(seeds))

    def untell(self, hashes: list[int]) -> None:
        """These URLs were not taken."""
        for first in range(0, len(hashes), UNTELL_AT_ONCE):
            self._broadcast(Untell(tuple(hashes[first : first + UNTELL_AT_ONCE])))

    def _broadcast(self, message: Widen | Untell) -> None:
        for worker in self.workers.values():
            try:
                send_frame(worker.commands, message)
            except BrokenPipeError:
                pass

    def receive(self, timeout_s: float) -> tuple[list[Report], list[Failure]]:
        """Wait for reports at most that long."""
        reports: list[Report] = []
        failures: list[Failure] = []
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
        for worker in self.workers.values():
            os.close(worker.commands)
        for worker in self.workers.values():
            try:
                worker.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            os.close(worker.reports.fd)
        self.workers.clear()
        self._poll.close()
