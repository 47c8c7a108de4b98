"""Hubs and the new pages that they announce bid in units of clicks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.appraise.budget.click_pages import (
    FLOOR,
    UNSEEN_TIMES,
    bound_tree,
    explore,
    hold_early,
    price_in_line,
    raise_to_floor,
)
from bowerbird.appraise.budget.hub_story import hold_back, tell_visit
from bowerbird.appraise.budget.in_clicks import horizon_of, net_of_pages
from bowerbird.appraise.budget.scales import clicks_known
from bowerbird.appraise.hubs.discovery import mean_pattern
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.hubs.net_value import share_within
from bowerbird.appraise.hubs.studied import F64, Lift, StudiedHubs, half_life_text
from bowerbird.appraise.refresh.studied import span_text
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

MOST_KNOWN = 1000  # hubs, that what is expected of others is told from
FEW_KNOWN = 5.0  # of a kind: so many count as all hubs do


class ClickHubs(StudiedHubs):
    """Bid what a visit gains in units, by the last study, and no more for being overdue.

    A hub that was never visited bids what known ones gain on average that have waited long; a feed or sitemap that was
    visited once as much as a first visit bids at least, by its age in usual intervals: what it announces shows at the
    second one. One that nobody has looked at for the longest time bids 1 at least. A new page that a hub announced bids
    the clicks left of its interest.
    """

    escalates = False

    def __init__(
        self,
        name: str,
        fallback: HubInterval | None = None,
        shortest_s: float = 0.0,
        horizon_s: float = math.inf,
    ) -> None:
        super().__init__(name, fallback)
        self.shortest_s = shortest_s
        self.horizon_s = horizon_s
        self._first: tuple[HubStudy | None, float, dict[int, float]] = (None, 0.0, {})

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Saturating bids since the last visit, at least 1 from the longest interval on.

        The term `bound` says which bids go by their age, not by what a visit gains, and `gain` what that is.
        """
        bids = self._by_gain(snapshot, rows)
        study = self._study(snapshot)
        if study is None:
            return bids
        pages = snapshot.pages
        first = pages.state[rows] == UrlState.NEW
        told = np.zeros(np.count_nonzero(first))
        if first.any():
            gains = self._first_gains(snapshot, study)
            told[:] = [gains.get(kind, 0.0) for kind in pages.kind[rows[first]].tolist()]
            bids.amplitude[first] = np.maximum(self._least_first(snapshot), told)
        grows = bids.shape == Shape.SATURATING
        value = values_at(bids, snapshot.now)
        over = ~first & (bids.shape == Shape.LINEAR) & (value > 1.0)
        bids.amplitude[over], bids.shape[over] = 1.0, int(Shape.CONSTANT)
        value[over] = 1.0
        gain = value.copy()
        gain[first] = told
        last = pages.last_fetched[rows]
        age = np.where(first, 0.0, snapshot.now - last)
        second = self._second_visits(snapshot, rows, bids, value)
        unseen_s = UNSEEN_TIMES * self.fallback.gone_interval_s
        longest = np.where(pages.state[rows] == UrlState.FETCHED, study.longest_s, unseen_s)
        bound = ~grows | second | explore(bids, value, age, longest, last, price_in_line(snapshot, rows))
        bids.terms["bound"] = bound | hold_early(bids, np.where(first, np.inf, age), self.shortest_s, last)
        bids.terms["gain"] = gain
        return bids

    def _by_gain(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of the study, whatever bounds say: by the hours since the last visit, net of the price of pages."""
        bids = super().appraise(snapshot, rows)
        study = self._study(snapshot)
        if study is not None:
            grows = bids.shape == Shape.SATURATING
            bids.amplitude[grows] *= mean_pattern(study.pattern, bids.since[grows], snapshot.now)  # news has its hours
            self._net(snapshot, study, rows, bids)
        return bids

    def _second_visits(self, snapshot: Snapshot, rows: Rows, bids: Bids, value: F64) -> npt.NDArray[np.bool_]:
        """Which were visited once and bid by that: first visits' least bid for each usual interval that has passed.

        `value` is what the bids are worth now, before and after.
        """
        pages, usual_s = snapshot.pages, max(self.fallback.interval_s, 1e-9)
        once: npt.NDArray[np.bool_] = (pages.kind[rows] != UrlKind.PAGE) & (pages.fetches[rows] < 2)
        once &= pages.state[rows] == UrlState.FETCHED
        if not once.any():
            return once
        last = pages.last_fetched[rows]
        least = self._least_first(snapshot)
        by_age = least * np.maximum(snapshot.now - last, 0.0) / usual_s
        once &= value < by_age
        bids.amplitude[once], bids.shape[once] = least, int(Shape.LINEAR)
        bids.rate[once], bids.since[once] = 1.0 / usual_s, last[once]
        value[once] = by_age[once]
        return once

    def expect(self, snapshot: Snapshot, rows: Rows) -> dict[str, npt.NDArray[np.generic]]:
        """How many new pages visits find; NaN where the study does not know the hub."""
        study, place = self._study(snapshot), self._place(snapshot, rows)
        if study is None or not len(study.hubs):
            return {"expected_found": np.full(len(rows), np.nan)}
        age = np.maximum(snapshot.now - snapshot.pages.last_fetched[rows], 0.0)
        rate = study.hubs.rate_per_s.astype(np.float64)
        hours = mean_pattern(study.pattern, snapshot.pages.last_fetched[rows], snapshot.now)
        return {"expected_found": np.where(place >= 0, rate[place] * hours * age, np.nan)}

    def _net(self, snapshot: Snapshot, study: HubStudy, rows: Rows, bids: Bids) -> None:
        """[BEYOND] lam·P/mu·g(mu·min(tau, tau*)): a visit is worth no more than what its pages gain above the price.

        Nor more than what they gain within the horizon.
        """
        place = self._place(snapshot, rows)
        mine = np.flatnonzero((place >= 0) & (bids.shape == Shape.SATURATING) & (bids.amplitude > 0))
        if not len(mine) or (snapshot.price <= 1.0 and not math.isfinite(horizon_of(study, self.horizon_s))):
            return
        hubs, at = study.hubs, place[mine]
        profit, decay = hubs.profit[at].astype(np.float64), hubs.decay_per_s[at].astype(np.float64)
        amplitude = bids.amplitude[mine].astype(np.float64)
        rate = amplitude * decay / np.maximum(profit, 1e-30)
        age = np.maximum(snapshot.now - bids.since[mine], 0.0)
        net = self._net_index(snapshot, study, (rate, profit, decay), age)
        gross = values_at(bids.take(mine), snapshot.now)
        bids.amplitude[mine] *= np.where(gross > 0, net / np.maximum(gross, 1e-30), 1.0).clip(0.0, 1.0)

    def _net_index(self, snapshot: Snapshot, study: HubStudy, hubs: tuple[F64, F64, F64], age_s: F64) -> F64:
        """The index of visits to hubs of these rates, profits and decays, as this study and this price have it."""
        return net_of_pages(hubs, study.page_spread, snapshot.price, age_s, horizon_of(study, self.horizon_s))

    def _least_first(self, snapshot: Snapshot) -> float:
        """What a first visit bids at least: until hubs are known, as many average new pages as units after that.

        What first visits find of news shows at the second ones only, so until then known hubs seem to gain nothing.
        """
        least = self.fallback.FIRST_VISIT
        if snapshot.study is None or self._hubs_known(snapshot):
            return least
        return least * max(snapshot.study.default_worth, 1.0)

    def _hubs_known(self, snapshot: Snapshot) -> bool:
        """Whether clicks are known, and a hub has been visited twice."""
        study = self._study(snapshot)
        seen_twice = study is not None and len(study.hubs) > 0 and int(study.hubs.visits.max()) > 1
        return bool(seen_twice) and clicks_known(snapshot.refresh_study)

    def _first_gains(self, snapshot: Snapshot, study: HubStudy) -> dict[int, float]:
        """By kind of URL, what a first visit gains: as one to known hubs would on average that have waited long.

        Corrected, and by its cost, as known hubs are. Where few of a kind are known, more by what others are.
        """
        if self._first[0] is study and self._first[1] == snapshot.price:
            return self._first[2]
        hubs = study.hubs
        some = np.flatnonzero((hubs.amplitude > 0) & (hubs.profit > 0) & (hubs.drawn_per_s > 0))
        some = some[:: -(-len(some) // MOST_KNOWN) or 1]
        names = ("rate_per_s", "drawn_per_s", "profit", "decay_per_s", "amplitude")
        rate, drawn, profit, decay, amplitude = (getattr(hubs, name)[some].astype(np.float64) for name in names)
        found = rate * (amplitude * decay / profit) / drawn  # bids go by a draw
        gains = self._net_index(snapshot, study, (found, profit, decay), np.full(len(some), np.inf))
        mean = float(gains.mean()) if len(gains) else 0.0
        out = {}
        for url_kind, hub_kind in ((UrlKind.FEED, HubKind.FEED), (UrlKind.SITEMAP, HubKind.SITEMAP)):
            alike = gains[hubs.kind[some] == hub_kind]
            out[int(url_kind)] = (float(alike.sum()) + FEW_KNOWN * mean) / (len(alike) + FEW_KNOWN)
        self._first = (study, snapshot.price, out)
        return out

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """What a visit gains as terms that multiply to it, below the bid where that is bounded."""
        one = np.array([row])
        bids, study, place = self.appraise(snapshot, one), self._study(snapshot), int(self._place(snapshot, one)[0])
        if study is not None and snapshot.pages.state[row] == UrlState.NEW:
            note = "what a visit to known hubs of its kind gains on average, net of the price of its pages; 3 at least"
            if not self._hubs_known(snapshot):
                note += ", and no less than 3 average new pages, for no click is known yet, or what no hub announces"
            return Term("first visit of a hub", float(bids.amplitude[0]), note)
        if study is None or place < 0:
            return bound_tree(super().explain(snapshot, row), bids, snapshot.now)
        tree = tell_visit(snapshot, study, place, self._by_gain(snapshot, one))
        if snapshot.now - float(snapshot.pages.last_fetched[row]) < self.shortest_s:
            return hold_back(tree, bids, self.shortest_s, snapshot.now)
        if self._second_visits(snapshot, one, bids.take(np.zeros(1, np.int64)), np.full(1, tree.value, np.float64))[0]:
            note = "what it announces shows at its second visit: what a first visit bids at least, by usual intervals"
            return Term("second visit of a hub", float(values_at(bids, snapshot.now)[0]), note, (tree,))
        return bound_tree(tree, bids, snapshot.now)

    def _worth_found(self, study: HubStudy, profit: F64, decay_per_s: F64) -> F64:
        """What pages gain within the horizon when they are found, in units: it takes the place of a factor."""
        return profit * share_within(decay_per_s, horizon_of(study, self.horizon_s))

    def freshen(self, snapshot: Snapshot, rows: Rows, bids: Bids) -> Bids:
        """[ECHO13] P·exp(-mu·age): the clicks left of a new page.

        Until clicks have told what news gains, only where that is more than its links promise.
        """
        lift = self.lift(snapshot, rows)
        if lift is None:
            return bids
        left = units_left(lift, snapshot.now)
        study = self._study(snapshot)
        fresh = left > 1.0 + FLOOR  # no fading bid is below that of a page that gains less
        if study is not None and study.by_clicks:  # news is not what its links promise, but what news is
            bids.amplitude[lift.place] = raise_to_floor(left)
        else:
            fresh &= (left > bids.amplitude[lift.place]) & (bids.shape[lift.place] == Shape.CONSTANT)
        place = lift.place[fresh]
        bids.amplitude[place] = lift.factor[fresh]
        bids.rate[place] = lift.decay_per_s[fresh]
        bids.since[place] = lift.since[fresh]
        bids.shape[place] = Shape.DECAY
        return bids

    def explain_new(self, snapshot: Snapshot, row: int, tree: Term) -> Term:
        """The bid of a new page as `freshen` makes it, beside what its links promise."""
        one = np.array([row])
        study, lift = self._study(snapshot), self.lift(snapshot, one)
        if study is None or lift is None or not isinstance(tree.value, float):
            return tree
        hub, gain, decay = int(lift.hub[0]), float(lift.factor[0]), float(lift.decay_per_s[0])
        age = max(snapshot.now - float(lift.since[0]), 0.0)
        left = math.exp(-decay * age)
        own = Term(
            "own factor",
            float(study.factors(one, lift.hub)[0]),
            "by its place in the list, the hubs that show it, its URL and the words asked for",
        )
        note = "clicks of a page of this hub, those that count, in units, times its own factor"
        children = (
            Term("announced by", gain, note, (own,), page=int(study.hubs.row[hub])),
            Term("interest left", left, f"found {span_text(age)} ago; half-life {half_life_text(decay)}"),
        )
        units = gain * left
        if not study.by_clicks and units <= max(tree.value, 1.0 + FLOOR):
            old = Term("announced by a hub", units, "no more than its links promise", children)
            return Term(tree.name, tree.value, tree.note, (*tree.children, old))
        note = "a hub announced it: more than its links promise, fading with the interest in it"
        if study.by_clicks:
            note = "a hub announced it: what is left of the interest in it, whatever its links promise"
            links = "not in its bid: clicks have told what pages that hubs announce gain"
            tree = Term("as its links promise", tree.value, links, tree.children)
        if units < 1.0:
            note += (
                "; it gains less than a unit: 1 and a little more, so that it is fetched when there is nothing better"
            )
        return Term("gain of an announced page", float(raise_to_floor(np.array([units]))[0]), note, (*children, tree))


def units_left(lift: Lift, now: float) -> F64:
    """What new pages that hubs announced are still to gain, in units."""
    return np.asarray(lift.factor * np.exp(-lift.decay_per_s * np.maximum(now - lift.since, 0.0)), np.float64)
