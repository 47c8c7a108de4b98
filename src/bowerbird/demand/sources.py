"""Where a log is read from: a file or standard input, plain, gzip or Zstandard; a stream of bytes in any case."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, cast

import zstandard
from isal import igzip, isal_zlib

from bowerbird.model.errors import InputFileError

BLOCK_BYTES = 8 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BROKEN = (EOFError, zlib.error, cast(type[Exception], isal_zlib.error), zstandard.ZstdError)


class Source:
    """A log to read, more than once if need be. Positions count bytes after decompression."""

    def __init__(self, raw: IO[bytes], name: str) -> None:
        self.raw = raw
        self.name = name
        self.size = raw.seek(0, 2)  # of the file as it lies there
        self._stream: BinaryIO
        self.kind = ""
        self.position = 0
        self.imported_bytes = 0  # so much of it is known to be in the log
        self.rewind()

    @classmethod
    def open(cls, path: str) -> Source:
        """A file, or standard input for `-`."""
        if path == "-":
            return cls(_spool(sys.stdin.buffer), "standard input")
        try:
            if Path(path).is_dir():
                raise InputFileError(f"{path}: a folder. Name a file of queries, or - for standard input.")
            raw = Path(path).open("rb")  # noqa: SIM115  closed by close()
            if not raw.seekable():
                with raw:
                    return cls(_spool(raw), path)
        except OSError as error:
            raise InputFileError(
                f"{path}: cannot be read ({error.strerror}). Check its name and permissions."
            ) from error
        return cls(raw, path)

    def rewind(self) -> None:
        """To the beginning."""
        self.raw.seek(0)
        magic = self.raw.read(4)
        self.raw.seek(0)
        self.position = 0
        if magic[:2] == _GZIP:
            self.kind = "gzip"
            stream = igzip.IGzipFile(fileobj=self.raw, mode="rb")  # type: ignore[no-untyped-call]  # isal has no types
            self._stream = cast(BinaryIO, stream)
        elif magic == _ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(self.raw, read_across_frames=True, closefd=False)
            self.kind, self._stream = "zstd", cast(BinaryIO, reader)
        else:
            self.kind, self._stream = "plain", cast(BinaryIO, self.raw)

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0:
            try:
                part = self._stream.read(size)
            except _BROKEN as error:
                raise self._damaged(error) from error
            except OSError as error:
                if self.kind == "plain":
                    raise InputFileError(f"{self.name}: cannot be read ({error.strerror or error}).") from error
                raise self._damaged(error) from error
            if not part:
                break
            parts.append(part)
            size -= len(part)
            self.position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def move_to(self, position: int) -> None:
        """To a place known to exist."""
        self.rewind()
        if self.kind == "plain":
            self.raw.seek(position)
            self.position = position
            return
        while self.position < position and self.read(min(BLOCK_BYTES, position - self.position)):
            pass

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Whole lines from here on, in blocks; the last line may lack its end."""
        rest = b""
        while part := self.read(size):
            end = part.rfind(b"\n") + 1
            if not end:
                rest += part
                if len(rest) > 2 * size:
                    raise InputFileError(f"{self.name}: no line ends in {len(rest):,} bytes. It is not a log.")
                continue
            yield rest + part[:end]
            rest = part[end:]
        if rest:
            yield rest

    @property
    def share_read(self) -> float:
        """How much of the file was read, 0…1."""
        return min(1.0, self.raw.tell() / self.size) if self.size else 1.0

    def close(self) -> None:
        """Let go of the file."""
        if self._stream is not self.raw:
            self._stream.close()
        self.raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _damaged(self, error: Exception) -> InputFileError:
        kept = (
            f"The first {self.imported_bytes:,} bytes are imported; with a whole copy of the file the import goes on "
            "from there."
            if self.imported_bytes
            else "Nothing of it is imported. Get a whole copy of the file."
        )
        return InputFileError(f"{self.name}: damaged {self.kind} data after {self.position:,} bytes ({error}). {kept}")


def _spool(stream: IO[bytes]) -> IO[bytes]:
    """Something that can be read twice: a log may turn out to have been imported before."""
    if stream.seekable():
        return stream
    spooled = tempfile.TemporaryFile()  # noqa: SIM115  closed by Source.close
    try:
        shutil.copyfileobj(stream, spooled, 1 << 20)
    except OSError as error:
        spooled.close()
        raise InputFileError(f"standard input: cannot be kept while it is read ({error.strerror}).") from error
    return spooled
