"""The live loop, where the circle closes: bids -> leases -> reports -> store -> index -> bids.

One coordinator schedules and writes; workers fetch and read. Everything between them is bounded: leases per worker,
reports in a pipe, commits in a queue before the index. A URL's life here: `Dispatcher` takes it from the auction and
leases it; a worker's report comes back to `Receiver`; `Intake` says what it means; `_commit` makes it durable and only
then hands it to the index; its next bid goes back to the auction.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import orjson

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.dispatch import Dispatcher
from bowerbird.crawl.heap import Trimmer
from bowerbird.crawl.hearing import Hearing
from bowerbird.crawl.hosts import LONGEST_HOST_WAIT_S, HostKeeper
from bowerbird.crawl.inbox import Inbox
from bowerbird.crawl.indexing import IndexThread
from bowerbird.crawl.intake import LONGEST_WAIT_S, IndexChange, Intake
from bowerbird.crawl.live import tell_rates
from bowerbird.crawl.market import Market
from bowerbird.crawl.receiving import Receiver
from bowerbird.crawl.reindex import LateAnchors, Rereader
from bowerbird.crawl.report import Failure, WorkerSetup
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.statistics import Progress, Tally
from bowerbird.crawl.study_kinds import methods_of
from bowerbird.crawl.studying import Studies
from bowerbird.crawl.workforce import Workforce
from bowerbird.demand.workload import attach_clicks
from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import BowerbirdError, DiskFullError
from bowerbird.model.url_state import UrlState
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.archive import sync_file
from bowerbird.store.clock_trouble import bring_back, set_back_waits
from bowerbird.store.repository import Repository

log = logging.getLogger(__name__)

COMMIT_EVERY_S = 1.0
COMMIT_FETCHES = 2000
CHECKPOINT_EVERY_S = 300.0
IDLE_S = 0.02
GATHER_S = 0.015
PLENTY = 64  # leases
IDLE_ENOUGH_S = 0.5  # of each second
IDLE_SHARE = 0.2
SET_BACK_S = 1.0  # a clock that goes back by less is corrected, and not set


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When a run ends by itself."""

    pages: int | None = None
    seconds: float | None = None
    once: bool = False
    probes: int = 0  # only fetch so many pages drawn by lot
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
        pool: Workforce,
        run: int,
        first_token: int = 1,
        clock: Clock | None = None,
        rate_of_settings: float | None = None,
    ) -> None:
        self._budget: dict[str, float] = tell_rates(settings, rate_of_settings)  # and what it is spent at, if kept
        self.repository = repository
        self.settings = settings
        self.clock = clock or WallClock()
        self.index_thread = index_thread
        now = self.clock.now()
        gate = HostGate(settings.politeness.delay_s, settings.politeness.connections_per_host)
        self.intake = Intake(repository, policy, settings)
        self.hosts = HostKeeper(repository, gate, settings)
        self.market = Market(repository, policy, gate, settings.crawl.rate_per_s or None, now)
        self.tally = Tally(now)
        self.pool = pool
        pool.begin(
            WorkerSetup(
                0,
                str(repository.folder.root),
                f"bowerbird-{run:05d}",
                settings,
                scope_seeds,
                repository.table.seed,
            )
        )
        self.dispatcher = Dispatcher(repository, self.market, self.hosts, self.pool, settings, first_token)
        self.receiver = Receiver(
            repository, self.intake, self.hosts, self.market, self.dispatcher.leases, pool, self.tally
        )
        self.inbox = Inbox(repository, settings)
        self._hearing = Hearing(repository.folder, settings)
        self._studying = Studies(repository, methods_of(policy, settings), settings)
        self.late_anchors = LateAnchors(Rereader(repository, settings))
        self._idle_s = 0.0
        self._stop = threading.Event()
        self._committed_at = self._upkept_at = -math.inf
        self._checkpointed_at = now
        self._trimmer = Trimmer()
        self._looked_at = 0.0
        self._seen_at = now
        self.pages_left: int | None = None  # before the run is over, as of the last commit
        self.committed = self.tally.copy()

    # -- the run

    def stop(self) -> None:
        """End the run soon; safe to call from a signal handler."""
        self._stop.set()

    def run(self, limits: RunLimits, show: Callable[[Progress], None] | None = None) -> Tally:
        """Crawl until told to stop, or until a limit is reached."""
        self.pages_left = self.receiver.pages_left = limits.pages
        if limits.once:  # it ends with the last new page: there is nothing to measure for
            self.dispatcher.lottery.share = 0.0
        hearing = self._hearing
        if limits.probes:
            self.dispatcher.lottery.share, self.dispatcher.only_drawn = 0.0, True
            last = orjson.loads(str(self.repository.meta("live") or "{}"))  # who only measures spends no budget
            self._budget |= {name: last[name] for name in (*self._budget, "price", "unit") if name in last}
            self.dispatcher.lottery.order(limits.probes)
            hearing.look()
            self._hear()
        elif not limits.once:
            hearing.start()
        now = self.clock.now()
        self._bring_back(now)
        self.hosts.reconsider_excluded(now)
        self.late_anchors.restore(self.repository.meta("late_anchors"))
        self._studying.take_up()
        self.market.open(now)
        self.hosts.restore(now)
        self.dispatcher.take_up(now)
        try:
            while not self._stop.is_set():
                self._turn()
                if (self._upkeep(show) or self._ran_dry(limits)) and self._is_done(limits):
                    break
            self._drain(limits.patience_s)
            self._commit(final=True)
            self._tell_live(self.progress())
            if show is not None:
                show(self.progress())
            return self.tally
        finally:
            hearing.close()
            self._studying.close()
            self.pool.close(0.5)

    def _bring_back(self, now: float) -> None:
        """A clock that was ahead once must not silence the crawl; written at once, so that it happens once."""
        if bring_back(self.repository.table, now, LONGEST_HOST_WAIT_S, LONGEST_WAIT_S):
            log.warning("times in the future: the clock was ahead. They count as now.")
            self.repository.commit()
            self.repository.write_checkpoint()

    def _follow_clock(self) -> None:
        """Where it was set back, so is all that was timed by it: nothing waits for it to be as late as it was."""
        now, was = self.clock.now(), self._seen_at
        by_s, self._seen_at = was - now, now
        if by_s <= SET_BACK_S:
            return
        log.warning("the clock was set back by %.0f seconds: times in the future count as now", by_s)
        self._commit()  # what is on its way is recorded in its order; after that there is nothing but times to write
        set_back_waits(self.repository.table, was, by_s)
        self.tally.set_back(by_s)
        self._committed_at, self._upkept_at = self._committed_at - by_s, self._upkept_at - by_s
        self._checkpointed_at -= by_s
        self._bring_back(now)
        self.market.open(now)
        self.dispatcher.set_back(by_s)

    def _turn(self) -> None:
        self._follow_clock()
        self.market.follow_studies(self.clock.now())
        busy = self.dispatcher.dispatch(self.clock.now(), self.receiver.pages_left)
        if len(self.dispatcher.leases) >= PLENTY:
            time.sleep(GATHER_S)  # workers have enough to do: reports taken together cost less than one by one
        began = time.monotonic()
        reports, failures = self.pool.receive(0.0 if busy else IDLE_S)
        self._idle_s += time.monotonic() - began
        _raise_first(failures)
        if reports:
            self.receiver.receive(reports, self.clock.now())
        now = self.clock.now()
        self.market.keep_up(now, hungry=self.dispatcher.hungry)
        waiting = self.repository.pending + len(self.receiver.index_changes) + self.pool.unsettled
        if waiting and (now - self._committed_at >= COMMIT_EVERY_S or waiting >= COMMIT_FETCHES):
            self._commit()

    def _ran_dry(self, limits: RunLimits) -> bool:
        """Nothing is on its way in a run that ends with that: look now, and not with the next upkeep."""
        now = time.monotonic()
        if not limits.once or self.dispatcher.leases or now - self._looked_at < 0.1:
            return False
        self._looked_at = now
        return True

    def _is_done(self, limits: RunLimits) -> bool:
        if limits.seconds is not None and self.clock.now() - self.tally.started_at >= limits.seconds:
            return True
        if self.dispatcher.leases:
            return False
        if limits.probes and self.dispatcher.lottery.is_idle:
            return True
        if self.receiver.pages_left is not None and self.receiver.pages_left <= 0:
            return True
        return limits.once and not self.hosts.unfetched()

    def _drain(self, patience_s: float) -> None:
        """Wait a little for what is in flight; what does not come is simply fetched again later."""
        give_up = time.monotonic() + patience_s
        while self.dispatcher.leases and time.monotonic() < give_up:
            reports, failures = self.pool.receive(0.05)
            _raise_first(failures)
            if reports:
                self.receiver.receive(reports, self.clock.now())

    # -- durability and upkeep

    def _commit(self, *, final: bool = False) -> None:
        """What is archived is synced, then recorded, then indexed: in this order a crash does no harm."""
        excluded, self.dispatcher.excluded = self.dispatcher.excluded, []
        self.receiver.index_changes.extend(IndexChange(row, None) for row in excluded)
        self._sync_archive()
        self.repository.record_gains(self.index_thread.take_gains())
        over = self.dispatcher.leases.take_over()
        through = self.repository.commit(
            indexed_through=self.index_thread.indexed_through, also=lambda _: self.pool.settle(over)
        )
        self.pool.settled()
        self.pages_left, self.committed = self.receiver.pages_left, self.tally.copy()
        changes, self.receiver.index_changes = self.receiver.index_changes, []
        self.late_anchors.drop(change.page for change in changes)
        anchors = self.repository.anchors_of([change.page for change in changes if change.document is not None])
        for change in changes:
            if change.document is not None:
                change.document.anchors = " \n".join(anchors[change.page])
        self.index_thread.put(changes, through)
        now = self._committed_at = self.clock.now()
        if final:
            self.index_thread.close()
            self.repository.record_gains(self.index_thread.take_gains())
            self.repository.set_meta("late_anchors", self.late_anchors.dump())
            self.repository.commit(indexed_through=self.index_thread.indexed_through)
        if final or now - self._checkpointed_at > CHECKPOINT_EVERY_S:
            self.repository.write_checkpoint()
            self._checkpointed_at = now

    def _sync_archive(self) -> None:
        """The archive reaches the disk before the records that point into it."""
        if self.pool.syncs:
            return
        for name in self.repository.pending_archive_files():
            sync_file(self.repository.folder.archive / name)

    def _upkeep(self, show: Callable[[Progress], None] | None) -> bool:
        """Once a second: the price, expired leases, lost workers, the inbox. True when it ran."""
        now = self.clock.now()
        if now - self._upkept_at < 1.0:
            return False
        self._upkept_at = now
        self.market.observe(now)
        self.repository.price = self.market.price.value * self.market.unit
        for lease in self.dispatcher.leases.expired(now):
            self.receiver.abandon(lease, now)
            self.pool.end_if_silent(lease.worker, lease.decided_at)
        for number in self.pool.lost():
            for lease in self.dispatcher.leases.of_worker(number):
                self.receiver.abandon(lease, now)
            self.pool.start_one()
        self._read_inbox(now)
        self._hear()
        if not self.dispatcher.only_drawn:
            self._studying.keep_up()
            self.dispatcher.follow_hubs(now)
        self._use_idle_time()
        self._trimmer.trim()
        self.hosts.weigh()
        progress = self.progress()
        self._tell_live(progress)
        if show is not None:
            show(progress)
        return True

    def _tell_live(self, progress: Progress) -> None:
        """For those who look from outside."""
        said = {"at": self.clock.now(), "pid": os.getpid(), **asdict(progress), **self._budget}
        self.repository.set_meta("live", orjson.dumps(said).decode())

    def _hear(self) -> None:
        """What searchers ask and click goes into the snapshot, and what they see into the lottery."""
        heard = self._hearing.take()
        if heard is not None:
            table = self.repository.table
            clicks = attach_clicks(heard.clicks, table.find_url, table.columns.count)
            self.repository.workload, self.repository.clicks = heard.workload, clicks
            self.dispatcher.lottery.watch(heard.shown)
            self.index_thread.use_basis(heard.basis)

    def _use_idle_time(self) -> None:
        """A crawl that mostly waits for its hosts has time to index pages with the anchors that came late."""
        discovered, self.intake.discovery.late_anchors = self.intake.discovery.late_anchors, []
        self.late_anchors.note(discovered)
        idle_s, self._idle_s = self._idle_s, 0.0
        if idle_s > IDLE_ENOUGH_S:
            self.receiver.index_changes.extend(self.late_anchors.take(idle_s * IDLE_SHARE))

    def _read_inbox(self, now: float) -> None:
        added, removed, seeds = self.inbox.drain(now)
        if seeds:
            self.pool.widen(seeds)
            self.hosts.scope.extend(seeds)
        for row in removed:
            self.market.auction.withdraw(row)
            self.receiver.index_changes.append(IndexChange(row, None))
        if len(added):
            # after the removals: what was forgotten and added again is in line; what is being fetched is already
            held = self.dispatcher.leases.rows()
            self.market.bid(
                np.array([row for row in added.tolist() if row not in held], dtype=np.int64), now, offer=True
            )

    @property
    def frontier(self) -> int:
        """URLs that were never fetched."""
        return int(np.count_nonzero(self.repository.table.columns["state"] == UrlState.NEW))

    def progress(self) -> Progress:
        """The run at this moment."""
        now = self.clock.now()
        following = None if self.dispatcher.only_drawn else self.market.auction.peek(now, self.market.price.reserve)
        study_basis, study_age_s = self._studying.tell()
        return Progress(
            elapsed_s=now - self.tally.started_at,
            fetched=self.tally.fetched,
            pages_per_s=self.tally.speed(now),
            frontier=self.frontier,
            known=self.repository.table.columns.count,
            in_flight=len(self.dispatcher.leases),
            hosts_waiting=self.market.gate.waiting(now),
            errors=self.tally.errors(),
            price=self.market.price.value,
            unit=self.market.unit,
            by_clicks=self.market.policy.by_clicks(self.repository.snapshot(now)),
            next_bid=following.value if following else 0.0,
            next_url=self.repository.url(following.row) if following else "",
            by_kind=dict(self.tally.by_kind),
            by_outcome=dict(self.tally.by_outcome),
            indexed_behind=self.repository.last_fetch_id - self.index_thread.indexed_through,
            wire_mb=self.tally.wire_bytes / 1e6,
            refused=self.intake.discovery.refused,
            study_basis=study_basis,
            study_age_s=study_age_s,
            seeds=self._studying.seeds_said,
            unreachable=dict(self.tally.unreachable),
        )


def _raise_first(failures: list[Failure]) -> None:
    """A worker that cannot go on ends the run, with what it said."""
    for failure in failures:
        raise (DiskFullError if failure.disk_full else BowerbirdError)(failure.message)
