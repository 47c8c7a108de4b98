"""The WARC archive: every exchange with a host, as it was, in files that any web-archive tool reads.

Each worker writes its own files. A record is one gzip member; an exchange is three records in a row
(response, request, metadata), or a `revisit` in place of the response where the host said 304. An exchange
reaches the file in one write, or not at all; `sync` makes what was written survive a power cut.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from http.client import responses
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from isal import isal_zlib

from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import BowerbirdError, DiskFullError, FolderError

ARCHIVE_SUFFIX = ".warc.gz"
PROFILE_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

_GZIP_WINDOW = 31  # 15 bits, with a gzip header and trailer
_RENAMED = "X-Archive-Orig-"
_HOP_LENGTHS = (b"content-length", b"transfer-encoding")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32_PAIRS = [first + second for first in _BASE32 for second in _BASE32]
_VARIANT = "89ab"
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """Where an exchange lies: file name within the archive folder, first byte, and length of all its records.

    The response (or revisit) record begins at `offset`; `offset + length` is the end of the exchange, and so
    the end to acknowledge for `truncate_archive`.
    """

    file: str
    offset: int
    length: int


class ArchiveWriter:
    """Appends exchanges to WARC files of a folder, one open file at a time. One writer a process.

    Writes are not buffered: what is written is with the operating system.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        *,
        software: str,
        user_agent: str,
        max_file_bytes: int = 1 << 30,
        gzip_level: int = 2,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.prefix = prefix
        self.max_file_bytes = max_file_bytes
        self._gzip_level = gzip_level
        self._clock = clock or WallClock()
        self._about = {
            "software": software,
            "http-header-user-agent": user_agent,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "robots": "classic",
        }
        self._serial = 0
        self._descriptor = -1
        self._file = ""
        self._end = 0

    @property
    def end(self) -> tuple[str, int]:
        """The open file's name and length; ("", 0) where nothing has been written yet."""
        return self._file, self._end

    def write_exchange(
        self,
        *,
        url: str,
        fetched_at: float,
        remote_ip: str,
        request_block: bytes,
        header_block: bytes,
        raw_body: bytes,
        metadata: Mapping[str, str],
        truncated: str = "",
    ) -> ArchivePlace:
        """Append a response with its request and metadata.

        `raw_body` is as on the wire but for chunks; the stored header block is put right accordingly.
        `truncated` says why a body is not whole (`length`, `time`, `disconnect`).
        """
        header_block = readable_header_block(header_block, len(raw_body))
        more = f"WARC-Payload-Digest: {_digest(raw_body)}\r\n"
        if truncated:
            more += f"WARC-Truncated: {_one_line(truncated)}\r\n"
        block = header_block + raw_body
        return self._write(url, fetched_at, remote_ip, request_block, metadata, "response", block, more)

    def write_revisit(
        self,
        *,
        url: str,
        fetched_at: float,
        remote_ip: str,
        request_block: bytes,
        header_block: bytes,
        metadata: Mapping[str, str],
        refers_to_at: float | None = None,
    ) -> ArchivePlace:
        """Append a 304 answer. `refers_to_at` is when the version that is still valid was fetched."""
        more = f"WARC-Profile: {PROFILE_NOT_MODIFIED}\r\n"
        if refers_to_at is not None:
            more += f"WARC-Refers-To-Target-URI: {_one_line(url)}\r\nWARC-Refers-To-Date: {warc_date(refers_to_at)}\r\n"
        block = readable_header_block(header_block, None)
        return self._write(url, fetched_at, remote_ip, request_block, metadata, "revisit", block, more)

    def sync(self) -> None:
        """Return when everything written so far is on the disk."""
        if self._descriptor < 0:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise_failure(self.folder / self._file, error)

    def rotate(self) -> None:
        """Finish the open file; the next exchange opens another."""
        if self._descriptor >= 0:
            self.sync()
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Finish the open file."""
        self.rotate()

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ArchiveWriter({str(self.folder)!r}, {self.prefix!r}, {self._file or 'no file'} at {self._end})"

    def _write(
        self,
        url: str,
        fetched_at: float,
        remote_ip: str,
        request_block: bytes,
        metadata: Mapping[str, str],
        kind: str,
        block: bytes,
        more: str,
    ) -> ArchivePlace:
        ids = os.urandom(48)
        record_id = _record_id(ids[:16])
        about = f"WARC-Target-URI: {_one_line(url)}\r\nWARC-Date: {warc_date(fetched_at)}\r\n"
        if remote_ip:
            about += f"WARC-IP-Address: {_one_line(remote_ip)}\r\n"
        concurrent = f"{about}WARC-Concurrent-To: {record_id}\r\n"
        level = self._gzip_level
        data = b"".join(
            (
                _member(kind, record_id, about + more, "application/http; msgtype=response", block, level),
                _member(
                    "request",
                    _record_id(ids[16:32]),
                    concurrent,
                    "application/http; msgtype=request",
                    request_block,
                    level,
                ),
                _member(
                    "metadata",
                    _record_id(ids[32:]),
                    concurrent,
                    "application/warc-fields",
                    _warc_fields(metadata),
                    level,
                ),
            )
        )
        if self._descriptor >= 0 and self._end + len(data) > self.max_file_bytes:
            self.rotate()
        if self._descriptor < 0:
            self._open()
        place = ArchivePlace(self._file, self._end, len(data))
        self._append(data)
        return place

    def _open(self) -> None:
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(self._clock.now()))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while self._descriptor < 0:
                name = f"{self.prefix}-{stamp}-{self._serial:05d}{ARCHIVE_SUFFIX}"
                self._serial += 1
                try:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
                    self._descriptor = os.open(self.folder / name, flags, 0o644)
                except FileExistsError:
                    continue
        except OSError as error:
            raise_failure(self.folder, error)
        self._file, self._end = name, 0
        about = f"WARC-Filename: {name}\r\nWARC-Date: {warc_date(self._clock.now())}\r\n"
        block = _warc_fields(self._about)
        kind = "application/warc-fields"
        warcinfo = _member("warcinfo", _record_id(os.urandom(16)), about, kind, block, self._gzip_level)
        try:
            self._append(warcinfo)
            sync_folder(self.folder)  # now: whoever syncs the file later need not know that it is new
        except (BowerbirdError, OSError) as error:
            os.close(self._descriptor)
            self._descriptor = -1
            (self.folder / name).unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise_failure(self.folder, error)
            raise

    def _append(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            # Half a record would hide everything after it.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise_failure(self.folder / self._file, error)
        self._end += len(data)


def readable_header_block(block: bytes, body_bytes: int | None) -> bytes:
    """A response's header block that is true of the body stored with it.

    The body has no chunks any more, so Transfer-Encoding is renamed and Content-Length is the body's; HTTP/2
    and later get the status line of HTTP/1.1; lines end in CRLF. With `body_bytes` None there is no body and
    the lengths stay.

    >>> readable_header_block(b"HTTP/2 200\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n", 5)
    b'HTTP/1.1 200 OK\\r\\nX-Archive-Orig-Transfer-Encoding: chunked\\r\\nContent-Length: 5\\r\\n\\r\\n'
    """
    status, *lines = block.strip(b"\r\n").split(b"\n")
    kept = [_status_line(status.strip())]
    has_length = False
    for raw_line in lines:
        line = raw_line.rstrip(b"\r")
        if not line:
            continue
        name, _, value = line.partition(b":")
        if body_bytes is not None and name.strip().lower() in _HOP_LENGTHS:
            if name.strip().lower() == b"content-length" and value.strip() == b"%d" % body_bytes:
                if has_length:
                    continue
                has_length = True
            else:
                line = _RENAMED.encode() + line
        kept.append(line)
    if body_bytes is not None and not has_length:
        kept.append(b"Content-Length: %d" % body_bytes)
    kept.append(b"\r\n")
    return b"\r\n".join(kept)


def warc_date(at_s: float) -> str:
    """A WARC-Date, to the microsecond.

    >>> warc_date(1.25)
    '1970-01-01T00:00:01.250000Z'
    """
    micros = round(at_s * 1_000_000)
    seconds, micros = divmod(micros, 1_000_000)
    return f"{_second_text(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _status_line(line: bytes) -> bytes:
    version, _, rest = line.partition(b" ")
    if version.startswith(b"HTTP/1."):
        return line
    if not version.startswith(b"HTTP/"):
        return b"HTTP/1.1 200 OK"  # no status line: HTTP/0.9
    code, _, reason = rest.strip().partition(b" ")
    if not reason and code.isdigit():
        reason = responses.get(int(code), "").encode()
    return b"HTTP/1.1 %s %s" % (code, reason)


def _member(kind: str, record_id: str, about: str, content_type: str, block: bytes, level: int) -> bytes:
    # a response has a payload digest; a digest of the block would hash the same body again
    digest = "" if kind == "response" else f"WARC-Block-Digest: {_digest(block)}\r\n"
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {record_id}\r\n{about}{digest}"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    ).encode("utf-8", "replace")
    compressed: bytes = isal_zlib.compress(b"".join((head, block, b"\r\n\r\n")), level, _GZIP_WINDOW)
    return compressed


def _digest(data: bytes) -> str:
    """SHA-1 in base 32, as web archives write it; twenty bytes are sixteen pairs of letters."""
    number = int.from_bytes(sha1(data, usedforsecurity=False).digest(), "big")
    return "sha1:" + "".join([_BASE32_PAIRS[number >> shift & 0x3FF] for shift in range(150, -1, -10)])


def _record_id(random: bytes) -> str:
    """A random UUID (version 4)."""
    text = random.hex()
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANT[random[8] & 3]}{text[17:20]}-{text[20:]}>"


def _warc_fields(fields: Mapping[str, str]) -> bytes:
    lines = (f"{_one_line(name)}: {_one_line(value)}\r\n" for name, value in fields.items())
    return "".join(lines).encode("utf-8", "replace")


def _one_line(text: str) -> str:
    return text if text.isprintable() else " ".join(text.split())


def sync_file(path: Path) -> None:
    """Return when what was written to a file is on the disk, whoever wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def raise_failure(path: Path, error: OSError) -> NoReturn:
    """What the operating system refused, with what to do about it."""
    if error.errno in _NO_SPACE:
        raise DiskFullError(f"archive {path}: the disk is full; free some space and resume") from error
    raise FolderError(f"archive {path}: {error.strerror or error}; check the disk and its permissions") from error
