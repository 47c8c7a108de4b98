"""By what a request is known again: Scrapy's fingerprint of it with the canonical form of its URL.

By its own spelling a page that gives every visitor another session in its links would never end.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request

from bowerbird.web.url import Canonicaliser

REDIRECTED = b"redirected"


class RequestMarks:
    """Marks of requests; by Scrapy's fingerprint alone where there is no canonicaliser."""

    def __init__(self, fingerprint: Callable[[Request], bytes], canonicaliser: Canonicaliser | None) -> None:
        self._fingerprint = fingerprint
        self._canonicaliser = canonicaliser

    def of(self, request: Request) -> bytes:
        """The same for requests of which one is enough: other methods, bodies and whatever else counts in fingerprints
        make other ones, and where a page sends its visitors to another spelling of itself that is one more.
        """
        if self._canonicaliser is None:
            return self._fingerprint(request)
        canonical = self._canonicaliser.canonical
        url = canonical(request.url)
        before = request.meta.get("redirect_urls")
        if url is not None and isinstance(before, list) and url in map(canonical, before):
            return self._fingerprint(request) + REDIRECTED
        plain, hash_sign, fragment = request.url.partition("#")
        if url is None or url == plain:
            return self._fingerprint(request)
        return self._fingerprint(request.replace(url=url + hash_sign + fragment))  # some fingerprints have fragments

    def is_respelt(self, request: Request, mark: bytes) -> bool:
        """Would Scrapy's own fingerprint have made another request of it?"""
        return self._fingerprint(request) != mark
