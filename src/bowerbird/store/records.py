"""Rows that go to the database together: what a decision was, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState


@dataclass(slots=True)
class FetchRecord:
    """One decision with its outcome, and the URL's state after it. A row of the journal."""

    url: int
    kind: FetchKind
    decided_at: float
    bid: float
    price: float
    terms: str
    fetched_at: float
    outcome: Outcome
    state: UrlState
    elapsed_s: float = 0.0
    status: int = 0
    wire_bytes: int = 0
    changed: bool = False
    resemblance: float | None = None
    content_hash: int = 0
    errors: int = 0
    interval_s: float = 0.0
    not_before: float = 0.0
    file: int | None = None
    offset: int | None = None
    length: int | None = None
    target: int | None = None
    error: str | None = None
    modified: int | None = None  # its Last-Modified, in seconds
    validators: int = 0  # bits of Validators

    def row(self) -> tuple[object, ...]:
        """The values in the order of FETCH_COLUMNS."""
        return (
            self.url,
            int(self.kind),
            self.decided_at,
            self.bid,
            self.price,
            self.terms,
            self.fetched_at,
            self.elapsed_s,
            int(self.outcome),
            self.status,
            self.wire_bytes,
            int(self.changed),
            self.resemblance,
            self.content_hash,
            int(self.state),
            self.errors,
            self.interval_s,
            self.not_before,
            self.file,
            self.offset,
            self.length,
            self.target,
            self.error,
            self.modified,
            self.validators,
        )


FETCH_COLUMNS = (
    "url, kind, decided_at, bid, price, terms, fetched_at, elapsed_s, outcome, status, wire_bytes, changed, "
    "resemblance, content_hash, state, errors, interval_s, not_before, file, offset, length, target, error, modified, "
    "validators"
)

VERSION_COLUMNS = "url, etag, last_modified, sketch, fetched_at, media, noindex, duplicate_of, file, offset, length"


@dataclass(slots=True)
class Version:
    """The current version of a fetched URL."""

    url: int
    etag: str
    last_modified: str
    sketch: bytes | None
    fetched_at: float
    media: str
    noindex: bool
    duplicate_of: int | None
    file: int | None
    offset: int | None
    length: int | None

    def row(self) -> tuple[object, ...]:
        """The values in the order of VERSION_COLUMNS."""
        return (
            self.url,
            self.etag,
            self.last_modified,
            self.sketch,
            self.fetched_at,
            self.media,
            int(self.noindex),
            self.duplicate_of,
            self.file,
            self.offset,
            self.length,
        )
