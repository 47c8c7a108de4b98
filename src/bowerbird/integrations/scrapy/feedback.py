"""What Scrapy's answers teach: outcomes, whether pages changed, and the texts on their links."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import xxhash
from scrapy.http import Response, TextResponse

from bowerbird.model.outcome import Outcome
from bowerbird.page.html import parse_html
from bowerbird.web.response import outcome_of_status
from bowerbird.web.url import Canonicaliser

log = logging.getLogger(__name__)

MAX_READ_BYTES = 4 << 20  # of a page; what is longer is compared by its bytes alone


@dataclass(slots=True)
class Answer:
    """What came back for a request."""

    outcome: Outcome
    status: int
    content_hash: int = 0
    anchors: dict[str, str] = field(default_factory=dict)  # by canonical URL


def read_status(response: Response) -> Answer:
    """What the status says, before any middleware has seen the answer."""
    location = response.headers.get("Location") or b""
    return Answer(outcome_of_status(response.status, location.decode("latin-1"), True), response.status)


def read_page(response: Response, answer: Answer, canonicaliser: Canonicaliser) -> None:
    """What the page says: a hash of its text, by which changes are known, and the anchors of its links."""
    body = response.body
    if not body:
        return
    answer.content_hash = xxhash.xxh3_64_intdigest(body) >> 1 or 1
    kind = (response.headers.get("Content-Type") or b"").lower()
    if not isinstance(response, TextResponse) or b"html" not in kind or len(body) > MAX_READ_BYTES:
        return
    try:
        page = parse_html(body, response.encoding.lower())
    except (LookupError, ValueError) as error:  # strange bytes cost one page's anchors, nothing else
        log.debug("%s: not read: %s", response.url, error)
        return
    answer.content_hash = xxhash.xxh3_64_intdigest(f"{page.title}\n{page.text}".encode()) >> 1 or 1
    targets = canonicaliser.resolve(page.base or response.url, [link.href for link in page.links])
    for link, target in zip(page.links, targets, strict=True):
        if target is not None and link.anchor:
            answer.anchors.setdefault(target, link.anchor)


def find_anchor(meta: Mapping[str, object], anchors: Mapping[str, str], url: str) -> str:
    """The text of the link that led to a URL, where anybody knows it."""
    said = meta.get("link_text")  # of Scrapy's rules
    return said if isinstance(said, str) and said else anchors.get(url, "")
