"""A study of hubs: how many new pages each announces, how long interest in them lasts, when each is worth a visit.

Bids are in prices, as those of refreshes are: what the visits that a budget buys clear at is 1, so a hub is due when
its bid reaches 1. Profits are in expected clicks a new page. A study is made now and then; bids are read off it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class HubKind(IntEnum):
    """What a hub is."""

    MAIN_PAGE = 0  # of its host
    FEED = 1
    SITEMAP = 2
    LISTING = 3  # any other page that announces pages
    SEED = 4  # a page that the crawl chose to start from

    @property
    def label(self) -> str:
        """The name as people read it."""
        return self.name.lower().replace("_", " ")


HOURS = 168  # of a week
PARTS = 7  # equal ones, of the pages that hubs announce, by what is expected of them


@dataclass(frozen=True, slots=True)
class HubColumns:
    """One value a hub, in the order of their rows."""

    row: I64  # ascending
    kind: U8  # HubKind
    visits: I64  # that found it, in the last 60 days
    found: I64  # new pages first found there in that time, on visits after the first
    turned: I64  # visits at which nothing announced at the visit before was left
    missed: F32  # pages that came and went unseen before those, as far as the rate tells
    period_s: F32  # between updates, as it says itself; 0 = it says nothing
    rate_per_s: F32  # lam: new pages first found there
    drawn_per_s: F32  # the rate that its bid goes by: drawn from what is believed while little is known
    profit: F32  # P: clicks that a new page of it gets
    decay_per_s: F32  # mu: of the interest in a new page
    left: F32  # of a page's clicks, those still to come when a visit finds it, as at the last visits
    amplitude: F32  # in prices
    bid_rate_per_s: F32
    shape: U8
    interval_s: F32  # the age at which it is due

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class InterestCurve:
    """Clicks that a new page has got by each age, the mean over pages that were there then; and the fit to it."""

    age_s: F32
    clicks: F32
    profit: float
    decay_per_s: float


@dataclass(frozen=True, slots=True)
class HubStudy:
    """What was found out about the hubs among the first `count` rows."""

    at: float
    method: str
    count: int
    hubs: HubColumns
    page_row: I64  # new pages on the frontier that a hub announced, ascending
    page_hub: I64  # and the place of their hub
    page_factor: F32  # and what is expected of them in what is expected of its pages
    curve: InterestCurve
    by_clicks: bool  # P and mu rest on clicks; else all hubs have the same
    mean_profit: float  # of a new page, over the pages that hubs announce
    price: float  # in profits of a mean new page
    budget_per_s: float  # visits
    longest_s: float  # no hub waits longer
    cover_hub: I64  # places of hubs, those first that announce most of what the ones before them do not
    cover_share: F32  # of the new pages that they announce together
    info: dict[str, str | float] = field(default_factory=dict)
    pattern: F32 = field(default_factory=lambda: np.ones(HOURS, np.float32))  # by hour of the week, of mean 1
    #: what is expected of a page before it is fetched, in what is expected of those of its hub: by parts, of mean 1
    page_spread: F32 = field(default_factory=lambda: np.ones(PARTS, np.float32))

    def place(self, rows: npt.NDArray[np.integer]) -> I64:
        """The places of these rows among the hubs, -1 for what is none."""
        return _find(self.hubs.row, np.asarray(rows, dtype=np.int64))

    def announced(self, rows: I64, sources: npt.NDArray[np.int32]) -> I64:
        """By page the place of the hub that announced it, -1 where none did; `sources` are the URLs that led there.

        Of pages found since, every one that a hub led to counts: it had been visited before.
        """
        out = np.full(len(rows), -1, dtype=np.int64)
        known = rows < self.count
        page = _find(self.page_row, rows[known])
        out[known] = np.where(page >= 0, self.page_hub[page] if len(self.page_hub) else -1, -1)
        out[~known] = self.place(sources[~known])
        return out

    def factors(self, rows: I64, hub: I64) -> npt.NDArray[np.float64]:
        """By page and place of its hub: clicks from its find on, in those of a page of its hub over its life."""
        page = _find(self.page_row, rows)
        out = self.hubs.left[hub].astype(np.float64)  # of pages found since, no more is known
        out[page >= 0] = self.page_factor[page[page >= 0]]
        return out


def _find(sorted_rows: I64, rows: I64) -> I64:
    if not len(sorted_rows):
        return np.full(len(rows), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_rows, rows), len(sorted_rows) - 1)
    return np.where(sorted_rows[place] == rows, place, -1)
