"""Reports whose leases are over: a worker that lost its session hands in again what it may have handed in before."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.crawl.hub_past import Past

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.intake import Intake
from bowerbird.crawl.market import Market
from bowerbird.crawl.receiving import Receiver
from bowerbird.crawl.report import Links, Report
from bowerbird.crawl.statistics import Tally
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.schedule.leases import ROBOTS_ROW, Lease, LeaseBook
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.clock_trouble import set_back_waits
from bowerbird.store.url_table import hash_urls

PAGE = "http://a.example/page"


@dataclass
class Pool:
    """Hears what was not taken."""

    untold: list[int] = field(default_factory=list)

    def untell(self, hashes: list[int]) -> None:
        self.untold += hashes


class Desk:
    """A crawl with a page that is leased, and who takes its reports."""

    def __init__(self, root: Path) -> None:
        self.past = Past(root)
        self.repository = self.past.repository
        self.row = self.past.add(PAGE, self.past.now)
        gate, policy = HostGate(0.0, 4), make_policy("breadth-first")
        market = Market(self.repository, policy, gate, None, self.past.now)
        hosts = HostKeeper(self.repository, gate, self.past.settings)
        hosts.restore(self.past.now)
        market.open(self.past.now)
        self.leases = LeaseBook()
        intake = Intake(self.repository, policy, self.past.settings)
        tally = Tally(self.past.now)
        self.receiver = Receiver(
            self.repository,
            intake,
            hosts,
            market,
            self.leases,
            Pool(),  # type: ignore[arg-type]  # all that it uses
            tally,
        )

    def lease(self) -> int:
        now = self.past.now
        return self.leases.open(Lease(self.row, 0, 0, FetchKind.NEW, now, now + 9.0, 1.0, 1.0, "{}"))

    def report(self, token: int, *targets: str, after_s: float = 0.0) -> None:
        """A report is received, by a worker that spells all links out, and committed."""
        links = Links(
            hashes=hash_urls(targets, self.repository.table.seed).tobytes(),
            named=array("I", range(len(targets))).tobytes(),
            urls="\n".join(targets).encode(),
            marks=bytes(2 * len(targets)),
            count=len(targets),
        )
        said = Report(token, PAGE, Outcome.OK, self.past.now + after_s, status=200, media="html", links=links)
        self.receiver.receive([said], self.past.now + after_s)
        self.repository.commit()

    def in_degree(self, url: str) -> int:
        row = self.repository.table.find_url(url)
        assert row is not None
        return int(self.repository.table.columns["in_degree"][row])


def test_links_of_a_report_that_comes_twice_count_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "crawl")
    token = desk.lease()
    for _ in range(3):
        desk.report(token, "http://a.example/1", "http://a.example/2")
    assert [desk.in_degree(f"http://a.example/{n}") for n in (1, 2)] == [1, 1]
    assert int(desk.repository.table.columns["fetches"][desk.row]) == 1
    desk.repository.close()


def test_links_of_a_report_that_came_too_late_are_news_and_count_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "crawl")
    first = desk.lease()
    for lease in desk.leases.expired(desk.past.now + 10.0):
        desk.receiver.abandon(lease, desk.past.now)
    desk.report(first, "http://a.example/1")
    desk.report(first, "http://a.example/1", "http://a.example/2")
    desk.report(desk.lease(), "http://a.example/2", "http://a.example/3", after_s=20.0)
    assert [desk.in_degree(f"http://a.example/{n}") for n in (1, 2, 3)] == [1, 1, 1]
    kept = desk.repository.links(desk.row)
    assert kept is not None
    assert desk.repository.urls(kept.current().tolist()) == ["http://a.example/2", "http://a.example/3"]
    desk.repository.close()


@pytest.mark.parametrize(("delay_s", "wait_s"), [(0.0, 1.0), (20.0, 20.0)])
def test_robots_that_were_lost_are_asked_for_again_after_the_delay_of_the_host(
    tmp_path: Path, delay_s: float, wait_s: float
) -> None:
    desk = Desk(tmp_path / "crawl")
    hosts, now = desk.receiver.hosts, desk.past.now
    hosts.gate.set_delay(0, delay_s)
    hosts.gate.take(0, now)
    hosts.ask(0)
    lost = Lease(ROBOTS_ROW, 0, 0, FetchKind.NEW, now, now + 9.0, 1.0, 1.0, "{}")
    desk.receiver.abandon(lost, now + 9.0)
    assert not hosts.is_asked(0)
    assert not hosts.gate.is_free(0, now + 9.0 + wait_s - 0.01)
    assert hosts.gate.is_free(0, now + 9.0 + wait_s)


def test_after_the_clock_was_set_back_a_host_that_asks_for_ten_minutes_has_them(tmp_path: Path) -> None:
    """Though an earlier wait of it, which was over, would seem to be ahead; and what is under way is of now."""
    desk = Desk(tmp_path / "crawl")
    table, was = desk.repository.table, desk.past.now
    table.hosts.columns["not_before"][0] = was - 10.0
    set_back_waits(table, was, 3600.0)
    now = was - 3600.0 + 1.0
    token = desk.lease()
    desk.receiver.receive([Report(token, PAGE, Outcome.THROTTLED, was, status=429, retry_after_s=600.0)], now)
    assert table.hosts.columns["not_before"][0] == now + 600.0
    desk.repository.commit()
    (at,) = desk.repository.connection.execute("SELECT fetched_at FROM fetches ORDER BY id DESC LIMIT 1").fetchone()
    assert at == now
    desk.repository.close()
