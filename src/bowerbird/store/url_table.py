"""All known URLs: the columns, the table that finds a URL's row, and the hosts they live on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
import numpy.typing as npt
import xxhash

from bowerbird.model.snapshot import HostColumns, PageColumns
from bowerbird.store.columns import Columns
from bowerbird.store.hashtable import claim_many, find_many, rebuild
from bowerbird.web.domain import registered_domain
from bowerbird.web.url import host_of

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def hash_urls(urls: Sequence[str], seed: int) -> U64:
    """64-bit hashes of canonical URLs; the seed is the crawl's own, so that nobody can aim at collisions."""
    hashes = map(xxhash.xxh3_64_intdigest, map(str.encode, urls), repeat(seed))
    return np.fromiter(hashes, dtype=np.uint64, count=len(urls))


def anchor_mark(anchor: str) -> int:
    """A 16-bit fingerprint of an anchor text, never 0; 0 stands for no text."""
    return (xxhash.xxh3_64_intdigest(anchor.encode("utf-8")) & 0xFFFF or 1) if anchor else 0


class HostTable(dict[str, int]):
    """Origin -> host number, with what is known of each host; a missing origin is added when asked for."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "crawl_delay_s": ("f4", 1),
        "robots_at": ("f8", 1),
        "not_before": ("f8", 1),
        "last_fetch": ("f8", 1),
        "errors": ("u4", 1),
        "pages": ("u4", 1),
        "duplicates": ("u4", 1),
        "known": ("i8", 1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.origins: list[str] = []
        self.columns = Columns(self.LAYOUT, capacity=256)
        self.dirty: set[int] = set()

    def __missing__(self, origin: str) -> int:
        number = len(self.origins)
        self[origin] = number
        self.origins.append(origin)
        self.columns.extend(1)
        self.dirty.add(number)
        return number

    def domain(self, number: int) -> str:
        """The registered domain of a host."""
        return registered_domain(host_of(self.origins[number] + "/"))

    def trap_score(self) -> npt.NDArray[np.float32]:
        """Share of each host's pages that repeat others, pulled to 0 while there are few (20 pseudo-pages)."""
        share = self.columns["duplicates"] / (self.columns["pages"] + 20.0)
        return np.asarray(share, dtype=np.float32)


class UrlTable:
    """Rows of known URLs. Finding and adding are done for many URLs at a time."""

    MAX_LOAD = 0.6

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.columns = Columns()
        self.hosts = HostTable()
        self._slots = np.full(2048, -1, dtype=np.int32)
        self._near: U8 | None = None  # with spare room; None while no seeds were chosen

    def __len__(self) -> int:
        return self.columns.count

    @property
    def near_depth(self) -> U8:
        """By row the links from the nearest seed, given or chosen: what new pages are put in order by.

        The column `depth` has it as found, which the bound on depth and the database go by: what is chosen inside a
        trap must not let that grow.
        """
        return self.columns["depth"] if self._near is None else self._near[: self.columns.count]

    def lower_near_depth(self, most: U8) -> None:
        """The first rows are no farther than this; those after them than what led there, and a link."""
        if self._near is None:
            self._near = self.columns.whole("depth").copy()
        near = self.near_depth
        np.minimum(near[: len(most)], most[: len(near)], out=near[: len(most)])
        self.pass_on_depth(near, len(most))

    def pass_on_depth(self, depth: U8, first: int) -> None:
        """Have rows from `first` on at most one more than the URL that led there has; a redirect adds nothing."""
        source, step = self.columns["source"][first:].astype(np.int64), self.columns["hops"][first:] == 0
        part, known = depth[first:], source >= 0
        while True:
            through = np.minimum(depth[source].astype(np.int64) + step, 255)
            nearer = known & (through < part)
            if not nearer.any():
                return
            part[nearer] = through[nearer]

    def find(self, hashes: U64) -> I64:
        """Row of each hash, -1 where unknown."""
        out = np.empty(len(hashes), dtype=np.int64)
        find_many(self._slots, self.columns.whole("hash"), hashes, out)
        return out

    def find_url(self, url: str) -> int | None:
        """Row of one canonical URL."""
        row = int(self.find(hash_urls([url], self.seed))[0])
        return None if row < 0 else row

    def _make_room(self, more: int) -> None:
        needed = self.columns.count + more
        self.columns.reserve(needed)
        if needed > len(self._slots) * self.MAX_LOAD:
            size = len(self._slots)
            while needed > size * self.MAX_LOAD:
                size *= 2
            self._slots = np.full(size, -1, dtype=np.int32)
            rebuild(self._slots, self.columns.whole("hash"), self.columns.count)

    def claim(self, hashes: U64) -> tuple[I64, int]:
        """Rows for all hashes, adding the unknown ones in order of appearance; how many were added.

        The new rows' other columns are zero until `fill` is called.
        """
        self._make_room(len(hashes))
        rows = np.empty(len(hashes), dtype=np.int64)
        added = claim_many(self._slots, self.columns.whole("hash"), hashes, self.columns.count, rows)
        self.columns.count += added
        return rows, added

    def fill(
        self,
        first: int,
        hosts: npt.ArrayLike,
        *,
        kind: npt.ArrayLike,
        depth: npt.ArrayLike,
        hops: npt.ArrayLike,
        first_seen: npt.ArrayLike,
        interval_s: float,
        source: npt.ArrayLike = -1,
    ) -> None:
        """Set the facts of the rows from `first` on."""
        columns = self.columns
        part = slice(first, columns.count)
        host_rows = np.asarray(hosts, dtype=np.int64)
        columns["host"][part] = host_rows
        columns["kind"][part] = kind
        columns["depth"][part] = depth
        columns["hops"][part] = hops
        columns["first_seen"][part] = first_seen
        columns["source"][part] = source
        columns["interval_s"][part] = interval_s
        if self._near is not None:
            if len(self._near) < columns.count:
                grown = np.zeros(columns.capacity, dtype=np.uint8)
                grown[:first] = self._near[:first]
                self._near = grown
            self._near[part] = columns["depth"][part]
            self.pass_on_depth(self.near_depth, first)
        self.hosts.columns["known"][:] += np.bincount(host_rows, minlength=len(self.hosts))

    def restore(self, count: int) -> None:
        """Rebuild the finding table after the columns were loaded."""
        self._make_room(0)
        self._slots.fill(-1)
        rebuild(self._slots, self.columns.whole("hash"), count)

    def page_columns(self) -> PageColumns:
        """What appraisers see of the URLs."""
        pages = self.columns.pages()
        if self._near is None:
            return pages
        near = self.near_depth.view()
        near.flags.writeable = False
        return replace(pages, depth=near)

    def host_columns(self) -> HostColumns:
        """What appraisers see of the hosts."""
        hosts = self.hosts.columns
        views = hosts["known"].view(), hosts["pages"].view(), self.hosts.trap_score()
        for view in views:
            view.flags.writeable = False
        return HostColumns(*views)
