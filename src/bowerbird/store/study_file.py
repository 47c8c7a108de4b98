"""A study of the frontier on disk: replaced as a whole, survives the loss of the process, ignored where it is damaged.

Each method has a file of its own, so that one does not take another's place. A file names the crawl it is of, by the
seed of its URL hashes and the hash of the last URL it covers.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.errors import BowerbirdError, DiskFullError, FolderError
from bowerbird.model.seed_study import METHOD as SEEDS
from bowerbird.model.study import REASONS, CalibrationNote, FrontierStudy, QueryAnswers, Reasons

Read = TypeVar("Read")
FORMAT = 2  # 1 had marks of queries that were not sealed
FORMER = "frontier.npz"  # the one study of older folders, whatever its method
_REASONS = ("rows", "sources", "passed", "queries", "ranks", "query_marks")
_ANSWERS = ("marks", "mean_top", "results")
_PARTIAL_LIFE_S = 3600.0
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class StudyRead:
    """A study, or why there is none."""

    study: FrontierStudy | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class StudyHead:
    """When a study was made, and how; without what it found."""

    at: float
    method: str
    count: int
    calibration: CalibrationNote


def write_study(path: Path, study: FrontierStudy, seed: int, hashes: npt.NDArray[np.uint64]) -> None:
    """Write beside the old one, sync, then take its place. `hashes` are those of the crawl's URLs, by row.

    The marks of queries in it are to be sealed: the file is not guarded as the demand log is.
    """
    head = {
        "format": FORMAT,
        "crawl": name_crawl(seed, hashes, study.count),
        "at": study.at,
        "method": study.method,
        "count": study.count,
        "default_worth": study.default_worth,
        "later_worth": study.later_worth,
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
    arrays |= {f"kept_{name}": array for name, array in study.kept.items()}
    write_arrays(path, arrays)
    if path.name != FORMER:
        with _explained(path):
            path.with_name(FORMER).unlink(missing_ok=True)


def write_arrays(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Beside the old file, synced, then in its place; what the disk refuses is told in words for people."""
    with _explained(path):
        path.parent.mkdir(exist_ok=True)
        _remove_leftovers(path.parent, path.name)
        _replace(path, arrays)


def _replace(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")  # two who study at once do not meet
    try:
        with partial.open("wb") as out:
            np.savez(out, **arrays)  # type: ignore[arg-type]  # arrays by name
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def remove_studies(folder: Path) -> int:
    """Remove the studies by all methods, with what killed writers left; how many were there?

    A choice of seeds stays: it has no marks of queries, and what it remembers cannot be made anew.
    """
    removed = 0
    for path in _studies_in(folder):
        if path.stem == SEEDS:
            continue
        with _explained(path):
            try:
                path.unlink()
                removed += 1
            except FileNotFoundError:
                pass  # somebody else did
    _remove_leftovers(folder, "*")
    return removed


def last_study(folder: Path, seed: int, hashes: npt.NDArray[np.uint64]) -> StudyHead | None:
    """The head of the study of this crawl that was made last, by whatever method; never raises."""
    heads = []
    for path in _studies_in(folder):
        with suppress(Exception), path.open("rb") as source, np.load(source, allow_pickle=False) as stored:
            head = read_head(stored)
            if head.get("kind") in (SEEDS, "watch"):
                continue  # they are told apart: bids do not rest on them
            expected = int(head["format"]) if head.get("kind") in ("refresh", "hubs") else FORMAT
            if head["method"] == path.stem and not refuse(head, seed, hashes, expected):
                calibration = CalibrationNote(**head["calibration"])
                heads.append(StudyHead(float(head["at"]), path.stem, int(head["count"]), calibration))
    return max(heads, key=lambda head: head.at, default=None)


def _studies_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What the disk refuses, in words for people."""
    try:
        yield
    except OSError as error:
        raise _explain(path, error) from error


def _explain(path: Path, error: OSError) -> BowerbirdError:
    if error.errno in _DISK_FULL:
        return DiskFullError(f"{path}: the disk is full. Free some space; the study before it, if any, is still good.")
    if path.parent.exists() and not path.parent.is_dir():
        return FolderError(f"{path.parent}: is a file, and studies are kept in a folder of that name. Move it away.")
    if path.is_dir():
        return FolderError(f"{path}: is a folder, and the study is a file of that name. Move it away.")
    reason = error.strerror or str(error)
    return FolderError(f"{path}: cannot be written ({reason}). Change the permissions of {path.parent}.")


def _remove_leftovers(folder: Path, name: str) -> None:
    """Of those who were killed while they wrote."""
    for old in folder.glob(f"{name}.*.partial"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _PARTIAL_LIFE_S:
                old.unlink()


def read_study(
    path: Path,
    seed: int,
    hashes: npt.NDArray[np.uint64],
    *,
    reasons: bool = False,
    kept: bool = False,
    stream: IO[bytes] | None = None,
) -> StudyRead:
    """The study of this crawl, without reasons and what is kept unless asked for; never raises.

    With a `stream` of the file that was opened before the URLs were read, a study made meanwhile is not mistaken for
    another crawl's.
    """
    return read_stored(
        path,
        stream,
        lambda stored: _decode(path, stored, seed, hashes, reasons, kept),
        lambda note: StudyRead(None, note),
    )


def read_stored(
    path: Path, stream: IO[bytes] | None, decode: Callable[[Any], Read], refuse_with: Callable[[str], Read]
) -> Read:
    """What `decode` makes of the arrays in a file; where that cannot be, what is made of a note. Never raises."""
    try:
        with stream or path.open("rb") as source, np.load(source, allow_pickle=False) as stored:
            return decode(stored)
    except (FileNotFoundError, NotADirectoryError):
        return refuse_with("")
    except OSError as error:
        return refuse_with(f"{path}: cannot be read and is ignored ({error.strerror or error}).")
    except Exception as error:  # a damaged archive fails in many ways, and none of them is worth a crawl
        return refuse_with(_tell_damage(path, error))


def _decode(path: Path, stored: Any, seed: int, hashes: npt.NDArray[np.uint64], reasons: bool, kept: bool) -> StudyRead:
    head = read_head(stored)
    refusal = refuse(head, seed, hashes)
    if refusal:
        return StudyRead(None, f"{path}: {refusal} and ignored. The next study replaces it.")
    count = int(head["count"])
    worth, score, host_worth = (stored[name].astype(np.float32) for name in ("worth", "score", "host_worth"))
    if worth.shape != (count,) or score.shape != (count,) or host_worth.ndim != 1:
        raise ValueError("its columns do not fit")
    # the next study may start from the scores; a value that is not finite would spoil it, and all after it
    if not np.isfinite(score).all() or not all(_are_clicks(clicks) for clicks in (worth, host_worth)):
        raise ValueError("its columns have values that cannot be")
    default_worth = float(head["default_worth"])
    later_worth = head.get("later_worth")  # earlier versions had none
    if not all(0.0 <= float(mean) < np.inf for mean in (default_worth, later_worth or 0.0)):
        raise ValueError("its mean cannot be")
    found = None
    if reasons and "reasons_rows" in stored:
        found = Reasons(**{name: stored[f"reasons_{name}"] for name in _REASONS})
        if any(getattr(found, name).shape != (len(found.rows), REASONS) for name in _REASONS[1:5]):
            raise ValueError("its reasons do not fit")
        if found.queries.max(initial=-1) >= len(found.query_marks) or found.sources.max(initial=-1) >= count:
            raise ValueError("its reasons name what is not there")
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
        host_worth=host_worth,
        default_worth=default_worth,
        later_worth=None if later_worth is None else float(later_worth),
        calibration=CalibrationNote(**head["calibration"]),
        reasons=found,
        answers=answers,
        info=dict(head["info"]),
        kept={name.removeprefix("kept_"): stored[name] for name in stored if kept and name.startswith("kept_")},
    )
    return StudyRead(study)


def read_head(stored: Any) -> dict[str, Any]:
    """What a study file says of itself."""
    head: dict[str, Any] = orjson.loads(bytes(stored["head"]))
    return head


def refuse(head: dict[str, Any], seed: int, hashes: npt.NDArray[np.uint64], expected: int = FORMAT) -> str:
    """Why a study is not for this crawl; nothing where it is."""
    if head["format"] != expected:
        return "is of another version"
    count = int(head["count"])
    if count > len(hashes) or head["crawl"] != name_crawl(seed, hashes, count):
        return "is of another crawl"
    return ""


def _are_clicks(values: npt.NDArray[np.float32]) -> bool:
    """Not negative, not infinite; NaN stands for none."""
    return not (np.isinf(values).any() or (values < 0).any())


def _tell_damage(path: Path, error: Exception) -> str:
    """What is wrong with a file, without the advice that a library adds for files of another kind."""
    why = "it is no archive of arrays" if "pickle" in str(error) else str(error)
    return f"{path}: is damaged and ignored ({why}). The next study replaces it."


def name_crawl(seed: int, hashes: npt.NDArray[np.uint64], count: int) -> str:
    """The crawl that the first `count` rows are of: another one, or another past of this one, has another name."""
    return f"{seed:x}-{int(hashes[count - 1]) if count else 0:x}"
