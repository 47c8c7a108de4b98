"""Names and units of what the refresh experiment measures."""

from __future__ import annotations

import itertools

#: pages refreshed a week, as shares of all
BUDGETS = (0.0025, 0.005, 0.01, 0.02, 0.05, 0.1)
HEADLINE = 0.01
SIGNAL_BUDGETS = (0.01, 0.05)

LOSS, LOSS_AT, LEFT = "loss_bp", "loss_1pct_bp", "left_pct"
CORRELATION, GIVEN_UP = "rank_correlation", "given_up_pct"
SIGNALS = "signals"
#: what `crawl --policy …+user-centric` is, online
OURS = "uc-area-online"
#: user-centric as in the paper, by the index of the crawl, and as a crawler can have it
TARGETS = ("uc-linear", "uc-area", OURS)

FIRST_HALF = "(mean gain of an update in the first half of the weeks, in the second)"
BOTH_HALVES = "(the same, of pages that gained in both)"
CURVE_GAIN = "(gain by curves, exact gain)"
LOCAL_GAIN = "(gain by local scores, exact gain)"
STALE_GAIN = "(gain by local scores, exact gain; a stale repository)"

UNITS = {
    LEFT: "loss left at 1% of pages a week, % of that without any refresh, mean of workloads and scorings",
    LOSS_AT: "loss of quality at 1% of pages a week, basis points, mean of the weeks",
    LOSS: "loss of quality, basis points, mean of the weeks",
    CORRELATION: "rank correlation, of gains (Spearman's)",
    GIVEN_UP: "pages given up, % of the 1% of pages that change most often",
    "at": "pages refreshed a week, share of all",
}
for _share in SIGNAL_BUDGETS:
    UNITS[f"signals_{100 * _share:g}pct_bp"] = f"loss with signals at {_share:.0%} of pages a week, basis points"
    UNITS[f"at signals_{100 * _share:g}pct_bp"] = "recall of the signals"
for _target in TARGETS:
    UNITS[f"budget_of_{_target}"] = (
        f"budget for the quality of {_target} at 1%, % of pages a week; 0.25 may be less, > 10% is not reached"
    )


def pages_a_week(share: float, count: int) -> int:
    """B: how many of the pages are refreshed each week.

    >>> pages_a_week(0.01, 1728), pages_a_week(0.01, 50), pages_a_week(0.01, 51)
    (17, 0, 1)
    """
    return round(share * count)


def least_pages(share: float) -> int:
    """The fewest pages of which this share is a page.

    >>> least_pages(0.01), least_pages(0.0025)
    (51, 201)
    """
    return next(count for count in itertools.count(1) if pages_a_week(share, count))


def signals_measure(share: float, on: str) -> str:
    """The measure of loss with signals.

    >>> signals_measure(0.05, "web tf-idf")
    'signals_5pct_bp web tf-idf'
    """
    return f"signals_{100 * share:g}pct_bp {on}"
