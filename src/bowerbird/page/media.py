"""What kind of thing is this body? The header is heard first, the first bytes decide."""

from __future__ import annotations

import re
import zlib
from enum import StrEnum


class Media(StrEnum):
    """The kinds of body a crawler tells apart."""

    HTML = "html"
    TEXT = "text"
    FEED = "feed"
    SITEMAP = "sitemap"
    OTHER = "other"


_HEAD_BYTES = 2048
_GZIP_MAGIC = b"\x1f\x8b"
_BINARY_MAGIC = (
    b"%PDF-",
    b"%!PS-",
    b"\x89PNG",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"PK\x05\x06",
    _GZIP_MAGIC,
    b"RIFF",
    b"OggS",
    b"ID3\x03",
    b"ID3\x04",
    b"fLaC",
    b"7z\xbc\xaf",
    b"Rar!\x1a",
    b"\x7fELF",
    b"wOFF",
    b"wOF2",
    b"BZh9",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"\xd0\xcf\x11\xe0",
    b"\xca\xfe\xba\xbe",
    b"{\\rtf",
    b"\x1aE\xdf\xa3",
    b"SQLite format 3",
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROLS = bytes({*range(9), 11, *range(14, 27), *range(28, 32), 127})
_CONTROL_SHARE = 0.02

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/x-markdown", "text/x-rst", "text/asciidoc"})
_UNSURE_TYPES = frozenset({"", "text/plain", "application/octet-stream", "unknown/unknown", "*/*"})
_JSON_TYPES = frozenset({"application/json", "application/feed+json", "text/json"})

_PROLOGUE = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE(?:[^>\[]|\[[^\]]*\])*>)*", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)")
_HTML_START = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|link|script|style|div|p|h1|table|a|br|b|font|iframe|img|center)"
    rb"[\s>/]",
    re.IGNORECASE,
)
_URL_LINE = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*https?://\S+\s*(?:\n|\r|\Z)", re.IGNORECASE)


def sniff_media(body: bytes, content_type: str, url: str) -> Media:
    """Tell HTML, plain text, feeds and sitemaps apart from what is not read at all.

    >>> sniff_media(b"<?xml version='1.0'?><rss version='2.0'>", "text/html", "http://example.org/")
    <Media.FEED: 'feed'>
    >>> sniff_media(b"%PDF-1.4 ...", "text/html", "http://example.org/")
    <Media.OTHER: 'other'>
    """
    mime = content_type.partition(";")[0].strip().lower()
    head = body[:_HEAD_BYTES]
    if head[:2] in _UTF16_MARKS:
        head = head.decode("utf-16", "replace").encode()
    elif head[:2] == _GZIP_MAGIC:
        return _sniff_gzip(body, url)
    elif looks_binary(head) and "utf-16" not in content_type.lower():
        return Media.OTHER
    head = head.removeprefix(b"\xef\xbb\xbf")
    if mime in _HTML_TYPES and head.lstrip()[:9].lower() in (b"<!doctype", b"<html><he", b"<html lan"):
        return Media.HTML
    if mime in _JSON_TYPES or (mime in _UNSURE_TYPES and head.lstrip()[:1] == b"{"):
        if b"jsonfeed.org/version" in head.replace(b"\\/", b"/"):
            return Media.FEED
        return Media.OTHER if mime in _JSON_TYPES else _sniff_text(head, mime, url)
    xml = mime.endswith(("/xml", "+xml"))
    if xml or mime in _HTML_TYPES or mime in _UNSURE_TYPES:
        kind = _sniff_root(head)
        if kind is not None:
            return kind
    if mime in _HTML_TYPES:
        return Media.HTML
    if xml:
        return Media.OTHER
    return _sniff_text(head, mime, url)


def looks_binary(head: bytes) -> bool:
    """Do these first bytes belong to something that is not text in an ASCII-compatible encoding?

    >>> looks_binary(b"\\x89PNG\\r\\n"), looks_binary(b"<html>")
    (True, False)
    """
    if head.startswith(_BINARY_MAGIC) or b"\0" in head[:1024]:
        return True
    return len(head) - len(head.translate(None, _CONTROLS)) > _CONTROL_SHARE * len(head)


def maybe_gunzip(body: bytes, limit_bytes: int) -> bytes:
    """Unpack a body that is a gzip file, at most `limit_bytes` of it; anything else comes back as it is.

    A damaged file gives what could be read before the damage.
    """
    if body[:2] != _GZIP_MAGIC:
        return body
    parts: list[bytes] = []
    room = limit_bytes
    rest = body
    while rest[:2] == _GZIP_MAGIC and room > 0:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            part = unpacker.decompress(rest, room)
        except zlib.error:
            part = _salvage(rest, room)
            parts.append(part)
            break
        parts.append(part)
        room -= len(part)
        if not unpacker.eof:
            break
        rest = unpacker.unused_data
    return b"".join(parts)


def _salvage(packed: bytes, room: int) -> bytes:
    """Read a damaged gzip member in small bites, to have what precedes the damage."""
    unpacker = zlib.decompressobj(wbits=31)
    parts: list[bytes] = []
    for start in range(0, len(packed), 512):
        try:
            part = unpacker.decompress(packed[start : start + 512], room)
        except zlib.error:
            break
        parts.append(part)
        room -= len(part)
        if room <= 0:
            break
    return b"".join(parts)


def _sniff_gzip(body: bytes, url: str) -> Media:
    inner = maybe_gunzip(body[: 4 * _HEAD_BYTES], _HEAD_BYTES)
    if not inner or inner[:2] == _GZIP_MAGIC:
        return Media.OTHER
    kind = sniff_media(inner, "application/xml" if inner.lstrip()[:1] == b"<" else "", url)
    return kind if kind in (Media.SITEMAP, Media.FEED) else Media.OTHER


def _sniff_root(head: bytes) -> Media | None:
    prologue = _PROLOGUE.match(head)
    root = _ROOT.match(head, prologue.end() if prologue else 0)
    if root is None:
        return None
    name = root[1].lower()
    if name in (b"urlset", b"sitemapindex"):
        return Media.SITEMAP
    if name in (b"rss", b"feed"):
        return Media.FEED
    if name == b"rdf" and (b"purl.org/rss" in head or b"my.netscape.com/rdf" in head or b"channel" in head):
        return Media.FEED
    return Media.HTML if name == b"html" else None


def _skip_comments(head: bytes) -> bytes:
    """The head from its first content on. A loop, because a pattern would try all ways to join comments."""
    head = head.lstrip()
    while head.startswith(b"<!--") and (end := head.find(b"-->", 4)) >= 0:
        head = head[end + 3 :].lstrip()
    return head


def _sniff_text(head: bytes, mime: str, url: str) -> Media:
    if mime in _TEXT_TYPES or mime == "":
        if "sitemap" in url.lower() and _URL_LINE.match(head):
            return Media.SITEMAP
        if mime == "" and _HTML_START.match(_skip_comments(head)):
            return Media.HTML
        return Media.TEXT
    return Media.OTHER
