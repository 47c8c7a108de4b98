"""All hubs of a crawl at once: rates, interest, the price at which their visits use the budget, and bids at it.

The budget is as many visits as if each hub had its usual interval. They go where they gain most; a page that is a hub
is refreshed all the same, and those visits count. A hub's gain is in profits of a mean new page, so how many clicks
there are in all moves no bid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.announced import (
    CLICK_BIN_S,
    MEMORY_S,
    Announced,
    rate_pages,
    share_left,
    share_watched,
    spread_pages,
)
from bowerbird.appraise.hubs.cover import greedy_cover
from bowerbird.appraise.hubs.discovery import RateBook
from bowerbird.appraise.hubs.gains import saturating_gains_inverse
from bowerbird.appraise.hubs.interest import BIN_S, InterestBook, age_bins
from bowerbird.appraise.hubs.intervals import poisson_amplitude
from bowerbird.appraise.hubs.net_value import net_hub_index
from bowerbird.appraise.refresh.bids import RefreshBids
from bowerbird.appraise.refresh.clearing import SURELY, Clearing, clear_price
from bowerbird.model.bid import Shape
from bowerbird.model.hub_study import HubColumns, HubKind, HubStudy, InterestCurve

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

DAY_S = 86400.0
KNOWN_VISITS = 7  # from so many visits after the first on, the rate is believed; before, it is drawn
SLOT_S = DAY_S  # visits closer together count as one: a rate is of seven days at least
SPREAD_S = 7 * DAY_S  # how much pages differ is told from those found in that time
AHEAD_S = 3600.0  # a study is renewed long before that: the coming hour counts
HINT_WEIGHT = 0.5  # of a visit, of what a hub says of itself: many say "hourly" and mean nothing by it
HINTS_S = (300.0, 30 * DAY_S)  # within which that is believed
COVERED = 0.8
BINS_A_HALF_LIFE = 4.0  # of age, at least
_ROUNDS = 4
_PARTS = 6
CLOSE = 2e-3  # of the budget
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class HubVisits:
    """Of each hub the number of visits ever; then those of late, in the order of time: each but the first of all."""

    count: I64  # by hub
    hub: I64
    at_s: F64
    gap_s: F64  # since the visit before
    found: F64  # new pages first found by it
    turned: BOOL  # nothing announced at the visit before was left


@dataclass(frozen=True, slots=True)
class HubInputs:
    """What is known of hubs, ascending by row."""

    now_s: float
    count: int  # of all URLs
    row: I64
    kind: npt.NDArray[np.uint8]
    host: I64
    period_s: F64  # between updates, as it says itself; 0 = nothing
    usual_per_s: F64  # visits without a study
    visits: HubVisits
    announced: Announced
    link_hub: I64  # who links to which new page, or did
    link_page: I64  # numbers without gaps
    page_price: float = 0.0  # of a page's fetch, in profits of a mean new page
    refreshed_per_s: F64 | None = None  # visits that refreshes make anyway; None = none


@dataclass(frozen=True, slots=True)
class HubPlan:
    """Bounds of intervals, the share of the visits that goes to all hubs evenly, the decay until clicks tell, and the
    rate of news until visits do.
    """

    shortest_s: float
    longest_s: float
    explore: float
    decay_per_s: float
    prior_per_s: float = 1.0 / DAY_S


def study_hubs(inputs: HubInputs, method: str, plan: HubPlan, seed: int = 0) -> HubStudy:
    """Rates, interest, bids and due times of all hubs; `seed` is the crawl's, by which little known rates are drawn."""
    visits, count = inputs.visits, len(inputs.row)
    rate, drawn, book = learn_rates(inputs, plan.prior_per_s, seed)
    hour = book.factor(inputs.now_s, AHEAD_S)
    profit, decay, curve, by_clicks = learn_interest(inputs, plan.decay_per_s)
    mean_profit = float(rate @ profit / rate.sum()) if count else curve.profit
    budget = float(inputs.usual_per_s.sum())
    longest = plan.longest_s
    if count:
        longest = min(max(count / budget / plan.explore, plan.shortest_s), plan.longest_s)
    cleared = clear_hubs(inputs, plan, drawn, profit / mean_profit, decay, longest)
    spent = cleared.spent_per_s
    cleared = follow_hour(cleared, hour, plan.shortest_s, longest)
    missed = np.maximum(rate[visits.hub] * visits.gap_s - visits.found, 0.0)
    cover = greedy_cover(
        inputs.link_hub, inputs.link_page, count, int(inputs.link_page.max(initial=-1)) + 1, share=COVERED
    )
    found = np.bincount(visits.hub, visits.found, count)
    hubs = HubColumns(
        row=inputs.row,
        kind=inputs.kind,
        visits=np.minimum(np.bincount(visits.hub, minlength=count) + 1, visits.count),
        found=found.astype(np.int64),
        turned=np.bincount(visits.hub[visits.turned], minlength=count).astype(np.int64),
        missed=np.bincount(visits.hub[visits.turned], missed[visits.turned], count).astype(np.float32),
        period_s=inputs.period_s.astype(np.float32),
        rate_per_s=rate.astype(np.float32),
        drawn_per_s=drawn.astype(np.float32),
        profit=profit.astype(np.float32),
        decay_per_s=decay.astype(np.float32),
        left=left_of_late(visits, decay).astype(np.float32),
        amplitude=cleared.amplitude.astype(np.float32),
        bid_rate_per_s=cleared.rate_per_s.astype(np.float32),
        shape=cleared.shape,
        interval_s=cleared.interval_s.astype(np.float32),
    )
    pages = inputs.announced
    factors = rate_pages(pages, inputs.now_s, profit, decay)
    info: dict[str, str | float] = {
        "hubs": float(count),
        "visits": float(hubs.visits.sum()),
        "found": float(found.sum()),
        "announced": float(len(np.unique(inputs.link_page))),
        "explored": float(np.count_nonzero(cleared.interval_s >= longest * (1.0 - 1e-9))),
        "clicks": float(pages.clicks.sum()),
        "spent": spent,
        "hour": hour,
    }
    if not by_clicks:
        info["note"] = "no click on a page that a hub announced is known yet: all hubs have the same P and mu"
    return HubStudy(
        at=inputs.now_s,
        method=method,
        count=inputs.count,
        hubs=hubs,
        page_row=pages.row[pages.is_new],
        page_hub=pages.hub[pages.is_new],
        page_factor=(factors * share_left(decay[pages.hub], pages.gap_s))[pages.is_new].astype(np.float32),
        curve=curve,
        by_clicks=by_clicks,
        mean_profit=mean_profit,
        price=cleared.price,
        budget_per_s=budget,
        longest_s=longest,
        cover_hub=cover.order,
        cover_share=cover.covered.astype(np.float32),
        info=info,
        pattern=book.pattern.astype(np.float32),
        page_spread=spread_pages(factors[pages.found_s > inputs.now_s - SPREAD_S]).astype(np.float32),
    )


def learn_rates(inputs: HubInputs, prior_per_s: float, seed: int) -> tuple[F64, F64, RateBook]:
    """lam by hub over all hours; what is bid by where little is known; and the book that they are from.

    A little known hub bids by the larger of its rate and a draw from what is believed of it: to try it may pay, to
    leave it alone because a draw was low never does.
    """
    visits = inputs.visits
    # feeds of a host are alike, and its listings are; pages that once stood on its main page announce nothing
    kinds = inputs.host * len(HubKind) + inputs.kind
    groups = np.unique(kinds, return_inverse=True)[1]
    book = RateBook(len(inputs.row), groups, slot_s=SLOT_S, prior_rate_per_s=prior_per_s)
    said = np.flatnonzero(inputs.period_s > 0)
    book.hint(said, HINT_WEIGHT * np.clip(inputs.period_s[said], *HINTS_S), HINT_WEIGHT)
    book.expect(visits.hub, visits.gap_s, visits.found)
    for part in np.array_split(np.arange(len(visits.hub)), _PARTS):  # what is known of the hours grows with each
        book.visit(visits.hub[part], visits.at_s[part], visits.gap_s[part], visits.found[part])
    book.fit()
    rate, drawn = book.rates(), book.sample(chances(inputs.row, visits.count, seed))
    return rate, np.where(visits.count - 1 < KNOWN_VISITS, np.maximum(rate, drawn), rate), book


def chances(row: I64, count: I64, seed: int) -> F64:
    """Between 0 and 1, evenly: by hub and visit one that stays until the next visit.

    >>> bool(chances(np.array([7]), np.array([2]), 1) == chances(np.array([7]), np.array([2]), 1))
    True
    """
    x = np.full(len(row), seed & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for part in (row, count):
        x = (x ^ part.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def learn_interest(inputs: HubInputs, decay_per_s: float) -> tuple[F64, F64, InterestCurve, bool]:
    """P and mu by hub, the curve of all, and whether clicks told; without any, hubs are alike and P is 1."""
    pages, count = inputs.announced, len(inputs.row)
    recent, told = pages.learnt_from(inputs.now_s)
    if not pages.clicks[told].sum() > 0.0:
        nothing = np.zeros(0, dtype=np.float32)
        return np.ones(count), np.full(count, decay_per_s), InterestCurve(nothing, nothing, 1.0, decay_per_s), False
    watched, clicked = np.flatnonzero(recent), pages.click_page[told]
    mean = float(pages.clicks[told].sum()) / len(watched)
    group = np.unique(inputs.host, return_inverse=True)[1]
    book = InterestBook(count, group, edges_s=age_edges(decay_per_s), prior_profit=mean, prior_decay_per_s=decay_per_s)
    found = pages.found_s
    # a page is there from its fetch on: what was clicked before that, nobody could have clicked
    begin = np.maximum(pages.fetched_s[watched] - found[watched], 0.0)
    book.add(pages.hub[watched], begin, pages.heard_until_s - found[watched], 0.0, page=watched)
    # a click was made in its bin of the log, while its page was there and before the last that was heard of
    bin_s = pages.click_at_s[told] - 0.5 * CLICK_BIN_S
    low = np.maximum(np.maximum(bin_s, pages.fetched_s[clicked]) - found[clicked], 0.0)
    high = np.maximum(np.minimum(bin_s + CLICK_BIN_S, pages.heard_until_s) - found[clicked], low + 1.0)
    book.add(pages.hub[clicked], low, high, pages.clicks[told], page=clicked, pages=0.0)
    fit = book.fit()
    ages, clicks, _ = book.curve()
    curve = InterestCurve(
        ages.astype(np.float32), clicks.astype(np.float32), fit.levels.overall, fit.overall_decay_per_s
    )
    return fit.profit / left_when_found(pages, recent, fit.decay_per_s), fit.decay_per_s, curve, True


def age_edges(decay_per_s: float) -> F64:
    """Bins of age in which interest that fades like that hardly changes: what is watched in part counts evenly there.

    Where it fades within minutes, pages are young, and bins as wide as those of slow news would take them for hardly
    watched.
    """
    bin_s = min(BIN_S, math.log(2.0) / decay_per_s / BINS_A_HALF_LIFE)
    return age_bins(MEMORY_S * bin_s / BIN_S, bin_s=bin_s)


def left_when_found(pages: Announced, recent: BOOL, decay_per_s: F64) -> F64:
    """By hub, what was left of the clicks of its pages when they were found, of those that were watched.

    Clicks are counted from the find on: P, which counts from when a page appears, is that much more. A hub of which
    few pages are known has that of all.
    """
    decay = decay_per_s[pages.hub]
    weight = share_watched(pages, recent, decay)
    left = weight * share_left(decay, pages.gap_s)
    usual = float(left.sum() / weight.sum()) if weight.sum() > 0 else 1.0
    by_hub, seen = (np.bincount(pages.hub, column, len(decay_per_s)) for column in (left, weight))
    return np.asarray((by_hub + usual) / (seen + 1.0))


def left_of_late(visits: HubVisits, decay_per_s: F64) -> F64:
    """By hub, what was left of the clicks of new pages when its last visits found them; of few, that of all hubs."""
    count = len(decay_per_s)
    order = np.argsort(visits.hub, kind="stable")  # of each hub in the order of time
    ends = np.cumsum(np.bincount(visits.hub, minlength=count))
    late = order[ends[visits.hub[order]] - np.arange(len(order)) <= KNOWN_VISITS]
    hub, found = visits.hub[late], visits.found[late]
    left = found * share_left(decay_per_s[hub], visits.gap_s[late])
    usual = float(left.sum() / found.sum()) if found.sum() > 0 else 1.0
    by_hub, many = (np.bincount(hub, column, count) for column in (left, found))
    return np.asarray((by_hub + usual) / (many + 1.0))


def clear_hubs(inputs: HubInputs, plan: HubPlan, rate: F64, profit: F64, decay: F64, longest_s: float) -> Clearing:
    """Bids at the price at which all visits together, those that refreshes make anyway among them, are the budget."""
    total = float(inputs.usual_per_s.sum())
    anyway = inputs.refreshed_per_s

    def clear(budget: float) -> tuple[Clearing, float]:
        cleared = clear_visits(inputs, plan, rate, profit, decay, longest_s, budget)
        often = 1.0 / cleared.interval_s
        return cleared, float((often if anyway is None else np.maximum(often, anyway)).sum())

    cleared, spent = clear(total)
    low, high = 0.0, total
    for _ in range(_HALVINGS):
        if spent <= total * (1.0 + CLOSE) and (high == total or spent >= total * (1.0 - CLOSE)):
            break
        # idle pages are refreshed all the same: what their visits as hubs would save cannot be spent
        low, high = (low, 0.5 * (low + high)) if spent > total else (0.5 * (low + high), high)
        cleared, spent = clear(0.5 * (low + high))
    return cleared


def follow_hour(cleared: Clearing, factor: float, shortest_s: float, longest_s: float) -> Clearing:
    """Bids at this hour of the week, at the price of all hours: more visits in busy hours, fewer in quiet ones.

    What a bound sets stays, so none waits longer than `longest_s` at any hour.
    """
    priced = cleared.shape == Shape.SATURATING
    amplitude = np.where(priced, cleared.amplitude * factor, cleared.amplitude)
    x = np.full(len(amplitude), np.inf)
    gains = priced & (amplitude > 1.0)
    x[gains] = saturating_gains_inverse(1.0 / amplitude[gains])
    free = x / cleared.rate_per_s
    due = np.where(priced, np.clip(free, shortest_s, longest_s), cleared.interval_s)
    bounded = priced & ((due != free) | (x > SURELY))
    return replace(
        cleared,
        interval_s=due,
        amplitude=np.where(bounded, 1.0, amplitude),
        rate_per_s=np.where(bounded, 1.0 / due, cleared.rate_per_s),
        shape=np.where(bounded, int(Shape.LINEAR), cleared.shape).astype(np.uint8),
    )


def clear_visits(
    inputs: HubInputs, plan: HubPlan, rate: F64, profit: F64, decay: F64, longest_s: float, budget_per_s: float
) -> Clearing:
    """[BEYOND] lam·P/mu·g(mu·I) = omega with the sum of 1/I at the budget; hubs whose index, net of the pages' price,
    is bounded below omega have the longest interval.
    """
    amplitude = poisson_amplitude(profit, decay, rate)
    most = net_hub_index(rate, profit, decay, inputs.page_price, np.inf)
    for _ in range(_ROUNDS):
        bids = RefreshBids(amplitude, decay, Shape.SATURATING)
        cleared = clear_price(bids, budget_per_s, shortest_s=plan.shortest_s, longest_s=longest_s)
        worthless = (most < cleared.price) & (amplitude > 0)
        if not worthless.any():
            break
        amplitude = np.where(worthless, 0.0, amplitude)
    return cleared
