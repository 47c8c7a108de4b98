"""From an HTTP answer to a report: what the bytes say, in the form the coordinator stores. Runs in workers."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import xxhash

from bowerbird.crawl.link_block import LinkBlock, LinkMemory
from bowerbird.crawl.report import Report
from bowerbird.crawl.scope import Scope
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind
from bowerbird.page import scan
from bowerbird.page.charset import sniff_charset
from bowerbird.page.feeds import parse_feed
from bowerbird.page.html import parse_html
from bowerbird.page.media import Media, maybe_gunzip, sniff_media
from bowerbird.page.parsed import ParsedPage
from bowerbird.page.shingles import sketch_text
from bowerbird.page.sitemaps import parse_sitemap
from bowerbird.web.directives import parse_robots_tag
from bowerbird.web.response import FetchResult
from bowerbird.web.traps import has_repeated_path
from bowerbird.web.url import Canonicaliser

MAX_SITEMAP_BYTES = 60 << 20
MAX_VALIDATOR_CHARS = 512
MAX_WEBSUB_CHARS = 2048
RESOLVED_KEPT = 4_000  # links that a canonicaliser remembers beneath a memory of links, which remembers the others
WEBSUB_LINK = re.compile(
    r"""<([^<>]{1,2048})>\s*(?:;[^,<]*?)?;\s*rel\s*=\s*"""
    r"""(?:"(?:[^"<]{0,256}\s)?hub(?:\s[^"<]{0,256})?"|'(?:[^'<]{0,256}\s)?hub(?:\s[^'<]{0,256})?'|hub(?=[\s;,]|$))""",
    re.IGNORECASE,
)


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
        self.memory = LinkMemory(canonicaliser, self.admit, scope.surely_excludes)

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
            self._read_validators(result, report)
        elif result.outcome is Outcome.OK:
            try:
                self._read_body(result, report)
            except Exception as error:  # a parser's bug on strange bytes must cost one page, not the crawl
                report.outcome = Outcome.UNPARSABLE
                report.error = f"{type(error).__name__}: {error}"[:300]
        return report

    def _read_validators(self, result: FetchResult, report: Report) -> None:
        """They are stored and sent back as they came; one cut short would match nothing."""
        etag, last_modified = result.header("etag"), result.header("last-modified")
        report.etag = etag if len(etag) <= MAX_VALIDATOR_CHARS else ""
        report.last_modified = last_modified if len(last_modified) <= MAX_VALIDATOR_CHARS else ""

    def _read_body(self, result: FetchResult, report: Report) -> None:
        self._read_validators(result, report)
        content_type = result.header("content-type")
        media = sniff_media(result.body, content_type, result.url)
        report.media = media.value
        tags = parse_robots_tag(result.header_list("x-robots-tag"), self.agent)
        if media is Media.HTML:
            charset = sniff_charset(result.body, content_type)
            page = parse_html(result.body, charset, max_links=self.max_links, agent=self.agent)
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
        block = LinkBlock(self.memory)
        targets = self.memory.resolve(base, [link[0] for link in links])
        block.add(targets, links, nofollow_too=self.follow_nofollow)
        for target in self.memory.resolve(base, page.feeds):
            block.add_source(target, "", UrlKind.FEED, 0.0)
        report.links = block.pack(url)

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
            report.period_s = feed.period_s or 0.0
            report.websub = (find_websub(result.header_list("link")) or feed.hub or "")[:MAX_WEBSUB_CHARS]
            found = [Found(e.href, e.title, UrlKind.PAGE, e.published_s or 0.0) for e in feed.entries]
        else:
            sitemap = parse_sitemap(maybe_gunzip(result.body, MAX_SITEMAP_BYTES), result.url)
            if sitemap is None:
                report.outcome = Outcome.UNPARSABLE
                return
            report.period_s = sitemap.period_s or 0.0
            found = [Found(e.href, "", UrlKind.PAGE, e.lastmod_s or 0.0) for e in sitemap.pages]
            found += [Found(e.href, "", UrlKind.SITEMAP, e.lastmod_s or 0.0) for e in sitemap.children]
        if nofollow and not self.follow_nofollow:
            return
        block = LinkBlock(self.memory)
        targets = self.memory.resolve(result.url, [item.href for item in found])
        for target, item in zip(targets, found, strict=True):
            block.add_source(target, item.anchor, item.kind, item.modified_s)
        report.links = block.pack(result.url)

    def admit(self, url: str) -> int:
        """The URL's hash when it belongs to the crawl, else -1."""
        if self.scope.admits(url) and not has_repeated_path(url, self.path_repetitions):
            return xxhash.xxh3_64_intdigest(url.encode("utf-8"), self.hash_seed)
        return -1


def find_websub(links: Sequence[str]) -> str:
    """The WebSub hub that Link headers name, or nothing.

    >>> find_websub(['<https://a.example/feed>; rel="self", <https://hub.example/>; rel="hub"'])
    'https://hub.example/'
    >>> find_websub(['<https://b.example/>; rel="self hub"', '<https://a.example/>; rel="hub-x"'])
    'https://b.example/'
    """
    return next((found[1].strip() for value in links for found in WEBSUB_LINK.finditer(value)), "")


def load_kernels() -> None:
    """Compiled kernels take half a second to load: do it before the first page is here."""
    sketch_text(parse_html(b"<p>a first page</p>", "utf-8").text)
    if not are_kernels_compiled():  # Numba goes by what the source says, not by its date: a copy is as good
        for mark in _kernel_marks():
            with suppress(OSError):
                mark.touch()


def are_kernels_compiled() -> bool:
    """Did an earlier run leave the kernel of `parse_html`, by far the slowest to compile, where Numba looks for it?"""
    compiled = [path.stat().st_mtime for path in _kernel_marks()]
    return max(compiled, default=0.0) >= Path(inspect.getfile(scan)).stat().st_mtime


def _kernel_marks() -> list[Path]:
    name = f"scan.scan_html-*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    return list(Path(str(scan.scan_html.stats.cache_path)).glob(name))


def unpack_lines(blob: bytes, count: int) -> Sequence[str]:
    """The strings of a joined block."""
    return blob.decode("utf-8").split("\n") if count else []
