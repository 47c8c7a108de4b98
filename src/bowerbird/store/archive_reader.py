"""Reading the archive back: one exchange by its place, or all of them. Damage is counted and skipped.

A gzip member that cannot be read, or a record that is cut short or fails its digest, costs that record only:
reading goes on at the next member.
"""

from __future__ import annotations

import mmap
from base64 import b16encode, b32encode, b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path

from isal import isal_zlib

from bowerbird.model.errors import ArchiveError
from bowerbird.store.archive import ARCHIVE_SUFFIX, ArchivePlace

MAX_MEMBER_BYTES = 512 << 20

_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_WINDOW = 31
_CHUNK_BYTES = 64 << 10
_MAX_HEAD_BYTES = 64 << 10
_MAX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response as archived. A 304 (`is_revisit`) has no body."""

    url: str
    fetched_at: float
    status: int
    header_block: bytes
    raw_body: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)
    is_revisit: bool = False

    def header(self, name: str) -> str:
        """The first header of that name, or an empty string."""
        wanted = name.lower().encode()
        for line in self.header_block.split(b"\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == wanted:
                return value.strip().decode("latin-1")
        return ""


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """An exchange and where its response record lies (`length` is of that record alone, unlike a place's)."""

    exchange: Exchange
    file: str
    offset: int
    length: int
    payload_digest: str


@dataclass(frozen=True, slots=True)
class _RawRecord:
    headers: dict[str, str]
    block: bytes
    offset: int
    length: int

    @property
    def kind(self) -> str:
        return self.headers.get("warc-type", "").lower()


def read_exchange(folder: Path, place: ArchivePlace, *, url: str | None = None) -> Exchange:
    """The exchange at a place; ArchiveError where it is not there whole, or is of another URL than `url`."""
    path = folder / place.file
    try:
        with path.open("rb") as stream:
            stream.seek(place.offset)
            data = stream.read(max(0, place.length))
    except (OSError, ValueError) as error:
        raise _mismatch(path, place, f"cannot be read ({error})") from error
    damage: Counter[str] = Counter()
    record = next(_answers(data, place.file, damage), None)
    if record is None or damage or len(data) != place.length or record.offset:
        raise _mismatch(path, place, "has no whole exchange there")
    if url is not None and record.exchange.url != url:
        raise _mismatch(path, place, f"has {record.exchange.url}, not {url}")
    return record.exchange


def iterate_exchanges(folder: Path, damage: Counter[str] | None = None) -> Iterator[Exchange]:
    """Every exchange of every file, in order. `damage` counts, by file name, what had to be skipped."""
    for record in iterate_records(folder, damage):
        yield record.exchange


def iterate_records(
    folder: Path, damage: Counter[str] | None = None, *, ends: Mapping[str, int] | None = None
) -> Iterator[ArchivedRecord]:
    """As `iterate_exchanges`, with where each response lies; with `ends`, of these files only, and up to there."""
    if damage is None:
        damage = Counter()
    for path in sorted(folder.glob("*.warc*")) if folder.is_dir() else ():
        if path.name.endswith((ARCHIVE_SUFFIX, ".warc")) and (ends is None or path.name in ends):
            yield from iterate_file(path, damage, end=None if ends is None else ends[path.name])


def iterate_file(path: Path, damage: Counter[str], *, end: int | None = None) -> Iterator[ArchivedRecord]:
    """The responses and revisits of one WARC file, compressed or not, whole or damaged; up to `end`, if given."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            size = size if end is None else min(size, end)
            if not size:
                return
            with mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as data:
                yield from _answers(data, path.name, damage)
    except OSError:
        damage[path.name] += 1


def _answers(data: bytes | mmap.mmap, file: str, damage: Counter[str]) -> Iterator[ArchivedRecord]:
    """Each response or revisit, once the records that belong to it have been seen."""
    answer: _RawRecord | None = None
    metadata: dict[str, str] = {}
    for record in _raw_records(data, file, damage):
        if record.kind in {"response", "revisit"}:
            if answer is not None:
                yield _finish(answer, metadata, file)
            is_http = record.headers.get("content-type", "").lower().startswith("application/http")
            answer, metadata = (record if is_http else None), {}
        elif answer is not None and _is_metadata_of(answer, record):
            metadata = _parse_fields(record.block)
    if answer is not None:
        yield _finish(answer, metadata, file)


def _is_metadata_of(answer: _RawRecord, record: _RawRecord) -> bool:
    wanted = answer.headers.get("warc-record-id", "")
    return record.kind == "metadata" and record.headers.get("warc-concurrent-to") == wanted


def _finish(record: _RawRecord, metadata: dict[str, str], file: str) -> ArchivedRecord:
    header_block, raw_body = _split_block(record.block)
    status = header_block[:64].split(None, 2)[1:2]
    exchange = Exchange(
        url=record.headers.get("warc-target-uri", "").strip("<>"),
        fetched_at=_parse_date(record.headers.get("warc-date", "")),
        status=int(status[0]) if status and status[0].isdigit() else 0,
        header_block=header_block,
        raw_body=raw_body,
        metadata=metadata,
        is_revisit=record.kind == "revisit",
    )
    digest = record.headers.get("warc-payload-digest", "")
    return ArchivedRecord(exchange, file, record.offset, record.length, digest)


def _raw_records(data: bytes | mmap.mmap, file: str, damage: Counter[str]) -> Iterator[_RawRecord]:
    if data[:3] != _GZIP_MAGIC:
        yield from _split_records(data, None, file, damage)
        return
    for offset, length, content in _members(data, file, damage):
        yield from _split_records(content, (offset, length), file, damage)


def _members(data: bytes | mmap.mmap, file: str, damage: Counter[str]) -> Iterator[tuple[int, int, bytes]]:
    """Each gzip member: its place, its length and what it holds. After damage, the next that is a record."""
    position = 0
    lost = False
    while position < len(data):
        found = _inflate(data, position)
        if found is None or (lost and not found[0].startswith(b"WARC/")):
            if not lost:
                damage[file] += 1
            lost = True
            position = data.find(_GZIP_MAGIC, position + 1)
            if position < 0:
                return
            continue
        lost = False
        content, length = found
        yield position, length, content
        position += length


def _inflate(data: bytes | mmap.mmap, start: int) -> tuple[bytes, int] | None:
    """What the gzip member at `start` holds and how long it is; None where it is not whole."""
    inflater = isal_zlib.decompressobj(_GZIP_WINDOW)
    parts: list[bytes] = []
    position, size = start, 0
    try:
        while not inflater.eof:
            chunk = data[position : position + _CHUNK_BYTES]
            if not chunk:
                return None
            position += len(chunk)
            part = inflater.decompress(chunk, MAX_MEMBER_BYTES - size + 1)
            size += len(part)
            if size > MAX_MEMBER_BYTES:
                return None
            parts.append(part)
    except (isal_zlib.error, ValueError):  # type: ignore[misc]  # isal has no types
        return None
    return b"".join(parts), position - len(inflater.unused_data) - start


def _split_records(
    content: bytes | mmap.mmap, member: tuple[int, int] | None, file: str, damage: Counter[str]
) -> Iterator[_RawRecord]:
    """The records of a member (one, as a rule), or of a whole file that is not compressed."""
    position = 0
    while 0 <= position < len(content):
        if content[position : position + 1] in b"\r\n":
            position += 1
            continue
        span = _record_span(content, position)
        if span is None:
            damage[file] += 1
            position = content.find(b"\nWARC/", position) + 1 or -1
            continue
        headers, start, end = span
        block = content[start:end]
        # Writers disagree on what a revisit's digest is of, so it proves nothing.
        is_revisit = headers.get("warc-type", "").lower() == "revisit"
        if is_revisit or _digest_fits(headers.get("warc-block-digest", ""), block):
            offset, length = member if member is not None else (position, end + 4 - position)
            yield _RawRecord(headers, block, offset, length)
        else:
            damage[file] += 1
        position = end


def _record_span(content: bytes | mmap.mmap, position: int) -> tuple[dict[str, str], int, int] | None:
    """The headers of the record that begins here and where its block lies; None where it is not whole."""
    head_end = content.find(b"\r\n\r\n", position, position + _MAX_HEAD_BYTES)
    if head_end < 0 or content[position : position + 5] != b"WARC/":
        return None
    headers = _parse_headers(content[position:head_end])
    length = headers.get("content-length", "")
    start = head_end + 4
    if not (length.isascii() and length.isdigit() and len(length) < _MAX_DIGITS):
        return None
    end = start + int(length)
    return (headers, start, end) if end <= len(content) else None


def _parse_headers(head: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return headers


def _parse_fields(block: bytes) -> dict[str, str]:
    lines = block.decode("utf-8", "replace").split("\r\n")
    return {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}


def _digest_fits(digest: str, block: bytes) -> bool:
    """False only where it is a SHA-1 of other bytes. Base 32 is usual; 16 and 64 are allowed."""
    algorithm, _, value = digest.partition(":")
    if algorithm.lower() != "sha1":
        return True
    actual = sha1(block, usedforsecurity=False).digest()
    if value.upper().encode() in {b32encode(actual), b16encode(actual)}:
        return True
    return value.encode() in {b64encode(actual), urlsafe_b64encode(actual)}


def _split_block(block: bytes) -> tuple[bytes, bytes]:
    end = block.find(b"\r\n\r\n")
    if end >= 0:
        return block[: end + 4], block[end + 4 :]
    end = block.find(b"\n\n")
    return (block[: end + 2], block[end + 2 :]) if end >= 0 else (block, b"")


def _parse_date(text: str) -> float:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _mismatch(path: Path, place: ArchivePlace, what: str) -> ArchiveError:
    return ArchiveError(
        f"archive file {path}, bytes {place.offset} to {place.offset + place.length}: {what}; "
        "fetch the page again, or restore the file from a copy"
    )
