"""Index what the index missed: pages committed after its last commit are read again from the archive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from bowerbird.crawl.intake import IndexChange, make_document
from bowerbird.crawl.reading import RESOLVED_KEPT, Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.texts import read_archived
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.protocol import Document, SearchIndex
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import UrlTable
from bowerbird.web.url import Canonicaliser

COMMIT_EVERY = 5000


def catch_up(
    repository: Repository,
    index: SearchIndex,
    settings: Settings,
    show: Callable[[int, int], None] | None = None,
) -> int:
    """Bring the index up to the last committed fetch; how many pages were indexed or removed.

    Pages come in the order of their last fetches, and each commit notes how far it came: a start that is cut short
    is taken up there by the next.
    """
    through = int(str(repository.meta("indexed_through") or 0))
    empty = index.count() == 0
    if through and empty:
        through = 0  # a lost index is built from the archive; noted before anything is in it that hides the loss
        repository.set_meta("indexed_through", through)
    rows = _read_missing(repository, through)
    if not rows:
        return 0
    again = Rereader(repository, settings)
    _forget_forward(repository.folder, rows)
    changed = 0
    for done, (row, last) in enumerate(rows, 1):
        added = again.index(row, index)
        changed += added or not empty  # where nothing was, nothing is removed
        if done % COMMIT_EVERY == 0:
            index.commit()
            repository.set_meta("indexed_through", last)
            if show is not None:
                show(done, len(rows))
    index.commit()
    repository.commit(indexed_through=repository.last_fetch_id)
    return changed


def _read_missing(state: CommittedState, through: int) -> list[tuple[int, int]]:
    """Pages fetched since, in the order of their last fetches, with these."""
    found: list[tuple[int, int]] = state.connection.execute(
        "SELECT url, max(id) AS last FROM fetches WHERE id > ? GROUP BY url ORDER BY last", (through,)
    ).fetchall()
    return found


def _forget_forward(folder: CrawlFolder, rows: list[tuple[int, int]]) -> None:
    """The records are of pages as they were: what is indexed now is not measured."""
    records = ForwardRecords(folder.forward)
    records.forget([row for row, _ in rows])
    records.commit()
    records.close()


class Backlog:
    """What an index missed, brought up to date in its own thread while others wait for the crawl to go on.

    Only where it is not much: an index that is built anew would keep the pages that come from being found.
    """

    MOST = 20_000

    def __init__(self, repository: Repository, settings: Settings) -> None:
        self.through = int(str(repository.meta("indexed_through") or 0))
        self._folder = repository.folder
        self._settings = settings
        self._table = repository.table
        self._last = repository.last_fetch_id

    @property
    def is_small(self) -> bool:
        """Is it little beside what the index has?"""
        return self.through > 0 and self._last - self.through <= self.MOST

    def take(self, index: SearchIndex) -> int:
        """Index it; the number of the last fetch that the index has then. Reads by a session of its own."""
        state = CommittedState(self._folder)
        try:
            rows = [one for one in _read_missing(state, self.through) if one[0] < self._table.columns.count]
            _forget_forward(self._folder, rows)
            again = Rereader(state, self._settings, self._table)
            for row, _ in rows:
                again.index(row, index)
            index.commit()
        finally:
            state.close()
        return self._last


class Rereader:
    """Makes the document of a page anew from the archive, with the anchors known by now."""

    def __init__(self, state: CommittedState, settings: Settings, table: UrlTable | None = None) -> None:
        self.state = state
        self.table = state.table if isinstance(state, Repository) else table or UrlTable(0)
        self.reader = Reader(
            Canonicaliser(settings.urls, RESOLVED_KEPT),
            Scope(settings.scope_rules),
            agent=settings.crawl.product,
            hash_seed=self.table.seed,
            max_links=0,
        )

    def index(self, row: int, index: SearchIndex) -> bool:
        """Put a page into an index as it is by now, or take it out; whether it was put in."""
        document = self.document(row)
        if document is None:
            index.remove(row)
            return False
        index.add(document, replace=True)
        return True

    def document(self, row: int) -> Document | None:
        """The page as it is searched; None when it is not to be found by a search."""
        version = self.state.version(row)
        if (
            version is None
            or version.noindex
            or version.media not in ("html", "text")
            or self.table.columns["state"][row] != UrlState.FETCHED
        ):
            return None
        result = read_archived(self.state, version, self.state.url(row))
        if result is None:
            return None
        report = self.reader.read(result)
        if report.outcome is not Outcome.OK:
            return None
        document = make_document(row, report, version.duplicate_of)
        document.anchors = " \n".join(self.state.anchors(row))
        return document


class LateAnchors:
    """Pages that others began to link to after they were indexed: indexed again when there is time for it.

    A clean stop keeps them for the next run; a crash forgets them until the page changes.
    """

    def __init__(self, rereader: Rereader, limit: int = 200_000) -> None:
        self.rereader = rereader
        self.limit = limit
        self._rows: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def dump(self) -> str:
        """The rows, to be kept."""
        return ",".join(map(str, self._rows))

    def restore(self, kept: object) -> None:
        """Rows that an earlier run did not come to."""
        self.note(int(row) for row in str(kept or "").split(",") if row)

    def note(self, rows: Iterable[int]) -> None:
        """These pages have new anchors."""
        if len(self._rows) < self.limit:
            self._rows.update(dict.fromkeys(rows))

    def drop(self, rows: Iterable[int]) -> None:
        """These pages are being indexed anyway."""
        for row in rows:
            self._rows.pop(row, None)

    def take(self, seconds: float) -> list[IndexChange]:
        """Changes for the index, for about so long."""
        end = time.monotonic() + seconds
        changes: list[IndexChange] = []
        while self._rows and time.monotonic() < end:
            row = next(iter(self._rows))
            del self._rows[row]
            document = self.rereader.document(row)
            if document is not None:
                changes.append(IndexChange(row, document, replace=True))
        return changes
