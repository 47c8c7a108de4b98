"""From an HTTP answer to a report: what the bytes say, in the form the coordinator stores. Runs in workers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
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
from bowerbird.page.shingles import sketch_text
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
        self.admitted: dict[str, int] = {}

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
        self.admitted.clear()

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
            # the text has single spaces already, so its bytes say whether it changed
            report.content_hash = xxhash.xxh3_64_intdigest(f"{report.title}\n{report.text}".encode()) >> 1
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
        if (nofollow or page.directives.nofollow) and not self.follow_nofollow:
            return
        links: list[tuple[str, str, bool]] = list(page.links)
        links += [(extra, "", False) for extra in (page.canonical, page.refresh) if extra]
        targets = self.canonicaliser.resolve(base, [link[0] for link in links])
        block = _Block(self)
        block.add(targets, links, url, nofollow_too=self.follow_nofollow)
        if page.feeds:
            block.add_sources(self.canonicaliser.resolve(base, page.feeds), url, UrlKind.FEED)
        report.links = block.pack()

    def _join(self, url: str, href: str) -> str | None:
        return self.canonicaliser.resolve(url, [href])[0]

    def _resolve_one(self, base: str, href: str) -> str | None:
        url = self._join(base, href)
        return url if url is not None and self.admit(url) >= 0 else None

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
        block = _Block(self)
        targets = self.canonicaliser.resolve(result.url, [item.href for item in found])
        for target, item in zip(targets, found, strict=True):
            if target is not None and target != result.url:
                block.add_one(target, item.anchor, item.kind, item.modified_s)
        report.links = block.pack()

    def admit(self, url: str) -> int:
        """The URL's hash when it belongs to the crawl, else -1. Links repeat a lot, so answers are kept."""
        known = self.admitted.get(url)
        if known is None:
            if self.scope.admits(url) and not has_repeated_path(url, self.path_repetitions):
                known = xxhash.xxh3_64_intdigest(url.encode("utf-8"), self.hash_seed)
            else:
                known = -1
            if len(self.admitted) > 200_000:
                self.admitted.clear()
            self.admitted[url] = known
        return known


class _Block:
    """Links of one page as they are gathered: distinct, admitted, in the order of the page."""

    __slots__ = ("anchors", "hashes", "kinds", "modified", "places", "reader", "urls")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.places: dict[str, int] = {}
        self.urls: list[str] = []
        self.hashes: list[int] = []
        self.anchors: list[str] = []
        self.kinds: dict[int, int] = {}
        self.modified: dict[int, float] = {}

    def add(
        self,
        targets: Sequence[str | None],
        links: Sequence[tuple[str, str, bool]],
        own: str,
        *,
        nofollow_too: bool,
    ) -> None:
        """Links of a page, resolved; a hundred a page, so this loop is kept bare."""
        places, urls, hashes, anchors = self.places, self.urls, self.hashes, self.anchors
        known_hashes, admit = self.reader.admitted, self.reader.admit
        for target, (_, anchor, nofollow) in zip(targets, links, strict=True):
            if target is None or (nofollow and not nofollow_too):
                continue
            place = places.get(target)
            if place is not None:
                if place >= 0 and not anchors[place]:
                    anchors[place] = anchor
                continue
            known = known_hashes.get(target)
            if known is None:
                known = admit(target)
            if known < 0 or target == own:
                places[target] = -1
                continue
            places[target] = len(urls)
            urls.append(target)
            hashes.append(known)
            anchors.append(anchor)

    def add_one(self, target: str, anchor: str, kind: UrlKind, modified_s: float) -> None:
        """A URL named by a feed or sitemap."""
        self.add((target,), (("", anchor, False),), "", nofollow_too=False)
        place = self.places[target]
        if place >= 0:
            if kind is not UrlKind.PAGE:
                self.kinds[place] = int(kind)
            if modified_s:
                self.modified[place] = modified_s

    def add_sources(self, targets: Sequence[str | None], own: str, kind: UrlKind) -> None:
        """Feeds that a page names."""
        for target in targets:
            if target is not None and target != own:
                self.add_one(target, "", kind, 0.0)

    def pack(self) -> Links:
        """The block to send."""
        joined = "\n".join(self.anchors)
        if joined.count("\n") >= max(len(self.anchors), 1):
            joined = "\n".join(" ".join(anchor.split()) for anchor in self.anchors)
        count = len(self.urls)
        return Links(
            urls="\n".join(self.urls).encode("utf-8"),
            hashes=array("Q", self.hashes).tobytes(),
            marks=array("H", map(_anchor_mark_cached, self.anchors)).tobytes(),
            anchors=joined.encode("utf-8", "replace"),
            kinds=bytes(self.kinds.get(i, 0) for i in range(count)) if self.kinds else b"",
            modified=array("d", (self.modified.get(i, 0.0) for i in range(count))).tobytes() if self.modified else b"",
            count=count,
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
