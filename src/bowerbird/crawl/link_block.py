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
Target = tuple[str, int]  # canonical URL and its hash
_UNKNOWN: Target = ("", -1)


class LinkMemory:
    """What one worker remembers of links."""

    def __init__(self, canonicaliser: Canonicaliser, admit: Callable[[str], int]) -> None:
        self.canonicaliser = canonicaliser
        self.admit = admit
        self.told: set[int] = set()
        self.told_anchors: set[int] = set()
        self._absolute: dict[str, Target | None] = {}
        self._by_origin: dict[str, dict[str, Target | None]] = {}
        self._by_folder: dict[str, dict[str, Target | None]] = {}
        self._stored = 0

    def clear(self) -> None:
        """The scope changed: no earlier answer holds."""
        self._absolute.clear()
        self._by_origin.clear()
        self._by_folder.clear()
        self._stored = 0

    def untell(self, hashes: Sequence[int]) -> None:
        """The coordinator did not take these: tell them again when they are met again. None named = all."""
        if hashes:
            self.told.difference_update(hashes)
        else:
            self.told.clear()

    def resolve(self, base: str, hrefs: Sequence[str]) -> list[Target | None]:
        """What hrefs of a page stand for; None for what does not belong to the crawl."""
        at = base.find("/", base.find("//") + 2)
        query = base.find("?")
        folder = base[: base.rfind("/", 0, query if query >= 0 else None) + 1]
        rooted = self._by_origin.setdefault(base[:at], {})
        relative = self._by_folder.setdefault(folder, {})
        absolute = self._absolute
        out: list[Target | None] = []
        new: list[tuple[int, str, dict[str, Target | None] | None]] = []
        for href in hrefs:
            first = href[:1]
            table: dict[str, Target | None] | None = relative
            if first == "/":
                table = rooted
            elif first == "h" and href.startswith(("http://", "https://")):
                table = absolute
            elif first == "?":  # the one kind of link that depends on the whole address
                table = None
            target = _UNKNOWN if table is None else table.get(href, _UNKNOWN)
            if target is _UNKNOWN:
                new.append((len(out), href, table))
                target = None
            out.append(target)
        if new:
            self._learn(base, new, out)
        return out

    def _learn(
        self, base: str, new: list[tuple[int, str, dict[str, Target | None] | None]], out: list[Target | None]
    ) -> None:
        urls = self.canonicaliser.resolve(base, [href for _, href, _ in new])
        if self._stored + len(new) > REMEMBERED:
            self.clear()
        for (place, href, table), url in zip(new, urls, strict=True):
            known = -1 if url is None else self.admit(url)
            target = None if url is None or known < 0 else (url, known)
            out[place] = target
            if table is not None:
                table[href] = target
                self._stored += 1

    def trim(self) -> None:
        """Forget what was told when it grows too much; telling twice does no harm."""
        if len(self.told) > REMEMBERED:
            self.told.clear()
        if len(self.told_anchors) > REMEMBERED:
            self.told_anchors.clear()


class LinkBlock:
    """The links of one page as they are gathered: distinct, in the order of the page."""

    __slots__ = ("anchors", "hashes", "kinds", "memory", "modified", "places", "urls")

    def __init__(self, memory: LinkMemory) -> None:
        self.memory = memory
        self.places: dict[int, int] = {}
        self.urls: list[str] = []
        self.hashes: list[int] = []
        self.anchors: list[str] = []
        self.kinds: dict[int, int] = {}
        self.modified: dict[int, float] = {}

    def add(
        self, targets: Sequence[Target | None], links: Sequence[tuple[str, str, bool]], *, nofollow_too: bool
    ) -> None:
        """Links of a page with what they stand for; a hundred a page, so this loop is kept bare."""
        places, urls, hashes, anchors = self.places, self.urls, self.hashes, self.anchors
        for target, (_, anchor, nofollow) in zip(targets, links, strict=True):
            if target is None or (nofollow and not nofollow_too):
                continue
            url, key = target
            place = places.get(key)
            if place is None:
                places[key] = len(urls)
                urls.append(url)
                hashes.append(key)
                anchors.append(anchor)
            elif not anchors[place]:
                anchors[place] = anchor

    def add_source(self, target: Target | None, anchor: str, kind: UrlKind, modified_s: float) -> None:
        """A URL named by a feed or sitemap, or a feed named by a page."""
        if target is None:
            return
        self.add((target,), (("", anchor, False),), nofollow_too=True)
        place = self.places[target[1]]
        if kind is not UrlKind.PAGE:
            self.kinds[place] = int(kind)
        if modified_s:
            self.modified[place] = modified_s

    def pack(self, own: str) -> Links:
        """The block to send; a link of the page to itself is left out."""
        if own in self.urls:
            self._remove(self.urls.index(own))
        memory = self.memory
        told, told_anchors = memory.told, memory.told_anchors
        count = len(self.urls)
        named: list[int] = []
        if not told.issuperset(self.hashes):
            named = [place for place, key in enumerate(self.hashes) if key not in told]
        marks = array("H", bytes(2 * count))
        texts: list[str] = []
        pairs = [key ^ hash(anchor) for key, anchor in zip(self.hashes, self.anchors, strict=True)]
        if named or not told_anchors.issuperset(pairs):  # on most pages nothing is new
            spelt = set(named)  # a URL that is spelt out brings its anchor along
            for place, pair in enumerate(pairs):
                anchor = self.anchors[place]
                if anchor and (pair not in told_anchors or place in spelt):
                    marks[place] = anchor_mark(anchor)
                    texts.append(anchor if "\n" not in anchor else " ".join(anchor.split()))
            told_anchors.update(pairs)
            told.update([self.hashes[place] for place in named])
            memory.trim()
        return Links(
            hashes=array("Q", self.hashes).tobytes(),
            named=array("I", named).tobytes(),
            urls="\n".join([self.urls[place] for place in named]).encode("utf-8"),
            marks=marks.tobytes(),
            anchors="\n".join(texts).encode("utf-8", "replace"),
            kinds=bytes(self.kinds.get(i, 0) for i in range(count)) if self.kinds else b"",
            modified=array("d", (self.modified.get(i, 0.0) for i in range(count))).tobytes() if self.modified else b"",
            count=count,
        )

    def _remove(self, place: int) -> None:
        for column in (self.urls, self.hashes, self.anchors):
            del column[place]
        for special in (self.kinds, self.modified):
            moved = {at - (at > place): value for at, value in special.items() if at != place}
            special.clear()
            special.update(moved)  # type: ignore[arg-type]  # each keeps its own kind of value
