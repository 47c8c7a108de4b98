"""A crawl of a holistic world: what it has found, fetched and heard, in columns as those of a live crawl.

Rows are numbered in the order in which URLs are found. What a crawl must not know (whether a page has changed since,
what it is worth) is kept beside the columns for the account only: `kept`, `missed`, and the realised gains of fetches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bowerbird.lab.holistic_world import BOOL, F64, I64, START_S, HolisticWorld
from bowerbird.model.snapshot import HostColumns, PageColumns
from bowerbird.model.url_state import UrlState


class Kind(IntEnum):
    """What a fetch is for."""

    NEW = 0
    REFRESH = 1
    HUB = 2

    @property
    def label(self) -> str:
        """As people read it."""
        return self.name.lower()


KINDS = tuple(Kind)


@dataclass(slots=True)
class PageVisitLog:
    """Fetches of pages after the first of each."""

    row: list[int] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    interval_s: list[float] = field(default_factory=list)
    shift: list[float] = field(default_factory=list)  # 0 = unchanged
    gain: list[float] = field(default_factory=list)  # share of what searchers clicked then, as measured
    clicked_per_s: list[float] = field(default_factory=list)  # what they clicked then


@dataclass(slots=True)
class HubVisitLog:
    """Visits to hubs, the first of each left out, and the new pages that they announced."""

    row: list[int] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    gap_s: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    turned: list[bool] = field(default_factory=list)
    page: list[int] = field(default_factory=list)  # rows announced
    page_hub: list[int] = field(default_factory=list)
    page_place: list[int] = field(default_factory=list)
    page_gap_s: list[float] = field(default_factory=list)
    link_hub: list[int] = field(default_factory=list)  # who shows what
    link_page: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ClickLog:
    """Clicks on pages, by step."""

    row: list[I64] = field(default_factory=list)
    at_s: list[F64] = field(default_factory=list)
    clicks: list[F64] = field(default_factory=list)


class HolisticCrawl:
    """One crawl. Columns have room for all pages of the world; the first `count` rows are in use."""

    def __init__(self, world: HolisticWorld, seed: int) -> None:
        n = world.count
        self.world = world
        self.rng = np.random.default_rng([seed, 0xC11C])
        self.count = 0
        self.now = START_S
        self.row_of: I64 = np.full(n, -1, dtype=np.int64)
        self.page: I64 = np.zeros(n, dtype=np.int64)
        self.columns = PageColumns(
            host=np.zeros(n, np.uint32),
            state=np.zeros(n, np.uint8),
            kind=np.zeros(n, np.uint8),
            depth=np.zeros(n, np.uint8),
            first_seen=np.zeros(n, np.uint32),
            last_fetched=np.zeros(n, np.float64),
            last_changed=np.zeros(n, np.uint32),
            fetches=np.zeros(n, np.uint16),
            changes=np.zeros(n, np.uint16),
            errors=np.zeros(n, np.uint8),
            in_degree=np.zeros(n, np.uint32),
            interval_s=np.full(n, 30 * 86_400.0, np.float32),
            hint_modified=np.zeros(n, np.uint32),
            source=np.full(n, -1, np.int32),
        )
        self.first_fetched: F64 = np.full(n, np.inf)
        self.propensity: F64 = np.full(n, np.nan)  # of new pages that were fetched by lot
        self.is_hub: BOOL = np.zeros(n, np.bool_)
        self.clicks: F64 = np.zeros(n)  # heard of, all
        self.recent_clicks: F64 = np.zeros(n)  # faded
        self.recent_s: F64 = np.zeros(n)  # time in which they were made, faded alike
        self.visits, self.hub_visits, self.click_log = PageVisitLog(), HubVisitLog(), ClickLog()
        self.link_source: list[I64] = []
        self.link_target: list[I64] = []
        self.last_shown: dict[int, set[int]] = {}
        self.heard_until_s = START_S
        self.touched: list[int] = []  # rows found or fetched since somebody looked: their bids are others now
        # for the account only
        self.kept: F64 = np.ones(n)  # share of its clicks that a fetched page still gets
        self.missed: dict[int, list[tuple[float, float]]] = {}  # changes: share of the clicks, when - last fetch
        self.clicked_per_s = 1.0  # that searchers get now
        self._event = 0
        self._told: tuple[I64, F64, float] | None = None
        self.learn(world.known_pages, -1)
        for page in world.fetched_pages.tolist():
            self.fetch(int(self.row_of[page]))

    # -- finding and fetching

    def learn(self, pages: I64, source: int) -> I64:
        """Rows for pages that are there and were not known."""
        world = self.world
        new = pages[(self.row_of[pages] < 0) & (world.born_s[pages] <= self.now)]
        rows = np.arange(self.count, self.count + len(new))
        self.count += len(new)
        self.row_of[new], self.page[rows] = rows, new
        columns = self.columns
        columns.host[rows] = world.host[new]
        columns.kind[rows] = world.kind[new]
        columns.first_seen[rows] = int(self.now)
        columns.source[rows] = source
        columns.depth[rows] = min(int(columns.depth[source]) + 1, 255) if source >= 0 else 0
        self.is_hub[rows] = world.is_hub[new]
        self.touched.extend(rows.tolist())
        return rows

    def fetch(self, row: int) -> None:
        """Fetch a URL now: the page is fresh from then on, and what it links to and announces is known."""
        columns, now = self.columns, self.now
        page = int(self.page[row])
        first = columns.state[row] == UrlState.NEW
        if first:
            columns.state[row] = UrlState.FETCHED
            self.first_fetched[row] = now
            self._follow_links(row, page)
        changed = False
        if not first:
            changed = self._compare(row, page)
        if self.is_hub[row]:
            changed = self._look_at_hub(row, page, first=bool(first)) or changed
        if not first:
            columns.interval_s[row] = np.clip(columns.interval_s[row] * (0.8 if changed else 1.4), 3600.0, 3.2e7)
        if changed:
            columns.changes[row] += 1
            columns.last_changed[row] = int(now)
        columns.fetches[row] += 1
        columns.last_fetched[row] = now
        self.kept[row] = 1.0
        self.missed.pop(row, None)
        self.touched.append(row)

    def _compare(self, row: int, page: int) -> bool:
        shift = 1.0 - float(self.kept[row])
        changed = shift > 0.0
        gain = 0.0
        if changed:
            lost = float(self.world.clicks_per_s(np.array([page]), self.now)[0]) * shift
            noise = float(self.rng.normal(1.0, self.world.noise))
            gain = max(lost / self.clicked_per_s * noise, 0.0)
        log = self.visits
        log.row.append(row)
        log.at_s.append(self.now)
        log.interval_s.append(self.now - float(self.columns.last_fetched[row]))
        log.shift.append(shift)
        log.gain.append(gain)
        log.clicked_per_s.append(self.clicked_per_s)
        return changed

    def _follow_links(self, row: int, page: int) -> None:
        world = self.world
        targets = world.link_targets[world.link_starts[page] : world.link_starts[page + 1]]
        self.learn(targets, row)
        self._add_links(row, targets)

    def _add_links(self, row: int, targets: I64) -> None:
        found = self.row_of[targets]
        found = found[found >= 0]
        self.columns.in_degree[found] += 1
        self.link_source.append(np.full(len(found), row, dtype=np.int64))
        self.link_target.append(found)

    def _look_at_hub(self, row: int, page: int, *, first: bool) -> bool:
        world, log = self.world, self.hub_visits
        announced = self.announced_by(page)
        shown = announced[-world.shown :][::-1]  # the latest first
        before = self.last_shown.get(row, set())
        now_shown = set(shown.tolist())
        unseen = [one for one in shown.tolist() if one not in before]
        new = self.learn(shown, row)
        self.last_shown[row] = now_shown
        if world.kind[page] == 0:
            self._add_links(row, np.array(unseen, dtype=np.int64))
        if first:
            return False
        log.row.append(row)
        log.at_s.append(self.now)
        log.gap_s.append(self.now - float(self.columns.last_fetched[row]))
        log.found.append(len(new))
        log.turned.append(bool(before) and not (before & now_shown))
        log.page.extend(new.tolist())
        log.page_hub.extend([row] * len(new))
        log.page_place.extend(range(len(new)))
        log.page_gap_s.extend([log.gap_s[-1]] * len(new))
        rows = self.row_of[np.array(unseen, dtype=np.int64)]
        log.link_hub.extend([row] * len(rows))
        log.link_page.extend(rows.tolist())
        return bool(unseen)

    def announced_by(self, page: int) -> I64:
        """What a hub has announced so far, the oldest first."""
        world = self.world
        pages = world.shows_page[world.shows_starts[page] : world.shows_starts[page + 1]]
        return pages[: int(np.searchsorted(world.born_s[pages], self.now, side="right"))]

    # -- time

    def pass_step(self) -> float:
        """Searchers click until the next step; the clicks they get. Then pages change, and the clock moves on."""
        world, n = self.world, self.count
        pages = self.page[:n]
        here = np.flatnonzero(self.columns.state[:n] == UrlState.FETCHED)
        until = self.now + world.step_s
        whole = world.clicks_left(pages[here], self.now) - world.clicks_left(pages[here], until)
        got = whole * self.kept[here]
        total = float(got.sum())
        self.clicked_per_s = max(total / world.step_s, 1e-12)
        self._hear()
        drawn = self.rng.poisson(got)
        some = drawn > 0
        self._told = (here[some], drawn[some].astype(np.float64), self.now)
        fade = 0.5 ** (world.step_s / world.stake_half_life_s)
        self.recent_s[here] = self.recent_s[here] * fade + world.step_s
        self.recent_clicks[:n] *= fade
        self.now = until
        self._change_pages()
        return total

    def _hear(self) -> None:
        """Clicks of the step before are known now."""
        if self._told is None:
            return
        rows, clicks, at = self._told
        self.clicks[rows] += clicks
        self.recent_clicks[rows] += clicks
        log = self.click_log
        log.row.append(rows)
        log.at_s.append(np.full(len(rows), at + 0.5 * self.world.step_s))
        log.clicks.append(clicks)
        self.heard_until_s = at + self.world.step_s

    def _change_pages(self) -> None:
        world = self.world
        end = int(np.searchsorted(world.event_at_s, self.now, side="right"))
        pages = world.event_page[self._event : end]
        rows = self.row_of[pages]
        known = np.flatnonzero(rows >= 0)
        known = known[self.columns.state[rows[known]] == UrlState.FETCHED]
        at, loss = world.event_at_s[self._event : end], world.event_loss[self._event : end]
        for place in known.tolist():  # a page may change twice in a step
            row = int(rows[place])
            lost = float(self.kept[row]) * float(loss[place])
            self.missed.setdefault(row, []).append((lost, float(at[place]) - float(self.columns.last_fetched[row])))
            self.kept[row] -= lost
        self._event = end

    # -- what it looks like

    def view(self) -> PageColumns:
        """The columns of the URLs that are known."""
        n = self.count
        return PageColumns(
            **{name: getattr(self.columns, name)[:n] for name in PageColumns.__slots__},
        )

    def hosts(self) -> HostColumns:
        """The hosts, as far as appraisers look at them."""
        n, hosts = self.count, self.world.host_count
        host = self.columns.host[:n].astype(np.int64)
        fetched = self.columns.state[:n] == UrlState.FETCHED
        return HostColumns(
            np.bincount(host, minlength=hosts),
            np.bincount(host[fetched], minlength=hosts).astype(np.uint32),
            np.zeros(hosts, np.float32),
        )

    def kinds(self) -> npt.NDArray[np.int64]:
        """By row what a fetch of it would be for."""
        n = self.count
        new = self.columns.state[:n] == UrlState.NEW
        return np.where(self.is_hub[:n], int(Kind.HUB), np.where(new, int(Kind.NEW), int(Kind.REFRESH)))

    # -- the account

    def gain_of_page(self, row: int) -> float:
        """What a fetch of this page gains at the margin, by the truth, in clicks until the end; comparable to its bid.

        A new page: the clicks left. A refresh: for each missed change its loss times how long after the last fetch it
        came, no longer than time is left; without an end the expected value is (q/Delta)·g(Delta·tau).
        """
        world, one = self.world, self.page[row : row + 1]
        if self.columns.state[row] == UrlState.NEW:
            return float(world.clicks_left(one, self.now)[0])
        left_s = world.end_s - self.now
        area = sum(lost * min(after_s, left_s) for lost, after_s in self.missed.get(row, ()))
        return float(world.clicks_per_s(one, self.now)[0]) * area

    def gain_of_visit(self, row: int, price: float, *, telling: bool = False) -> float:
        """What a visit to a hub gains at the margin, by the truth: 0 for what is none.

        For each page not known yet that it shows, what that is worth now, net of the price, less what it would be worth
        had it waited as long as the hub. A page is worth what those of its hub are on average, for nobody can tell
        beforehand which of them is worth a fetch; who is `telling` can.
        """
        world = self.world
        if not self.is_hub[row]:
            return 0.0
        shown = self.announced_by(int(self.page[row]))[-world.shown :]
        new = shown[self.row_of[shown] < 0]
        waited = self.now - max(float(self.columns.last_fetched[row]), START_S)
        times = 1.0 if telling else world.usual_size[self.page[row]] / np.maximum(world.size[new], 1e-300)
        now = world.clicks_left(new, self.now) * times - price
        late = world.clicks_left(new, np.minimum(world.born_s[new] + waited, world.end_s)) * times - price
        return float((now - late.clip(0.0)).clip(0.0).sum())
