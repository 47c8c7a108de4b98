"""Clocks: only they know the time."""

from __future__ import annotations

import time

import pytest

from bowerbird.model.clock import FollowingClock, ManualClock, ScaledClock, WallClock


def test_the_wall_clock_is_the_machine_s() -> None:
    before = time.time()
    now = WallClock().now()
    assert before <= now <= time.time()


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(100.0)
    assert clock.now() == clock.now() == 100.0
    clock.advance(2.5)
    assert clock.now() == 102.5


def test_a_scaled_clock_starts_where_it_is_told_and_runs_at_its_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = 1000.0
    monkeypatch.setattr(time, "time", lambda: real)
    clock = ScaledClock(60.0, start_s=5.0)
    assert clock.now() == 5.0
    real += 2.0
    assert clock.now() == pytest.approx(125.0)


def test_a_scaled_clock_starts_now_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1234.5)
    assert ScaledClock(3.0).now() == 1234.5


def test_a_following_clock_keeps_to_another_whatever_this_machine_s_says(monkeypatch: pytest.MonkeyPatch) -> None:
    steady, there = ManualClock(50.0), ManualClock(9000.0)
    clock = FollowingClock(there.now, steady.now)
    monkeypatch.setattr(time, "time", lambda: 7.0)
    steady.advance(1.5)
    assert clock.now() == 9001.5


def test_a_following_clock_goes_forward_evenly_and_catches_up() -> None:
    """The other one is a second fast every ten: no wait may become shorter by more than a little."""
    steady, there = ManualClock(), ManualClock(1000.0)
    clock = FollowingClock(there.now, steady.now)
    for nth in range(200):
        before = clock.now()
        steady.advance(1.0)
        there.advance(1.0 + (0.1 if nth < 10 else 0.0))
        clock.follow()
        assert 0.999 < clock.now() - before < 1.001
    for _ in range(3000):
        steady.advance(1.0)
        there.advance(1.0)
        clock.follow()
    assert clock.now() == pytest.approx(there.now(), abs=0.001)


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0])
def test_a_following_clock_is_set_when_the_other_was(set_by_s: float) -> None:
    steady, there = ManualClock(), ManualClock(10_000.0)
    clock = FollowingClock(there.now, steady.now)
    steady.advance(1.0)
    there.advance(1.0 + set_by_s)
    clock.follow()
    assert clock.now() == 10_001.0  # it was read lately
    steady.advance(FollowingClock.EVERY_S)
    there.advance(FollowingClock.EVERY_S)
    clock.follow()
    assert clock.now() == there.now()
