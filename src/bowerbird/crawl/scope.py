"""Which URLs belong to this crawl: by host or registered domain of the seeds, patterns, and depth."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bowerbird.model.errors import ConfigError
from bowerbird.web.domain import registered_domain
from bowerbird.web.url import host_of

_PLAIN_HOST = re.compile(r"https?://([a-z0-9.-]*\.[a-z][a-z0-9-]*)(?::\d+)?(?:[/?#]|$)").match
_FEW_NAMES = 32
SCOPES = ("host", "domain", "anywhere")


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """The settings of a scope."""

    scope: str = "domain"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Scope:
    """Says whether a canonical URL may enter the crawl.

    >>> scope = Scope(ScopeRules("domain"), ["https://www.example.org/"])
    >>> scope.admits("https://docs.example.org/a"), scope.admits("https://example.com/")
    (True, False)
    """

    def __init__(self, rules: ScopeRules, seeds: Iterable[str] = ()) -> None:
        if rules.scope not in SCOPES:
            raise ConfigError(f"scope = {rules.scope!r}: must be one of {', '.join(SCOPES)}.")
        self.rules = rules
        self._include = _compile(rules.include, "include")
        self._exclude = _compile(rules.exclude, "exclude")
        self._names: set[str] = set()
        self._hosts: dict[str, bool] = {}
        self._endings: tuple[str, ...] | None = None
        self.extend(seeds)

    def extend(self, seeds: Iterable[str]) -> None:
        """More seeds: their hosts or domains belong to the crawl too."""
        for seed in seeds:
            host = host_of(seed)
            self._names.add(host if self.rules.scope == "host" else registered_domain(host))
        self._hosts.clear()
        self._endings = (
            tuple(self._names) if self.rules.scope != "anywhere" and len(self._names) <= _FEW_NAMES else None
        )

    def surely_excludes(self, href: str) -> bool:
        """A quick look at an absolute link as written: True only for a plain host name that is not of the crawl.

        >>> scope = Scope(ScopeRules("domain"), ["https://www.example.org/"])
        >>> scope.surely_excludes("https://example.com/"), scope.surely_excludes("https://docs.example.org/")
        (True, False)
        """
        if self._endings is None:
            return False
        plain = _PLAIN_HOST(href)
        return plain is not None and not plain[1].endswith(self._endings)

    def admits(self, url: str) -> bool:
        """May this URL enter the crawl?"""
        if self.rules.scope != "anywhere":
            start = url.index("//") + 2
            origin = url[start : url.index("/", start)]
            known = self._hosts.get(origin)
            if known is None:
                host = host_of(url)
                known = (host if self.rules.scope == "host" else registered_domain(host)) in self._names
                if len(self._hosts) > 100_000:
                    self._hosts.clear()
                self._hosts[origin] = known
            if not known:
                return False
        if self._exclude is not None and self._exclude.search(url):
            return False
        return self._include is None or self._include.search(url) is not None


def _compile(patterns: tuple[str, ...], key: str) -> re.Pattern[str] | None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"{key}: {pattern!r} is not a regular expression ({error}).") from error
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
