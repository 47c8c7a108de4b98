"""Names and units of what the holistic experiment measures."""

from __future__ import annotations

from bowerbird.lab.holistic_crawl import Kind

GAIN, QUALITY, TIMES_BFS, OF_QUOTA = "gain_per_fetch", "quality_pct", "times_breadth_first", "of_best_quota_pct"
#: kinds of measures, each taken by kind of fetch: "share_pct new"
SHARE, MARGINAL, CALIBRATION = "share_pct", "marginal", "calibration"
#: what MARGINAL is the ratio of, summed up over a run by parts of the world: runs with few fetches of a kind tell less
MARGIN_GAINED, MARGIN_BID = "margin_gained", "margin_bid"
#: over time, by budget
CURVE, SPENT = "quality_curve", "spent_curve"
UNEQUAL = "marginal_unequal_pct"

UNITS = {
    GAIN: "clicks gained by a fetch of the budget, over fetching nothing after the warm start",
    QUALITY: "clicks that searchers get, % of those there are to be had: mean of Q over time",
    TIMES_BFS: "clicks gained, in those of breadth-first with the same budget",
    OF_QUOTA: "clicks gained, % of those of the best fixed split of the same seed, chosen in hindsight",
    SHARE: "fetches of this kind, % of all",
    MARGINAL: "true gain at the margin of fetches that were the least to be taken in the second half of the time, by "
    "what they bid: so many prices does the last fetch of a kind gain; alike when the split is the best",
    MARGIN_GAINED: "true gain of those fetches, in clicks, by parts of the world",
    MARGIN_BID: "bids of those fetches, in clicks, by parts of the world",
    UNEQUAL: "how far the true gains at the margin of the kinds are from their mean, at most, %",
    CALIBRATION: "true gains of fetches by what they bid; 1 = as expected",
    CURVE: "Q, %: clicks that searchers get of those there are to be had",
    SPENT: "fetches by kind, % of all",
    "at": "budget: fetches, % of the pages at the beginning, a day (mdn: a week)",
    "at quality_curve": "day",
    "at spent_curve": "day",
}


def by_kind(measure: str, kind: Kind) -> str:
    """The measure of one kind of fetch.

    >>> by_kind(SHARE, Kind.HUB)
    'share_pct hub'
    """
    return f"{measure} {kind.label}"


def over_time(measure: str, budget: float) -> str:
    """The measure over time with a budget.

    >>> over_time(CURVE, 2.0)
    'quality_curve budget 2%'
    """
    return f"{measure} budget {budget:g}%"
