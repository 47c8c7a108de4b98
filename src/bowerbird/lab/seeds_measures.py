"""Names and units of what the seeds experiment measures."""

from __future__ import annotations

#: seeds and hops of the two series: 1…MOST_SEEDS seeds within MOST_HOPS, and SERIES_SEEDS seeds within 1…MOST_HOPS
MOST_SEEDS, SERIES_SEEDS, MOST_HOPS = 10, 5, 5

#: kinds of measures with places; each is taken on a scope
PAGES, VALUE = "pages_pct", "value_pct"
HOP_PAGES, HOP_VALUE = "pages_by_hops_pct", "value_by_hops_pct"
COVERAGES = (PAGES, VALUE, HOP_PAGES, HOP_VALUE)
OVER_RANDOM = {kind: kind.replace("_pct", "_over_random_pct") for kind in COVERAGES}
WHOLE, BY_SITE = "whole graph", "by site"
SCOPES = (WHOLE, BY_SITE)

#: measures without places: MOST_SEEDS seeds, MOST_HOPS hops
COVERED, OF_BOUND, SITES_COVERED, SITE_MEAN = "covered_pct", "of_bound_pct", "sites_pct", "site_mean_pct"

RANDOM, GREEDY, EXACT, SAMPLED = "random", "greedy", "greedy-exact", "greedy-sampled"
#: what the paper compares
PAPER_POLICIES = (
    RANDOM,
    "pagerank",
    "outdegree",
    "maxout",
    "maxweight-2",
    "maxweight-3",
    "maxscc",
    "rootscc",
)

_SEEDS, _HOPS = f"seeds, {MOST_HOPS} hops", f"hops, {SERIES_SEEDS} seeds"
UNITS = {
    COVERED: f"value covered by {MOST_SEEDS} seeds within {MOST_HOPS} hops, % of all; pages, where data has no values",
    OF_BOUND: "that value, % of the bound on the best choice",
    SITES_COVERED: f"the same with {MOST_SEEDS} seeds for each site, by links of its own; % of all sites together",
    SITE_MEAN: "the same, mean of the sites that have links",
    PAGES: "pages covered, % of all",
    VALUE: "value of the pages covered, % of that of all",
    HOP_PAGES: "pages covered, % of all, by hops",
    HOP_VALUE: "value of the pages covered, % of that of all, by hops",
    OVER_RANDOM[PAGES]: "pages covered, % more than by random seeds",
    OVER_RANDOM[VALUE]: "value covered, % more than by random seeds",
    OVER_RANDOM[HOP_PAGES]: "pages covered, % more than by random seeds, by hops",
    OVER_RANDOM[HOP_VALUE]: "value covered, % more than by random seeds, by hops",
}
UNITS |= {f"at {kind}": _HOPS if "hops" in kind else _SEEDS for kind in (*COVERAGES, *OVER_RANDOM.values())}


def name_measure(kind: str, scope: str) -> str:
    """A kind of measure, taken on a scope.

    >>> name_measure(PAGES, WHOLE)
    'pages_pct whole graph'
    """
    return f"{kind} {scope}"
