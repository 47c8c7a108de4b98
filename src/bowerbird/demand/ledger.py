"""What was imported already, by content: so that a file counts once, whatever its name and however often it is given.

A checkpoint is a position in the (decompressed) content and the digest of everything before it, written in the
transaction that counts those lines. An import begins after the furthest checkpoint that its file agrees with.
That one rule covers a file given twice, one that has grown since, and an import that was killed half-way. Digests
at doubling positions (marks) tell an older, shorter copy of an imported file, of which nothing is new.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from bowerbird.demand.sources import BLOCK_BYTES, Source
from bowerbird.model.errors import FolderError

HEAD_BYTES = 64


def new_hasher() -> Any:
    """A hash of content."""
    return hashlib.blake2b(digest_size=16)


@dataclass(slots=True)
class Place:
    """Where an import begins, or has come to."""

    position: int = 0
    lines: int = 0
    hasher: Any = field(default_factory=new_hasher)
    number: int | None = None  # of the import that is gone on with
    done: bool = False  # nothing is new, though bytes may be left: an older copy of an imported file
    marks: list[tuple[int, bytes]] = field(default_factory=list)  # passed since the last checkpoint

    def advance(self, block: bytes) -> None:
        """Go on by a block, which is imported now."""
        begin = 0
        mark = HEAD_BYTES
        while mark <= self.position:
            mark *= 2
        while mark <= self.position + len(block) - begin:
            end = begin + mark - self.position
            self.hasher.update(block[begin:end])
            self.marks.append((mark, self.hasher.digest()))
            self.position, begin, mark = mark, end, 2 * mark
        self.hasher.update(block[begin:] if begin else block)
        self.position += len(block) - begin


@dataclass(slots=True)
class _Chain:
    points: list[tuple[int, bytes, int | None]]  # position, digest, and lines where an import can go on
    agrees: bool = False  # with the file, as far as it was read


def find_place(connection: sqlite3.Connection | None, source: Source) -> Place:
    """Compare the beginning of a file with every import so far; leaves the source anywhere."""
    source.rewind()
    chains = _chains_like(connection, source.read(HEAD_BYTES))
    source.rewind()
    place, hasher, ended = Place(), new_hasher(), False
    for position, number, at in sorted(
        (p[0], n, at) for n, chain in chains.items() for at, p in enumerate(chain.points)
    ):
        chain = chains.get(number)
        if chain is None:
            continue
        while source.position < position and (part := source.read(min(BLOCK_BYTES, position - source.position))):
            hasher.update(part)
        if source.position < position:
            ended = True
            break
        _, digest, lines = chain.points[at]
        if hasher.digest() != digest:
            del chains[number]
            continue
        chain.agrees = True
        if lines is not None:
            place = Place(position, lines, hasher.copy(), number)
    if ended and any(chain.agrees and chain.points[-1][0] > source.position for chain in chains.values()):
        place.done = True
    elif place.number not in chains or ended:
        place.number = None  # from here on it is another file
    return place


def _chains_like(connection: sqlite3.Connection | None, head: bytes) -> dict[int, _Chain]:
    chains: dict[int, _Chain] = {}
    if connection is None:
        return chains
    for number, size, digest in connection.execute("SELECT id, head_bytes, head FROM imports").fetchall():
        if size <= len(head) and digest_of(head[:size]) == digest:
            points = connection.execute(
                "SELECT position, digest, lines FROM checkpoints WHERE import = :n "
                "UNION ALL SELECT position, digest, NULL FROM marks WHERE import = :n ORDER BY position",
                {"n": number},
            ).fetchall()
            chains[number] = _Chain(points)
    return chains


def digest_of(content: bytes) -> bytes:
    """The digest of some bytes."""
    made: bytes = hashlib.blake2b(content, digest_size=16).digest()
    return made


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written down of an import."""

    name: str
    format: str
    started_at: float
    head: bytes


def write_checkpoint(
    connection: sqlite3.Connection, place: Place, before: int, entry: Entry, bad: int, *, complete: bool
) -> None:
    """Note, within the transaction that counts it, that everything up to the place is imported."""
    taken = FolderError(f"{entry.name}: another process is importing it now. Let that one end.")
    if place.number is None:
        head = entry.head[: place.position]
        cursor = connection.execute(
            "INSERT INTO imports (name, format, started_at, head_bytes, head, lines, bad, complete) "
            "VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
            (entry.name, entry.format, entry.started_at, len(head), digest_of(head)),
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
            (place.number, place.position, place.hasher.digest(), place.lines),
        )
    except sqlite3.IntegrityError as error:
        raise taken from error
    marks = [(place.number, *mark) for mark in place.marks]
    connection.executemany("INSERT OR IGNORE INTO marks VALUES (?, ?, ?)", marks)
    place.marks.clear()
    connection.execute(
        "UPDATE imports SET lines = ?, bad = bad + ?, complete = ? WHERE id = ?",
        (place.lines, bad, complete, place.number),
    )
