"""Crawl folders with a past of hubs written by hand: which visit found what, and when."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from tests.crawl.crawling import make_crawl

from bowerbird.crawl.hub_study import make_hub_study
from bowerbird.crawl.settings import load_settings
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import HubHint
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository


class Past:
    """A crawl folder with a past written by hand: URLs, visits and links at times of one's choice."""

    def __init__(self, root: Path, sections: dict[str, dict[str, object]] | None = None) -> None:
        make_crawl(root, ["http://seed.example/"], sections)
        self.folder = CrawlFolder(root)
        self.settings = load_settings(self.folder.config)
        self.repository = Repository(self.folder, write=True)
        self.now = time.time()

    def add(self, url: str, at: float, source: int = -1, kind: UrlKind = UrlKind.PAGE) -> int:
        """The row of a URL, a link farther than what led there."""
        depth = 0 if source < 0 else int(self.repository.table.columns["depth"][source]) + 1
        return int(self.repository.add_urls([url], at=at, source=source, kind=kind, depth=depth)[0][0])

    def visit(self, row: int, at: float, found: tuple[str, ...] = (), still: tuple[int, ...] = ()) -> list[int]:
        """A fetch of a URL that finds new links beside some known ones; the rows of the new ones."""
        first = self.repository.table.columns["fetches"][row] == 0
        kind = FetchKind.NEW if first else FetchKind.REFRESH
        record = FetchRecord(row, kind, at, 1.0, 1.0, "{}", at, Outcome.OK, UrlState.FETCHED, content_hash=int(at))
        self.repository.record(record)
        rows = [self.add(url, at, row) for url in found]
        self.repository.record_links(row, np.array([*rows, *still], dtype=np.int64), at)
        return rows

    def study(self) -> HubStudy:
        """Of all that was written, made and kept."""
        self.repository.commit()
        return make_hub_study(self.folder, self.settings, "echo", self.now)


def urls(name: str, count: int, host: str = "a.example") -> tuple[str, ...]:
    """So many URLs of a host."""
    return tuple(f"http://{host}/{name}-{n}" for n in range(count))


def make_past(root: Path, sections: dict[str, dict[str, object]] | None = None) -> Past:
    """A busy feed, a quiet one, a main page and a sitemap, visited for two days; the feed told of WebSub."""
    past = Past(root, sections)
    t = past.now - 48 * 3600.0
    main = past.add("http://a.example/", t)
    busy, quiet = (past.add(f"http://{host}.example/feed", t, kind=UrlKind.FEED) for host in "ab")
    sitemap = past.add("http://b.example/sitemap.xml", t, kind=UrlKind.SITEMAP)
    for row in (main, quiet, sitemap):
        past.visit(row, t, urls(f"old-{row}", 3))
    shown = past.visit(busy, t, urls("old", 3))
    listed: tuple[int, ...] = ()
    for nth in range(1, 9):
        at = t + nth * 5 * 3600.0
        shown = past.visit(busy, at, urls(f"news-{nth}", 6), tuple(shown[:1]))
        listed = (*shown, *listed)  # the main page shows all
        past.visit(main, at + 60, (), listed)
        past.visit(quiet, at, urls(f"note-{nth}", int(nth == 4), "b.example"))
        past.visit(sitemap, at)
        for row in shown[:5]:
            past.visit(row, at + 600)
    past.visit(busy, t + 46 * 3600.0, urls("last", 6))  # nothing is left of the visit before
    past.repository.record_hub_hint(HubHint(busy, 3600.0, "http://hub.example/"))
    past.repository.commit()
    return past
