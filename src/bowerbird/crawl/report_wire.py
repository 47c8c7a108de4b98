"""Reports and notices as bytes that may lie in a database: plain values only, so that reading them runs no code.

A message is a list of numbers and lengths as JSON, then all texts and bytes one after another; compressed as one.
"""

from __future__ import annotations

from typing import Any

import orjson
import zstandard

from bowerbird.crawl.report import Links, Place, Report, Untell, Widen
from bowerbird.model.outcome import Outcome

MOST_BYTES = 1 << 30
LEVEL = 1
_NUMBERS = ("token", "fetched_at", "elapsed_s", "status", "wire_bytes", "retry_after_s", "content_hash", "period_s")
_TEXTS = (
    *("url", "error", "location", "etag", "last_modified", "media", "title", "description", "text", "language"),
    *("canonical", "websub"),
)
_BYTES = ("sketch", "body")
_LINKS = ("hashes", "named", "urls", "marks", "anchors", "kinds", "modified")
_NONE = -1  # the length of what is not there


class WireError(ValueError):
    """These bytes are not what they should be."""


class _Blobs:
    """Texts and bytes, joined; each is known by its length."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def put(self, value: bytes | str | None) -> int:
        if value is None:
            return _NONE
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        self.parts.append(data)
        return len(data)


class _Reading:
    """The same, taken apart again."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def take(self, length: int) -> bytes | None:
        if length == _NONE:
            return None
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise WireError("a part is missing")
        part, self.at = self.data[self.at : end], end
        return part

    def take_text(self, length: int) -> str | None:
        part = self.take(length)
        return None if part is None else part.decode("utf-8", "surrogatepass")


def _pack(head: Any, blobs: _Blobs) -> bytes:
    text = orjson.dumps(head)
    whole = b"".join((len(text).to_bytes(4, "little"), text, *blobs.parts))
    return zstandard.ZstdCompressor(level=LEVEL).compress(whole)


def _unpack(data: bytes) -> tuple[Any, _Reading]:
    try:
        whole = zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES)
        end = 4 + int.from_bytes(whole[:4], "little")
        return orjson.loads(whole[4:end]), _Reading(whole, end)
    except (zstandard.ZstdError, ValueError) as error:
        raise WireError(str(error)) from error


def pack_reports(reports: list[Report]) -> bytes:
    """A batch of reports."""
    blobs = _Blobs()
    head = []
    for report in reports:
        place = report.place
        head.append(
            (
                [getattr(report, name) for name in _NUMBERS],
                int(report.outcome),
                bool(report.noindex),
                report.links.count,
                [blobs.put(getattr(report, name)) for name in (*_TEXTS, *_BYTES)],
                [blobs.put(getattr(report.links, name)) for name in _LINKS],
                None if place is None else (place.file, place.offset, place.length, place.end),
            )
        )
    return _pack(head, blobs)


def unpack_reports(data: bytes) -> list[Report]:
    """The batch again; raises WireError where it is none."""
    head, blobs = _unpack(data)
    try:
        return [_report(one, blobs) for one in head]
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise WireError(str(error)) from error


def _report(one: Any, blobs: _Reading) -> Report:
    numbers, outcome, noindex, count, lengths, link_lengths, place = one
    values: dict[str, Any] = dict(zip(_NUMBERS, numbers, strict=True))
    texts = len(_TEXTS)
    for name, length in zip(_TEXTS, lengths[:texts], strict=True):
        values[name] = blobs.take_text(length)
    for name, length in zip(_BYTES, lengths[texts:], strict=True):
        values[name] = blobs.take(length)
    links = {name: blobs.take(length) or b"" for name, length in zip(_LINKS, link_lengths, strict=True)}
    if not isinstance(values["token"], int) or len(links["hashes"]) != 8 * count:
        raise WireError("the parts of a report do not fit together")
    return Report(
        **values,
        outcome=Outcome(outcome),
        noindex=noindex,
        links=Links(**links, count=count),
        place=None if place is None else Place(*place),
    )


def pack_notice(notice: Widen | Untell) -> bytes:
    """What all workers are to hear."""
    if isinstance(notice, Widen):
        return _pack({"seeds": notice.seeds}, _Blobs())
    return _pack({"untell": notice.hashes}, _Blobs())


def unpack_notice(data: bytes) -> Widen | Untell:
    """The notice again; raises WireError where it is none."""
    head, _ = _unpack(data)
    if isinstance(head, dict) and isinstance(head.get("seeds"), list):
        return Widen(tuple(str(seed) for seed in head["seeds"]))
    if isinstance(head, dict) and isinstance(head.get("untell"), list):
        return Untell(tuple(int(key) for key in head["untell"]))
    raise WireError("not a notice")
