"""Pages as they were before a fetch, read from journal and archive: for those of which there is no forward record."""

from __future__ import annotations

from bowerbird.crawl.probe_reader import FieldReader
from bowerbird.crawl.settings import Settings
from bowerbird.index.protocol import Document
from bowerbird.model.outcome import Outcome
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder


class EarlierPages:
    """Reads with a connection of its own, opened when it is first asked."""

    def __init__(self, folder: CrawlFolder, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self._state: CommittedState | None = None
        self._fields: FieldReader | None = None

    def __call__(self, page: int, at: float) -> Document | None:
        """The version of a page that its fetch of this time replaced; None where there was none to be found.

        What came before is told by the journal's order: clocks are set back. A fetch that is not there counts as the
        latest one.
        """
        if self._state is None or self._fields is None:
            self._state = CommittedState(self.folder)
            self._fields = FieldReader(self._state, self.settings)
        place = self._state.connection.execute(
            "SELECT file, offset, length FROM fetches WHERE url = ? AND outcome = ? AND file IS NOT NULL"
            " AND id < (SELECT id FROM fetches WHERE url = ? ORDER BY fetched_at = ? DESC, id DESC LIMIT 1)"
            " ORDER BY id DESC LIMIT 1",
            (page, int(Outcome.OK), page, at),
        ).fetchone()
        fields = None if place is None else self._fields.archived(page, *place)
        if fields is None:
            return None
        title, text, anchors, url_words = (fields[name] for name in ("title", "text", "anchors", "url_words"))
        return Document(page, "", title, text, anchors, url_words, host="", language="", fetched_at=at)

    def close(self) -> None:
        """Let go of the connection."""
        if self._state is not None:
            self._state.close()
            self._state = self._fields = None
