"""What was expected of fetches and what they gained, on disk as the studies are: ignored where it is damaged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.factors import Factors
from bowerbird.model.watch import KindWatch, Watch
from bowerbird.store.study_file import name_crawl, read_head, read_stored, refuse, write_arrays

FORMAT = 1


@dataclass(frozen=True, slots=True)
class WatchRead:
    """What was found, or why there is nothing."""

    study: Watch | None
    note: str = ""


def write_watch(path: Path, watch: Watch, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row."""
    head = {
        "format": FORMAT,
        "kind": "watch",
        "crawl": name_crawl(seed, hashes, len(hashes)),
        "count": len(hashes),
        "method": watch.method,
        "at": watch.at,
        "kinds": [asdict(kind) for kind in watch.kinds],
        "appraisers": [asdict(kind) for kind in watch.appraisers],
        "factors": asdict(watch.factors),
        "info": watch.info,
        "margins": [asdict(kind) for kind in watch.margins],
    }
    write_arrays(path, {"head": np.frombuffer(orjson.dumps(head), dtype=np.uint8)})


def read_watch(path: Path, seed: int, hashes: npt.NDArray[np.uint64], *, stream: IO[bytes] | None = None) -> WatchRead:
    """What was found of this crawl; never raises. `stream` as for the frontier."""
    return read_stored(
        path, stream, lambda stored: _decode(path, stored, seed, hashes), lambda note: WatchRead(None, note)
    )


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64]) -> WatchRead:
    head = read_head(stored)
    refusal = refuse(head, seed, hashes, FORMAT)
    if refusal:
        return WatchRead(None, f"{path}: {refusal} and ignored. The next study replaces it.")
    factors = Factors(**{name: float(value) for name, value in head["factors"].items()})
    if not all(0.0 < value < np.inf for value in asdict(factors).values()):
        raise ValueError("its factors cannot be")
    kinds = tuple(KindWatch(**kind) for kind in head["kinds"])
    appraisers = tuple(KindWatch(**kind) for kind in head["appraisers"])
    margins = tuple(KindWatch(**kind) for kind in head.get("margins", ()))
    every = (*kinds, *appraisers, *margins)
    if not all(np.isfinite((kind.expected, kind.realised, kind.ratio)).all() for kind in every):
        raise ValueError("its sums cannot be")
    info = dict(head["info"])
    return WatchRead(Watch(float(head["at"]), kinds, appraisers, factors, str(head["method"]), info, margins))
