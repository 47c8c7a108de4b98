"""Lazy greedy: gains only shrink as pages are covered, so most pages need not be weighed again to see who leads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bowerbird.appraise.seeds.lazy_kernels import find_rivals
from bowerbird.appraise.seeds.problem import F64, I64

Weigh = Callable[[I64], tuple[F64, F64]]
FIRST_RIVALS = 64
_TAKEN, _ASIDE = -1, -2  # where the time of weighing is for the others


class LazyGains:
    """What every page would add, as far as it is known; brought up to date only where that can matter.

    `weigh` tells of pages what each would add now, and how much of that is below zero. Gains that differ by no more
    than `rounding` are equal.
    """

    def __init__(self, count: int, weigh: Weigh, rounding: float = 0.0) -> None:
        self._weigh = weigh
        self._rounding = rounding
        self._value, self._below = (column.copy() for column in weigh(np.arange(count)))
        self._since = np.zeros(count)
        self._weighed = np.zeros(count, np.int32)
        self._now = 0
        self._lost = 0.0
        self._rivals, self._most = np.empty(count, np.int64), np.empty(count)

    def best(self) -> tuple[int, float]:
        """The page that adds most, the lowest of equals, and what it adds; (-1, 0) where there is none left."""
        at_once = FIRST_RIVALS
        while True:
            page, found = find_rivals(
                self._value,
                self._below,
                self._since,
                self._weighed,
                self._now,
                self._lost,
                self._rounding,
                self._rivals,
                self._most,
            )
            if not found:
                return (page, float(self._value[page])) if page >= 0 else (-1, 0.0)
            rivals = self._rivals[:found]
            if found > at_once:
                rivals = rivals[largest(self._most[:found], at_once)]
            self._update(np.sort(rivals))
            at_once *= 2  # where many are outdated, the leader is far down: fewer and larger steps

    def leaders(self, count: int) -> tuple[I64, F64]:
        """About `count` pages that add most, ascending, and what each adds; the one that adds most is among them."""
        page, _ = self.best()
        if page < 0:
            return np.zeros(0, np.int64), np.zeros(0)
        hope = np.where(self._weighed < 0, -np.inf, self._value)
        pages = np.union1d(largest(hope, count), [page])
        pages = pages[self._weighed[pages] >= 0]
        self._update(pages[self._weighed[pages] != self._now])
        return pages, self._value[pages]

    def note_taken(self, page: int, below: float) -> None:
        """`page` is a seed now, by which pages of so much below zero were covered."""
        self._weighed[page] = _TAKEN
        self._value[page] = self._below[page] = 0.0  # it adds nothing any more
        self._lost += below
        self._now += 1

    def put_aside(self, pages: I64) -> None:
        """These are not to be chosen, until they are admitted again."""
        self._weighed[pages] = _ASIDE

    def admit_again(self) -> None:
        """What was put aside can be chosen once more; to be called after `note_taken`."""
        self._weighed[self._weighed == _ASIDE] = self._now - 1

    def most(self, k: int, *, exactly: bool = False) -> float:
        """[BEYOND] f(best k) <= f(S) + the k largest gains beside S, for any S: here these gains, of what is above 0.

        Outdated gains are too large, never too small; `exactly` brings those that count up to date.
        """
        if k <= 0 or not len(self._value):
            return 0.0
        at_once = FIRST_RIVALS
        while True:
            gain = self._value + self._below
            top = largest(gain, k)
            outdated = (self._weighed[top] != self._now) & (self._weighed[top] >= 0)
            if not exactly or not outdated.any():
                return float(gain[top].sum())
            gain[(self._weighed == self._now) | (self._weighed < 0)] = -np.inf
            further = largest(gain, at_once)
            self._update(np.sort(further[np.isfinite(gain[further])]))
            at_once *= 2

    def _update(self, pages: I64) -> None:
        self._value[pages], self._below[pages] = self._weigh(pages)
        self._since[pages] = self._lost
        self._weighed[pages] = self._now


def largest(values: F64, k: int) -> I64:
    """Where the k largest are, in any order."""
    if k >= len(values):
        return np.arange(len(values))
    found: I64 = np.argpartition(values, len(values) - k)[len(values) - k :]
    return found
