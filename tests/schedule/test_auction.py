"""The auction against a plain one that looks at every bid for every pick."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.model.bid import Bids, Shape
from bowerbird.schedule.auction import Auction, Pick, first_in_order
from bowerbird.schedule.politeness import HostGate

PRICE = 1.0
HOSTS = 4


def place(auction: Auction, rows: list[int], hosts: list[int], amplitude: float | list[float], **more: object) -> None:
    """Constant bids, offered unless said otherwise."""
    offer = bool(more.pop("offer", True))
    bids = Bids.build(np.broadcast_to(amplitude, len(rows)), **more)  # type: ignore[arg-type]  # fields of many types
    auction.place(np.array(rows), bids, np.array(hosts, dtype=np.uint32), offer=offer)


def free_slots(gate: HostGate, now: float) -> list[int]:
    columns = gate.columns
    return [
        max(int(slots) - int(busy), 0) if ready <= now else 0
        for slots, busy, ready in zip(columns["slots"], columns["in_flight"], columns["ready_at"], strict=True)
    ]


def best_first(auction: Auction, now: float, wanted: int, price: float) -> list[Pick]:
    """The exact greedy choice, bid by bid."""
    free = free_slots(auction.gate, now)
    line = []
    for row in range(len(auction)):
        bid, host = auction.bid(row), int(auction.bids["host"][row])
        value = bid.value(now)
        if bid.amplitude > 0 and value >= price and auction.bids["not_before"][row] <= now:
            line.append(Pick(row, host, value))
    weight = auction.gate.columns["weight"]
    picks: list[Pick] = []
    for pick in sorted(line, key=lambda pick: (-pick.value * float(weight[pick.host]), pick.row)):
        if len(picks) < wanted and free[pick.host] > 0:
            free[pick.host] -= 1
            picks.append(pick)
    return picks


def same(found: list[Pick], expected: list[Pick]) -> bool:
    return [(pick.row, pick.host) for pick in found] == [(pick.row, pick.host) for pick in expected] and [
        pick.value for pick in found
    ] == pytest.approx([pick.value for pick in expected], rel=1e-12)


# -- random books: few different numbers, so that ties are common

bid_facts = st.tuples(
    st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([0.0, 4.0, 8.0, 12.0]),
    st.sampled_from(Shape),
    st.integers(0, HOSTS - 1),
)


@dataclass
class Step:
    """Something that happens to an auction between two picks."""

    verb: str
    rows: list[int]
    facts: list[tuple[float, float, float, Shape, int]]
    number: float
    offer: bool


steps = st.builds(
    Step,
    st.sampled_from(["place", "place", "withdraw", "hold", "give_back", "cancel", "delay", "weight", "wait"]),
    st.lists(st.integers(0, 14), min_size=1, max_size=6, unique=True),
    st.lists(bid_facts, min_size=6, max_size=6),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]),
    st.booleans(),
)


def apply(auction: Auction, step: Step, now: float, taken: list[Pick]) -> None:
    gate = auction.gate
    known = [row for row in step.rows if row < len(auction)]
    host = step.facts[0][4]
    if step.verb == "place":
        amplitude, rate, since, shape, hosts = (
            list(column) for column in zip(*step.facts[: len(step.rows)], strict=True)
        )
        bids = Bids.build(amplitude, rate=rate, since=since)
        bids.shape[:] = shape
        auction.place(np.array(step.rows), bids, np.array(hosts, dtype=np.uint32), offer=step.offer)
    elif step.verb == "withdraw" and known:
        auction.withdraw(known[0])
    elif step.verb == "hold" and known:
        auction.hold(known, now + step.number)
    elif step.verb == "give_back" and taken:
        gate.give_back(taken.pop().host, now)
    elif step.verb == "cancel" and taken:
        pick = taken.pop()
        auction.offer_again([pick.row])
        gate.cancel(pick.host, now)
    elif step.verb == "delay" and host < len(gate):
        gate.set_delay(host, step.number)
    elif step.verb == "weight" and host < len(gate):
        gate.columns["weight"][host] = 0.1 + step.number / 10


@settings(max_examples=200, deadline=None)
@given(
    book=st.lists(bid_facts, min_size=4, max_size=15),
    rounds=st.lists(
        st.tuples(st.lists(steps, max_size=4), st.integers(1, 6), st.sampled_from([0.5, 1.0, 1.5])),
        min_size=1,
        max_size=6,
    ),
    delay_s=st.sampled_from([0.0, 0.5, 2.0]),
    connections=st.integers(1, 3),
    head=st.sampled_from([1, 3, 6, Auction.HEAD]),
)
def test_after_a_refill_picks_are_the_exact_greedy_choice(
    book: list[tuple[float, float, float, Shape, int]],
    rounds: list[tuple[list[Step], int, float]],
    delay_s: float,
    connections: int,
    head: int,
) -> None:
    auction = Auction(HostGate(delay_s, connections))
    auction.HEAD = head  # type: ignore[misc]  # a constant: these books are small
    now = 10.0
    taken: list[Pick] = []
    apply(auction, Step("place", list(range(len(book))), book, 0.0, offer=False), now, taken)
    for happenings, wanted, price in rounds:
        for step in happenings:
            now += step.number if step.verb == "wait" else 0.25
            apply(auction, step, now, taken)
        auction.refill(now, price)
        expected = best_first(auction, now, wanted, price)
        picks = auction.pick(now, wanted, price)
        assert same(picks, expected)
        auction.hold([pick.row for pick in picks], now + 3.0)
        taken.extend(picks)
        slots, busy = auction.gate.columns["slots"], auction.gate.columns["in_flight"]
        assert all(mine <= max(int(most), connections) for mine, most in zip(busy, slots, strict=True))


@settings(max_examples=150, deadline=None)
@given(
    rounds=st.lists(st.tuples(st.lists(steps, max_size=5), st.integers(0, 6)), max_size=8),
    connections=st.integers(1, 3),
)
def test_offers_join_the_pool_without_a_refill(rounds: list[tuple[list[Step], int]], connections: int) -> None:
    """As long as everything is offered and bids stand still, no refill is needed at all."""
    auction = Auction(HostGate(0.0, connections))
    now = 10.0
    taken: list[Pick] = []
    for happenings, wanted in rounds:
        for step in happenings:
            step.offer = True
            step.facts = [(amplitude, 0.0, 0.0, Shape.CONSTANT, host) for amplitude, _, _, _, host in step.facts]
            apply(auction, step, now, taken)
        expected = best_first(auction, now, wanted, PRICE)
        picks = auction.pick(now, wanted, PRICE)
        assert same(picks, expected)
        for pick in picks:  # fetched: it bids no more
            auction.withdraw(pick.row)
            auction.gate.give_back(pick.host, now)


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.sampled_from([0.5, 1.0, 2.0, 2.5]), max_size=60),
    wanted=st.integers(1, 70),
    order=st.randoms(use_true_random=False),
)
def test_first_in_order_is_a_sort_cut_short(values: list[float], wanted: int, order: Random) -> None:
    rows = list(range(100, 100 + len(values)))
    order.shuffle(rows)
    expected = sorted(range(len(values)), key=lambda i: (-values[i], rows[i]))[:wanted]
    found = first_in_order(np.array(values, dtype=np.float64), np.array(rows, dtype=np.int64), wanted)
    assert found.tolist() == expected


# -- by hand


def test_ties_go_to_the_lower_row_however_many_there_are() -> None:
    auction = Auction(HostGate(1.0))
    rows = np.random.default_rng(3).permutation(3000)
    hosts = np.arange(3000)
    auction.place(rows, Bids.build(np.full(3000, 2.0)), hosts.astype(np.uint32), offer=False)
    auction.refill(0.0, PRICE)
    assert [pick.row for pick in auction.pick(0.0, 10, PRICE)] == list(range(10))
    assert [pick.row for pick in auction.pick(0.0, 500, PRICE)] == list(range(10, 510))


def test_wanting_more_than_there_is() -> None:
    auction = Auction(HostGate(0.0, 10))
    assert auction.pick(0.0, 5, PRICE) == []
    assert auction.refill(0.0, PRICE) == 0
    place(auction, [0, 1, 2], [0, 0, 0], [2.0, 1.0, 0.9])
    assert [pick.row for pick in auction.pick(0.0, 1000, PRICE)] == [0, 1]
    assert auction.pick(0.0, 1000, PRICE) == []
    assert auction.pick(0.0, 0, PRICE) == auction.pick(0.0, -3, PRICE) == []


def test_a_host_with_several_slots_gets_no_more_than_these() -> None:
    auction = Auction(HostGate(0.0, 3))
    place(auction, list(range(20)), [0] * 20, 2.0)
    assert len(auction.pick(0.0, 20, PRICE)) == 3
    assert auction.pick(0.0, 20, PRICE) == []
    auction.gate.give_back(0, 0.0)
    assert [pick.row for pick in auction.pick(0.0, 20, PRICE)] == [3]


def test_a_full_host_does_not_stand_in_the_way_of_others() -> None:
    auction = Auction(HostGate(0.0, 2))
    place(auction, list(range(2000)), [0] * 1990 + [1] * 10, [3.0] * 1990 + [1.5] * 10)
    auction.refill(0.0, PRICE)
    assert [pick.host for pick in auction.pick(0.0, 4, PRICE)] == [0, 0, 1, 1]


def test_a_withdrawn_bid_does_not_block_its_host() -> None:
    auction = Auction(HostGate(1.0))
    place(auction, [0, 1], [0, 0], [3.0, 2.0])
    auction.refill(0.0, PRICE)
    auction.withdraw(0)
    assert [pick.row for pick in auction.pick(0.0, 5, PRICE)] == [1]


def test_a_held_row_does_not_block_its_host_and_comes_back() -> None:
    auction = Auction(HostGate(0.0))
    place(auction, [0, 1], [0, 0], [3.0, 2.0])
    auction.refill(0.0, PRICE)
    auction.hold([0], until=5.0)
    assert [pick.row for pick in auction.pick(0.0, 5, PRICE)] == [1]
    auction.gate.give_back(0, 0.0)
    assert auction.pick(4.999, 5, PRICE) == []
    assert [pick.row for pick in auction.pick(5.0, 5, PRICE)] == [0]


def test_a_row_offered_twice_is_picked_once() -> None:
    auction = Auction(HostGate(0.0, 4))
    place(auction, [0, 1], [0, 0], 2.0)
    auction.refill(0.0, PRICE)
    place(auction, [0], [0], 1.5)
    picks = auction.pick(0.0, 4, PRICE)
    assert [(pick.row, pick.value) for pick in picks] == [(1, 2.0), (0, 1.5)]
    auction.hold([0, 1], until=0.0)  # fetched, and due again some day: no copy of the old bid may be left
    place(auction, [0, 1], [0, 0], 1.0, shape=Shape.LINEAR, rate=0.01, offer=False)
    assert auction.pick(1.0, 4, PRICE) == []


def test_offered_again_a_row_has_its_turn_at_once() -> None:
    auction = Auction(HostGate(1.0))
    place(auction, [0, 1], [0, 0], [3.0, 2.0])
    auction.refill(0.0, PRICE)
    (pick,) = auction.pick(0.0, 5, PRICE)
    auction.offer_again([pick.row])
    auction.gate.cancel(pick.host, 0.0)
    assert auction.pick(0.0, 5, PRICE) == [pick]


def test_the_weight_of_a_host_moves_its_bids_back_but_not_below_the_price() -> None:
    auction = Auction(HostGate(1.0))
    place(auction, [0, 1], [0, 1], [2.0, 1.5])
    auction.gate.columns["weight"][0] = 0.125
    auction.refill(0.0, PRICE)
    assert [(pick.row, pick.value) for pick in auction.pick(0.0, 5, PRICE)] == [(1, 1.5), (0, 2.0)]


def test_what_is_not_a_number_is_never_picked() -> None:
    auction = Auction(HostGate(0.0, 4))
    place(auction, [0, 1, 2], [0, 0, 0], [float("nan"), 1.5, 2.0])
    auction.refill(0.0, PRICE)
    assert [pick.row for pick in auction.pick(0.0, 4, PRICE)] == [2, 1]


def test_the_values_of_all_bids() -> None:
    auction = Auction(HostGate(1.0))
    place(auction, [0, 1, 3], [0, 0, 1], [2.0, 0.0, 1.0], shape=Shape.LINEAR, rate=0.5, since=10.0)
    auction.gate.columns["weight"][0] = 0.5
    assert auction.values(14.0, np.array([3, 0, 1])).tolist() == [2.0, 4.0, 0.0]
    rows, values = auction.best(14.0, 5)
    assert (rows.tolist(), values.tolist()) == ([0, 3], [4.0, 2.0])  # in line they are alike
    assert auction.best(14.0, 1)[0].tolist() == [0]
    assert auction.best(10.0, 5)[0].tolist() == []  # worth nothing yet


@pytest.mark.parametrize(("delay_s", "connections"), [(1.0, 1), (0.0, 3)])
def test_nobody_starves_when_the_pool_overflows(delay_s: float, connections: int) -> None:
    auction = Auction(HostGate(delay_s, connections))
    auction.POOL_PER_HOST, auction.POOL_FAST_HOST, auction.POOL_TOTAL = 2, 4, 12
    rng = np.random.default_rng(7)
    rows = np.arange(300)
    hosts = rng.integers(0, 5, 300).astype(np.uint32)
    auction.place(rows[:250], Bids.build(1 + rng.random(250)), hosts[:250], offer=False)
    seen: list[int] = []
    now = 0.0
    for turn in range(400):
        auction.refill(now, PRICE)
        if turn == 20:  # more than the pool can take, in the middle of things
            auction.place(rows[250:], Bids.build(1 + rng.random(50)), hosts[250:])
            assert auction.left_out > 0
        for pick in auction.pick(now, 7, PRICE):
            seen.append(pick.row)
            auction.withdraw(pick.row)
            auction.gate.give_back(pick.host, now)
        now += delay_s
    assert sorted(seen) == rows.tolist()


def test_left_out_counts_what_found_no_room() -> None:
    auction = Auction(HostGate(1.0))
    place(auction, list(range(100)), [0] * 50 + [1] * 50, [2.0] * 90 + [0.5] * 10, offer=False)
    kept = auction.refill(0.0, PRICE)
    assert kept == 2 * Auction.POOL_PER_HOST
    assert auction.left_out == 90 - kept


def test_the_pool_holds_what_a_host_can_serve_until_the_next_refill() -> None:
    gate = HostGate(0.05)
    auction = Auction(gate, refill_every_s=2.0)
    place(auction, list(range(500)), [0] * 500, 2.0, offer=False)
    auction.refill(0.0, PRICE)
    served, now = 0, 0.0
    while now < 2.0:
        served += len(auction.pick(now, 9, PRICE))
        gate.give_back(0, now)
        now += 0.0501
    assert served == 40


def test_refills_come_in_time_and_do_not_cost_too_much() -> None:
    auction = Auction(HostGate(1.0), refill_every_s=2.0, upkeep_share=0.05)
    assert auction.refill_due(0.0)
    place(auction, [0], [0], 2.0)
    auction.refill(0.0, PRICE)
    auction._refill_took_s = 0.001
    assert not auction.refill_due(1.9)
    assert auction.refill_due(2.0)
    assert auction.refill_due(0.1, hungry=True)
    assert not auction.refill_due(0.05, hungry=True)
    auction._refill_took_s = 1.0
    assert not auction.refill_due(19.9, hungry=True)
    assert auction.refill_due(20.1)
    assert auction.refill_due(-5.0)  # the clock was set back


def test_the_same_book_gives_the_same_picks() -> None:
    def run() -> list[Pick]:
        auction = Auction(HostGate(1.0))
        rng = np.random.default_rng(1)
        rows = np.arange(5000)
        auction.place(rows, Bids.build(rng.choice([1.0, 1.5, 2.0], 5000)), rng.integers(0, 900, 5000).astype(np.uint32))
        auction.refill(0.0, PRICE)
        return auction.pick(0.0, 100, PRICE) + auction.pick(1.0, 2000, PRICE)

    assert run() == run()


def test_what_comes_next_is_the_best_in_line_and_nothing_where_nothing_bids_the_price() -> None:
    auction = Auction(HostGate(5.0))
    assert auction.peek(0.0, PRICE) is None
    place(auction, [0, 1, 2, 3], [0, 0, 1, 1], [2.0, 3.0, 2.5, 0.5])
    auction.gate.columns["weight"][0] = 0.5
    auction.refill(0.0, PRICE)
    assert auction.peek(0.0, PRICE) == Pick(2, 1, 2.5)  # 3.0 of a host that repeats itself comes later
    auction.hold([2], 100.0)
    assert auction.peek(0.0, PRICE) == Pick(1, 0, 3.0)
    assert [pick.row for pick in auction.pick(0.0, 9, PRICE)] == [1]
    assert auction.peek(0.0, PRICE) == Pick(0, 0, 2.0)  # it waits for its host
    auction.withdraw(0)
    assert auction.peek(0.0, PRICE) is None
    auction.refill(200.0, PRICE)
    assert auction.peek(200.0, PRICE) == Pick(2, 1, 2.5)


def test_what_comes_next_is_found_beyond_the_head_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Auction, "HEAD", 1)
    auction = Auction(HostGate(1.0))
    place(auction, [0, 1], [0, 1], [2.0, 3.0], offer=False)
    auction.refill(0.0, PRICE)
    assert [pick.row for pick in auction.pick(0.0, 1, PRICE)] == [1]
    assert auction.peek(0.0, PRICE) == Pick(0, 0, 2.0)
