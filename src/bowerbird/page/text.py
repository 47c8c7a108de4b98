"""Which part of a page is its text? A quick rule of thumb: no model, no scoring of blocks."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bowerbird.page.scan import (
    SEEN_ARTICLE,
    SEEN_BOILERPLATE,
    SEEN_HIDDEN,
    SEEN_MAIN,
    SEEN_ROLE,
)
from bowerbird.page.sieve import Sieved

_BOILERPLATE_TAGS = "nav,header,footer,aside,form,noscript"
_BOILERPLATE_ROLES = "[role=navigation i],[role=banner i],[role=contentinfo i],[role=search i]"
_MAIN_SHARE = 0.4
_MIN_CHARS = 200
_MIN_SHARE = 0.1
_FORM_SHARE = 0.5
_MAX_CLIMB = 100  # a hostile page may nest without end


def collapse_spaces(text: str) -> str:
    """White space runs become one space, none is left at the ends."""
    return " ".join(text.split())


def extract_text(tree: LexborHTMLParser, sieved: Sieved) -> str:
    """The main text of a page that went through the sieve. Takes boilerplate out of `tree` for good."""
    body = tree.body
    if body is None:
        return ""
    seen = sieved.seen
    cut = False
    if seen & (SEEN_BOILERPLATE | SEEN_HIDDEN | SEEN_ROLE):
        cut = _cut_boilerplate(tree, seen, sieved.text_bytes)
    text = body.text_lexbor().strip()
    while cut and seen & SEEN_HIDDEN and "  " in text:  # a hidden word between two spaces
        text = text.replace("  ", " ")
    if cut and len(text) < _MIN_CHARS and len(text) < _MIN_SHARE * sieved.text_bytes:
        whole = LexborHTMLParser(sieved.html).body
        return "" if whole is None else whole.text_lexbor().strip()
    if seen & (SEEN_MAIN | SEEN_ARTICLE | SEEN_ROLE):
        main = _find_main(tree, seen)
        if main is not None:
            main_text = main.text_lexbor().strip()
            if len(main_text) >= _MAIN_SHARE * len(text):
                return main_text
    return text


def _cut_boilerplate(tree: LexborHTMLParser, seen: int, text_bytes: int) -> bool:
    parts = []
    if seen & SEEN_BOILERPLATE:
        parts.append(_BOILERPLATE_TAGS)
    if seen & SEEN_HIDDEN:
        parts.append("[hidden]")
    if seen & SEEN_ROLE:
        parts.append(_BOILERPLATE_ROLES)
    cut = False
    for node in tree.css(",".join(parts)):
        tag = node.tag
        if tag in ("html", "body"):
            continue
        if tag in ("header", "footer") and _is_inside_main(node):
            continue  # the heading of an article is not a banner
        # some frameworks wrap the whole page in one form
        if tag == "form" and len(node.text_lexbor()) > _FORM_SHARE * text_bytes:
            continue
        node.decompose(recursive=False)  # unlinked whole: nobody will look inside
        cut = True
    return cut


def _is_inside_main(node: LexborNode) -> bool:
    parent = node.parent
    for _ in range(_MAX_CLIMB):
        if parent is None:
            return False
        if parent.tag in ("main", "article"):
            return True
        parent = parent.parent
    return False


def _find_main(tree: LexborHTMLParser, seen: int) -> LexborNode | None:
    for bit, query in ((SEEN_MAIN, "main"), (SEEN_ROLE, "[role=main i]"), (SEEN_ARTICLE, "article")):
        if seen & bit:
            nodes: list[LexborNode] = tree.css(query)
            if len(nodes) == 1:  # several articles are a list: the page itself is the text
                return nodes[0]
    return None
