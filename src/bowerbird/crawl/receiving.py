"""From the workers to the store: what a report, or the lack of one, means for the lease that it answers."""

from __future__ import annotations

import numpy as np

from bowerbird.crawl.discovery import Finding
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.intake import IndexChange, Intake
from bowerbird.crawl.market import Market
from bowerbird.crawl.report import Report
from bowerbird.crawl.statistics import Tally
from bowerbird.crawl.workforce import Workforce
from bowerbird.model.outcome import Outcome
from bowerbird.schedule.leases import LOST_ROW, ROBOTS_ROW, Lease, LeaseBook
from bowerbird.store.repository import Repository


class Receiver:
    """Takes reports in, in the order in which they came."""

    def __init__(
        self,
        repository: Repository,
        intake: Intake,
        hosts: HostKeeper,
        market: Market,
        leases: LeaseBook,
        pool: Workforce,
        tally: Tally,
    ) -> None:
        self.repository = repository
        self.intake = intake
        self.hosts = hosts
        self.market = market
        self.leases = leases
        self.pool = pool
        self.tally = tally
        self.index_changes: list[IndexChange] = []  # that the next commit hands to the index
        self.pages_left: int | None = None  # before the run is over

    def receive(self, reports: list[Report], now: float) -> None:
        """Close their leases and take what they say."""
        answers: list[tuple[Lease, Report]] = []
        for report in reports:
            report.fetched_at = min(report.fetched_at, now)  # the clock may have been set back since
            lease = self.leases.close(report.token)
            if lease is None:  # it expired, and somebody else has the URL now; its links are news all the same
                answers = self._take_late(answers, None, report, now)
            elif lease.row == ROBOTS_ROW:
                self.tally.add_robots(report.outcome)
                for rows in self.hosts.take_robots(lease, report, now):
                    self.market.bid(rows, now, offer=True)
            else:
                self.hosts.answered(lease.host, report, now)
                if lease.row == LOST_ROW:
                    answers = self._take_late(answers, lease, report, now)
                    continue
                self.tally.add(lease.kind, report.outcome, report.wire_bytes)
                answers.append((lease, report))
        if answers:
            self._take(answers, now)

    def _take(self, answers: list[tuple[Lease, Report]], now: float) -> None:
        taken = self.intake.take(answers, now)
        if self.pages_left is not None:
            self.pages_left -= len(answers)
        self.index_changes.extend(taken.index)
        self.market.bid(np.array(taken.fetched, dtype=np.int64), now, offer=False)
        self.market.bid(taken.added, now, offer=True)
        self.market.note_linked(taken.touched)
        refused = self.intake.discovery.take_refused()
        if refused:
            self.pool.untell(refused)

    def _take_late(
        self, before: list[tuple[Lease, Report]], lease: Lease | None, report: Report, now: float
    ) -> list[tuple[Lease, Report]]:
        """In its turn: what led there may be before it, and what it names is not spelt out again. Leaves no answers."""
        if before:
            self._take(before, now)
        row = self.repository.table.find_url(report.url)
        if row is None:  # what it names is not taken, but its worker counts it as told
            if report.links.named:
                self.pool.untell(report.links.named_hashes())
        elif lease is not None:  # it was found again since
            lease.row = row
            self.tally.add(lease.kind, report.outcome, report.wire_bytes)
            self._take([(lease, report)], now)
        elif report.links.count:
            depth = int(self.repository.table.columns["depth"][row])
            added, _ = self.intake.discovery.take([Finding(row, depth, report)], late=True)
            self.market.bid(added, now, offer=True)
        return []

    def abandon(self, lease: Lease, now: float) -> None:
        """Nobody will answer this lease: the URL goes back in line."""
        if lease.row == ROBOTS_ROW:
            self.hosts.unasked(lease.host, now)
            return
        self.market.gate.give_back(lease.host, now)
        if lease.row == LOST_ROW:
            return
        report = Report(0, self.repository.url(lease.row), Outcome.ABANDONED, now, error="the worker was lost")
        taken = self.intake.take([(lease, report)], now)
        self.market.bid(np.array(taken.fetched, dtype=np.int64), now, offer=False)
