"""What a world is made of. Two worlds of equal specs are equal to the byte."""

from __future__ import annotations

from dataclasses import dataclass, fields

from bowerbird.model.errors import ConfigError

DAY_S = 86_400.0
START_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSpec:
    """Every knob of a world; a share is of hosts, pages, links or changes, as its comment says."""

    seed: int = 1
    start_s: float = START_S
    frozen: bool = False  # nothing changes, appears or disappears

    hosts: int = 20
    pages: int = 2_000  # at the start, over all hosts
    topics: int = 12
    seed_hosts: int = 3  # whose home pages are the seeds
    host_skew: float = 0.8  # sizes of hosts ~ rank ** -skew
    hub_share: float = 0.03  # of pages
    mean_links: int = 20  # a page, without navigation
    nofollow_share: float = 0.02  # of links
    dead_link_share: float = 0.02  # of links: they answer 404
    redirect_share: float = 0.02  # of pages
    near_duplicate_share: float = 0.04  # of pages: half print versions, half mirrors on other hosts

    change_mix: tuple[tuple[float, float], ...] = ((0.70, 0.0), (0.20, 0.1), (0.08, 1.0), (0.02, 24.0))
    """(share of pages, changes per day); rates above zero are spread log-normally about the given one."""
    significant_share: float = 0.4  # of changes: the text changes, not only the page's furniture
    gone_share: float = 0.03  # of pages: they disappear after a while
    gone_after_days: float = 14.0  # mean of that while

    articles_per_day: float = 100.0  # new pages, over all hosts
    listed_days: float = 2.0  # how long a hub lists an article
    listed_most: int = 20  # how many a hub lists at once
    article_clicks: float = 200.0  # mean of all clicks an article ever gets
    decay_per_day: float = 1.0  # median over topics of the rate mu at which interest decays
    clicks_per_day: float = 20_000.0  # on the initial pages together

    trap_share: float = 0.1  # of hosts, but each of the four kinds at least once
    disallow_share: float = 0.3  # of hosts: one section is disallowed by robots.txt
    crawl_delay_share: float = 0.1  # of hosts
    crawl_delay_s: float = 1.0
    sitemap_share: float = 0.7  # of hosts
    sitemap_urls: int = 1_000  # in one sitemap; larger hosts have an index
    validator_share: float = 0.9  # of hosts: ETag and Last-Modified
    gzip_share: float = 0.5  # of hosts

    mean_words: int = 300  # of text on a page
    page_bytes: int = 8_000  # mean; pages are padded with style to get there

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_share") and not 0 <= value <= 1:
                raise ConfigError(f"world: {field.name} is {value}, but a share is from 0 to 1")
        if self.hosts < 1 or self.topics < 1 or self.mean_links < 0 or self.mean_words < 1:
            raise ConfigError("world: hosts, topics and mean_words must be at least 1, mean_links at least 0")
        if not self.hosts <= self.pages < 1 << 30:
            raise ConfigError(
                f"world: pages is {self.pages}, but every one of {self.hosts} hosts has at least one page"
            )
        if self.redirect_share + self.near_duplicate_share > 0.9:
            raise ConfigError("world: redirects and near duplicates together must leave some pages (0.9)")
        if any(share < 0 or rate < 0 for share, rate in self.change_mix) or not self.change_mix:
            raise ConfigError(f"world: change_mix {self.change_mix} needs shares and rates of 0 or more")
        if self.listed_most < 1 or self.listed_days <= 0 or self.sitemap_urls < 1:
            raise ConfigError("world: listed_most, listed_days and sitemap_urls must be above 0")
