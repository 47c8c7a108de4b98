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


def host_costs(host: I64, size: F64, seconds: F64, usual: Fetches, host_count: int) -> F64:
    """[BEYOND] (1 + b/b0 + t/t0)/3 by host: what refreshes there cost in usual fetches.

    A host of which few are known has the mean of all; "not modified" comes in few bytes.

    >>> some = np.zeros(10**6, np.int64), np.full(10**6, 10.0), np.full(10**6, 0.5)
    >>> host_costs(*some, Fetches(10**6, 100.0, 1.0), 2).round(3).tolist()
    [0.533, 0.533]
    """
    if not (len(host) and usual.count):
        return np.ones(host_count)
    parts = 1.0 + size / max(usual.bytes, 1.0) + seconds / max(usual.seconds, 1e-6)
    each = np.minimum(parts / 3.0, DEAREST)
    mean = (float(each.sum()) + FEWEST) / (len(each) + FEWEST)
    known = np.bincount(host, minlength=host_count)
    return np.asarray((np.bincount(host, each, host_count) + FEWEST * mean) / (known + FEWEST), np.float64)


def cost_of_refreshes(study: RefreshStudy | None, hosts: npt.NDArray[np.integer]) -> F64:
    """By page, as those of its host; 1 where nothing is known of it."""
    if study is None or study.host_cost is None or not len(study.host_cost):
        return np.ones(len(hosts))
    known = hosts < len(study.host_cost)
    return np.where(known, study.host_cost[np.where(known, hosts, 0)].astype(np.float64), 1.0)


def cost_of_fetches(
    state: npt.NDArray[np.uint8],
    kind: npt.NDArray[np.uint8],
    hosts: npt.NDArray[np.integer],
    study: RefreshStudy | None,
    factors: Factors,
) -> F64:
    """By URL, whatever it is fetched for: a new page is a usual fetch, and so is what was gone."""
    out = np.ones(len(state))
    pages = np.flatnonzero((kind == UrlKind.PAGE) & (state == UrlState.FETCHED))
    out[pages] = cost_of_refreshes(study, hosts[pages])
    out[kind == UrlKind.FEED] = factors.feed_cost
    out[kind == UrlKind.SITEMAP] = factors.sitemap_cost
    return out
