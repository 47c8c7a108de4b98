"""Undo Content-Encoding within a fixed amount of memory: a body is hostile until it is decoded."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import brotli
import zstandard

ACCEPT_ENCODING = "gzip, br, zstd, deflate"

_CHUNK_BYTES = 64 << 10
_MAX_CODINGS = 4
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_MEMBERS = 4096
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_RUN_BLOCK = 1
# RFC 9659 bounds the window of zstd over HTTP, so a frame cannot demand more memory than this
_ZSTD_WINDOW_BYTES = 8 << 20
# servers put these into Content-Encoding although they name no compression
_NO_CODING = frozenset({"", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body without its content codings.

    `truncated`: the compressed stream ended too soon; `body` is the part that decoded.
    `fault`: why nothing can be used; empty when the body is good.
    """

    body: bytes
    truncated: bool = False
    fault: str = ""


class _Overflow(Exception):  # noqa: N818 - a signal within this module, not an error of the tree
    """The output passed the limit; `chunks` are what came before."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks


def decode_body(raw: bytes, content_encoding: str, limit_bytes: int, *, keep_partial: bool = False) -> Decoded:
    """Decode `raw` as its Content-Encoding header says, holding at most `limit_bytes` and a chunk of output.

    A body that is larger is a fault, or with `keep_partial` is cut at the limit.

    >>> decode_body(zlib.compress(b"bower"), "deflate", 100)
    Decoded(body=b'bower', truncated=False, fault='')
    >>> decode_body(zlib.compress(bytes(1000)), "deflate", 100).fault
    'body is larger than 100 bytes when decoded'
    """
    if not content_encoding:
        return _within(raw, limit_bytes, keep_partial)
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    codings = [coding for coding in codings if coding not in _NO_CODING]
    if not codings or not raw:
        return _within(raw, limit_bytes, keep_partial)
    if len(codings) > _MAX_CODINGS:
        return Decoded(b"", fault=f"{len(codings)} content codings; at most {_MAX_CODINGS} are undone")
    body, truncated = raw, False
    for coding in reversed(codings):
        decode = _DECODERS.get(coding)
        if decode is None:
            return Decoded(b"", fault=f"unknown content coding {coding!r}")
        try:
            body, complete = decode(body, limit_bytes)
        except _Overflow as overflow:
            if keep_partial:
                body, truncated = b"".join(overflow.chunks)[:limit_bytes], True
                continue
            return Decoded(b"", fault=f"body is larger than {limit_bytes} bytes when decoded")
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            return Decoded(b"", fault=f"damaged {coding} body: {error}")
        if not complete and not body:
            return Decoded(b"", fault=f"damaged {coding} body: it ended before any content")
        truncated = truncated or not complete
    return Decoded(body, truncated)


def _within(raw: bytes, limit_bytes: int, keep_partial: bool) -> Decoded:
    if len(raw) > limit_bytes:
        if keep_partial:
            return Decoded(raw[:limit_bytes], truncated=True)
        return Decoded(b"", fault=f"body is larger than {limit_bytes} bytes when decoded")
    return Decoded(raw)


def _inflate(raw: memoryview, wbits: int, limit_bytes: int) -> tuple[bytes, bool, int]:
    """One zlib stream: its output, whether it was complete, and how much of `raw` it took."""
    stream = zlib.decompressobj(wbits)
    chunks: list[bytes] = []
    size = taken = 0
    while taken < len(raw) and not stream.eof:
        piece = raw[taken : taken + _CHUNK_BYTES]
        chunk = stream.decompress(piece, limit_bytes + 1 - size)
        taken += len(piece)
        size += len(chunk)
        chunks.append(chunk)
        if size > limit_bytes:
            raise _Overflow(chunks)
    return b"".join(chunks), stream.eof, taken - len(stream.unused_data)


def _decode_gzip(raw: bytes, limit_bytes: int) -> tuple[bytes, bool]:
    rest = memoryview(raw)
    members: list[bytes] = []
    size = 0
    complete = True
    # whatever follows the last member (padding, as a rule) is ignored
    while not members or (complete and rest[:2] == _GZIP_MAGIC):
        if len(members) == _MAX_MEMBERS:
            raise zlib.error(f"more than {_MAX_MEMBERS} gzip members")
        try:
            body, complete, taken = _inflate(rest, 16 + zlib.MAX_WBITS, limit_bytes - size)
        except _Overflow as overflow:
            raise _Overflow(members + overflow.chunks) from None
        members.append(body)
        size += len(body)
        rest = rest[taken:]
    return b"".join(members), complete


def _decode_deflate(raw: bytes, limit_bytes: int) -> tuple[bytes, bool]:
    # the standard says zlib, much software sends a bare deflate stream
    wrapped = len(raw) >= 2 and raw[0] & 0x0F == 8 and int.from_bytes(raw[:2], "big") % 31 == 0
    body, complete, _ = _inflate(memoryview(raw), zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS, limit_bytes)
    return body, complete


def _decode_brotli(raw: bytes, limit_bytes: int) -> tuple[bytes, bool]:
    stream = brotli.Decompressor()
    chunks: list[bytes] = []
    size = 0
    data = raw
    while True:
        room = min(max(limit_bytes + 1 - size, 1), _CHUNK_BYTES)
        chunk = stream.process(data, output_buffer_limit=room)
        data = b""
        if chunk:
            chunks.append(chunk)
            size += len(chunk)
            if size > limit_bytes:
                raise _Overflow(chunks)
        if stream.is_finished():
            return b"".join(chunks), True
        if not chunk and stream.can_accept_more_data():
            return b"".join(chunks), False


def _decode_zstd(raw: bytes, limit_bytes: int) -> tuple[bytes, bool]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    chunks: list[bytes] = []
    size = 0
    with decompressor.stream_reader(raw, read_across_frames=True) as reader:
        while chunk := reader.read(_CHUNK_BYTES):
            chunks.append(chunk)
            size += len(chunk)
            if size > limit_bytes:
                raise _Overflow(chunks)
    return b"".join(chunks), _ends_zstd_frame(raw)


def _ends_zstd_frame(raw: bytes) -> bool:
    """Does `raw` hold its last zstd frame to the end? The reader takes a cut frame for a finished one.

    Walks the block headers of RFC 8878 section 3.1.1.2 without decoding anything.
    """
    at = 0
    while at + 4 <= len(raw):
        if raw[at : at + 4] != _ZSTD_MAGIC:  # the reader let it pass, so it is a frame to skip
            at += 8 + int.from_bytes(raw[at + 4 : at + 8], "little")
            continue
        try:
            checksum_bytes = 4 if zstandard.get_frame_parameters(raw[at : at + 18]).has_checksum else 0
            at += zstandard.frame_header_size(raw[at : at + 18])
        except zstandard.ZstdError:
            return False
        last = False
        while not last:
            if at + 3 > len(raw):
                return False
            header = int.from_bytes(raw[at : at + 3], "little")
            last, kind, block_bytes = bool(header & 1), header >> 1 & 3, header >> 3
            at += 3 + (1 if kind == _ZSTD_RUN_BLOCK else block_bytes)
        at += checksum_bytes
    return at == len(raw)


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _decode_gzip,
    "x-gzip": _decode_gzip,
    "deflate": _decode_deflate,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}
