"""The crawl's memory. The database is the truth; the columns are its image, kept at hand and rebuilt at start.

Every change is applied to the columns and buffered at once; `commit` writes the buffers in one transaction. What a
commit has returned from is acknowledged: it survives `kill -9` and power loss.
"""

from __future__ import annotations

import math
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from bowerbird.model.errors import DiskFullError
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.study import FrontierStudy
from bowerbird.model.url_state import UrlKind
from bowerbird.model.watch import Watch
from bowerbird.model.workload import Workload
from bowerbird.store import recovery, schema
from bowerbird.store.checkpoint import Mark, read_checkpoint, write_checkpoint
from bowerbird.store.committed import CommittedState
from bowerbird.store.connection import Connection, upsert
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import MeasuredGain
from bowerbird.store.hashtable import note_anchors
from bowerbird.store.hub_hints import HubHint
from bowerbird.store.links import OutLinks
from bowerbird.store.records import FetchRecord, Version
from bowerbird.store.requests import post_requests
from bowerbird.store.unwritten import Unwritten
from bowerbird.store.url_table import UrlTable, hash_urls

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_AS_APPLIED = attrgetter(*recovery.APPLIED.split(", "))
MOST_AHEAD_S = 86400.0  # that a date may lie: time zones are mixed up

_SET_META = upsert("meta", "key, value", "key")
_LINKS_OF = "SELECT source, seen_at, targets, first_seen, last_seen FROM links WHERE source"


class Repository(CommittedState):
    """URL records, links, versions, hosts and the journal of one crawl folder.

    Beside a running crawl the columns show what was committed when it was opened, and the rest what is by now.
    """

    def __init__(
        self,
        folder: CrawlFolder,
        *,
        write: bool,
        default_interval_s: float = 30 * 86400.0,
        connection: Connection | None = None,
    ) -> None:
        super().__init__(folder, write=write, connection=connection)
        self.default_interval_s = default_interval_s
        seed = self.meta("hash_seed")
        if seed is None:
            seed = secrets.randbits(62)
            if write:
                self.set_meta("hash_seed", seed)
        self.table = UrlTable(int(str(seed)))
        self._files: dict[str, int] = {}
        self.last_fetch_id = 0
        self._last_anchor_id = 0
        self._last_links_id = 0
        self.workload: Workload | None = None  # what searchers ask and click, as far as the crawl has heard
        self.clicks: npt.NDArray[np.float64] | None = None
        self.study: FrontierStudy | None = None  # of the frontier, the last that was made
        self.refresh_study: RefreshStudy | None = None  # of the fetched pages
        self.hub_study: HubStudy | None = None  # of the pages and files that announce others
        self.seed_study: SeedStudy | None = None  # of the pages from which most is reached
        self.watch: Watch | None = None  # of what was expected of fetches
        self.price = 0.0  # clicks that a fetch has to gain; 0 = not known
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def create(root: Path) -> None:
        """Make the database of a new crawl folder."""
        connection = schema.open_database(CrawlFolder(root).database, write=True)
        connection.execute("INSERT INTO meta VALUES ('hash_seed', ?) ON CONFLICT DO NOTHING", (secrets.randbits(62),))
        connection.close()

    def _load(self) -> None:
        self.connection.execute("BEGIN")
        try:
            columns = self.table.columns
            recovery.load_hosts(self.connection, self.table.hosts)
            mark = read_checkpoint(self.folder.checkpoint, columns)
            top_fetch = int(self.connection.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()[0])
            if mark is None or mark.history != recovery.history_at(self.connection, self.table.seed, mark):
                columns.count = 0
                for name in columns.layout:
                    columns.whole(name).fill(0)
                mark = Mark(0, 0, 0)
            self._last_links_id = recovery.replay(self.connection, self.table, mark, self.default_interval_s)
            self.table.restore(columns.count)
            self.table.hosts.columns["known"][:] = np.bincount(columns["host"], minlength=len(self.table.hosts))
            self.last_fetch_id = top_fetch
            self._last_anchor_id = int(
                self.connection.execute("SELECT coalesce(max(id), 0) FROM anchors").fetchone()[0]
            )
            self._files = {
                str(name): int(number) for number, name in self.connection.execute("SELECT id, name FROM archive_files")
            }
        finally:
            self.connection.execute("COMMIT")
        self._unwritten = Unwritten(self.table.columns.count)
        self.replayed = self.last_fetch_id - mark.fetch

    # -- settings of the folder itself

    def set_meta(self, key: str, value: object) -> None:
        """Keep a value of the folder's own, where it is not in the folder as text; takes part in a transaction."""
        embedded = isinstance(self.connection, sqlite3.Connection)
        self.connection.execute(_SET_META, (key, value if embedded else str(value)))

    # -- URLs

    def add_urls(
        self,
        urls: Sequence[str],
        *,
        at: float | Sequence[float],
        hashes: U64 | None = None,
        kind: UrlKind | Sequence[int] = UrlKind.PAGE,
        depth: int | Sequence[int] = 0,
        hops: int = 0,
        source: int | Sequence[int] = -1,
    ) -> tuple[I64, I64]:
        """Rows of canonical URLs, adding those not known; and the rows that were added."""
        hashes = hash_urls(urls, self.table.seed) if hashes is None else hashes
        first = self.table.columns.count
        rows, added = self.table.claim(hashes)
        if not added:
            return rows, rows[:0]
        # rows are given in order of appearance, so the first place of each new row names its URL
        places = np.full(added, -1, dtype=np.int64)
        fresh = np.flatnonzero(rows >= first)[::-1]
        places[rows[fresh] - first] = fresh
        hosts = self.table.hosts
        picked = places.tolist()
        new_urls = urls if added == len(urls) else [urls[i] for i in picked]
        host_numbers = [hosts[url[: url.index("/", 8)]] for url in new_urls]

        def column(value: int | Sequence[int]) -> Sequence[int]:
            return [int(value)] if isinstance(value, int) else [int(value[i]) for i in picked]

        kinds, depths, sources = column(kind), column(depth), column(source)
        times = [at] if isinstance(at, float | int) else [at[i] for i in picked]
        self.table.fill(
            first,
            host_numbers,
            kind=kinds,
            depth=np.minimum(depths, 255),
            hops=min(hops, 255),
            first_seen=times,
            interval_s=self.default_interval_s,
            source=sources,
        )
        signed = hashes[places].view(np.int64).tolist()
        self._unwritten.urls.extend(new_urls, signed, host_numbers, kinds, depths, [hops], times, sources)
        return rows, np.arange(first, first + added)

    def urls(self, rows: Iterable[int]) -> list[str]:
        """The texts of URLs, by row."""
        wanted = list(rows)
        fresh = self._unwritten.urls
        stored = iter(super().urls(row for row in wanted if row not in fresh))
        return [fresh[row] if row in fresh else next(stored) for row in wanted]

    def note_inbox_done(self, last: int, seeds: tuple[str, ...]) -> None:
        """Requests up to number `last` are applied; they leave the inbox with the next commit."""
        self._unwritten.inbox_done = max(self._unwritten.inbox_done, last)
        self._unwritten.seeds.extend(seeds)

    def post(self, verb: str, urls: Iterable[str], at: float) -> None:
        """Leave requests for the writer: `add` or `forget`."""
        post_requests(self.connection, verb, urls, at)

    # -- what a fetch taught

    def record(self, fetch: FetchRecord) -> None:
        """Keep a decision with its outcome, and set the URL's state by it."""
        self._unwritten.fetches.append(fetch)
        columns = self.table.columns
        row = fetch.url
        columns["state"][row] = fetch.state
        columns["not_before"][row] = math.ceil(fetch.not_before)
        columns["errors"][row] = min(fetch.errors, 255)
        if fetch.outcome in DECISIONS_WITHOUT_FETCH:
            return
        columns["interval_s"][row] = fetch.interval_s
        if not fetch.errors:  # a page that is to be tried again soon is as old as before
            columns["last_fetched"][row] = fetch.fetched_at
        columns["fetches"][row] = min(int(columns["fetches"][row]) + 1, 65535)
        if fetch.changed:
            columns["changes"][row] = min(int(columns["changes"][row]) + 1, 65535)
            columns["last_changed"][row] = fetch.fetched_at
        if fetch.content_hash:
            columns["content_hash"][row] = fetch.content_hash

    def record_all(self, fetches: Sequence[FetchRecord]) -> None:
        """The same for many at once, in their order."""
        self._unwritten.fetches.extend(fetches)
        columns = zip(*map(_AS_APPLIED, fetches), strict=True)
        recovery.apply_fetches(self.table.columns, *map(np.array, columns))

    def record_version(self, version: Version) -> None:
        """Keep what the next conditional GET and change test need."""
        self._unwritten.versions[version.url] = version

    def versions(self, rows: Sequence[int]) -> dict[int, Version]:
        """The current versions of URLs, of those that have one."""
        pending = {row: self._unwritten.versions[row] for row in rows if row in self._unwritten.versions}
        return super().versions([row for row in rows if row not in pending]) | pending

    def record_links(
        self, source: int, targets: I64, at: float, *, more: bool = False, before: OutLinks | EllipsisType | None = ...
    ) -> int:
        """Keep a page's out-links (distinct rows); count those never seen from this page before.

        With `more` those that it has now stay beside them: nobody told all of its links at once, or not in their turn.
        `before` is what `all_links` said of the page, where it was asked.
        """
        fresh = np.asarray(targets, dtype=np.uint32)
        known = self._unwritten.links.get(source) or (self.links(source) if before is ... else before)
        if more and known is not None:
            fresh = np.union1d(known.current(), fresh)
        if known is None:
            self._unwritten.links[source] = OutLinks.fresh(source, fresh, at)
            novel = fresh
        else:
            self._unwritten.links[source], novel = known.seen_again(fresh, at)
        if len(novel):
            self.table.columns["in_degree"][novel] += 1
            self._unwritten.new_links.append(novel)
        return len(novel)

    def links(self, source: int) -> OutLinks | None:
        """The out-links of a page."""
        return self.all_links([source]).get(source)

    def all_links(self, sources: Sequence[int]) -> dict[int, OutLinks]:
        """The out-links of pages, of those that have any; in one question."""
        pending = self._unwritten.links
        stored = [source for source in sources if source not in pending]
        found = {row[0]: OutLinks.decode(*row) for row in self.connection.ask_of(_LINKS_OF, stored)}
        return found | {source: pending[source] for source in sources if source in pending}

    def record_anchors(self, rows: I64, marks: npt.NDArray[np.uint16], texts: Sequence[str]) -> I64:
        """Keep the first few distinct anchor texts of each target; the rows that got one."""
        novel = np.empty(len(rows), dtype=np.bool_)
        note_anchors(self.table.columns.whole("anchors"), rows, marks, novel)
        self._unwritten.anchors.extend((int(rows[i]), texts[i]) for i in np.flatnonzero(novel).tolist())
        return rows[novel]

    def record_hint(self, row: int, modified_s: float, at: float) -> None:
        """A sitemap or feed read at `at` says when a URL was last modified: the latest date is kept.

        A date far ahead is wrong and dropped; one that is kept and still lies ahead gives way to whatever is said next.
        """
        stamp, kept = int(min(max(modified_s, 0), 2**32 - 1)), int(self.table.columns["hint_modified"][row])
        latest = kept if kept <= at else 0
        if latest < stamp <= at + MOST_AHEAD_S and stamp != kept:
            self.table.columns["hint_modified"][row] = stamp
            self._unwritten.hints[row] = stamp

    def record_patterns(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Counters of URL patterns that changed."""
        self._unwritten.patterns.extend(rows)

    def record_gains(self, gains: Iterable[MeasuredGain]) -> None:
        """What refreshes were found to have gained."""
        self._unwritten.gains.extend(gains)

    def record_hub_hint(self, hint: HubHint) -> None:
        """What a feed or sitemap says of itself."""
        self._unwritten.hub_hints[hint.url] = hint

    def record_robots(self, host: int, status: str, body: bytes) -> None:
        """Keep a host's robots.txt as it was fetched."""
        self._unwritten.robots[host] = (status, body)
        self.table.hosts.dirty.add(host)

    def archive_file(self, name: str) -> int:
        """The number of an archive file, given on first use."""
        number = self._files.get(name)
        if number is None:
            number = max(self._files.values(), default=0) + 1
            self._files[name] = number
        return number

    def archive_name(self, number: int) -> str:
        """The name of an archive file."""
        name = next((name for name, known in self._files.items() if known == number), None)
        return super().archive_name(number) if name is None else name

    def pending_archive_files(self) -> list[str]:
        """Archive files with records that the next commit will point to."""
        return [self.archive_name(number) for number in self._unwritten.file_ends]

    def note_archive_end(self, file: int, end: int) -> None:
        """The archive file holds acknowledged records up to `end` bytes."""
        self._unwritten.file_ends[file] = max(end, self._unwritten.file_ends.get(file, 0))

    # -- durability

    def commit(self, *, indexed_through: int | None = None, also: Callable[[Connection], None] | None = None) -> int:
        """Write everything recorded since the last commit, in one transaction; the last fetch's number.

        `also` does what belongs to the same transaction.
        """
        connection, hosts = self.connection, self.table.hosts
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._unwritten.write(connection, self._mark(), self._files, hosts)
            if indexed_through is not None:
                self.set_meta("indexed_through", indexed_through)
            if also is not None:
                also(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and ("full" in str(error) or "disk I/O" in str(error)):
                raise DiskFullError(
                    f"{self.folder.database}: the disk took no more ({error}). Free some space and start again: "
                    "everything acknowledged before is safe."
                ) from error
            raise
        self.last_fetch_id += len(self._unwritten.fetches)
        self._last_anchor_id += len(self._unwritten.anchors)
        self._last_links_id += bool(self._unwritten.new_links)
        self._unwritten = Unwritten(self.table.columns.count)
        hosts.dirty.clear()
        return self.last_fetch_id

    @property
    def pending(self) -> int:
        """Changes recorded and not committed."""
        return self._unwritten.count

    @property
    def is_written(self) -> bool:
        """Is nothing left to commit, not even links or anchors of what was known?"""
        return not self._unwritten.touches_columns

    def write_checkpoint(self) -> None:
        """Save the columns as of the last commit, so that the next start is quick."""
        if not self.is_written:
            raise RuntimeError("a checkpoint is taken right after a commit")
        mark = self._mark()
        mark = replace(mark, history=recovery.history_at(self.connection, self.table.seed, mark))
        write_checkpoint(self.folder.checkpoint, self.table.columns, mark)
        recovery.drop_counted_links(self.connection, mark)

    def _mark(self) -> Mark:
        """How far the database is."""
        return Mark(self.table.columns.count, self.last_fetch_id, self._last_anchor_id, links=self._last_links_id)

    def snapshot(self, now: float) -> Snapshot:
        """What is known now, for appraisers."""
        return Snapshot(
            now,
            self.table.page_columns(),
            self.table.host_columns(),
            workload=self.workload,
            clicks=self.clicks,
            study=self.study,
            refresh_study=self.refresh_study,
            hub_study=self.hub_study,
            seed_study=self.seed_study,
            factors=None if self.watch is None else self.watch.factors,
            price=self.price,
        )
