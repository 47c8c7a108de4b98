"""The bars of `benchmarks/soak.py`: a check that cannot fail is none."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MB = 1e6


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import soak_judge

    return soak_judge


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import soak_watch

    return soak_watch


def two_hours(growth_mb: float, noise_mb: float, *, seed: int = 1, fetches_a_minute: int = 240) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "stretch": 1,
            "stretch_s": 60.0 * minute,
            "seconds": 60.0 * minute,
            "known": 5000 + minute,
            "coordinator_own": 120 * MB
            + 150.0 * minute
            + growth_mb * MB * minute / 60
            + noise_mb * MB * rng.standard_normal(),
            "fetches": {"new": fetches_a_minute * minute},
        }
        for minute in range(1, 121)
    ]


@pytest.mark.parametrize(
    ("growth", "half", "passed"),
    [
        (0.5, 0.4, True),
        (0.5, 1.5, None),  # level or not: nobody can say
        (-20.0, 24.0, None),
        (1.5, 0.4, False),
        (1.5, 2.0, False),  # it reaches to 0, and is narrow enough to count
        (26.6, 50.0, None),  # too noisy
        (26.6, 20.0, False),  # wide, and surely above 0
    ],
)
def test_growth_passes_only_where_it_is_known_to_be_small(
    judge: ModuleType, growth: float, half: float, passed: bool | None
) -> None:
    assert judge.judge_growth(growth * MB, half * MB) is passed


def test_growth_of_30_mb_an_hour_never_passes_however_noisy(judge: ModuleType) -> None:
    for noise_mb in (0.1, 3.0, 30.0, 100.0):
        for seed in range(5):
            fit = judge.fit_growth(two_hours(30.0, noise_mb, seed=seed), "coordinator_own", judge.URL_BYTES)
            assert fit["passed"] is not True


def test_level_memory_passes_and_noise_is_called_so(judge: ModuleType) -> None:
    level = judge.fit_growth(two_hours(0.3, 0.3), "coordinator_own", judge.URL_BYTES)
    assert level["passed"] is True
    noisy = judge.fit_growth(two_hours(0.3, 30.0), "coordinator_own", judge.URL_BYTES)
    assert (noisy["passed"], noisy["why"]) == (None, "too noisy")
    short = judge.fit_growth(two_hours(0.3, 0.3)[:12], "coordinator_own", judge.URL_BYTES)
    assert (short["passed"], short["why"]) == (None, "too short")


def test_growth_is_told_by_fetch(judge: ModuleType) -> None:
    fit = judge.fit_growth(two_hours(5.0, 0.01, fetches_a_minute=240), "coordinator_own", judge.URL_BYTES)
    assert fit["bytes_a_fetch"] == pytest.approx(5.0 * MB / (60 * 240), rel=0.01)


def test_what_nobody_can_say_of_one_is_not_passed_by_all(judge: ModuleType) -> None:
    assert judge.all_of([True, True]) is True
    assert judge.all_of([True, None]) is None
    assert judge.all_of([True, None, False]) is False
    assert judge.all_of([]) is None


def test_nobody_is_promised_more_than_ten_intervals(judge: ModuleType, watch: ModuleType) -> None:
    assert watch.promise(300.0, 0.2) == 300.0
    assert watch.promise(300.0, 4.0) == 1200.0
    assert watch.promise(300.0, 974.0) == 3000.0
    waits = {"longest_s": 6000.0, "interval_s": 300.0, "promised_s": watch.promise(300.0, 974.0), "over": 1, "count": 9}
    (verdict,) = judge.judge_waits([{"seconds": 7000.0, "price": 974.0, "waits": {"refresh": waits}}])
    assert verdict["passed"] is False


def samples_of_windows(judge: ModuleType, announced: int, drawn: int) -> list[dict[str, Any]]:
    lots = dict.fromkeys(judge.LOTS, 20) | {"lot: announced": drawn}
    return [
        {
            "seconds": 60.0 * minute,
            "fetches": {"new": 400 * minute, "refresh": 400 * minute, "hub": 400 * minute},
            "explored": Counter({name: count * minute for name, count in lots.items()}),
            "states": {"new": 50},
            "announced": announced,
        }
        for minute in range(1, 31)
    ]


@pytest.mark.parametrize(("announced", "drawn", "passed"), [(5, 0, False), (5, 1, True), (0, 0, True)])
def test_the_lot_of_announced_pages_is_missed_where_there_are_such_pages(
    judge: ModuleType, announced: int, drawn: int, passed: bool
) -> None:
    windows = judge.tabulate_windows(samples_of_windows(judge, announced, drawn), 0.05)
    assert judge.all_of(window["passed"] for window in windows[1:]) is passed
    assert passed or all("lot: announced" in window["missing"] for window in windows[1:])


def test_samples_have_the_least_of_the_peeks(watch: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([130, 120, 180, 121])
    monkeypatch.setattr(watch, "own_bytes", lambda _pid: next(readings))
    processes = watch.Processes()
    processes.follow(os.getpid())
    process = processes.crawl
    monkeypatch.setattr(processes, "tree", lambda: [process])
    for _ in range(3):
        processes.peek()
    taken = processes.take()
    assert taken["coordinator_own"] == 120
    assert taken["crawl_cpu_s"] > 0.0


def test_a_soak_of_which_nothing_can_be_said_has_not_passed(judge: ModuleType) -> None:
    rows = [
        {
            "seconds": 20.0 * nth,
            "at": 20.0 * nth,
            "stretch": 1,
            "stretch_s": 20.0 * nth,
            "known": 100,
            "coordinator_own": 1e8 + nth * 1e7,
            "workers_own": 1e8,
            "serve_own": 1e8,
            "fetches": {"new": 3 * nth},
            "explored": {},
            "states": {"new": 5},
            "waits": {},
            "price": 1.0,
        }
        for nth in range(1, 20)
    ]
    about: dict[str, Any] = {"options": {"probe_share": 0.05}, "incidents": []}
    assert judge.judge(rows, [], about, {"bytes_a_url": 1.0}, {"bytes_a_url": 1.0})["passed"] is None
    about["incidents"] = ["the crawl ended by itself"]
    assert judge.judge(rows, [], about, {"bytes_a_url": 1.0}, {"bytes_a_url": 1.0})["passed"] is False
