"""A world of hubs for the echo experiments: what is linked where and when, and what people make of each page.

Everything is known here; a policy sees of it what `echo_replay` shows. Times are virtual seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

DAY_S = 86_400.0
HOUR_S = 3_600.0
#: clicks are told in whole bins of so many seconds, which begin at its multiples
BIN_S = 1_200.0


@dataclass(frozen=True)
class EchoWorld:
    """Hubs, the links they show, and the profit of pages as clicks spread evenly over spans of time."""

    name: str
    begin_s: float
    end_s: float
    scored_from_s: float
    scored_to_s: float
    hub_names: tuple[str, ...]
    hub_group: I64  # by hub: its host, or whatever hubs have in common; from 0
    page_names: tuple[str, ...]
    appeared_s: F64  # by page: when some hub first linked to it
    old: BoolArray  # by page: known at the beginning, never fetched, without profit
    link_hub: I64
    link_page: I64
    link_from_s: F64
    link_to_s: F64  # the first time at which it is not there any more
    link_position: I64  # where in the hub's list it is put when it appears; 0 = top
    gain_page: I64  # clicks by spans of time, sorted by page, then time
    gain_from_s: F64
    gain_to_s: F64
    gain_clicks: F64
    unit: str = "clicks"  # what profit is
    budgets: tuple[float, ...] = (0.22, 0.43, 0.87)  # fetches for each new page; those of [ECHO13]
    notes: tuple[str, ...] = ()

    @property
    def hub_count(self) -> int:
        """How many hubs there are."""
        return len(self.hub_names)

    @property
    def page_count(self) -> int:
        """How many pages there are, old ones included."""
        return len(self.appeared_s)

    @cached_property
    def gain_starts(self) -> I64:
        """The spans of page p are gain_starts[p]…gain_starts[p + 1] - 1."""
        return np.searchsorted(self.gain_page, np.arange(self.page_count + 1)).astype(np.int64)

    @cached_property
    def links_by_hub(self) -> tuple[I64, I64]:
        """Links of hub h in the order of their appearance, top first: order[starts[h]:starts[h + 1]]."""
        order = np.lexsort((self.link_position, self.link_from_s, self.link_hub)).astype(np.int64)
        starts = np.searchsorted(self.link_hub[order], np.arange(self.hub_count + 1)).astype(np.int64)
        return starts, order

    @cached_property
    def last_shown_s(self) -> F64:
        """By page: when the last link to it goes."""
        last = np.full(self.page_count, -np.inf)
        np.maximum.at(last, self.link_page, self.link_to_s)
        return last

    @cached_property
    def new_rate_per_s(self) -> float:
        """New pages a second between begin and end: the unit of budgets."""
        fresh = ~self.old & (self.appeared_s >= self.begin_s) & (self.appeared_s < self.end_s)
        return float(fresh.sum()) / (self.end_s - self.begin_s)

    @cached_property
    def scored(self) -> BoolArray:
        """By page: whether its profit counts."""
        return ~self.old & (self.appeared_s >= self.scored_from_s) & (self.appeared_s < self.scored_to_s)

    @cached_property
    def total_profit(self) -> F64:
        """By page: its profit from its appearance on."""
        every = np.arange(self.page_count, dtype=np.int64)
        return self.profit_between(every, self.appeared_s, np.full(self.page_count, np.inf))

    @property
    def bound(self) -> float:
        """The profit of all scored pages, each fetched as it appears."""
        return float(self.total_profit[self.scored].sum())

    def profit_between(self, page: I64, from_s: F64, to_s: F64) -> F64:
        """The profit of these pages in these times, one for each."""
        shape = (len(page),)
        made: F64 = _profit_between(
            self.gain_starts,
            self.gain_from_s,
            self.gain_to_s,
            self.gain_clicks,
            np.asarray(page, dtype=np.int64),
            np.broadcast_to(np.asarray(from_s, dtype=np.float64), shape),
            np.broadcast_to(np.asarray(to_s, dtype=np.float64), shape),
        )
        return made

    def during(self, begin_s: float, end_s: float, scored_from_s: float, scored_to_s: float) -> EchoWorld:
        """The same world in another span of time, e.g. to choose settings in; what was there before is old."""
        old = self.old | (self.appeared_s < begin_s)
        return replace(
            self, begin_s=begin_s, end_s=end_s, scored_from_s=scored_from_s, scored_to_s=scored_to_s, old=old
        )

    def describe(self) -> dict[str, str | int | float]:
        """Sizes, as a table of two columns."""
        facts: dict[str, str | int | float] = {
            "data": self.name,
            "hubs": self.hub_count,
            "pages": self.page_count,
            "old pages": int(self.old.sum()),
            "links": len(self.link_hub),
            "days replayed": f"{self.begin_s / DAY_S:g} to {self.end_s / DAY_S:g}",
            "days scored": f"{self.scored_from_s / DAY_S:g} to {self.scored_to_s / DAY_S:g}",
            "new pages an hour": round(self.new_rate_per_s * HOUR_S, 2),
            "scored pages": int(self.scored.sum()),
            f"their {self.unit}": round(self.bound),
        }
        return facts | {f"note {place}": note for place, note in enumerate(self.notes, 1)}


@numba.njit(cache=True, nogil=True)
def _profit_between(starts: I64, begins: F64, ends: F64, clicks: F64, page: I64, from_s: F64, to_s: F64) -> F64:
    made = np.zeros(len(page))
    for nth in range(len(page)):
        total = 0.0
        for span in range(starts[page[nth]], starts[page[nth] + 1]):
            low = max(begins[span], from_s[nth])
            high = min(ends[span], to_s[nth])
            if high > low:
                total += clicks[span] * (high - low) / (ends[span] - begins[span])
        made[nth] = total
    return made
