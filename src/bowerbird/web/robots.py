"""robots.txt by RFC 9309: read a file once, then decide on each URL quickly.

Lines are read leniently, as crawlers have agreed to: a missing colon, a missing hyphen and common misspellings are
understood. Percent-encoding is compared as RFC 9309 (2.2.2) says: `%7E` and `~` are the same character.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Final

from bowerbird.model.outcome import Outcome
from bowerbird.web.url import normalise_percent

ROBOTS_TTL_S: Final = 86_400
MAX_BODY_BYTES: Final = 500 * 1024
MAX_LINE_BYTES: Final = 16 * 1024

_USER_AGENT: Final = 0
_ALLOW: Final = 1
_DISALLOW: Final = 2
_SITEMAP: Final = 3
_CRAWL_DELAY: Final = 4

#: a key counts when it begins like one of these
_KEYS: Final = (
    (("user-agent", "useragent", "user agent"), _USER_AGENT),
    (("allow",), _ALLOW),
    (("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), _DISALLOW),
    (("sitemap", "site-map"), _SITEMAP),
    (("crawl-delay", "crawldelay", "crawl delay"), _CRAWL_DELAY),
)

_MARKUP: Final = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml|!--)", re.IGNORECASE).match
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_STARS: Final = re.compile(r"\*+")
_PRODUCT_TOKEN: Final = re.compile(r"[A-Za-z_-]*")


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """A decision with its reason: the rule that decided, as written, or None if no rule matched."""

    allowed: bool
    rule: str | None = None


_NO_RULE: Final = RobotsVerdict(allowed=True)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One Allow or Disallow line, ready to match: the literal parts between its wildcards."""

    priority: int
    verdict: RobotsVerdict
    parts: tuple[str, ...]
    to_end: bool
    longest: str
    least_length: int

    def matches(self, path: str) -> bool:
        """Leftmost matching of each part is enough, so this takes time linear in the path for each part."""
        first, *others = self.parts
        if len(path) < self.least_length or not path.startswith(first):
            return False
        at = len(first)
        if not others:
            return not self.to_end or at == len(path)
        last = others.pop() if self.to_end else ""
        for part in others:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return len(path) - len(last) >= at and path.endswith(last)


@dataclass(slots=True)
class _Group:
    """The rules of all groups for one agent, as they are gathered."""

    rules: list[_Rule] = field(default_factory=list)
    crawl_delay_s: float | None = None

    def add(self, allow: bool, pattern: str) -> None:
        """Add a rule. An allowed index page is also allowed by the name of its folder, as at Google."""
        if not pattern:
            return
        verdict = RobotsVerdict(allow, f"{'Allow' if allow else 'Disallow'}: {pattern}")
        self.rules.append(_compile(pattern, verdict))
        folder, slash, page = pattern.rpartition("/")
        if allow and slash and page.startswith("index.htm"):
            self.rules.append(_compile(folder + "/$", verdict))

    def set_delay(self, delay_s: float) -> None:
        """Of several delays, the longest is kept."""
        self.crawl_delay_s = max(delay_s, self.crawl_delay_s or 0.0)


class RobotsRules:
    """What one robots.txt says to one agent.

    >>> rules = RobotsRules.parse(b"User-agent: *\\nDisallow: /private\\nAllow: /private/open$", "bowerbird")
    >>> rules.allows("https://example.com/private/x"), rules.allows("https://example.com/private/open")
    (False, True)
    """

    __slots__ = ("_lengths", "_prefixes", "_starts", "_wild", "crawl_delay_s", "sitemaps")

    ALLOW_ALL: ClassVar[RobotsRules]
    DENY_ALL: ClassVar[RobotsRules]

    def __init__(self, rules: list[_Rule], crawl_delay_s: float | None = None, sitemaps: tuple[str, ...] = ()) -> None:
        self.crawl_delay_s = crawl_delay_s
        self.sitemaps = sitemaps
        # By precedence: longer patterns first, and Allow before Disallow of the same length.
        rules = sorted(rules, key=lambda rule: (-rule.priority, not rule.verdict.allowed))
        plain = [rule for rule in rules if len(rule.parts) == 1 and not rule.to_end]
        self._prefixes: dict[str, _Rule] = {}
        for rule in plain:
            self._prefixes.setdefault(rule.parts[0], rule)
        self._lengths = tuple(sorted(set(map(len, self._prefixes)), reverse=True))
        # One call tells that no prefix matches; of very many prefixes, looking up each length is quicker.
        self._starts = tuple(self._prefixes) if len(self._prefixes) <= 10 * len(self._lengths) else ("",)
        self._wild = tuple((rule.longest, rule) for rule in rules if len(rule.parts) > 1 or rule.to_end)

    def __repr__(self) -> str:
        count = len(self._prefixes) + len(self._wild)
        return f"RobotsRules({count} rules, crawl_delay_s={self.crawl_delay_s}, {len(self.sitemaps)} sitemaps)"

    @classmethod
    def parse(cls, body: bytes, agent: str) -> RobotsRules:
        """Read a robots.txt for `agent`, a product token such as `Bowerbird`.

        By RFC 9309 a token has letters, `-` and `_` only: one with a digit is never addressed. A version
        after a slash is ignored. Never fails: what cannot be understood is passed over. Sitemaps are as
        written, possibly relative.
        """
        if len(body) > MAX_BODY_BYTES:
            # a rule cut in two would forbid more than its author wrote
            body = body[: max(body.rfind(b"\n", 0, MAX_BODY_BYTES), body.rfind(b"\r", 0, MAX_BODY_BYTES), 0)]
        if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
            body = body.decode("utf-16", "replace").encode()
        if _MARKUP(body.removeprefix(b"\xef\xbb\xbf")) or b"\0" in body[:512]:
            return cls.ALLOW_ALL
        return _gather(body, agent.partition("/")[0].strip().lower())

    def allows(self, url: str) -> bool:
        """May the agent fetch this URL?"""
        return self.explain(url).allowed

    def explain(self, url: str) -> RobotsVerdict:
        """May the agent fetch this URL, and which rule says so?"""
        path = _path_of(url)
        best: _Rule | None = None
        if path.startswith(self._starts):
            for length in self._lengths:
                best = self._prefixes.get(path[:length])
                if best is not None:
                    break
        for literal, rule in self._wild:
            if literal in path:
                if best is not None and _precedes(best, rule):
                    break
                if rule.matches(path):
                    best = rule
                    break
        return _NO_RULE if best is None else best.verdict


def _precedes(one: _Rule, other: _Rule) -> bool:
    if one.priority != other.priority:
        return one.priority > other.priority
    return one.verdict.allowed or not other.verdict.allowed


def _compile(pattern: str, verdict: RobotsVerdict) -> _Rule:
    body = pattern.removesuffix("$")
    parts = tuple(map(_normalise, _STARS.split(body)))
    to_end = len(body) < len(pattern)
    if to_end and len(parts) > 1 and not parts[-1]:  # `*$` matches any end
        to_end = False
    return _Rule(len(pattern), verdict, parts, to_end, max(parts, key=len), sum(map(len, parts)))


def _normalise(text: str) -> str:
    """Give patterns and paths one spelling; a literal `*` or `$` is percent-encoded, as RFC 9309 says."""
    if "%" in text:
        text = normalise_percent(text)
    return text.replace("*", "%2A").replace("$", "%24")


def _escape(pattern: str) -> str:
    """Percent-encode what is not ASCII, as it is in URLs."""
    if pattern.isascii():
        return pattern
    return "".join(c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in pattern)


def _path_of(url: str) -> str:
    """Path and query of a URL, spelt as the rules are."""
    start = url.find("://") + 3
    authority, slash, rest = url[start if start > 2 else 0 :].partition("/")
    if "?" in authority or "#" in authority or ";" in authority:
        at = next(i for i, char in enumerate(authority) if char in "?#;")
        rest = authority[at:] + slash + rest
    path = "/" + rest.partition("#")[0]
    return _normalise(path) if "%" in path or "*" in path or "$" in path else path


def _gather(body: bytes, agent: str) -> RobotsRules:
    """Merge the groups that speak to the agent, or else those that speak to all."""
    ours, everyone = _Group(), _Group()
    named = False  # is there any group of our own?
    to_us = to_all = False  # whom do the lines at hand speak to?
    delay_to_us = delay_to_all = False
    in_rules = in_delay = False
    sitemaps: dict[str, None] = {}
    for kind, value in _read_lines(body):
        if kind == _USER_AGENT:
            if in_rules:
                to_us = to_all = in_rules = False
            if in_delay:
                # Crawl-delay is no rule of RFC 9309 and must not end a group; it is for the agents above it.
                delay_to_us = delay_to_all = in_delay = False
            if value[:1] == "*" and (len(value) == 1 or value[1].isspace()):
                to_all = delay_to_all = True
            else:
                token = _PRODUCT_TOKEN.match(value)
                if token is not None and token[0].lower() == agent:
                    named = to_us = delay_to_us = True
        elif kind in (_ALLOW, _DISALLOW):
            if to_us or to_all:
                in_rules = in_delay = True
                (ours if to_us else everyone).add(kind == _ALLOW, _escape(value))
        elif kind == _SITEMAP:
            if value:
                sitemaps.setdefault(value)
        elif kind == _CRAWL_DELAY:
            in_delay = True
            delay_s = _read_delay(value)
            if delay_s is not None and delay_to_us:
                ours.set_delay(delay_s)
            if delay_s is not None and delay_to_all:
                everyone.set_delay(delay_s)
    group = ours if named else everyone
    return RobotsRules(group.rules, group.crawl_delay_s, tuple(sitemaps))


def _read_lines(body: bytes) -> Iterator[tuple[int, str]]:
    """The kind and the value of each line that has a key we know."""
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"):  # a byte order mark may be cut short
        if body.startswith(mark):
            body = body[len(mark) :]
            break
    for line in _LINE_END.split(body):
        text = line[:MAX_LINE_BYTES].decode("utf-8", "replace").partition("#")[0].strip()
        key, colon, value = text.partition(":")
        if not colon:
            words = text.split()
            if len(words) != 2:  # without a colon, only "key value" is clear enough
                continue
            key, value = words
        kind = _kind_of(key.strip().lower())
        if kind is not None:
            yield kind, value.strip()


@lru_cache(maxsize=1024)
def _kind_of(key: str) -> int | None:
    return next((kind for beginnings, kind in _KEYS if key.startswith(beginnings)), None)


def _read_delay(value: str) -> float | None:
    try:
        delay_s = float(value.replace(",", "."))
    except ValueError:
        return None
    return delay_s if math.isfinite(delay_s) and delay_s >= 0 else None


RobotsRules.ALLOW_ALL = RobotsRules([])
RobotsRules.DENY_ALL = RobotsRules([_compile("/", RobotsVerdict(False, "Disallow: /"))])


def rules_for_response(outcome: Outcome, status: int, body: bytes, agent: str) -> RobotsRules | None:
    """The rules that the answer to a request for robots.txt sets (RFC 9309, 2.3.1).

    A file is read (of one too large, what arrived); 4xx and an endless redirect mean that there are no rules;
    an unreachable or overloaded host (5xx, 429, no answer, damaged or discarded body) gives None: fetch
    nothing there for now, and ask again. The caller follows redirects, and keeps the rules it has if the
    file is not modified.
    """
    if outcome == Outcome.TOO_LARGE and not body:
        return None
    if outcome in (Outcome.OK, Outcome.TOO_LARGE, Outcome.WRONG_TYPE) and 200 <= status < 300:
        return RobotsRules.parse(body, agent)
    if outcome in (Outcome.REDIRECT, Outcome.REDIRECT_LIMIT):
        return RobotsRules.ALLOW_ALL
    if outcome in (Outcome.GONE, Outcome.CLIENT_ERROR) and status != 429:
        return RobotsRules.ALLOW_ALL
    if outcome == Outcome.WRONG_TYPE and 400 <= status < 500 and status != 429:
        return RobotsRules.ALLOW_ALL
    return None
