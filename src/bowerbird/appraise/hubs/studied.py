"""Bids of hubs by the last study of them, and what the hub that announced a new page adds to that page's bid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.appraiser import Rows
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.refresh.studied import STUDY_PRICE, span_text
from bowerbird.model.bid import Bid, Bids, Shape, Term
from bowerbird.model.hub_study import HubKind, HubStudy
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlKind, UrlState

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
BOOL = npt.NDArray[np.bool_]
DAY_S = 86400.0
LARGEST_LIFT = 3.0  # of a new page's bid: so a hub waits 4 times its interval at most for pages that bid 1 before
MOST_HOPS = 32
NO_NEWS_CLICKED = "no click on a page that a hub announced is known yet"
BASES = np.array(["hub-interval, until a study", "study"], dtype=object)


@dataclass(frozen=True, slots=True)
class Lift:
    """New pages that a hub announced: their places among the rows asked for, their hubs, and how their bids fade."""

    place: I64
    hub: I64
    factor: F64  # on the bid of the frontier when the page is found
    decay_per_s: F64
    since: F64


class StudiedHubs:
    """Bid what a visit to a hub gains in prices, by the last study; before there is one, as hub-interval does.

    Hubs found since the study, and those that are gone, bid as hub-interval does too. A hub that is overdue bids no
    less than age/interval: new pages that bid more than its visit can ever gain do not starve it.
    """

    escalates = True  # what is overdue bids more

    def __init__(self, name: str, fallback: HubInterval | None = None) -> None:
        self.name = name
        self.fallback = fallback or HubInterval()

    # -- hubs

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Saturating bids since the last visit; those whose interval is bounded are linear."""
        plain = self.fallback.appraise(snapshot, rows)
        interval = plain.terms["hub_interval_s"].astype(np.float64)
        place = self._place(snapshot, rows)
        mine = np.flatnonzero(place >= 0)
        if len(mine):
            study = self._study(snapshot)
            assert study is not None
            hubs, at = study.hubs, place[mine]
            age = np.maximum(snapshot.now - snapshot.pages.last_fetched[rows[mine]], 0.0)
            plain.amplitude[mine] = hubs.amplitude[at]
            plain.rate[mine] = hubs.bid_rate_per_s[at]
            plain.since[mine] = snapshot.pages.last_fetched[rows[mine]]
            plain.shape[mine] = hubs.shape[at]
            interval[mine] = hubs.interval_s[at]
            by_age = age / interval[mine]
            part = plain.take(mine)
            late = mine[self.escalates & (by_age >= 1.0) & (by_age > values_at(part, snapshot.now) * (1.0 + 1e-5))]
            plain.amplitude[late], plain.shape[late] = 1.0, int(Shape.LINEAR)
            plain.rate[late] = 1.0 / interval[late]
        terms = {"hub_interval_s": interval, "basis": BASES[(place >= 0).astype(np.int64)]}
        return Bids(plain.amplitude, plain.rate, plain.since, plain.shape, terms)

    def claims(self, snapshot: Snapshot, rows: Rows) -> BOOL:
        """Which of these rows are pages that the study found to be hubs, or seeds that the crawl chose since."""
        studied = (snapshot.pages.kind[rows] == UrlKind.PAGE) & (self._place(snapshot, rows) >= 0)
        return np.asarray(studied | self.fallback.claims(snapshot, rows))

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """What a visit gains, in prices: new pages a day, clicks of each, how long interest lasts, when it is due."""
        one = np.array([row])
        study, place = self._study(snapshot), int(self._place(snapshot, one)[0])
        if study is None or place < 0:
            tree = self.fallback.explain(snapshot, row)
            said = "there is no study of hubs yet" if study is None else "it is not in the last study of hubs"
            return Term(
                tree.name, tree.value, f"{tree.note}; {said}: until then it bids as hub-interval does", tree.children
            )
        bids = self.appraise(snapshot, one)
        bid, hubs = bids.bid(0), study.hubs
        interval = float(hubs.interval_s[place])
        name, note = "gain of a visit/price", "due when it reaches 1"
        if bid.shape is Shape.LINEAR:
            name = "age/interval"
            if hubs.shape[place] != Shape.LINEAR:
                note = "overdue: it bids more than its visit gains, so that new pages do not starve it"
        age = max(snapshot.now - float(snapshot.pages.last_fetched[row]), 0.0)
        children = (
            Term("age_s", age, "since the last visit"),
            Term("kind", HubKind(int(hubs.kind[place])).label),
            *_tell_hub(study, place),
            Term("interval_s", interval, _tell_interval(study, place)),
            Term(
                "hour_of_the_week", float(study.info.get("hour", 1.0)), "new pages of all hubs, by those of a mean hour"
            ),
            Term(
                STUDY_PRICE,
                study.price,
                f"in profits of a mean new page: {study.budget_per_s * DAY_S:,.4g} visits a day "
                f"of {len(hubs):,} hubs clear at this",
            ),
            _tell_due(bid, snapshot.now),
            Term("study_age_s", max(snapshot.now - study.at, 0.0), f"by {study.method}, of {len(hubs):,} hubs"),
        )
        return Term(name, bid.value(snapshot.now), note, children)

    # -- new pages that hubs announced

    def lift(self, snapshot: Snapshot, rows: Rows) -> Lift | None:
        """The new pages among these rows that a hub announced."""
        study = self._study(snapshot)
        if study is None or not len(study.hubs):
            return None
        hub = study.announced(rows, linked_from(snapshot, rows))
        place = np.flatnonzero(hub >= 0)
        if not len(place):
            return None
        at = hub[place]
        profit = study.hubs.profit[at].astype(np.float64) * study.factors(rows[place], at)
        decay = study.hubs.decay_per_s[at].astype(np.float64)
        return Lift(
            place,
            at,
            self._worth_found(study, profit, decay),
            decay,
            snapshot.pages.first_seen[rows[place]].astype(np.float64),
        )

    def _worth_found(self, study: HubStudy, profit: F64, decay_per_s: F64) -> F64:
        """The factor of pages of so much profit."""
        return 1.0 + np.minimum(profit / max(study.mean_profit, 1e-12), LARGEST_LIFT)

    def freshen(self, snapshot: Snapshot, rows: Rows, bids: Bids) -> Bids:
        """[BEYOND] New pages bid A·exp(-mu·age) while that is more than the frontier's bid b: A = b·(1 + P/mean P)."""
        lift = self.lift(snapshot, rows)
        if lift is None:
            return bids
        left = lift.factor * np.exp(-lift.decay_per_s * np.maximum(snapshot.now - lift.since, 0.0))
        fresh = (left > 1.0) & (bids.shape[lift.place] == Shape.CONSTANT)
        place = lift.place[fresh]
        bids.amplitude[place] *= lift.factor[fresh]
        bids.rate[place] = lift.decay_per_s[fresh]
        bids.since[place] = lift.since[fresh]
        bids.shape[place] = Shape.DECAY
        return bids

    def explain_new(self, snapshot: Snapshot, row: int, tree: Term) -> Term:
        """The bid of a new page with what its hub adds to it."""
        one = np.array([row])
        study, lift = self._study(snapshot), self.lift(snapshot, one)
        if study is None or lift is None:
            return tree
        hub, factor = int(lift.hub[0]), float(lift.factor[0])
        age = max(snapshot.now - float(lift.since[0]), 0.0)
        left = math.exp(-float(lift.decay_per_s[0]) * age)
        children = (
            Term(
                "announced by",
                factor - 1.0,
                "expected profit in that of a mean new page: that of the hub's pages, times its own",
                (
                    Term(
                        "own factor",
                        float(study.factors(one, lift.hub)[0]),
                        "by its place in the list, the hubs that show it, its URL and the words asked for",
                    ),
                ),
                page=int(study.hubs.row[hub]),
            ),
            Term(
                "interest left",
                left,
                f"found {span_text(age)} ago; half-life {half_life_text(float(lift.decay_per_s[0]))}",
            ),
        )
        if factor * left <= 1.0:
            old = Term(
                "announced by a hub", factor * left, "of its bid as a new page: too old to count for more", children
            )
            return Term(tree.name, tree.value, tree.note, (*tree.children, old))
        lifted = Bids.build([tree.value])
        bid = self.freshen(snapshot, one, lifted).bid(0)
        note = "a hub announced it: its bid as a new page, times what its hub adds, fading with the interest in it"
        return Term("bid of a new page·fresh", bid.value(snapshot.now), note, (tree, *children))

    # -- within

    def _study(self, snapshot: Snapshot) -> HubStudy | None:
        study = snapshot.hub_study
        return study if study is not None and study.method == self.name else None

    def _place(self, snapshot: Snapshot, rows: Rows) -> I64:
        """Places among the hubs of the study, of those that are there; -1 for the others."""
        study = self._study(snapshot)
        if study is None or not len(study.hubs):
            return np.full(len(rows), -1, dtype=np.int64)
        return np.where(snapshot.pages.state[rows] == UrlState.FETCHED, study.place(rows), -1)


def fresh_pages(snapshot: Snapshot, rows: Rows) -> I64:
    """Of these new pages those that a hub announced and of whose interest an eighth is left at least, by the study."""
    study = snapshot.hub_study
    if study is None or not len(study.hubs):
        return np.zeros(0, dtype=np.int64)
    hub = study.announced(rows, linked_from(snapshot, rows))
    age_s = snapshot.now - snapshot.pages.first_seen[rows].astype(np.float64)
    fresh = (hub >= 0) & (study.hubs.decay_per_s[hub] * age_s <= math.log(8.0))
    return np.asarray(rows[fresh], dtype=np.int64)


def linked_from(snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.int32]:
    """What led to these URLs: where that is a redirect, what led to it."""
    state, source = snapshot.pages.state, snapshot.pages.source[rows]
    for _ in range(MOST_HOPS):
        moved = np.flatnonzero((source >= 0) & (state[source] == UrlState.REDIRECT))
        if not len(moved):
            break
        source[moved] = snapshot.pages.source[source[moved]]
    return source


def _tell_hub(study: HubStudy, place: int) -> tuple[Term, ...]:
    """lam, P and mu, and what they rest on."""
    clicks = "P: clicks of a new page over its life"
    if not study.by_clicks:
        clicks += f"; {NO_NEWS_CLICKED}, so it is the same for all hubs"
    return (
        tell_rate(study, place),
        Term("clicks_per_new_page", float(study.hubs.profit[place]), clicks),
        tell_decay(study, place),
        *tell_missed(study, place),
    )


def tell_rate(study: HubStudy, place: int) -> Term:
    """lam, and how it was come by."""
    hubs = study.hubs
    later = max(int(hubs.visits[place]) - 1, 0)
    seen = f"lam: {int(hubs.found[place]):,} first found there on {later:,} visits after the first, in the last 60 days"
    if hubs.period_s[place] > 0:
        seen += f"; it says that it is updated every {span_text(float(hubs.period_s[place]))}"
    parts: tuple[Term, ...] = ()
    if hubs.drawn_per_s[place] != hubs.rate_per_s[place]:
        drawn = float(hubs.drawn_per_s[place]) * DAY_S
        parts = (Term("tried as", drawn, "drawn by lot from what is believed: it is little known yet"),)
    return Term("new_pages_per_day", float(hubs.rate_per_s[place]) * DAY_S, seen, parts)


def tell_decay(study: HubStudy, place: int) -> Term:
    """mu, and what it means."""
    decay = float(study.hubs.decay_per_s[place])
    fades = f"mu: half of the interest is gone after {half_life_text(decay)}"
    if not study.by_clicks:
        fades += f"; the default (hubs.half_life_days), for {NO_NEWS_CLICKED}"
    return Term("decay_per_day", decay * DAY_S, fades)


def tell_missed(study: HubStudy, place: int) -> tuple[Term, ...]:
    """Pages that came and went between two visits, where there were such."""
    hubs, turned = study.hubs, int(study.hubs.turned[place])
    if not turned:
        return ()
    times = "1 visit" if turned == 1 else f"{turned:,} visits"
    note = f"came and went unseen, as far as lam tells: on {times} nothing of the one before was left"
    return (Term("missed_pages", float(hubs.missed[place]), note),)


def _tell_interval(study: HubStudy, place: int) -> str:
    interval = float(study.hubs.interval_s[place])
    if study.hubs.shape[place] == Shape.SATURATING:
        return "when its gain reaches the price"
    if interval >= study.longest_s * (1.0 - 1e-6):
        return "the longest: it yields little, but none is left alone for ever"
    return "by a bound: it gains the price sooner, or what is left is shared evenly"


def half_life_text(decay_per_s: float) -> str:
    """After how long half of the interest is gone, as people say it."""
    return span_text(math.log(2.0) / max(decay_per_s, 1e-300))


def _tell_due(bid: Bid, now: float) -> Term:
    at = bid.reaches(1.0, now)
    if at is None:
        return Term("due", "never", "the bid does not reach the price")
    clock = datetime.fromtimestamp(min(at, 253402300799.0), UTC).isoformat(timespec="seconds")
    return Term("due", clock, "now" if at <= now else f"in {span_text(at - now)}")
