"""A policy by name: one appraiser of new pages, one of known pages, one of hubs; together they bid for every URL.

A new method is one file and one line in a registry below.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.appraise.appraiser import Appraiser, HubAppraiser, RefreshAppraiser, Rows
from bowerbird.appraise.budget.scales import HORIZON_S
from bowerbird.appraise.frontier.breadth_first import BreadthFirst
from bowerbird.appraise.frontier.host_fair import HostFair
from bowerbird.appraise.frontier.in_degree import InDegree
from bowerbird.appraise.frontier.random_order import RandomOrder
from bowerbird.appraise.frontier.studied import Studied
from bowerbird.appraise.hubs.due import due_sooner
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.hubs.studied import StudiedHubs
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.appraise.refresh.fixed import FixedInterval
from bowerbird.appraise.refresh.studied import StudiedRefresh
from bowerbird.model.bid import Bids, Term
from bowerbird.model.errors import PolicyError
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState

#: methods that look at the whole crawl; `appraise/frontier/methods.py` has them
STUDIED = ("pagerank", "query-driven", "hybrid", "boosted", "rw", "rw-eg", "learned", "informed")
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
#: methods that look at all hubs; `appraise/hubs/study.py` has it
HUB_STUDIED = ("echo",)


def _hub_interval(settings: RefreshSettings) -> HubInterval:
    return HubInterval(settings.hub_interval_s, gone_interval_s=settings.gone_interval_s)


def _studied_hubs(name: str) -> Callable[[RefreshSettings], HubAppraiser]:
    return lambda settings: StudiedHubs(name, _hub_interval(settings))


HUBS: Mapping[str, Callable[[RefreshSettings], HubAppraiser]] = {
    HubInterval.name: _hub_interval,
    **{name: _studied_hubs(name) for name in HUB_STUDIED},
}
AUTO = "auto"  # all three in one unit, as `one_budget.py` has it; what a crawl does unless it is told otherwise
PLAIN = f"{BreadthFirst.name}+{AdaptiveInterval.name}"  # where parts are named: those that are not
#: part of a policy -> its methods, and what they are for
PARTS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "frontier": (FRONTIER, "new pages"),
    "refresh": (REFRESH, "known pages"),
    "hubs": (HUBS, "hubs"),
}


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
    hubs: HubAppraiser
    settings: RefreshSettings
    reserve: float = 1.0

    @property
    def name(self) -> str:
        """As a person names it: `breadth-first+adaptive`; hubs are named where they do not go by the usual interval."""
        parts = (self.frontier.name, self.refresh.name, self.hubs.name)
        return "+".join(parts if self.hubs.name != HubInterval.name else parts[:2])

    @property
    def studied(self) -> tuple[str, ...]:
        """The methods that new pages, known pages and hubs are studied by; empty where bids need no study."""
        parts = (self.frontier, self.refresh, self.hubs)
        return tuple(part.name for part in parts if isinstance(part, Studied | StudiedRefresh | StudiedHubs))

    @property
    def _hub_study(self) -> StudiedHubs | None:
        return self.hubs if isinstance(self.hubs, StudiedHubs) else None

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
            (self._bid_new, new & ~hub),
            (self._bid_known, known & ~hub),
            (self.hubs.appraise, (new | known) & hub),
        )
        for appraise, mine in parts:
            if mine.all() and len(rows):
                return appraise(snapshot, rows)
        out = Bids.build(np.zeros(len(rows)))
        for appraise, mine in parts:
            places = np.flatnonzero(mine)
            if len(places):
                put_bids(out, places, appraise(snapshot, rows[places]))
        return out

    def _bid_new(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids for new pages; those that a hub announced fade with the interest in them."""
        bids = self.frontier.appraise(snapshot, rows)
        return bids if self._hub_study is None else self._hub_study.freshen(snapshot, rows, bids)

    def _bid_known(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids for known pages; one that is a hub, or a chosen seed, takes the bid that is due first."""
        bids = self.refresh.appraise(snapshot, rows)
        places = self._sooner_as_hubs(snapshot, rows, bids)
        if len(places):
            put_bids(bids, places, self.hubs.appraise(snapshot, rows[places]))
        return bids

    def _sooner_as_hubs(self, snapshot: Snapshot, rows: Rows, refreshes: Bids) -> npt.NDArray[np.int64]:
        """Places of the pages that are due as hubs before they are due for a refresh; of two due now, the higher."""
        mine = np.flatnonzero(self.hubs.claims(snapshot, rows))
        if not len(mine):
            return mine
        own = self.hubs.appraise(snapshot, rows[mine])
        return mine[due_sooner(own, refreshes.take(mine), self.reserve, snapshot.now)]

    def bidders(self, snapshot: Snapshot, rows: Rows) -> list[Appraiser | None]:
        """Who bids for each row: as `appraiser_of`, but a page that is due sooner as a hub is bid for as one."""
        states, kinds = snapshot.pages.state[rows].tolist(), snapshot.pages.kind[rows].tolist()
        out = [self.appraiser_of(state, kind) for state, kind in zip(states, kinds, strict=True)]
        known = [place for place, one in enumerate(out) if one is self.refresh]
        which = np.asarray(rows)[known]
        claimed = np.flatnonzero(self.hubs.claims(snapshot, which)) if known else ()
        if len(claimed):
            bids = self.refresh.appraise(snapshot, which)
            for place in self._sooner_as_hubs(snapshot, which, bids).tolist():
                out[known[place]] = self.hubs
        return out

    def terms(self, snapshot: Snapshot, rows: Rows) -> list[str]:
        """What the bid of each row rests on, as JSON for the journal."""
        out = ["{}"] * len(rows)
        common = self.common_terms(snapshot)
        groups: dict[str, tuple[Appraiser, list[int]]] = {}
        for place, appraiser in enumerate(self.bidders(snapshot, rows)):
            if appraiser is not None:
                groups.setdefault(appraiser.name, (appraiser, []))[1].append(place)
        for name, (appraiser, places) in groups.items():
            bids = appraiser.appraise(snapshot, rows[places])
            columns = {**bids.terms, **self.expected_terms(appraiser, snapshot, rows[places], bids)}
            names = ("by", *columns)
            spread = [np.broadcast_to(column, len(places)).tolist() for column in columns.values()]
            told = [dict(zip(names, (name, *values), strict=True)) for values in zip(*spread, strict=True)]
            told = told or [{"by": name} for _ in places]
            if common:
                told = [one | common for one in told]
            if appraiser is self.frontier and self._hub_study is not None:
                self._tell_lift(self._hub_study, snapshot, rows[places], told)
            for place, terms in zip(places, told, strict=True):
                out[place] = orjson.dumps(terms).decode()
        return out

    def costs(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.float64]:
        """What fetches cost, in usual ones: 1 each, where gains are not divided by what they cost."""
        return np.ones(len(rows))

    def gain(self, snapshot: Snapshot, row: int) -> float | None:
        """What a fetch is expected to gain by its cost, in units, whatever it bids; None where bids are no gains."""
        return None

    def unit(self, snapshot: Snapshot) -> float:
        """Clicks that a bid of 1 stands for; 0 where bids are not in clicks."""
        return 0.0

    def by_clicks(self, snapshot: Snapshot) -> bool:
        """Whether that rests on clicks that people made: before any is known bids are told in units."""
        return False

    def basis(self, snapshot: Snapshot) -> object:
        """What all bids are made by: where it is another, bids of before cannot be compared with those of now."""
        return None

    def expected_terms(
        self, appraiser: Appraiser, snapshot: Snapshot, rows: Rows, bids: Bids
    ) -> dict[str, npt.NDArray[np.generic]]:
        """What is expected of fetches that bid so, for those who look back later."""
        return {}

    def common_terms(self, snapshot: Snapshot) -> dict[str, object]:
        """What the journal has of every decision."""
        return {}

    def _tell_lift(self, hubs: StudiedHubs, snapshot: Snapshot, rows: Rows, told: list[dict[str, object]]) -> None:
        lift = hubs.lift(snapshot, rows)
        if lift is not None:
            for place, factor, decay in zip(
                lift.place.tolist(), lift.factor.tolist(), lift.decay_per_s.tolist(), strict=True
            ):
                told[place] |= {"announced": round(factor, 4), "half_life_s": round(math.log(2.0) / decay, 1)}

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """The tree behind the bid of one row."""
        state = int(snapshot.pages.state[row])
        (appraiser,) = self.bidders(snapshot, np.array([row]))
        if appraiser is None:
            return Term("no bid", 0.0, f"the URL is {UrlState(state).name.lower()}: it is not fetched")
        tree = appraiser.explain(snapshot, row)
        hubs = self._hub_study
        if hubs is not None and appraiser is self.frontier:
            tree = hubs.explain_new(snapshot, row, tree)
        if self.hubs.claims(snapshot, np.array([row]))[0]:
            other = self.refresh if appraiser is self.hubs else self.hubs
            part = "a page to refresh" if other is self.refresh else "a hub"
            rival = other.explain(snapshot, row)
            note = f"by {other.name}: {rival.name}, due no sooner"
            return Term(
                "bid",
                tree.value,
                f"by {appraiser.name}, which is due first",
                (tree, Term(f"its bid as {part}", rival.value, note, rival.children)),
            )
        return Term("bid", tree.value, f"by {appraiser.name}", (tree,))

    def fetch_kind(self, state: int, kind: int, terms: str) -> FetchKind:
        """Which part of the budget a fetch of this URL comes from; `terms` say who bid for a known page."""
        if kind != UrlKind.PAGE:
            return FetchKind.HUB
        if state == UrlState.NEW:
            return FetchKind.NEW
        return FetchKind.HUB if terms.startswith(f'{{"by":"{self.hubs.name}"') else FetchKind.REFRESH


def put_bids(
    into: Bids, places: npt.NDArray[np.int64], bids: Bids, some: npt.NDArray[np.int64] | slice = slice(None)
) -> None:
    """Bids, or some of them, in place of those at some places."""
    into.amplitude[places] = bids.amplitude[some]
    into.rate[places] = bids.rate[some]
    into.since[places] = bids.since[some]
    into.shape[places] = bids.shape[some]


def split_name(whole: str) -> tuple[str, ...]:
    """The parts that a policy's name names, as the registries know them."""
    return tuple(OTHER_NAMES.get(part, part) for part in whole.split("+"))


def make_policy(
    name: str, settings: RefreshSettings | None = None, base: str = PLAIN, *, horizon_s: float = HORIZON_S
) -> Policy:
    """A policy from `frontier`, `refresh`, `hubs` or some of them joined by `+`; a part not named is that of `base`.

    Or `auto`, which has all three, and counts the gain of new pages for `horizon_s`.
    """
    settings = settings or RefreshSettings()
    if name == AUTO:
        from bowerbird.appraise.one_budget import make_one_budget  # which is a policy itself

        return make_one_budget(settings, horizon_s)
    chosen: dict[str, str] = {}
    for whole in (PLAIN, base if base != AUTO else PLAIN, name):
        chosen |= _read_name(whole)
    return Policy(
        FRONTIER[chosen["frontier"]](),
        REFRESH[chosen["refresh"]](settings),
        HUBS[chosen.get("hubs", HubInterval.name)](settings),
        settings,
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question for those who mistyped a name; empty where none is near.

    >>> did_you_mean("auot", ["auto", "random"]), did_you_mean("best", ["auto", "random"])
    ("; did you mean 'auto'?", '')
    """
    near = difflib.get_close_matches(name, list(known), 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def _read_name(whole: str) -> dict[str, str]:
    """What is named for new pages, for known pages, for hubs."""
    found: dict[str, str] = {}
    for part in split_name(whole):
        kind = next((kind for kind, (methods, _) in PARTS.items() if part in methods), None)
        if part == AUTO:
            problem = f"{AUTO!r} has all parts and stands alone"
        elif kind is None:
            problem = f"{part!r} is not known{did_you_mean(part, (*FRONTIER, *REFRESH, *HUBS, AUTO))}"
        elif kind in found:
            problem = f"{found[kind]!r} and {part!r} are both for {PARTS[kind][1]}"
        else:
            found[kind] = part
            continue
        raise PolicyError(
            f"policy {whole!r}: {problem}{'' if problem.endswith('?') else '.'} New pages: {', '.join(FRONTIER)}; "
            f"refresh: {', '.join(REFRESH)}; hubs: {', '.join(HUBS)}; "
            f"join one of each with '+', as in '{PLAIN}' or '{PLAIN}+{HUB_STUDIED[0]}'; or {AUTO!r}, which has all."
        )
    return found
