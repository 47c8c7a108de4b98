"""A study of the frontier on disk: replaced as a whole, survives the loss of the process, ignored where it is damaged.

It names the crawl it is of, by the seed of its URL hashes and the hash of the last URL it covers.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.study import REASONS, CalibrationNote, FrontierStudy, QueryAnswers, Reasons

FORMAT = 1
_REASONS = ("rows", "sources", "passed", "queries", "ranks", "query_marks")
_ANSWERS = ("marks", "mean_top", "results")
_PARTIAL_LIFE_S = 3600.0


@dataclass(frozen=True, slots=True)
class StudyRead:
    """A study, or why there is none."""

    study: FrontierStudy | None
    note: str = ""


def write_study(path: Path, study: FrontierStudy, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row."""
    path.parent.mkdir(exist_ok=True)
    _remove_leftovers(path)
    head = {
        "format": FORMAT,
        "crawl": _name_crawl(seed, hashes, study.count),
        "at": study.at,
        "method": study.method,
        "count": study.count,
        "default_worth": study.default_worth,
        "calibration": asdict(study.calibration),
        "info": study.info,
        "answers": None if study.answers is None else {"pages": study.answers.pages, "model": study.answers.model},
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "head": np.frombuffer(orjson.dumps(head), dtype=np.uint8),
        "worth": study.worth,
        "score": study.score,
        "host_worth": study.host_worth,
    }
    if study.reasons is not None:
        arrays |= {f"reasons_{name}": getattr(study.reasons, name) for name in _REASONS}
    if study.answers is not None:
        arrays |= {f"answers_{name}": getattr(study.answers, name) for name in _ANSWERS}
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")  # two who study at once do not meet
    try:
        with partial.open("wb") as out:
            np.savez(out, **arrays)  # type: ignore[arg-type]
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        partial.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Of those who were killed while they wrote."""
    for old in path.parent.glob(f"{path.name}.*.partial"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _PARTIAL_LIFE_S:
                old.unlink()


def read_study(
    path: Path,
    seed: int,
    hashes: npt.NDArray[np.uint64],
    *,
    reasons: bool = False,
    stream: IO[bytes] | None = None,
) -> StudyRead:
    """The study of this crawl, without its reasons unless they are asked for; never raises.

    With a `stream` of the file that was opened before the URLs were read, a study made meanwhile is not mistaken for
    another crawl's.
    """
    try:
        with stream or path.open("rb") as source, np.load(source, allow_pickle=False) as stored:
            return _decode(path, stored, seed, hashes, reasons)
    except FileNotFoundError:
        return StudyRead(None)
    except Exception as error:  # a damaged archive fails in many ways, and none of them is worth a crawl
        return StudyRead(None, f"{path}: is damaged and ignored ({error}). The next study replaces it.")


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64], reasons: bool) -> StudyRead:
    head = orjson.loads(bytes(stored["head"]))
    if head["format"] != FORMAT:
        return StudyRead(None, f"{path}: is of another version and ignored. The next study replaces it.")
    count = int(head["count"])
    if count > len(hashes) or head["crawl"] != _name_crawl(seed, hashes, count):
        return StudyRead(None, f"{path}: is of another crawl and ignored. The next study replaces it.")
    worth, score = stored["worth"].astype(np.float32), stored["score"].astype(np.float32)
    if worth.shape != (count,) or score.shape != (count,) or np.isinf(worth).any() or (worth < 0).any():
        raise ValueError("its columns do not fit")
    found = None
    if reasons and "reasons_rows" in stored:
        found = Reasons(**{name: stored[f"reasons_{name}"] for name in _REASONS})
        if any(getattr(found, name).shape != (len(found.rows), REASONS) for name in _REASONS[1:5]):
            raise ValueError("its reasons do not fit")
    answers = head["answers"]
    if answers is not None:
        model = None if answers["model"] is None else (float(answers["model"][0]), float(answers["model"][1]))
        columns = {name: stored[f"answers_{name}"] for name in _ANSWERS}
        if len({column.shape for column in columns.values()}) > 1:
            raise ValueError("its answers do not fit")
        answers = QueryAnswers(pages=int(answers["pages"]), model=model, **columns)
    study = FrontierStudy(
        at=float(head["at"]),
        method=str(head["method"]),
        count=count,
        worth=worth,
        score=score,
        host_worth=stored["host_worth"].astype(np.float32),
        default_worth=float(head["default_worth"]),
        calibration=CalibrationNote(**head["calibration"]),
        reasons=found,
        answers=answers,
        info=dict(head["info"]),
    )
    return StudyRead(study)


def _name_crawl(seed: int, hashes: npt.NDArray[np.uint64], count: int) -> str:
    return f"{seed:x}-{int(hashes[count - 1]) if count else 0:x}"
