"""What a fetch costs beside a usual one, that of a new page: its turn at the host, bytes and time, a third each.

Gains are divided by it in bids: of two fetches that gain as much the one that takes less goes first. The budget counts
fetches, whatever they take: a rate is a promise to the hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.factors import Factors
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import PageColumns
from bowerbird.model.url_state import UrlKind, UrlState

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

FEWEST = 20.0  # fetches that a cost of 1 weighs as much as
DEAREST = 5.0  # a few huge sitemaps say little of the others


@dataclass(frozen=True, slots=True)
class Fetches:
    """Some fetches: how many, and what each took on average."""

    count: int
    bytes: float
    seconds: float


def relative_cost(some: Fetches, usual: Fetches) -> float:
    """[BEYOND] (1 + b/b0 + t/t0)/3: what fetches cost in usual ones; near 1 while few are known.

    A fetch takes its turn at its host whatever comes back.

    >>> round(relative_cost(Fetches(10**6, 10.0, 0.5), Fetches(10**6, 100.0, 1.0)), 4)  # (1 + 0.1 + 0.5)/3
    0.5333
    """
    if not (some.count and usual.count):
        return 1.0
    parts = (1.0, some.bytes / max(usual.bytes, 1.0), some.seconds / max(usual.seconds, 1e-6))
    known = min(some.count, usual.count)
    return min((known * sum(parts) / 3.0 + FEWEST) / (known + FEWEST), DEAREST)


@dataclass(frozen=True, slots=True)
class HostFetches:
    """Some fetches of pages: where, and what each took."""

    host: I64
    bytes: F64
    seconds: F64


def host_costs(refreshes: HostFetches, first: HostFetches, host_count: int) -> F64:
    """[BEYOND] (1 + b/b0 + t/t0)/3 by host: what refreshes cost in first fetches of the same host.

    A host of which few fetches are known has the mean of all; "not modified" comes in few bytes.

    >>> new = HostFetches(np.zeros(10**6, np.int64), np.full(10**6, 100.0), np.full(10**6, 1.0))
    >>> again = HostFetches(np.zeros(10**6, np.int64), np.full(10**6, 10.0), np.full(10**6, 0.5))
    >>> host_costs(again, new, 2).round(3).tolist()
    [0.533, 0.533]
    """
    if not (len(refreshes.host) and len(first.host)):
        return np.ones(host_count)
    size = refreshes.bytes / np.maximum(_mean_by_host(first.host, first.bytes, host_count), 1.0)[refreshes.host]
    took = refreshes.seconds / np.maximum(_mean_by_host(first.host, first.seconds, host_count), 1e-6)[refreshes.host]
    parts = (1.0 + size + took) / 3.0
    known = np.bincount(refreshes.host, minlength=host_count)
    mean = min((float(parts.sum()) + FEWEST) / (len(parts) + FEWEST), DEAREST)
    return np.minimum((np.bincount(refreshes.host, parts, host_count) + FEWEST * mean) / (known + FEWEST), DEAREST)


def _mean_by_host(host: I64, values: F64, host_count: int) -> F64:
    known = np.bincount(host, minlength=host_count)
    return (np.bincount(host, values, host_count) + FEWEST * float(values.mean())) / (known + FEWEST)


def cost_of_refreshes(study: RefreshStudy | None, rows: npt.NDArray[np.integer], hosts: npt.NDArray[np.integer]) -> F64:
    """By page, as those of its host; 1 where the study does not know the page: its bid is divided by nothing."""
    out = np.ones(len(rows))
    if study is not None and study.host_cost is not None:
        known = np.flatnonzero((rows < study.count) & (hosts < len(study.host_cost)))
        known = known[~np.isnan(study.interval_s[rows[known]])]
        out[known] = study.host_cost[hosts[known]]
    return out


def cost_of_fetches(
    pages: PageColumns, rows: npt.NDArray[np.integer], study: RefreshStudy | None, factors: Factors
) -> F64:
    """By URL, whatever it is fetched for: a new page is a usual fetch, and so is what was gone."""
    kind, out = pages.kind[rows], np.ones(len(rows))
    known = np.flatnonzero((kind == UrlKind.PAGE) & (pages.state[rows] == UrlState.FETCHED))
    out[known] = cost_of_refreshes(study, rows[known], pages.host[rows[known]])
    out[kind == UrlKind.FEED] = factors.feed_cost
    out[kind == UrlKind.SITEMAP] = factors.sitemap_cost
    return out
