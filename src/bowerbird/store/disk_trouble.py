"""What a disk or a database refuses, in words for people."""

from __future__ import annotations

import errno
import sqlite3

from bowerbird.model.errors import BowerbirdError, DiskFullError, FolderError

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def explain_trouble(error: sqlite3.Error | OSError) -> BowerbirdError | None:
    """What the disk or the database refused, in words for people; None where it is a mistake of ours."""
    if isinstance(error, OSError):
        if error.errno not in DISK_FULL:
            return None
        where = f"{error.filename}: " if error.filename else ""
        return DiskFullError(f"{where}the disk is full. Free some space and start again: what was saved is safe.")
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return DiskFullError(
            f"state.db: the disk took no more ({text}). Free some space and start again: what was saved is safe."
        )
    if "locked" in text:
        return FolderError("state.db: another process holds it. Try again when that one has ended.")
    if type(error) not in (sqlite3.OperationalError, sqlite3.DatabaseError):
        return None
    return FolderError(f"state.db: cannot be used ({text}). Restore it from a copy of the folder.")
