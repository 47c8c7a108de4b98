"""Time is passed in. Only the clock differs between a live crawl, a test and a replay."""

from __future__ import annotations

import time
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


class ShiftedClock:
    """The machine's clock, put right by another: so many seconds later."""

    def __init__(self, ahead_s: float = 0.0) -> None:
        self.ahead_s = ahead_s

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time() + self.ahead_s


class ScaledClock:
    """The machine's clock, sped up: `speed` seconds pass for each real one, starting at `start_s`."""

    def __init__(self, speed: float = 1.0, start_s: float | None = None) -> None:
        self.speed = speed
        self._zero_s = time.time()
        self._start_s = self._zero_s if start_s is None else start_s

    def now(self) -> float:
        """Virtual seconds since 1970."""
        return self._start_s + (time.time() - self._zero_s) * self.speed
