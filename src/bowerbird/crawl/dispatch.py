"""From the auction to the workers: picks become leases, after robots.txt has been asked and obeyed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.studied import fresh_pages
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.market import Market
from bowerbird.crawl.report import ROBOTS_JOB, Job
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.workforce import Workforce
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.schedule.auction import Pick
from bowerbird.schedule.leases import LOST_ROW, ROBOTS_ROW, Lease, LeaseBook
from bowerbird.schedule.lottery import Lottery
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

DISPATCH_AT_LEAST = 8
OUTSTANDING = 128  # leases a worker may hold
LOT_REST = 20.0  # turns of a host, of which lots for hubs and news have one at most


class LotTurns:
    """Hosts that lots for hubs and news may ask: most turns of a host are not theirs."""

    def __init__(self, repository: Repository, gate: HostGate) -> None:
        self.repository = repository
        self.gate = gate
        self._taken_at: dict[int, float] = {}  # by host

    def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        """Which of these URLs are of hosts that such lots have left alone for a while, and that may be asked soon."""
        rests = {host: at for host, at in self._taken_at.items() if now - at < LOT_REST * self.gate.delay(host)}
        self._taken_at = rests
        hosts = self.repository.table.columns["host"][rows].astype(np.int64)
        return ~(np.isin(hosts, list(rests)) | self.gate.are_held(hosts, now))

    def take(self, row: int, now: float) -> None:
        """This one was drawn: its host has a rest."""
        self._taken_at[int(self.repository.table.columns["host"][row])] = now


class Dispatcher:
    """Leases the best bids to workers with room."""

    def __init__(
        self,
        repository: Repository,
        market: Market,
        hosts: HostKeeper,
        pool: Workforce,
        settings: Settings,
        first_token: int = 1,
    ) -> None:
        self.repository = repository
        self.market = market
        self.hosts = hosts
        self.pool = pool
        self.settings = settings
        self.leases = LeaseBook(first_token)
        self.lottery = Lottery(settings.quality.probe_share)
        self.only_drawn = False  # a run that measures leaves the auction alone
        self.excluded: list[int] = []  # rows that robots.txt took out since the coordinator last looked
        self.hungry = False  # the pool had too little, though there are more bids
        self._hubs_followed: HubStudy | None = None
        self._lot_turns = LotTurns(repository, market.gate)

    def dispatch(self, now: float, pages_left: int | None) -> bool:
        """Lease what workers have room for; False when there was nothing to do."""
        limit = min(self.settings.fetch.max_connections, OUTSTANDING)
        capacity = {n: limit - worker.outstanding for n, worker in self.pool.workers.items()}
        wanted = sum(room for room in capacity.values() if room > 0)
        if pages_left is not None:
            wanted = min(wanted, pages_left - len(self.leases))
        if wanted < DISPATCH_AT_LEAST and len(self.leases) > DISPATCH_AT_LEAST:
            return False
        room, wanted = wanted, self.market.allowance.available(now, wanted)
        if wanted <= 0:
            return False
        drawn = self._take_drawn(now, wanted)
        left = 0 if self.only_drawn else wanted - len(drawn)
        picks = drawn + self.market.pick(now, left, scarce=wanted < room)
        self.hungry = len(picks) < wanted and self.market.auction.left_out > 0
        if not picks:
            return False
        self._lease(picks, capacity, now)
        return True

    def take_up(self, now: float) -> None:
        """Leases that an earlier coordinator gave go on: their hosts and URLs are taken until they are over."""
        gate = self.market.gate
        for token, lease in self.pool.restore(self.repository.table):
            self.leases.reopen(token, lease)
            gate.extend(lease.host + 1)
            gate.take(lease.host, now)
            if lease.row == ROBOTS_ROW:
                self.hosts.ask(lease.host)
            elif lease.row != LOST_ROW:
                self.market.auction.hold([lease.row], lease.expires_at)

    def set_back(self, by_s: float) -> None:
        """The clock was set back: leases end, and hosts are ready, when they would have been; what is out stays out."""
        self.leases.set_back(by_s)
        self.lottery.set_back(by_s)
        self.market.gate.set_back(by_s)
        self._lot_turns = LotTurns(self.repository, self.market.gate)
        for lease in self.leases.of_rows():
            self.market.auction.hold([lease.row], lease.expires_at)

    def follow_hubs(self, now: float) -> None:
        """After a study of hubs, lots go to those it found, and to new pages that they announced of late."""
        study = self.repository.hub_study
        if study is not None and study is not self._hubs_followed:
            self.lottery.follow(study.hubs.row, fresh_pages(self.repository.snapshot(now), study.page_row))
            self._hubs_followed = study

    def _take_drawn(self, now: float, wanted: int) -> list[Pick]:
        """Pages drawn by lot whose hosts may be asked now; the others go on waiting."""
        columns, gate, auction = self.repository.table.columns, self.market.gate, self.market.auction
        for ticket in self.lottery.draw(columns["state"], columns["kind"], now, self._lot_turns):
            held = self.leases.holding(ticket.row)
            asked = columns["state"][ticket.row] == UrlState.FETCHED and columns["kind"][ticket.row] == UrlKind.PAGE
            # it is being fetched already: that fetch is the one that was drawn, unless it was asked for with conditions
            if held is not None and not asked:
                held.kind, held.terms = FetchKind.PROBE, ticket.terms(held.terms)
                del self.lottery.waiting[ticket.row]
        rows = np.fromiter(self.lottery.waiting, np.int64, len(self.lottery.waiting))
        known = np.isin(columns["state"][rows], (UrlState.NEW, UrlState.FETCHED))
        for row in rows[~known].tolist():
            del self.lottery.waiting[row]  # it was excluded or forgotten meanwhile
        hosts = columns["host"][rows].astype(np.int64)
        able = known & (auction.bids["not_before"][rows] <= now) & gate.are_free(hosts, now)
        picks: list[Pick] = []
        for row, host in zip(rows[able].tolist(), hosts[able].tolist(), strict=True):
            if len(picks) < wanted and gate.is_free(host, now):
                picks.append(auction.take(row, now, now + self.settings.crawl.lease_s))
        return picks

    def _lease(self, picks: list[Pick], capacity: dict[int, int], now: float) -> None:
        columns = self.repository.table.columns
        urls = self.repository.urls(pick.row for pick in picks)
        rows = np.array([pick.row for pick in picks], dtype=np.int64)
        terms = self.market.policy.terms(self.repository.snapshot(now), rows)
        expires = now + self.settings.crawl.lease_s
        price = self.market.price.value
        jobs: dict[int, list[Job]] = {}
        started = 0
        self.hosts.robots.fetch_ahead((pick.host for pick in picks), now)
        versions = self.repository.versions(rows[columns["state"][rows] == UrlState.FETCHED].tolist())
        for pick, url, why in zip(picks, urls, terms, strict=True):
            rules = self.hosts.robots.rules(pick.host, now)
            if rules is None:
                started += self._ask_robots(pick, why, jobs, capacity, now)
                continue
            state, kind = int(columns["state"][pick.row]), int(columns["kind"][pick.row])
            fetch_kind = self.market.policy.fetch_kind(state, kind, why)
            ticket = self.lottery.waiting.pop(pick.row, None)
            if ticket is not None:
                fetch_kind, why = FetchKind.PROBE, ticket.terms(why)  # noqa: PLW2901 - the lot is the reason
            if not rules.allows(url) or not self.hosts.scope.admits(url):
                outcome = Outcome.OUT_OF_SCOPE if rules.allows(url) else Outcome.ROBOTS
                self._exclude(pick, fetch_kind, why, now, outcome)
                continue
            job = Job(0, url)
            # a page drawn by lot is asked for without conditions: so it shows whether its validators tell of changes;
            # of feeds and sitemaps nothing is measured
            if state == UrlState.FETCHED and (ticket is None or kind != UrlKind.PAGE):
                version = versions.get(pick.row)
                if version is not None:
                    job.etag, job.last_modified = version.etag, version.last_modified
            worker = self._choose_worker(pick.host, capacity)
            job.token = self.leases.open(
                Lease(pick.row, pick.host, worker, fetch_kind, now, expires, pick.value, price, why)
            )
            self.market.auction.hold([pick.row], expires)
            jobs.setdefault(worker, []).append(job)
            capacity[worker] -= 1
            started += 1
        self.lottery.owe(started)
        self.market.allowance.spend(started)
        for number, batch in jobs.items():
            self.pool.send(number, batch, self.leases)

    def _choose_worker(self, host: int, capacity: dict[int, int]) -> int:
        """A host keeps to one worker while it has one connection; otherwise the least busy worker takes it."""
        if int(self.market.gate.columns["slots"][host]) == 1:
            numbers = list(capacity)
            sticky = numbers[host % len(numbers)]
            if capacity[sticky] > 0:
                return sticky
        return max(capacity, key=lambda number: capacity[number])

    def _ask_robots(
        self, pick: Pick, terms: str, jobs: dict[int, list[Job]], capacity: dict[int, int], now: float
    ) -> int:
        """Fetch robots.txt first; how many fetches that is."""
        self.market.auction.offer_again([pick.row])
        if self.hosts.is_asked(pick.host):
            self.market.gate.cancel(pick.host, math.inf)
            return 0
        worker = self._choose_worker(pick.host, capacity)
        token = self.leases.open(
            Lease(
                ROBOTS_ROW,
                pick.host,
                worker,
                FetchKind.HUB,
                now,
                now + self.settings.crawl.lease_s,
                pick.value,
                self.market.price.value,
                terms,
                waiting=pick.row,
            )
        )
        self.hosts.ask(pick.host)
        jobs.setdefault(worker, []).append(Job(token, self.hosts.robots_url(pick.host), flags=ROBOTS_JOB))
        capacity[worker] -= 1
        return 1

    def _exclude(self, pick: Pick, kind: FetchKind, terms: str, now: float, outcome: Outcome) -> None:
        """robots.txt or the settings say no: a decision without a fetch, journalled like the others."""
        price = self.market.price.value
        self.repository.record(
            FetchRecord(pick.row, kind, now, pick.value, price, terms, now, outcome, UrlState.EXCLUDED)
        )
        self.excluded.append(pick.row)
        self.market.auction.withdraw(pick.row)
        self.market.gate.cancel(pick.host, now)
