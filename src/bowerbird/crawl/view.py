"""A crawl as a person looks at it, while it runs or not: status, what is next, why this URL."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bowerbird.appraise.budget.what_if import Outlook
from bowerbird.appraise.one_budget import OneBudget
from bowerbird.crawl.attached_studies import attach_studies, open_studies
from bowerbird.crawl.bid_story import tell_bid
from bowerbird.crawl.budget_report import (
    gather_supply,
    read_last_fetch,
    read_recent,
    report_budget,
    report_what_if,
    tell_growth,
)
from bowerbird.crawl.guest_owner import read_owner
from bowerbird.crawl.guest_view import Coming, GuestView, open_guest_view, tell_guest_decision
from bowerbird.crawl.hosts import LONGEST_HOST_WAIT_S, HostKeeper
from bowerbird.crawl.intake import LONGEST_WAIT_S
from bowerbird.crawl.journal_spans import last_minute_speed
from bowerbird.crawl.live import price_in_clicks, read_live, read_rate, read_speed
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.policy_choice import choose_policy, last_policy
from bowerbird.crawl.seed_report import report_seeds
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.sooner import Circumstances, tell_decision, tell_standing
from bowerbird.crawl.standing import expect, find_due, find_standing, is_due_by_age
from bowerbird.crawl.statistics import read_totals
from bowerbird.crawl.study_kinds import methods_of
from bowerbird.crawl.study_troubles import tell_studies
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.crawl.url_story import tell_found, tell_history, tell_host, tell_record, tell_worth
from bowerbird.index.protocol import SearchAnswer
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.bid import Bids
from bowerbird.model.errors import UrlError
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.clock_trouble import bring_back
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import last_study
from bowerbird.web.url import Canonicaliser, parse_input

FAR_S = 20 * 365.25 * 86_400.0  # a time that nobody waits for
MOST_ASKED = 50  # URLs, of which it is worked out when their bids would be made anew


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
        self.now = self.state.connection.now()
        self.study_note = self.refresh_note = self.hub_note = self.seed_note = ""  # why a study is not used

    @cached_property
    def repository(self) -> Repository:
        """Everything, as of the first look."""
        streams = open_studies(self.folder, methods_of(self.policy, self.settings))
        repository = Repository(self.folder, write=False, default_interval_s=self.settings.refresh.interval_s)
        bring_back(repository.table, self.now, LONGEST_HOST_WAIT_S, LONGEST_WAIT_S)  # as a crawl does
        notes = attach_studies(repository, streams)
        repository.price = self._price_in_clicks()
        self.study_note, self.refresh_note = notes["frontier"], notes["refresh"]
        self.hub_note, self.seed_note = notes["hubs"], notes["seeds"]
        if not self.settings.seeds.study_every_s:
            self.seed_note = "turned off: seeds.study_every_s = 0"
        return repository

    @cached_property
    def guest(self) -> GuestView | None:
        """Where another program fetches for this crawl: what that one is given. None for a crawl of ours."""
        owner = read_owner(self.state)
        if owner is None:
            return None
        running = WriterLock.is_held(self.folder)
        return open_guest_view(owner, self.repository, self.policy, self.settings, self.now, running=running)

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
        totals = read_totals(self.repository.connection)
        gate = self._gate()
        running = WriterLock.is_held(self.folder)
        live = self._live() if running else {}
        policy = self._last_policy()
        return {
            "folder": str(self.folder.root),
            "running": running,
            "policy": policy,
            "known": columns.count,
            "frontier": states[UrlState.NEW],
            "fetched": states[UrlState.FETCHED],
            "states": {state.name.lower(): states[state] for state in UrlState},
            "fetches": sum(totals.by_kind.values()),
            "budget": totals.by_kind,
            "errors": totals.errors,
            "outcomes": totals.outcomes,
            "wire_bytes": totals.wire_bytes,
            "pages_per_s": round(live.get("pages_per_s", last_minute_speed(self.repository.connection, self.now)), 2)
            if running
            else 0.0,
            "price": live["price"] if "price" in live else self.price(),
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
            "study_notes": tell_studies(self.repository, methods_of(self.policy, self.settings)),
            "seeds": self.seeds(),
            "seed_note": self.seed_note,
            "one_budget": self.budget() if self.choice.asked or policy == self.policy.name else None,
        }

    def budget(self) -> dict[str, Any] | None:
        """What the one budget of `auto` is spent on; None for other policies."""
        if not isinstance(self.policy, OneBudget):
            return None
        price = self.price() if WriterLock.is_held(self.folder) and self._live() else None
        return report_budget(self.policy, self.repository, self.settings, self.now, price, self.rate_per_s())

    def what_if(self) -> dict[str, Any] | None:
        """What other budgets would gain; None where bids are not in clicks, or nothing has been fetched."""
        outlook = self._outlook(self._auction())
        set_to, asked = self.rate_per_s(), 0.0 if outlook is None else outlook.asked_per_s
        rate = set_to or min(read_recent(self.repository.connection).per_s, asked)
        if outlook is None or rate <= 0:
            return None
        snapshot = self.repository.snapshot(self.now)
        unit, by_clicks = self.policy.unit(snapshot), self.policy.by_clicks(snapshot)
        return report_what_if(outlook, unit, rate, by_setting=bool(set_to), by_clicks=by_clicks)

    def _outlook(self, auction: Auction) -> Outlook | None:
        if not isinstance(self.policy, OneBudget):
            return None
        supply = gather_supply(self.policy, self.repository.snapshot(self.now), auction)
        return None if supply is None else Outlook(supply)

    def price(self) -> float:
        """What a fetch must bid now; a crawl that runs may bid by older studies, in another unit of clicks."""
        clicks, reserve = self._price_in_clicks(), self.policy.reserve
        if clicks <= 0:
            return float(self._live().get("price", reserve))
        unit = self.policy.unit(self.repository.snapshot(self.now))
        # a policy that does not bid in clicks cannot be held against a price in them
        return max(clicks / unit, reserve) if unit > 0 else reserve

    def _price_in_clicks(self) -> float:
        """That of the crawl that runs, or the last under a budget of one that rests; 0 where it is not known."""
        if WriterLock.is_held(self.folder) or not self.rate_per_s():
            return price_in_clicks(self._live())
        last = read_last_fetch(self.state.connection)
        return 0.0 if last is None else last.price_clicks

    def rate_per_s(self) -> float | None:
        """The budget of the crawl that runs, else of the last run, else of the settings; None where there is none."""
        running = WriterLock.is_held(self.folder)
        return read_rate(read_live(self.state), self.settings.crawl.rate_per_s, running=running)

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
        live = read_live(self.state)
        return live if abs(self.now - float(live.get("at", 0))) < 10 else {}

    def _last_policy(self) -> str:
        return last_policy(self.state.connection) or self.policy.name

    def last_run_speed(self) -> float | None:
        """Fetches a second of the last run that fetched, 0 where none did; None before there was one."""
        return read_speed(self.state)

    # -- what is next

    def _gate(self) -> HostGate:
        politeness = self.settings.politeness
        gate = HostGate(politeness.delay_s, politeness.connections_per_host)
        keeper = HostKeeper(self.repository, gate, self.settings)
        gate.extend(len(self.repository.table.hosts))
        keeper.restore(self.now)
        keeper.weigh()
        return gate

    @cached_property
    def _bids(self) -> Bids:
        """Of all URLs, without what explains them: that takes more room."""
        rows = np.arange(self.repository.table.columns.count)
        return replace(self.policy.appraise(self.repository.snapshot(self.now), rows), terms={})

    def _auction(self) -> Auction:
        columns = self.repository.table.columns
        auction = Auction(self._gate())
        rows = np.arange(columns.count)
        auction.place(rows, self._bids, columns["host"][:], offer=False)
        auction.hold(rows, columns["not_before"].astype(np.float64))
        return auction

    def next(self, count: int) -> list[dict[str, Any]]:
        """What would be fetched now, in order; then what waits for its host or its time."""
        price = 0.0 if self.guest is not None else self.price()
        chosen = self._choose(count, price) if self.guest is None else self.guest.next(count)
        snapshot = self.repository.snapshot(self.now)
        unit = (self.policy.unit(snapshot), self.policy.by_clicks(snapshot))
        terms = self.policy.terms(snapshot, np.array([row for row, _, _ in chosen], dtype=np.int64))
        return [
            {
                "url": self.repository.url(row),
                "bid": value,
                "price": price,
                "kind": self._kind(row, why),
                "when": when,
                "terms": orjson.loads(why),
                "worth": tell_worth(value, price, *unit),
            }
            for (row, value, when), why in zip(chosen, terms, strict=True)
        ]

    def _kind(self, row: int, terms: str) -> str:
        columns = self.repository.table.columns
        return self.policy.fetch_kind(int(columns["state"][row]), int(columns["kind"][row]), terms).label

    def _choose(self, count: int, price: float) -> list[Coming]:
        auction = self._auction()
        auction.refill(self.now, price)
        chosen = [(pick.row, pick.value, "now") for pick in auction.pick(self.now, count, price)]
        if len(chosen) < count:
            taken = {row for row, _, _ in chosen}
            rows, values = auction.best(self.now, count)
            waiting = [pair for pair in zip(rows.tolist(), values.tolist(), strict=True) if pair[0] not in taken]
            snapshot, asked = self.repository.snapshot(self.now), 0
            for row, value in waiting[: count - len(chosen)]:
                due = auction.bid(row).reaches(price, self.now)
                if (due is None or due > self.now + FAR_S) and asked < MOST_ASKED:  # bids may be made anew before
                    due, asked = find_due(self.policy, snapshot, auction.bid(row), row, price), asked + 1
                chosen.append((row, value, self._when(auction, row, due)))
        return chosen

    def _when(self, auction: Auction, row: int, due: float | None) -> str:
        if due is None or due > self.now + FAR_S:
            return "when nothing better is left"
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
        return tell_found(self.repository, self.settings, row, canonical, *self._source(row))

    def explain(self, url: str) -> dict[str, Any]:
        """State, history, the bid as a tree, the host's politeness, and when the URL will be fetched."""
        canonical, row = self._find(url)
        columns = self.repository.table.columns
        auction = self._auction()
        price = self.price() if self.guest is None else 0.0
        bid = auction.bid(row)
        host = int(columns["host"][row])
        source, _ = self._source(row)
        tree = tell_bid(self.policy, self.repository, self.settings, self.now, row)
        state = UrlState(int(columns["state"][row]))
        unused = self.study_note if state is UrlState.NEW else self.refresh_note
        if columns["kind"][row] != UrlKind.PAGE or not unused:
            unused = self.hub_note
        if unused:
            tree["note"] = f"{tree.get('note', '')}; {unused}"
        snapshot = self.repository.snapshot(self.now)
        due = find_due(self.policy, snapshot, bid, row, price)
        by_age = is_due_by_age(self.policy, snapshot, row, due)
        standing = replace(find_standing(auction, row, price, self.now, due), due_by_age=by_age)
        # a hub whose pages gain nothing above the price bids 0, and by its age later all the same
        expected = expect(standing, bid.amplitude > 0 or due is not None, state, self.rate_per_s())
        here = self._circumstances(auction, row, price)
        told = tell_standing(standing, here)
        decision = tell_decision(tree, standing, here, expected)
        turn = None if self.guest is None else self.guest.turn(row)
        if turn is not None:  # its owner decides: neither a price nor a host has a say
            expected = turn.expect(self.now)
            told["sooner"] = []
            decision = tell_guest_decision(tree, turn, here.kind, self.now)
        return {
            "url": canonical,
            "found_how": self.found_how(url),
            **tell_record(self.repository, row, source),
            "bid": {
                "value": bid.value(self.now),
                "amplitude": bid.amplitude,
                "rate_per_s": bid.rate,
                "since": clock_text(bid.since),
                "shape": bid.shape.name.lower(),
                "tree": tree,
            },
            "price": price,
            "host": tell_host(self.repository, self.settings, auction.gate, host, canonical, self.now),
            "expected": expected,
            "standing": told,
            "decision": decision,
            "guest": None if turn is None else turn.tell(),
            "history": tell_history(self.repository, row, (here.unit, here.by_clicks)),
        }

    def _circumstances(self, auction: Auction, row: int, price: float) -> Circumstances:
        """What a decision about a URL depends on besides the bids."""
        snapshot = self.repository.snapshot(self.now)
        unit = self.policy.unit(snapshot)
        keeper = HostKeeper(self.repository, auction.gate, self.settings)
        return Circumstances(
            self._kind(row, self.policy.terms(snapshot, np.array([row]))[0]),
            unit,
            self.policy.reserve,
            self.rate_per_s(),
            WriterLock.is_held(self.folder),
            keeper.robots.rules(int(self.repository.table.columns["host"][row]), self.now) is not None,
            None if unit <= 0 or not (last := read_last_fetch(self.repository.connection)) else last.bid_clicks / unit,
            lambda value: tell_growth(self._outlook(auction), price, value),
            self.policy.gain(snapshot, row),
            float(self.policy.costs(snapshot, np.array([row]))[0]),
            self.policy.by_clicks(snapshot),
        )
