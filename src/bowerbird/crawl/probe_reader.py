"""The pages that were drawn by lot, read from journal and archive: what each was before its fetch, and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import orjson

from bowerbird.crawl.intake import make_document
from bowerbird.crawl.reading import RESOLVED_KEPT, Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.texts import read_place
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.schedule.lottery import STRATA
from bowerbird.store.committed import CommittedState
from bowerbird.web.response import FetchResult
from bowerbird.web.url import Canonicaliser

Fields = dict[str, str]
_TELLING = (Outcome.OK, Outcome.NOT_MODIFIED, Outcome.GONE, Outcome.REDIRECT)
"""Outcomes that say what a page is now; after any other nobody knows."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A page that was drawn: its texts by field before and after; None = no search could find it."""

    row: int
    at: float
    stratum: str
    propensity: float
    age_s: float  # since its fetch before, when it was drawn; 0 = it had none
    before: Fields | None
    after: Fields | None

    @property
    def changed(self) -> bool:
        """Would a search answer differently?"""
        return self.before != self.after


class FieldReader:
    """Reads what the index has, had or would have of a page."""

    def __init__(self, state: CommittedState, settings: Settings) -> None:
        self.state = state
        self.reader = Reader(
            Canonicaliser(settings.urls, RESOLVED_KEPT),
            Scope(settings.scope_rules),
            agent=settings.crawl.product,
            hash_seed=0,
            max_links=0,
        )

    def archived(self, row: int, file: int | None, offset: int | None, length: int | None) -> Fields | None:
        """The texts of a page at a place of the archive; None where no search could find it."""
        result = read_place(self.state, file, offset, length, self.state.url(row))
        return None if result is None else self.answered(row, result)

    def answered(self, row: int, result: FetchResult) -> Fields | None:
        """The texts of an answer."""
        report = self.reader.read(result)
        if report.outcome is not Outcome.OK or report.noindex or report.media not in ("html", "text"):
            return None
        page = make_document(row, report, None)
        anchors = " \n".join(self.state.anchors(row))
        return {"title": page.title, "text": page.text, "anchors": anchors, "url_words": page.url_words}


class ProbeReader:
    """Reads probes of a crawl."""

    def __init__(self, state: CommittedState, settings: Settings) -> None:
        self.state = state
        self.fields = FieldReader(state, settings)
        self.unanswered = 0  # probes that brought no answer to learn from

    def latest(self, count: int, since: float = 0.0) -> list[Probe]:
        """The latest probes that told something, oldest first; of a page drawn twice the later one."""
        return list(islice(self._backwards(since), count))[::-1]

    def _backwards(self, since: float) -> Iterator[Probe]:
        indexed = int(str(self.state.meta("indexed_through") or 0))
        rows = self.state.connection.execute(
            "SELECT id, url, terms, fetched_at, outcome, changed, file, offset, length FROM fetches"
            " WHERE kind = ? AND id <= ? ORDER BY id DESC",
            (int(FetchKind.PROBE), indexed),
        )
        met: set[int] = set()
        for number, row, terms, at, outcome, changed, *place in rows:
            if at < since:
                return
            lot = orjson.loads(terms)
            if row in met or lot["stratum"] not in STRATA:
                continue
            met.add(row)
            if outcome not in _TELLING:
                self.unanswered += 1
                continue
            before, earlier = self._earlier(row, number) if lot["stratum"] != "frontier" else (None, at)
            after: Fields | None = None
            if outcome == Outcome.NOT_MODIFIED or (outcome == Outcome.OK and before is not None and not changed):
                after = before
            elif outcome == Outcome.OK:
                after = self.fields.archived(row, *place)
            yield Probe(row, at, lot["stratum"], lot["propensity"], at - earlier, before, after)

    def _earlier(self, row: int, number: int) -> tuple[Fields | None, float]:
        """The version that the index held when the page was drawn, and when it had last been fetched."""
        found = self.state.connection.execute(
            "SELECT file, offset, length FROM fetches WHERE url = ? AND id < ? AND outcome = ? AND file IS NOT NULL"
            " ORDER BY id DESC LIMIT 1",
            (row, number, int(Outcome.OK)),
        ).fetchone()
        (last,) = self.state.connection.execute(
            "SELECT max(fetched_at) FROM fetches WHERE url = ? AND id < ? AND outcome IN (?, ?)",
            (row, number, int(Outcome.OK), int(Outcome.NOT_MODIFIED)),
        ).fetchone()
        return (None if found is None else self.fields.archived(row, *found)), float(last or 0.0)
