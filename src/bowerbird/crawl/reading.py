"""From an HTTP answer to a report: what the bytes say, in the form the coordinator stores. Runs in workers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import xxhash

from bowerbird.crawl.report import Links, Report
from bowerbird.crawl.scope import Scope
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind
from bowerbird.page.charset import sniff_charset
from bowerbird.page.feeds import parse_feed
from bowerbird.page.html import parse_html
from bowerbird.page.media import Media, maybe_gunzip, sniff_media
from bowerbird.page.parsed import ParsedPage
from bowerbird.page.shingles import hash_content, sketch_text
from bowerbird.page.sitemaps import parse_sitemap
from bowerbird.store.url_table import anchor_mark
from bowerbird.web.directives import parse_robots_tag
from bowerbird.web.response import FetchResult
from bowerbird.web.traps import has_repeated_path
from bowerbird.web.url import Canonicaliser

MAX_SITEMAP_BYTES = 60 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A URL that a feed or sitemap names, as written there."""

    href: str
    anchor: str = ""
    kind: UrlKind = UrlKind.PAGE
    modified_s: float = 0.0


class Reader:
    """Turns fetch results into reports, with the crawl's own rules for URLs and scope."""

    def __init__(
        self,
        canonicaliser: Canonicaliser,
        scope: Scope,
        *,
        agent: str,
        hash_seed: int,
        max_links: int = 5000,
        follow_nofollow: bool = False,
        path_repetitions: int = 3,
    ) -> None:
        self.canonicaliser = canonicaliser
        self.scope = scope
        self.agent = agent
        self.hash_seed = hash_seed
        self.max_links = max_links
        self.follow_nofollow = follow_nofollow
        self.path_repetitions = path_repetitions
        self._admitted: dict[str, int] = {}

    def read(self, result: FetchResult) -> Report:
        """The report of one answer; never raises on what a server sent."""
        report = Report(
            result.token,
            result.url,
            result.outcome,
            result.started_at,
            result.elapsed_s,
            result.status,
            len(result.header_block) + len(result.raw_body),
            result.error,
            result.retry_after_s,
        )
        if result.outcome is Outcome.REDIRECT:
            report.location = self._resolve_one(result.url, result.location)
        elif result.outcome is Outcome.NOT_MODIFIED:
            report.etag, report.last_modified = result.header("etag"), result.header("last-modified")
        elif result.outcome is Outcome.OK:
            try:
                self._read_body(result, report)
            except Exception as error:  # a parser's bug on strange bytes must cost one page, not the crawl
                report.outcome = Outcome.UNPARSABLE
                report.error = f"{type(error).__name__}: {error}"[:300]
        return report

    def forget_admissions(self) -> None:
        """The scope changed: earlier answers do not hold."""
        self._admitted.clear()

    def _read_body(self, result: FetchResult, report: Report) -> None:
        report.etag, report.last_modified = result.header("etag"), result.header("last-modified")
        content_type = result.header("content-type")
        media = sniff_media(result.body, content_type, result.url)
        report.media = media.value
        tags = parse_robots_tag(result.header_list("x-robots-tag"), self.agent)
        if media is Media.HTML:
            page = parse_html(result.body, sniff_charset(result.body, content_type), max_links=self.max_links)
            self._read_page(result.url, page, report, nofollow=tags.nofollow)
            report.noindex = tags.noindex or page.directives.noindex
        elif media is Media.TEXT:
            report.text = result.body.decode(sniff_charset(result.body, content_type), "replace")[:500_000]
            report.noindex = tags.noindex
        elif media in (Media.FEED, Media.SITEMAP):
            self._read_source(result, report, media, nofollow=tags.nofollow)
            report.noindex = True
        else:
            report.outcome = Outcome.WRONG_TYPE
            report.error = f"not a page: {content_type or 'no content type'}"
            return
        if report.text or media in (Media.HTML, Media.TEXT):
            report.content_hash = hash_content(f"{report.title}\n{report.text}")
            report.sketch = sketch_text(report.text)
        else:
            report.content_hash = xxhash.xxh3_64_intdigest(result.body) >> 1

    def _read_page(self, url: str, page: ParsedPage, report: Report, *, nofollow: bool) -> None:
        report.title, report.description = page.title, page.description
        report.text, report.language = page.text, page.language
        base = url
        if page.base:
            base = self._join(url, page.base) or url
        if page.canonical:
            canonical = self._resolve_one(base, page.canonical)
            report.canonical = canonical if canonical != url else None
        follow = not (nofollow or page.directives.nofollow) or self.follow_nofollow
        hrefs: list[str] = []
        anchors: list[str] = []
        if follow:
            for href, anchor, no in page.links:
                if not no or self.follow_nofollow:
                    hrefs.append(href)
                    anchors.append(anchor)
            for extra in (page.canonical, page.refresh):
                if extra:
                    hrefs.append(extra)
                    anchors.append("")
        resolved = self.canonicaliser.resolve(base, hrefs)
        hubs = self.canonicaliser.resolve(base, page.feeds) if follow else []
        found: dict[str, str] = {}
        for target, anchor in zip(resolved, anchors, strict=True):
            if target is not None and target != url and not found.get(target):
                found[target] = anchor
        feeds = {target: UrlKind.FEED for target in hubs if target is not None and target != url}
        report.links = self._pack(found, feeds)

    def _join(self, url: str, href: str) -> str | None:
        return self.canonicaliser.resolve(url, [href])[0]

    def _resolve_one(self, base: str, href: str) -> str | None:
        url = self._join(base, href)
        return url if url is not None and self._admit(url) >= 0 else None

    def _read_source(self, result: FetchResult, report: Report, media: Media, *, nofollow: bool) -> None:
        found: list[Found] = []
        if media is Media.FEED:
            feed = parse_feed(result.body, result.header("content-type"))
            if feed is None:
                report.outcome = Outcome.UNPARSABLE
                return
            report.title = feed.title
            found = [Found(e.href, e.title, UrlKind.PAGE, e.published_s or 0.0) for e in feed.entries]
        else:
            sitemap = parse_sitemap(maybe_gunzip(result.body, MAX_SITEMAP_BYTES), result.url)
            if sitemap is None:
                report.outcome = Outcome.UNPARSABLE
                return
            found = [Found(e.href, "", UrlKind.PAGE, e.lastmod_s or 0.0) for e in sitemap.pages]
            found += [Found(e.href, "", UrlKind.SITEMAP, e.lastmod_s or 0.0) for e in sitemap.children]
        if nofollow and not self.follow_nofollow:
            return
        targets = self.canonicaliser.resolve(result.url, [item.href for item in found])
        anchors: dict[str, str] = {}
        kinds: dict[str, UrlKind] = {}
        modified: dict[str, float] = {}
        for target, item in zip(targets, found, strict=True):
            if target is None or target == result.url:
                continue
            anchors.setdefault(target, item.anchor)
            if item.kind is not UrlKind.PAGE:
                kinds[target] = item.kind
            if item.modified_s:
                modified[target] = item.modified_s
        report.links = self._pack(anchors, kinds, modified)

    def _admit(self, url: str) -> int:
        """The URL's hash when it belongs to the crawl, else -1. Links repeat a lot, so answers are kept."""
        known = self._admitted.get(url)
        if known is None:
            if self.scope.admits(url) and not has_repeated_path(url, self.path_repetitions):
                known = xxhash.xxh3_64_intdigest(url.encode("utf-8"), self.hash_seed)
            else:
                known = -1
            if len(self._admitted) > 200_000:
                self._admitted.clear()
            self._admitted[url] = known
        return known

    def _pack(
        self,
        anchors: dict[str, str],
        kinds: dict[str, UrlKind],
        modified: dict[str, float] | None = None,
    ) -> Links:
        for url in kinds:
            anchors.setdefault(url, "")
        admit = self._admit
        kept: list[str] = []
        hashes: list[int] = []
        texts: list[str] = []
        for url, anchor in anchors.items():
            known = admit(url)
            if known >= 0:
                kept.append(url)
                hashes.append(known)
                texts.append(anchor if "\n" not in anchor else " ".join(anchor.split()))
        return Links(
            urls="\n".join(kept).encode("utf-8"),
            hashes=array("Q", hashes).tobytes(),
            marks=array("H", map(_anchor_mark_cached, texts)).tobytes(),
            anchors="\n".join(texts).encode("utf-8", "replace"),
            kinds=bytes(int(kinds.get(url, 0)) for url in kept) if kinds else b"",
            modified=array("d", (modified.get(url, 0.0) for url in kept)).tobytes() if modified else b"",
            count=len(kept),
        )


def _memoise(function: Callable[[str], int], size: int) -> Callable[[str], int]:
    """Anchors repeat from page to page: remember the last many."""
    known: dict[str, int] = {}

    def remembered(text: str) -> int:
        value = known.get(text)
        if value is None:
            if len(known) > size:
                known.clear()
            value = known[text] = function(text)
        return value

    return remembered


_anchor_mark_cached = _memoise(anchor_mark, 100_000)


def unpack_lines(blob: bytes, count: int) -> Sequence[str]:
    """The strings of a joined block."""
    return blob.decode("utf-8").split("\n") if count else []


def unpack_kinds(blob: bytes, count: int) -> Iterable[int]:
    """The kinds of a block of links."""
    return blob if blob else bytes(count)
