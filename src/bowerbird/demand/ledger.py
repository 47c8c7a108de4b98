"""What was imported already, by content: so that a file counts once, whatever its name and however often it is given.

A checkpoint is a position in the (decompressed) content and the digest of everything before it, written in the
transaction that counts those lines. An import begins after the furthest checkpoint that its file agrees with.
That one rule covers a file given twice, one that has grown since, and an import that was killed half-way. A trace,
the digests at the end of each line between two checkpoints, tells an older, shorter copy of an imported file: one
that agrees line by line to its very end. A file that agrees only in part is counted from the checkpoint on.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Any

from bowerbird.demand.digests import LINE_BYTES, Sealer, lines_of, new_hasher
from bowerbird.demand.sources import BLOCK_BYTES, Source
from bowerbird.model.errors import FolderError

HEAD_BYTES = 64


@dataclass(slots=True)
class Place:
    """Where an import begins, or has come to."""

    position: int = 0
    lines: int = 0
    hasher: Any = field(default_factory=new_hasher)
    number: int | None = None  # of the import that is gone on with
    done: bool = False  # nothing is new, though bytes may be left: an older copy of an imported file
    traces: list[tuple[int, bytes, bytes]] = field(default_factory=list)  # since the last checkpoint
    agreed: list[tuple[int, int]] = field(default_factory=list)  # checkpoints (import, position) that the file passed
    replaced: list[tuple[int, int]] = field(default_factory=list)  # those that the next checkpoint makes void

    def begin_again(self) -> Place:
        """The beginning, for a file that is to count though it was imported before."""
        return Place(replaced=self.agreed)

    def advance(self, block: bytes, sealer: Sealer) -> None:
        """Go on by a block, which is imported now."""
        start = sealer.seal(self.hasher.digest())
        self.traces.append((self.position, start, sealer.trace(start, block)))
        self.hasher.update(block)
        self.position += len(block)


def find_place(connection: sqlite3.Connection | None, source: Source, sealer: Sealer) -> Place:
    """Compare the beginning of a file with every import so far; leaves the source anywhere."""
    if connection is None:
        return Place()
    source.rewind()
    chains = _chains_like(connection, source.read(HEAD_BYTES), sealer)
    source.rewind()
    place, hasher, ended = Place(), new_hasher(), False
    agreed: list[tuple[int, int]] = []
    for position, number, digest, lines in sorted((p[0], n, *p[1:]) for n, points in chains.items() for p in points):
        if number not in chains:
            continue
        while source.position < position and (part := source.read(min(BLOCK_BYTES, position - source.position))):
            hasher.update(part)
        if source.position < position:
            ended = True
            break
        if sealer.seal(hasher.digest()) != digest:
            del chains[number]
            continue
        place = Place(position, lines, hasher.copy(), number)
        agreed.append((number, position))
    place.agreed = agreed
    if ended:
        _find_older_copy(connection, source, sealer, place)
    if place.number not in chains or ended:
        place.number = None  # from here on it is another file
    return place


def _chains_like(
    connection: sqlite3.Connection, head: bytes, sealer: Sealer
) -> dict[int, list[tuple[int, bytes, int]]]:
    """The checkpoints (position, digest, lines) of imports that began as this file does."""
    chains = {}
    for number, size, digest in connection.execute("SELECT id, head_bytes, head FROM imports").fetchall():
        if size <= len(head) and sealer.digest(head[:size]) == digest:
            chains[number] = connection.execute(
                "SELECT position, digest, lines FROM checkpoints WHERE import = ? ORDER BY position", (number,)
            ).fetchall()
    return chains


def _find_older_copy(connection: sqlite3.Connection, source: Source, sealer: Sealer, place: Place) -> None:
    """The file ended before a checkpoint: was each line of it, to the end, imported in this order after the place?"""
    start = sealer.seal(place.hasher.digest())
    for (ends,) in connection.execute(
        "SELECT ends FROM traces WHERE position = ? AND digest = ?", (place.position, start)
    ):
        lines = _count_agreeing(source, place.position, sealer.tracer(start), ends)
        if lines is not None:
            place.done = True
            place.lines += lines
            return


def _count_agreeing(source: Source, position: int, tracer: Any, ends: bytes) -> int | None:
    """How many lines the file has from there on, where all agree; the last one may lack its line end."""
    source.move_to(position)
    at = 0
    for block in source.blocks():
        for line in lines_of(block):
            expected = ends[at : at + LINE_BYTES]
            at += LINE_BYTES
            tracer.update(line)
            if tracer.digest() == expected:
                continue
            if line.endswith(b"\n"):
                return None
            tracer.update(b"\n")
            if tracer.digest() != expected:
                return None
    return at // LINE_BYTES


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written down of an import."""

    name: str
    format: str
    started_at: float
    head: bytes


def write_checkpoint(
    connection: sqlite3.Connection, sealer: Sealer, place: Place, before: int, entry: Entry, bad: int, *, complete: bool
) -> None:
    """Note, within the transaction that counts it, that everything up to the place is imported."""
    taken = FolderError(f"{entry.name}: another process is importing it now. Let that one end.")
    _forget_checkpoints(connection, place.replaced)
    place.replaced.clear()
    if place.number is None:
        head = entry.head[: place.position]
        cursor = connection.execute(
            "INSERT INTO imports (name, format, started_at, head_bytes, head, lines, bad, complete) "
            "VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
            (entry.name, entry.format, entry.started_at, len(head), sealer.digest(head)),
        )
        place.number = cursor.lastrowid
    else:
        (last,) = connection.execute(
            "SELECT coalesce(max(position), 0) FROM checkpoints WHERE import = ?", (place.number,)
        ).fetchone()
        if last != before:
            raise taken
    try:
        connection.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)",
            (place.number, place.position, sealer.seal(place.hasher.digest()), place.lines),
        )
    except sqlite3.IntegrityError as error:
        raise taken from error
    connection.executemany(
        "INSERT INTO traces (import, position, digest, ends) VALUES (?, ?, ?, ?)",
        [(place.number, *trace) for trace in place.traces],
    )
    place.traces.clear()
    connection.execute(
        "UPDATE imports SET lines = ?, bad = bad + ?, complete = ? WHERE id = ?",
        (place.lines, bad, complete, place.number),
    )


def _forget_checkpoints(connection: sqlite3.Connection, points: list[tuple[int, int]]) -> None:
    """As if they had not been reached; an import of which none is left is forgotten whole."""
    connection.executemany("DELETE FROM checkpoints WHERE import = ? AND position = ?", points)
    for number in {number for number, _ in points}:
        if connection.execute("SELECT 1 FROM checkpoints WHERE import = ?", (number,)).fetchone() is None:
            connection.execute("DELETE FROM traces WHERE import = ?", (number,))
            connection.execute("DELETE FROM imports WHERE id = ?", (number,))
