"""A crawl as a person looks at it, while it runs or not: status, what is next, why this URL."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.bid_story import tell_bid, weigh_bid
from bowerbird.crawl.hosts import WELL_KNOWN_SITEMAP, HostKeeper
from bowerbird.crawl.policy_choice import choose_policy
from bowerbird.crawl.seed_report import report_seeds, tell_seed
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.study_kinds import methods_of
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.index.protocol import SearchAnswer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.errors import UrlError
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, GOOD, Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import last_study
from bowerbird.web.url import Canonicaliser, parse_input

HISTORY_ROWS = 12


def clock_text(at: float | None) -> str | None:
    """A time as people and machines read it."""
    if not at or at == float("inf"):
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


class CrawlView:
    """A crawl folder opened for looking. The columns are loaded when first needed; a search never needs them."""

    def __init__(self, root: Path, policy: str | None = None) -> None:
        self.folder = CrawlFolder(root)
        self.folder.check()
        self.settings = load_settings(self.folder.config)
        self.state = CommittedState(self.folder)
        try:
            self.choice = choose_policy(self.folder, self.settings, self.state.connection, policy)
        except BaseException:
            self.state.close()
            raise
        self.policy = self.choice.policy
        self.now = time.time()
        self.study_note = ""  # why the study of the frontier is not used
        self.refresh_note = ""  # why that of the known pages is not
        self.hub_note = ""  # why that of the hubs is not
        self.seed_note = ""  # why the choice of seeds is not

    @cached_property
    def repository(self) -> Repository:
        """Everything, as of the first look."""
        streams = open_studies(self.folder, methods_of(self.policy, self.settings))
        repository = Repository(self.folder, write=False, default_interval_s=self.settings.refresh.interval_s)
        notes = attach_studies(repository, streams)
        self.study_note, self.refresh_note = notes["frontier"], notes["refresh"]
        self.hub_note, self.seed_note = notes["hubs"], notes["seeds"]
        return repository

    def close(self) -> None:
        """Let go of the database."""
        self.state.close()
        if "repository" in self.__dict__:
            self.repository.close()

    def search(self, query: str, limit: int, offset: int = 0) -> SearchAnswer:
        """Ask the index."""
        index = TantivyIndex.open(self.folder.index, write=False, texts=ArchiveTexts(self.state))
        try:
            return index.search(query, limit, offset)
        finally:
            index.close()

    # -- status

    def status(self) -> dict[str, Any]:
        """Counts, errors by kind, speed, where the budget went, hosts."""
        columns = self.repository.table.columns
        hosts = self.repository.table.hosts.columns
        states = np.bincount(columns["state"], minlength=len(UrlState)).tolist()
        by_kind: dict[str, int] = {kind.label: 0 for kind in FetchKind}
        outcomes: dict[str, int] = {}
        wire_bytes = 0
        for kind, outcome, fetches, size in self.repository.connection.execute("SELECT * FROM totals"):
            outcomes[Outcome(outcome).label] = outcomes.get(Outcome(outcome).label, 0) + fetches
            if outcome not in DECISIONS_WITHOUT_FETCH:
                by_kind[FetchKind(kind).label] += fetches
                wire_bytes += size
        gate = self._gate()
        running = WriterLock.is_held(self.folder)
        live = self._live() if running else {}
        return {
            "folder": str(self.folder.root),
            "running": running,
            "policy": self._last_policy(),
            "known": columns.count,
            "frontier": states[UrlState.NEW],
            "fetched": states[UrlState.FETCHED],
            "states": {state.name.lower(): states[state] for state in UrlState},
            "fetches": sum(by_kind.values()),
            "budget": by_kind,
            "errors": {
                label: n
                for label, n in sorted(outcomes.items())
                if label not in {outcome.label for outcome in (*GOOD, Outcome.FORGOTTEN, Outcome.ADDED)}
            },
            "outcomes": outcomes,
            "wire_bytes": wire_bytes,
            "pages_per_s": round(live.get("pages_per_s", self._recent_speed()), 2) if running else 0.0,
            "price": live.get("price", self.policy.reserve),
            "in_flight": live.get("in_flight", 0),
            "hosts": len(hosts),
            "hosts_waiting": gate.waiting(self.now),
            "hosts_in_trouble": int(np.count_nonzero(hosts["errors"])),
            "near_duplicates": int(hosts["duplicates"].sum()),
            "indexed": self.indexed(),
            "index_behind": live.get(
                "indexed_behind",
                self.repository.last_fetch_id - int(str(self.repository.meta("indexed_through") or 0)),
            ),
            "archive_bytes": sum(self.repository.archive_ends().values()),
            "last_fetch": clock_text(float(hosts["last_fetch"].max()) if len(hosts) else None),
            "study": self._last_study(),
            "seeds": self.seeds(),
        }

    def seeds(self) -> dict[str, Any] | None:
        """The pages that the crawl chose to start from, and what that changed; None before it has."""
        study = self.repository.seed_study
        return None if study is None else report_seeds(study, self.now, self.repository.urls)

    def _last_study(self) -> dict[str, Any] | None:
        table = self.repository.table
        study = last_study(self.folder.studies, table.seed, table.columns["hash"])
        if study is None:
            return None
        return {"at": clock_text(study.at), "method": study.method, **asdict(study.calibration)}

    def indexed(self) -> int:
        """How many pages can be found."""
        index = TantivyIndex.open(self.folder.index, write=False)
        try:
            return index.count()
        finally:
            index.close()

    def _live(self) -> dict[str, Any]:
        text = self.state.meta("live")
        live: dict[str, Any] = orjson.loads(str(text)) if text else {}
        return live if self.now - float(live.get("at", 0)) < 10 else {}

    def _last_policy(self) -> str:
        row = self.state.connection.execute("SELECT policy FROM runs ORDER BY id DESC LIMIT 1").fetchone()
        return str(row[0]) if row else self.policy.name

    def last_run_speed(self) -> float | None:
        """Fetches a second of the last run that ended; None before there was one."""
        row = self.state.connection.execute(
            "SELECT fetched / max(ended_at - started_at, 1e-9) FROM runs"
            " WHERE ended_at IS NOT NULL AND fetched > 0 ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return float(row[0]) if row else None

    def _recent_speed(self) -> float:
        (recent,) = self.repository.connection.execute(
            "SELECT count(*) FROM fetches WHERE id > ? AND fetched_at > ?",
            (self.repository.last_fetch_id - 100_000, self.now - 60),
        ).fetchone()
        return float(recent) / 60

    # -- what is next

    def _gate(self) -> HostGate:
        politeness = self.settings.politeness
        gate = HostGate(politeness.delay_s, politeness.connections_per_host)
        keeper = HostKeeper(self.repository, gate, self.settings)
        gate.extend(len(self.repository.table.hosts))
        keeper.restore(self.now)
        keeper.weigh()
        return gate

    def _auction(self) -> Auction:
        columns = self.repository.table.columns
        auction = Auction(self._gate())
        rows = np.arange(columns.count)
        bids = self.policy.appraise(self.repository.snapshot(self.now), rows)
        auction.place(rows, bids, columns["host"][:], offer=False)
        auction.hold(rows, columns["not_before"].astype(np.float64))
        return auction

    def next(self, count: int) -> list[dict[str, Any]]:
        """What would be fetched now, in order; then what waits for its host or its time."""
        auction = self._auction()
        price = float(self._live().get("price", self.policy.reserve))
        auction.refill(self.now, price)
        chosen = [(pick.row, pick.value, "now") for pick in auction.pick(self.now, count, price)]
        if len(chosen) < count:
            taken = {row for row, _, _ in chosen}
            rows, values = auction.best(self.now, count)
            waiting = [pair for pair in zip(rows.tolist(), values.tolist(), strict=True) if pair[0] not in taken]
            for row, value in waiting[: count - len(chosen)]:
                chosen.append((row, value, self._when(auction, row, price)))
        snapshot = self.repository.snapshot(self.now)
        terms = self.policy.terms(snapshot, np.array([row for row, _, _ in chosen], dtype=np.int64))
        columns = self.repository.table.columns
        return [
            {
                "url": self.repository.url(row),
                "bid": value,
                "price": price,
                "kind": Policy.fetch_kind(int(columns["state"][row]), int(columns["kind"][row])).label,
                "when": when,
                "terms": orjson.loads(why),
            }
            for (row, value, when), why in zip(chosen, terms, strict=True)
        ]

    def _when(self, auction: Auction, row: int, price: float) -> str:
        due = auction.bid(row).reaches(price, self.now)
        if due is None:
            return "never at this price"
        host = int(self.repository.table.columns["host"][row])
        ready = float(auction.gate.columns["ready_at"][host])
        held = float(auction.bids["not_before"][row])
        return clock_text(max(due, ready, held, self.now)) or "now"

    # -- why this URL

    def _find(self, url: str) -> tuple[str, int]:
        """The canonical form of a known URL, and its row."""
        canonical = parse_input(url, Canonicaliser(self.settings.urls))
        row = self.repository.table.find_url(canonical)
        if row is None:
            raise UrlError(f"{canonical}: not known to this crawl. `bowerbird add {self.folder.root} URL` adds it.")
        return canonical, row

    def _source(self, row: int) -> tuple[int, int]:
        """What led to a URL, and how far from a seed that was at the time: chosen seeds came later."""
        found = self.repository.connection.execute("SELECT source, depth FROM urls WHERE id = ?", (row,)).fetchone()
        return int(found[0]), int(found[1])

    def found_how(self, url: str) -> str:
        """What led to a URL, in words: also for those that no page led to and yet no person gave."""
        canonical, row = self._find(url)
        columns = self.repository.table.columns
        source, depth = self._source(row)
        if source >= 0:
            return f"on {self.repository.url(source)}"
        if columns["kind"][row] == UrlKind.PAGE or depth == 0:
            return "given by a person"
        host = int(columns["host"][row])
        hosts = self.repository.table.hosts
        well_known = canonical == hosts.origins[host] + WELL_KNOWN_SITEMAP
        if columns["kind"][row] == UrlKind.FEED or (well_known and not self._names_sitemap(host, canonical)):
            return "looked for at a well-known place"
        return "named in robots.txt"

    def _names_sitemap(self, host: int, url: str) -> bool:
        """Whether the robots.txt read last names this sitemap."""
        hosts = self.repository.table.hosts
        keeper = HostKeeper(self.repository, self._gate(), self.settings)
        rules = keeper.robots.rules(host, float(hosts.columns["robots_at"][host]))
        return rules is not None and url in keeper.canonicaliser.resolve(hosts.origins[host] + "/", rules.sitemaps)

    def explain(self, url: str) -> dict[str, Any]:
        """State, history, the bid as a tree, the host's politeness, and when the URL will be fetched."""
        canonical, row = self._find(url)
        columns = self.repository.table.columns
        auction = self._auction()
        price = float(self._live().get("price", self.policy.reserve))
        bid = auction.bid(row)
        host = int(columns["host"][row])
        weight = float(auction.gate.columns["weight"][host])
        source, _ = self._source(row)
        version = self.repository.version(row)
        tree = tell_bid(self.policy, self.repository, self.settings, self.now, row)
        state = UrlState(int(columns["state"][row]))
        unused = self.study_note if state is UrlState.NEW else self.refresh_note
        if columns["kind"][row] != UrlKind.PAGE or not unused:
            unused = self.hub_note
        if unused:
            tree["note"] = f"{tree.get('note', '')}; {unused}"
        tree = weigh_bid(tree, weight)
        return {
            "url": canonical,
            "state": state.name.lower(),
            "kind": UrlKind(int(columns["kind"][row])).name.lower(),
            "depth": int(columns["depth"][row]),
            "found_on": self.repository.url(source) if source >= 0 else None,
            "found_how": self.found_how(url),
            "first_seen": clock_text(float(columns["first_seen"][row])),
            "last_fetched": clock_text(float(columns["last_fetched"][row])),
            "last_changed": clock_text(float(columns["last_changed"][row])),
            "fetches": int(columns["fetches"][row]),
            "changes": int(columns["changes"][row]),
            "in_links": int(columns["in_degree"][row]),
            "anchors": self.repository.anchors(row),
            "seed": tell_seed(self.repository.seed_study, row),
            "duplicate_of": self.repository.url(version.duplicate_of)
            if version is not None and version.duplicate_of is not None
            else None,
            "bid": {
                "value": bid.value(self.now) * weight,
                "amplitude": bid.amplitude,
                "rate_per_s": bid.rate,
                "since": clock_text(bid.since),
                "shape": bid.shape.name.lower(),
                "tree": tree,
            },
            "price": price,
            "host": self._host(host, canonical, auction),
            "expected": self._expected(auction, row, price, state),
            "history": self._history(row),
        }

    def _host(self, host: int, url: str, auction: Auction) -> dict[str, Any]:
        hosts = self.repository.table.hosts
        robots = HostKeeper(self.repository, auction.gate, self.settings).robots
        rules = robots.rules(host, self.now)
        return {
            "origin": hosts.origins[host],
            "delay_s": auction.gate.delay(host),
            "robots": "not fetched yet" if rules is None else ("allowed" if rules.allows(url) else "disallowed"),
            "robots_fetched": clock_text(float(hosts.columns["robots_at"][host])),
            "last_fetch": clock_text(float(hosts.columns["last_fetch"][host])),
            "ready_at": clock_text(max(float(auction.gate.columns["ready_at"][host]), self.now)),
            "errors_in_a_row": int(hosts.columns["errors"][host]),
            "known": int(hosts.columns["known"][host]),
            "pages": int(hosts.columns["pages"][host]),
            "trap_score": round(float(hosts.trap_score()[host]), 3),
        }

    def _expected(self, auction: Auction, row: int, price: float, state: UrlState) -> dict[str, Any]:
        """When the URL's turn comes if nothing changes: its bid reaches the price, its host gets through the line."""
        if auction.bid(row).amplitude <= 0:
            return {"at": None, "why": f"the URL is {state.name.lower()}: it is not fetched"}
        due = auction.bid(row).reaches(price, self.now)
        if due is None:
            return {"at": None, "why": "the bid does not reach the price"}
        bids = auction.bids
        host = int(bids["host"][row])
        rivals = np.flatnonzero((bids["host"] == host) & (bids["amplitude"] > 0))
        values = auction.values(self.now, rivals)
        mine = float(values[rivals == row][0])
        ahead = (values > mine) | ((values == mine) & (rivals < row))
        better = int(np.count_nonzero((values >= price) & ahead))
        ready = max(float(auction.gate.columns["ready_at"][host]), self.now)
        at = max(due, float(bids["not_before"][row]), ready + better * auction.gate.delay(host))
        return {
            "at": clock_text(at),
            "in_s": round(at - self.now, 1),
            "before_it_on_host": better,
            "why": "its bid reaches the price" if due > self.now else "in line at its host",
        }

    def _history(self, row: int) -> list[dict[str, Any]]:
        rows = self.repository.connection.execute(
            "SELECT fetched_at, kind, outcome, status, bid, price, terms, changed, resemblance, elapsed_s, wire_bytes,"
            " target, error FROM fetches WHERE url = ? ORDER BY id DESC LIMIT ?",
            (row, HISTORY_ROWS),
        ).fetchall()
        return [
            {
                "at": clock_text(at),
                "kind": FetchKind(kind).label,
                "outcome": Outcome(outcome).label,
                "status": status,
                "bid": bid,
                "price": price,
                "terms": orjson.loads(terms),
                "changed": bool(changed),
                "resemblance": resemblance,
                "elapsed_s": elapsed,
                "wire_bytes": wire,
                "redirects_to": self.repository.url(target) if target is not None else None,
                "error": error,
            }
            for at, kind, outcome, status, bid, price, terms, changed, resemblance, elapsed, wire, target, error in rows
        ]
