"""The web as arrays: hosts, pages, kinds, links. Built once from a spec; time is no part of it.

A page is a number. The pages of a host are consecutive: first its home page, then its hubs (the first of them
are the roots of its sections), then its leaves. A leaf belongs to one hub, which as a rule links to it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from bowerbird.lab.world.chance import Words64, generator, mix, mix_array
from bowerbird.lab.world.spec import DAY_S, WorldSpec

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MAX_SECTIONS = 8
NOFOLLOW = 1 << 30  # a bit of a packed link; a dead link is the complement of a packed link
_MAX_HOPS = 4
_HUB_COVER = 0.92  # of a hub's leaves that it links to; the others are found through other pages, or never
_CHUNK = 20_000


class Kind:
    """What is at an address. Plain numbers: an enum's look-ups would cost a tenth of a page's making."""

    LEAF: Final = 0
    HUB: Final = 1
    REDIRECT: Final = 2
    PRINT: Final = 3  # a print version of another page of the host
    MIRROR: Final = 4  # almost the same text as a page of another host


def _by_size(spec: WorldSpec) -> Ints:
    """Pages of each host, skewed, in an order of their own."""
    weights = np.arange(1, spec.hosts + 1) ** -spec.host_skew
    edges = np.floor(np.cumsum(weights) / weights.sum() * (spec.pages - spec.hosts) + 1e-6)
    edges[-1] = spec.pages - spec.hosts
    sizes = 1 + np.diff(edges, prepend=0.0).astype(np.int64)
    return generator(spec.seed, 1).permutation(sizes)


class Web:
    """Columns over hosts and pages, and the links in compressed rows."""

    def __init__(self, spec: WorldSpec) -> None:
        self.spec = spec
        self.size = spec.pages
        self._build_hosts()
        self._build_pages()
        self._build_copies()
        self._build_weights()
        self._build_links()

    def _build_hosts(self) -> None:
        spec = self.spec
        self.host_pages = _by_size(spec)
        self.host_start = np.concatenate([[0], np.cumsum(self.host_pages)])
        sections = np.minimum(4, self.host_pages // 8)
        hubs = 1 + np.maximum(sections, np.rint(spec.hub_share * self.host_pages).astype(np.int64))
        self.host_hubs = np.minimum(hubs, self.host_pages)
        self.host_sections = np.clip(self.host_hubs - 1, 1, MAX_SECTIONS)
        self.host_key: Words64 = mix_array(mix(spec.seed, 2), np.arange(spec.hosts))

        rng = generator(spec.seed, 3)
        main = np.floor(spec.topics * rng.random(spec.hosts) ** 1.5).astype(np.int64)
        self.section_topic = (main[:, None] + np.arange(MAX_SECTIONS)) % spec.topics
        self.host_weight = np.exp(rng.normal(0.0, 1.0, spec.hosts))
        disallows = (rng.random(spec.hosts) < spec.disallow_share) & (self.host_sections > 1)
        self.disallowed_section = np.where(disallows, self.host_sections - 1, -1)
        self.disallows_print = rng.random(spec.hosts) < spec.disallow_share / 2
        self.has_crawl_delay = rng.random(spec.hosts) < spec.crawl_delay_share
        self.has_sitemap = rng.random(spec.hosts) < spec.sitemap_share
        self.has_validators = rng.random(spec.hosts) < spec.validator_share
        self.has_gzip = rng.random(spec.hosts) < spec.gzip_share
        self.by_query = rng.random(spec.hosts) < 0.15  # leaves are /section/item?id=7
        self.trap = np.full(spec.hosts, -1, dtype=np.int8)
        if spec.trap_share > 0:
            trapped = min(spec.hosts, max(4, round(spec.trap_share * spec.hosts)))
            self.trap[rng.permutation(spec.hosts)[:trapped]] = np.arange(trapped) % 4

    def _build_pages(self) -> None:
        spec = self.spec
        numbers = np.arange(self.size)
        self.key: Words64 = mix_array(mix(spec.seed, 4), numbers)
        self.host: Small = np.repeat(np.arange(spec.hosts, dtype=np.int32), self.host_pages)
        local = numbers - self.host_start[self.host]
        hubs = self.host_hubs[self.host]
        is_hub = local < hubs
        self.hub_slot: Small = np.where(
            is_hub, np.maximum(local - 1, 0), (local - hubs) % np.maximum(hubs - 1, 1)
        ).astype(np.int32)
        self.section = (self.hub_slot % self.host_sections[self.host]).astype(np.uint8)
        self.topic = self.section_topic[self.host, self.section].astype(np.int16)

        rng = generator(spec.seed, 5)
        draw = rng.random(self.size)
        twin = draw < spec.redirect_share + spec.near_duplicate_share
        kind = np.where(draw < spec.redirect_share, Kind.REDIRECT, Kind.LEAF)
        copies = twin & (kind == Kind.LEAF)
        kind[copies] = np.where(rng.random(int(copies.sum())) < 0.5, Kind.PRINT, Kind.MIRROR)
        kind[is_hub] = Kind.HUB
        self.kind = kind.astype(np.uint8)

        shares = np.cumsum([share for share, _ in spec.change_mix])
        rates = np.array([rate for _, rate in spec.change_mix])
        which = np.searchsorted(shares / shares[-1], rng.random(self.size), side="right")
        self.rate_per_day = rates[np.minimum(which, len(rates) - 1)] * np.exp(rng.normal(0, 0.5, self.size))
        vanishes = (rng.random(self.size) < spec.gone_share) & ~is_hub & (kind != Kind.REDIRECT)
        after = rng.exponential(spec.gone_after_days * DAY_S, self.size)
        self.gone_s: Floats = np.where(vanishes, spec.start_s + after, np.inf)
        if spec.frozen:
            self.rate_per_day[:] = 0.0
            self.gone_s[:] = np.inf

    def _build_copies(self) -> None:
        """Find the original of every copy and the target of every redirect."""
        rng = generator(self.spec.seed, 6)
        self.other: Small = np.full(self.size, -1, dtype=np.int32)
        copies = np.flatnonzero((self.kind == Kind.PRINT) | (self.kind == Kind.MIRROR))
        for _ in range(8):
            at_home = self.kind[copies] == Kind.PRINT
            cand = np.where(at_home, self._on_host(copies, rng), rng.integers(0, self.size, len(copies)))
            fits = (self.kind[cand] == Kind.LEAF) & ((self.host[cand] != self.host[copies]) ^ at_home)
            self.other[copies[fits]] = cand[fits]
            copies = copies[~fits]
        self.kind[copies] = Kind.LEAF
        copies = np.flatnonzero(self.other >= 0)
        self.key[copies] = self.key[self.other[copies]]
        self.topic[copies] = self.topic[self.other[copies]]

        self.printed: Small = np.full(self.size, -1, dtype=np.int32)
        prints = np.flatnonzero(self.kind == Kind.PRINT)
        self.printed[self.other[prints]] = prints

        redirects = np.flatnonzero(self.kind == Kind.REDIRECT)
        near = rng.random(len(redirects)) < 0.85
        target = np.where(near, self._on_host(redirects, rng), rng.integers(0, self.size, len(redirects)))
        home = self.host_start[self.host[redirects]]
        target = np.where(self.kind[target] == Kind.REDIRECT, home, target)
        hops = np.ones(len(redirects), dtype=np.int64)
        chained = rng.random(len(redirects)) < 0.3
        earlier = np.floor(rng.random(len(redirects)) * np.arange(len(redirects))).astype(np.int64)
        for i in np.flatnonzero(chained[1:]) + 1:
            if hops[earlier[i]] < _MAX_HOPS:
                target[i] = redirects[earlier[i]]
                hops[i] = hops[earlier[i]] + 1
        self.other[redirects] = target

        section = self.section == self.disallowed_section[self.host]
        section[self.host_start[:-1]] = False  # a home page is at "/", in no section
        is_print = self.kind == Kind.PRINT
        self.allowed: Flags = np.where(is_print, ~self.disallows_print[self.host], ~section)

    def _on_host(self, pages: Ints, rng: np.random.Generator) -> Ints:
        hosts = self.host[pages]
        places = np.floor(rng.random(len(pages)) * self.host_pages[hosts]).astype(np.int64)
        return self.host_start[hosts] + places

    def _build_weights(self) -> None:
        """How much pages attract links and clicks: related, but not the same."""
        rng = generator(self.spec.seed, 7)
        local = np.arange(self.size) - self.host_start[self.host]
        weight = self.host_weight[self.host] * (local + 1.0) ** -0.6
        weight *= np.exp(rng.normal(0.0, 0.8, self.size))
        self.by_topic: Small = np.lexsort((-weight, self.topic)).astype(np.int32)
        self.topic_start = np.searchsorted(self.topic[self.by_topic], np.arange(self.spec.topics + 1))
        self.by_weight: Small = np.argsort(-weight, kind="stable").astype(np.int32)
        weight *= np.exp(rng.normal(0.0, 0.7, self.size))
        weight[self.kind == Kind.REDIRECT] = 0.0
        self.popularity: Floats = weight / weight.sum()

    def _fixed_links(self) -> tuple[Ints, Ints]:
        """(from, to) of the links that make a site: hubs to their leaves and further hubs, homes to homes."""
        rng = generator(self.spec.seed, 8)
        numbers = np.arange(self.size)
        start = self.host_start[self.host]
        hubs = self.host_hubs[self.host]
        local = numbers - start
        leaves = numbers[(local >= hubs) & (rng.random(self.size) < _HUB_COVER)]
        owner = start + np.where(hubs > 1, 1 + self.hub_slot, 0)
        inner = numbers[(local > self.host_sections[self.host]) & (local < hubs)]
        homes = np.repeat(self.host_start[:-1], min(4, self.spec.hosts))
        friends = self.host_start[rng.integers(0, self.spec.hosts, len(homes))]
        sources = np.concatenate([owner[leaves], start[inner] + 1 + self.section[inner], homes])
        return sources, np.concatenate([leaves, inner, friends])

    def _build_links(self) -> None:
        spec = self.spec
        rng = generator(spec.seed, 9)
        sources, targets = self._fixed_links()
        fixed = np.bincount(sources, minlength=self.size)
        spread = np.exp(rng.normal(-0.18, 0.6, self.size))  # mean 1
        free = np.rint(np.minimum(spread, 6.0) * spec.mean_links).astype(np.int64)
        free[self.kind == Kind.HUB] //= 2
        no_links = self.kind == Kind.REDIRECT
        free[no_links] = 0
        copies = np.flatnonzero((self.kind == Kind.PRINT) | (self.kind == Kind.MIRROR))
        originals = self.other[copies]
        free[copies] = free[originals]
        self.link_start: Ints = np.concatenate([[0], np.cumsum(fixed + free)])
        self.links: Small = np.empty(self.link_start[-1], dtype=np.int32)

        order = np.argsort(sources, kind="stable")
        rank = np.arange(len(order)) - (np.cumsum(fixed) - fixed)[sources[order]]
        self.links[self.link_start[sources[order]] + rank] = targets[order]
        for low in range(0, self.size, _CHUNK):
            high = min(low + _CHUNK, self.size)
            counts = free[low:high]
            pages = np.repeat(np.arange(low, high), counts)
            rank = np.arange(len(pages)) - np.repeat(np.cumsum(counts) - counts, counts)
            self.links[self.link_start[pages] + fixed[pages] + rank] = self._draw_links(pages, rng)
        # a copy has its original's links too, so that the two really are near-duplicates
        ends = self.link_start[1:]
        for copy, original in zip(copies.tolist(), originals.tolist(), strict=True):
            count = int(free[original])
            self.links[ends[copy] - count : ends[copy]] = self.links[ends[original] - count : ends[original]]

    def _draw_links(self, pages: Ints, rng: np.random.Generator) -> Small:
        """One link from each of `pages`: within the host, within the topic, or to what is popular."""
        spec = self.spec
        draw = rng.random(len(pages), dtype=np.float32)
        place = rng.random(len(pages), dtype=np.float32).astype(np.float64)
        hosts, topics = self.host[pages], self.topic[pages]
        first = self.topic_start[topics]
        in_host = self.host_start[hosts] + (place**2.2 * self.host_pages[hosts]).astype(np.int64)
        in_topic = self.by_topic[first + (place**3 * (self.topic_start[topics + 1] - first)).astype(np.int64)]
        anywhere = self.by_weight[(place**4 * self.size).astype(np.int64)]
        links = np.where(draw < 0.65, in_host, np.where(draw < 0.9, in_topic, anywhere)).astype(np.int32)
        marks = rng.random(len(pages), dtype=np.float32)
        links[marks < spec.nofollow_share] |= NOFOLLOW
        dead = marks > 1 - spec.dead_link_share
        links[dead] = ~links[dead]
        return links

    def packed_links(self, page: int) -> Small:
        """The links in the body of an initial page, packed with their marks."""
        return self.links[self.link_start[page] : self.link_start[page + 1]]

    def section_roots(self, host: int) -> list[int]:
        """The hubs that are the roots of a host's sections (none on the smallest hosts)."""
        start = int(self.host_start[host])
        roots = min(int(self.host_sections[host]), int(self.host_hubs[host]) - 1)
        return list(range(start + 1, start + 1 + roots))


def live_targets(packed: Small, nofollow: bool) -> Ints:
    """The pages that packed links lead to: not the dead ones, and `nofollow` ones only if asked."""
    alive = packed[packed >= 0]
    if not nofollow:
        alive = alive[(alive & NOFOLLOW) == 0]
    return (alive & (NOFOLLOW - 1)).astype(np.int64)
