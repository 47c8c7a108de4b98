"""A choice of seeds on disk, as the studies are: one file, replaced as a whole, ignored where it is damaged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.seed_study import METHOD, SeedChange, SeedStudy
from bowerbird.store.study_file import name_crawl, read_head, read_stored, refuse, write_arrays

FORMAT = 2  # 1 had given seeds among the chosen
_ROWS = ("row", "pages", "given", "before")
_WHOLE = ("count", "k", "hops", "all_pages", "given_pages")
_NUMBERS = ("all_value", "before_value", "given_value")
_LAST_S = 253_402_300_800.0  # the year 10000


@dataclass(frozen=True, slots=True)
class SeedStudyRead:
    """A study, or why there is none."""

    study: SeedStudy | None
    note: str = ""


def write_seed_study(path: Path, study: SeedStudy, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row."""
    head = {
        "format": FORMAT,
        "kind": METHOD,
        "crawl": name_crawl(seed, hashes, study.count),
        "at": study.at,
        "method": study.method,
        **{name: getattr(study, name) for name in (*_WHOLE, *_NUMBERS)},
        "unit": study.unit,
        "bound": study.bound,
        "history": [asdict(change) for change in study.history],
        "info": study.info,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "head": np.frombuffer(orjson.dumps(head), dtype=np.uint8),
        **{name: getattr(study, name) for name in _ROWS},
        "value": study.value,
        "depth": study.depth,
    }
    write_arrays(path, arrays)


def read_seed_study(
    path: Path, seed: int, hashes: npt.NDArray[np.uint64], *, stream: IO[bytes] | None = None
) -> SeedStudyRead:
    """The choice of this crawl; never raises. `stream` as for the frontier."""
    return read_stored(
        path, stream, lambda stored: _decode(path, stored, seed, hashes), lambda note: SeedStudyRead(None, note)
    )


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64]) -> SeedStudyRead:
    head = read_head(stored)
    if head.get("kind") != METHOD:
        return SeedStudyRead(None, f"{path}: is no choice of seeds and ignored. The next study replaces it.")
    refusal = refuse(head, seed, hashes, FORMAT)
    if refusal:
        return SeedStudyRead(None, f"{path}: {refusal} and ignored. The next study replaces it.")
    bound = head["bound"]
    columns: dict[str, Any] = {
        **{name: int(head[name]) for name in _WHOLE},
        **{name: float(head[name]) for name in _NUMBERS},
        **{name: stored[name].astype(np.int64) for name in _ROWS},
    }
    study = SeedStudy(
        at=float(head["at"]),
        method=str(head["method"]),
        unit=str(head["unit"]),
        **columns,
        value=stored["value"].astype(np.float64),
        depth=stored["depth"].astype(np.uint8),
        bound=None if bound is None else (float(bound[0]), float(bound[1])),
        history=tuple(SeedChange(**change) for change in head["history"]),
        info=dict(head["info"]),
    )
    _check(study)
    return SeedStudyRead(study)


def _check(study: SeedStudy) -> None:
    """A row that is not there would stop a crawl; a depth of 0 elsewhere would put pages first in line."""
    if study.depth.shape != (study.count,):
        raise ValueError("its depths do not fit")
    if study.row.ndim != 1 or study.before.ndim != 1 or study.given.ndim != 1:
        raise ValueError("its columns do not fit")
    if not study.row.shape == study.pages.shape == study.value.shape:
        raise ValueError("its columns do not fit")
    for rows in (study.row, study.before, study.given):
        if len(rows) and not (rows.min() >= 0 and rows.max() < study.count and len(np.unique(rows)) == len(rows)):
            raise ValueError("it names rows that are not there, or one twice")
    if (study.depth[study.row] != 0).any():
        raise ValueError("its seeds are not where it counts from")
    if not all(0.0 < at < _LAST_S for at in (study.at, *(change.at for change in study.history))):
        raise ValueError("it was made at no time")
    past = (number for change in study.history for number in (change.value, change.before_value, change.all_value))
    numbers = (study.all_value, study.before_value, study.given_value, *(study.bound or ()), *past)
    if not (np.isfinite(study.value).all() and np.isfinite(numbers).all()) or (study.pages < 0).any():
        raise ValueError("its values cannot be")
