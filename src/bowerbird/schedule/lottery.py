"""Fetches drawn by lot. A small share of the budget goes to known pages chosen by chance, with known probability.

What the auction chooses says little about what it leaves: a sample whose probabilities are known does. The draws go in
equal parts to the pages that searchers see most of, to the other pages that were fetched, and to the frontier; within
each of these strata every page has the same chance. A quarter as many fetches go to hubs, each with the same chance,
and a quarter to new pages that hubs announced of late. So whatever the price, nothing is given up, and what news is
worth is learnt also by a crawl that thinks nothing of it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.url_state import UrlKind, UrlState

Bytes = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
STRATA = {"shown": UrlState.FETCHED, "fetched": UrlState.FETCHED, "frontier": UrlState.NEW}
HUBS, ANNOUNCED = "hubs", "announced"  # lots of their own, of which no quality is measured
SIDE_SHARE = 0.25  # of the draws, as many more for each of them
MOST_WAITING = 64
PATIENCE_S = 600.0  # a page whose host cannot be asked for so long makes room for another
_TRIES = 256
_ROUNDS = 16
_REDRAWS = 20
_COUNT_UPKEEP = 50  # counting takes at most one part in so many of the time


@dataclass(frozen=True, slots=True)
class Ticket:
    """A page that was drawn: it is fetched as soon as its host allows, whatever it bids."""

    row: int
    stratum: str
    population: int  # pages of the stratum when it was drawn
    propensity: float  # the chance of this page in that draw
    drawn_at: float

    def terms(self) -> str:
        """What the decision rests on, for the journal."""
        values = {"stratum": self.stratum, "population": self.population, "propensity": self.propensity}
        return orjson.dumps({"by": "lot", **values}).decode()


class Lottery:
    """Draws pages as fetches are made, and keeps those that wait for their hosts."""

    def __init__(self, share: float, rng: np.random.Generator | None = None) -> None:
        self.share = share
        self.rng = rng if rng is not None else np.random.default_rng()
        self.waiting: dict[int, Ticket] = {}
        self.given_up = 0
        self._owed = 0
        self._owed_aside = dict.fromkeys((HUBS, ANNOUNCED), 0)
        self._populations: dict[str, int] = {}
        self._counted_at = -math.inf
        self._count_took_s = 0.0
        self._shown: I64 = np.zeros(0, dtype=np.int64)
        self._told: I64 | None = None
        self._hub_pages: I64 = np.zeros(0, dtype=np.int64)
        self._announced: I64 = np.zeros(0, dtype=np.int64)

    def watch(self, shown: I64) -> None:
        """These are the pages that searchers see most of, from the next draw on. Another thread may say so."""
        self._told = np.unique(shown)

    def follow(self, hub_pages: I64, announced: I64) -> None:
        """These pages are hubs, and these new ones were announced of late, as far as is known."""
        self._hub_pages, self._announced = hub_pages, announced

    def owe(self, fetches: int) -> None:
        """So many fetches were made: each brings a draw with probability `share`."""
        if fetches > 0 and self.share > 0:
            self._owed = min(self._owed + int(self.rng.binomial(fetches, self.share)), MOST_WAITING)
            for name, owed in self._owed_aside.items():
                more = int(self.rng.binomial(fetches, SIDE_SHARE * self.share))
                self._owed_aside[name] = min(owed + more, MOST_WAITING)

    def order(self, draws: int) -> None:
        """So many draws of pages are wanted at once."""
        self._owed += draws

    @property
    def is_idle(self) -> bool:
        """Is nothing owed, and nothing waiting?"""
        return not self._owed and not any(self._owed_aside.values()) and not self.waiting

    def draw(
        self, state: Bytes, kind: Bytes, now: float, admits: Callable[[int, float], bool] | None = None
    ) -> list[Ticket]:
        """Draw what is owed, and say what was drawn; in place of a page that already waits another is drawn.

        What is drawn beside those that measure must be admitted, too: it may all be of one host.
        """
        drawn: list[Ticket] = []
        for stuck in [row for row, ticket in self.waiting.items() if now - ticket.drawn_at > PATIENCE_S]:
            del self.waiting[stuck]
            self.given_up += 1
        if self._told is not None:
            self._shown, self._told, self._populations = self._told, None, {}
        while self._owed and len(self.waiting) < MOST_WAITING:
            self._owed -= 1
            self._count(state, kind)
            waiting = Counter(ticket.stratum for ticket in self.waiting.values())
            strata = [name for name, population in self._populations.items() if population > waiting[name]]
            if not strata:
                self._owed = 0
                break
            name = strata[int(self.rng.integers(len(strata)))]
            for _ in range(_REDRAWS):
                row = self._find(state, kind, name)
                if row is not None and row not in self.waiting:
                    population = self._populations[name]
                    self.waiting[row] = Ticket(row, name, population, 1.0 / (len(strata) * population), now)
                    drawn.append(self.waiting[row])
                    break
        for name, owed in self._owed_aside.items():
            if owed and len(self.waiting) < MOST_WAITING:
                self._owed_aside[name] = 0
                aside = self._draw_aside(name, owed, state, kind, now)
                aside = [ticket for ticket in aside if admits is None or admits(ticket.row, now)]
                self.waiting |= {ticket.row: ticket for ticket in aside}
                drawn += aside
        return drawn

    def _draw_aside(self, name: str, owed: int, state: Bytes, kind: Bytes, now: float) -> list[Ticket]:
        if name == HUBS:
            hub = kind != UrlKind.PAGE
            hub[self._hub_pages[self._hub_pages < len(hub)]] = True
            rows = np.flatnonzero((state == UrlState.FETCHED) & hub)
        else:
            rows = self._announced[self._announced < len(state)]
            rows = rows[state[rows] == UrlState.NEW]
        wanted = min(owed, len(rows), MOST_WAITING - len(self.waiting))
        chosen = self.rng.choice(rows, wanted, replace=False).tolist() if wanted > 0 else []
        return [Ticket(row, name, len(rows), 1.0 / len(rows), now) for row in chosen if row not in self.waiting]

    def _count(self, state: Bytes, kind: Bytes) -> None:
        began = time.perf_counter()
        if self._populations and began - self._counted_at < _COUNT_UPKEEP * self._count_took_s:
            return
        page = kind == UrlKind.PAGE
        counts = {name: int(np.count_nonzero((state == which) & page)) for name, which in STRATA.items()}
        counts["shown"] = len(self._shown_now(state, kind))
        counts["fetched"] -= counts["shown"]
        self._populations = counts
        self._counted_at = time.perf_counter()
        self._count_took_s = self._counted_at - began

    def _shown_now(self, state: Bytes, kind: Bytes) -> I64:
        rows: I64 = self._shown[self._shown < len(state)]
        fits = (state[rows] == UrlState.FETCHED) & (kind[rows] == UrlKind.PAGE)
        return rows[np.flatnonzero(fits)]

    def _find(self, state: Bytes, kind: Bytes, stratum: str) -> int | None:
        """A page of this stratum, each with equal chance: the first that fits of many tried at random."""
        if stratum == "shown":
            rows = self._shown_now(state, kind)
            return int(self.rng.choice(rows)) if len(rows) else None
        wanted = STRATA[stratum]
        for _ in range(_ROUNDS):
            rows = self.rng.integers(0, len(state), _TRIES)
            fits = (state[rows] == wanted) & (kind[rows] == UrlKind.PAGE) & ~np.isin(rows, self._shown)
            if fits.any():
                return int(rows[int(np.argmax(fits))])
        rows = np.flatnonzero((state == wanted) & (kind == UrlKind.PAGE))
        rows = rows[~np.isin(rows, self._shown)]
        return int(self.rng.choice(rows)) if len(rows) else None
