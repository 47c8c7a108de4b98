"""The calibration watch of a holistic crawl: what fetches were expected to gain beside what the crawl saw them gain.

As the product's does live: clicks of new pages, measured gains of refreshes, new pages found by visits to hubs. A kind
that is off by more than chance explains is corrected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bowerbird.appraise.budget.click_pages import lower_from_floor
from bowerbird.appraise.budget.watch import (
    QUOTA,
    as_learnt,
    correct_kind,
    expected_by,
    expected_changes,
    put_by_bid,
    spread_evenly,
)
from bowerbird.appraise.hubs.discovery import mean_pattern
from bowerbird.appraise.hubs.studied import linked_from
from bowerbird.appraise.refresh.refresh_gain import loss_by
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_studies import Studies, take_snapshot
from bowerbird.lab.holistic_world import F64, I64
from bowerbird.model.bid import Shape
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubStudy
from bowerbird.model.refresh_study import RefreshStudy


@dataclass(frozen=True, slots=True)
class _Decision:
    row: int
    at_s: float
    expected: float  # clicks of a new page in `horizon_s`, share of Q, or new pages found; without a factor
    prices: float  # that it bid
    decay_per_s: float = 0.0
    horizon_s: float = math.inf
    chance: float = 0.0  # that a page has changed
    hub: int = -1  # row of the one that announced it
    hub_clicks: float = math.nan  # of one of its pages, as the study had it


class Watcher:
    """Remembers what was expected, by kind."""

    def __init__(self) -> None:
        self.new: list[_Decision] = []
        self.announced: list[_Decision] = []
        self.refresh: list[_Decision] = []
        self.hub: list[_Decision] = []
        self.factors = Factors()

    def note(
        self,
        crawl: HolisticCrawl,
        studies: Studies,
        rows: I64,
        kinds: I64,
        units: F64,
        shape: I64,
        unit: float,
        horizon_s: float,
    ) -> None:
        """Fetches that were decided now, with their bids in units, how those move, and what a unit is in clicks."""
        now, factors, hubs = crawl.now, self.factors, studies.hubs
        by_hub = hubs.announced(rows, linked_from(take_snapshot(crawl, studies), rows))
        fades = shape == Shape.DECAY
        # until clicks have told what hubs' pages gain, others bid by their links
        by_hub[~fades & (not hubs.by_clicks)] = -1
        clicks = np.where(fades, units, lower_from_floor(units)) * unit
        bids = (units / max(float(units.min()), 1e-300)).tolist()
        for row, kind, gain, place, bid in zip(
            rows.tolist(), kinds.tolist(), clicks.tolist(), by_hub.tolist(), bids, strict=True
        ):
            age = now - float(crawl.columns.last_fetched[row])
            if kind == Kind.NEW and place >= 0:
                fade, hub = float(hubs.hubs.decay_per_s[place]), int(hubs.hubs.row[place])
                then = float(hubs.hubs.profit[place]) if hubs.by_clicks else math.nan
                expected = gain / factors.announced
                self.announced.append(_Decision(row, now, expected, bid, fade, horizon_s, hub=hub, hub_clicks=then))
            elif kind == Kind.NEW:
                self.new.append(_Decision(row, now, gain / factors.new, bid, 0.0, horizon_s))
            elif kind == Kind.REFRESH:
                self._expect(self.refresh, row, now, bid, *_regained(studies.refresh, row, age))
            elif crawl.columns.fetches[row] > 0:
                self._expect(self.hub, row, now, bid, _found(hubs, row, now - age, now))

    @staticmethod
    def _expect(into: list[_Decision], row: int, now: float, bid: float, expected: float, chance: float = 0.0) -> None:
        if expected >= 0.0:
            into.append(_Decision(row, now, expected, bid, chance=chance))

    def look(self, crawl: HolisticCrawl, studies: Studies) -> Factors:
        """What came of them, and the factors that follow for what these studies expect."""
        gained = dict(zip(zip(crawl.visits.row, crawl.visits.at_s, strict=True), crawl.visits.gain, strict=True))
        hubs = crawl.hub_visits
        found = dict(zip(zip(hubs.row, hubs.at_s, strict=True), hubs.found, strict=True))
        self.factors = Factors(
            new=self._clicks(self.new, crawl),
            announced=self._clicks(self.announced, crawl, studies.hubs),
            refresh=self._seen("refresh", self.refresh, gained),
            hub=self._seen("hub", self.hub, {key: float(many) for key, many in found.items()}),
        )
        return self.factors

    @staticmethod
    def _clicks(decisions: list[_Decision], crawl: HolisticCrawl, hubs: HubStudy | None = None) -> float:
        heard = [one for one in decisions if one.at_s < crawl.heard_until_s]
        some = [heard[place] for place in spread_evenly(len(heard))]
        rows = np.array([one.row for one in some], dtype=np.int64)
        decay = np.array([one.decay_per_s for one in some])
        clicks, horizon = np.array([one.expected for one in some]), np.array([one.horizon_s for one in some])
        at = np.array([one.at_s for one in some])
        expected = expected_by(clicks, decay, crawl.heard_until_s - at, horizon)
        if hubs is not None and hubs.by_clicks and len(hubs.hubs):
            place = hubs.place(np.array([one.hub for one in some], dtype=np.int64))
            told = np.where(place >= 0, hubs.hubs.profit[place].astype(np.float64), np.nan)
            expected *= as_learnt(np.array([one.hub_clicks for one in some]), told, at)
        return correct_kind(expected, crawl.clicks[rows], expected, np.array([one.prices for one in some]))

    @staticmethod
    def _seen(name: str, decisions: list[_Decision], seen: dict[tuple[int, float], float]) -> float:
        some = [one for one in decisions[-QUOTA:] if (one.row, one.at_s) in seen]
        expected = np.array([one.expected for one in some])
        realised = np.array([seen[one.row, one.at_s] for one in some])
        events = np.array([one.chance for one in some]) if name == "refresh" else expected
        prices = np.array([one.prices for one in some])
        return correct_kind(*put_by_bid(expected, realised, prices), events, prices)


def _regained(study: RefreshStudy, row: int, age_s: float) -> tuple[float, float]:
    """The share of all clicks that a refresh regains, and how likely the page has changed."""
    if study.stale_loss is None or study.most_changes is None or row >= study.count:
        return math.nan, math.nan
    changes, age = study.changes_per_s[row : row + 1].astype(np.float64), np.array([age_s])
    lost = study.stale_loss[row] * loss_by(changes * age, study.most_changes[row])
    return float(lost[0]), float(expected_changes(changes, age)[0])


def _found(study: HubStudy, row: int, since_s: float, now_s: float) -> float:
    place = int(study.place(np.array([row]))[0])
    if place < 0:
        return math.nan
    hours = float(mean_pattern(study.pattern, np.array([since_s]), now_s)[0])
    return float(study.hubs.rate_per_s[place]) * hours * (now_s - since_s)
