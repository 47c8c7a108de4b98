"""What the loop knows of hosts: robots.txt, back-off after errors, the weight that traps cost."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.report import Report
from bowerbird.crawl.robots_book import RobotsBook
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import Settings
from bowerbird.model.outcome import Outcome
from bowerbird.model.snapshot import weigh_hosts
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.schedule.leases import Lease
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository
from bowerbird.web.retry import LONGEST_S, backoff_s
from bowerbird.web.url import Canonicaliser

I64 = npt.NDArray[np.int64]
HOST_TROUBLE = frozenset({Outcome.DNS, Outcome.CONNECT, Outcome.TIMEOUT, Outcome.TLS, Outcome.THROTTLED})
WELL_KNOWN_SITEMAP = "/sitemap.xml"
SITEMAPS_IN_ROBOTS = 100
LEFT_ALONE_S = 86_400.0
LONGEST_HOST_WAIT_S = max(LEFT_ALONE_S, LONGEST_S)


def _unreachable(outcome: Outcome) -> str:
    return f"robots.txt: {outcome.label}"


class HostKeeper:
    """Keeps the gate in step with what hosts say and how they behave."""

    def __init__(self, repository: Repository, gate: HostGate, settings: Settings, scope: Scope | None = None) -> None:
        self.repository = repository
        self.gate = gate
        self.settings = settings
        self.robots = RobotsBook(repository, settings.crawl.product)
        self.canonicaliser = Canonicaliser(settings.urls)
        self.scope = scope or Scope(settings.scope_rules, repository.seeds())
        self._asked: set[int] = set()

    def restore(self, now: float) -> None:
        """At the start of a run: delays and waits as they were."""
        hosts = self.repository.table.hosts.columns
        self.gate.extend(len(hosts))
        for host in np.flatnonzero(hosts["crawl_delay_s"] > 0).tolist():
            self._set_delay(host, float(hosts["crawl_delay_s"][host]))
        ready = np.maximum(hosts["not_before"], hosts["last_fetch"] + self.gate.columns["delay_s"][: len(hosts)])
        self.gate.columns["ready_at"][: len(hosts)] = np.where(ready > now, ready, 0.0)

    def reconsider_excluded(self, now: float) -> None:
        """Where the settings have changed that kept URLs or hosts out, they may come back."""
        for key, mark, reconsider in (
            ("scope", repr(self.settings.scope_rules), self._reconsider_urls),
            ("addresses", repr(self.settings.network.allow_addresses), self._reconsider_hosts),
        ):
            if self.repository.meta(key) != mark:
                reconsider(now)
                self.repository.commit()
                self.repository.set_meta(key, mark)

    def _reconsider_urls(self, now: float) -> None:
        rows = np.flatnonzero(self.repository.table.columns["state"] == UrlState.EXCLUDED).tolist()
        self._requeue(
            [r for r, url in zip(rows, self.repository.urls(rows), strict=True) if self.scope.admits(url)], now
        )

    def _reconsider_hosts(self, now: float) -> None:
        """Hosts left alone for their addresses are asked again; the journal knows why a host was unreachable last."""
        hosts = self.repository.table.hosts
        for host, error in self.repository.connection.execute(
            "SELECT urls.host, fetches.error FROM fetches JOIN urls ON urls.id = fetches.url WHERE fetches.id IN"
            " (SELECT max(fetches.id) FROM fetches JOIN urls ON urls.id = fetches.url WHERE fetches.outcome = ?"
            " GROUP BY urls.host)",
            (int(Outcome.HOST_UNREACHABLE),),
        ).fetchall():
            if str(error).startswith(_unreachable(Outcome.ADDRESS_REFUSED)) and hosts.columns["not_before"][host] > now:
                hosts.columns["errors"][host] = 0
                hosts.columns["not_before"][host] = 0.0
                hosts.dirty.add(host)

    def _requeue(self, rows: list[int], now: float) -> None:
        for row in rows:
            self.repository.record(
                FetchRecord(row, FetchKind.NEW, now, 0.0, 0.0, "{}", now, Outcome.ADDED, UrlState.NEW)
            )

    def _set_delay(self, host: int, delay_s: float) -> None:
        self.gate.set_delay(host, min(delay_s, self.settings.politeness.max_crawl_delay_s))

    # -- robots.txt

    def robots_url(self, host: int) -> str:
        """Where a host keeps its rules."""
        return self.repository.table.hosts.origins[host] + "/robots.txt"

    def is_asked(self, host: int) -> bool:
        """Is its robots.txt on the way?"""
        return host in self._asked

    def ask(self, host: int) -> None:
        """robots.txt is being fetched: nothing else of this host until it is there."""
        self._asked.add(host)
        self.gate.hold(host, math.inf)

    def unasked(self, host: int, now: float) -> None:
        """The fetch of robots.txt was lost: ask again soon, and not before the host's delay is over."""
        self._asked.discard(host)
        self.gate.give_back(host, now)
        self.gate.release(host, now + max(1.0, self.gate.delay(host)))

    def take_robots(self, lease: Lease, report: Report, now: float) -> tuple[I64, I64]:
        """robots.txt has come (or not): excluded URLs that are allowed now, and sitemaps found in it."""
        host = lease.host
        self._asked.discard(host)
        nothing = np.zeros(0, dtype=np.int64)
        before = self.repository.robots(host)
        rules = self.robots.take(host, report)
        columns = self.repository.table.hosts.columns
        columns["last_fetch"][host] = now
        self.repository.table.hosts.dirty.add(host)
        self.gate.give_back(host, now)
        if rules is None:
            self._back_off(host, report, now)
            self.gate.release(host, float(columns["not_before"][host]))
            self._journal_unreachable(lease, report, now)
            return nothing, nothing
        columns["errors"][host] = 0
        self._set_delay(host, rules.crawl_delay_s or 0.0)
        self.gate.release(host, now + self.gate.delay(host))
        again = nothing if before is None or before[2] == report.body else self._requeue_allowed(host, now)
        return again, self._add_sources(host, rules.sitemaps, now)

    def _journal_unreachable(self, lease: Lease, report: Report, now: float) -> None:
        """Without robots.txt nothing of the host is fetched: a person must be able to see why."""
        columns = self.repository.table.columns
        row = lease.waiting
        if row < 0:  # whoever asked is gone, and had not written down for whom
            return
        self.repository.record(
            FetchRecord(
                row,
                lease.kind,
                lease.decided_at,
                lease.bid,
                lease.price,
                lease.terms,
                now,
                Outcome.HOST_UNREACHABLE,
                UrlState(int(columns["state"][row])),
                errors=int(columns["errors"][row]),
                not_before=float(columns["not_before"][row]),
                error=_unreachable(report.outcome) + (f": {report.error}" if report.error else ""),
            )
        )

    def _requeue_allowed(self, host: int, now: float) -> I64:
        table = self.repository.table.columns
        rows = np.flatnonzero((table["host"] == host) & (table["state"] == UrlState.EXCLUDED))
        rules = self.robots.rules(host, now)
        urls = self.repository.urls(rows.tolist())
        again = [row for row, url in zip(rows.tolist(), urls, strict=True) if rules is not None and rules.allows(url)]
        self._requeue(again, now)
        return np.array(again, dtype=np.int64)

    def _add_sources(self, host: int, sitemaps: tuple[str, ...], now: float) -> I64:
        origin = self.repository.table.hosts.origins[host] + "/"
        found = self.canonicaliser.resolve(origin, sitemaps[:SITEMAPS_IN_ROBOTS])
        named = [url for url in found if url is not None and self.scope.admits(url)]
        urls = named or [origin[:-1] + WELL_KNOWN_SITEMAP]
        _, added = self.repository.add_urls(urls, at=now, kind=UrlKind.SITEMAP, depth=1)
        feeds = [url for url in self.canonicaliser.resolve(origin, self.settings.crawl.well_known_feeds) if url]
        if feeds:
            _, more = self.repository.add_urls(feeds, at=now, kind=UrlKind.FEED, depth=1)
            added = np.concatenate([added, more])
        self.gate.extend(len(self.repository.table.hosts))
        return added

    # -- behaviour

    def answered(self, host: int, report: Report, now: float) -> None:
        """A fetch of this host ended, well or badly."""
        self.gate.give_back(host, now)
        columns = self.repository.table.hosts.columns
        columns["last_fetch"][host] = now
        self.repository.table.hosts.dirty.add(host)
        if report.outcome in HOST_TROUBLE:
            if now >= float(columns["not_before"][host]):  # several failures at once are one trouble
                self._back_off(host, report, now)
        elif report.outcome.answered:
            columns["errors"][host] = 0

    def _back_off(self, host: int, report: Report, now: float) -> None:
        columns = self.repository.table.hosts.columns
        if report.outcome is Outcome.ADDRESS_REFUSED:  # that does not pass by itself
            columns["errors"][host] = self.settings.crawl.max_errors + 1
            columns["not_before"][host] = now + LEFT_ALONE_S
            self.gate.hold(host, now + LEFT_ALONE_S)
            return
        columns["errors"][host] += 1
        wait = backoff_s(
            int(columns["errors"][host]), self.settings.crawl.retry_base_s, retry_after_s=report.retry_after_s
        )
        columns["not_before"][host] = now + wait
        self.gate.hold(host, now + wait)

    def weigh(self) -> None:
        """Hosts whose pages mostly repeat others come later."""
        score = self.repository.table.hosts.trap_score()
        self.gate.extend(len(score))
        self.gate.columns["weight"][: len(score)] = weigh_hosts(score)

    def unfetched(self) -> int:
        """URLs of hosts not given up that were never fetched."""
        table = self.repository.table
        dead = table.hosts.columns["errors"] > self.settings.crawl.max_errors
        new = table.columns["state"] == UrlState.NEW
        return int(np.count_nonzero(new & ~dead[table.columns["host"]]))
