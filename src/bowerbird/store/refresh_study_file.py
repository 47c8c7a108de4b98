"""A study of known pages on disk, as those of the frontier are: one file a method, ignored where it is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.bid import Shape
from bowerbird.model.refresh_study import RefreshDetails, RefreshStudy, ValidatorTrust
from bowerbird.store.study_file import name_crawl, read_head, read_stored, refuse, write_arrays

FORMAT = 2  # 1 had no longest interval
_ROWS = ("amplitude", "rate_per_s", "interval_s", "changes_per_s")
_OPTIONAL = ("gain", "stale_loss", "most_changes")
_COST = "host_cost"
_HOSTS = ("host_interval_s", "recall", "false_rate_per_s")
_DETAILS = ("loss", "growth_per_s", "certainty", "stake")
_TRUST = ("not_modified", "date_recall", "date_false_per_s")


@dataclass(frozen=True, slots=True)
class RefreshStudyRead:
    """A study, or why there is none."""

    study: RefreshStudy | None
    note: str = ""


def write_refresh_study(path: Path, study: RefreshStudy, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row."""
    pages = int(study.info.get("pages", 0.0))
    measured = int(study.info.get("measured", 0.0))
    head = {
        "format": FORMAT,
        "kind": "refresh",
        "crawl": name_crawl(seed, hashes, study.count),
        "at": study.at,
        "method": study.method,
        "count": study.count,
        "default_interval_s": study.default_interval_s,
        "longest_s": study.longest_s,
        "price": study.price,
        "budget_per_s": study.budget_per_s,
        "clicks_per_s": study.clicks_per_s,
        # as the studies of the frontier tell theirs
        "calibration": {
            "kind": "measured" if measured else "prior",
            "pages": pages,
            "clicks": 0.0,
            "note": f"{pages:,} fetched pages, gains of {measured:,} refreshes measured",
        },
        "info": study.info,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "head": np.frombuffer(orjson.dumps(head), dtype=np.uint8),
        "shape": study.shape,
        **{name: getattr(study, name) for name in (*_ROWS, *_HOSTS)},
    }
    for name in _OPTIONAL:
        if getattr(study, name) is not None:
            arrays[name] = getattr(study, name)
    if study.host_cost is not None:
        arrays[_COST] = study.host_cost
    if study.details is not None:
        arrays |= {f"details_{name}": getattr(study.details, name) for name in _DETAILS}
    if study.trust is not None:
        arrays |= {f"trust_{name}": getattr(study.trust, name) for name in _TRUST}
    write_arrays(path, arrays)


def read_refresh_study(
    path: Path,
    seed: int,
    hashes: npt.NDArray[np.uint64],
    *,
    details: bool = False,
    stream: IO[bytes] | None = None,
) -> RefreshStudyRead:
    """The study of this crawl, without details unless asked for; never raises. `stream` as for the frontier."""
    return read_stored(
        path,
        stream,
        lambda stored: _decode(path, stored, seed, hashes, details),
        lambda note: RefreshStudyRead(None, note),
    )


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64], details: bool) -> RefreshStudyRead:
    head = read_head(stored)
    refusal = refuse(head, seed, hashes, FORMAT)
    if refusal:
        return RefreshStudyRead(None, f"{path}: {refusal} and ignored. The next study replaces it.")
    count = int(head["count"])
    rows = {name: stored[name].astype(np.float32) for name in _ROWS}
    hosts = {name: stored[name].astype(np.float32) for name in _HOSTS}
    shape = stored["shape"].astype(np.uint8)
    if any(column.shape != (count,) for column in (shape, *rows.values())):
        raise ValueError("its columns do not fit")
    if any(column.ndim != 1 for column in hosts.values()) or hosts["recall"].shape != hosts["false_rate_per_s"].shape:
        raise ValueError("its columns of hosts do not fit")
    _check_values(rows, hosts, shape)
    none = np.isnan(rows["amplitude"])
    gain, stale_loss, most_changes = (_read_optional(stored, name, none) for name in _OPTIONAL)
    numbers = {name: float(head[name]) for name in ("default_interval_s", "longest_s", "price", "budget_per_s")}
    host_cost = stored[_COST].astype(np.float32) if _COST in stored else None
    if host_cost is not None and (host_cost.shape != hosts["host_interval_s"].shape or not (host_cost > 0).all()):
        raise ValueError("what it says of costs does not fit")
    clicks_per_s = float(head.get("clicks_per_s", 0.0))
    intervals = (numbers["default_interval_s"], numbers["longest_s"])
    if not all(0.0 <= number < np.inf for number in (*numbers.values(), clicks_per_s)) or 0.0 in intervals:
        raise ValueError("its means cannot be")
    found = None
    if details and "details_loss" in stored:
        found = RefreshDetails(**{name: stored[f"details_{name}"].astype(np.float32) for name in _DETAILS})
        if any(getattr(found, name).shape != (count,) for name in _DETAILS):
            raise ValueError("its details do not fit")
    trust = None
    if details and f"trust_{_TRUST[0]}" in stored:
        trust = ValidatorTrust(**{name: stored[f"trust_{name}"].astype(np.float32) for name in _TRUST})
        if any(getattr(trust, name).shape != hosts["host_interval_s"].shape for name in _TRUST):
            raise ValueError("what it says of hosts does not fit")
    study = RefreshStudy(
        at=float(head["at"]),
        method=str(head["method"]),
        count=count,
        shape=shape,
        details=found,
        trust=trust,
        info=dict(head["info"]),
        default_interval_s=numbers["default_interval_s"],
        longest_s=numbers["longest_s"],
        price=numbers["price"],
        budget_per_s=numbers["budget_per_s"],
        gain=gain,
        stale_loss=stale_loss,
        most_changes=most_changes,
        host_cost=host_cost,
        clicks_per_s=clicks_per_s,
        **rows,
        **hosts,
    )
    return RefreshStudyRead(study)


def _read_optional(stored: Any, name: str, none: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32] | None:
    if name not in stored:
        return None
    gain: npt.NDArray[np.float32] = stored[name].astype(np.float32)
    if gain.shape != none.shape or (gain < 0).any() or not np.array_equal(np.isnan(gain), none) or np.isinf(gain).any():
        raise ValueError("its gains have values that cannot be")
    return gain


def _check_values(
    rows: dict[str, npt.NDArray[np.float32]],
    hosts: dict[str, npt.NDArray[np.float32]],
    shape: npt.NDArray[np.uint8],
) -> None:
    """A bid that is not finite would stand first in line, or never; NaN stands for none, in all columns or in none."""
    none = np.isnan(rows["amplitude"])
    for column in rows.values():
        if np.isinf(column).any() or (column < 0).any() or not np.array_equal(np.isnan(column), none):
            raise ValueError("its columns have values that cannot be")
    if (rows["interval_s"] == 0).any() or (hosts["host_interval_s"] <= 0).any():
        raise ValueError("its intervals have values that cannot be")
    sure = hosts["recall"]
    if (sure < 0).any() or (sure > 1).any() or np.isnan(sure).any() or not np.isfinite(hosts["false_rate_per_s"]).all():
        raise ValueError("its signals have values that cannot be")
    if not np.isin(shape, (Shape.LINEAR, Shape.AREA, Shape.SATURATING)).all():
        raise ValueError("its shapes are not known")
