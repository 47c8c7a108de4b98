"""Time is passed in. Only the clock differs between a live crawl, a test and a replay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Says what time it is, in seconds since 1970."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""


class WallClock:
    """The machine's clock.

    >>> WallClock().now() > 1.7e9
    True
    """

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()


class ManualClock:
    """A clock that stands still until it is told to move.

    >>> clock = ManualClock(100.0)
    >>> clock.advance(5)
    >>> clock.now()
    105.0
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        """The time it was last set to."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move forward."""
        self._now_s += seconds


class FollowingClock:
    """Another machine's clock, read now and then; in between, the steady clock of this one counts the seconds.

    What this machine's own clock says does not matter. Small differences are made up so slowly that nothing that is
    waited for comes too soon by more than a two-thousandth; a large one is taken over at once: that clock was set.

    >>> steady, there = ManualClock(), ManualClock(1000.0)
    >>> clock = FollowingClock(there.now, steady.now)
    >>> steady.advance(20.0); there.advance(20.5); clock.follow()
    >>> clock.now()
    1020.0
    >>> steady.advance(10.0); there.advance(10.0)
    >>> clock.now()
    1030.005
    """

    EVERY_S = 10.0
    AT_MOST = 0.0005  # seconds that are made up in each
    SET_S = 5.0

    def __init__(self, read: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._steady = steady
        self._state = (steady(), self._measure(), 0.0)  # since when, how far ahead of the steady one, what is missing

    def _measure(self) -> float:
        """How far that clock is ahead; by the quickest answer of three, which says it best."""
        found = []
        for _ in range(3):
            before = self._steady()
            said = self._read()
            after = self._steady()
            found.append((after - before, said - (before + after) / 2))
        return min(found)[1]

    def _ahead(self, at: float) -> float:
        since, ahead, missing = self._state
        most = self.AT_MOST * (at - since)
        return ahead + min(max(missing, -most), most)

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        at = self._steady()
        return at + self._ahead(at)

    def follow(self) -> None:
        """Read it again, unless that was done lately."""
        at = self._steady()
        if at - self._state[0] < self.EVERY_S:
            return
        measured, ahead = self._measure(), self._ahead(at)
        missing = measured - ahead
        self._state = (at, measured, 0.0) if abs(missing) > self.SET_S else (at, ahead, missing)


class ScaledClock:
    """The machine's clock, sped up: `speed` seconds pass for each real one, starting at `start_s`."""

    def __init__(self, speed: float = 1.0, start_s: float | None = None) -> None:
        self.speed = speed
        self._zero_s = time.time()
        self._start_s = self._zero_s if start_s is None else start_s

    def now(self) -> float:
        """Virtual seconds since 1970."""
        return self._start_s + (time.time() - self._zero_s) * self.speed
