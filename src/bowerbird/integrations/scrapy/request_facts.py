"""What a request says of itself: where it came from, how deep it is, whether the spider began with it."""

from __future__ import annotations

from scrapy import Request

from bowerbird.web.url import Canonicaliser

HANDED_OUT = "bowerbird_handed_out"  # in meta: what is made of such a request is not the spider's start
DEEPEST = 254


def is_start(request: Request) -> bool:
    """Did the spider's start make it? A retry or a redirect of such a request has its meta, too."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get(HANDED_OUT)


def depth_of(request: Request) -> int:
    """Links from a start; 0 where the request does not say."""
    depth = request.meta.get("depth")
    return min(max(depth, 0), DEEPEST) if isinstance(depth, int) else 0


def referrer_of(request: Request, canonicaliser: Canonicaliser) -> str:
    """The canonical URL of the page that it came from; empty where it is not known."""
    header = request.headers.get("Referer")
    return (canonicaliser.canonical(header.decode("latin-1")) or "") if header else ""
