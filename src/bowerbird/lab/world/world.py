"""The world: every answer it gives, and the truth about it that an experiment is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bowerbird.lab.world import traps
from bowerbird.lab.world.listings import Listings
from bowerbird.lab.world.pages import Answer, Pages
from bowerbird.lab.world.paths import Paths
from bowerbird.lab.world.reach import Walk
from bowerbird.lab.world.spec import WorldSpec
from bowerbird.lab.world.timeline import Article, Change, Timeline
from bowerbird.lab.world.traps import Trap, TrapKind
from bowerbird.lab.world.web import Ints, Kind, Web, live_targets
from bowerbird.lab.world.words import Vocabulary

ADDRESSES = 250  # loopback addresses in use; a further host has one of them again, on the next port
DEFAULT_PORT = 8800


def loopback(host: int, port: int = DEFAULT_PORT) -> tuple[str, int]:
    """The address and port of a host when hosts have addresses of their own.

    >>> loopback(0), loopback(251)
    (('127.0.1.1', 8800), ('127.0.1.2', 8801))
    """
    return f"127.0.1.{host % ADDRESSES + 1}", port + host // ADDRESSES


class World:
    """A web that is a pure function of its spec and of time (seconds since 1970).

    A page is known by its number or by (host, path); a host by its authority, as in `hosts`.

    >>> world = World(WorldSpec(hosts=2, pages=20, frozen=True))
    >>> world.page(world.hosts[0], "/", world.spec.start_s).status
    200
    """

    def __init__(self, spec: WorldSpec, hosts: Sequence[str] | None = None, web: Web | None = None) -> None:
        self.spec = spec
        self.web = web or Web(spec)
        self.hosts: tuple[str, ...] = tuple(hosts or ("{}:{}".format(*loopback(host)) for host in range(spec.hosts)))
        self._number = {host: number for number, host in enumerate(self.hosts)}
        self.words = Vocabulary(spec.seed, spec.topics)
        self.timeline = Timeline(self.web)
        self.paths = Paths(self.web, self.words, self.timeline)
        self.pages = Pages(self.web, self.words, self.timeline, self.paths, self.hosts)
        self.listings = Listings(self.web, self.words, self.timeline, self.paths, self.hosts)

    def at(self, hosts: Sequence[str]) -> World:
        """The same world with its hosts at other addresses."""
        return World(self.spec, hosts, self.web)

    # What a client sees

    def page(self, host: str, path: str, t: float) -> Answer:
        """What a host answers to a path (with its query) at a time."""
        return self.answer(self._number[host], path, t)

    def answer(self, host: int, path: str, t: float) -> Answer:
        """As `page`, by the number of the host."""
        t = self.timeline.clamp(t)
        return self.listings.answer(host, path, t) or self.pages.answer(host, path, t)

    def seeds(self) -> list[str]:
        """The URLs to start from: home pages of the largest hosts."""
        return [self.url(page) for page in self._seed_pages()]

    def _seed_pages(self) -> list[int]:
        order = np.argsort(-self.web.host_pages, kind="stable")[: max(1, self.spec.seed_hosts)]
        return [int(self.web.host_start[host]) for host in order]

    # Pages and their addresses

    def find(self, host: str, path: str, t: float) -> int | None:
        """The number of the page at an address, if there is or was one by `t` (also a redirect)."""
        return self.paths.find(self._number[host], path, self.timeline.clamp(t))

    def location(self, page: int) -> tuple[str, str]:
        """(host, path) of a page."""
        article = self.timeline.article(page) if page >= self.web.size else None
        host = article.host if article else int(self.web.host[page])
        return self.hosts[host], self.paths.path(page)

    def url(self, page: int) -> str:
        """The URL of a page."""
        return "http://{}{}".format(*self.location(page))

    def topic(self, page: int) -> int:
        """The number of a page's topic."""
        return self.paths.topic_number(page)

    def topic_name(self, topic: int) -> str:
        """What a topic is called."""
        return self.words.name(topic)

    def original(self, page: int) -> int | None:
        """The page that this one is a print version or a mirror of."""
        copied = page < self.web.size and self.web.kind[page] in (Kind.PRINT, Kind.MIRROR)
        return int(self.web.other[page]) if copied else None

    def text(self, page: int, t: float) -> str:
        """The main text of a page at a time, without links."""
        words = self.pages.words(page, self.timeline.clamp(t))
        return "".join(words).replace("</p>\n<p>", "\n") + "."

    def links(self, page: int, t: float, *, nofollow: bool = False) -> list[int]:
        """The pages that a page's body links to at a time (navigation and traps are not counted)."""
        if page >= self.web.size:
            article = self.timeline.article(page)
            return list(article.links) if article else []
        targets: list[int] = live_targets(self.web.packed_links(page), nofollow).tolist()
        listed = self.timeline.listed(page, self.timeline.clamp(t))
        return targets + [article.page for article in listed]

    def hubs(self) -> Ints:
        """The pages that announce others."""
        return np.flatnonzero(self.web.kind == Kind.HUB)

    # Robots and traps

    def disallowed(self, host: str) -> list[str]:
        """The path prefixes that a host's robots.txt excludes."""
        return self.listings.disallowed(self._number[host])

    def crawl_delay_s(self, host: str) -> float | None:
        """The Crawl-delay in a host's robots.txt."""
        return self.listings.crawl_delay_s(self._number[host])

    def traps(self) -> list[Trap]:
        """Every trap there is."""
        kinds = ((host, TrapKind(kind)) for host, kind in enumerate(self.web.trap.tolist()) if kind >= 0)
        return [Trap(self.hosts[host], kind, traps.ENTRIES[kind], traps.PATTERNS[kind]) for host, kind in kinds]

    def is_trap(self, host: str, path: str) -> bool:
        """Does an address belong to a trap?"""
        return traps.match(int(self.web.trap[self._number[host]]), path) is not None

    # The truth

    def reachable(
        self, t0: float, *, near_duplicates: bool = True, nofollow: bool = False, sitemaps: bool = False
    ) -> set[tuple[str, str]]:
        """(host, path) of all pages that a polite crawler finds from the seeds while time stands still.

        They answer 200 and are HTML; redirects are followed but not counted, traps are left out.
        `nofollow`: links so marked are followed too. `sitemaps`: pages in sitemaps are found too.
        """
        pages = self.reachable_pages(t0, nofollow=nofollow, sitemaps=sitemaps).tolist()
        if not near_duplicates:
            pages = [page for page in pages if self.original(page) is None]
        return {self.location(page) for page in pages}

    def reachable_pages(
        self,
        t0: float,
        *,
        seeds: Iterable[int] | None = None,
        nofollow: bool = False,
        sitemaps: bool = False,
    ) -> Ints:
        """As `reachable`, as page numbers; `seeds` are page numbers too."""
        walk = Walk(self.web, self.timeline, self.listings, t0, nofollow=nofollow, sitemaps=sitemaps)
        start = self._seed_pages() if seeds is None else list(seeds)
        return walk.run(np.array(start, dtype=np.int64))

    def versions(self, page: int, t0: float, t1: float) -> list[Change]:
        """The changes of a page in (t0, t1]; for hubs also articles that are listed or drop off."""
        return self.timeline.changes(page, t0, t1)

    def rate_per_day(self, page: int) -> float:
        """Expected changes of a page's own in a day."""
        return self.timeline.rate_per_day(page)

    def gone_s(self, page: int) -> float:
        """When a page disappears; infinity if it stays."""
        return float(self.web.gone_s[page]) if page < self.web.size else float("inf")

    def popularity(self, page: int) -> float:
        """The share of the clicks on initial pages that a page gets; an article's share if it were new."""
        if page < self.web.size:
            return float(self.web.popularity[page])
        article = self.timeline.article(page)
        return article.clicks / max(self.spec.clicks_per_day, 1.0) if article else 0.0

    def interest(self, page: int, t: float) -> float:
        """Expected clicks per second on a page at a time; on an article they decay by its topic's mu."""
        return self.timeline.interest(page, t)

    def decay(self, topic: int) -> float:
        """mu of a topic, per second."""
        return self.timeline.decay(topic)

    def articles(self, t0: float, t1: float) -> list[Article]:
        """The pages that appear in (t0, t1], in order."""
        return self.timeline.articles(t0, t1)
