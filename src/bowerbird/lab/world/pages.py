"""Pages as bytes: what a host answers to a path at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from bowerbird.lab.world import prose, traps
from bowerbird.lab.world.anchors import Anchors
from bowerbird.lab.world.chance import mix, text_key
from bowerbird.lab.world.paths import Paths
from bowerbird.lab.world.timeline import Article, Timeline, Version
from bowerbird.lab.world.traps import TrapKind
from bowerbird.lab.world.web import Kind, Web
from bowerbird.lab.world.words import Vocabulary

HTML = "text/html; charset=utf-8"
_RULES = "".join(
    f".c{i}{{margin:{i % 7}px {i % 5}em;color:#{i * 7919 % 0xFFFFFF:06x};line-height:1.{i % 10}}}\n"
    for i in range(1, 1500)
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host says: a status and, as far as they apply, the rest."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    location: str | None = None
    etag: str | None = None
    modified_s: float | None = None
    gzip: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The parts of a page before they are put together."""

    host: int
    path: str
    title: str
    words: list[str]
    inline: list[str]
    lists: str
    head: str = ""
    version: Version | None = None
    published_s: float | None = None
    bytes_wanted: float = 0.0


def date(at_s: float) -> str:
    """A time as pages and sitemaps write it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def items(kind: str, heading: str, anchors: Sequence[str]) -> str:
    """A headed list of links, or nothing."""
    if not anchors:
        return ""
    rows = "</li>\n<li>".join(anchors)
    return f'<section class="{kind}">\n<h2>{heading}</h2>\n<ul>\n<li>{rows}</li>\n</ul>\n</section>\n'


class Pages:
    """Answers for the pages of a web under one set of host addresses."""

    def __init__(self, web: Web, words: Vocabulary, timeline: Timeline, paths: Paths, hosts: Sequence[str]) -> None:
        self._web = web
        self._words = words
        self._timeline = timeline
        self._paths = paths
        self._hosts = hosts
        self._seed = web.spec.seed
        self.anchors = Anchors(web, words, paths, hosts)
        self._frames: dict[int, tuple[str, str]] = {}

    def answer(self, host: int, path: str, t: float) -> Answer:
        """What `host` answers to a request for `path` at time `t`."""
        trap = int(self._web.trap[host])
        session = ""
        if trap >= 0:
            found = traps.match(trap, path)
            if found and trap != TrapKind.SESSIONS:
                return self._trapped(host, TrapKind(trap), path)
            if found:
                path, session = found.groups()
        page = self._paths.find(host, path, t)
        if page is None:
            return self._missing(404)
        if page >= self._web.size:
            article = self._timeline.article(page)
            return self._missing(404) if article is None else self._article(article, session, t)
        if self._web.gone_s[page] <= t:
            return self._missing(410 if int(self._web.key[page]) & (1 << 40) else 404)
        if self._web.kind[page] == Kind.REDIRECT:
            return self._redirect(page)
        return self._page(page, path, session, t)

    def words(self, page: int, t: float) -> list[str]:
        """The tokens of a page's text at a time (joined, they are HTML paragraphs without the first tag)."""
        return self._spell(page, self._timeline.version(page, t))

    def _missing(self, status: int) -> Answer:
        text = "Gone" if status == 410 else "Not found"
        body = f"<!doctype html>\n<html lang=en><title>{text}</title><h1>{text}</h1></html>\n"
        return Answer(status, body.encode())

    def _redirect(self, page: int) -> Answer:
        target = int(self._web.other[page])
        to = int(self._web.host[target])
        path = self._paths.path(target)
        if to != self._web.host[page] or int(self._web.key[page]) & (1 << 41):
            path = f"http://{self._hosts[to]}{path}"
        permanent = int(self._web.key[page]) & (1 << 42)
        return Answer(301 if permanent else 302, b"<!doctype html><title>Moved</title>\n", location=path)

    def _spell(self, page: int, version: Version) -> list[str]:
        web = self._web
        source = page
        if page < web.size and web.other[page] >= 0:
            source = int(web.other[page])
        article = self._timeline.article(page) if page >= web.size else None
        key = article.key if article else int(web.key[page])
        state = mix(self._seed, 41, source)
        count = web.spec.mean_words * prose.spread(key)
        if page < web.size and web.kind[page] == Kind.HUB:
            count /= 3
        bits = prose.draw_bits(state, min(max(int(count), 8), 1 << 14))
        if version.text_key:
            prose.revise(bits, state, version.text_key)
        if page < web.size and web.kind[page] == Kind.MIRROR:
            prose.blur(bits, mix(self._seed, 42, page))
        return prose.spell(bits, self._words.topic(article.topic if article else int(web.topic[page])), key)

    def _page(self, page: int, path: str, session: str, t: float) -> Answer:
        web = self._web
        host, kind = int(web.host[page]), int(web.kind[page])
        key = int(web.key[page])
        version = self._timeline.version(page, t)
        own = mix(self._seed, 43, page)
        folder = path[: path.index("/", 1) + 1] if path != "/" else "/"
        written = self.anchors.write(web.packed_links(page), host, folder, own)
        title = self._words.topic(int(web.topic[page])).title(key)
        head, lists, inline = "", "", len(written) // 3
        if kind == Kind.HUB:
            inline = 0
            local = page - int(web.host_start[host])
            name = self._paths.prefix(host, int(web.section[page]))[1:-1].capitalize()
            title = f"{name} {local}" if local > web.host_sections[host] else name
            title = title if local else self.anchors.site(host)
            lists = items("latest", "Latest", self.anchors.articles(self._timeline.listed(page, t)))
            trap = int(web.trap[host])
            if local == 0 and trap >= 0:
                entry = traps.ENTRIES[TrapKind(trap)]
                lists += f'<p><a href="{entry}">{TrapKind(trap).name.capitalize()}</a></p>\n'
        elif web.printed[page] >= 0:
            lists = f'<p><a href="{self._paths.path(int(web.printed[page]))}">Print version</a></p>\n'
        lists += items("related", "Related", written[inline:])
        canonical = path
        if kind == Kind.PRINT and own & 1:
            canonical = self._paths.path(int(web.other[page]))
        if canonical != path or session or (own & 6 == 0 and kind != Kind.MIRROR):
            head = self._canonical(host, canonical, session)
        lists += self._session_link(host, path, session)
        sheet = _Sheet(
            host,
            path,
            title,
            self._spell(page, version),
            written[:inline],
            lists,
            head,
            version,
            bytes_wanted=web.spec.page_bytes * prose.spread(own),
        )
        return self._finish(sheet, mix(self._seed, 44, page, version.full_key), version.since_s)

    def _article(self, article: Article, session: str, t: float) -> Answer:
        web = self._web
        version = self._timeline.version(article.page, t)
        packed = np.array([link for link in article.links if link < web.size], dtype=np.int32)
        related = self.anchors.write(packed, article.host, None, article.key)
        earlier = [self._timeline.article(link) for link in article.links if link >= web.size]
        related += self.anchors.articles([one for one in earlier if one])
        path = self._paths.article_path(article)
        sheet = _Sheet(
            article.host,
            path,
            self._words.topic(article.topic).title(article.key),
            self._spell(article.page, version),
            related[:2],
            items("related", "Related", related[2:]) + self._session_link(article.host, path, session),
            self._canonical(article.host, path, session),
            version,
            article.published_s,
            web.spec.page_bytes * prose.spread(article.key),
        )
        return self._finish(sheet, mix(self._seed, 44, article.page, version.full_key), version.since_s)

    def _canonical(self, host: int, path: str, session: str) -> str:
        # half of the sites with sessions do not say which address is the right one
        if session and int(self._web.host_key[host]) & (1 << 50):
            return ""
        return f'<link rel="canonical" href="http://{self._hosts[host]}{path}">\n'

    def _session_link(self, host: int, path: str, session: str) -> str:
        if self._web.trap[host] != TrapKind.SESSIONS:
            return ""
        again = traps.session_path(path, self._seed, session).replace("&", "&amp;")
        return f'<p><a href="{again}">Share this page</a></p>\n'

    def _trapped(self, host: int, kind: TrapKind, path: str) -> Answer:
        if kind is TrapKind.REDIRECTS:
            return Answer(302, b"<!doctype html><title>Moved</title>\n", location=traps.next_redirect(path))
        title = "Archive"
        anchors = ['<a href="archive/">Older</a>']
        if kind is TrapKind.CALENDAR:
            title, before, after = traps.months(path)
            anchors = [f'<a href="/calendar/?month={month}">{month}</a>' for month in (before, after)]
        topic = self._words.topic(int(self._web.section_topic[host, 0]))
        key = mix(self._seed, 45, host, text_key(path))
        words = prose.spell(prose.draw_bits(key, 60), topic, key)
        return self._finish(_Sheet(host, path, title, words, [], items("pager", title, anchors)), None, None)

    def _frame(self, host: int) -> tuple[str, str]:
        """The top and the bottom that all pages of a host share."""
        frame = self._frames.get(host)
        if frame is None:
            site = self.anchors.site(host)
            top = f'<header>\n<nav>\n{self.anchors.navigation(host)}\n</nav>\n</header>\n<main id="top">\n'
            bottom = (
                f"</main>\n<footer>\n<p>&copy; {site}</p>\n"
                '<p><a href="#top">Top</a> <a href="mailto:editor@example.org">Write to us</a></p>\n'
            )
            frame = self._frames[host] = (top, bottom)
        return frame

    def _finish(self, sheet: _Sheet, tag: int | None, modified_s: float | None) -> Answer:
        host, words = sheet.host, sheet.words
        step = len(words) // (len(sheet.inline) + 1)
        for place, anchor in enumerate(sheet.inline, 1):
            words[place * step] += f" {anchor}"
        top, bottom = self._frame(host)
        site = self.anchors.site(host)
        kind = "rss" if host % 2 else "atom"
        full = f"{sheet.title} | {site}" if sheet.title != site else site
        text = "".join(words)
        byline = readers = ""
        if sheet.published_s is not None:
            byline = f'<p class="byline">Published <time>{date(sheet.published_s)}</time></p>\n'
        if sheet.version is not None:
            readers = (
                f"<p>Updated {date(sheet.version.since_s)}. "
                f"Readers today: {mix(sheet.version.full_key) % 9000 + 7}</p>\n"
            )
        first = "\n<title>"
        rest = (
            f"{full}</title>\n"
            f'<meta name="description" content="{sheet.title}: what {site} has to say about it.">\n'
            f'<link rel="alternate" type="application/{kind}+xml" title="{site}" href="/feed.xml">\n'
            f"{sheet.head}</head>\n<body>\n{top}<article>\n<h1>{sheet.title}</h1>\n{byline}"
            f"<p>{text}.</p>\n</article>\n{sheet.lists}{bottom}{readers}</footer>\n</body>\n</html>\n"
        )
        missing = int(sheet.bytes_wanted) - len(rest) - 90
        style = f"<style>\n{_RULES[:missing]}</style>" if missing > 0 else ""
        document = f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">{style}{first}{rest}'
        validated = tag is not None and self._web.has_validators[host]
        gzip = bool(self._web.has_gzip[host])
        # a weak tag where the bytes depend on the encoding
        etag = f'{"W/" if gzip else ""}"{tag:016x}"' if validated else None
        return Answer(200, document.encode(), etag=etag, modified_s=modified_s if validated else None, gzip=gzip)
