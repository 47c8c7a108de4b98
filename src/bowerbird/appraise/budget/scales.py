"""What the units of the three studies are in clicks: the exchange rates between new pages, refreshes and hubs.

A study of new pages expects clicks within the time that the pages it learnt from had. One of refreshes counts shares of
the search quality, times seconds: so much of what all searchers click. One of hubs counts clicks of a new page.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bowerbird.appraise.frontier.calibration import PRIOR
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.study import FrontierStudy

DAY_S = 86400.0
HORIZON_S = 30 * DAY_S
BY_CLICKS = "clicks"
EXPOSED = "exposed_s"  # of a study of new pages: the time in which its expected clicks are made


@dataclass(frozen=True, slots=True)
class ClickScales:
    """Clicks for one unit of each study; 0 where there is no such study."""

    new: float  # per expected click of the frontier's study: a page is there for the whole horizon
    refresh: float  # per share of Q and second
    announced: float  # per profit of the hubs' study
    hub: float  # the same, of what a visit to a hub finds
    by: str  # what the scale rests on
    factors: Factors = field(default_factory=Factors)  # that are in them, and what visits cost


def life_clicks(clicks_per_s: float, horizon_s: float) -> float:
    """[BEYOND] P = r·H: clicks of a page whose interest does not fade, as far ahead as gains count.

    >>> life_clicks(2.0, 30.0)
    60.0
    """
    return clicks_per_s * horizon_s


def clicks_known(refresh: RefreshStudy | None) -> bool:
    """Whether anybody has clicked, as far as the last study of refreshes tells."""
    return refresh is not None and refresh.clicks_per_s > 0.0


def average_page(frontier: FrontierStudy, refresh: RefreshStudy | None, horizon_s: float) -> float:
    """[BEYOND] r = w/T clicks a second of an average new page; C/n, what fetched pages get, where that is newer.

    A study that had too few clicks to learn from says which new pages are better, and not how good they are: one of
    refreshes made since, that has heard of more, says that better.
    """
    told = max(frontier.default_worth, 0.0) / max(float(frontier.info.get(EXPOSED, horizon_s)), 1e-9)
    if refresh is None or frontier.calibration.kind != PRIOR or refresh.at <= frontier.at:
        return told
    return refresh.clicks_per_s / max(count_pages(refresh), 1.0) if clicks_known(refresh) else told


def count_pages(refresh: RefreshStudy) -> float:
    """Fetched pages, as the study saw them."""
    return float(refresh.info.get("pages", float(np.count_nonzero(~np.isnan(refresh.interval_s)))))


def scale_clicks(
    frontier: FrontierStudy | None,
    refresh: RefreshStudy | None,
    hubs: HubStudy | None,
    horizon_s: float = HORIZON_S,
    factors: Factors | None = None,
) -> ClickScales:
    """The exchange rates. Where nobody has clicked yet, every page is taken to be asked for like the average one."""
    factors = factors or Factors()
    page_per_s = 0.0  # clicks of an average page of the frontier
    new = 0.0
    if frontier is not None:
        page_per_s = average_page(frontier, refresh, horizon_s)
        exposed_s = float(frontier.info.get(EXPOSED, horizon_s))
        a_click = page_per_s / frontier.default_worth if frontier.default_worth > 0 else 1.0 / max(exposed_s, 1e-9)
        new = life_clicks(a_click, horizon_s)
    quality = 0.0
    by = BY_CLICKS
    if refresh is not None:
        quality = refresh.clicks_per_s
        if not clicks_known(refresh):  # nobody clicked: fetched pages are worth as much as new ones are expected to be
            quality = count_pages(refresh) * (page_per_s or 1.0 / horizon_s)
            by = "links and changes: no click is known yet"
    profit = 0.0
    if hubs is not None:
        profit = 1.0
        if not hubs.by_clicks:  # then a new page has a profit of 1, whatever that is
            profit = life_clicks(page_per_s, horizon_s) or 1.0
            if refresh is None:
                by = "links: no click is known yet"
    announced = profit * factors.announced
    return ClickScales(new * factors.new, quality * factors.refresh, announced, announced * factors.hub, by, factors)
