"""Which pages a crawler can come to: a walk over the arrays, without making any page."""

from __future__ import annotations

import numpy as np

from bowerbird.lab.world.listings import Listings
from bowerbird.lab.world.timeline import Article, Timeline
from bowerbird.lab.world.web import Flags, Ints, Kind, Web, live_targets


class Walk:
    """A walk from seeds at one moment, obeying robots.txt, along links and redirects and outside of traps."""

    def __init__(
        self, web: Web, timeline: Timeline, listings: Listings, t: float, *, nofollow: bool, sitemaps: bool
    ) -> None:
        self._web = web
        self._timeline = timeline
        self._listings = listings
        self._t = timeline.clamp(t)
        self._nofollow = nofollow
        self._sitemaps = sitemaps
        self._seen: Flags = np.zeros(web.size, dtype=np.bool_)
        self._hosts: set[int] = set()
        self._articles: dict[int, Article] = {}
        self._fresh: list[Article] = []

    def run(self, seeds: Ints) -> Ints:
        """The numbers of all pages that answer 200, articles last."""
        frontier = self._enter(seeds)
        while len(frontier) or self._fresh:
            frontier = self._expand(frontier)
        web = self._web
        pages = np.flatnonzero(self._seen & (web.kind != Kind.REDIRECT))
        return np.concatenate([pages, np.array(sorted(self._articles), dtype=np.int64)])

    def _enter(self, pages: Ints) -> Ints:
        """Those of `pages` that are new, allowed and there."""
        web = self._web
        pages = np.unique(pages)
        pages = pages[~self._seen[pages] & web.allowed[pages]]
        pages = self._timeline.alive(pages, self._t)
        self._seen[pages] = True
        return pages

    def _enter_article(self, article: Article) -> None:
        closed = int(self._web.disallowed_section[article.host])
        if article.page not in self._articles and article.section != closed:
            self._articles[article.page] = article
            self._fresh.append(article)

    def _expand(self, frontier: Ints) -> Ints:
        web = self._web
        moved = web.kind[frontier] == Kind.REDIRECT
        found = [web.other[frontier[moved]].astype(np.int64)]
        pages = frontier[~moved]
        counts = web.link_start[pages + 1] - web.link_start[pages]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        packed = web.links[np.repeat(web.link_start[pages], counts) + within]
        found.append(live_targets(packed, self._nofollow))
        printed = web.printed[pages].astype(np.int64)
        found.append(printed[printed >= 0])

        hosts = set(np.unique(web.host[pages]).tolist())
        fresh, self._fresh = self._fresh, []
        for article in fresh:
            hosts.add(article.host)
            found.append(np.array([link for link in article.links if link < web.size], dtype=np.int64))
            for link in article.links:
                earlier = self._timeline.article(link) if link >= web.size else None
                if earlier:
                    self._enter_article(earlier)
        for hub in pages[web.kind[pages] == Kind.HUB].tolist():
            for article in self._timeline.listed(hub, self._t):
                self._enter_article(article)
        for host in hosts - self._hosts:
            self._hosts.add(host)
            found.append(np.array([web.host_start[host], *web.section_roots(host)], dtype=np.int64))
            if self._sitemaps and web.has_sitemap[host]:
                found.append(self._listings.sitemap_pages(host, self._t))
                for article in self._listings.sitemap_articles(host, self._t):
                    self._enter_article(article)
        return self._enter(np.concatenate(found))
