"""New pages and refreshes bid in units of clicks: no more than they gain, however long they have waited."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.appraise.budget.watch import expected_changes
from bowerbird.appraise.frontier.studied import BASES, Studied, explain_clicks
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.refresh.adaptive import AdaptiveInterval
from bowerbird.appraise.refresh.refresh_gain import FEWEST_CHANGES, changes_told, loss_by, refresh_index
from bowerbird.appraise.refresh.studied import StudiedRefresh
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import Snapshot, weigh_hosts
from bowerbird.model.url_state import UrlState

F64 = npt.NDArray[np.float64]
BOOL = npt.NDArray[np.bool_]
MOST_TIMES = 10.0  # the longest interval, after which anything bids the price
HAIR, MOST_HAIRS = 1.2e-7, 1000.0  # of the price: the least that single precision can tell, and how many at most
UNSEEN_TIMES = 20.0  # intervals, after which what is gone or has moved is looked at with any budget
FLOOR = 1e-3  # a new page worth less than a unit bids 1 and at most this share more
LEAST = 1e-12  # units: pages that gain less are alike


class ClickFrontier(Studied):
    """Bid expected clicks in units; before there is a study, as in-degree does."""

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids of at least 1: what gains less is fetched when there is nothing better."""
        study = self._study(snapshot)
        if study is None:
            return super().appraise(snapshot, rows)
        units, source = study.expected_clicks(rows, snapshot.pages.host[rows])
        return Bids.build(raise_to_floor(units), terms={"units": units, "basis": BASES[source]})

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """Expected clicks in units: how they were come by, and who passed on how much of the score."""
        study = self._study(snapshot)
        if study is None:
            return super().explain(snapshot, row)
        expected = explain_clicks(snapshot, study, row)
        assert isinstance(expected.value, float)
        note = "clicks over the time that gains count for, in units"
        bid = float(raise_to_floor(np.array([expected.value]))[0])
        if expected.value < 1.0:
            note = "it gains less than a unit: 1 and a little more, so that it is fetched when there is nothing better"
        return Term("gain of a new page", bid, note, (expected,))


def raise_to_floor(units: F64) -> F64:
    """At least 1, and in the same order: the less a page gains, the nearer to 1, by its logarithm.

    Bids are kept in single precision, in which shares of a thousandth would be alike.

    >>> raise_to_floor(np.array([0.0, 1e-6, 0.1, 3.0])).round(6).tolist()
    [1.0, 1.0005, 1.000917, 3.0]
    """
    share = 1.0 + np.log10(np.clip(units, LEAST, 1.0)) / -np.log10(LEAST)
    return np.asarray(np.maximum(units, 1.0 + FLOOR * share), np.float64)


def lower_from_floor(bids: F64) -> F64:
    """What pages gain, in units, that bid so much.

    >>> lower_from_floor(raise_to_floor(np.array([1e-6, 0.1, 3.0]))).round(9).tolist()
    [1e-06, 0.1, 3.0]
    """
    share = np.clip((np.asarray(bids, np.float64) - 1.0) / FLOOR, 0.0, 1.0)
    return np.where(bids <= 1.0 + FLOOR, np.where(share > 0, LEAST ** (1.0 - share), 0.0), bids)


class ClickRefresh(StudiedRefresh):
    """Bid what a refresh gains in units within the horizon, by the last study; what is overdue bids no more for that.

    A page can lose no more than it has at stake: the area index is cut off there. One that nobody has looked at for the
    longest time bids 1 at least.
    """

    escalates = False

    def __init__(self, name: str, fallback: AdaptiveInterval | None = None, horizon_s: float = math.inf) -> None:
        super().__init__(name, fallback)
        self.horizon_s = horizon_s

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of the study, cut off at what a page can lose; at least 1 from the longest interval on.

        The term `bound` says which bids go by their age, not by what a refresh gains, and `gain` what that is.
        """
        bids = super().appraise(snapshot, rows)
        study = self._study(snapshot)
        if study is None:
            return bids
        value = values_at(bids, snapshot.now)
        worth = np.ones(len(rows))  # what bids by its age is due, and no more
        area = np.flatnonzero(bids.shape == Shape.AREA)
        rate = np.maximum(bids.rate[area].astype(np.float64), 1e-30)
        told = rate * np.maximum(snapshot.now - bids.since[area], 0.0)
        changes = changes_told(told, rate * np.maximum(snapshot.now - snapshot.pages.last_fetched[rows[area]], 0.0))
        most = self._most(study, rows[area])
        worth[area] = bids.amplitude[area] * refresh_index(changes, rate * self.horizon_s, most)
        over = value > worth * (1.0 + 1e-6)
        grows = np.zeros(len(rows), np.bool_)
        grows[area] = changes < most
        late = over & grows  # it waits for longer than gains count
        bids.amplitude[late] *= worth[late] / value[late]
        over &= ~grows
        bids.amplitude[over], bids.shape[over] = worth[over], int(Shape.CONSTANT)
        age = snapshot.now - snapshot.pages.last_fetched[rows]
        here = snapshot.pages.state[rows] == UrlState.FETCHED
        longest = np.where(here, study.longest_s, UNSEEN_TIMES * bids.terms["interval_s"].astype(np.float64))
        last = snapshot.pages.last_fetched[rows]
        by_age = np.ones(len(rows), np.bool_)
        by_age[area] = False
        gain = np.minimum(value, worth)
        by_age |= explore(bids, gain, age, longest, last, price_in_line(snapshot, rows))
        by_age |= hold_early(bids, age, self.fallback.min_s, last)
        bids.terms["bound"], bids.terms["gain"] = by_age, gain
        return bids

    def expect(self, snapshot: Snapshot, rows: Rows) -> dict[str, npt.NDArray[np.generic]]:
        """How likely pages have changed, and what share of Q refreshes regain; NaN where the study does not know."""
        chance, gain = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        study = self._study(snapshot)
        if study is not None and study.stale_loss is not None:
            known = np.flatnonzero((rows < study.count) & (snapshot.pages.state[rows] == UrlState.FETCHED))
            which = rows[known]
            changes = study.changes_per_s[which].astype(np.float64)
            age_s = self._read(snapshot, study, which).age_s
            chance[known] = expected_changes(changes, age_s)
            by_age = changes * np.maximum(snapshot.now - snapshot.pages.last_fetched[which], 0.0)
            missed = changes_told(changes * age_s, by_age)
            gain[known] = study.stale_loss[which] * loss_by(missed, self._most(study, which))
        return {"expected_gain": gain, "expected_chance": chance}

    @staticmethod
    def _most(study: RefreshStudy, rows: Rows) -> F64:
        """How many missed changes take all that pages have at stake."""
        if study.most_changes is None:
            return np.full(len(rows), FEWEST_CHANGES)
        return study.most_changes[rows].astype(np.float64)

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """As the study has it, below the bid where that is bounded."""
        tree = super().explain(snapshot, row)
        return bound_tree(tree, self.appraise(snapshot, np.array([row])), snapshot.now)


def explore(bids: Bids, value: F64, age_s: F64, longest_s: F64, last_fetched: F64, price: F64) -> BOOL:
    """What was not looked at for the longest time bids its age, in such times; the price from ten of them on.

    Which these are. The price is by item: what it has to bid for its place in line, which its host's weight lowers.

    So it reaches whatever its turn costs, be that the price or what its host's other URLs bid, after as many times the
    longest interval: with any budget a small part of it goes round, the smaller the shorter the budget is. After
    `MOST_TIMES` it bids the price, for where the last revisit gains next to nothing that is any number of units: hairs
    more for each longest interval, so that of many the oldest goes first, and they do not drive the price up.
    """
    times = age_s / np.maximum(longest_s, 1e-9)
    idle = (times >= 1.0) & (value < times)
    bids.amplitude[idle], bids.shape[idle] = 1.0, int(Shape.LINEAR)
    bids.rate[idle], bids.since[idle] = 1.0 / np.maximum(longest_s[idle], 1e-9), last_fetched[idle]
    due = (times >= MOST_TIMES) & (np.maximum(value, times) < price)
    # bids are kept in single precision: none is rounded to just below the price
    hairs = 1.0 + np.floor(np.minimum(times[due] - MOST_TIMES, MOST_HAIRS))
    bids.amplitude[due], bids.shape[due] = price[due] * (1.0 + HAIR * hairs), int(Shape.CONSTANT)
    return np.asarray(idle | due)


def price_in_line(snapshot: Snapshot, rows: Rows) -> F64:
    """What bids of these rows have to be for the place in line of a bid that is the price, on a host of full weight."""
    weight = weigh_hosts(snapshot.hosts.trap_score[snapshot.pages.host[rows]]).astype(np.float64)
    # the line multiplies in single precision: none comes to lie just below the price
    return np.asarray(np.where(weight < 1.0, snapshot.price * (1.0 + 2.0 * HAIR) / weight, snapshot.price))


def hold_early(bids: Bids, age_s: F64, shortest_s: float, last_fetched: F64) -> BOOL:
    """Nothing is due before the shortest interval, whatever it gains: until then it bids by its age. Which these are.

    It grows to what it will bid then, 1 at most: a bid stands until it is made anew, and one that grew to 1 for all
    would have every page fetched again as soon as the shortest interval has passed.
    """
    is_early = np.asarray(age_s < shortest_s)
    early = np.flatnonzero(is_early)
    if not len(early):
        return is_early
    then = values_at(bids.take(early), last_fetched[early] + shortest_s)
    bids.amplitude[early], bids.shape[early] = np.minimum(then, 1.0), int(Shape.LINEAR)
    bids.rate[early], bids.since[early] = 1.0 / max(shortest_s, 1e-9), last_fetched[early]
    return is_early


def bound_tree(tree: Term, bids: Bids, now: float) -> Term:
    """The tree of a bid; where a bound has set the bid, that is said above it."""
    value = float(values_at(bids, now)[0])
    if isinstance(tree.value, float) and abs(tree.value - value) <= 1e-3 * max(value, 1e-12):
        return tree
    note = "it gains no more for waiting longer" if value < float(tree.value) else "it has waited long enough"
    if bids.shape[0] == Shape.LINEAR:
        early = bids.rate[0] * (now - bids.since[0]) < 1.0
        note = (
            "not before the shortest interval" if early else "it has waited long enough: its age in longest intervals"
        )
    return Term("bound", value, note, (tree,))
