"""A crawl folder from which better seeds can be chosen than those that were given."""

from __future__ import annotations

from pathlib import Path

from tests.crawl.hub_past import Past, urls

from bowerbird.crawl.seed_study import make_seed_study
from bowerbird.model.outcome import Outcome
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.records import FetchRecord

GIVEN = "http://seed.example/"


class Site(Past):
    """The seed that was given leads to three pages; one of them, the hall, to many more."""

    def __init__(self, root: Path, **seeds: object) -> None:
        super().__init__(root, {"seeds": {"k": 1, "hops": 1, **seeds}})
        at = self.now - 1000.0
        self.given = self.add(GIVEN, at)
        self.near = self.visit(self.given, at, urls("near", 3))
        self.hall = self.near[0]
        self.far = self.visit(self.hall, at + 1, urls("far", 8))
        for row in (*self.near[1:], *self.far):
            self.visit(row, at + 2)

    def settle(self, row: int, state: UrlState, outcome: Outcome, target: int | None = None) -> None:
        """What became of a URL."""
        kind = FetchKind.REFRESH
        record = FetchRecord(row, kind, self.now, 1.0, 1.0, "{}", self.now, outcome, state, target=target)
        self.repository.record(record)

    def choose(self) -> SeedStudy:
        self.repository.commit()
        return make_seed_study(self.folder, self.settings, self.now)
