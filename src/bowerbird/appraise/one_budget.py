"""The policy `auto`: new pages, refreshes and hub visits bid in expected clicks, and one price clears them all.

Each kind has a study of its own; `budget/` puts the three into one unit. A bid of 1 is what the last revisit gains that
the settings' intervals would pay for, so without a budget of its own a crawl revisits as often as those say on average,
wherever that gains most. New pages that gain less bid 1 and a little more: a crawl with nothing better to do fetches
them. With a budget the price rises above 1 until it is met, and every kind gives up what gains least.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Appraiser, Rows
from bowerbird.appraise.budget.click_hubs import ClickHubs, units_left
from bowerbird.appraise.budget.click_pages import ClickFrontier, ClickRefresh, lower_from_floor
from bowerbird.appraise.budget.costs import cost_of_fetches
from bowerbird.appraise.budget.in_clicks import StudiesInClicks, put_in_clicks
from bowerbird.appraise.budget.scales import BY_CLICKS, HORIZON_S, scale_clicks
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.hubs.studied import StudiedHubs
from bowerbird.appraise.policy import AUTO, Policy, RefreshSettings, put_bids
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.appraise.refresh.studied import STUDY_PRICE, span_text
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.worth import count_in

ALIKE = 1e-3  # costs that differ by less are not told
CORRECTED = ("new", "announced", "refresh", "hub")
FRONTIER, REFRESH, HUBS = "informed", "user-centric", "echo"
#: what terms of the studies are called where they are in units
NAMES = {"expected clicks": "expected units", "due": "due at a price of 1"}


class _Memo:
    """The studies in clicks that were worked out last: they are looked at for every few bids."""

    def __init__(self) -> None:
        self.last: tuple[tuple[object, ...], StudiesInClicks | None] = ((), None)


@dataclass(frozen=True, slots=True)
class OneBudget(Policy):
    """Bids of all kinds in one unit of clicks."""

    horizon_s: float = HORIZON_S
    _memo: _Memo = field(default_factory=_Memo, repr=False, compare=False)

    @property
    def name(self) -> str:
        """As a person names it."""
        return AUTO

    def unit(self, snapshot: Snapshot) -> float:
        """Clicks that a bid of 1 stands for; 0 before all kinds have been studied."""
        found = self._put(snapshot)
        return 0.0 if found is None else found.unit

    def basis(self, snapshot: Snapshot) -> object:
        """The studies in one unit: others with every study, and with every correction."""
        return self._put(snapshot)

    def rests_on(self, snapshot: Snapshot) -> str:
        """What the exchange rates between the kinds rest on; empty before all kinds have been studied."""
        found = self._put(snapshot)
        return "" if found is None else found.scales.by

    def by_clicks(self, snapshot: Snapshot) -> bool:
        """Whether clicks are known, so that a unit is some of them."""
        return self.rests_on(snapshot) == BY_CLICKS

    def in_units(self, snapshot: Snapshot) -> Snapshot:
        """The same with its studies in one unit; before all kinds have been studied, without any of them.

        What one study expects in clicks cannot be held against what the others bid by links and intervals.
        """
        found = self._put(snapshot)
        if found is None:
            return replace(snapshot, study=None, refresh_study=None, hub_study=None)
        if snapshot.refresh_study is found.refresh:
            return snapshot
        return replace(
            snapshot,
            study=found.frontier,
            refresh_study=found.refresh,
            hub_study=found.hubs,
            price=max(snapshot.price / found.unit, 1.0),
        )

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of `rows` in their order, in units; URLs that nobody may fetch bid 0."""
        return Policy.appraise(self, self.in_units(snapshot), rows)

    def bidders(self, snapshot: Snapshot, rows: Rows) -> list[Appraiser | None]:
        """Who bids for each row."""
        return Policy.bidders(self, self.in_units(snapshot), rows)

    def terms(self, snapshot: Snapshot, rows: Rows) -> list[str]:
        """What the bid of each row rests on, as JSON for the journal."""
        return Policy.terms(self, self.in_units(snapshot), rows)

    def costs(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.float64]:
        """What gains are divided by in bids: turn, bytes and time, in usual fetches."""
        found, pages = self._put(snapshot), snapshot.pages
        if found is None:
            return Policy.costs(self, snapshot, rows)
        return cost_of_fetches(pages, rows, found.refresh, found.scales.factors)

    def expected_terms(
        self, appraiser: Appraiser, snapshot: Snapshot, rows: Rows, bids: Bids
    ) -> dict[str, npt.NDArray[np.generic]]:
        """What is expected of refreshes and visits to hubs, and which part of the bid is for that.

        Of a page that is a hub, too, only the larger of its two gains is told and compared with what came of it.
        """
        if self._put(snapshot) is None or not isinstance(appraiser, ClickRefresh | ClickHubs):
            return {}
        told = appraiser.expect(snapshot, rows)
        told["cost"] = self.costs(snapshot, rows)
        mine = np.flatnonzero(self.hubs.claims(snapshot, rows))
        if len(mine):
            other = self.hubs if appraiser is self.refresh else self.refresh
            beside = other.appraise(snapshot, rows[mine])
            own, more = values_at(bids.take(mine), snapshot.now), values_at(beside, snapshot.now)
            both = by_gain(bids)[mine] & by_gain(beside) & (own > 0)
            told["part"] = np.full(len(rows), np.nan)
            told["part"][mine[both]] = own[both] / (own + more)[both]
            gain = np.array(bids.terms["gain"], np.float64)
            gain[mine] += np.asarray(beside.terms["gain"], np.float64)
            told["gain"] = gain
        return told

    def _tell_lift(self, hubs: StudiedHubs, snapshot: Snapshot, rows: Rows, told: list[dict[str, object]]) -> None:
        """Of pages whose bid goes by the hub that announced them: its units are what is left of the interest in them.

        Once clicks have told what such pages gain, these are all that a hub announced.
        """
        lift, study = hubs.lift(snapshot, rows), snapshot.hub_study
        if lift is None or study is None:
            return
        mine = np.arange(len(lift.place))
        if not study.by_clicks:
            bids = hubs.freshen(snapshot, rows, self.frontier.appraise(snapshot, rows))
            mine = np.flatnonzero(bids.shape[lift.place] == Shape.DECAY)
        left = units_left(lift, snapshot.now)
        some: list[dict[str, object]] = [{} for _ in mine]
        Policy._tell_lift(self, hubs, snapshot, rows[lift.place[mine]], some)
        for place, units, terms in zip(lift.place[mine].tolist(), left[mine].tolist(), some, strict=True):
            told[place] |= {**terms, "units": units}
        found = self._put(snapshot)
        if study.by_clicks and found is not None:  # P as the study had it, for those who look back when more is learnt
            clicks = study.hubs.profit[lift.hub].astype(np.float64) * (found.unit / found.scales.announced)
            for place, many in zip(lift.place.tolist(), clicks.tolist(), strict=True):
                told[place]["hub_clicks"] = many

    def common_terms(self, snapshot: Snapshot) -> dict[str, object]:
        """What a unit is in clicks, and the factors that expected clicks have been corrected by.

        Also that a unit is nobody's clicks, while it is not.
        """
        found = self._put(snapshot)
        if found is None:
            return {}
        told: dict[str, object] = {"unit": found.unit, "horizon_s": self.horizon_s}
        if found.scales.by != BY_CLICKS:
            told["by_clicks"] = False
        factors = snapshot.factors
        if factors is not None:
            told |= {f"factor_{name}": getattr(factors, name) for name in CORRECTED}
        return told

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """The tree behind the bid of one row, with what it is in clicks."""
        scaled = self.in_units(snapshot)
        tree = Policy.explain(self, scaled, row)
        found = self._put(snapshot)
        if found is None or not isinstance(tree.value, float):
            return tree
        one = np.array([row])
        if self.hubs.claims(scaled, one)[0] and tree.children:
            value = float(values_at(Policy.appraise(self, scaled, one), snapshot.now)[0])
            gain_both = all(by_gain(part.appraise(scaled, one))[0] for part in (self.refresh, self.hubs))
            note = "what bids by its age gains nothing that could be added: the higher of the two counts"
            if gain_both:
                note = "a fetch gains both: what a refresh does, and what a visit finds"
            tree = replace(tree, value=value, note=note)
        by_clicks = found.scales.by == BY_CLICKS
        times, noun = count_in(found.unit, by_clicks)
        note = f"within {span_text(self.horizon_s)}, by {found.scales.by}"
        if by_clicks:
            note += f"; a bid of 1 is {found.unit:.4g} clicks"
        (cost,) = self.costs(scaled, one).tolist()
        told = [Term(f"expected {noun} of this fetch", (self.gain(scaled, row) or 0.0) * cost * times, note)]
        if abs(cost - 1.0) > ALIKE:
            note = "usual fetches, by its turn, bytes and time: gains are divided by it"
            told.append(Term("cost", cost, note))
        return replace(tree, children=(*told, *(_name_units(child) for child in tree.children)))

    def gain(self, snapshot: Snapshot, row: int) -> float | None:
        """By its cost, in units: as a new page, as a refresh, as a visit; None before all kinds have been studied."""
        if self._put(snapshot) is None:
            return None
        scaled, one = self.in_units(snapshot), np.array([row])
        (bidder,) = self.bidders(scaled, one)
        if bidder is self.frontier:
            bid = values_at(Policy.appraise(self, scaled, one), snapshot.now)
            return float((lower_from_floor(bid) if scaled.study is not None else bid)[0])
        parts = [bidder] if bidder is not None else []
        if self.hubs.claims(scaled, one)[0]:
            parts = [self.refresh, self.hubs]
        return sum(float(part.appraise(scaled, one).terms["gain"][0]) for part in parts)

    def _bid_known(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids for known pages; one that is a hub, too, gains both."""
        if self._put(snapshot) is None:
            return Policy._bid_known(self, snapshot, rows)
        bids = self.refresh.appraise(snapshot, rows)
        mine = np.flatnonzero(self.hubs.claims(snapshot, rows))
        if len(mine):
            visits = self.hubs.appraise(snapshot, rows[mine])
            one, other = values_at(bids.take(mine), snapshot.now), values_at(visits, snapshot.now)
            # what bids by its age gains nothing that could be added
            both = by_gain(bids)[mine] & by_gain(visits) & (np.maximum(one, other) > 0)
            better = np.flatnonzero(other > one)
            put_bids(bids, mine[better], visits, better)
            bids.amplitude[mine[both]] *= 1.0 + np.minimum(one, other)[both] / np.maximum(one, other)[both]
        return bids

    def _sooner_as_hubs(self, snapshot: Snapshot, rows: Rows, refreshes: Bids) -> npt.NDArray[np.int64]:
        """Places of the pages that gain more as hubs."""
        if self._put(snapshot) is None:
            return Policy._sooner_as_hubs(self, snapshot, rows, refreshes)
        mine = np.flatnonzero(self.hubs.claims(snapshot, rows))
        if not len(mine):
            return mine
        visits = values_at(self.hubs.appraise(snapshot, rows[mine]), snapshot.now)
        return mine[visits > values_at(refreshes, snapshot.now)[mine]]

    def _put(self, snapshot: Snapshot) -> StudiesInClicks | None:
        of = (snapshot.study, snapshot.refresh_study, snapshot.hub_study, snapshot.factors)
        if any(one is None for one in of[:3]):
            return None  # two kinds cannot be weighed against a third of which nothing is known
        before, found = self._memo.last
        if found is not None and _same(of[:3], (found.frontier, found.refresh, found.hubs)):
            return found  # it is in units already
        if found is None or not _same(before, of):
            frontier, refresh, hubs = snapshot.study, snapshot.refresh_study, snapshot.hub_study
            assert frontier is not None
            assert refresh is not None
            assert hubs is not None
            scales = scale_clicks(frontier, refresh, hubs, self.horizon_s, snapshot.factors)
            found = put_in_clicks(
                frontier,
                refresh,
                hubs,
                scales,
                shortest_s=self.settings.min_interval_s,
                horizon_s=self.horizon_s,
                visit_cost=cost_of_fetches(snapshot.pages, hubs.hubs.row, refresh, scales.factors),
            )
            self._memo.last = (of, found)
        return found


def by_gain(bids: Bids) -> npt.NDArray[np.bool_]:
    """Which of these bid what a fetch gains, not by their age."""
    return ~np.asarray(bids.terms["bound"], dtype=np.bool_)


def _name_units(tree: Term) -> Term:
    """What a study of new pages calls clicks is in units here, and the price of a study of refreshes is the unit."""
    kept = (child for child in tree.children if child.name != STUDY_PRICE)
    return replace(tree, name=NAMES.get(tree.name, tree.name), children=tuple(_name_units(child) for child in kept))


def _same(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def make_one_budget(settings: RefreshSettings, horizon_s: float = HORIZON_S) -> OneBudget:
    """The policy with the settings of a crawl."""
    adaptive = AdaptiveInterval(
        settings.interval_s,
        longer=settings.longer,
        shorter=settings.shorter,
        min_s=settings.min_interval_s,
        max_s=settings.max_interval_s,
        gone_interval_s=settings.gone_interval_s,
    )
    interval = HubInterval(settings.hub_interval_s, gone_interval_s=settings.gone_interval_s)
    return OneBudget(
        ClickFrontier(FRONTIER),
        ClickRefresh(REFRESH, adaptive, horizon_s),
        ClickHubs(HUBS, interval, settings.min_interval_s, horizon_s),
        settings,
        horizon_s=horizon_s,
    )
