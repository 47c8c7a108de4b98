"""The live loop, where the circle closes: bids -> leases -> reports -> store -> index -> bids.

One coordinator schedules and writes; workers fetch and read. Everything between them is bounded: leases per worker,
reports in a pipe, commits in a queue before the index. A URL's life here: `_dispatch` takes it from the auction and
leases it; a worker's report comes back to `_receive`; `Intake` says what it means; `_commit` makes it durable and only
then hands it to the index; its next bid goes back to the auction.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.inbox import Inbox
from bowerbird.crawl.indexing import IndexThread
from bowerbird.crawl.intake import IndexChange, Intake
from bowerbird.crawl.pool import WorkerPool
from bowerbird.crawl.report import ROBOTS_JOB, Failure, Job, Report
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.statistics import Progress, Tally
from bowerbird.crawl.worker import WorkerSetup
from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import BowerbirdError, DiskFullError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.schedule.auction import Auction, Pick
from bowerbird.schedule.leases import Lease, LeaseBook
from bowerbird.schedule.politeness import HostGate
from bowerbird.schedule.price import Allowance, Price
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]

COMMIT_EVERY_S = 0.5
COMMIT_FETCHES = 2000
CHECKPOINT_EVERY_S = 300.0
DISPATCH_AT_LEAST = 8
REBID_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When a run ends by itself."""

    pages: int | None = None
    seconds: float | None = None
    once: bool = False
    patience_s: float = 3.0  # for what is in flight when the run is told to stop


class Coordinator:
    """Runs one crawl."""

    def __init__(
        self,
        repository: Repository,
        policy: Policy,
        settings: Settings,
        index_thread: IndexThread,
        *,
        scope_seeds: tuple[str, ...],
        lock_fd: int,
        run: int,
        clock: Clock | None = None,
    ) -> None:
        self.repository = repository
        self.policy = policy
        self.settings = settings
        self.clock = clock or WallClock()
        self.index_thread = index_thread
        self.intake = Intake(repository, policy, settings)
        self.gate = HostGate(settings.politeness.delay_s, settings.politeness.connections_per_host)
        self.auction = Auction(self.gate)
        self.hosts = HostKeeper(repository, self.gate, settings)
        self.price = Price(policy.reserve, settings.crawl.rate_per_s or None)
        self.allowance = Allowance(settings.crawl.rate_per_s or None, self.clock.now())
        self.leases = LeaseBook()
        self.tally = Tally(self.clock.now())
        self.run_number = run
        self.pool = WorkerPool(
            WorkerSetup(
                0,
                str(repository.folder.root),
                f"bowerbird-{run:05d}",
                settings,
                scope_seeds,
                repository.table.seed,
            ),
            settings.worker_count,
            keep_fds=(lock_fd,),
        )
        self.inbox = Inbox(repository, settings)
        self._stop = threading.Event()
        self._robots_leases: dict[int, int] = {}
        self._index_changes: list[IndexChange] = []
        self._touched: list[I64] = []
        self._committed_at = self._upkept_at = self._checkpointed_at = self._rebid_at = -math.inf
        self._rebid_took_s = 0.0
        self._spent = 0
        self._pages_left: int | None = None
        self._next: Pick | None = None
        self._hungry = False

    # -- the run

    def stop(self) -> None:
        """End the run soon; safe to call from a signal handler."""
        self._stop.set()

    def run(self, limits: RunLimits, show: Callable[[Progress], None] | None = None) -> Tally:
        """Crawl until told to stop, or until a limit is reached."""
        self._pages_left = limits.pages
        self._rebid_all()
        try:
            while not self._stop.is_set():
                self._turn()
                if self._upkeep(show) and self._is_done(limits):
                    break
            self._drain(limits.patience_s)
            self._commit(final=True)
            if show is not None:
                show(self.progress())
            return self.tally
        finally:
            self.pool.close(0.5)

    def _turn(self) -> None:
        busy = self._dispatch()
        reports, failures = self.pool.receive(0.0 if busy else self._idle_s())
        _raise_first(failures)
        if reports:
            self._receive(reports)
        now = self.clock.now()
        if self.repository.pending and (
            now - self._committed_at >= COMMIT_EVERY_S or self.repository.pending >= COMMIT_FETCHES
        ):
            self._commit()

    def _idle_s(self) -> float:
        return 0.02 if self.leases or self._robots_leases else 0.05

    def _is_done(self, limits: RunLimits) -> bool:
        if limits.seconds is not None and self.clock.now() - self.tally.started_at >= limits.seconds:
            return True
        if self._pages_left is not None and self._pages_left <= 0 and not self.leases:
            return True
        return limits.once and not self.leases and not self._robots_leases and not self.hosts.unfetched()

    def _drain(self, patience_s: float) -> None:
        """Wait a little for what is in flight; what does not come is simply fetched again later."""
        give_up = time.monotonic() + patience_s
        while (self.leases or self._robots_leases) and time.monotonic() < give_up:
            reports, failures = self.pool.receive(0.05)
            _raise_first(failures)
            if reports:
                self._receive(reports)

    # -- out: from the auction to the workers

    def _dispatch(self) -> bool:
        now = self.clock.now()
        limit = min(self.settings.fetch.max_connections, 128)
        capacity = {n: limit - worker.outstanding for n, worker in self.pool.workers.items()}
        wanted = sum(room for room in capacity.values() if room > 0)
        if self._pages_left is not None:
            wanted = min(wanted, self._pages_left - len(self.leases))
        if wanted < DISPATCH_AT_LEAST and len(self.leases) > DISPATCH_AT_LEAST:
            return False
        wanted = self.allowance.available(now, wanted)
        if wanted <= 0:
            return False
        picks = self.auction.pick(now, wanted, self.price.value)
        self._hungry = len(picks) < wanted and self.auction.left_out > 0
        if not picks:
            return False
        self._lease(picks, capacity, now)
        return True

    def _lease(self, picks: list[Pick], capacity: dict[int, int], now: float) -> None:
        columns = self.repository.table.columns
        urls = self.repository.urls(pick.row for pick in picks)
        rows = np.array([pick.row for pick in picks], dtype=np.int64)
        terms = self.policy.terms(self.repository.snapshot(now), rows)
        jobs: dict[int, list[Job]] = {}
        started = 0
        for pick, url, why in zip(picks, urls, terms, strict=True):
            rules = self.hosts.robots.rules(pick.host, now)
            if rules is None:
                self._ask_robots(pick, jobs, capacity, now)
                continue
            state, kind = int(columns["state"][pick.row]), int(columns["kind"][pick.row])
            fetch_kind = Policy.fetch_kind(state, kind)
            if not rules.allows(url):
                self._exclude(pick, fetch_kind, why, now)
                continue
            job = Job(0, url)
            if state == UrlState.FETCHED:
                version = self.repository.version(pick.row)
                if version is not None:
                    job.etag, job.last_modified = version.etag, version.last_modified
            worker = self._choose_worker(pick.host, capacity)
            expires = now + self.settings.crawl.lease_s
            job.token = self.leases.open(
                Lease(pick.row, pick.host, worker, fetch_kind, now, expires, pick.value, self.price.value, why)
            )
            self.auction.hold([pick.row], expires)
            jobs.setdefault(worker, []).append(job)
            capacity[worker] -= 1
            started += 1
        self._spent += started
        self.allowance.spend(started)
        for number, batch in jobs.items():
            self.pool.send(number, batch)
        self._next = picks[-1]

    def _choose_worker(self, host: int, capacity: dict[int, int]) -> int:
        """A host keeps to one worker while it has one connection; otherwise the least busy worker takes it."""
        if int(self.gate.columns["slots"][host]) == 1:
            numbers = list(capacity)
            sticky = numbers[host % len(numbers)]
            if capacity[sticky] > 0:
                return sticky
        return max(capacity, key=lambda number: capacity[number])

    def _ask_robots(self, pick: Pick, jobs: dict[int, list[Job]], capacity: dict[int, int], now: float) -> None:
        self.auction.offer_again([pick.row])
        if self.hosts.is_asked(pick.host):
            self.gate.cancel(pick.host, math.inf)
            return
        worker = self._choose_worker(pick.host, capacity)
        token = self.leases.open(
            Lease(-1, pick.host, worker, FetchKind.HUB, now, now + self.settings.crawl.lease_s, 0.0, 0.0, "")
        )
        self._robots_leases[token] = pick.host
        self.hosts.ask(pick.host)
        jobs.setdefault(worker, []).append(Job(token, self.hosts.robots_url(pick.host), flags=ROBOTS_JOB))
        capacity[worker] -= 1

    def _exclude(self, pick: Pick, kind: FetchKind, terms: str, now: float) -> None:
        """robots.txt says no: a decision without a fetch, journalled like the others."""
        before = int(self.repository.table.columns["state"][pick.row])
        self.repository.record(
            FetchRecord(
                pick.row,
                kind,
                now,
                pick.value,
                self.price.value,
                terms,
                now,
                Outcome.ROBOTS,
                UrlState.EXCLUDED,
            )
        )
        if before == UrlState.FETCHED:
            self._index_changes.append(IndexChange(pick.row, None))
        self.auction.withdraw(pick.row)
        self.gate.cancel(pick.host, now)
        self.tally.by_outcome[Outcome.ROBOTS.label] += 1

    # -- in: from the workers to the store

    def _receive(self, reports: list[Report]) -> None:
        now = self.clock.now()
        answers: list[tuple[Lease, Report]] = []
        for report in reports:
            lease = self.leases.close(report.token)
            if lease is None:
                continue  # it expired, and somebody else has the URL now
            if self._robots_leases.pop(report.token, None) is not None:
                self._take_robots(lease.host, report, now)
                continue
            self.hosts.answered(lease.host, report, now)
            self.tally.add(lease.kind, report.outcome, report.wire_bytes)
            answers.append((lease, report))
        if not answers:
            return
        taken = self.intake.take(answers, now)
        if self._pages_left is not None:
            self._pages_left -= len(answers)
        self._index_changes.extend(taken.index)
        self._bid(np.array(taken.fetched, dtype=np.int64), now, offer=False)
        self._bid(taken.added, now, offer=True)
        self._touched.append(taken.touched)

    def _take_robots(self, host: int, report: Report, now: float) -> None:
        allowed_again, sitemaps = self.hosts.take_robots(host, report, now)
        if len(allowed_again):
            self._bid(allowed_again, now, offer=True)
        if len(sitemaps):
            self._bid(sitemaps, now, offer=True)

    def _bid(self, rows: I64, now: float, *, offer: bool) -> None:
        if not len(rows):
            return
        columns = self.repository.table.columns
        self.auction.place(
            rows,
            self.policy.appraise(self.repository.snapshot(now), rows),
            columns["host"][rows],
            offer=offer,
        )
        self.auction.hold(rows, columns["not_before"][rows].astype(np.float64))

    def _rebid_all(self) -> None:
        """Ask the policy for every bid anew."""
        began = time.perf_counter()
        now = self.clock.now()
        snapshot = self.repository.snapshot(now)
        columns = self.repository.table.columns
        leased = self.auction.bids["not_before"].copy()
        for first in range(0, columns.count, REBID_CHUNK):
            rows = np.arange(first, min(first + REBID_CHUNK, columns.count))
            self.auction.place(rows, self.policy.appraise(snapshot, rows), columns["host"][rows], offer=False)
        if self._rebid_at == -math.inf:
            self.auction.hold(np.arange(columns.count), columns["not_before"].astype(np.float64))
            self.hosts.restore(now)
        else:
            self.auction.bids["not_before"][: len(leased)] = leased
        self._touched.clear()
        self.auction.refill(now, self.price.value)
        self._rebid_at = now
        self._rebid_took_s = time.perf_counter() - began

    # -- durability and upkeep

    def _commit(self, *, final: bool = False) -> None:
        self._sync_archive()
        through = self.repository.commit(indexed_through=self.index_thread.indexed_through)
        changes, self._index_changes = self._index_changes, []
        anchors = self.repository.anchors_of([change.page for change in changes if change.document is not None])
        for change in changes:
            if change.document is not None:
                change.document.anchors = " \n".join(anchors[change.page])
        self.index_thread.put(changes, through)
        if self.index_thread.error is not None:
            raise self.index_thread.error
        now = self.clock.now()
        self._committed_at = now
        if self._checkpointed_at == -math.inf:
            self._checkpointed_at = now
        if final:
            self.index_thread.close()
            if self.index_thread.error is not None:
                raise self.index_thread.error
            self.repository.commit(indexed_through=self.index_thread.indexed_through)
        if final or now - self._checkpointed_at > CHECKPOINT_EVERY_S:
            self.repository.write_checkpoint()
            self._checkpointed_at = now

    def _sync_archive(self) -> None:
        """The archive reaches the disk before the records that point into it."""
        for name in self.repository.pending_archive_files():
            fd = os.open(self.repository.folder.archive / name, os.O_RDONLY)
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)

    def _upkeep(self, show: Callable[[Progress], None] | None) -> bool:
        """Once a second: the price, expired leases, lost workers, the inbox, the pool. True when it ran."""
        now = self.clock.now()
        if self.auction.refill_due(now, hungry=self._hungry):
            if now - self._rebid_at > max(5.0, 50 * self._rebid_took_s):
                self._rebid_all()
            else:
                self._rebid_touched(now)
                self.auction.refill(now, self.price.value)
        if now - self._upkept_at < 1.0:
            return False
        self._upkept_at = now
        self.price.observe(self._spent, now)
        self._spent = 0
        for lease in self.leases.expired(now):
            self._abandon(lease, now)
        for number in self.pool.lost():
            for lease in self.leases.of_worker(number):
                self._abandon(lease, now)
            self.pool.start_one()
        added, removed, seeds = self.inbox.drain(now)
        if seeds:
            self.pool.widen(seeds)
        for row in removed:
            self.auction.withdraw(row)
            self._index_changes.append(IndexChange(row, None))
        if len(added):  # after the removals: a URL that was forgotten and added again is in line
            self._bid(added, now, offer=True)
        self.hosts.weigh()
        progress = self.progress()
        self.repository.set_meta("live", orjson.dumps({"at": now, "pid": os.getpid(), **asdict(progress)}).decode())
        if show is not None:
            show(progress)
        return True

    def _rebid_touched(self, now: float) -> None:
        """Frontier pages that got more in-links since the last refill bid anew."""
        if not self._touched:
            return
        rows = np.unique(np.concatenate(self._touched))
        self._touched.clear()
        columns = self.repository.table.columns
        rows = rows[columns["state"][rows] == UrlState.NEW]
        bids = self.policy.appraise(self.repository.snapshot(now), rows)
        self.auction.place(rows, bids, columns["host"][rows], offer=False)

    def _abandon(self, lease: Lease, now: float) -> None:
        """Nobody will answer this lease: the URL goes back in line."""
        if lease.row < 0:
            self._robots_leases = {t: h for t, h in self._robots_leases.items() if h != lease.host}
            self.hosts.unasked(lease.host, now)
            return
        report = Report(0, self.repository.url(lease.row), Outcome.ABANDONED, now, error="the worker was lost")
        self.gate.give_back(lease.host, now)
        taken = self.intake.take([(lease, report)], now)
        self._bid(np.array(taken.fetched, dtype=np.int64), now, offer=False)

    def progress(self) -> Progress:
        """The run at this moment."""
        now = self.clock.now()
        state = self.repository.table.columns["state"]
        following = self._next
        return Progress(
            elapsed_s=now - self.tally.started_at,
            fetched=self.tally.fetched,
            pages_per_s=self.tally.speed(now),
            frontier=int(np.count_nonzero(state == UrlState.NEW)),
            known=len(state),
            in_flight=len(self.leases),
            hosts_waiting=self.gate.waiting(now),
            errors=self.tally.errors(),
            price=self.price.value,
            next_bid=following.value if following else 0.0,
            next_url=self.repository.url(following.row) if following else "",
            by_kind=dict(self.tally.by_kind),
            by_outcome=dict(self.tally.by_outcome),
            indexed_behind=self.repository.last_fetch_id - self.index_thread.indexed_through,
            wire_mb=self.tally.wire_bytes / 1e6,
            refused=self.intake.discovery.refused,
        )


def _raise_first(failures: list[Failure]) -> None:
    """A worker that cannot go on ends the run, with what it said."""
    for failure in failures:
        raise (DiskFullError if failure.disk_full else BowerbirdError)(failure.message)
