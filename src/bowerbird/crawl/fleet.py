"""Workers on any machine, as the coordinator has them: leases go out and reports come in over the database.

A lease is durable before its worker can see it, and it goes in the transaction that makes durable what became of it. So
whoever takes over finds every lease that may still be fetched, and keeps off those hosts until it is over.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bowerbird.crawl.report import ROBOTS_JOB, Failure, Job, Report, Untell, Widen, WorkerSetup
from bowerbird.crawl.report_wire import WireError, pack_notice, unpack_reports
from bowerbird.model.clock import FollowingClock
from bowerbird.model.url_state import FetchKind
from bowerbird.schedule.leases import LOST_ROW, ROBOTS_ROW, Lease, LeaseBook
from bowerbird.store import exchange
from bowerbird.store.connection import Connection
from bowerbird.store.election import SharedClaim
from bowerbird.store.url_table import UrlTable

log = logging.getLogger(__name__)

BATCHES = 32  # taken at a time
POLL_S = 0.01
LATE_NUMBERS = 1000  # of batches: numbers are given before they are committed
LOOK_EVERY_S, LOOK_RARELY = 1.0, 50  # a look from the first number on takes a fiftieth of the time
TERM_BITS = 40  # below them, a token counts the leases of one term of office


@dataclass(slots=True)
class RemoteWorker:
    """A worker that lives, and how much it holds."""

    number: int
    outstanding: int = 0
    heard_at: float = 0.0


class Fleet:
    """The workers that are registered at the database; those that come join within a second."""

    syncs = True

    def __init__(
        self, connection: Connection, clock: FollowingClock, keep_up: Callable[[], None] = lambda: None
    ) -> None:
        self.connection = connection
        self.clock = clock
        self.workers: dict[int, RemoteWorker] = {}
        self.keep_up = keep_up  # with the workers of this machine
        self._held: dict[int, int] = {}  # worker by token
        self._out: list[tuple[object, ...]] = []
        self._taken: list[int] = []
        self._settling: list[int] = []
        self._dying: set[int] = set()
        self._latest = 0  # number of a batch that was taken
        self._look_at = -math.inf  # from the first number on

    @property
    def unsettled(self) -> int:
        """Batches taken that the next commit settles."""
        return len(self._taken)

    def begin(self, setup: WorkerSetup) -> None:
        """They know: settings are in the folder, seeds in the database."""
        self._join()

    def restore(self, table: UrlTable) -> list[tuple[int, Lease]]:
        """Leases of an earlier coordinator; those of workers that are gone come back with `lost`.

        What it had found and not written down yet has other numbers now, or none: a lease is known by its URL.
        """
        exchange.forget_unwritten(self.connection, table.columns.count)
        known = exchange.known_workers(self.connection)
        out = []
        for row in exchange.read_leases(self.connection):
            token, lease = _read_lease(row, table)
            self._hold(token, lease.worker)
            if lease.worker not in known:
                self._dying.add(lease.worker)
            out.append((token, lease))
        return out

    def _hold(self, token: int, worker: int) -> None:
        self._held[token] = worker
        if worker in self.workers:
            self.workers[worker].outstanding += 1

    def _let_go(self, token: int) -> None:
        worker = self.workers.get(self._held.pop(token, -1))
        if worker is not None:
            worker.outstanding -= 1

    def send(self, number: int, jobs: list[Job], leases: LeaseBook) -> None:
        """Lease; written with the next `receive`, those of all workers at once."""
        for job in jobs:
            lease = leases.of(job.token)
            self._hold(job.token, number)
            self._out.append(
                (
                    *(job.token, number, job.url, job.etag, job.last_modified, job.flags),
                    *(lease.row, lease.host, int(lease.kind), lease.decided_at, lease.expires_at),
                    *(lease.bid, lease.price, lease.terms, lease.waiting),
                )
            )

    def _write_leases(self) -> None:
        if self._out:
            out, self._out = self._out, []
            exchange.write_leases(self.connection, out)

    def _read_reports(self) -> list[tuple[int, int, bytes]]:
        """From the latest number on, less those that may come late; and now and then from the first on."""
        began = time.monotonic()
        from_first = began >= self._look_at
        after = 0 if from_first else self._latest - LATE_NUMBERS
        batches = exchange.read_reports(self.connection, self._taken, BATCHES, after)
        if from_first and len(batches) < BATCHES:  # that is all there was
            ended = time.monotonic()
            self._look_at = ended + max(LOOK_EVERY_S, LOOK_RARELY * (ended - began))
        if batches:
            self._latest = max(self._latest, batches[-1][0])
        return batches

    def receive(self, timeout_s: float) -> tuple[list[Report], list[Failure]]:
        """Wait for reports at most that long."""
        self._write_leases()
        give_up = time.monotonic() + timeout_s
        while not (batches := self._read_reports()):
            left = give_up - time.monotonic()
            if left <= 0:
                return [], []
            time.sleep(min(left, POLL_S))
        reports: list[Report] = []
        for number, worker, data in batches:
            self._taken.append(number)
            try:
                reports.extend(unpack_reports(bytes(data)))
            except WireError as error:  # its leases expire
                log.warning("reports of worker %d cannot be read (%s): left out", worker, error)
                self.untell([])  # it counts what they named as told
            if worker in self.workers:
                self.workers[worker].heard_at = self.clock.now()
        for report in reports:
            self._let_go(report.token)
        return reports, []

    def settle(self, tokens: list[int]) -> None:
        """In the commit."""
        self._settling = list(self._taken)
        for token in tokens:
            self._let_go(token)
        exchange.settle(self.connection, self._settling, tokens)

    def settled(self) -> None:
        """After it."""
        gone = set(self._settling)
        self._taken = [number for number in self._taken if number not in gone]
        self._settling = []

    def widen(self, seeds: tuple[str, ...]) -> None:
        """The scope grows by these seeds."""
        exchange.give_notice(self.connection, pack_notice(Widen(seeds)))

    def untell(self, hashes: list[int]) -> None:
        """These URLs were not taken."""
        exchange.give_notice(self.connection, pack_notice(Untell(tuple(hashes))))

    def _join(self) -> None:
        living = exchange.read_workers(self.connection)
        for number in set(self.workers) - set(living):
            del self.workers[number]
        for number in living:
            if number not in self.workers and number not in self._dying:
                held = sum(worker == number for worker in self._held.values())
                self.workers[number] = RemoteWorker(number, held)

    def lost(self) -> list[int]:
        """Workers that ended; what they left is taken first, so that it counts."""
        self.keep_up()
        self.clock.follow()
        self._dying.update(exchange.give_up_dead(self.connection))
        self._join()
        if not self._dying:
            return []
        owing = exchange.with_reports(self.connection, list(self._dying), self._taken)
        if owing:
            self._look_at = -math.inf
        gone = self._dying - owing
        self._dying -= gone
        return sorted(gone)

    def start_one(self) -> None:
        """Whoever started it starts another."""

    def end_if_silent(self, number: int, since: float) -> None:
        """Send it away: it, or its machine, starts anew."""
        worker = self.workers.get(number)
        if worker is not None and worker.heard_at < since:
            exchange.dismiss(self.connection, number)

    def close(self, patience_s: float = 0.0) -> None:
        """They wait for the next coordinator."""


@dataclass(frozen=True, slots=True)
class Elected:
    """What the one who was elected leads by."""

    claim: SharedClaim
    fleet: Fleet

    def wait(self, seconds: float) -> None:
        """Let time pass: the session is kept awake, and so are one's own workers."""
        self.claim.connection.execute("SELECT 1")
        self.fleet.keep_up()
        time.sleep(seconds)

    @property
    def first_token(self) -> int:
        """Above all that anybody before gave."""
        return self.claim.term << TERM_BITS


def _read_lease(row: tuple[Any, ...], table: UrlTable) -> tuple[int, Lease]:
    token, worker, url, _, _, flags, _, _, kind, decided_at, expires_at, bid, price, terms, waiting = row
    host = table.hosts[url[: url.index("/", 8)]]
    found = ROBOTS_ROW if flags & ROBOTS_JOB else table.find_url(url)
    place = LOST_ROW if found is None else found
    return token, Lease(place, host, worker, FetchKind(kind), decided_at, expires_at, bid, price, terms, waiting)
