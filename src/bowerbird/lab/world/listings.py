"""What a host says about itself to machines: robots.txt, sitemaps and a feed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import formatdate

import numpy as np

from bowerbird.lab.world.chance import mix
from bowerbird.lab.world.pages import Answer, date
from bowerbird.lab.world.paths import Paths
from bowerbird.lab.world.timeline import Article, Timeline
from bowerbird.lab.world.web import Ints, Kind, Web
from bowerbird.lab.world.words import Vocabulary

XML = "application/xml; charset=utf-8"
_SITEMAP = re.compile(r"/sitemap(?:-(\d{1,6}))?\.xml")
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_STANDING_ITEMS = 10


class Listings:
    """Answers for the machine-readable addresses of all hosts."""

    def __init__(self, web: Web, words: Vocabulary, timeline: Timeline, paths: Paths, hosts: Sequence[str]) -> None:
        self._web = web
        self._words = words
        self._timeline = timeline
        self._paths = paths
        self._hosts = hosts

    def answer(self, host: int, path: str, t: float) -> Answer | None:
        """The answer to such an address, or None if the path is not one."""
        if path == "/robots.txt":
            return self._robots(host)
        if path == "/feed.xml":
            return self._feed(host, t)
        found = _SITEMAP.fullmatch(path)
        if found and self._web.has_sitemap[host]:
            return self._sitemap(host, int(found[1]) if found[1] else None, t)
        return None

    def crawl_delay_s(self, host: int) -> float | None:
        """The Crawl-delay that a host asks for."""
        return self._web.spec.crawl_delay_s if self._web.has_crawl_delay[host] else None

    def disallowed(self, host: int) -> list[str]:
        """The path prefixes that robots.txt excludes."""
        section = int(self._web.disallowed_section[host])
        prefixes = [self._paths.prefix(host, section)] if section >= 0 else []
        if self._web.disallows_print[host]:
            prefixes.append("/print/")
        return prefixes

    def _robots(self, host: int) -> Answer:
        delay_s = self.crawl_delay_s(host)
        prefixes = self.disallowed(host)
        if not prefixes and delay_s is None and not self._web.has_sitemap[host]:
            return Answer(404, b"not found\n", "text/plain")
        lines = ["# robots of a made-up site", "User-agent: greedybot", "Disallow: /", "", "User-agent: *"]
        lines += [f"Disallow: {prefix}" for prefix in prefixes] or ["Disallow:"]
        if delay_s is not None:
            lines.append(f"Crawl-delay: {delay_s:g}")
        if self._web.has_sitemap[host]:
            lines += ["", f"Sitemap: http://{self._hosts[host]}/sitemap.xml"]
        return Answer(200, ("\n".join(lines) + "\n").encode(), "text/plain; charset=utf-8")

    def sitemap_pages(self, host: int, t: float) -> Ints:
        """The initial pages a host puts in its sitemaps: what is there, allowed, and no copy."""
        web = self._web
        pages = np.arange(web.host_start[host], web.host_start[host + 1])
        kinds = web.kind[pages]
        pages = pages[web.allowed[pages] & ((kinds == Kind.LEAF) | (kinds == Kind.HUB))]
        return self._timeline.alive(pages, t)

    def sitemap_articles(self, host: int, t: float) -> list[Article]:
        """The articles a host puts in its sitemaps."""
        closed = int(self._web.disallowed_section[host])
        return [one for one in self._timeline.host_articles(host, t) if one.section != closed]

    def _sitemap(self, host: int, number: int | None, t: float) -> Answer | None:
        pages = self.sitemap_pages(host, t).tolist()
        pages += [article.page for article in self.sitemap_articles(host, t)]
        size = self._web.spec.sitemap_urls
        root = f"http://{self._hosts[host]}"
        parts = -(-len(pages) // size)
        if number is None and parts > 1:
            rows = [f"<sitemap><loc>{root}/sitemap-{i}.xml</loc></sitemap>" for i in range(1, parts + 1)]
            return self._xml("sitemapindex", rows)
        if number is not None and (parts == 1 or not 1 <= number <= parts):
            return None
        first = (number - 1) * size if number else 0
        rows = [
            f"<url><loc>{root}{self._paths.path(page)}</loc>"
            f"<lastmod>{date(self._timeline.version(page, t).since_s)}</lastmod></url>"
            for page in pages[first : first + size]
        ]
        return self._xml("urlset", rows)

    def _xml(self, name: str, rows: list[str]) -> Answer:
        inner = "\n".join(rows)
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{_NAMESPACE}">\n{inner}\n</{name}>\n'
        return Answer(200, text.encode(), XML)

    def _feed(self, host: int, t: float) -> Answer:
        """The articles the home page lists; a few leaves where there are none."""
        home = int(self._web.host_start[host])
        version = self._timeline.version(home, t)
        entries = [
            (self._words.topic(one.topic).title(one.key), self._paths.article_path(one), one.published_s)
            for one in self._timeline.listed(home, t)
        ]
        if not entries:
            pages = self.sitemap_pages(host, t)
            for page in pages[self._web.kind[pages] == Kind.LEAF][:_STANDING_ITEMS].tolist():
                title = self._paths.topic(page).title(int(self._web.key[page]))
                entries.append((title, self._paths.path(page), self._timeline.version(page, t).since_s))
        text = (self._rss if host % 2 else self._atom)(host, entries)
        kind = "rss" if host % 2 else "atom"
        etag, modified_s = None, None
        if self._web.has_validators[host]:
            # leaves change on their own: only the listed articles are covered by the home page's version
            tag = mix(self._web.spec.seed, 51, host, *(round(at_s * 1000) for _, _, at_s in entries))
            etag, modified_s = f'"{tag:016x}"', max([version.since_s, *(at_s for _, _, at_s in entries)])
        return Answer(200, text.encode(), f"application/{kind}+xml; charset=utf-8", etag=etag, modified_s=modified_s)

    def _rss(self, host: int, entries: list[tuple[str, str, float]]) -> str:
        root = f"http://{self._hosts[host]}"
        rows = "".join(
            f"<item><title>{title}</title><link>{root}{path}</link><guid>{root}{path}</guid>"
            f"<pubDate>{formatdate(at_s, usegmt=True)}</pubDate></item>\n"
            for title, path, at_s in entries
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>\n'
            f"<title>{root}</title><link>{root}/</link><description>What is new</description>\n"
            f"{rows}</channel></rss>\n"
        )

    def _atom(self, host: int, entries: list[tuple[str, str, float]]) -> str:
        root = f"http://{self._hosts[host]}"
        newest = max((at_s for _, _, at_s in entries), default=self._web.spec.start_s)
        rows = "".join(
            f'<entry><title>{title}</title><id>{root}{path}</id><link href="{root}{path}"/>'
            f"<updated>{date(at_s)}</updated></entry>\n"
            for title, path, at_s in entries
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
            f'<title>{root}</title><id>{root}/</id><link rel="alternate" href="{root}/"/>'
            f"<updated>{date(newest)}</updated>\n{rows}</feed>\n"
        )
