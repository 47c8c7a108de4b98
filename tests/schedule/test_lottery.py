from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import orjson
import pytest

from bowerbird.model.bid import Bids
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.lottery import (
    ANNOUNCED,
    AT_ONCE,
    HUBS,
    LEAST_PATIENCE_S,
    MOST_OWED,
    MOST_WAITING,
    PATIENCE_S,
    RETRY_S,
    SIDE_SHARE,
    Lottery,
    Ticket,
)
from bowerbird.schedule.politeness import HostGate

STATES = np.array([UrlState.FETCHED] * 300 + [UrlState.NEW] * 30 + [UrlState.GONE] * 50, dtype=np.uint8)
KINDS = np.where(np.arange(len(STATES)) % 10 == 0, UrlKind.FEED, UrlKind.PAGE).astype(np.uint8)


def draw_many(share: float, fetches: int, seed: int = 1) -> list[tuple[int, float]]:
    lottery = Lottery(share, np.random.default_rng(seed))
    drawn: list[tuple[int, float]] = []
    for _ in range(fetches):
        lottery.owe(1)
        lottery.draw(STATES, KINDS, 5.0)
        drawn += [(ticket.row, ticket.propensity) for ticket in lottery.waiting.values() if ticket.stratum != HUBS]
        lottery.waiting.clear()
    return drawn


def test_the_share_of_draws_is_the_share_asked_for() -> None:
    assert len(draw_many(0.1, 5000)) == pytest.approx(500, abs=4 * (5000 * 0.1 * 0.9) ** 0.5)
    assert draw_many(0.0, 100) == []


def test_weights_by_propensity_estimate_any_sum_without_bias() -> None:
    """Horvitz-Thompson: the mean of value / propensity is the sum over all pages that can be drawn."""
    values = np.random.default_rng(3).exponential(size=len(STATES))
    can = (KINDS == UrlKind.PAGE) & np.isin(STATES, (UrlState.FETCHED, UrlState.NEW))
    drawn = draw_many(1.0, 20_000)
    estimates = np.array([values[row] / propensity for row, propensity in drawn])
    error = estimates.std() / len(estimates) ** 0.5
    assert estimates.mean() == pytest.approx(values[can].sum(), abs=4 * error)
    assert {row for row, _ in drawn} == set(np.flatnonzero(can).tolist())


def test_half_of_the_draws_go_to_the_frontier_and_all_when_nothing_is_fetched() -> None:
    rows = np.array([row for row, _ in draw_many(1.0, 4000)])
    assert np.mean(STATES[rows] == UrlState.NEW) == pytest.approx(0.5, abs=0.04)
    lottery = Lottery(1.0, np.random.default_rng(0))
    lottery.owe(10)
    only_new = np.full(50, UrlState.NEW, dtype=np.uint8)
    lottery.draw(only_new, np.zeros(50, dtype=np.uint8), 0.0)
    assert {ticket.propensity for ticket in lottery.waiting.values()} == {1 / 50}


def test_feeds_and_sitemaps_have_a_lot_of_their_own() -> None:
    """Whatever the price is, every one of them comes round."""
    lottery = Lottery(0.1, np.random.default_rng(4))
    drawn: Counter[int] = Counter()
    for _ in range(20_000):
        lottery.owe(1)
        drawn.update(ticket.row for ticket in lottery.draw(STATES, KINDS, 5.0) if ticket.stratum == HUBS)
        lottery.waiting.clear()
    assert set(drawn) == set(np.flatnonzero((KINDS != UrlKind.PAGE) & (STATES == UrlState.FETCHED)).tolist())
    expected = 20_000 * 0.1 * SIDE_SHARE
    assert drawn.total() == pytest.approx(expected, abs=4 * expected**0.5)
    ordered = Lottery(0.0, np.random.default_rng(4))
    ordered.order(60)
    assert all(ticket.stratum != HUBS for ticket in ordered.draw(STATES, KINDS, 5.0))


def test_pages_that_are_hubs_and_what_hubs_announced_of_late_have_lots_too() -> None:
    lottery = Lottery(1.0, np.random.default_rng(5))
    lottery.follow(np.array([3, 4, 999]), np.array([305, 311, 1, 999]))  # 1 was fetched since, 999 is not there
    drawn: dict[str, Counter[int]] = {HUBS: Counter(), ANNOUNCED: Counter()}
    for _ in range(4000):
        lottery.owe(1)
        for ticket in lottery.draw(STATES, KINDS, 5.0):
            if ticket.stratum in drawn:
                drawn[ticket.stratum][ticket.row] += 1
                assert ticket.propensity == 1.0 / ticket.population
        lottery.waiting.clear()
    feeds = np.flatnonzero((KINDS != UrlKind.PAGE) & (STATES == UrlState.FETCHED)).tolist()
    assert set(drawn[HUBS]) == {3, 4, *feeds}
    assert set(drawn[ANNOUNCED]) == {305, 311}
    for counts in drawn.values():
        assert counts.total() == pytest.approx(4000 * SIDE_SHARE, abs=4 * (4000 * SIDE_SHARE) ** 0.5)


class Only:
    """Admits some, and counts who is asked for."""

    def __init__(self, rows: frozenset[int]) -> None:
        self.rows, self.asked = rows, Counter[int]()

    def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        self.asked.update(rows.tolist())
        return np.isin(rows, list(self.rows))

    def take(self, row: int, now: float) -> None:
        assert row in self.rows


class Hosts:
    """Each host has one turn; tells how many URLs could be drawn at each draw."""

    def __init__(self, hosts: npt.NDArray[np.int64]) -> None:
        self.hosts, self.taken = hosts, set[int]()
        self.could: Counter[int] = Counter()

    def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        free = ~np.isin(self.hosts[rows], list(self.taken))
        self.could.update(rows[free].tolist())
        return free

    def take(self, row: int, now: float) -> None:
        self.taken.add(int(self.hosts[row]))


@pytest.mark.parametrize("seed", range(4))
def test_logged_chances_of_side_lots_are_those_they_are_drawn_with(seed: int) -> None:
    """The sum of 1/propensity over what was drawn is, for every URL, the number of draws that it was part of."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 25))
    hosts = np.minimum(rng.geometric(0.4, size), 4).astype(np.int64)
    states = np.full(size, UrlState.FETCHED, np.uint8)
    kinds = np.full(size, UrlKind.FEED, np.uint8)
    could, weight, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for _ in range(3000):
        lottery = Lottery(0.0, rng)
        lottery._owed_aside[HUBS] = int(rng.integers(1, 6))
        turns = Hosts(hosts)
        for ticket in lottery.draw(states, kinds, 5.0, turns):
            weight[ticket.row] += 1.0 / ticket.propensity
            square[ticket.row] += ticket.propensity**-2
        for row, many in turns.could.items():
            could[row] += many
    assert (np.abs(weight - could) < 4.5 * np.sqrt(square)).all()


def test_what_is_not_admitted_is_drawn_from_no_lot_but_those_that_measure() -> None:
    lottery = Lottery(1.0, np.random.default_rng(6))
    lottery.follow(np.array([3, 4]), np.array([305, 311]))
    turns = Only(frozenset())
    drawn: Counter[str] = Counter()
    for _ in range(400):
        lottery.owe(1)
        tickets = lottery.draw(STATES, KINDS, 5.0, turns)
        assert list(lottery.waiting.values()) == tickets
        drawn.update(ticket.stratum for ticket in tickets)
        lottery.waiting.clear()
        assert lottery.is_idle  # no measurement waits for what was refused
    assert set(drawn) == {"fetched", "frontier"}
    assert drawn.total() == 400
    feeds = np.flatnonzero((KINDS != UrlKind.PAGE) & (STATES == UrlState.FETCHED)).tolist()
    assert set(turns.asked) <= {3, 4, 305, 311, *feeds}  # of the others nobody asks
    assert max(turns.asked.values()) == 1  # nor again before a while has passed
    late = lottery.draw(STATES, KINDS, 5.0 + RETRY_S, Only(frozenset({3, 4, 305})))
    assert {ticket.row for ticket in late} == {3, 4, 305}  # what was refused is owed


def test_of_the_side_lots_those_are_drawn_that_are_admitted() -> None:
    lottery = Lottery(1.0, np.random.default_rng(7))
    lottery.follow(np.array([3, 4]), np.array([305, 311]))
    drawn: dict[str, set[int]] = {HUBS: set(), ANNOUNCED: set()}
    for _ in range(400):
        lottery.owe(1)
        for ticket in lottery.draw(STATES, KINDS, 5.0, Only(frozenset({3, 311}))):
            if ticket.stratum in drawn:
                drawn[ticket.stratum].add(ticket.row)
                assert ticket.propensity == 1.0 / ticket.population
        lottery.waiting.clear()
    assert drawn == {HUBS: {3}, ANNOUNCED: {311}}


def test_what_searchers_see_is_drawn_more_often_and_the_weights_know_it() -> None:
    values = np.random.default_rng(3).exponential(size=len(STATES))
    can = (KINDS == UrlKind.PAGE) & np.isin(STATES, (UrlState.FETCHED, UrlState.NEW))
    lottery = Lottery(1.0, np.random.default_rng(2))
    lottery.watch(np.array([1, 2, 3, 10, 310, 10_000]))  # 10 is a feed, 310 not fetched, the last unknown
    drawn = []
    for _ in range(9000):
        lottery.owe(1)
        drawn += [ticket for ticket in lottery.draw(STATES, KINDS, 0.0) if ticket.stratum != HUBS]
        lottery.waiting.clear()
    strata = Counter(ticket.stratum for ticket in drawn)
    assert [strata[name] / 9000 for name in ("shown", "fetched", "frontier")] == pytest.approx([1 / 3] * 3, abs=0.03)
    assert {ticket.row for ticket in drawn if ticket.stratum == "shown"} == {1, 2, 3}
    assert not {1, 2, 3} & {ticket.row for ticket in drawn if ticket.stratum != "shown"}
    estimates = np.array([values[ticket.row] / ticket.propensity for ticket in drawn])
    assert estimates.mean() == pytest.approx(values[can].sum(), abs=4 * estimates.std() / len(estimates) ** 0.5)


def test_a_rare_stratum_is_found_and_an_empty_crawl_is_no_trouble() -> None:
    states = np.full(200_000, UrlState.FETCHED, dtype=np.uint8)
    states[123_456] = UrlState.NEW
    lottery = Lottery(1.0, np.random.default_rng(0))
    for _ in range(20):
        lottery.owe(1)
        lottery.draw(states, np.zeros(len(states), dtype=np.uint8), 0.0)
    assert 123_456 in lottery.waiting
    nothing = np.zeros(0, dtype=np.uint8)
    empty = Lottery(1.0)
    empty.owe(5)
    empty.draw(nothing, nothing, 0.0)
    assert empty.waiting == {}


class OneTurn:
    """Whoever comes first to the host has its turn."""

    def __init__(self) -> None:
        self.taken = False

    def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        return np.full(len(rows), not self.taken)

    def take(self, row: int, now: float) -> None:
        self.taken = True


def test_neither_of_the_side_lots_always_comes_first_to_a_host() -> None:
    lottery = Lottery(1.0, np.random.default_rng(3))
    lottery.follow(np.array([3]), np.array([305]))
    first: Counter[str] = Counter()
    for turn in range(600):
        lottery.owe(4)
        drawn = lottery.draw(STATES, KINDS, turn * RETRY_S, OneTurn())
        first.update(ticket.stratum for ticket in drawn if ticket.stratum in (HUBS, ANNOUNCED))
        lottery.waiting.clear()
    assert 200 < first[HUBS] < 400
    assert 200 < first[ANNOUNCED] < 400


def test_a_few_of_a_side_lot_are_drawn_at_once_and_the_rest_later() -> None:
    """Fetches wait while it is drawn, and each draw looks at all that may be."""
    lottery = Lottery(1.0, np.random.default_rng(3))
    lottery.follow(np.arange(1, 200), np.arange(301, 330))
    lottery.owe(200)
    drawn: Counter[str] = Counter()
    for turn in range(30):
        one = Counter(ticket.stratum for ticket in lottery.draw(STATES, KINDS, turn * RETRY_S))
        assert max(one[HUBS], one[ANNOUNCED]) <= AT_ONCE
        drawn += one
        lottery.waiting.clear()
    assert min(drawn[HUBS], drawn[ANNOUNCED]) > 5 * AT_ONCE


def test_what_waits_is_given_up_in_time_where_the_clock_is_set_back() -> None:
    lottery = Lottery(0.0)
    lottery.waiting[3] = Ticket(3, HUBS, 1, 1.0, 5000.0)
    lottery.set_back(3600.0)
    lottery.draw(STATES, KINDS, 1400.0 + PATIENCE_S)
    assert 3 in lottery.waiting
    lottery.draw(STATES, KINDS, 1401.0 + PATIENCE_S)
    assert lottery.waiting == {}


def test_waiting_tickets_are_bounded_and_say_why() -> None:
    lottery = Lottery(1.0, np.random.default_rng(0))
    lottery.owe(10_000)
    lottery.draw(STATES, KINDS, 0.0)
    assert 0 < len(lottery.waiting) <= MOST_OWED + 2 * AT_ONCE
    ticket = next(iter(lottery.waiting.values()))
    terms = orjson.loads(ticket.terms())
    assert terms["by"] == "lot"
    assert terms["population"] == {"fetched": 270, "frontier": 27}[ticket.stratum]
    assert terms["propensity"] == pytest.approx(0.5 / terms["population"])
    bid = '{"by":"echo","unit":0.5,"by_clicks":false,"horizon_s":9.0}'  # the journal has what it bid beside it
    assert orjson.loads(ticket.terms(bid)) == terms | {"unit": 0.5, "by_clicks": False}


def test_a_row_taken_out_of_turn_is_not_picked_again_for_its_old_bid() -> None:
    auction = Auction(HostGate(0.0, 8))
    rows = np.arange(4)
    auction.place(rows, Bids.build(np.array([1.0, 2.0, 3.0, 4.0])), np.zeros(4, dtype=np.uint32))
    auction.refill(0.0, 0.5)
    pick = auction.take(3, 0.0, until=60.0)
    assert (pick.row, pick.value) == (3, 4.0)
    assert int(auction.gate.columns["in_flight"][0]) == 1
    auction.place(np.array([3]), Bids.build(np.array([0.6])), np.zeros(1, dtype=np.uint32), offer=False)
    auction.hold([3], 0.0)  # it came back, and bids little now
    assert [pick.row for pick in auction.pick(1.0, 10, 0.5)] == [2, 1, 0]


def test_pages_whose_hosts_stay_silent_make_room() -> None:
    lottery = Lottery(1.0, np.random.default_rng(0))
    states, kinds = np.full(9000, UrlState.NEW, dtype=np.uint8), np.zeros(9000, dtype=np.uint8)
    lottery.order(4 * MOST_WAITING)
    assert len(lottery.draw(states, kinds, 0.0)) == MOST_WAITING
    assert lottery.draw(states, kinds, LEAST_PATIENCE_S - 1.0) == []
    first = next(iter(lottery.waiting))
    del lottery.waiting[first]
    (late,) = lottery.draw(states, kinds, LEAST_PATIENCE_S)
    again = lottery.draw(states, kinds, LEAST_PATIENCE_S + 1.0)  # one for each of the others, but not for that one
    assert len(again) == MOST_WAITING - 1
    assert late.row in lottery.waiting
    assert lottery.given_up == MOST_WAITING - 1
    lottery.draw(states, kinds, PATIENCE_S + LEAST_PATIENCE_S + 2.0)
    assert lottery.given_up >= 2 * MOST_WAITING - 1


@pytest.mark.parametrize(("per_s", "off"), [(500, 0.2), (50, 0.3), (5, 0.5)])
def test_hosts_that_cannot_be_asked_do_not_keep_others_from_the_lots(per_s: int, off: float) -> None:
    rng, many = np.random.default_rng(0), 20_000
    host, here = rng.integers(0, 500, many), rng.random(500) >= off
    states = np.where(rng.random(many) < 0.5, UrlState.FETCHED, UrlState.NEW).astype(np.uint8)
    kinds = np.zeros(many, dtype=np.uint8)
    kinds[:1000], states[:1000] = UrlKind.FEED, UrlState.FETCHED

    class MayBeAsked:
        def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
            return np.asarray(here[host[rows]])

        def take(self, row: int, now: float) -> None:
            assert here[host[row]]

    lottery = Lottery(0.01, np.random.default_rng(1))
    lottery.follow(np.zeros(0, dtype=np.int64), np.flatnonzero(states == UrlState.NEW)[:2000])
    fetched: Counter[str] = Counter()
    seconds = range(2400)
    for second in seconds:
        lottery.owe(per_s)
        lottery.draw(states, kinds, float(second), MayBeAsked())
        for row in [row for row in lottery.waiting if here[host[row]]]:
            fetched[lottery.waiting.pop(row).stratum] += 1
    of_each = 0.01 * per_s * len(seconds)
    for name in (HUBS, ANNOUNCED):
        assert fetched[name] == pytest.approx(SIDE_SHARE * of_each, abs=4 * (SIDE_SHARE * of_each) ** 0.5)
    measured = fetched["fetched"] + fetched["frontier"]
    assert measured == pytest.approx(np.mean(here) * of_each, abs=4 * of_each**0.5 + 0.02 * of_each)


class Unread:
    """Nobody may look at all rows while there is no room."""

    def __init__(self) -> None:
        self.looked = 0

    def free(self, rows: npt.NDArray[np.int64], now: float) -> npt.NDArray[np.bool_]:
        self.looked += 1
        return np.ones(len(rows), np.bool_)

    def take(self, row: int, now: float) -> None:
        pass


def test_nobody_is_looked_for_while_there_is_no_room() -> None:
    lottery, turns = Lottery(1.0, np.random.default_rng(0)), Unread()
    lottery.waiting = {row: Ticket(row, "frontier", 9, 0.1, 0.0) for row in range(MOST_WAITING)}
    lottery.owe(200)
    for turn in range(100):
        assert lottery.draw(STATES, KINDS, 0.1 * turn, turns) == []
    assert turns.looked == 0
