"""What travels between the coordinator and a worker: jobs one way, reports the other, in framed batches."""

from __future__ import annotations

import os
import pickle
import queue
import struct
import threading
from array import array
from dataclasses import dataclass, field
from typing import Any

from bowerbird.crawl.settings import Settings
from bowerbird.model.outcome import Outcome

_HEADER = struct.Struct("<I")
ROBOTS_JOB = 1


@dataclass(slots=True)
class Job:
    """One URL to fetch."""

    token: int
    url: str
    etag: str = ""
    last_modified: str = ""
    flags: int = 0


@dataclass(slots=True)
class Links:
    """Links of a page, distinct, as one block. URLs and anchors are spelt out only where they are news."""

    hashes: bytes = b""  # uint64, one a link
    named: bytes = b""  # uint32 places of the links whose URLs follow
    urls: bytes = b""  # of those, joined by newlines
    marks: bytes = b""  # uint16 fingerprint of a new anchor, 0 = nothing new
    anchors: bytes = b""  # texts of the links with a mark, joined by newlines
    kinds: bytes = b""  # uint8 UrlKind; empty = all pages
    modified: bytes = b""  # float64 seconds, 0 = unknown; empty = none known
    count: int = 0

    def named_hashes(self) -> list[int]:
        """Of the links whose URLs are spelt out."""
        hashes, named = array("Q", self.hashes), array("I", self.named)
        return [hashes[place] for place in named]


@dataclass(slots=True)
class Place:
    """Where the archive keeps the answer."""

    file: str
    offset: int
    length: int
    end: int  # size of the file once this answer is in it


@dataclass(slots=True)
class Report:
    """What became of a job, with everything that was read from the page."""

    token: int
    url: str
    outcome: Outcome
    fetched_at: float
    elapsed_s: float = 0.0
    status: int = 0
    wire_bytes: int = 0
    error: str = ""
    retry_after_s: float | None = None
    location: str | None = None  # canonical redirect target, None when it cannot be crawled
    etag: str = ""
    last_modified: str = ""
    media: str = ""
    title: str = ""
    description: str = ""
    text: str = ""
    language: str = ""
    canonical: str | None = None
    content_hash: int = 0
    sketch: bytes | None = None
    noindex: bool = False
    period_s: float = 0.0  # between updates, as a feed or sitemap says; 0 = it does not
    websub: str = ""  # who would tell of updates, as a feed says
    links: Links = field(default_factory=Links)
    body: bytes = b""  # robots.txt only
    place: Place | None = None


@dataclass(slots=True)
class Failure:
    """A worker cannot go on: the disk is full, for example."""

    message: str
    disk_full: bool = False


# These travel to a process in which the worker's own module has the name __main__: they must not live there.


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """All a worker needs to know; sent once at its start."""

    number: int
    root: str
    prefix: str
    settings: Settings
    scope_seeds: tuple[str, ...]
    hash_seed: int


@dataclass(frozen=True, slots=True)
class Widen:
    """More seeds: the scope grows."""

    seeds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Untell:
    """The coordinator did not take these URLs: name them again when they are met again."""

    hashes: tuple[int, ...]


def make_frame(message: Any) -> bytes:
    """A message as it travels: its length, then itself."""
    data = pickle.dumps(message, protocol=5)
    return _HEADER.pack(len(data)) + data


class FrameWriter:
    """Sends messages from a thread of its own: the worker goes on while the coordinator is busy.

    Only a few messages may wait; then the sender waits too, and that is the backpressure.
    """

    def __init__(self, fd: int, waiting: int = 6) -> None:
        self.fd = fd
        self._queue: queue.Queue[bytes | None] = queue.Queue(waiting)
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._thread.start()

    def send(self, message: Any) -> None:
        """Put a message in line."""
        self._queue.put(make_frame(message))

    def close(self) -> None:
        """Send what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self.fd, view) :]
            except BrokenPipeError:
                os._exit(0)  # the coordinator is gone, and with it all purpose


class FrameReader:
    """Messages from a pipe that need not have arrived whole."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False
        self._buffer = bytearray()

    def read_available(self) -> list[Any]:
        """All complete messages after one read; sets `closed` at end of file."""
        try:
            data = os.read(self.fd, 1 << 20)
        except BlockingIOError:
            return []
        if not data:
            self.closed = True
            return []
        self._buffer += data
        out: list[Any] = []
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, start)
            if len(self._buffer) - start - _HEADER.size < size:
                break
            start += _HEADER.size
            out.append(pickle.loads(memoryview(self._buffer)[start : start + size]))
            start += size
        if start:
            del self._buffer[:start]
        return out
