"""The sieve: HTML bytes in, the same page reduced to what a crawler reads out.

A standard parser spends most of its time on markup that says nothing to a crawler: `class` and `style`
attributes, `span` and `td` tags, scripts, comments. One pass over the bytes drops those, collapses white
space and puts a space where a block begins or ends; what remains is small, still HTML, and is read by the
standard parser, which keeps the last word on nesting, entities and everything malformed.
"""

from __future__ import annotations

from html.entities import html5
from typing import NamedTuple

import numpy as np

from bowerbird.page import scan
from bowerbird.page.scan import Ints64

_TAGS = {
    scan.BLOCK: "address blockquote br button caption center col colgroup dd details dialog dir dl dt"
    " fieldset figcaption figure h1 h2 h3 h4 h5 h6 hgroup hr input label legend li listing menu object ol"
    " optgroup option p plaintext pre search select summary table tbody td tfoot th thead tr ul video"
    " audio canvas xmp",
    scan.FRAME: "html head body div section main article nav header footer aside form noscript template frameset",
    scan.ANCHOR: "a",
    scan.IMAGE: "img",
    scan.VOID: "meta link base area frame",
    scan.RAW: "script style textarea noframes noembed",
    scan.IFRAME: "iframe",
    scan.TITLE: "title",
    scan.SVG: "svg",
}

_SEEN_TAGS = {
    scan.SEEN_AREA: "area",
    scan.SEEN_FRAME: "frame iframe",
    scan.SEEN_BOILERPLATE: "nav header footer aside form noscript",
    scan.SEEN_MAIN: "main",
    scan.SEEN_ARTICLE: "article",
    scan.SEEN_IMAGE: "img",
}

_ATTRIBUTES = "href src rel alt name content http-equiv lang xml:lang role hidden type property"
_ATTRIBUTE_KINDS = {"alt": scan.ALT, "hidden": scan.HIDDEN, "role": scan.ROLE}
_ROLES = "navigation banner contentinfo search main"


class Sieved(NamedTuple):
    """A reduced page."""

    html: bytes
    text_bytes: int
    """How much text it holds, spaces not counted."""
    seen: int
    """Which of the `SEEN_*` things occur, so that nobody searches for what is absent."""


def sieve_html(body: bytes) -> Sieved:
    """Reduce UTF-8 HTML to its skeleton, links, descriptions and text.

    >>> sieve_html(b'<div class=x><span>Hello</span>,  <a id=y href="/z">you</a><br>there</div>').html
    b'<div>Hello, <a href="/z">you</a> there </div>'
    """
    if not body:
        return Sieved(b"", 0, 0)
    source = np.frombuffer(body, np.uint8)
    out = np.empty(2 * len(body) + 64, np.uint8)
    length, text_bytes, seen, keep_all = scan.scan_html(source, out, _TABLES, False)
    if keep_all:  # a tag that is normally dropped is hidden or has a role: its extent matters
        length, text_bytes, seen, _ = scan.scan_html(source, out, _TABLES, True)
    return Sieved(out[:length].tobytes(), text_bytes, seen)


def _hash_name(name: str) -> int:
    code = 0
    for byte in name.encode():
        code = (code * 131 + byte) & 0xFFFFFFFFFFF
    return code


def _build_tables() -> Ints64:
    """Open-addressing tables from the hash of a name to its kind, and the class of each byte of text."""
    wide_spaces = [chr(i) for i in range(128, 0x3001) if chr(i).isspace()]
    space_names = [name[:-1] for name, value in html5.items() if value.isspace() and name.endswith(";")]
    tables = np.full((scan.CLASS_ROW + 1, 2, scan.TABLE_SLOTS), -1, np.int64)
    for row, kinds in (
        (scan.TAG_ROW, {_hash_name(name): kind for name, kind in _tag_kinds().items()}),
        (scan.ATTR_ROW, {_hash_name(name): _ATTRIBUTE_KINDS.get(name, 1) for name in _ATTRIBUTES.split()}),
        (scan.ROLE_ROW, {_hash_name(name): 1 for name in _ROLES.split()}),
        (scan.SPACE_ROW, {_hash_name(c): len(c.encode()) for c in wide_spaces}),
        (scan.SPACE_NAME_ROW, {_hash_name(name): 1 for name in space_names}),
        (scan.SPACE_VALUE_ROW, {i: 1 for i in range(0x3001) if chr(i).isspace()}),
    ):
        for code, kind in kinds.items():
            slot = (code ^ (code >> 13)) & (scan.TABLE_SLOTS - 1)
            while tables[row, 0, slot] >= 0:
                slot = (slot + 1) & (scan.TABLE_SLOTS - 1)
            tables[row, :, slot] = code, kind
    # 0 ordinary, 1 white space, 2 the start of something that needs a look
    classes = tables[scan.CLASS_ROW, 0]
    classes[:128] = [chr(i).isspace() for i in range(128)]
    classes[128:] = 0
    classes[[ord("<"), ord("&"), *{c.encode()[0] for c in wide_spaces}]] = 2
    return tables


def _tag_kinds() -> dict[str, int]:
    kinds = {name: kind for kind, names in _TAGS.items() for name in names.split()}
    for bit, names in _SEEN_TAGS.items():
        for name in names.split():
            kinds[name] |= bit << 8
    return kinds


_TABLES = _build_tables()
