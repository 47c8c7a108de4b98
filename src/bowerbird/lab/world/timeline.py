"""What happens in time: changes of pages, new articles, and people's interest in both.

Time is cut into blocks (changes) and days (articles); what happens in one depends on its keys alone, so any
moment can be asked for in any order. Whatever is kept here is a memory of what was worked out, never a state.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from bowerbird.lab.world.chance import generator, mix, mix_array, step, unit
from bowerbird.lab.world.spec import DAY_S
from bowerbird.lab.world.web import Ints, Kind, Web

_DAY_BITS = 20  # an article is page number  pages + day * 2**20 + its place in the day
_BLOCK_CHANGES = 4.0  # expected in one block
_YEAR_S = 365 * DAY_S


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A page became different; a significant change alters its text or announces a page."""

    at_s: float
    significant: bool


@dataclass(frozen=True, slots=True)
class Article:
    """A page that appears at `published_s`; `clicks` is what it will get over its whole life."""

    page: int
    host: int
    section: int
    topic: int
    published_s: float
    clicks: float
    key: int
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """Which state of a page holds at a time: when it began, and keys of its text and of all of it."""

    since_s: float
    text_key: int
    full_key: int


class Listing:
    """The articles of one section or host in the order of their appearance."""

    __slots__ = ("articles", "times")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.articles: list[Article] = []


class Timeline:
    """Everything about a web that depends on time."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._spec = web.spec
        self._seed = web.spec.seed
        self._significant = round(self._spec.significant_share * 2048)
        self._listed_s = self._spec.listed_days * DAY_S
        spread = generator(self._seed, 21).normal(0.0, 0.7, self._spec.topics)
        self._decay = (self._spec.decay_per_day / DAY_S * np.exp(spread)).tolist()
        counts = web.host_sections
        self._section_host = np.repeat(np.arange(self._spec.hosts), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        self._section_number = np.arange(len(first)) - first
        weights = web.host_weight[self._section_host] / (self._section_number + 1)
        self._section_edges = np.cumsum(weights) / weights.sum()
        self._days: list[list[Article]] = []
        self._by_section: defaultdict[tuple[int, int], Listing] = defaultdict(Listing)
        self._by_host: defaultdict[int, Listing] = defaultdict(Listing)
        self._lock = threading.Lock()

    def clamp(self, t: float) -> float:
        """The time that counts: a frozen world stays at its start."""
        return self._spec.start_s if self._spec.frozen else max(t, self._spec.start_s)

    def decay(self, topic: int) -> float:
        """mu of a topic: interest in an article falls by this share per second."""
        return float(self._decay[topic])

    # Articles

    def article(self, page: int) -> Article | None:
        """The article that a page number stands for, if there is one (published or not)."""
        day, place = divmod(page - self._web.size, 1 << _DAY_BITS)
        if day < 0 or self._spec.articles_per_day == 0 or self._spec.frozen:
            return None
        self._make_days(day)
        batch = self._days[day]
        return batch[place] if place < len(batch) else None

    def article_number(self, day: int, place: int) -> int:
        """The page number of the article that came `place`-th on a day."""
        return self._web.size + (day << _DAY_BITS) + place

    def place(self, page: int) -> tuple[int, int]:
        """(day, place in the day) of an article's page number."""
        return divmod(page - self._web.size, 1 << _DAY_BITS)

    def articles(self, t0: float, t1: float) -> list[Article]:
        """The articles published in (t0, t1], in order."""
        if self._spec.frozen or self._spec.articles_per_day == 0 or t1 < self._spec.start_s:
            return []
        first = max(0, int((t0 - self._spec.start_s) // DAY_S))
        last = int((t1 - self._spec.start_s) // DAY_S)
        self._make_days(last)
        batches = self._days[first : last + 1]
        return [article for batch in batches for article in batch if t0 < article.published_s <= t1]

    def host_articles(self, host: int, t: float) -> list[Article]:
        """All articles a host has published by `t`, in order."""
        self._make_days_until(t)
        listing = self._by_host.get(host)
        return listing.articles[: bisect_right(listing.times, t)] if listing else []

    def _make_days_until(self, t: float) -> None:
        if not self._spec.frozen and self._spec.articles_per_day > 0:
            self._make_days(int((t - self._spec.start_s) // DAY_S))

    def _make_days(self, day: int) -> None:
        if day < len(self._days):
            return
        with self._lock:
            while len(self._days) <= day:
                self._days.append(self._make_day(len(self._days)))

    def _make_day(self, day: int) -> list[Article]:
        web, spec = self._web, self._spec
        rng = generator(self._seed, 22, day)
        count = min(int(rng.poisson(spec.articles_per_day)), (1 << _DAY_BITS) - 1)
        times = (spec.start_s + (day + np.sort(rng.random(count))) * DAY_S).tolist()
        last = len(self._section_edges) - 1
        where = np.minimum(np.searchsorted(self._section_edges, rng.random(count), side="right"), last)
        clicks = (spec.article_clicks * np.exp(rng.normal(-0.72, 1.2, count))).tolist()
        keys = mix_array(mix(self._seed, 23, day), np.arange(count)).tolist()
        wanted = min(10, spec.mean_links)
        picks = rng.random((count, wanted)) ** 3
        batch = []
        for place in range(count):
            host = int(self._section_host[where[place]])
            section = int(self._section_number[where[place]])
            topic = int(web.section_topic[host, section])
            low, high = int(web.topic_start[topic]), int(web.topic_start[topic + 1])
            links = web.by_topic[low + (picks[place] * (high - low)).astype(np.int64)].tolist()
            listing = self._by_section[host, section]
            if listing.articles and keys[place] >> 63:
                links.append(listing.articles[-1].page)
            number = self.article_number(day, place)
            article = Article(number, host, section, topic, times[place], clicks[place], keys[place], tuple(links))
            for into in (listing, self._by_host[host]):
                # the article first: a reader in another thread looks it up by its time
                into.articles.append(article)
                into.times.append(article.published_s)
            batch.append(article)
        return batch

    # Hubs

    def _listing(self, page: int) -> Listing | None:
        """What a hub can list: home pages all of the host's articles, roots those of their section."""
        web = self._web
        if page >= web.size or web.kind[page] != Kind.HUB:
            return None
        host = int(web.host[page])
        local = page - int(web.host_start[host])
        if local == 0:
            return self._by_host.get(host)
        return self._by_section.get((host, local - 1)) if local <= web.host_sections[host] else None

    def listed(self, page: int, t: float) -> list[Article]:
        """The articles a hub links to at a time, newest first."""
        self._make_days_until(t)
        listing = self._listing(page)
        if listing is None:
            return []
        end = bisect_right(listing.times, t)
        begin = max(bisect_right(listing.times, t - self._listed_s), end - self._spec.listed_most)
        return listing.articles[begin:end][::-1]

    def _drops(self, listing: Listing, at: int) -> bool:
        """Does article number `at` leave by age, rather than pushed out by a newer one?"""
        pusher = at + self._spec.listed_most
        return pusher >= len(listing.times) or listing.times[pusher] > listing.times[at] + self._listed_s

    def _listing_changes(self, page: int, t0: float, t1: float) -> list[Change]:
        self._make_days_until(t1)
        listing = self._listing(page)
        if listing is None:
            return []
        times = listing.times
        changes = [Change(at_s, significant=True) for at_s in times[bisect_right(times, t0) : bisect_right(times, t1)]]
        low = bisect_right(times, t0 - self._listed_s)
        for at in range(low, bisect_right(times, t1 - self._listed_s)):
            if self._drops(listing, at):
                changes.append(Change(times[at] + self._listed_s, significant=False))
        return changes

    def _listing_since(self, page: int, t: float) -> float:
        """When what a hub lists became what it is at `t`; 0 if it never listed anything."""
        listing = self._listing(page)
        if listing is None:
            return 0.0
        end = bisect_right(listing.times, t)
        since = listing.times[end - 1] if end else 0.0
        at = bisect_right(listing.times, t - self._listed_s) - 1
        while at >= 0 and listing.times[at] + self._listed_s > since:
            if self._drops(listing, at):
                return listing.times[at] + self._listed_s
            at -= 1
        return since

    # Changes

    def _source(self, page: int) -> tuple[int, float, float]:
        """The page whose changes these are, its origin in time and its rate per second."""
        web = self._web
        if page < web.size:
            if web.kind[page] in (Kind.PRINT, Kind.MIRROR):
                page = int(web.other[page])
            return page, self._spec.start_s, float(web.rate_per_day[page]) / DAY_S
        article = self.article(page)
        if article is None:
            return page, self._spec.start_s, 0.0
        draw, rate = unit(step(article.key)) * sum(share for share, _ in self._spec.change_mix), 0.0
        for share, rate in self._spec.change_mix:  # noqa: B007  the last rate is meant
            draw -= share
            if draw < 0:
                break
        return page, article.published_s, rate / DAY_S

    def rate_per_day(self, page: int) -> float:
        """The expected number of a page's own changes in a day."""
        return self._source(page)[2] * DAY_S

    def _block(self, page: int, rate: float, block: int) -> list[tuple[float, bool]]:
        """The changes in one block, as (seconds since the page's origin, significant)."""
        at = block * _BLOCK_CHANGES / rate
        end = (block + 1) * _BLOCK_CHANGES / rate
        state = mix(self._seed, 24, page, block)
        found: list[tuple[float, bool]] = []
        while True:
            state = step(state)
            at -= math.log(1.0 - unit(state)) / rate
            if at >= end:
                return found
            found.append((at, (state & 2047) < self._significant))

    def changes(self, page: int, t0: float, t1: float) -> list[Change]:
        """The changes of a page in (t0, t1], in order."""
        t0, t1 = self.clamp(t0), self.clamp(t1)
        source, origin, rate = self._source(page)
        found = self._listing_changes(page, t0, t1)
        if rate > 0 and t1 > max(t0, origin):
            span = _BLOCK_CHANGES / rate
            first = max(0, int((t0 - origin) // span))
            for block in range(first, int((t1 - origin) // span) + 1):
                for age, significant in self._block(source, rate, block):
                    if t0 < origin + age <= t1:
                        found.append(Change(origin + age, significant))
        return sorted(found)

    def version(self, page: int, t: float) -> Version:
        """The state of a page at a time."""
        t = self.clamp(t)
        source, origin, rate = self._source(page)
        since, text, full = origin, 0, 0
        if source < self._web.size:
            since -= unit(int(self._web.key[source])) * _YEAR_S
        if rate > 0 and t > origin:
            for block in range(int((t - origin) * rate / _BLOCK_CHANGES), -1, -1):
                for place, (age, significant) in reversed(list(enumerate(self._block(source, rate, block)))):
                    if age > t - origin:
                        continue
                    key = (block << 8 | place) + 1
                    if not full:
                        since, full = origin + age, key
                    if significant:
                        text = key
                        break
                if text or (full and not self._significant):
                    break
        listed = self.listed(page, t)
        since = max(since, self._listing_since(page, t))
        if listed:
            full = mix(full, listed[0].page, listed[-1].page)
        return Version(since, text, full)

    # Life and interest

    def alive(self, pages: Ints, t: float) -> Ints:
        """Those of the initial pages that have not disappeared at a time."""
        return pages[self._web.gone_s[pages] > self.clamp(t)]

    def interest(self, page: int, t: float) -> float:
        """Expected clicks per second on a page at a time."""
        t = self.clamp(t)
        web = self._web
        if page < web.size:
            if web.gone_s[page] <= t:
                return 0.0
            return float(web.popularity[page]) * self._spec.clicks_per_day / DAY_S
        article = self.article(page)
        if article is None or t < article.published_s:
            return 0.0
        mu = self.decay(article.topic)
        return article.clicks * mu * math.exp(-mu * (t - article.published_s))
