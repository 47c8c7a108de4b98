"""URLs that people add or forget while a crawl runs: left in the database, taken up within a second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.settings import Settings
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]


class Inbox:
    """Takes up what is waiting."""

    def __init__(self, repository: Repository, settings: Settings) -> None:
        self.repository = repository
        self.settings = settings

    def drain(self, now: float) -> tuple[I64, list[int], tuple[str, ...]]:
        """Apply what waits: rows to bid for, rows known before and now forgotten, and the seeds added."""
        nothing = np.zeros(0, dtype=np.int64)
        waiting = self.repository.connection.execute(
            "SELECT id, verb, url FROM inbox ORDER BY id LIMIT 1000"
        ).fetchall()
        if not waiting:
            return nothing, [], ()
        added: list[int] = []
        removed: list[int] = []
        seeds: list[str] = []
        met_before = self.repository.table.columns.count
        for _, verb, url in waiting:
            rows, _ = self.repository.add_urls([url], at=now)
            row = int(rows[0])
            state = UrlState(int(self.repository.table.columns["state"][row]))
            if verb == "add":
                seeds.append(url)
                added.append(row)
                if state in (UrlState.FORGOTTEN, UrlState.FAILED, UrlState.GONE, UrlState.EXCLUDED):
                    self._mark(row, Outcome.ADDED, UrlState.NEW, now)
            elif state is not UrlState.FORGOTTEN:
                if row < met_before:  # a new row has no bid and no document that could be taken away
                    removed.append(row)
                self._mark(row, Outcome.FORGOTTEN, UrlState.FORGOTTEN, now)
        self.repository.note_inbox_done(int(waiting[-1][0]), tuple(seeds))
        return np.unique(np.array(added, dtype=np.int64)), removed, tuple(seeds)

    def _mark(self, row: int, outcome: Outcome, state: UrlState, now: float) -> None:
        self.repository.record(FetchRecord(row, FetchKind.NEW, now, 0.0, 0.0, "{}", now, outcome, state))
