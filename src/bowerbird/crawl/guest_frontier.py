"""A durable frontier for other people's fetchers: URLs in lines, handed out by their bids on leases that survive.

A URL's life here: `put` takes it in (found, or dealt with and due again at a date), `take` hands it out and leases it,
and a second `put` ends the lease with what became of the fetch. Each of them changes memory at once and is durable with
the next `commit`; whoever answers a fetcher does so after that. A lease that nobody ends runs out, and the URL is in
line again, also after `kill -9`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.guest_crawl import GuestCrawl, Visit
from bowerbird.crawl.guest_items import NO_HINTS, GuestItem, Taken
from bowerbird.crawl.guest_leases import LONGEST_S
from bowerbird.crawl.guest_lines import DELAY, INACTIVE, USUAL_DELAY, GuestLines
from bowerbird.crawl.guest_market import Picked
from bowerbird.crawl.guest_owner import SERVICE
from bowerbird.crawl.guest_places import GONE
from bowerbird.model.clock import Clock
from bowerbird.model.url_state import UrlState
from bowerbird.store.guest_tables import GuestLease, make_guest_tables
from bowerbird.web.url import host_of

I64 = npt.NDArray[np.int64]
MAX_KEY_CHARS = 255
MAX_METADATA_BYTES = 16 << 10  # of one URL
LONGEST_DELAY_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Handed:
    """URLs that were handed out and leased; `produced_at` has when each line had last given something before."""

    rows: I64
    lines: I64
    until: float
    produced_at: dict[int, float]


class GuestFrontier:
    """The frontier of one crawl folder. Used by one thread at a time."""

    def __init__(
        self, root: Path, *, policy: str | None = None, clock: Clock | None = None, delay_s: float | None = None
    ) -> None:
        self.crawl = GuestCrawl(root, SERVICE, policy=policy, clock=clock)
        self.oversized = 0  # URLs that came with too much metadata
        try:
            self._load(delay_s)
        except BaseException:
            self.crawl.abandon()
            raise

    def _load(self, delay_s: float | None) -> None:
        crawl = self.crawl
        self.clock, self.repository, self.canonicaliser = crawl.clock, crawl.repository, crawl.canonicaliser
        now = self.clock.now()
        make_guest_tables(self.repository.connection)
        usual_s = crawl.settings.politeness.delay_s if delay_s is None else delay_s
        self._note(USUAL_DELAY, usual_s)
        self.lines = GuestLines(self.repository, crawl.market, usual_s, now)
        self.queues, self.places, self._writes = self.lines.queues, self.lines.places, self.lines.writes
        crawl.open()
        self.lines.open(now)
        self.leases = self.lines.leases

    def _note(self, name: str, value: float) -> None:
        """For those who look at the folder."""
        if self.repository.meta(name) != value:
            self.repository.set_meta(name, value)

    # -- in

    def put(self, items: Sequence[GuestItem]) -> list[Taken]:
        """Take URLs in: found ones unless they are known, known ones always. What became of each, in their order."""
        now = self.clock.now()
        canonical = self.canonicaliser.canonical
        out = [Taken.SKIPPED] * len(items)
        found: list[tuple[int, str]] = []
        known: list[tuple[int, str]] = []
        for place, item in enumerate(items):
            url = canonical(item.url)
            if url is None or len(item.key) > MAX_KEY_CHARS:
                continue
            if item.metadata is not None and len(item.metadata) > MAX_METADATA_BYTES:
                self.oversized += 1
                if not item.known:
                    continue
                item.metadata = None  # its fetch took place all the same
            (known if item.known else found).append((place, url))
        for part, take_in in ((found, self._put_found), (known, self._put_known)):
            if part:
                places = [place for place, _ in part]
                is_taken = take_in([items[place] for place in places], [url for _, url in part], now)
                for place, fine in zip(places, is_taken, strict=True):
                    out[place] = Taken.OK if fine else Taken.SKIPPED
        return out

    def _put_found(self, items: Sequence[GuestItem], urls: list[str], now: float) -> list[bool]:
        rows, is_new = self._add(items, urls, now)
        self.crawl.bid(rows[is_new], now, offer=True)
        return [bool(new) for new in is_new.tolist()]

    def _put_known(self, items: Sequence[GuestItem], urls: list[str], now: float) -> list[bool]:
        rows, _ = self._add(items, urls, now)
        last = {row: nth for nth, row in enumerate(rows.tolist())}  # of a URL that comes twice the last word counts
        which = np.array(list(last), dtype=np.int64)
        mine = [(items[nth], urls[nth]) for nth in last.values()]
        leases = self.leases.end_all(which.tolist())
        self.crawl.market.auction.retire(self.places.move(which, [item.key for item, _ in mine]))
        self.places.count_fetched(which[~self.places.was_fetched(which)])
        visits = []
        for row, (item, _), lease in zip(last, mine, leases, strict=True):
            hints, refetch = item.hints, item.refetch
            visit = Visit(
                row, now, hints.outcome, hints.status, hints.changed, hints.content_hash, refetch, refetch == 0
            )
            if lease is not None:
                visit.decided_at, visit.bid, visit.terms = lease.decided_at, lease.bid, lease.terms
            visits.append(visit)
        self.crawl.record(visits)
        for row, (item, url) in zip(last, mine, strict=True):
            self.places.write(row, self._spelling(item.url, url), item.metadata, done=item.refetch == 0)
        self.crawl.bid(which, now, offer=False)
        return [True] * len(items)

    def _add(self, items: Sequence[GuestItem], urls: list[str], now: float) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Rows of these URLs, put into lines where they are in none, and which were; what is said of them is learnt."""
        sources, depths = self._origins(items)
        kinds = [int(item.hints.kind) for item in items]
        rows, _ = self.repository.add_urls(urls, at=now, kind=kinds, depth=depths, source=sources)
        self.places.grow()
        gone = self.places.columns["flags"][rows] == GONE
        is_new = np.zeros(len(rows), dtype=np.bool_)
        if gone.any():
            _, firsts = np.unique(rows, return_index=True)
            is_new[firsts] = gone[firsts]
            places = np.flatnonzero(is_new)
            states = self.repository.table.columns["state"][rows[places]]
            self.crawl.revive(rows[places][states != UrlState.NEW].tolist(), now)
            created = int(now)
            for place, row in zip(places.tolist(), rows[places].tolist(), strict=True):
                item, url = items[place], urls[place]
                line = self.queues[item.key or host_of(url)]
                self.places.enter(row, line, created, self._spelling(item.url, url), item.metadata)
        self._learn(items, urls, rows, sources, now)
        return rows, is_new

    def _spelling(self, given: str, url: str) -> str | None:
        """What is kept of a URL as its owner wrote it; nothing where that is as long as no URL may be."""
        return None if given == url or len(given) > self.canonicaliser.rules.max_length else given

    def _origins(self, items: Sequence[GuestItem]) -> tuple[list[int], list[int]]:
        """The rows that led to these URLs (-1 = not known), and how deep that makes them."""
        sources, depths = [-1] * len(items), [0] * len(items)
        canonical = self.canonicaliser.canonical
        named = [
            (place, url)
            for place, item in enumerate(items)
            if item.hints.referrer and (url := canonical(item.hints.referrer)) is not None
        ]
        if named:
            depth = self.repository.table.columns["depth"]
            for (place, _), row in zip(named, self.crawl.find([url for _, url in named]).tolist(), strict=True):
                sources[place] = row
                if row >= 0:
                    depths[place] = min(int(depth[row]) + 1, 254)
        for place, item in enumerate(items):
            if item.hints.depth >= 0:
                depths[place] = item.hints.depth
        return sources, depths

    def _learn(
        self, items: Sequence[GuestItem], urls: list[str], rows: I64, sources: Sequence[int], now: float
    ) -> None:
        """Links, anchors and clicks, also of URLs that were known."""
        links: dict[int, list[int]] = {}
        named: list[tuple[int, str]] = []
        for item, url, row, source in zip(items, urls, rows.tolist(), sources, strict=True):
            hints = item.hints
            if hints is NO_HINTS:
                continue
            if source >= 0 and not item.known:  # of a known page it was said before
                links.setdefault(source, []).append(row)
            if hints.anchor:
                named.append((row, hints.anchor))
            if hints.clicks:
                self.crawl.click(url, hints.clicks, now)
        for source, targets in links.items():
            self.crawl.link(source, targets, now)
        if named:
            self.crawl.name([row for row, _ in named], [text for _, text in named])

    # -- out

    def take(
        self,
        *,
        key: str = "",
        per_line: int = 0,
        lines: int = 0,
        lease_s: float = 30.0,
        most: int = 0,
        most_bytes: int = 0,
    ) -> Handed:
        """Hand out what may be fetched now, the best bids first, and lease it. Zero means: no limit of yours."""
        now = self.clock.now()
        until = now + min(lease_s, LONGEST_S)
        self.leases.expire(now)
        picked = self.lines.pick(now, key=key, per_line=per_line, lines=lines, most=most, most_bytes=most_bytes)
        touched = np.unique(picked.lines)
        before = self.queues.columns["produced_at"][touched].tolist()
        if len(picked.rows):
            self._lease(picked, now, until)
            self._set_produced(dict.fromkeys(touched.tolist(), now))
        return Handed(picked.rows, picked.lines, until, dict(zip(touched.tolist(), before, strict=True)))

    def _lease(self, picked: Picked, now: float, until: float) -> None:
        terms = self.crawl.policy.terms(self.repository.snapshot(now), picked.rows)
        for row, value, why in zip(picked.rows.tolist(), picked.values.tolist(), terms, strict=True):
            self.leases.open(row, GuestLease(until, now, value, why))

    def _set_produced(self, times: dict[int, float]) -> None:
        for line, at in times.items():
            self.queues.set(line, "produced_at", at)

    def give_back(self, handed: Handed) -> None:
        """What was handed out has reached nobody: it is in line as before."""
        leases = self.leases.end_all(handed.rows.tolist())
        held = handed.rows[[lease is not None for lease in leases]]
        self.crawl.market.offer_again(held)
        self._set_produced(handed.produced_at)

    # -- steering

    def set_delay(self, key: str, delay_s: float) -> None:
        """Seconds between two times that something of a line is handed out; without a key, of all that have none."""
        delay_s = min(delay_s, LONGEST_DELAY_S)
        if key:
            self.queues.set(self.queues[key], "delay_s", delay_s)
        else:
            self.queues.default_delay_s = delay_s
            self.repository.set_meta(DELAY, delay_s)

    def suggest_delay(self, delay_s: float) -> None:
        """The same without a key, unless somebody has set it for this crawl."""
        delay_s = min(delay_s, LONGEST_DELAY_S)
        self._note(USUAL_DELAY, delay_s)
        if self.repository.meta(DELAY) is None:
            self.queues.default_delay_s = delay_s

    def note_active(self, active: bool) -> None:
        """Whether its owner hands anything out, for those who look at the folder."""
        self._note(INACTIVE, float(not active))

    def block(self, key: str, until: float) -> None:
        """Hand out nothing of a line until then; 0 lifts it."""
        self.queues.set(self.queues[key], "blocked_until", until)

    def limit(self, key: str, most: int) -> bool:
        """Have at most so many URLs of a line fetched; 0 = all. False where there is no such line."""
        line = self.queues.get(key)
        if line is not None:
            self.queues.set(line, "most", most)
        return line is not None

    def remove(self, rows: I64) -> int:
        """Take URLs out of the frontier; found again, they are new. How many these were."""
        now = self.clock.now()
        self.leases.end_all(rows.tolist())
        self.places.leave(rows)
        self.crawl.forget(rows.tolist(), now)
        self.crawl.bid(rows, now, offer=False)
        return len(rows)

    def remove_line(self, key: str) -> int:
        """Take a line out with all its URLs; how many these were."""
        line = self.queues.get(key)
        if line is None:
            return 0
        removed = self.remove(self.places.members(key))
        self.queues.drop(line)
        return removed

    def find(self, url: str, key: str = "") -> int | None:
        """The row of a URL that is in line, in the line of that key where one is named."""
        canonical = self.canonicaliser.canonical(url)
        row = None if canonical is None else self.repository.table.find_url(canonical)
        if row is None or row >= self.places.columns.count or self.places.columns["flags"][row] == GONE:
            return None
        return row if not key or self.queues.get(key) == int(self.places.columns["queue"][row]) else None

    # -- durability

    @property
    def pending(self) -> bool:
        """Is there anything to commit?"""
        return self.crawl.pending or bool(self._writes)

    def commit(self) -> None:
        """Make everything durable that was done since the last commit."""
        if self.pending:
            self.crawl.commit(self._writes.write)
            self._writes.clear()

    def keep_up(self, *, may_study: bool = True) -> None:
        """Once a second or so: as the crawl does, and what people added or took away by the command line."""
        if not self.crawl.upkeep_due():
            return
        self.leases.expire(self.clock.now())
        added, removed = self.crawl.keep_up(len(self.leases), may_study=may_study)
        self.places.grow()
        flags = self.places.columns["flags"]
        gone = np.array([row for row in removed if flags[row] != GONE], dtype=np.int64)
        if len(gone):
            self.remove(gone)
        fresh = added[flags[added] != 0]
        if len(fresh):
            self.places.adopt(fresh)
            self.crawl.bid(fresh, self.clock.now(), offer=True)
        self.commit()

    def close(self) -> None:
        """Commit, and let go of the folder."""
        self.crawl.close(self._writes.write)

    def abandon(self) -> None:
        """Let go of the folder as it was last committed."""
        self.crawl.abandon()
