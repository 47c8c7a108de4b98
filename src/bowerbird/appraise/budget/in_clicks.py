"""The three studies with their bids in one unit of clicks, so that new pages, refreshes and hubs can be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.budget.joint_price import Revisits, clear_together, due_ages
from bowerbird.appraise.budget.scales import ClickScales
from bowerbird.appraise.hubs.intervals import poisson_amplitude
from bowerbird.appraise.hubs.net_value import net_hub_index
from bowerbird.appraise.refresh.refresh_gain import FEWEST_CHANGES
from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import HubColumns, HubStudy
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.study import FrontierStudy

F64 = npt.NDArray[np.float64]
ALIKE = 1e-3


@dataclass(frozen=True, slots=True)
class StudiesInClicks:
    """The studies in units, what a unit is, and the exchange rates."""

    unit: float  # clicks
    scales: ClickScales
    frontier: FrontierStudy | None
    refresh: RefreshStudy | None
    hubs: HubStudy | None


def put_in_clicks(
    frontier: FrontierStudy | None,
    refresh: RefreshStudy | None,
    hubs: HubStudy | None,
    scales: ClickScales,
    *,
    shortest_s: float,
    horizon_s: float = math.inf,
    visit_cost: F64 | None = None,
) -> StudiesInClicks:
    """The studies as far as there are any; what is clicked after the horizon does not count.

    `visit_cost` is what a visit costs, by hub; 1 where it is not given.
    """
    of_pages = None if refresh is None or refresh.gain is None else _refreshes(refresh, scales.refresh, horizon_s)
    of_hubs = None if hubs is None else _visits(hubs, scales, horizon_of(hubs, horizon_s), visit_cost)
    kinds = [kind for kind in (of_pages, of_hubs) if kind is not None]
    unit = clear_together(kinds, shortest_s)
    if unit <= 0.0:  # nothing to revisit: as much as half of an average new page
        unit = 0.5 * scales.new * frontier.default_worth if frontier is not None else 1.0
    unit = max(unit, 1e-30)
    return StudiesInClicks(
        unit,
        scales,
        None if frontier is None else _price_new(frontier, scales.new / unit),
        refresh if refresh is None or of_pages is None else _price_pages(refresh, of_pages, unit, shortest_s),
        None if hubs is None or of_hubs is None else _price_hubs(hubs, of_hubs, scales.announced, unit, shortest_s),
    )


def horizon_of(study: HubStudy, horizon_s: float) -> float:
    """Within which clicks of a hub's pages count; before clicks tell, P is what pages have within the horizon."""
    return horizon_s if study.by_clicks else math.inf


def price_of_pages(price: float) -> float:
    """What a page that a hub announces costs, at this price in units: nothing at the reserve, where all are fetched.

    >>> price_of_pages(1.0), price_of_pages(1.5), price_of_pages(9.0)
    (0.0, 1.0, 9.0)
    """
    return min(max(2.0 * (price - 1.0), 0.0), price)


def net_of_pages(hubs: tuple[F64, F64, F64], spread: npt.ArrayLike, price: float, age_s: F64, horizon_s: float) -> F64:
    """The index of visits to hubs of these rates, profits and decays, net of the price of their pages, in units.

    Pages of a hub that nobody can tell apart beforehand are fetched all or none: what counts is how far they can.
    """
    rate, profit, decay = (column[:, None] for column in hubs)
    pages = profit * np.asarray(spread, np.float64)
    parts = net_hub_index(rate, pages, decay, price_of_pages(price), age_s[:, None], horizon_s)
    return np.asarray(parts.mean(axis=1), np.float64)


def _refreshes(study: RefreshStudy, scale: float, horizon_s: float) -> Revisits:
    assert study.gain is not None
    mine = ~np.isnan(study.gain)
    return Revisits(
        study.gain[mine].astype(np.float64) * scale,
        study.changes_per_s[mine].astype(np.float64),
        Shape.AREA,
        study.budget_per_s,
        study.longest_s,
        horizon_s,
        np.full(np.count_nonzero(mine), FEWEST_CHANGES)
        if study.most_changes is None
        else study.most_changes[mine].astype(np.float64),
    )


def _visits(study: HubStudy, scales: ClickScales, horizon_s: float, cost: F64 | None) -> Revisits:
    """What visits find and what they cost moves the rate: a page that is found is worth its fetch all the same."""
    hubs = study.hubs
    profit = hubs.profit.astype(np.float64) * scales.announced
    found = hubs.drawn_per_s * scales.factors.hub / (1.0 if cost is None else cost)
    return Revisits(
        poisson_amplitude(profit, hubs.decay_per_s, found),
        hubs.decay_per_s.astype(np.float64),
        Shape.SATURATING,
        study.budget_per_s,
        study.longest_s,
        # pages cost nothing where a crawl has no other budget than its intervals: those that gain less than a unit are
        # fetched when there is nothing better
        most=net_hub_index(found, profit, hubs.decay_per_s, 0.0, np.inf, horizon_s),
    )


def _price_new(study: FrontierStudy, times: float) -> FrontierStudy:
    """Worth in units."""
    return replace(
        study,
        worth=(study.worth * np.float32(times)),
        host_worth=(study.host_worth * np.float32(times)),
        default_worth=study.default_worth * times,
        later_worth=None if study.later_worth is None else study.later_worth * times,
    )


def _price_pages(study: RefreshStudy, bids: Revisits, unit: float, shortest_s: float) -> RefreshStudy:
    """Area bids in units, by the rate of changes; `interval_s` is when each reaches 1."""
    assert study.gain is not None
    mine = np.flatnonzero(~np.isnan(study.gain))
    interval = study.interval_s.copy()
    interval[mine] = np.clip(due_ages(bids, unit), shortest_s, max(study.longest_s, shortest_s))
    amplitude, rate = study.amplitude.copy(), study.rate_per_s.copy()
    shape = study.shape.copy()
    amplitude[mine] = np.minimum(bids.amplitude / unit, np.finfo(np.float32).max)
    rate[mine] = bids.rate_per_s
    shape[mine] = int(Shape.AREA)
    return replace(study, amplitude=amplitude, rate_per_s=rate, shape=shape, interval_s=interval, price=unit)


def _price_hubs(study: HubStudy, bids: Revisits, scale: float, unit: float, shortest_s: float) -> HubStudy:
    """Saturating bids in units; a hub that never gains a unit within the horizon bids no more than it can gain."""
    hubs: HubColumns = study.hubs
    assert bids.most is not None
    amplitude, most = bids.amplitude / unit, bids.most / unit
    # the unit may be what the last hub gains at most: it is not due then, whatever the last digit says
    scaled = replace(bids, amplitude=np.where(most >= 1.0 + ALIKE, amplitude, np.minimum(amplitude, most)))
    interval = np.clip(due_ages(scaled, 1.0), shortest_s, max(study.longest_s, shortest_s))
    return replace(
        study,
        hubs=replace(
            hubs,
            profit=(hubs.profit.astype(np.float64) * (scale / unit)).astype(np.float32),
            amplitude=np.minimum(amplitude, np.finfo(np.float32).max).astype(np.float32),
            bid_rate_per_s=hubs.decay_per_s,
            shape=np.full(len(hubs), int(Shape.SATURATING), dtype=np.uint8),
            interval_s=interval.astype(np.float32),
        ),
        mean_profit=study.mean_profit * scale / unit,
        price=1.0,
    )
