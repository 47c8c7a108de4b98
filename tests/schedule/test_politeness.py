"""The gate: who may be asked now, and how many times at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.schedule.politeness import HostGate


def gate_of(hosts: int, delay_s: float = 1.0, connections: int = 1) -> HostGate:
    gate = HostGate(delay_s, connections)
    gate.extend(hosts)
    return gate


def test_the_delay_counts_from_the_end_of_a_fetch() -> None:
    gate = gate_of(1, delay_s=2.0)
    gate.take(0, 100.0)
    assert gate.free(150.0).tolist() == [0]  # still in flight
    gate.give_back(0, 150.0)
    assert gate.free(151.99).tolist() == [0]
    assert gate.free(152.0).tolist() == [1]


def test_a_delay_allows_one_connection_whatever_was_asked_for() -> None:
    assert gate_of(1, delay_s=0.5, connections=8).free(0.0).tolist() == [1]
    gate = gate_of(2, delay_s=0.0, connections=8)
    assert gate.free(0.0).tolist() == [8, 8]
    gate.set_delay(1, 0.5)
    assert gate.free(0.0).tolist() == [8, 1]
    gate.set_delay(1, 0.0)
    assert gate.free(0.0).tolist() == [8, 8]


def test_a_delay_that_comes_while_several_are_in_flight() -> None:
    gate = gate_of(1, delay_s=0.0, connections=3)
    for _ in range(3):
        gate.take(0, 0.0)
    gate.set_delay(0, 10.0)
    for ended in (1.0, 2.0):
        gate.give_back(0, ended)
        assert gate.free(100.0).tolist() == [0]
    gate.give_back(0, 3.0)
    assert gate.free(12.9).tolist() == [0]
    assert gate.free(13.0).tolist() == [1]


@given(ours=st.floats(0.0, 100.0), theirs=st.floats(-5.0, 1000.0))
def test_a_crawl_delay_is_never_below_ours(ours: float, theirs: float) -> None:
    gate = gate_of(1, delay_s=ours)
    gate.set_delay(0, theirs)
    assert gate.delay(0) == pytest.approx(max(ours, theirs), rel=1e-6)


def test_hosts_known_later_start_with_our_delay_and_full_weight() -> None:
    gate = gate_of(1, delay_s=3.0)
    gate.set_delay(0, 9.0)
    gate.extend(1000)
    gate.extend(10)  # never fewer
    assert len(gate) == 1000
    assert gate.delay(0) == 9.0
    assert (gate.delay(999), gate.columns["weight"][999], gate.free(0.0)[999]) == (3.0, 1.0, 1)


def test_holds_only_lengthen_and_release_ends_them() -> None:
    gate = gate_of(1)
    gate.hold(0, 50.0)
    gate.hold(0, 20.0)
    assert gate.free(49.0).tolist() == [0]
    assert gate.free(50.0).tolist() == [1]
    gate.hold(0, math.inf)
    assert gate.free(1e12).tolist() == [0]
    gate.release(0, 60.0)
    assert gate.free(60.0).tolist() == [1]
    assert gate.waiting(60.0) == 0


def test_a_cancelled_fetch_leaves_no_trace() -> None:
    gate = gate_of(1, delay_s=5.0)
    gate.take(0, 100.0)
    gate.cancel(0, 100.0)
    assert gate.free(100.0).tolist() == [1]
    assert gate.waiting(100.0) == 0


@settings(max_examples=150)
@given(
    moves=st.lists(st.tuples(st.sampled_from(["take", "end"]), st.integers(0, 2), st.sampled_from([0.0, 0.4, 1.0]))),
    delay_s=st.sampled_from([0.0, 0.5, 1.0]),
    connections=st.integers(1, 3),
)
def test_no_host_is_asked_too_often_or_too_soon(
    moves: list[tuple[str, int, float]], delay_s: float, connections: int
) -> None:
    gate = gate_of(3, delay_s, connections)
    now = 0.0
    open_fetches = [0, 0, 0]
    last_end = [-math.inf] * 3
    for verb, host, wait in moves:
        now += wait
        if verb == "end" and open_fetches[host]:
            gate.give_back(host, now)
            open_fetches[host] -= 1
            last_end[host] = now
        elif verb == "take" and gate.free(now)[host]:
            gate.take(host, now)
            open_fetches[host] += 1
            assert open_fetches[host] <= (1 if delay_s > 0 else connections)
            assert now >= last_end[host] + delay_s
        assert gate.columns["in_flight"].tolist() == open_fetches
        expected = sum(
            count > 0 or ready > now for count, ready in zip(open_fetches, gate.columns["ready_at"], strict=True)
        )
        assert gate.waiting(now) == expected
