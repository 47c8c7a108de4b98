"""Clocks: only they know the time."""

from __future__ import annotations

import time

import pytest

from bowerbird.model.clock import ManualClock, ScaledClock, WallClock


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
