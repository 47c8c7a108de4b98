"""Where a URL stands in line: when its bid reaches the price, who comes before it, and when its host may be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.policy import Policy
from bowerbird.crawl.moments import clock_text
from bowerbird.model.bid import Bid
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState
from bowerbird.schedule.auction import Auction

_AHEAD_S = np.geomspace(1.0, 5 * 365 * 86400.0, 96)  # moments at which a bid is looked at again
_NARROWER = 24
_NEARLY = 1.0 - 1e-6  # bids are kept in few digits


@dataclass(frozen=True, slots=True)
class Standing:
    """One URL among all bids of a moment. Values are as the price sees them: before the weights of hosts."""

    now: float
    value: float
    price: float
    weight: float  # of its host
    due_at: float | None  # when its bid reaches the price; None = never
    held_until: float  # by a wait after an error
    host_free_at: float
    delay_s: float
    ready: int  # URLs that have bid the price and wait for no error
    place: int  # of it among them; where it would be, if it is not one of them
    place_unweighted: int  # if its host's pages did not repeat others
    hosts_ready: int
    before_on_host: int  # better bids of its host that are ready
    host_price: float  # what it would have to bid for its host's next turn
    due_by_age: bool = False  # what it bids then goes by its age, not by what it gains

    @property
    def due_why(self) -> str:
        """What will have it fetched."""
        return "by its age it will bid the price" if self.due_by_age else "its bid reaches the price"

    @property
    def is_ready(self) -> bool:
        """Has it bid the price, and waits for no error?"""
        return self.value >= self.price and self.held_until <= self.now

    @property
    def expected_at(self) -> float | None:
        """When its turn comes if nothing changes: its bid reaches the price, its host gets through the line."""
        if self.due_at is None:
            return None
        return max(self.due_at, self.held_until, self.host_free_at + self.before_on_host * self.delay_s)


def find_standing(auction: Auction, row: int, price: float, now: float, due_at: float | None) -> Standing:
    """Compare one bid with all others."""
    bids, gate = auction.bids, auction.gate.columns
    rows = np.flatnonzero(bids["amplitude"] > 0)
    values = auction.values(now, rows)
    mine = float(auction.values(now, np.array([row]))[0])
    weight = float(gate["weight"][bids["host"][row]])
    ready = (values >= price) & (bids["not_before"][rows] <= now)
    rows, values = rows[ready], values[ready]
    weighted = values * gate["weight"][bids["host"][rows]]
    ahead = (weighted > mine * weight) | ((weighted == mine * weight) & (rows < row))
    host = int(bids["host"][row])
    rivals = (bids["host"][rows] == host) & ahead
    return Standing(
        now,
        mine,
        price,
        weight,
        due_at,
        float(bids["not_before"][row]),
        max(float(gate["ready_at"][host]), now),
        auction.gate.delay(host),
        len(rows),
        1 + int(np.count_nonzero(ahead)),
        1 + int(np.count_nonzero((weighted > mine) | ((weighted == mine) & (rows < row)))),
        len(np.unique(bids["host"][rows])),
        int(np.count_nonzero(rivals)),
        max(price, float(values[rivals].max())) if rivals.any() else price,
    )


def is_due_by_age(policy: Policy, snapshot: Snapshot, row: int, due_at: float | None) -> bool:
    """Does the row bid the price at that time because nobody will have looked at it for long, whatever it gains?"""
    if due_at is None or due_at <= snapshot.now:
        return False
    bound = policy.appraise(replace(snapshot, now=due_at), np.array([row])).terms.get("bound")
    return bound is not None and bool(bound[0])


def find_due(policy: Policy, snapshot: Snapshot, bid: Bid, row: int, price: float) -> float | None:
    """When the bid of a row reaches the price, None = never."""
    return find_dues(policy, snapshot, [bid], np.array([row]), price)[0]


def find_dues(
    policy: Policy, snapshot: Snapshot, bids: Sequence[Bid], rows: npt.NDArray[np.int64], price: float
) -> list[float | None]:
    """When the bids of some rows reach the price, None = never.

    Bids in clicks are bounded, and begin only after the shortest interval: these are asked for again at later moments.
    """
    now = snapshot.now

    def reached(which: npt.NDArray[np.int64], at: float) -> npt.NDArray[np.bool_]:
        then = replace(snapshot, now=at)
        return values_at(policy.appraise(then, which), at) >= price * _NEARLY

    def narrow(row: int, early: float, late: float) -> float:
        for _ in range(_NARROWER):
            middle = 0.5 * (early + late)
            early, late = (early, middle) if reached(np.array([row]), now + middle)[0] else (middle, late)
        return now + late

    grows = policy.unit(snapshot) > 0.0
    # a hub that gains nothing above the price bids 0, and its age later all the same
    able = snapshot.pages.state[rows] == UrlState.FETCHED
    waiting = able | np.array([bid.amplitude > 0.0 for bid in bids], dtype=np.bool_)
    waiting &= np.array([grows and bid.value(now) < price for bid in bids], dtype=np.bool_)
    out = [None if waits else bid.reaches(price, now) for bid, waits in zip(bids, waiting.tolist(), strict=True)]
    early = 0.0
    for late in _AHEAD_S.tolist():
        places = np.flatnonzero(waiting)
        if not len(places):
            break
        for place in places[reached(rows[places], now + late)].tolist():
            out[place], waiting[place] = narrow(int(rows[place]), early, late), False
        early = late
    return out


def expect(standing: Standing, bids: bool, state: UrlState, rate_per_s: float | None = None) -> dict[str, Any]:
    """When the URL's turn comes if nothing changes, and why; a budget lets so many a second through."""
    if not bids:
        return {"at": None, "why": f"the URL is {state.name.lower()}: it is not fetched"}
    at = standing.expected_at
    if at is None or standing.due_at is None:
        return {
            "at": None,
            "why": "its bid does not reach the price, so it comes when nothing better is left, or by lot",
        }
    why = standing.due_why if standing.due_at > standing.now else "in line at its host"
    if standing.is_ready and rate_per_s is not None:
        turn = standing.now + (standing.place - 1) / rate_per_s
        at, why = (turn, "in line: better bids use up the budget first") if turn > at else (at, why)
    return {
        "at": clock_text(at),
        "in_s": round(at - standing.now, 1),
        "before_it_on_host": standing.before_on_host,
        "why": why,
    }
