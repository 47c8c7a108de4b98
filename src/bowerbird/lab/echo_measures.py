"""Names and units of what the echo experiment measures."""

from __future__ import annotations

PROFIT, FETCHED, FOUND, MISSED, DELAY = "profit_pct", "fetched_pct", "found_pct", "missed_pct", "fetch_delay_h"
#: kinds, each with places of its own, and what they were taken on
DYNAMIC = "dynamic_profit"  # of each budget: name_dynamic
PUSHES, HISTORY = "push_pct middle budget", "history_pct middle budget"
DISCOVERED, DISCOVERY_DELAY = "discovered_pct visits only", "discovery_delay_h visits only"
COVER, INTEREST = "cover_pct new pages", "interest_pct new pages"
CLUSTER, HALF_LIFE = "cluster_pct", "half_life_h"

OURS = "one-price"
BOUND = "(bound)"
GREEDY_COVER = "(greedy cover)"
ALL_PAGES, FITTED = "(all pages)", "(fitted)"
EPHEMERAL = "(ephemeral)"

#: hours between pushes of clicks, and visits remembered, that are compared
PUSH_HOURS = (1.0, 3.0, 6.0, 12.0, 24.0)
HISTORIES = (1.0, 3.0, 7.0, 15.0, 30.0)
#: visits for each fetch of the largest budget, where only discovery counts
VISIT_SHARES = (0.05, 0.1, 0.2, 0.5)
#: hours of age at which interest is told
SHOWN_HOURS = (1, 3, 6, 12, 24, 48, 72, 120, 168, 240, 336)
#: of the hubs, the shares whose cover is told
COVER_SHARES = (0.01, 0.03, 0.1, 0.2, 0.5)
COVERED = 0.8

UNITS = {
    PROFIT: "profit of new pages after their fetch, % of the profit of all",
    FETCHED: "new pages fetched, %, whatever they are worth and however late",
    FOUND: "new pages seen on a hub, %",
    MISSED: "new pages gone from all hubs before they were seen, %",
    DELAY: "hours from a page's appearance to its fetch, median of those fetched",
    DYNAMIC: "profit an hour of the pages fetched then",
    "push_pct": "profit, % of that of all, by hours between pushes of clicks",
    "history_pct": "profit, % of that of all, by visits that lam is measured over",
    "discovered_pct": "new pages seen on a hub where all fetches are visits, %",
    "discovery_delay_h": "hours from a page's appearance until a hub shows it, median, where all fetches are visits",
    "cover_pct": "new pages that the best hubs link to, %",
    "interest_pct": "profit by age, % of that in the time watched: mean of pages, and P·(1 - exp(-mu·t))",
    CLUSTER: "pages by how interest in them goes, %",
    HALF_LIFE: "hours until half of the profit is made, by the fit",
    "at": "fetches for each new page, x",
    "at dynamic_profit": "day",
    "at push_pct": "hours between pushes",
    "at history_pct": "visits",
    "at discovered_pct": "visits an hour, all hubs together",
    "at discovery_delay_h": "visits an hour, all hubs together",
    "at cover_pct": "hubs, share of all",
    "at interest_pct": "hours since a page's appearance",
}


def name_dynamic(x: float) -> str:
    """The dynamic profit with a budget.

    >>> name_dynamic(0.22)
    'dynamic_profit x = 0.22'
    """
    return f"{DYNAMIC} x = {x:g}"
