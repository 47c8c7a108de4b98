"""HTML bytes to a `ParsedPage`: the hot path of the crawl."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from bowerbird.page.charset import decode_bytes, sniff_charset
from bowerbird.page.media import looks_binary
from bowerbird.page.parsed import ParsedPage, RawLink
from bowerbird.page.scan import SEEN_AREA, SEEN_FRAME, SEEN_IMAGE
from bowerbird.page.sieve import sieve_html
from bowerbird.page.text import collapse_spaces, extract_text
from bowerbird.web.directives import parse_robots_meta

MAX_ANCHOR_CHARS = 200
_MAX_TITLE_CHARS = 1000
_MAX_DESCRIPTION_CHARS = 2000
_MAX_FEEDS = 50
_MAX_REFRESH_S = 30.0
_WITHOUT_EVENTS = 1  # LexborDocumentOptions.WO_EVENTS as the plain number: the enum costs a call a page
_SPACE = " \t\n\f\r"
_REFRESH = re.compile(r"\s*(\d{0,9}(?:\.\d*)?)\s*(?:[;,]\s*|\s+)(?:url\s*=\s*)?(.*)", re.IGNORECASE | re.DOTALL)
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"})
_NO_PAGE = ("javascript:", "mailto:", "tel:", "data:", "sms:", "about:", "blob:", "whatsapp:")
_NO_PAGE_STARTS = frozenset("".join(scheme[0] + scheme[0].upper() for scheme in _NO_PAGE))
_LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3})(?![A-Za-z])")


def parse_html(
    body: bytes,
    charset: str | None,
    *,
    max_links: int = 5000,
    max_text_chars: int = 500_000,
    agent: str = "bowerbird",
) -> ParsedPage:
    """Read a page; any bytes give a page, binary ones an empty page.

    Links to a fragment of the page itself and to what cannot be fetched (mailto:, javascript: and the like)
    are left out. `charset` is a name from `sniff_charset`; without one it is sniffed.
    `agent` is our product token: a meta element of that name speaks to us as `robots` does to all.

    >>> page = parse_html(b"<title>Hi</title><p>Go <a href=/on>on</a>!", None)
    >>> page.title, page.text, page.links
    ('Hi', 'Go on!', [RawLink(href='/on', anchor='on', nofollow=False)])
    """
    if charset is None:
        charset = sniff_charset(body)
    if charset != "utf-8":
        body = decode_bytes(body, charset).encode("utf-8", "replace")
    elif body[:3] == b"\xef\xbb\xbf":
        body = body[3:]
    if looks_binary(body[:1024]):
        return ParsedPage()
    sieved = sieve_html(body)
    try:
        tree = LexborHTMLParser(sieved.html, options=_WITHOUT_EVENTS)
    except SelectolaxError:
        return ParsedPage()
    page = ParsedPage()
    _read_head(tree, page, agent.lower())
    _read_links(tree, sieved.seen, page, max_links)
    page.text = extract_text(tree, sieved)[:max_text_chars]
    return page


def _read_head(tree: LexborHTMLParser, page: ParsedPage, agent: str) -> None:
    """Title, meta, link and base elements, wherever a broken head has left them."""
    root = tree.root
    if root is None:
        return
    attributes = root.attributes
    page.language = _read_language(attributes.get("lang") or attributes.get("xml:lang"))
    social_title = social_description = ""
    for node in tree.css("title,meta,link,base"):
        tag = node.tag
        if tag == "title":
            page.title = page.title or collapse_spaces(node.text_lexbor())[:_MAX_TITLE_CHARS]
            node.decompose(recursive=False)  # one in the body would be read as text
            continue
        attributes = node.attributes
        if tag == "meta":
            content = attributes.get("content")
            if not content:
                continue
            name = attributes.get("name") or attributes.get("property")
            if name:
                name = name.strip().lower()
                if name in ("robots", agent):
                    page.directives |= parse_robots_meta(content)
                elif name == "description":
                    page.description = page.description or collapse_spaces(content)[:_MAX_DESCRIPTION_CHARS]
                elif name == "og:title":
                    social_title = content
                elif name == "og:description":
                    social_description = content
                continue
            equivalent = (attributes.get("http-equiv") or "").strip().lower()
            if equivalent == "refresh" and page.refresh is None:
                page.refresh = _read_refresh(content)
            elif equivalent == "content-language":
                page.language = page.language or _read_language(content)
            continue
        href = (attributes.get("href") or "").strip(_SPACE)
        if not href:
            continue
        if tag == "base":
            page.base = page.base or href
            continue
        relations = (attributes.get("rel") or "").lower().split()
        if "canonical" in relations:
            page.canonical = page.canonical or href
        elif "alternate" in relations and _is_feed(attributes.get("type"), href) and len(page.feeds) < _MAX_FEEDS:
            page.feeds.append(href)
    page.title = page.title or collapse_spaces(social_title)[:_MAX_TITLE_CHARS]
    page.description = page.description or collapse_spaces(social_description)[:_MAX_DESCRIPTION_CHARS]


def _read_links(tree: LexborHTMLParser, seen: int, page: ParsedPage, max_links: int) -> None:
    nodes = tree.tags("a")
    if seen & SEEN_AREA:
        nodes += tree.tags("area")
    if seen & SEEN_FRAME:
        nodes += tree.tags("iframe") + tree.tags("frame")
    links: list[RawLink] = []
    places: dict[str, int] = {}
    new = tuple.__new__  # a named tuple's own constructor costs as much as reading the link
    for number, node in enumerate(nodes):
        attributes = node.attributes
        href = attributes.get("href") or attributes.get("src")
        if not href:
            continue
        href = href.strip(_SPACE)
        place = places.get(href)
        if place is not None:
            link = links[place] if place >= 0 else None
            if link is None:
                continue
            nofollow = link.nofollow and _is_nofollow(attributes.get("rel"))
            if not link.anchor or nofollow != link.nofollow:
                anchor = link.anchor or _read_anchor(node, attributes, seen)
                links[place] = RawLink(href, anchor, nofollow)
            continue
        if not href or href[0] == "#" or (href[0] in _NO_PAGE_STARTS and href[:11].lower().startswith(_NO_PAGE)):
            places[href] = -1
            continue
        if len(links) >= max_links:
            page.links_cut = len(nodes) - number
            break
        places[href] = len(links)
        relation = attributes.get("rel")
        nofollow = relation is not None and _is_nofollow(relation)
        anchor = node.text_lexbor().strip()
        if not anchor or len(anchor) > MAX_ANCHOR_CHARS:
            anchor = _read_anchor(node, attributes, seen)
        links.append(new(RawLink, (href, anchor, nofollow)))
    page.links = links


def _read_anchor(node: LexborNode, attributes: dict[str, str | None], seen: int) -> str:
    anchor: str = node.text_lexbor().strip()
    if not anchor:
        anchor = attributes.get("alt") or ""
        if not anchor and seen & SEEN_IMAGE:
            image = node.first_child
            if image is None or image.tag != "img":
                image = node.css_first("img")
            if image is not None:
                anchor = image.attributes.get("alt") or ""
        anchor = collapse_spaces(anchor)
    return anchor[:MAX_ANCHOR_CHARS].rstrip()


def _is_nofollow(relation: str | None) -> bool:
    return relation is not None and "nofollow" in relation.lower().replace(",", " ").split()


def _is_feed(kind: str | None, href: str) -> bool:
    kind = (kind or "").partition(";")[0].strip().lower()
    # application/json is mostly an API: only the href can say that it is a feed
    return kind in _FEED_TYPES or (kind == "application/json" and "feed" in href.lower())


def _read_language(value: str | None) -> str:
    match = _LANGUAGE.match(value) if value else None
    return match[1].lower() if match else ""


def _read_refresh(content: str) -> str | None:
    match = _REFRESH.match(content)
    if match is None:
        return None
    delay = match[1]
    if (float(delay) if delay not in ("", ".") else 0.0) > _MAX_REFRESH_S:
        return None
    target = match[2].strip(_SPACE)
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0].strip(_SPACE)
    return target or None
