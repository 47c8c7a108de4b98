"""Fetches drawn by lot. A small share of the budget goes to known pages chosen by chance, with known probability.

What the auction chooses says little about what it leaves: a sample whose probabilities are known does. The draws go in
equal parts to the pages that searchers see most of, to the other pages that were fetched, and to the frontier; within
each of these strata every page has the same chance. A quarter as many fetches go to hubs, and a quarter to new pages
that hubs announced of late; these may all be of one host, so only hosts that such lots have left alone for a while take
part, and every URL of theirs has the same chance. So whatever the price, nothing is given up, and what news is worth is
learnt also by a crawl that thinks nothing of it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import orjson

from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.model.worth import COUNTED_IN

Bytes = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]
STRATA = {"shown": UrlState.FETCHED, "fetched": UrlState.FETCHED, "frontier": UrlState.NEW}
HUBS, ANNOUNCED = "hubs", "announced"  # lots of their own, of which no quality is measured
SIDE_SHARE = 0.25  # of the draws, as many more for each of them
AT_ONCE = 4  # of each of them: each looks at all that might be drawn, and fetches wait meanwhile
RETRY_S = 5.0  # after a draw for which there was nobody: looking for them goes over all URLs
MOST_OWED = 64
MOST_WAITING = 1024  # of which most are of hosts that cannot be asked, if any are
PATIENCE_S = 600.0  # a page whose host cannot be asked for so long makes room for another,
LEAST_PATIENCE_S = 60.0  # and where all places are taken, the one that has waited longest after so long
_TRIES = 256
_ROUNDS = 16
_REDRAWS = 20
_COUNT_UPKEEP = 50  # counting takes at most one part in so many of the time


@dataclass(frozen=True, slots=True)
class Ticket:
    """A page that was drawn: it is fetched as soon as its host allows, whatever it bids."""

    row: int
    stratum: str
    population: int  # pages of the stratum that could be drawn
    propensity: float  # the chance of this page in that draw
    drawn_at: float

    def terms(self, bid_terms: str = "{}") -> str:
        """What the decision rests on, for the journal; `bid_terms` say what it bid all the same, and in which unit."""
        values = {"stratum": self.stratum, "population": self.population, "propensity": self.propensity}
        told = orjson.loads(bid_terms)
        counted = {name: told[name] for name in COUNTED_IN if name in told}
        return orjson.dumps({"by": "lot", **values, **counted}).decode()


class Turns(Protocol):
    """Which URLs the lots for hubs and news may have."""

    def free(self, rows: I64, now: float) -> BOOL:
        """Which of these may be drawn now."""

    def take(self, row: int, now: float) -> None:
        """This one was drawn."""


class Lottery:
    """Draws pages as fetches are made, and keeps those that wait for their hosts."""

    def __init__(self, share: float, rng: np.random.Generator | None = None) -> None:
        self.share = share
        self.rng = rng if rng is not None else np.random.default_rng()
        self.waiting: dict[int, Ticket] = {}
        self.given_up = 0
        self._owed = 0
        self._owed_aside = dict.fromkeys((HUBS, ANNOUNCED), 0)
        self._in_vain_at = dict.fromkeys((HUBS, ANNOUNCED), -math.inf)
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
            self._owed = min(self._owed + int(self.rng.binomial(fetches, self.share)), MOST_OWED)
            for name, owed in self._owed_aside.items():
                more = int(self.rng.binomial(fetches, SIDE_SHARE * self.share))
                self._owed_aside[name] = min(owed + more, MOST_OWED)

    def set_back(self, by_s: float) -> None:
        """The clock was set back: what waits is given up when it would have been."""
        for row, ticket in self.waiting.items():
            self.waiting[row] = replace(ticket, drawn_at=ticket.drawn_at - by_s)

    def order(self, draws: int) -> None:
        """So many draws of pages are wanted at once."""
        self._owed += draws

    @property
    def is_idle(self) -> bool:
        """Is no draw owed of those that measure, and nothing waiting?"""
        return not self._owed and not self.waiting

    def draw(self, state: Bytes, kind: Bytes, now: float, turns: Turns | None = None) -> list[Ticket]:
        """Draw what is owed, and say what was drawn; in place of a page that already waits another is drawn.

        What is drawn beside those that measure waits for its `turns`, and is owed until then.
        """
        drawn: list[Ticket] = []
        self._give_up(now, PATIENCE_S, len(self.waiting))
        if self._told is not None:
            self._shown, self._told, self._populations = self._told, None, {}
        while self._owed and self._has_room(now):
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
        sides = [
            name for name, owed in self._owed_aside.items() if owed and abs(now - self._in_vain_at[name]) >= RETRY_S
        ]
        if len(sides) > 1 and self.rng.random() < 0.5:
            sides.reverse()  # neither always comes first to a host
        for name in sides:
            drawn += self._draw_aside(name, state, kind, now, turns)
        return drawn

    def _draw_aside(self, name: str, state: Bytes, kind: Bytes, now: float, turns: Turns | None) -> list[Ticket]:
        """One after the other, each with equal chance among those that may be drawn then; a few at once."""
        drawn = list[Ticket]()
        if not self._has_room(now):
            return drawn
        rows = self._rows_aside(name, state, kind)
        if not len(rows):
            self._owed_aside[name] = 0
        while self._owed_aside[name] and len(drawn) < AT_ONCE and self._has_room(now):
            free = rows[~np.isin(rows, list(self.waiting))]
            if turns is not None:
                free = free[turns.free(free, now)]
            if not len(free):
                self._in_vain_at[name] = now
                break
            row = int(self.rng.choice(free))
            self.waiting[row] = Ticket(row, name, len(free), 1.0 / len(free), now)
            drawn.append(self.waiting[row])
            self._owed_aside[name] -= 1
            if turns is not None:
                turns.take(row, now)
        return drawn

    def _has_room(self, now: float) -> bool:
        """Can another wait? The one that has waited longest goes, if need be."""
        if len(self.waiting) >= MOST_WAITING:
            self._give_up(now, LEAST_PATIENCE_S, 1)
        return len(self.waiting) < MOST_WAITING

    def _give_up(self, now: float, patience_s: float, most: int) -> None:
        """Of those that have waited for longer so many at most, in the order in which they were drawn."""
        for _ in range(most):
            row, ticket = next(iter(self.waiting.items()))
            if now - ticket.drawn_at <= patience_s:
                break
            del self.waiting[row]
            self.given_up += 1

    def _rows_aside(self, name: str, state: Bytes, kind: Bytes) -> I64:
        if name == HUBS:
            hub = kind != UrlKind.PAGE
            hub[self._hub_pages[self._hub_pages < len(hub)]] = True
            return np.flatnonzero((state == UrlState.FETCHED) & hub)
        news: I64 = self._announced[self._announced < len(state)]
        return news[np.flatnonzero(state[news] == UrlState.NEW)]

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
