"""A policy by name: one appraiser of new pages, one of known pages, one of hubs; together they bid for every URL.

A new method is one file and one line in a registry below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import orjson

from bowerbird.appraise.appraiser import Appraiser, RefreshAppraiser, Rows
from bowerbird.appraise.frontier.breadth_first import BreadthFirst
from bowerbird.appraise.frontier.host_fair import HostFair
from bowerbird.appraise.frontier.in_degree import InDegree
from bowerbird.appraise.frontier.random_order import RandomOrder
from bowerbird.appraise.frontier.studied import Studied
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.appraise.refresh.fixed import FixedInterval
from bowerbird.appraise.refresh.studied import StudiedRefresh
from bowerbird.model.bid import Bids, Term
from bowerbird.model.errors import PolicyError
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState

#: methods that look at the whole crawl; `appraise/frontier/methods.py` has them
STUDIED = ("pagerank", "query-driven", "hybrid", "boosted", "rw", "rw-eg", "learned")
FRONTIER: Mapping[str, Callable[[], Appraiser]] = {
    BreadthFirst.name: BreadthFirst,
    RandomOrder.name: RandomOrder,
    InDegree.name: InDegree,
    HostFair.name: HostFair,
    **{name: partial(Studied, name) for name in STUDIED},
}
OTHER_NAMES = {"indegree": InDegree.name}
#: methods that look at all fetched pages; `appraise/refresh/methods.py` has them
REFRESH_STUDIED = (
    "user-centric",
    "user-centric-linear",
    "user-centric-saturating",
    "sbr",
    "ebr",
    "click-ebr",
    "lambda-crawl",
    "azar",
    "uniform",
    "proportional",
)


def _adaptive(settings: RefreshSettings) -> AdaptiveInterval:
    return AdaptiveInterval(
        settings.interval_s,
        longer=settings.longer,
        shorter=settings.shorter,
        min_s=settings.min_interval_s,
        max_s=settings.max_interval_s,
        gone_interval_s=settings.gone_interval_s,
    )


def _studied(name: str) -> Callable[[RefreshSettings], RefreshAppraiser]:
    return lambda settings: StudiedRefresh(name, _adaptive(settings))


REFRESH: Mapping[str, Callable[[RefreshSettings], RefreshAppraiser]] = {
    FixedInterval.name: lambda settings: FixedInterval(settings.interval_s, gone_interval_s=settings.gone_interval_s),
    AdaptiveInterval.name: _adaptive,
    **{name: _studied(name) for name in REFRESH_STUDIED},
}
DEFAULT = f"{BreadthFirst.name}+{AdaptiveInterval.name}"


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """How long to leave a known page alone."""

    interval_s: float = 7 * 86400.0
    min_interval_s: float = 60.0
    max_interval_s: float = 365 * 86400.0
    longer: float = 0.4
    shorter: float = 0.2
    hub_interval_s: float = 6 * 3600.0
    gone_interval_s: float = 30 * 86400.0
    explore: float = 0.05
    threshold: float = 0.1
    study_every_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Bids for every kind of fetch in one unit; a fetch needs to bid the reserve."""

    frontier: Appraiser
    refresh: RefreshAppraiser
    hubs: Appraiser
    settings: RefreshSettings
    reserve: float = 1.0

    @property
    def name(self) -> str:
        """As a person names it: `breadth-first+adaptive`."""
        return f"{self.frontier.name}+{self.refresh.name}"

    @property
    def studied(self) -> tuple[str, ...]:
        """The methods that new pages and known pages are studied by; empty where bids need no study."""
        parts = (self.frontier, self.refresh)
        return tuple(part.name for part in parts if isinstance(part, Studied | StudiedRefresh))

    def appraiser_of(self, state: int, kind: int) -> Appraiser | None:
        """Who bids for a URL of this state and kind; None when nobody does."""
        if state not in (UrlState.NEW, *REVISITED):
            return None
        if kind != UrlKind.PAGE:
            return self.hubs
        return self.frontier if state == UrlState.NEW else self.refresh

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of `rows` in their order; URLs that nobody may fetch bid 0."""
        state = snapshot.pages.state[rows]
        hub = snapshot.pages.kind[rows] != UrlKind.PAGE
        new = state == UrlState.NEW
        known = np.isin(state, REVISITED)
        parts = (
            (self.frontier, new & ~hub),
            (self.refresh, known & ~hub),
            (self.hubs, (new | known) & hub),
        )
        for appraiser, mine in parts:
            if mine.all() and len(rows):
                return appraiser.appraise(snapshot, rows)
        out = Bids.build(np.zeros(len(rows)))
        for appraiser, mine in parts:
            places = np.flatnonzero(mine)
            if not len(places):
                continue
            bids = appraiser.appraise(snapshot, rows[places])
            out.amplitude[places] = bids.amplitude
            out.rate[places] = bids.rate
            out.since[places] = bids.since
            out.shape[places] = bids.shape
        return out

    def terms(self, snapshot: Snapshot, rows: Rows) -> list[str]:
        """What the bid of each row rests on, as JSON for the journal."""
        out = ["{}"] * len(rows)
        states, kinds = snapshot.pages.state[rows].tolist(), snapshot.pages.kind[rows].tolist()
        groups: dict[str, tuple[Appraiser, list[int]]] = {}
        for place, (state, kind) in enumerate(zip(states, kinds, strict=True)):
            appraiser = self.appraiser_of(state, kind)
            if appraiser is not None:
                groups.setdefault(appraiser.name, (appraiser, []))[1].append(place)
        for name, (appraiser, places) in groups.items():
            columns = appraiser.appraise(snapshot, rows[places]).terms
            names = ("by", *columns)
            spread = [np.broadcast_to(column, len(places)).tolist() for column in columns.values()]
            for place, *values in zip(places, *spread, strict=True):
                out[place] = orjson.dumps(dict(zip(names, (name, *values), strict=True))).decode()
        return out

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """The tree behind the bid of one row."""
        state = int(snapshot.pages.state[row])
        appraiser = self.appraiser_of(state, int(snapshot.pages.kind[row]))
        if appraiser is None:
            return Term("no bid", 0.0, f"the URL is {UrlState(state).name.lower()}: it is not fetched")
        tree = appraiser.explain(snapshot, row)
        return Term("bid", tree.value, f"by {appraiser.name}", (tree,))

    @staticmethod
    def fetch_kind(state: int, kind: int) -> FetchKind:
        """Which part of the budget a fetch of this URL comes from."""
        if kind != UrlKind.PAGE:
            return FetchKind.HUB
        return FetchKind.NEW if state == UrlState.NEW else FetchKind.REFRESH


def split_name(whole: str) -> tuple[str, ...]:
    """The parts that a policy's name names, as the registries know them."""
    return tuple(OTHER_NAMES.get(part, part) for part in whole.split("+"))


def make_policy(name: str, settings: RefreshSettings | None = None, base: str = DEFAULT) -> Policy:
    """A policy from `frontier`, `refresh` or `frontier+refresh`; a part that is not named is that of `base`."""
    settings = settings or RefreshSettings()
    chosen: dict[str, str] = {}
    for whole in (DEFAULT, base, name):
        chosen |= _read_name(whole)
    return Policy(
        FRONTIER[chosen["frontier"]](),
        REFRESH[chosen["refresh"]](settings),
        HubInterval(settings.hub_interval_s, gone_interval_s=settings.gone_interval_s),
        settings,
    )


def _read_name(whole: str) -> dict[str, str]:
    """What is named for new pages, for known pages, or both."""
    found: dict[str, str] = {}
    for part in split_name(whole):
        if part not in FRONTIER and part not in REFRESH:
            problem = f"{part!r} is not known"
        elif (kind := "frontier" if part in FRONTIER else "refresh") in found:
            which = "new pages" if kind == "frontier" else "known pages"
            problem = f"{found[kind]!r} and {part!r} are both for {which}"
        else:
            found[kind] = part
            continue
        raise PolicyError(
            f"policy {whole!r}: {problem}. New pages: {', '.join(FRONTIER)}; "
            f"refresh: {', '.join(REFRESH)}; join one of each with '+', as in '{DEFAULT}'."
        )
    return found
