"""The replay of a world of hubs: one fetch at a time, of a hub or of a page, whichever the policy chooses.

A policy sees what a crawler sees: the links that a hub shows when it is visited, in their order and without dates; once
an hour, the clicks that fetched pages got after their fetch, in whole bins; and the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numba
import numpy as np

from bowerbird.lab.echo_world import BIN_S, F64, HOUR_S, I64, BoolArray, EchoWorld

PUSH_S = HOUR_S
#: what a policy chooses: a hub to visit, or a page that a hub has shown to fetch
Choice = tuple[str, int]
HUB, PAGE = "hub", "page"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy is told at the beginning, at which all hubs have just been visited."""

    hub_names: tuple[str, ...]
    hub_group: I64
    begin_s: float
    fetches_per_s: float
    bin_s: float
    push_s: float

    @property
    def hub_count(self) -> int:
        """How many hubs there are."""
        return len(self.hub_names)


class EchoPolicy(Protocol):
    """Chooses each fetch."""

    def choose(self, now_s: float) -> Choice | None:
        """(HUB, number), (PAGE, number of a page seen and not fetched yet), or None to let the fetch pass."""

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """A visit's links, top first; those never seen on any hub before, and where in `links` these are."""

    def fetched(self, now_s: float, page: int) -> None:
        """A page was fetched."""

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """Clicks of fetched pages in bins that began after their fetch and ended since the last push; none: no row."""


MakePolicy = Callable[[Setting, np.random.Generator], EchoPolicy]


@dataclass(frozen=True)
class EchoResult:
    """What a policy did, and what it was worth."""

    world: EchoWorld
    x: float
    seed: int
    visits: int
    idle: int
    fetch_page: I64  # in the order of the fetches
    fetch_s: F64
    fetch_profit: F64  # what the page makes from its fetch on
    found_s: F64  # by page: when it was first seen; inf = never
    visit_hub: I64
    visit_s: F64

    @property
    def share(self) -> float:
        """Post-fetch profit of scored pages, as a share of the bound."""
        bound = self.world.bound
        return float(self.fetch_profit[self.world.scored[self.fetch_page]].sum()) / bound if bound > 0 else float("nan")

    @property
    def fetched_share(self) -> float:
        """The share of scored pages that were fetched, whatever they are worth and however late."""
        return float(self.world.scored[self.fetch_page].sum()) / max(int(self.world.scored.sum()), 1)

    @property
    def fetches(self) -> dict[str, int]:
        """By kind."""
        return {"hubs": self.visits, "pages": len(self.fetch_page), "idle": self.idle}

    @property
    def found(self) -> float:
        """The share of scored pages that were seen on a hub."""
        return float(np.isfinite(self.found_s[self.world.scored]).mean())

    @property
    def missed(self) -> BoolArray:
        """By page: scored, and gone from all hubs before it was seen on any."""
        gone = self.world.last_shown_s <= self.world.end_s
        return self.world.scored & ~np.isfinite(self.found_s) & gone

    @property
    def found_delay_s(self) -> F64:
        """Of scored pages that were seen: how long after their appearance."""
        seen = self.world.scored & np.isfinite(self.found_s)
        return self.found_s[seen] - self.world.appeared_s[seen]

    @property
    def fetch_delay_s(self) -> F64:
        """Of scored pages that were fetched: how long after their appearance."""
        kept = self.world.scored[self.fetch_page]
        return self.fetch_s[kept] - self.world.appeared_s[self.fetch_page[kept]]

    def profit_curve(self, window_s: float) -> tuple[F64, F64]:
        """[ECHO13] Q_T(t): profit a second of the pages fetched in each window, and the windows' ends."""
        edges = np.arange(self.world.begin_s, self.world.end_s + 0.5 * window_s, window_s)
        made = np.histogram(self.fetch_s, edges, weights=self.fetch_profit)[0]
        return edges[1:], made / window_s

    def bound_curve(self, window_s: float) -> F64:
        """The same with every new page fetched as it appears."""
        edges = np.arange(self.world.begin_s, self.world.end_s + 0.5 * window_s, window_s)
        new = ~self.world.old
        made = np.histogram(self.world.appeared_s[new], edges, weights=self.world.total_profit[new])[0]
        return np.asarray(made / window_s, dtype=np.float64)


def run(
    world: EchoWorld,
    make: MakePolicy,
    x: float,
    seed: int = 0,
    *,
    push_s: float = PUSH_S,
    fetches_per_s: float | None = None,
) -> EchoResult:
    """Replay a policy with x fetches for each new page; the same arguments give the same result."""
    rate = x * world.new_rate_per_s if fetches_per_s is None else fetches_per_s
    setting = Setting(world.hub_names, world.hub_group, world.begin_s, rate, BIN_S, push_s)
    policy = make(setting, np.random.default_rng(seed))
    hubs = _Hubs(world)
    log = _ClickLog(world)
    known = world.old.copy()  # seen on some hub
    fetched_at = np.full(world.page_count, np.inf)
    found_s = np.full(world.page_count, np.inf)
    fetch_page: list[int] = []
    fetch_s: list[float] = []
    visit_hub: list[int] = []
    visit_s: list[float] = []
    idle = 0
    next_push = world.begin_s + push_s
    for turn in range(int((world.end_s - world.begin_s) * rate)):
        now = world.begin_s + (turn + 1) / rate
        while next_push <= now:
            policy.pushed(next_push, *log.push(next_push, fetched_at))
            next_push += push_s
        choice = policy.choose(now)
        if choice is None:
            idle += 1
            continue
        kind, number = choice
        if kind == HUB:
            links, places = hubs.visit(number, now, known)
            fresh = links[places]
            found_s[fresh] = now
            visit_hub.append(number)
            visit_s.append(now)
            policy.saw(now, number, links, fresh, places)
        else:
            if not known[number] or fetched_at[number] < np.inf or world.old[number]:
                raise ValueError(f"page {number} is not known, or was fetched before: a policy cannot choose it")
            fetched_at[number] = now
            fetch_page.append(number)
            fetch_s.append(now)
            policy.fetched(now, number)
    pages, times = np.array(fetch_page, dtype=np.int64), np.array(fetch_s)
    profit = world.profit_between(pages, times, np.full(len(pages), np.inf))
    return EchoResult(
        world,
        x,
        seed,
        len(visit_hub),
        idle,
        pages,
        times,
        profit,
        found_s,
        np.array(visit_hub, dtype=np.int64),
        np.array(visit_s),
    )


class _Hubs:
    """What each hub shows, as time goes on: a link is put where it appears, and pushes those below it down."""

    def __init__(self, world: EchoWorld) -> None:
        self.starts, order = world.links_by_hub
        self.page = world.link_page[order]
        self.from_s = world.link_from_s[order]
        self.to_s = world.link_to_s[order]
        self.position = world.link_position[order]
        self.shown = np.zeros(len(order), dtype=np.int64)  # hub h's list is shown[starts[h]:][:count[h]]
        self.count = np.zeros(world.hub_count, dtype=np.int64)
        self.ahead = self.starts[:-1].copy()  # the next link to appear

    def visit(self, hub: int, now_s: float, known: BoolArray) -> tuple[I64, I64]:
        """Links in order, and the places of those that were not known, which they are from now on."""
        seen: tuple[I64, I64] = _visit(
            hub,
            now_s,
            self.starts,
            self.page,
            self.from_s,
            self.to_s,
            self.position,
            self.shown,
            self.count,
            self.ahead,
            known,
        )
        return seen


class _ClickLog:
    """What is told of fetched pages' clicks."""

    def __init__(self, world: EchoWorld) -> None:
        order = np.argsort(world.gain_from_s, kind="stable")
        self.page = world.gain_page[order]
        self.from_s = world.gain_from_s[order]
        self.to_s = world.gain_to_s[order]
        self.clicks = world.gain_clicks[order]
        self.open = np.zeros(len(order), dtype=np.int64)
        self.state = np.array([0, 0], dtype=np.int64)  # spans that have begun; how many of them are open
        self.told = round(world.begin_s / BIN_S)  # bins before this one were told
        self.sums = np.zeros(world.page_count)
        while self.told * BIN_S < world.begin_s:
            self.told += 1

    def push(self, now_s: float, fetched_at: F64) -> tuple[I64, F64, F64]:
        """Rows of (page, beginning of the bin, clicks) of the bins that ended since the last push."""
        pages, bins, clicks = [], [], []
        while (self.told + 1) * BIN_S <= now_s:
            page, made = _tell_bin(
                self.told * BIN_S,
                (self.told + 1) * BIN_S,
                self.page,
                self.from_s,
                self.to_s,
                self.clicks,
                self.open,
                self.state,
                self.sums,
                fetched_at,
            )
            pages.append(page)
            bins.append(np.full(len(page), self.told * BIN_S))
            clicks.append(made)
            self.told += 1
        if not pages:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        return np.concatenate(pages), np.concatenate(bins), np.concatenate(clicks)


@numba.njit(cache=True, nogil=True)
def _drop_gone(shown: I64, first: int, count: int, to_s: F64, now_s: float) -> int:
    kept = 0
    for place in range(first, first + count):
        if to_s[shown[place]] > now_s:
            shown[first + kept] = shown[place]
            kept += 1
    return kept


@numba.njit(cache=True, nogil=True)
def _visit(
    hub: int,
    now_s: float,
    starts: I64,
    page: I64,
    from_s: F64,
    to_s: F64,
    position: I64,
    shown: I64,
    count: I64,
    ahead: I64,
    known: BoolArray,
) -> tuple[I64, I64]:
    first, have = starts[hub], count[hub]
    link = ahead[hub]
    cleared_s = -np.inf
    while link < starts[hub + 1] and from_s[link] <= now_s:
        if from_s[link] > cleared_s:
            cleared_s = from_s[link]
            have = _drop_gone(shown, first, have, to_s, cleared_s)
        place = first + min(position[link], have)
        for below in range(first + have, place, -1):
            shown[below] = shown[below - 1]
        shown[place] = link
        have += 1
        link += 1
    have = _drop_gone(shown, first, have, to_s, now_s)
    count[hub] = have
    ahead[hub] = link
    links = np.empty(have, np.int64)
    places = np.empty(have, np.int64)
    fresh = 0
    for nth in range(have):
        links[nth] = page[shown[first + nth]]
        if not known[links[nth]]:
            known[links[nth]] = True
            places[fresh] = nth
            fresh += 1
    return links, places[:fresh].copy()


@numba.njit(cache=True, nogil=True)
def _tell_bin(
    bin_from: float,
    bin_to: float,
    page: I64,
    from_s: F64,
    to_s: F64,
    clicks: F64,
    opened: I64,
    state: I64,
    sums: F64,
    fetched_at: F64,
) -> tuple[I64, F64]:
    """Clicks in one bin of pages that were fetched when it began; bins are asked for in order."""
    begun, count = state[0], state[1]
    while begun < len(page) and from_s[begun] < bin_to:
        opened[count] = begun
        count += 1
        begun += 1
    rows = np.empty(count, np.int64)
    found = kept = 0
    for nth in range(count):
        span = opened[nth]
        low, high = max(from_s[span], bin_from), min(to_s[span], bin_to)
        if high > low and fetched_at[page[span]] <= bin_from:
            if sums[page[span]] == 0.0:
                rows[found] = page[span]
                found += 1
            sums[page[span]] += clicks[span] * (high - low) / (to_s[span] - from_s[span])
        if to_s[span] > bin_to:
            opened[kept] = span
            kept += 1
    state[0], state[1] = begun, kept
    made = np.empty(found)
    for nth in range(found):
        made[nth] = sums[rows[nth]]
        sums[rows[nth]] = 0.0
    return rows[:found].copy(), made
