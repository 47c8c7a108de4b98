"""What a person typed, understood: words, "phrases", -minus, site:host, lang:en. Anything else is words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bowerbird.index.analysis import tokenize

MAX_WORDS = 32

_PART = re.compile(r'(?P<minus>(?<![^\s])-)?(?:"(?P<phrase>[^"]*)(?:"|$)|(?P<word>[^\s"]+))')
_FILTER = re.compile(r"(?P<key>site|host|lang|language):(?P<value>.+)", re.IGNORECASE)
_CURLY = str.maketrans("“”„‟«»", '""""""')


@dataclass(frozen=True, slots=True)
class Clause:
    """Words that stand next to each other. `quoted`: the person insisted on it."""

    words: tuple[str, ...]
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query by its parts. A page must have every clause, or, where too few do, some of `loose`."""

    wanted: tuple[Clause, ...] = ()
    unwanted: tuple[Clause, ...] = ()
    sites: tuple[str, ...] = ()
    unwanted_sites: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Does it ask for nothing?"""
        return not (self.wanted or self.sites or self.languages)

    @property
    def loose(self) -> tuple[Clause, ...]:
        """The clauses with all but the quoted ones broken into single words."""
        parts = [
            part
            for clause in self.wanted
            for part in ((clause,) if clause.quoted else (Clause((word,)) for word in clause.words))
        ]
        return tuple(dict.fromkeys(parts))

    @property
    def words(self) -> tuple[str, ...]:
        """Every word that is wanted, once."""
        return tuple(dict.fromkeys(word for clause in self.wanted for word in clause.words))


def parse_query(text: str) -> ParsedQuery:
    """Understand a query. Never fails.

    >>> parse_query('red "small car" -used site:example.org').wanted
    (Clause(words=('red',), quoted=False), Clause(words=('small', 'car'), quoted=True))
    """
    wanted: dict[Clause, None] = {}
    unwanted: dict[Clause, None] = {}
    sites: list[str] = []
    unwanted_sites: list[str] = []
    languages: list[str] = []
    left = MAX_WORDS
    for part in _PART.finditer(text.translate(_CURLY)):
        minus = part["minus"] is not None
        word = part["word"]
        found = _FILTER.fullmatch(word) if word is not None else None
        if found is not None:
            value = found["value"].lower()
            if found["key"].lower().startswith("lang"):
                if not minus:
                    languages.append(primary_language(value))
                    continue
            elif host := _host_of(value):
                (unwanted_sites if minus else sites).append(host)
                continue
        words = tuple(tokenize(word if word is not None else part["phrase"])[:left])
        left -= len(words)
        if words:
            (unwanted if minus else wanted)[Clause(words, quoted=word is None and len(words) > 1)] = None
    return ParsedQuery(tuple(wanted), tuple(unwanted), tuple(sites), tuple(unwanted_sites), tuple(languages))


def primary_language(tag: str) -> str:
    """`en` of `en-GB`."""
    return tag.replace("_", "-").partition("-")[0].lower()


def site_names(host: str) -> list[str]:
    """The names under which `site:` finds a host: itself and each domain above it.

    >>> site_names("docs.example.org")
    ['docs.example.org', 'example.org', 'org']
    """
    host = host.lower().rstrip(".")
    if not host or host[0] == "[" or host.replace(".", "").isdigit():
        return [host] if host else []
    labels = host.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def _host_of(value: str) -> str:
    return value.rpartition("://")[2].partition("/")[0].strip(".").removeprefix("*.")
