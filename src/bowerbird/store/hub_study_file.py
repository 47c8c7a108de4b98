"""A study of hubs on disk, as the other studies are: one file, replaced as a whole, ignored where it is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import HOURS, PARTS, HubColumns, HubKind, HubStudy, InterestCurve
from bowerbird.store.study_file import name_crawl, read_head, read_stored, refuse, write_arrays

FORMAT = 3  # 2 took pages of a hub to differ more than anybody can tell beforehand
_FLOATS = (
    "missed",
    "period_s",
    "rate_per_s",
    "drawn_per_s",
    "profit",
    "decay_per_s",
    "left",
    "amplitude",
    "bid_rate_per_s",
    "interval_s",
)
_COUNTS = ("row", "visits", "found", "turned")
_CODES = ("kind", "shape")
_NUMBERS = ("mean_profit", "price", "budget_per_s", "longest_s")
_SHAPES = (Shape.LINEAR, Shape.SATURATING)


@dataclass(frozen=True, slots=True)
class HubStudyRead:
    """A study, or why there is none."""

    study: HubStudy | None
    note: str = ""


def write_hub_study(path: Path, study: HubStudy, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row."""
    hubs, clicks = f"{len(study.hubs):,} hubs", float(study.info.get("clicks", 0.0))
    note = f"by {clicks:,.0f} clicks, {hubs}" if study.by_clicks else f"{hubs}: no clicks on what they announced yet"
    head = {
        "format": FORMAT,
        "kind": "hubs",
        "crawl": name_crawl(seed, hashes, study.count),
        "at": study.at,
        "method": study.method,
        "count": study.count,
        "by_clicks": study.by_clicks,
        **{name: getattr(study, name) for name in _NUMBERS},
        "curve": {"profit": study.curve.profit, "decay_per_s": study.curve.decay_per_s},
        # as the studies of the frontier tell theirs
        "calibration": {
            "kind": "calibrated" if study.by_clicks else "prior",
            "pages": len(study.hubs),
            "clicks": clicks,
            "note": note,
        },
        "info": study.info,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "head": np.frombuffer(orjson.dumps(head), dtype=np.uint8),
        **{name: getattr(study.hubs, name) for name in (*_COUNTS, *_FLOATS, *_CODES)},
        "page_row": study.page_row,
        "page_hub": study.page_hub,
        "page_factor": study.page_factor,
        "curve_age_s": study.curve.age_s,
        "curve_clicks": study.curve.clicks,
        "cover_hub": study.cover_hub,
        "cover_share": study.cover_share,
        "pattern": study.pattern,
        "page_spread": study.page_spread,
    }
    write_arrays(path, arrays)


def read_hub_study(
    path: Path, seed: int, hashes: npt.NDArray[np.uint64], *, stream: IO[bytes] | None = None
) -> HubStudyRead:
    """The study of this crawl; never raises. `stream` as for the frontier."""
    return read_stored(
        path, stream, lambda stored: _decode(path, stored, seed, hashes), lambda note: HubStudyRead(None, note)
    )


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64]) -> HubStudyRead:
    head = read_head(stored)
    if head.get("kind") != "hubs":
        return HubStudyRead(None, f"{path}: is no study of hubs and ignored. The next study replaces it.")
    refusal = refuse(head, seed, hashes, FORMAT)
    if refusal:
        return HubStudyRead(None, f"{path}: {refusal} and ignored. The next study replaces it.")
    count = int(head["count"])
    columns: dict[str, npt.NDArray[Any]] = {
        **{name: stored[name].astype(np.int64) for name in _COUNTS},
        **{name: stored[name].astype(np.float32) for name in _FLOATS},
        **{name: stored[name].astype(np.uint8) for name in _CODES},
    }
    hubs = HubColumns(**columns)
    page_row, page_hub, cover_hub = (stored[name].astype(np.int64) for name in ("page_row", "page_hub", "cover_hub"))
    page_factor, curve_age_s, curve_clicks, cover_share = (
        stored[name].astype(np.float32) for name in ("page_factor", "curve_age_s", "curve_clicks", "cover_share")
    )
    if any(column.shape != (len(hubs),) for column in columns.values()):
        raise ValueError("its columns do not fit")
    for one, other in (
        (page_row, page_hub),
        (page_row, page_factor),
        (curve_age_s, curve_clicks),
        (cover_hub, cover_share),
    ):
        if one.ndim != 1 or one.shape != other.shape:
            raise ValueError("its columns do not fit")
    _check_rows(hubs.row, count)
    _check_rows(page_row, count)
    for place in (page_hub, cover_hub):
        if len(place) and not (place.min() >= 0 and place.max() < len(hubs)):
            raise ValueError("it names hubs that are not there")
    _check_values(hubs)
    if not (np.isfinite(page_factor) & (page_factor >= 0)).all():
        raise ValueError("its pages have factors that cannot be")
    pattern = stored["pattern"].astype(np.float32)
    if pattern.shape != (HOURS,) or not (np.isfinite(pattern) & (pattern >= 0)).all():
        raise ValueError("its hours of the week cannot be")
    spread = stored["page_spread"].astype(np.float32)
    if spread.shape != (PARTS,) or not (np.isfinite(spread) & (spread >= 0)).all():
        raise ValueError("its pages differ in ways that cannot be")
    numbers = {name: float(head[name]) for name in _NUMBERS}
    curve = InterestCurve(
        curve_age_s, curve_clicks, float(head["curve"]["profit"]), float(head["curve"]["decay_per_s"])
    )
    if not all(0.0 <= number < np.inf for number in (*numbers.values(), curve.profit, curve.decay_per_s)):
        raise ValueError("its means cannot be")
    if numbers["longest_s"] == 0.0 or not (np.isfinite(curve_age_s).all() and np.isfinite(curve_clicks).all()):
        raise ValueError("its means cannot be")
    study = HubStudy(
        at=float(head["at"]),
        method=str(head["method"]),
        count=count,
        hubs=hubs,
        page_row=page_row,
        page_hub=page_hub,
        page_factor=page_factor,
        curve=curve,
        by_clicks=bool(head["by_clicks"]),
        cover_hub=cover_hub,
        cover_share=cover_share,
        info=dict(head["info"]),
        pattern=pattern,
        page_spread=spread,
        mean_profit=numbers["mean_profit"],
        price=numbers["price"],
        budget_per_s=numbers["budget_per_s"],
        longest_s=numbers["longest_s"],
    )
    return HubStudyRead(study)


def _check_rows(rows: npt.NDArray[np.int64], count: int) -> None:
    """They are looked up by halving: an order that is broken would lose some without a word."""
    if len(rows) and not (rows[0] >= 0 and rows[-1] < count and (np.diff(rows) > 0).all()):
        raise ValueError("its rows are not in order")


def _check_values(hubs: HubColumns) -> None:
    """A bid that is not finite would stand first in line, or never."""
    for name in (*_COUNTS, *_FLOATS):
        column = getattr(hubs, name)
        if not np.isfinite(column).all() or (column < 0).any():
            raise ValueError(f"its {name} has values that cannot be")
    if (hubs.interval_s == 0).any() or (hubs.decay_per_s == 0).any() or (hubs.bid_rate_per_s == 0).any():
        raise ValueError("its intervals have values that cannot be")
    if not np.isin(hubs.shape, _SHAPES).all() or not np.isin(hubs.kind, tuple(HubKind)).all():
        raise ValueError("its shapes are not known")
