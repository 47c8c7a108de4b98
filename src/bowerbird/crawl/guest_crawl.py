"""A crawl folder that somebody else fetches for: their URLs, links and outcomes become what our policies bid by.

The folder is a crawl's as any other: `status`, `next`, `explain` and `study` look at it beside its writer, and studies
are made as in a crawl of ours. Nothing is fetched, archived or indexed here.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.policy import Policy, make_policy
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.guest_market import GuestMarket
from bowerbird.crawl.guest_owner import claim, tell_holder
from bowerbird.crawl.hearing import Hearing
from bowerbird.crawl.inbox import Inbox
from bowerbird.crawl.live import tell_rates
from bowerbird.crawl.session import make_folder, open_folder
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.statistics import Tally
from bowerbird.crawl.study_kinds import methods_of
from bowerbird.crawl.studying import Studies
from bowerbird.demand.events import ResultClicked
from bowerbird.demand.workload import attach_clicks
from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import FolderError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.journal import begin_run
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import anchor_mark, hash_urls
from bowerbird.web.url import Canonicaliser

log = logging.getLogger(__name__)

I64 = npt.NDArray[np.int64]
CHECKPOINT_EVERY_S = 300.0
UPKEEP_EVERY_S = 1.0
MAX_ANCHOR_CHARS = 200
LAST_SECOND = 2**32 - 1  # that a column of times can hold
#: what a folder's settings say unless somebody chose otherwise: its owner decides what belongs to the crawl
GUEST_SETTINGS: dict[str, dict[str, object]] = {"crawl": {"scope": "anywhere"}}


@dataclass(slots=True)
class Visit:
    """What a fetcher says of a URL that it has dealt with."""

    row: int
    at: float
    outcome: Outcome = Outcome.OK
    status: int = 0
    changed: bool | None = None  # None where nobody said
    content_hash: int = 0  # 0 = not known
    not_before: float = 0.0  # it may be fetched again from then on
    is_last: bool = False  # it is never to be fetched again
    decided_at: float = 0.0
    bid: float = 0.0
    terms: str = "{}"


def make_guest_folder(root: Path, values: dict[str, dict[str, object]] | None = None) -> None:
    """Make the crawl folder at `root`, unless there is one."""
    if not CrawlFolder(root).config.exists():
        chosen = {name: dict(section) for name, section in GUEST_SETTINGS.items()}
        for name, section in (values or {}).items():
            chosen.setdefault(name, {}).update(section)
        make_folder(root, chosen)


class GuestCrawl:
    """The one writer of such a folder. Used by one thread at a time."""

    def __init__(self, root: Path, owner: str, *, policy: str | None = None, clock: Clock | None = None) -> None:
        self.folder = open_folder(root)
        if self.folder.store_url is not None:
            raise FolderError(
                f"{root}: its state is in PostgreSQL. A frontier for other fetchers keeps its own in its folder: "
                "name another one."
            )
        settings = load_settings(self.folder.config)
        base = settings.crawl.policy
        self.policy: Policy = make_policy(
            base if policy is None else policy, settings.refresh, base, horizon_s=settings.budget.horizon_s
        )
        self.settings = settings.with_overrides("crawl", policy=self.policy.name)
        self.clock = clock or WallClock()
        self.canonicaliser = Canonicaliser(settings.urls)
        now = self.clock.now()
        with ExitStack() as undo:
            try:
                self._lock = WriterLock(self.folder)
            except FolderError as error:
                raise tell_holder(self.folder) or error from None
            undo.callback(self._lock.release)
            self.repository = Repository(self.folder, write=True, default_interval_s=settings.refresh.interval_s)
            undo.callback(self.repository.close)
            claim(self.repository, owner)
            through = int(str(self.repository.meta("indexed_through") or 0))
            self._is_level = through == self.repository.last_fetch_id  # else our own crawl has pages to index yet
            self.market = GuestMarket(self.repository, self.policy, now)
            self.inbox = Inbox(self.repository, self.settings)
            self.studies = Studies(self.repository, methods_of(self.policy, self.settings), self.settings)
            self.hearing = Hearing(self.folder, self.settings)
            self.tally = Tally(now)
            self._run = begin_run(self.repository.connection, now, self.policy.name)
            undo.pop_all()
        self._clicks: list[ResultClicked] = []
        self._visits = 0
        self._upkept_at = self._checkpointed_at = time.monotonic()
        self._told = ""

    def open(self) -> None:
        """All bids; after whoever owns the lines has said which they are."""
        self.studies.take_up()
        self.market.open(self.clock.now())
        self.hearing.start()

    # -- URLs

    def find(self, urls: Sequence[str]) -> I64:
        """Rows of canonical URLs, -1 where one is not known."""
        return self.repository.table.find(hash_urls(urls, self.repository.table.seed))

    def revive(self, rows: Iterable[int], at: float) -> None:
        """URLs that were removed, or given up, are in line again."""
        for row in rows:
            self._decide(row, Outcome.ADDED, UrlState.NEW, at)

    def forget(self, rows: Iterable[int], at: float) -> None:
        """These URLs leave the crawl."""
        for row in rows:
            self._decide(row, Outcome.FORGOTTEN, UrlState.FORGOTTEN, at)

    def _decide(self, row: int, outcome: Outcome, state: UrlState, at: float) -> None:
        self.repository.record(FetchRecord(row, FetchKind.NEW, at, 0.0, 0.0, "{}", at, outcome, state))
        self._visits += 1

    # -- what fetchers teach

    def link(self, source: int, targets: Sequence[int], at: float) -> None:
        """A page links to these rows, beside those it was known to link to."""
        found = np.unique(np.asarray(targets, dtype=np.int64))
        found = found[found != source]
        if len(found):
            self.repository.record_links(source, found, at, more=True)
            self.market.note_linked(found)

    def name(self, rows: Sequence[int], anchors: Sequence[str]) -> None:
        """These texts stand on links to these rows."""
        texts = [" ".join(anchor.split())[:MAX_ANCHOR_CHARS] for anchor in anchors]
        marks = np.array([anchor_mark(text) for text in texts], dtype=np.uint16)
        self.repository.record_anchors(np.asarray(rows, dtype=np.int64), marks, texts)

    def click(self, url: str, count: int, at: float) -> None:
        """Searchers went to a page so many times since somebody last said."""
        self._clicks.append(ResultClicked(None, url, None, at, count))

    def record(self, visits: Sequence[Visit]) -> None:
        """Keep what became of fetches, of a URL one, and have the URLs stand as they do now."""
        if not visits:
            return
        table = self.repository.table
        rows = np.array([visit.row for visit in visits], dtype=np.int64)
        names = ("state", "kind", "fetches", "errors", "interval_s", "content_hash")
        facts = zip(*(table.columns[name][rows].tolist() for name in names), strict=True)
        records = [self._describe(visit, *known) for visit, known in zip(visits, facts, strict=True)]
        self.repository.record_all(records)
        for (kind, outcome), fetches in Counter((record.kind, record.outcome) for record in records).items():
            self.tally.add(kind, outcome, 0, fetches)
        self._visits += len(records)
        hosts = table.hosts
        host = table.columns["host"][rows]
        hosts.columns["last_fetch"][host] = [visit.at for visit in visits]
        hosts.dirty.update(np.unique(host).tolist())
        first = (table.columns["fetches"][rows] == 1) & (table.columns["state"][rows] == UrlState.FETCHED)
        np.add.at(hosts.columns["pages"], host[first], 1)

    def _describe(
        self, visit: Visit, state: int, kind: int, fetches: int, errors: int, interval_s: float, content_hash: int
    ) -> FetchRecord:
        """A visit as the journal has it, by what was known of the URL before."""
        outcome = visit.outcome
        record = FetchRecord(
            visit.row,
            self.policy.fetch_kind(state, kind, visit.terms),
            visit.decided_at or visit.at,
            visit.bid,
            0.0,
            visit.terms,
            visit.at,
            outcome,
            UrlState(state),
            status=visit.status,
            interval_s=interval_s,
            not_before=min(visit.not_before, LAST_SECOND),
        )
        if outcome in (Outcome.OK, Outcome.NOT_MODIFIED):
            record.state = UrlState.FETCHED
            record.content_hash = visit.content_hash
            changed = visit.changed if outcome is Outcome.OK else False
            if changed is None and visit.content_hash and content_hash:
                changed = visit.content_hash != content_hash
            if changed is not None and fetches:
                record.changed = changed
                record.interval_s = self.policy.refresh.next_interval_s(interval_s, changed)
        elif outcome is Outcome.REDIRECT:
            record.state = UrlState.REDIRECT
        elif outcome is Outcome.GONE:
            record.state = UrlState.GONE
        elif outcome.transient and not visit.is_last:
            record.errors = min(errors + 1, 255)
        else:
            record.state = UrlState.FAILED
        return record

    def bid(self, rows: I64, now: float, *, offer: bool) -> None:
        """Bid (anew) for these rows."""
        self.market.bid(rows, now, offer=offer)

    # -- durability and upkeep

    @property
    def pending(self) -> bool:
        """Is there anything to commit?"""
        return bool(not self.repository.is_written or self._clicks)

    def commit(self, also: Callable[..., None] | None = None) -> None:
        """Make everything durable that was taken since the last commit; `also` within the same transaction."""
        if self._clicks:
            with open_demand(self.folder, self.settings.demand, write=True) as demand:
                demand.record(self._clicks)
            self._clicks.clear()
        repository = self.repository
        through = repository.last_fetch_id + self._visits if self._is_level and self._visits else None
        repository.commit(indexed_through=through, also=also)
        self._visits = 0
        if time.monotonic() - self._checkpointed_at > CHECKPOINT_EVERY_S:
            repository.write_checkpoint()
            self._checkpointed_at = time.monotonic()

    def upkeep_due(self) -> bool:
        """Is it time for `keep_up`?"""
        return time.monotonic() - self._upkept_at >= UPKEEP_EVERY_S

    def keep_up(
        self, in_flight: int, *, may_study: bool = True, handed_out: Sequence[int] = ()
    ) -> tuple[I64, list[int]]:
        """Once a second: demand, studies, the bids, and requests of people: rows they added, rows they took away.

        `handed_out` names what is in flight, where nothing else says that to those who look from outside.
        """
        self._upkept_at = time.monotonic()
        now = self.clock.now()
        heard = self.hearing.take()
        if heard is not None:
            table = self.repository.table
            self.repository.workload = heard.workload
            self.repository.clicks = attach_clicks(heard.clicks, table.find_url, table.columns.count)
        self.studies.keep_up(may_begin=may_study)
        self.market.follow_studies(now)
        self.market.keep_up(now, hungry=False)
        self._tell_live(now, in_flight, list(handed_out))
        added, removed, _ = self.inbox.drain(now)
        return added, removed

    def _tell_live(self, now: float, in_flight: int, handed_out: list[int]) -> None:
        """For those who look from outside; only where there is news, for it is synced."""
        table = self.repository.table
        news = f"{self.tally.fetched} {table.columns.count} {in_flight} {handed_out}"
        speed = self.tally.speed(now)
        if news == self._told:
            return
        self._told = news
        said = {
            "at": now,
            "pid": os.getpid(),
            **tell_rates(self.settings),
            "elapsed_s": now - self.tally.started_at,
            "fetched": self.tally.fetched,
            "pages_per_s": speed,
            "price": 0.0,
            "unit": self.market.unit,
            "in_flight": in_flight,
            "handed_out": handed_out,
            "indexed_behind": 0,
        }
        self.repository.set_meta("live", orjson.dumps(said).decode())

    def close(self, also: Callable[..., None] | None = None) -> None:
        """Commit, and let go of the folder."""
        try:
            self.hearing.close()
            self.studies.close()
            self.commit(also)
            self.repository.connection.execute(
                "UPDATE runs SET ended_at = ?, fetched = ? WHERE id = ?",
                (self.clock.now(), self.tally.fetched, self._run),
            )
            self.repository.write_checkpoint()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the folder as it is."""
        self.hearing.close()
        self.studies.close()
        self.repository.close()
        self._lock.release()
