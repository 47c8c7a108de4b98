"""Digests of imported content, keyed with the secret of the database: none of them is a plain hash of a query."""

from __future__ import annotations

import hashlib
from typing import Any

DIGEST_BYTES = 16
#: of the digest at the end of one line: it is asked only whether a line agrees after all lines before it did
LINE_BYTES = 4


def new_hasher() -> Any:
    """A running hash of content; what is stored of it is sealed."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES)


class Sealer:
    """Makes the digests that are stored."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.blake2b(b"imports", key=secret, digest_size=32).digest()

    def seal(self, digest: bytes) -> bytes:
        """A digest of content as it is stored."""
        return hashlib.blake2b(digest, key=self._key, digest_size=DIGEST_BYTES).digest()

    def digest(self, content: bytes) -> bytes:
        """The stored digest of some bytes."""
        made = new_hasher()
        made.update(content)
        return self.seal(made.digest())

    def tracer(self, start: bytes) -> Any:
        """A running hash of the lines after a place that is known by its stored digest."""
        made = hashlib.blake2b(key=self._key, digest_size=LINE_BYTES)
        made.update(start)
        return made

    def trace(self, start: bytes, block: bytes) -> bytes:
        """The digests at the end of each line of a block."""
        tracer = self.tracer(start)
        update, digest, ends = tracer.update, tracer.digest, []
        for line in lines_of(block):
            update(line)
            ends.append(digest())
        return b"".join(ends)


def lines_of(block: bytes) -> list[bytes]:
    r"""Lines with their ends; only \n ends a line.

    >>> lines_of(b"a\r\n\nb")
    [b'a\r\n', b'\n', b'b']
    """
    *whole, rest = block.split(b"\n")
    lines = [line + b"\n" for line in whole]
    if rest:
        lines.append(rest)
    return lines
