"""The columns on disk as of one fetch: a shortcut at start, never the truth. A damaged one is ignored."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import xxhash

from bowerbird.store.columns import Columns

_MAGIC = b"BOWERCK2"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a checkpoint reaches: the last fetch, anchor and hint it has seen."""

    urls: int
    fetch: int
    anchor: int


def write_checkpoint(path: Path, columns: Columns, mark: Mark) -> None:
    """Write beside the old one, sync, then take its place."""
    header = orjson.dumps({"urls": mark.urls, "fetch": mark.fetch, "anchor": mark.anchor, "layout": columns.layout})
    partial = path.with_suffix(".partial")
    digest = xxhash.xxh3_64()
    with partial.open("wb") as out:
        out.write(_MAGIC + len(header).to_bytes(4, "little") + header)
        for name in columns.layout:
            data = np.ascontiguousarray(columns[name][: mark.urls]).view(np.uint8).data.cast("B")
            digest.update(data)
            out.write(data)
        out.write(digest.digest())
        out.flush()
        os.fsync(out.fileno())
    partial.replace(path)


def read_checkpoint(path: Path, columns: Columns) -> Mark | None:
    """Load into empty columns; None when there is none, or it is damaged or of another layout."""
    try:
        size = path.stat().st_size
        with path.open("rb") as source:
            if source.read(8) != _MAGIC:
                return None
            header = orjson.loads(source.read(int.from_bytes(source.read(4), "little")))
            if header["layout"] != {name: list(spec) for name, spec in columns.layout.items()}:
                return None
            count = int(header["urls"])
            width = sum(np.dtype(dtype).itemsize * n for dtype, n in columns.layout.values())
            if size != source.tell() + count * width + 8:
                return None
            columns.count = 0
            columns.extend(count)
            digest = xxhash.xxh3_64()
            for name in columns.layout:
                view = columns[name].view(np.uint8).data.cast("B") if count else memoryview(b"")
                if count and source.readinto(view) != len(view):
                    return None
                digest.update(view)
            if source.read(8) != digest.digest():
                columns.count = 0
                return None
    except (OSError, ValueError, KeyError, orjson.JSONDecodeError):
        return None
    return Mark(count, int(header["fetch"]), int(header["anchor"]))
