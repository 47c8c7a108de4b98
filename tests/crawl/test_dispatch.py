"""What is sent along with a fetch that was drawn by lot."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.crawl.hub_past import Past

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.dispatch import Dispatcher
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.market import Market
from bowerbird.crawl.report import Job
from bowerbird.model.url_state import UrlKind
from bowerbird.schedule.leases import LeaseBook
from bowerbird.schedule.lottery import HUBS, Ticket
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.records import Version


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


@pytest.mark.parametrize(
    ("kind", "stratum", "etag"),
    [(UrlKind.FEED, HUBS, '"1"'), (UrlKind.SITEMAP, HUBS, '"1"'), (UrlKind.PAGE, "fetched", "")],
)
def test_a_feed_drawn_by_lot_is_asked_for_with_its_validators_and_a_page_without(
    tmp_path: Path, kind: UrlKind, stratum: str, etag: str
) -> None:
    past = Past(tmp_path / "crawl")
    row = past.add("http://a.example/drawn", past.now - 100.0, kind=kind)
    past.visit(row, past.now - 100.0)
    past.repository.record_version(Version(row, '"1"', "", None, past.now, "xml", False, None, None, None, None))
    host = int(past.repository.table.columns["host"][row])
    past.repository.table.hosts.columns["robots_at"][host] = past.now
    past.repository.record_robots(host, "none", b"")
    past.repository.commit()
    gate, policy, pool = HostGate(0.0, 4), make_policy("breadth-first"), Pool()
    market = Market(past.repository, policy, gate, None, past.now)
    hosts = HostKeeper(past.repository, gate, past.settings)
    made = Dispatcher(past.repository, market, hosts, pool, past.settings)  # type: ignore[arg-type]  # all that it uses
    made.only_drawn = True
    market.open(past.now)
    made.lottery.waiting[row] = Ticket(row, stratum, 1, 1.0, past.now)
    assert made.dispatch(past.now, None)
    assert [(job.url, job.etag) for job in pool.sent] == [("http://a.example/drawn", etag)]
    past.repository.close()
