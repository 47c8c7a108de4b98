"""What one fetch may cost: time, bytes, connections, content types."""

from __future__ import annotations

from dataclasses import dataclass

INDEXABLE_TYPES = (
    "text/html",
    "application/xhtml+xml",
    "text/plain",
    "application/xml",
    "text/xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
    "application/gzip",
    "application/x-gzip",
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The bounds of every fetch. Times are real seconds, counted from the moment a transfer starts."""

    connect_s: float = 10.0  # DNS, TCP and TLS
    first_byte_s: float = 20.0  # until the first byte of the response
    total_s: float = 60.0
    max_body_bytes: int = 10 << 20  # as received, before any decompression
    max_decoded_bytes: int = 20 << 20
    max_header_bytes: int = 64 << 10  # all header blocks of one response together
    max_connections: int = 256
    content_types: tuple[str, ...] = INDEXABLE_TYPES

    def accepts_type(self, content_type: str) -> bool:
        """May a page with this Content-Type be kept? A missing one is given the benefit of the doubt.

        >>> FetchLimits().accepts_type("Text/HTML; charset=utf-8")
        True
        >>> FetchLimits().accepts_type("image/png")
        False
        """
        essence = content_type.partition(";")[0].strip().lower()
        return not essence or essence in self.content_types
