"""What went wrong with the studies of a crawl: kept in its folder, so that it is told, and heeded by the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from bowerbird.store.committed import CommittedState
from bowerbird.store.repository import Repository

KEY = "study_troubles"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Of the last study by a method; it is over when one succeeds."""

    at: float  # when that study came to nothing
    due_at: float  # when the next may begin
    ended: int  # times in a row that it was ended because it took too long
    killed: int  # times in a row by somebody else
    note: str

    def wait_s(self, now: float) -> float:
        """Seconds until the next may begin; a clock that was ahead at the time counts as right."""
        return max(self.due_at - self.at - max(now - self.at, 0.0), 0.0)


def read_troubles(state: CommittedState) -> dict[str, Trouble]:
    """By method."""
    text = state.meta(KEY)
    told: dict[str, dict[str, Any]] = orjson.loads(str(text)) if text else {}
    return {method: Trouble(**one) for method, one in told.items()}


def write_trouble(repository: Repository, method: str, trouble: Trouble | None) -> None:
    """Keep it; None where all went well."""
    troubles = read_troubles(repository)
    if trouble is None and method not in troubles:
        return
    others: Mapping[str, Trouble] = {name: one for name, one in troubles.items() if name != method}
    kept = others if trouble is None else {**others, method: trouble}
    repository.set_meta(KEY, orjson.dumps({name: asdict(one) for name, one in kept.items()}).decode())


def tell_studies(repository: Repository, methods: tuple[str, ...]) -> list[str]:
    """For a person: what went wrong with the last studies by these methods, and what the one of new pages notes."""
    troubles = read_troubles(repository)
    notes = [f"{method}: {troubles[method].note}" for method in methods if method in troubles]
    study = repository.study
    if study is not None and "note" in study.info:
        notes.append(f"{study.method}: {study.info['note']}")
    return notes
