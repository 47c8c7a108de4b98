"""A worker process: fetches what it is told, reads it, archives it, and reports. It decides nothing."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from bowerbird.crawl.reading import RESOLVED_KEPT, Reader, load_kernels
from bowerbird.crawl.report import (
    ROBOTS_JOB,
    Failure,
    FrameReader,
    FrameWriter,
    Job,
    Place,
    Report,
    Untell,
    Widen,
    WorkerSetup,
)
from bowerbird.crawl.scope import Scope
from bowerbird.model.clock import Clock
from bowerbird.model.errors import BowerbirdError, DiskFullError
from bowerbird.model.outcome import Outcome
from bowerbird.store.archive import ArchiveWriter
from bowerbird.web.address import AddressPolicy
from bowerbird.web.fetcher import Fetcher, FetchRequest, FetchResult
from bowerbird.web.url import Canonicaliser

ROBOTS_MAX_BYTES = 512 << 10
ROBOTS_MAX_HOPS = 5
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WORKER_NAME = b"bower-worker"
FLUSH_REPORTS = 32
FLUSH_S = 0.03


class Sink(Protocol):
    """Takes reports on their way."""

    def send(self, message: list[Report], /) -> None:
        """Send them; waits while too many are."""


class Worker:
    """The loop of one worker process."""

    def __init__(
        self,
        setup: WorkerSetup,
        commands: int,
        reports: Sink,
        check: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        settings = setup.settings
        self.check = check  # may it go on?
        self.scope = Scope(settings.scope_rules, setup.scope_seeds)
        self.reader = Reader(
            Canonicaliser(settings.urls, RESOLVED_KEPT),
            self.scope,
            agent=settings.crawl.product,
            hash_seed=setup.hash_seed,
            max_links=settings.crawl.max_links_per_page,
            follow_nofollow=settings.crawl.follow_nofollow,
            path_repetitions=settings.traps.path_repetitions,
        )
        self.fetcher = Fetcher(
            settings.user_agent, settings.fetch, AddressPolicy(settings.network.allow_addresses), clock
        )
        self.archive = ArchiveWriter(
            Path(setup.root) / "archive",
            setup.prefix,
            software=settings.user_agent.split(" ")[0],
            user_agent=settings.user_agent,
            max_file_bytes=settings.archive.max_file_mb << 20,
            gzip_level=settings.archive.gzip_level,
            clock=clock,
        )
        os.set_blocking(commands, False)
        self.commands = FrameReader(commands)
        self.reports = reports
        self.fetcher.watch(commands)
        self._robots: dict[int, tuple[str, int]] = {}
        self._out: list[Report] = []
        self._flushed_at = 0.0

    def run(self) -> None:
        """Serve until the coordinator closes the pipe."""
        load_kernels()
        gc.collect()
        gc.freeze()  # what is here by now stays: no need to look at it again
        while not self.commands.closed:
            self.check()
            results = self.fetcher.poll(FLUSH_S if self._out else 1.0)
            for message in self.commands.read_available():
                self._obey(message)
            for left, result in zip(range(len(results) - 1, -1, -1), results, strict=True):
                self._handle(result)
                # a worker that runs out of work tells so soon; a busy one sends larger batches
                if len(self._out) >= min(FLUSH_REPORTS, 1 + (left + self.fetcher.in_flight) // 2):
                    self._flush()
            if self._out and (not self.fetcher.in_flight or time.monotonic() - self._flushed_at > FLUSH_S):
                self._flush()
        self.archive.close()
        self.fetcher.close()

    def _obey(self, message: list[Job] | Widen | Untell) -> None:
        if isinstance(message, Widen):
            self.scope.extend(message.seeds)
            self.reader.memory.clear()
            return
        if isinstance(message, Untell):
            self.reader.memory.untell(message.hashes)
            return
        for job in message:
            if job.flags & ROBOTS_JOB:
                self._ask_robots(job.token, job.url, job.url, 0)
            else:
                self.fetcher.submit(FetchRequest(job.token, job.url, job.etag, job.last_modified))

    def _ask_robots(self, token: int, target: str, url: str, hops: int) -> None:
        self._robots[token] = (url, hops)
        self.fetcher.submit(
            FetchRequest(token, target, any_type=True, max_body_bytes=ROBOTS_MAX_BYTES, keep_partial=True)
        )

    def _handle(self, result: FetchResult) -> None:
        robots = self._robots.pop(result.token, None)
        if robots is not None:
            self._handle_robots(result, *robots)
            return
        report = self.reader.read(result)
        if result.outcome in (Outcome.OK, Outcome.REDIRECT, Outcome.GONE) and result.header_block:
            report.place = self._keep(result, report)
        elif result.outcome is Outcome.NOT_MODIFIED:
            report.place = self._keep_revisit(result)
        self._out.append(report)

    def _handle_robots(self, result: FetchResult, url: str, hops: int) -> None:
        """robots.txt is followed over redirects here, as RFC 9309 asks: at least five hops."""
        if result.outcome is Outcome.REDIRECT and hops < ROBOTS_MAX_HOPS:
            target = self.reader.canonicaliser.resolve(result.url, [result.location])[0]
            if target is not None:
                self._ask_robots(result.token, target, url, hops + 1)
                return
        outcome = result.outcome
        if outcome is Outcome.TOO_LARGE and result.body:
            outcome = Outcome.OK  # RFC 9309 (2.5): its beginning is obeyed, and kept, as a whole file is
        report = Report(
            result.token,
            url,
            outcome,
            result.started_at,
            result.elapsed_s,
            result.status,
            error=result.error,
        )
        report.retry_after_s = result.retry_after_s
        if outcome is Outcome.OK:
            report.body = result.body[:ROBOTS_MAX_BYTES]
        self._out.append(report)

    def _keep(self, result: FetchResult, report: Report) -> Place:
        place = self.archive.write_exchange(
            url=result.url,
            fetched_at=result.started_at,
            remote_ip=result.remote_ip,
            request_block=result.request_block,
            header_block=result.header_block,
            raw_body=result.raw_body,
            metadata={"media": report.media, "language": report.language} if report.media else {},
            truncated="length" if result.truncated else "",
        )
        return Place(place.file, place.offset, place.length, place.offset + place.length)

    def _keep_revisit(self, result: FetchResult) -> Place:
        place = self.archive.write_revisit(
            url=result.url,
            fetched_at=result.started_at,
            remote_ip=result.remote_ip,
            request_block=result.request_block,
            header_block=result.header_block,
            metadata={},
        )
        return Place(place.file, place.offset, place.length, place.offset + place.length)

    def _flush(self) -> None:
        """Send what is ready. It is in the archive already, whose writes are not buffered."""
        out, self._out = self._out, []
        self._flushed_at = time.monotonic()
        self.reports.send(out)


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent goes, however it goes (Linux); and have a name in `top`."""
    try:
        kernel = ctypes.CDLL(None, use_errno=True)
        kernel.prctl(1, signal.SIGKILL)
        kernel.prctl(15, WORKER_NAME)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        sys.exit(0)


def main(arguments: list[str]) -> int:
    """Entry of the process: file descriptors of the two pipes, and the parent's pid."""
    commands, reports, parent = (int(argument) for argument in arguments)
    die_with_parent(parent)
    gc.set_threshold(50_000, 20, 50)  # pages make many small objects and hardly any cycles
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with os.fdopen(os.dup(commands), "rb", buffering=0) as pipe:
            size = int.from_bytes(_read_exactly(pipe, 4), "little")
            setup: WorkerSetup = pickle.loads(_read_exactly(pipe, size))
    except BrokenPipeError:  # the coordinator changed its mind before it said what to do
        return 0
    writer = FrameWriter(reports)
    failure: Failure | None = None
    try:
        Worker(setup, commands, writer).run()
    except BowerbirdError as error:
        failure = Failure(str(error), disk_full=isinstance(error, DiskFullError))
    except OSError as error:
        failure = Failure(f"worker {setup.number}: {error}", error.errno in DISK_FULL)
    if failure is not None:
        writer.send(failure)
    writer.close()
    return 0 if failure is None else 1


def _read_exactly(pipe: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = pipe.read(size - len(data))
        if not part:
            raise BrokenPipeError
        data += part
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
