"""XML from strangers: mended where that is safe, never expanded, never a reason to fetch."""

from __future__ import annotations

import re
from html.entities import html5
from io import BytesIO
from typing import Any

from lxml import etree

from bowerbird.page.charset import decode_bytes, name_encoding, sniff_charset

_OPTIONS: dict[str, Any] = {
    "recover": True,
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}
# what is never closed reaches to the end: to look for that end from every start would take quadratic time
_REFERENCE = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?:#[0-9]+;|#[xX][0-9a-fA-F]+;|([a-zA-Z][a-zA-Z0-9]{0,31});)?",
    re.DOTALL,
)
_PREDEFINED = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_DECLARATION = re.compile(rb"\A\s*<\?xml[^>]*\?>")
_DECLARED = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([^"'>]*)["']""")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def parse_xml(body: bytes, charset: str | None = None) -> Any | None:
    """The root element, or None when there is nothing that could be one.

    `charset` is what the transport said; it has precedence over the declaration in the document.
    """
    try:
        return etree.fromstring(mend_xml(body, charset), etree.XMLParser(**_OPTIONS))
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None


def iterate_xml(body: bytes) -> Any:
    """End events of all elements, in order; the caller clears what it has read."""
    return etree.iterparse(BytesIO(mend_xml(body, None)), events=("end",), **_OPTIONS)


def mend_xml(body: bytes, charset: str | None) -> bytes:
    """UTF-8 without declaration and without junk before the first tag; HTML's entities and bare & escaped."""
    if charset is not None or not _is_plain_utf8(body):
        body = decode_bytes(body, charset or sniff_charset(body)).encode("utf-8", "replace")
    body = body.removeprefix(_BOMS[0])
    start = body.find(b"<")
    body = _DECLARATION.sub(b"", body[max(start, 0) :], count=1)
    if b"&" in body:
        body = _REFERENCE.sub(_mend_reference, body)
    if b"\0" in body:
        body = body.replace(b"\0", b"")
    return body


def local_name(element: Any) -> str:
    """The name in lower case without its namespace; nothing for what is not an element."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag[tag.rfind("}") + 1 :].lower()


def namespace(element: Any) -> str:
    """The namespace of an element, or nothing."""
    tag = element.tag
    return tag[1 : tag.find("}")] if isinstance(tag, str) and tag[:1] == "{" else ""


def read_text(element: Any) -> str:
    """All text inside an element, white space collapsed."""
    return " ".join("".join(element.itertext()).split())


def _is_plain_utf8(body: bytes) -> bool:
    if body.startswith(_BOMS[1:]):
        return False
    declared = _DECLARED.match(body[:256].removeprefix(_BOMS[0]))
    if declared is not None and name_encoding(declared[1].decode("latin-1")) not in ("utf-8", None):
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _mend_reference(match: re.Match[bytes]) -> bytes:
    whole = match[0]
    if whole[:1] == b"<" or (len(whole) > 1 and whole[1:2] == b"#"):
        return whole
    name = match[1]
    if name is None:
        return b"&amp;"
    if name in _PREDEFINED:
        return whole
    meaning = html5.get(name.decode("ascii") + ";")
    if meaning is None:
        return b"&amp;" + whole[1:]
    return "".join(f"&#{ord(c)};" for c in meaning).encode("ascii")
