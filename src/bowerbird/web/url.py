"""URLs by the WHATWG rules, and one canonical form of each.

Two URLs that name the same page should be one string, and two that may differ should stay two. The
canonical form is therefore what a browser would request (the fragment and credentials gone, dot segments and
default ports resolved), plus two things no server can tell apart or should: percent-encoded letters,
digits and `-._~` are decoded (RFC 3986, 6.2.2.2), and parameters that only track a visitor are dropped.

A page has about a hundred links, so `Canonicaliser.resolve` is the hottest loop of a crawl. It has three
layers: tables of links already seen from the same folder, a string path for plain ASCII links, and the `ada`
parser for all others. The layers give the same answer; only their cost differs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ada_url import idna_to_unicode, join_url, normalize_url

from bowerbird.model.errors import UrlError

_TRACKING: Final = """
utm_* mtm_* matomo_* piwik_* pk_campaign pk_kwd pk_source pk_medium pk_content gclid gclsrc dclid gbraid
wbraid srsltid _ga _gl _gac fbclid igshid igsh msclkid yclid ymclid _openstat twclid ttclid li_fat_id mc_cid
mc_eid mkt_tok _hsenc _hsmi __hssc __hstc __hsfp hsctatracking oly_anon_id oly_enc_id vero_id vero_conv
epik ml_subscriber ml_subscriber_hash _branch_match_id zanpid guccounter guce_referrer guce_referrer_sig
wickedid
"""
_SESSIONS: Final = """
jsessionid phpsessid sessionid session_id sessid aspsessionid* asp.net_sessionid cfid cftoken oscsid zenid
"""


@dataclass(frozen=True, slots=True)
class UrlRules:
    """What the canonical form leaves out. Names match whatever their case; a trailing `*` makes a prefix."""

    drop_params: tuple[str, ...] = tuple(_TRACKING.split())
    session_params: tuple[str, ...] = tuple(_SESSIONS.split())
    token_params: tuple[str, ...] = ("sid", "session", "sess")
    """Dropped only when the value looks like a session token: elsewhere `sid` is a story or a station."""
    sort_query: bool = False
    max_length: int = 2000


# Characters that WHATWG leaves as they are in a path, and percent triplets that the canonical form keeps.
_SAFE: Final = r"A-Za-z0-9_~!$&()*+,;=@.\-"
_KEPT: Final = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_PATH: Final = rf"[{_SAFE}':/]*(?:{_KEPT}[{_SAFE}':/]*)*"
_QUERY: Final = rf"[{_SAFE}:/?]*(?:{_KEPT}[{_SAFE}:/?]*)*"
_FIRST: Final = rf"[{_SAFE}']*(?:{_KEPT}[{_SAFE}']*)*"  # a colon in the first segment may end a scheme
_PLAIN: Final = re.compile(
    rf"(?:((?:https?:)?//[A-Za-z0-9.\-_:\[\]]+)(/{_PATH})?|(?!//)([/.]{_PATH}|{_FIRST}(?:/{_PATH})?))"
    rf"(?:\?({_QUERY}))?(?:#[!-~]*)?"
).fullmatch
_PLAIN_PATH: Final = re.compile(rf"/{_PATH}").fullmatch
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):").match
# Links whose target depends on nothing but the folder they are found in: not `?q`, `http:x`, nor hidden tabs.
_FOLDER_BOUND: Final = re.compile(r"(?![Hh][Tt][Tt][Pp][Ss]?:(?!//))[^\x00-\x20?#][^\t\n\r]*").fullmatch
_TRIPLET: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%([0-9A-Fa-f]{2})")
_TOKEN: Final = re.compile(r"[0-9A-Fa-f]{16,}|(?=.*[0-9])(?=.*[A-Za-z])[0-9A-Za-z,_-]{24,}").fullmatch
_CONTROL_OR_SPACE: Final = "".join(map(chr, range(0x21)))
_CACHED_HREF_LENGTH: Final = 512
_MISS: Final = "not in the table"  # compared by identity


def _decode_triplet(match: re.Match[str]) -> str:
    pair = match[1]
    char = chr(int(pair, 16))
    return char if char.isascii() and (char.isalnum() or char in "-._~") else "%" + pair.upper()


def normalise_percent(text: str) -> str:
    """Decode percent-encoded unreserved characters and write the other triplets in upper case.

    A stray `%` and what it touches is left alone, so that decoding never makes a new triplet.

    >>> normalise_percent("/%7ejoe/%c3%a9/100%/%%37e")
    '/~joe/%C3%A9/100%/%%37e'
    """
    return _TRIPLET.sub(_decode_triplet, text) if "%" in text else text


class _Base:
    """A page whose links are resolved, taken apart once."""

    __slots__ = ("folder", "href", "origin", "path", "plain", "table")

    def __init__(self, href: str, origin: str, path: str, table: dict[str, str | None]) -> None:
        self.href = href
        self.origin = origin
        self.path = path
        self.folder = path[: path.rfind("/") + 1]
        self.plain = _PLAIN_PATH(path) is not None
        self.table = table


class Canonicaliser:
    """Gives every URL its canonical form; remembers the links it has met.

    >>> canonicaliser = Canonicaliser()
    >>> canonicaliser.canonical("HTTP://Example.com:80/a/../%7Ejoe?utm_source=x#top")
    'http://example.com/~joe'
    >>> canonicaliser.resolve("http://example.com/a/b", ["c", "/d?x=1", "#top", "mailto:me@example.com"])
    ['http://example.com/a/c', 'http://example.com/d?x=1', None, None]
    """

    def __init__(self, rules: UrlRules | None = None, cache_size: int = 200_000) -> None:
        self.rules = UrlRules() if rules is None else rules
        self._cache_size = cache_size
        self._stored = 0
        self._absolute: dict[str, str | None] = {}
        self._rooted: dict[str, dict[str, str | None]] = {}
        self._folders: dict[str, dict[str, str | None]] = {}
        self._origins: dict[str, str | None] = {}
        names = [name.lower() for name in (*self.rules.drop_params, *self.rules.session_params)]
        self._dropped_names = frozenset(name for name in names if not name.endswith("*"))
        self._dropped_prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
        self._token_names = frozenset(name.lower() for name in self.rules.token_params)
        self._session_path = _path_parameter_pattern(self.rules.session_params)

    def canonical(self, url: str) -> str | None:
        """The canonical form of an absolute URL; None if it is not a usable http or https URL."""
        found = self._absolute.get(url, _MISS)
        if found is not _MISS:
            return found
        found = self._compute(url, None)
        if len(url) <= _CACHED_HREF_LENGTH:
            self._store(self._absolute, url, found)
        return found

    def resolve(self, base: str, hrefs: Sequence[str]) -> list[str | None]:
        """The canonical targets of one page's links, in order.

        None stands for a link to the page itself (empty or only a fragment) and for what cannot be crawled.
        `base` is the page's absolute URL, or its `<base href>`.
        """
        context = self._context(base)
        if context is None:
            return [self.canonical(href) for href in hrefs]
        get = context.table.get
        targets = []
        for href in hrefs:
            target = get(href, _MISS)
            if target is _MISS:
                target = self._resolve_new(context, href)
            targets.append(target)
        return targets

    def resolve_slowly(self, base: str, href: str) -> str | None:
        """What `resolve` answers, by the `ada` parser alone: the yardstick for the quick ways."""
        try:
            return self._by_parser(href, normalize_url(base))
        except ValueError:
            return self._by_parser(href, None)

    def _context(self, base: str) -> _Base | None:
        origin: str | None = None
        plain = _PLAIN(base)
        if plain is not None and plain[1] is not None and plain[1][0] == "h":
            href, path = base, plain[2] or "/"
            if "/." not in path:
                origin = self._origin(plain[1])
        if origin is None:
            try:
                href = normalize_url(base)
            except ValueError:
                return None
            parts = _split(href)
            if parts is None:
                return None
            origin, path, _ = parts
        folder = origin + path[: path.rfind("/") + 1]
        table = self._folders.get(folder)
        if table is None:
            table = self._folders[folder] = {}
            self._stored += 1
        return _Base(href, origin, path, table)

    def _resolve_new(self, base: _Base, href: str) -> str | None:
        """Resolve a link not met in this folder: look in the tables that folders share, then compute."""
        shared: dict[str, str | None] | None = None
        if href[:1] == "/" and href[:2] != "//":
            shared = self._rooted.setdefault(base.origin, {})
        elif href.startswith(("http://", "https://")):
            shared = self._absolute
        if shared is not None:
            found = shared.get(href, _MISS)
            if found is not _MISS:
                self._store(base.table, href, found)
                return found
        target = self._compute(href, base)
        if len(href) <= _CACHED_HREF_LENGTH and _FOLDER_BOUND(href):
            self._store(base.table, href, target)
            if shared is not None:
                self._store(shared, href, target)
        return target

    def _store(self, table: dict[str, str | None], href: str, target: str | None) -> None:
        # Starting afresh costs one computation per link; keeping an order of use would cost every look-up.
        if self._stored >= self._cache_size:
            self._stored = 0
            self._absolute.clear()
            self._rooted.clear()
            self._folders.clear()
            self._origins.clear()
        table[href] = target
        self._stored += 1

    def _compute(self, href: str, base: _Base | None) -> str | None:
        plain = _PLAIN(href)
        if plain is None:
            return self._by_parser(href, None if base is None else base.href)
        authority, path, relative, query = plain.groups()
        if authority is not None:
            if authority[0] == "/":
                if base is None:
                    return None
                authority = base.origin[: base.origin.index("/")] + authority
            origin = self._origin(authority)
            if origin is None:
                return None
            path = path or "/"
        elif base is None:
            return None
        elif not relative:
            if query is None:
                return None
            if not base.plain:
                return self._by_parser(href, base.href)
            origin, path = base.origin, base.path
        elif relative[0] == "/":
            origin, path = base.origin, relative
        elif not base.plain:
            return self._by_parser(href, base.href)
        else:
            origin = base.origin
            path = _join_folder(base.folder, relative) if relative[0] == "." else base.folder + relative
        if "/." in path:
            return self._by_parser(href, None if base is None else base.href)
        return self._assemble(origin, path, query)

    def _by_parser(self, href: str, base: str | None) -> str | None:
        text = href.strip(_CONTROL_OR_SPACE)
        if not text or text[0] == "#":
            return None
        scheme = _SCHEME(text)
        if scheme is not None and scheme[1].lower() not in ("http", "https"):
            return None
        try:
            parsed = normalize_url(href) if base is None else join_url(base, href)
        except ValueError:
            return None
        parts = _split(parsed)
        if parts is None:
            return None
        origin, path, query = parts
        return self._assemble(origin, normalise_percent(path), normalise_percent(query))

    def _origin(self, authority: str) -> str | None:
        """`HTTP://Example.com:80` -> `http://example.com`, once for each spelling."""
        found = self._origins.get(authority, _MISS)
        if found is _MISS:
            try:
                found = normalize_url(authority + "/")[:-1]
            except ValueError:
                found = None
            self._store(self._origins, authority, found)
        return found

    def _assemble(self, origin: str, path: str, query: str | None) -> str | None:
        if ";" in path:
            stripped = self._session_path.sub("", path)
            if stripped != path:
                # `/..;jsessionid=1` has become a dot segment
                path = normalize_url(origin + stripped)[len(origin) :] if "/." in stripped else stripped
        if query:
            query = self._clean_query(query)
        url = f"{origin}{path}?{query}" if query else origin + path
        return url if len(url) <= self.rules.max_length else None

    def _clean_query(self, query: str) -> str:
        parts = query.split("&")
        kept = [part for part in parts if not self._drops(part)]
        if self.rules.sort_query:
            kept.sort()
        elif len(kept) == len(parts):
            return query
        return "&".join(kept)

    def _drops(self, part: str) -> bool:
        name, _, value = part.partition("=")
        name = (unquote(name) if "%" in name else name).lower()
        if name in self._dropped_names or name.startswith(self._dropped_prefixes):
            return True
        return name in self._token_names and _TOKEN(value) is not None


def _path_parameter_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Match `;jsessionid=...` and the like at the end of a path segment."""
    choices = [re.escape(n.removesuffix("*")) + ("[^/;=]*" if n.endswith("*") else "") for n in names]
    return re.compile(rf";(?:{'|'.join(choices)})=[^/;]*" if choices else r"(?!)", re.IGNORECASE)


def _split(href: str) -> tuple[str, str, str] | None:
    """Take a parsed http(s) href apart: origin without credentials, path, query without `?`."""
    start = 8 if href.startswith("https://") else 7 if href.startswith("http://") else 0
    if not start:
        return None
    href = href.partition("#")[0]
    slash = href.index("/", start)
    authority = href[start:slash]
    if "@" in authority:
        authority = authority.rpartition("@")[2]
    path, _, query = href[slash:].partition("?")
    return href[:start] + authority, path, query


def _join_folder(folder: str, relative: str) -> str:
    """Resolve the leading dot segments of a relative path; others are left in."""
    while relative.startswith(("./", "../")) or relative in (".", ".."):
        dots, _, relative = relative.partition("/")
        if dots == ".." and folder != "/":
            folder = folder[: folder.rfind("/", 0, -1) + 1]
    return folder + relative


def parse_input(url: str, canonicaliser: Canonicaliser) -> str:
    """The canonical form of a URL that a person typed; a UrlError says what is wrong, and the remedy.

    >>> parse_input("https://example.com/#start", Canonicaliser())
    'https://example.com/'
    """
    text = url.strip()
    if not text:
        raise UrlError("the URL is empty: give an address such as https://example.com/")
    canonical = canonicaliser.canonical(text)
    if canonical is not None:
        return canonical
    scheme = _SCHEME(text)
    if scheme is None or re.match(r"[A-Za-z0-9.\-]+:\d+(?:[/?#]|$)", text):
        guess = canonicaliser.canonical("https://" + text.lstrip("/"))
        remedy = f"did you mean {guess} ?" if guess else "write it as https://host/path"
        raise UrlError(f"URL {url!r} has no scheme: {remedy}")
    if scheme[1].lower() not in ("http", "https"):
        raise UrlError(f"URL {url!r} has the scheme {scheme[1]!r}: only http and https can be crawled")
    if not text[scheme.end() :].strip("/\\"):
        raise UrlError(f"URL {url!r} has no host: write it as {scheme[1].lower()}://host/path")
    limit = canonicaliser.rules.max_length
    if len(text) > limit:
        raise UrlError(f"URL {url[:80]!r}… is {len(text)} characters long: at most {limit} are crawled")
    raise UrlError(f"URL {url!r} is not valid: check the host name and the port")


def origin_of(url: str) -> str:
    """The origin of a canonical URL.

    >>> origin_of("https://example.com:8443/a?b")
    'https://example.com:8443'
    """
    slash = url.find("/", 8)
    return url if slash < 0 else url[:slash]


def host_of(url: str) -> str:
    """The host of a canonical URL, without port or brackets.

    >>> host_of("http://[::1]:8080/"), host_of("https://example.com/a")
    ('::1', 'example.com')
    """
    origin = origin_of(url)
    host = origin[origin.find("//") + 2 :]
    if host[:1] == "[":
        return host[1 : host.index("]")]
    return host.partition(":")[0]


_WORDS: Final = re.compile(r"[^\W_]+").findall
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])").sub


def split_words(url: str) -> str:
    """The words of a canonical URL, for indexing.

    >>> split_words("https://www.example.com/docs/HttpClient_v2.html?q=caf%C3%A9")
    'www example com docs http client v2 html q café'
    """
    host = host_of(url)
    if "xn--" in host:
        host = idna_to_unicode(host)
    rest = url[len(origin_of(url)) :]
    if "%" in rest:
        rest = unquote(rest)
    return " ".join(_WORDS(f"{host} {_CAMEL(' ', rest)}".lower()))
