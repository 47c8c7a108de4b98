"""The policy `auto`: new pages, refreshes and hub visits bid in expected clicks, and one price clears them all.

Each kind has a study of its own; `budget/` puts the three into one unit. A bid of 1 is what the last revisit gains that
the settings' intervals would pay for, so without a budget of its own a crawl revisits as often as those say on average,
wherever that gains most. New pages that gain less bid 1 and a little more: a crawl with nothing better to do fetches
them. With a budget the price rises above 1 until it is met, and every kind gives up what gains least.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bowerbird.appraise.appraiser import Appraiser, Rows
from bowerbird.appraise.budget.click_hubs import ClickHubs
from bowerbird.appraise.budget.click_pages import ClickFrontier, ClickRefresh
from bowerbird.appraise.budget.in_clicks import StudiesInClicks, put_in_clicks
from bowerbird.appraise.budget.scales import HORIZON_S, scale_clicks
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.policy import AUTO, Policy, RefreshSettings
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot

FRONTIER, REFRESH, HUBS = "informed", "user-centric", "echo"


class _Memo:
    """The studies in clicks that were worked out last: they are looked at for every few bids."""

    def __init__(self) -> None:
        self.of: tuple[object, ...] = ()
        self.found: StudiesInClicks | None = None


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

    def rests_on(self, snapshot: Snapshot) -> str:
        """What the exchange rates between the kinds rest on; empty before all kinds have been studied."""
        found = self._put(snapshot)
        return "" if found is None else found.scales.by

    def in_units(self, snapshot: Snapshot) -> Snapshot:
        """The same with its studies in one unit."""
        found = self._put(snapshot)
        if found is None:
            return snapshot
        return replace(snapshot, study=found.frontier, refresh_study=found.refresh, hub_study=found.hubs)

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of `rows` in their order, in units; URLs that nobody may fetch bid 0."""
        return Policy.appraise(self, self.in_units(snapshot), rows)

    def bidders(self, snapshot: Snapshot, rows: Rows) -> list[Appraiser | None]:
        """Who bids for each row."""
        return Policy.bidders(self, self.in_units(snapshot), rows)

    def terms(self, snapshot: Snapshot, rows: Rows) -> list[str]:
        """What the bid of each row rests on, as JSON for the journal."""
        return Policy.terms(self, self.in_units(snapshot), rows)

    def common_terms(self, snapshot: Snapshot) -> dict[str, object]:
        """What a unit is in clicks, and the factors that expected clicks have been corrected by."""
        found = self._put(snapshot)
        if found is None:
            return {}
        told: dict[str, object] = {"unit": found.unit}
        factors = snapshot.factors
        if factors is not None:
            told |= {f"factor_{name}": getattr(factors, name) for name in ("new", "announced")}
        return told

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """The tree behind the bid of one row, with what it is in clicks."""
        scaled = self.in_units(snapshot)
        tree = Policy.explain(self, scaled, row)
        found = self._put(snapshot)
        if found is None or not isinstance(tree.value, float):
            return tree
        value = tree.value
        if self.hubs.claims(scaled, np.array([row]))[0] and tree.children:
            value = float(values_at(Policy.appraise(self, scaled, np.array([row])), snapshot.now)[0])
            tree = replace(tree, value=value, note="a fetch gains both: what a refresh does, and what a visit finds")
        clicks = Term(
            "expected clicks",
            value * found.unit,
            f"gained by this fetch, by {found.scales.by}; a bid of 1 is {found.unit:.4g} clicks",
        )
        return replace(tree, children=(clicks, *tree.children))

    def _bid_known(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids for known pages; one that is a hub, too, gains both."""
        bids = Policy._bid_known(self, snapshot, rows)
        mine = np.flatnonzero(self.hubs.claims(snapshot, rows)) if self._put(snapshot) is not None else np.zeros(0, int)
        if len(mine):
            parts = (self.refresh.appraise(snapshot, rows[mine]), self.hubs.appraise(snapshot, rows[mine]))
            both = values_at(parts[0], snapshot.now) + values_at(parts[1], snapshot.now)
            one = values_at(bids, snapshot.now)[mine]
            bids.amplitude[mine] *= np.where(one > 0, both / np.maximum(one, 1e-30), 1.0)
        return bids

    def _put(self, snapshot: Snapshot) -> StudiesInClicks | None:
        of = (snapshot.study, snapshot.refresh_study, snapshot.hub_study, snapshot.factors)
        if any(one is None for one in of[:3]):
            return None  # two kinds cannot be weighed against a third of which nothing is known
        memo = self._memo
        found = memo.found
        if found is not None and _same(of[:3], (found.frontier, found.refresh, found.hubs)):
            return found  # it is in units already
        if found is None or not _same(memo.of, of):
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
            )
            memo.of, memo.found = of, found
        return found


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
        ClickRefresh(REFRESH, adaptive),
        ClickHubs(HUBS, interval),
        settings,
        horizon_s=horizon_s,
    )
