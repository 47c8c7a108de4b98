"""The archive after a crash: what the database does not acknowledge is cut off or set aside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bowerbird.model.errors import ArchiveError
from bowerbird.store.archive import ARCHIVE_SUFFIX, raise_failure, sync_folder

UNACKNOWLEDGED = "unacknowledged"


def set_aside_unknown(folder: Path, ends: Mapping[str, int]) -> list[str]:
    """Move files with no acknowledged exchange into `unacknowledged/` of the archive; their names.

    After a crash such a file holds next to nothing. But where an older database was put back it may hold all that
    was fetched since, so it is kept.
    """
    moved = []
    aside = folder / UNACKNOWLEDGED
    try:
        for path in sorted(folder.glob(f"*{ARCHIVE_SUFFIX}")):
            if ends.get(path.name, 0):
                continue
            aside.mkdir(exist_ok=True)
            target, copy = aside / path.name, 0
            while target.exists():
                copy += 1
                target = aside / f"{path.name.removesuffix(ARCHIVE_SUFFIX)}.{copy}{ARCHIVE_SUFFIX}"
            path.rename(target)
            moved.append(path.name)
        if moved:
            sync_folder(aside)
            sync_folder(folder)
    except OSError as error:
        raise_failure(folder, error)
    return moved


def truncate_archive(folder: Path, ends: Mapping[str, int]) -> int:
    """Cut every known file to its last acknowledged end and return how many bytes that took away.

    Call it after a crash, before any writer is opened: what lies past the end may be half a record, and no
    store knows of it. Files with no acknowledged exchange are left alone (see `set_aside_unknown`). One that is
    gone (moved to other storage) is left out of account; one that is shorter than it should be raises ArchiveError.
    """
    cut = 0
    try:
        for path in sorted(folder.glob(f"*{ARCHIVE_SUFFIX}")):
            end = ends.get(path.name, 0)
            if not end:
                continue
            size = path.stat().st_size
            if size < end:
                raise ArchiveError(
                    f"archive file {path} has {size} bytes, {end} were acknowledged: "
                    "restore it from a copy, or move it away to go on without it"
                )
            if end < size:
                with path.open("r+b") as stream:
                    stream.truncate(end)
                    os.fsync(stream.fileno())
            cut += size - end
        if cut:
            sync_folder(folder)
    except OSError as error:
        raise_failure(folder, error)
    return cut
