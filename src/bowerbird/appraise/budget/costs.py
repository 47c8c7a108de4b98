"""What a fetch costs beside another: its turn at the host, bytes and time, a third each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind

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


def cost_of_visits(kind: npt.NDArray[np.uint8], factors: Factors) -> npt.NDArray[np.float64]:
    """By hub: feeds and sitemaps cost what they took of late, pages as much as others."""
    out = np.ones(len(kind))
    out[kind == HubKind.FEED] = factors.feed_cost
    out[kind == HubKind.SITEMAP] = factors.sitemap_cost
    return out
