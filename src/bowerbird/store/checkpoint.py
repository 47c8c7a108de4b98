"""The columns on disk as of one fetch: a shortcut at start, never the truth. A damaged one is ignored."""

from __future__ import annotations

import errno
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
import xxhash

from bowerbird.model.errors import DiskFullError
from bowerbird.store.columns import Columns

_MAGIC = b"BOWERCK3"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a checkpoint reaches: the last URL, fetch, anchor and commit with new links that it has seen, and whose
    history they are of. Links of -1: nobody knows how far."""

    urls: int
    fetch: int
    anchor: int
    history: str = ""
    links: int = -1


def write_checkpoint(path: Path, columns: Columns, mark: Mark) -> None:
    """Write beside the old one, sync, then take its place."""
    header = orjson.dumps({**asdict(mark), "layout": columns.layout})
    partial = path.with_suffix(".partial")
    digest = xxhash.xxh3_64(header)
    try:
        with partial.open("wb") as out:
            out.write(_MAGIC + len(header).to_bytes(4, "little") + header)
            for name in columns.layout if mark.urls else ():
                data = np.ascontiguousarray(columns[name][: mark.urls]).view(np.uint8).data.cast("B")
                digest.update(data)
                out.write(data)
            out.write(digest.digest())
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno in _NO_SPACE:
            raise DiskFullError(
                f"{path}: the disk took no more ({error.strerror}). Free some space and start again: "
                "everything acknowledged before is safe."
            ) from error
        raise


def read_checkpoint(path: Path, columns: Columns) -> Mark | None:
    """Load into empty columns; None when there is none, or it is damaged or of another layout.

    The columns then hold whatever was read: the caller clears them.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as source:
            if source.read(8) != _MAGIC:
                return None
            text = source.read(int.from_bytes(source.read(4), "little"))
            header = orjson.loads(text)
            if header["layout"] != {name: list(spec) for name, spec in columns.layout.items()}:
                return None
            count = int(header["urls"])
            width = sum(np.dtype(dtype).itemsize * n for dtype, n in columns.layout.values())
            if size != source.tell() + count * width + 8:
                return None
            columns.count = 0
            columns.extend(count)
            digest = xxhash.xxh3_64(text)
            for name in columns.layout if count else ():
                view = columns[name].view(np.uint8).data.cast("B")
                source.readinto(view)
                digest.update(view)
            if source.read(8) == digest.digest():
                numbers = (int(header["fetch"]), int(header["anchor"]))
                return Mark(count, *numbers, str(header["history"]), int(header.get("links", -1)))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
