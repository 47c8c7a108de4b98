"""Links as pages write them: relative and absolute, with words that describe what they lead to."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.world.chance import mix_array
from bowerbird.lab.world.paths import Paths
from bowerbird.lab.world.timeline import Article
from bowerbird.lab.world.web import NOFOLLOW, Kind, Small, Web
from bowerbird.lab.world.words import ADJECTIVES, Vocabulary, site_name

_TARGET = NOFOLLOW - 1


class Anchors:
    """Writes `<a>` elements for one set of host addresses."""

    def __init__(self, web: Web, words: Vocabulary, paths: Paths, hosts: Sequence[str]) -> None:
        self._web = web
        self._words = words
        self._paths = paths
        self._hosts = hosts
        self._names: dict[int, str] = {}

    def site(self, host: int) -> str:
        """The name of a site."""
        name = self._names.get(host)
        if name is None:
            topic = self._words.topic(int(self._web.section_topic[host, 0]))
            name = self._names[host] = site_name(int(self._web.host_key[host]), topic)
        return name

    def write(self, packed: Small, host: int, folder: str | None, state: int) -> list[str]:
        """One element for each packed link on a page of `host`; `folder` is where relative links start.

        A page one level down has folder "/x/" and reaches another by "../y"; with None there are none.
        """
        web = self._web
        marked = packed ^ (packed >> 31)  # the complement of those below zero
        targets = marked & _TARGET
        hosts = web.host[targets]
        sections = web.section[targets]
        columns = zip(
            (packed < 0).tolist(),
            (marked >= NOFOLLOW).tolist(),
            hosts.tolist(),
            sections.tolist(),
            web.section_topic[hosts, sections].tolist(),
            (targets - web.host_start[hosts]).tolist(),
            web.kind[targets].tolist(),
            web.topic[targets].tolist(),
            web.key[targets].tolist(),
            (mix_array(state, targets) & 15).tolist(),
            web.by_query[hosts].tolist(),
            strict=True,
        )
        prefixes, topics, authorities = self._paths.prefixes, self._words.topic, self._hosts
        written = []
        for dead, nofollow, to, section, place, local, kind, number, key, style, by_query in columns:
            prefix = prefixes[place][section]
            adjective = ADJECTIVES[key & 63]
            noun = topics(number).nouns[(key >> 6) & 31]
            text = f"{adjective} {noun}"
            if dead:
                path = f"{prefix}{adjective}-{noun}-lost-{local}.html"
            elif kind == Kind.HUB:
                path = self._paths.hub_path(to, local, prefix)
                text = f"More {prefix[1:-1]}" if local else self.site(to)
            elif kind == Kind.PRINT:
                path = f"/print/{adjective}-{noun}-{local}.html"
            elif by_query:
                path = f"{prefix}item?id={local}"
            else:
                path = f"{prefix}{adjective}-{noun}-{local}.html"
            if to != host or style == 0:
                path = f"http://{authorities[to]}{path}"
            elif style == 1:
                path = f"//{authorities[to]}{path}"
            elif style < 5 and folder is not None:
                path = self._relative(path, folder)
            if style == 15:
                path += "#more"
            rel = ' rel="nofollow"' if nofollow else ""
            written.append(f'<a href="{path}"{rel}>{text}</a>')
        return written

    @staticmethod
    def _relative(path: str, folder: str) -> str:
        if folder == "/":
            return f".{path}"
        return path[len(folder) :] or "./" if path.startswith(folder) else f"..{path}"

    def articles(self, articles: Sequence[Article]) -> list[str]:
        """Elements for articles of the same host."""
        return [
            f'<a href="{self._paths.article_path(article)}">{self._words.topic(article.topic).title(article.key)}</a>'
            for article in articles
        ]

    def navigation(self, host: int) -> str:
        """The links that every page of a host has."""
        items = [f'<a href="/">{self.site(host)}</a>']
        for section, _ in enumerate(self._web.section_roots(host)):
            prefix = self._paths.prefix(host, section)
            items.append(f'<a href="{prefix}">{prefix[1:-1].capitalize()}</a>')
        return "\n".join(items)
