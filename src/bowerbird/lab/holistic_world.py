"""The world of the holistic experiments: pages, what searchers click of them, how they change, and who announces them.

Everything is known here; a policy sees of it what `holistic_crawl` shows. Times are virtual seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
BOOL = npt.NDArray[np.bool_]

HOUR_S = 3600.0
DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
#: virtual time begins here: a Monday at midnight, long after 0, which stands for "never" in a crawl's columns
START_S = 1000 * WEEK_S
NO_HUB = 255  # in `hub_kind`


@dataclass(frozen=True)
class HolisticWorld:
    """Columns are by page. A page's clicks a second at time t: base + P·mu·exp(-mu·(t - born))."""

    name: str
    step_s: float
    measured_from_s: float  # before that is the warm start, the same for all policies
    end_s: float
    host: I64
    group: I64  # its directory: pages of one change alike
    kind: U8  # UrlKind
    hub_kind: U8  # HubKind, NO_HUB for others
    dated: BOOL  # its URL tells that it is an article
    born_s: F64  # -inf: before the beginning
    base_per_s: F64
    profit: F64
    decay_per_s: F64
    change_rate_per_s: F64
    change_loss: F64  # the share of its clicks that one missed change costs, on average
    event_at_s: F64  # changes, ascending in time
    event_page: I64
    event_loss: F64
    link_starts: (
        I64  # page i links to link_targets[link_starts[i]:link_starts[i + 1]], of which those count that are born
    )
    link_targets: I64
    shows_starts: I64  # what hub i announces, in the order of time
    shows_page: I64
    shown: int  # announcements that a hub shows: its last ones
    known_pages: I64  # at the beginning
    fetched_pages: I64  # of those
    warm_per_step: float  # fetches of the warm start
    budgets: tuple[float, ...]  # fetches, % of `budget_pages` each `budget_s`
    budget_pages: int
    budget_s: float = DAY_S
    study_steps: int = 12  # between studies
    noise: float = 0.03  # of measured gains
    exposed_s: float = 7 * DAY_S  # expected clicks of new pages are those of so long a time
    half_life_s: float = 3 * DAY_S  # of interest in new pages, as a person would set it, until clicks tell
    stake_half_life_s: float = 5 * DAY_S  # in which clicks lose half of their weight where the present matters
    notes: tuple[str, ...] = ()
    facts: dict[str, str | int | float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Pages that there are or will be, hubs among them."""
        return len(self.host)

    @property
    def host_count(self) -> int:
        """How many hosts there are."""
        return int(self.host.max()) + 1

    @property
    def is_hub(self) -> BOOL:
        """Whether a page announces others."""
        return np.asarray(self.hub_kind != NO_HUB)

    @property
    def size(self) -> F64:
        """How much pages are clicked, to be compared within a hub: over life where interest fades, else a second."""
        return self.profit + self.base_per_s

    @cached_property
    def usual_size(self) -> F64:
        """By hub the mean size of the pages that it announces; 0 for what is none."""
        many = np.diff(self.shows_starts)
        hub = np.repeat(np.arange(self.count), many)
        return np.bincount(hub, self.size[self.shows_page], self.count) / np.maximum(many, 1)

    @property
    def steps(self) -> int:
        """From the beginning to the end."""
        return round((self.end_s - START_S) / self.step_s)

    @property
    def warm_steps(self) -> int:
        """Those of the warm start."""
        return round((self.measured_from_s - START_S) / self.step_s)

    def fetches_per_step(self, budget: float) -> float:
        """What a budget buys."""
        return budget / 100.0 * self.budget_pages * self.step_s / self.budget_s

    def clicks_left(self, page: I64, at_s: npt.ArrayLike) -> F64:
        """Clicks of these pages from a time until the end, each fetched and fresh: base·(T - t) + what is left."""
        at = np.asarray(at_s, np.float64)
        decay, born = self.decay_per_s[page], self.born_s[page]
        left = np.maximum(self.end_s - at, 0.0)
        steady = self.base_per_s[page] * left
        with np.errstate(invalid="ignore", over="ignore"):
            faded = np.exp(-decay * np.maximum(at - born, 0.0)) * -np.expm1(-decay * left)
        return np.asarray(steady + np.where(self.profit[page] > 0, self.profit[page] * faded, 0.0))

    def clicks_per_s(self, page: I64, at_s: float) -> F64:
        """Clicks a second of these pages at a time, each fetched and fresh."""
        decay = self.decay_per_s[page]
        with np.errstate(invalid="ignore"):
            fading = self.profit[page] * decay * np.exp(-decay * np.maximum(at_s - self.born_s[page], 0.0))
        return np.asarray(self.base_per_s[page] + np.where(self.profit[page] > 0, fading, 0.0))

    @cached_property
    def ideal(self) -> F64:
        """By step the clicks there are to be had: of all that exists, fetched and fresh."""
        out = np.empty(self.steps)
        every = np.arange(self.count)
        at = START_S
        before = np.where(self.born_s <= at, self.clicks_left(every, at), 0.0)
        for step in range(self.steps):
            after = np.where(self.born_s <= at, self.clicks_left(every, at + self.step_s), 0.0)
            out[step] = float((before - after).sum())
            at = START_S + (step + 1) * self.step_s
            before = np.where(self.born_s <= at, self.clicks_left(every, at), 0.0)
        return out

    def describe(self) -> dict[str, str | int | float]:
        """Sizes, as a table of two columns."""
        new = self.born_s > START_S
        days = (self.end_s - self.measured_from_s) / DAY_S
        later = new & (self.born_s > self.measured_from_s)
        there = ~new & (self.base_per_s > 0)
        return {
            "data": self.name,
            "hosts": self.host_count,
            "pages at the beginning": int((~new & ~self.is_hub).sum()),
            "hubs": int(self.is_hub.sum()),
            "days of warm start": round((self.measured_from_s - START_S) / DAY_S, 1),
            "days measured": round(days, 1),
            "new pages a day": round(float(later.sum()) / days, 1),
            "changes a day": round(float((self.event_at_s > self.measured_from_s).sum()) / days, 1),
            "clicks a day, old pages": round(float(self.base_per_s[there].sum()) * DAY_S),
            "clicks a day, all": round(float(self.ideal[self.warm_steps :].sum()) / days),
            **self.facts,
            **{f"note {place}": note for place, note in enumerate(self.notes, 1)},
        }
