"""Addresses: from a page's number to its path and back, without a table of paths."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bowerbird.lab.world.spec import DAY_S
from bowerbird.lab.world.timeline import Article, Timeline
from bowerbird.lab.world.web import MAX_SECTIONS, Kind, Web
from bowerbird.lab.world.words import ADJECTIVES, Topic, Vocabulary, title_words

_LAST_NUMBER = re.compile(r"(\d{1,10})(?:\.html)?$")
_ARTICLE = re.compile(r"/[a-z0-9-]+/(\d{4})/(\d\d)/(\d\d)/[a-z]+-[a-z]+-(\d{1,7})\.html")


class Paths:
    """Which path a page has on its host, and which page a path leads to."""

    def __init__(self, web: Web, words: Vocabulary, timeline: Timeline) -> None:
        self._web = web
        self._words = words
        self._timeline = timeline
        topics = range(web.spec.topics)
        names = [words.name(topic) for topic in topics]
        self.prefixes = [
            [f"/{name}/" if section < len(names) else f"/{name}-{section}/" for section in range(MAX_SECTIONS)]
            for name in names
        ]
        """The folder of a section, by topic and number of the section."""

    def prefix(self, host: int, section: int) -> str:
        """The folder of one section of a host."""
        return self.prefixes[int(self._web.section_topic[host, section])][section]

    def topic(self, page: int) -> Topic:
        """What a page is about."""
        return self._words.topic(self.topic_number(page))

    def topic_number(self, page: int) -> int:
        """The number of a page's topic."""
        article = None if page < self._web.size else self._timeline.article(page)
        return article.topic if article else int(self._web.topic[page])

    def slug(self, topic: Topic, key: int) -> str:
        """The words in the path of the page with this key."""
        adjective, noun, _ = title_words(key)
        return f"{ADJECTIVES[adjective]}-{topic.nouns[noun]}"

    def path(self, page: int) -> str:
        """The path, with query, of a page."""
        web = self._web
        if page >= web.size:
            article = self._timeline.article(page)
            return "" if article is None else self.article_path(article)
        host, section = int(web.host[page]), int(web.section[page])
        local = page - int(web.host_start[host])
        topic = int(web.topic[page])
        folder = self.prefix(host, section)
        if web.kind[page] == Kind.HUB:
            return self.hub_path(host, local, folder)
        if web.kind[page] == Kind.PRINT:
            folder = "/print/"
        elif web.by_query[host]:
            return f"{folder}item?id={local}"
        return f"{folder}{self.slug(self._words.topic(topic), int(web.key[page]))}-{local}.html"

    def hub_path(self, host: int, local: int, folder: str) -> str:
        """The path of a hub: a home page, the root of a section, or a further page of it."""
        if local == 0:
            return "/"
        return folder if local <= self._web.host_sections[host] else f"{folder}more-{local}.html"

    def article_path(self, article: Article) -> str:
        """The path of an article: it has the date."""
        date = datetime.fromtimestamp(article.published_s, UTC).strftime("%Y/%m/%d")
        folder = self.prefixes[article.topic][article.section]
        slug = self.slug(self._words.topic(article.topic), article.key)
        return f"{folder}{date}/{slug}-{self._timeline.place(article.page)[1]}.html"

    def find(self, host: int, path: str, t: float) -> int | None:
        """The page at a path, if there is or was one by time `t`."""
        web = self._web
        start = int(web.host_start[host])
        if path == "/":
            return start
        if path.endswith("/"):
            return next((page for page in web.section_roots(host) if self.path(page) == path), None)
        dated = _ARTICLE.fullmatch(path)
        if dated:
            return self._find_article(host, path, t, dated)
        number = _LAST_NUMBER.search(path)
        if number is None or int(number[1]) >= web.host_pages[host]:
            return None
        page = start + int(number[1])
        return page if self.path(page) == path else None

    def _find_article(self, host: int, path: str, t: float, dated: re.Match[str]) -> int | None:
        year, month, day, place = map(int, dated.groups())
        start_s = self._web.spec.start_s
        try:
            midnight_s = datetime(year, month, day, tzinfo=UTC).timestamp()
        except ValueError:
            return None
        # a world may begin at any hour: its days then reach over two dates
        first = int((midnight_s - start_s) // DAY_S)
        for number in {first, int((midnight_s + DAY_S - 1 - start_s) // DAY_S)}:
            if number < 0 or start_s + number * DAY_S > t or place >= 1 << 20:
                continue
            article = self._timeline.article(self._timeline.article_number(number, place))
            there = article is not None and article.host == host and article.published_s <= t
            if article and there and self.article_path(article) == path:
                return article.page
        return None
