"""A page's links on their way to the coordinator: resolved, admitted, hashed, and each URL spelt out only once.

Links repeat from page to page. A worker remembers what an href stands for, and what it has already told the
coordinator; after that a link is eight bytes. What the coordinator refuses it says, so that it is offered again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from bowerbird.crawl.report import Links
from bowerbird.model.url_state import UrlKind
from bowerbird.store.url_table import anchor_mark
from bowerbird.web.url import Canonicaliser

REMEMBERED = 300_000
PLAIN = "._-~%"
Target = tuple[str, int] | tuple[()]
"""Canonical URL and its hash; empty for what does not belong to the crawl."""


class LinkMemory:
    """What one worker remembers of links: of each host, what hrefs that begin with a slash stand for.

    Other ways to write a link are looked up as such an href where that surely means the same. So a URL is remembered
    once, however many folders link to it and however they do: memory grows with URLs, not with pages.
    """

    def __init__(
        self,
        canonicaliser: Canonicaliser,
        admit: Callable[[str], int],
        leaves: Callable[[str], bool] = lambda href: False,
    ) -> None:
        self.canonicaliser = canonicaliser
        self.admit = admit
        self.leaves = leaves  # a quick look that may say: this absolute link surely leaves the crawl
        self.told: set[int] = set()
        self.told_anchors: set[int] = set()
        self._by_origin: dict[str, dict[str, Target]] = {}
        self._stored = 0

    def clear(self) -> None:
        """The scope changed: no earlier answer holds."""
        self._by_origin.clear()
        self._stored = 0

    def untell(self, hashes: Sequence[int]) -> None:
        """The coordinator did not take these: tell them again when they are met again. None named = all."""
        if hashes:
            self.told.difference_update(hashes)
        else:
            self.told.clear()

    def resolve(self, base: str, hrefs: Sequence[str]) -> list[Target]:
        """What hrefs of a page stand for."""
        at = base.find("/", base.find("//") + 2)
        rooted = self._of_origin(base[:at])
        out = list(map(rooted.get, hrefs))  # most links of most pages are found in this one step
        if None in out:
            self._look_further(base, rooted, hrefs, out)
        return out  # type: ignore[return-value]  # nothing unknown is left in it

    def _of_origin(self, origin: str) -> dict[str, Target]:
        """The table of a host. It counts as a link does: every page may be the only one of its host."""
        table = self._by_origin.get(origin)
        if table is None:
            if self._stored >= REMEMBERED:
                self.clear()
            self._stored += 1
            table = self._by_origin[origin] = {}
        return table

    def _look_further(
        self, base: str, rooted: dict[str, Target], hrefs: Sequence[str], out: list[Target | None]
    ) -> None:
        at = base.find("/", base.find("//") + 2)
        query = base.find("?")
        folder = base[at : base.rfind("/", 0, query if query >= 0 else None) + 1]
        new: list[tuple[int, str, str, dict[str, Target] | None]] = []
        for place, written in enumerate(hrefs):
            if out[place] is not None:
                continue
            href = key = written.partition("#")[0] if "#" in written else written
            table: dict[str, Target] | None = rooted
            first = href[:1]
            if first == "h" and href.startswith(("http://", "https://")):
                slash = href.find("/", 8)
                table = self._by_origin.get(href[:slash]) if slash > 0 else None
                if table is None and self.leaves(href):
                    out[place] = ()
                    continue
                if table is None and slash > 0:
                    table = self._of_origin(href[:slash])
                key = href[slash:]
            elif not first:
                out[place] = ()  # the page itself
                continue
            elif first != "/":
                key = climb(folder, href) if first == "." else folder + href
                # a query depends on the whole address; a colon may end a scheme, white space may be dropped
                if ":" in href or not (first.isalnum() or first in PLAIN):
                    table = None
            if key is not href and (key[1:2] == "/" or "\\" in key):
                table = None  # as an href of its own it would name another host
            target = None if table is None else table.get(key)
            if target is None:
                new.append((place, written, key, table))
            out[place] = target
        if new:
            self._learn(base, new, out)

    def _learn(
        self, base: str, new: list[tuple[int, str, str, dict[str, Target] | None]], out: list[Target | None]
    ) -> None:
        urls = self.canonicaliser.resolve(base, [written for _, written, _, _ in new])
        if self._stored + len(new) > REMEMBERED:
            self.clear()
        for (place, _, key, table), url in zip(new, urls, strict=True):
            known = -1 if url is None else self.admit(url)
            target: Target = () if url is None or known < 0 else (url, known)
            out[place] = target
            if table is not None:
                if key not in table:
                    self._stored += 1
                table[key] = target

    def trim(self) -> None:
        """Forget what was told when it grows too much; telling twice does no harm."""
        if len(self.told) > REMEMBERED:
            self.told.clear()
        if len(self.told_anchors) > REMEMBERED:
            self.told_anchors.clear()


def climb(folder: str, href: str) -> str:
    """A relative href as a path, without the dots that it begins with.

    >>> climb("/a/b/", "../x/./y"), climb("/a/", "./../../../x")
    ('/a/x/./y', '/x')
    """
    while href[:1] == ".":
        if href.startswith("./"):
            href = href[2:]
        elif href.startswith("../"):
            folder, href = folder[: folder.rfind("/", 0, -1) + 1] or "/", href[3:]
        else:
            break
    return folder + href


class LinkBlock:
    """The links of one page as they are gathered: distinct, in the order of the page."""

    __slots__ = ("anchors", "kinds", "memory", "modified", "urls")

    def __init__(self, memory: LinkMemory) -> None:
        self.memory = memory
        self.anchors: dict[int, str] = {}
        self.urls: dict[int, str] = {}
        self.kinds: dict[int, int] = {}
        self.modified: dict[int, float] = {}

    def add(self, targets: Sequence[Target], links: Sequence[tuple[str, str, bool]], *, nofollow_too: bool) -> None:
        """Links of a page with what they stand for; a hundred a page, so this loop is kept bare."""
        urls, anchors = self.urls, self.anchors
        for target, (_, anchor, nofollow) in zip(targets, links, strict=True):
            if not target or (nofollow and not nofollow_too):
                continue
            url, key = target
            known = anchors.get(key)
            if known is None:
                urls[key] = url
                anchors[key] = anchor
            elif not known:
                anchors[key] = anchor

    def add_source(self, target: Target, anchor: str, kind: UrlKind, modified_s: float) -> None:
        """A URL named by a feed or sitemap, or a feed named by a page."""
        if not target:
            return
        self.add((target,), (("", anchor, False),), nofollow_too=True)
        if kind is not UrlKind.PAGE:
            self.kinds[target[1]] = int(kind)
        if modified_s:
            self.modified[target[1]] = modified_s

    def pack(self, own: str) -> Links:
        """The block to send; a link of the page to itself is left out."""
        own_key = self.memory.admit(own)
        self.urls.pop(own_key, None)
        self.anchors.pop(own_key, None)
        memory = self.memory
        told, told_anchors = memory.told, memory.told_anchors
        keys = list(self.urls)
        count = len(keys)
        named: list[int] = []
        if not told.issuperset(keys):
            named = [place for place, key in enumerate(keys) if key not in told]
        marks = array("H", bytes(2 * count))
        texts: list[str] = []
        pairs = [key ^ hash(anchor) for key, anchor in self.anchors.items()]
        if named or not told_anchors.issuperset(pairs):  # on most pages nothing is new
            spelt = set(named)  # a URL that is spelt out brings its anchor along
            for place, (pair, anchor) in enumerate(zip(pairs, self.anchors.values(), strict=True)):
                if anchor and (pair not in told_anchors or place in spelt):
                    marks[place] = anchor_mark(anchor)
                    texts.append(anchor if "\n" not in anchor else " ".join(anchor.split()))
            told_anchors.update(pairs)
            told.update([keys[place] for place in named])
            memory.trim()
        return Links(
            hashes=array("Q", keys).tobytes(),
            named=array("I", named).tobytes(),
            urls="\n".join([self.urls[keys[place]] for place in named]).encode("utf-8"),
            marks=marks.tobytes(),
            anchors="\n".join(texts).encode("utf-8", "replace"),
            kinds=bytes(self.kinds.get(key, 0) for key in keys) if self.kinds else b"",
            modified=array("d", (self.modified.get(key, 0.0) for key in keys)).tobytes() if self.modified else b"",
            count=count,
        )
