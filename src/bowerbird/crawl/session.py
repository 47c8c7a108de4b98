"""Opening a crawl folder: for crawling (one writer, recovered, caught up), or for looking."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from bowerbird.appraise.policy import AUTO, make_policy
from bowerbird.crawl.coordinator import Coordinator, RunLimits
from bowerbird.crawl.earlier_pages import EarlierPages
from bowerbird.crawl.gain_meter import GainMeter
from bowerbird.crawl.guest_owner import owner_of, refuse_guest
from bowerbird.crawl.inbox import Inbox
from bowerbird.crawl.indexing import IndexThread
from bowerbird.crawl.policy_choice import last_policy
from bowerbird.crawl.pool import WorkerPool
from bowerbird.crawl.reading import are_kernels_compiled
from bowerbird.crawl.reindex import Backlog, catch_up
from bowerbird.crawl.settings import load_settings, parse_settings
from bowerbird.crawl.statistics import Progress, Tally
from bowerbird.crawl.template import settings_text
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.crawl.workforce import Workforce
from bowerbird.index.tantivy_folder import check_mark
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import BowerbirdError, ConfigError, FolderError, IndexHeldError
from bowerbird.store.archive_recovery import UNACKNOWLEDGED, set_aside_unknown, truncate_archive
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.journal import begin_run
from bowerbird.store.repository import Repository
from bowerbird.store.requests import post_requests
from bowerbird.store.schema import open_database, open_state
from bowerbird.web.url import Canonicaliser, parse_input

if TYPE_CHECKING:
    from bowerbird.crawl.fleet import Elected
    from bowerbird.store.election import SharedClaim

INDEX_WAIT_S = 0.5
AUTO_SAID = ": new pages, refreshes and hubs bid in expected clicks; see docs/budget.md"


def create_crawl(
    root: Path, seeds: Iterable[str], values: dict[str, dict[str, object]], store: str | None = None
) -> tuple[str, ...]:
    """Make a crawl folder with its seeds; returns them in canonical form. `store`: the URL of its database."""
    canonicaliser = Canonicaliser()
    urls = tuple(dict.fromkeys(parse_input(seed, canonicaliser) for seed in seeds))
    if not urls:
        raise ConfigError("no seeds: name at least one with --seed URL or --seeds-file FILE.")
    make_folder(root, values, store)
    apply_requests(root, "add", urls)
    return urls


def make_folder(root: Path, values: dict[str, dict[str, object]], store: str | None = None) -> None:
    """Make a crawl folder that knows no URL yet."""
    folder = CrawlFolder(root)
    if folder.config.exists():  # it is written last, so an init that was cut short can be repeated
        raise FolderError(f"{root}: is a crawl folder already. `bowerbird add {root} URL` adds seeds to it.")
    text = settings_text(values)
    parse_settings(text, folder.config)  # before anything is made, so that a mistake leaves nothing behind
    made = [path for path in (folder.index, folder.archive, root, *root.parents) if not path.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        for part in (folder.archive, folder.index):
            part.mkdir(exist_ok=True)
        if store is None:
            Repository.create(root)
        else:
            from bowerbird.store.postgres_schema import create_store

            create_store(folder, store)
        folder.config.write_text(text, encoding="utf-8")
    except (OSError, BowerbirdError) as error:
        with suppress(OSError):  # as far as they are empty
            for path in made:
                path.rmdir()
        if isinstance(error, OSError):
            raise FolderError(f"{root}: cannot be made ({error.strerror}). Choose another place.") from error
        raise


def apply_requests(
    root: Path, verb: str, urls: Iterable[str], *, tell_unknown: Callable[[str], None] | None = None
) -> bool:
    """Add or forget URLs: at once when nobody writes, else by the running crawl. True when applied at once.

    Where another program fetches for the crawl, that one takes them up when it next runs.

    `tell_unknown` is called for each URL that the crawl had not met.
    """
    folder = open_folder(root)
    urls = tuple(dict.fromkeys(urls))
    if WriterLock.is_held(folder) or owner_of(folder) is not None:  # who fetches has to know
        if tell_unknown is not None:
            with closing(Repository(folder, write=False)) as known:
                _tell_unknown(known, urls, tell_unknown)
        _post(folder, verb, urls)
        return False
    lock = _claim(folder)
    try:
        settings = load_settings(folder.config)
        repository = Repository(
            folder, write=True, default_interval_s=settings.refresh.interval_s, connection=lock.connection
        )
        try:
            if tell_unknown is not None:
                _tell_unknown(repository, urls, tell_unknown)
            level = int(str(repository.meta("indexed_through") or 0)) == repository.last_fetch_id
            now = repository.connection.now()
            repository.post(verb, urls, now)
            removed: list[int] = []
            while repository.connection.execute("SELECT 1 FROM inbox").fetchone():
                removed.extend(Inbox(repository, settings).drain(now)[1])
                repository.commit()
            if removed:
                _remove_from_index(repository, removed)
            if level:  # else a crawl ended before its index was complete, and the next start sees to that
                repository.set_meta("indexed_through", repository.last_fetch_id)
            repository.write_checkpoint()
        finally:
            repository.close()
    finally:
        lock.release()
    return True


def _tell_unknown(repository: Repository, urls: Iterable[str], tell: Callable[[str], None]) -> None:
    for url in urls:
        if repository.table.find_url(url) is None:
            tell(url)


def _claim(folder: CrawlFolder) -> WriterLock | SharedClaim:
    if folder.store_url is None:
        return WriterLock(folder)
    from bowerbird.store.election import SharedClaim

    return SharedClaim.wait(folder)


def open_folder(root: Path) -> CrawlFolder:
    """A crawl folder whose database is there."""
    folder = CrawlFolder(root)
    folder.check()
    if (
        folder.store_url is None and folder.database.stat().st_size == 0
    ):  # taken for a new crawl, it would cost the whole archive
        raise FolderError(f"{folder.database}: is empty. Restore it from a copy of the folder, or begin a new crawl.")
    return folder


def _post(folder: CrawlFolder, verb: str, urls: Iterable[str]) -> None:
    with closing(open_state(folder, write=True)) as connection:
        post_requests(connection, verb, urls, connection.now())


def _remove_from_index(repository: Repository, rows: list[int]) -> None:
    index = TantivyIndex.open(repository.folder.index, write=True, texts=ArchiveTexts(repository))
    for row in rows:
        index.remove(row)
    index.commit()
    index.close()


class CrawlSession:
    """A crawl folder opened by its one writer."""

    def __init__(
        self,
        root: Path,
        *,
        policy: str | None = None,
        rate_per_s: float | None = None,
        workers: int | None = None,
        clock: Clock | None = None,
        say: Callable[[str], None] = lambda text: None,
        elected: Elected | None = None,
    ) -> None:
        self.folder = open_folder(root)
        settings = load_settings(self.folder.config)
        base = settings.crawl.policy  # has the part that is not named
        chosen = make_policy(
            base if policy is None else policy, settings.refresh, base, horizon_s=settings.budget.horizon_s
        )
        given = {"rate_per_s": rate_per_s, "workers": workers}
        self.settings = settings.with_overrides(
            "crawl", policy=chosen.name, **{key: value for key, value in given.items() if value is not None}
        )
        self.clock = clock or WallClock()
        self._say = say
        if elected is None and self.folder.store_url is not None:
            raise FolderError(
                f"{root}: its database is in PostgreSQL, where this cannot be done yet. "
                f"`bowerbird crawl {root}` fetches, and looks at it work."
            )
        self.lock = WriterLock(self.folder) if elected is None else elected.claim
        with ExitStack() as undo:
            undo.callback(self.lock.release)
            check_mark(self.folder.index)  # what cannot be opened is said before anything takes time
            if elected is None:
                open_database(self.folder.database, write=True).close()
                refuse_guest(self.folder)
            if not are_kernels_compiled():
                say("compiling kernels, once: about 15 s")
            pool: Workforce
            if elected is None:
                pool = WorkerPool(self.settings.worker_count, keep_fds=self.lock.keep_fds)  # before there are threads
            else:
                pool = elected.fleet
            undo.callback(pool.close, 0.5)
            self.repository = Repository(
                self.folder,
                write=True,
                default_interval_s=self.settings.refresh.interval_s,
                connection=self.lock.connection,
            )
            undo.callback(self.repository.close)
            if elected is None:  # of several workers each has files of its own: nobody writes where another has ended
                self._recover_archive()
            index = self._open_index(elected)
            undo.callback(index.close)
            backlog = Backlog(self.repository, self.settings)
            later = elected is not None and backlog.is_small and index.count() > 0  # many wait for a take-over
            if not later:
                self._catch_up(index)
            self._index_thread = IndexThread(
                index,
                self.settings.index.commit_every_s,
                backlog.through if later else self.repository.last_fetch_id,
                GainMeter(self.folder.forward, EarlierPages(self.folder, self.settings)),
                backlog.take if later else None,
            )
            undo.callback(self._index_thread.close)
            self._policy_before = last_policy(self.repository.connection)
            self.run_number = begin_run(self.repository.connection, self.clock.now(), chosen.name)
            self.coordinator = Coordinator(
                self.repository,
                chosen,
                self.settings,
                self._index_thread,
                scope_seeds=self.repository.seeds(),
                pool=pool,
                run=self.run_number,
                first_token=1 if elected is None else elected.first_token,
                clock=self.clock,
                rate_of_settings=settings.crawl.rate_per_s,
            )
            undo.pop_all()

    def _recover_archive(self) -> None:
        """What no record points to is set aside or cut off."""
        ends = self.repository.archive_ends()
        aside = set_aside_unknown(self.folder.archive, ends)
        if aside:
            where = self.folder.archive / UNACKNOWLEDGED
            self._say(f"recovered: {len(aside)} archive files that no record points to were moved to {where}")
        cut = truncate_archive(self.folder.archive, ends)
        if cut:
            self._say(f"recovered: {cut} archived bytes that no record points to were cut off")

    def _catch_up(self, index: TantivyIndex) -> None:
        caught = catch_up(
            self.repository,
            index,
            self.settings,
            lambda done, total: self._say(f"indexing again from the archive: {done} of {total}"),
        )
        if caught:
            self._say(f"recovered: {caught} pages brought up to date in the index")

    def _open_index(self, elected: Elected | None) -> TantivyIndex:
        """Whoever was elected before may still be ending, or hang: then there is nothing to do but to wait for it."""
        said = False
        while True:
            try:
                return TantivyIndex.open(
                    self.folder.index,
                    write=True,
                    heap_bytes=self.settings.index.heap_mb << 20,
                    texts=ArchiveTexts(self.repository),
                )
            except IndexHeldError as error:
                if elected is None:
                    raise
                if not said:
                    self._say(f"{error}; waiting for it")
                    said = True
                elected.wait(INDEX_WAIT_S)

    def policy_text(self) -> str:
        """What is fetched next by, and what the last run went by where that is another."""
        name, before = self.settings.crawl.policy, self._policy_before
        last = f" (the last run: {before})" if before and before != name else ""
        return f"policy {name}{last}{AUTO_SAID if name == AUTO else ''}"

    def run(self, limits: RunLimits, show: Callable[[Progress], None] | None = None) -> Tally:
        """Crawl; the run is noted in the database with its end and its fetches."""
        tally = self.coordinator.run(limits, show)
        self.repository.connection.execute(
            "UPDATE runs SET ended_at = ?, fetched = ? WHERE id = ?",
            (self.clock.now(), tally.fetched, self.run_number),
        )
        return tally

    def stop(self) -> None:
        """End the run soon; safe to call from a signal handler."""
        self.coordinator.stop()

    def abandon(self) -> None:
        """Let go after a failure, so that this process may try again: what the index had not got it will get then."""
        with suppress(Exception):  # whatever was wrong with it, another is opened
            self._index_thread.close()
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        self.repository.close()
        self.lock.release()

    def __enter__(self) -> CrawlSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
