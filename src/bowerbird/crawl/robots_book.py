"""robots.txt per host: fetched before the first page, kept a day, obeyed at every lease."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from bowerbird.crawl.report import Report
from bowerbird.model.outcome import Outcome
from bowerbird.store.repository import Repository
from bowerbird.web.robots import ROBOTS_TTL_S, RobotsRules, rules_for_response

KEPT = 20_000


class RobotsBook:
    """The rules of hosts, in memory for those in use and in the database for all."""

    def __init__(self, repository: Repository, agent: str, ttl_s: float = ROBOTS_TTL_S) -> None:
        self.repository = repository
        self.agent = agent
        self.ttl_s = ttl_s
        self._rules: OrderedDict[int, RobotsRules] = OrderedDict()

    def rules(self, host: int, now: float) -> RobotsRules | None:
        """The rules in force; None when robots.txt must be fetched (again) first."""
        hosts = self.repository.table.hosts.columns
        fetched_at = float(hosts["robots_at"][host])
        if fetched_at <= 0 or now - fetched_at > self.ttl_s:
            return None
        rules = self._rules.get(host)
        if rules is not None:
            self._rules.move_to_end(host)
            return rules
        self.fetch_ahead([host], now)
        return self._rules.get(host)

    def fetch_ahead(self, hosts: Iterable[int], now: float) -> None:
        """Have the rules of these hosts at hand, as far as they are in force, with one question to the database."""
        columns = self.repository.table.hosts.columns
        wanted = {host for host in hosts if host not in self._rules and now - columns["robots_at"][host] <= self.ttl_s}
        for host, kept in self.repository.robots_of(sorted(wanted)).items():
            rules = self._read(kept)
            if rules is not None:
                self._keep(host, rules)

    def _read(self, kept: tuple[float, str, bytes]) -> RobotsRules | None:
        return rules_for_response(
            Outcome.OK if kept[1] == "ok" else Outcome.GONE,
            200 if kept[1] == "ok" else 404,
            kept[2],
            self.agent,
        )

    def take(self, host: int, report: Report) -> RobotsRules | None:
        """A fetched robots.txt; None when the host must be left alone for now."""
        rules = rules_for_response(report.outcome, report.status, report.body, self.agent)
        if rules is None:
            return None
        hosts = self.repository.table.hosts
        hosts.columns["robots_at"][host] = report.fetched_at
        hosts.columns["crawl_delay_s"][host] = rules.crawl_delay_s or 0.0
        self.repository.record_robots(host, "ok" if report.outcome is Outcome.OK else "none", report.body)
        self._keep(host, rules)
        return rules

    def _keep(self, host: int, rules: RobotsRules) -> None:
        self._rules[host] = rules
        if len(self._rules) > KEPT:
            self._rules.popitem(last=False)
