"""A dispatcher on a past written by hand, with a worker that keeps what it is sent until an answer is made up."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from tests.crawl.hub_past import Past

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.dispatch import Dispatcher
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.intake import Intake
from bowerbird.crawl.market import Market
from bowerbird.crawl.report import Job, Report
from bowerbird.model.outcome import Outcome
from bowerbird.schedule.leases import Lease, LeaseBook
from bowerbird.schedule.lottery import Lottery, Ticket
from bowerbird.schedule.politeness import HostGate


@dataclass
class Idle:
    """A worker with room."""

    outstanding: int = 0


@dataclass
class Pool:
    """Keeps what it is sent."""

    workers: dict[int, Idle] = field(default_factory=lambda: {0: Idle()})
    sent: list[Job] = field(default_factory=list)

    def send(self, number: int, jobs: list[Job], leases: LeaseBook) -> None:
        self.sent += jobs


class Told(Lottery):
    """Draws what it is told to, whoever admits it."""

    def __init__(self, *tickets: Ticket) -> None:
        super().__init__(0.0)
        self.told = list(tickets)

    def draw(self, *_: object) -> list[Ticket]:
        drawn, self.told = self.told, []
        self.waiting |= {ticket.row: ticket for ticket in drawn}
        return drawn


class Desk:
    """Where the URLs of a past are dispatched: no robots.txt forbids any."""

    def __init__(self, past: Past, policy: str = "breadth-first", delay_s: float = 0.0) -> None:
        self.past, self.now, self.pool = past, float(int(past.now)), Pool()
        hosts = past.repository.table.hosts
        for host in range(len(hosts.columns)):
            hosts.columns["robots_at"][host] = past.now
            past.repository.record_robots(host, "none", b"")
        past.repository.commit()
        self.gate = HostGate(delay_s, 4)
        chosen = make_policy(policy, horizon_s=past.settings.budget.horizon_s)
        self.market = Market(past.repository, chosen, self.gate, None, self.now)
        keeper = HostKeeper(past.repository, self.gate, past.settings)
        self.dispatcher = Dispatcher(past.repository, self.market, keeper, self.pool, past.settings)  # type: ignore[arg-type]  # all that it uses
        self.intake = Intake(past.repository, chosen, past.settings)
        self.market.open(self.now)

    def dispatch(self) -> list[tuple[Job, Lease]]:
        """What is sent now."""
        self.pool.sent = []
        self.dispatcher.dispatch(self.now, None)
        return [(job, self.dispatcher.leases.of(job.token)) for job in self.pool.sent]

    def end(self, job: Job) -> Lease:
        """A fetch is over: its host and its URL are free again."""
        lease = self.dispatcher.leases.close(job.token)
        assert lease is not None
        self.gate.give_back(lease.host, self.now)
        self.market.auction.hold([lease.row], 0.0)
        return lease

    def answer(self, job: Job, content: int, etag: str = "") -> tuple[int, int, str]:
        """A whole page comes back: the kind, the validators and the terms that the journal has of its fetch."""
        lease = self.end(job)
        report = Report(job.token, job.url, Outcome.OK, self.now, 0.1, 200, 1000, etag=etag, media="html")
        report.content_hash = content
        self.intake.take([(lease, report)], self.now)
        self.market.bid(np.array([lease.row]), self.now, offer=False)
        self.past.repository.commit()
        kind, validators, terms = self.past.repository.connection.execute(
            "SELECT kind, validators, terms FROM fetches WHERE url = ? ORDER BY id DESC LIMIT 1", (lease.row,)
        ).fetchone()
        return int(kind), int(validators), str(terms)
