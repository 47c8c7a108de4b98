"""New pages that hubs announced, and what tells a single one of them from the others of its hub."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.factors import fit_factors, multiply_factors
from bowerbird.model.hub_study import PARTS
from bowerbird.model.page_types import PageType

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]

DAY_S = 86400.0
CLICK_BIN_S = 1200.0  # of the demand log
MEMORY_S = 60 * DAY_S  # older pages say little of interest today
ENOUGH = 1000  # pages: where fewer were found in that time, older ones tell more than so few do
LONGEST_MEMORY_S = 365 * DAY_S
LEAST_WATCHED = 0.02  # of its clicks have to have been watched for a page to count
LONGEST_LIVES = 5.0  # 1/mu: of what appeared longer ago, nothing that was seen tells
CAP = 10.0  # times what was expected: one page that everybody read would lift all that are like it


class Feature(IntEnum):
    """What is known of a page before it is fetched: columns of `Announced.level`."""

    PLACE = 0  # among the new links of the visit that found it, top first: 0, 1, 2–3, 4–7…
    SHOWN = 1  # hubs that link to it
    TYPE = 2  # of its URL: PageType
    ASKED = 3  # how much searchers ask for the words of its URL and of the links to it


SIZES = (8, 6, len(PageType), 6)


@dataclass(frozen=True, slots=True)
class Announced:
    """New pages that hubs announced, ascending by row, and the clicks on them of known time."""

    row: I64
    hub: I64
    found_s: F64
    gap_s: F64  # between the visit before and the one that found it: it appeared at some time in it
    fetched_s: F64  # inf = not yet
    is_new: BOOL  # on the frontier
    level: I64  # by page and Feature
    heard_until_s: float  # of later clicks nothing is known
    click_page: I64  # place of the page
    click_at_s: F64
    clicks: F64

    def _enough_since(self, there: BOOL) -> float:
        """After when the last `ENOUGH` of these pages were found."""
        found = self.found_s[there]
        return float(np.partition(found, -ENOUGH - 1)[-ENOUGH - 1]) if len(found) > ENOUGH else -np.inf

    def learnt_from(self, now_s: float) -> tuple[BOOL, BOOL]:
        """Pages that were there to be clicked, and clicks on them."""
        there = self.fetched_s < self.heard_until_s
        since = max(min(now_s - MEMORY_S, self._enough_since(there)), now_s - LONGEST_MEMORY_S)
        recent = there & (self.found_s > since)
        told = recent[self.click_page] & (self.click_at_s + 0.5 * CLICK_BIN_S > self.fetched_s[self.click_page])
        return recent, told


def share_left(decay_per_s: npt.ArrayLike, gap_s: npt.ArrayLike) -> F64:
    """[BEYOND] (1 - exp(-mu·G))/(mu·G): of a page's clicks, those still to come when it is found after a gap G.

    It appeared at any time within the gap, all alike; no longer ago than `LONGEST_LIVES`, for lists show the latest.

    >>> share_left(1.0, [0.0, 1.0]).round(4).tolist()
    [1.0, 0.6321]
    """
    x = np.minimum(np.asarray(decay_per_s, np.float64) * np.asarray(gap_s, np.float64), LONGEST_LIVES)
    return np.asarray(np.where(x > 1e-9, -np.expm1(-x) / np.maximum(x, 1e-9), 1.0))


def share_watched(pages: Announced, recent: BOOL, decay_per_s: F64) -> F64:
    """By page, of its clicks from when it was found on, those that came while it was watched; 0 where it was not."""
    begin = np.maximum(pages.fetched_s - pages.found_s, 0.0)
    end = np.maximum(pages.heard_until_s - pages.found_s, begin)
    with np.errstate(invalid="ignore"):
        return np.where(recent, np.exp(-decay_per_s * begin) - np.exp(-decay_per_s * end), 0.0)


def rate_pages(pages: Announced, now_s: float, profit: F64, decay_per_s: F64) -> F64:
    """[BEYOND] By page the factor on its hub's P: clicks had, by P·s·(exp(-mu·a) - exp(-mu·b)), shrunk by feature.

    a and b are the times from its find to its fetch and to when clicks were last heard of, s is what was left of its
    clicks when it was found. Without clicks it is 1.
    """
    recent, told = pages.learnt_from(now_s)
    had = np.bincount(pages.click_page[told], pages.clicks[told], len(pages.row))
    decay = decay_per_s[pages.hub]
    share = share_watched(pages, recent, decay)
    watched = np.flatnonzero(share > LEAST_WATCHED)
    expected = profit[pages.hub[watched]] * (share_left(decay, pages.gap_s) * share)[watched]
    if not had[watched].sum() > 0 or not expected.sum() > 0:
        return np.ones(len(pages.row))
    expected *= had[watched].sum() / expected.sum()
    factors = fit_factors(pages.level[watched], SIZES, np.minimum(had[watched], CAP * expected), expected)
    return multiply_factors(factors, pages.level)


def spread_pages(factors: F64, parts: int = PARTS) -> F64:
    """Factors of pages in so many equal parts, the least first, each by its mean in that of all; few are taken alike.

    >>> spread_pages(np.array([3.0, 1.0, 1.0, 3.0]), 2).tolist(), spread_pages(np.array([3.0]), 2).tolist()
    ([0.5, 1.5], [1.0, 1.0])
    """
    if len(factors) < parts or not factors.sum() > 0:
        return np.ones(parts)
    means = np.array([part.mean() for part in np.array_split(np.sort(factors), parts)])
    return np.asarray(means / means.mean())
