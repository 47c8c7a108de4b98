"""The price of a fetch follows the budget: spending too fast raises it, too slowly lowers it."""

from __future__ import annotations

import math


class Price:
    """The shadow price omega of one fetch, by a dual step on spending; never below the reserve.

    With no budget the reserve is the price: whatever bids that much is fetched.

    >>> price = Price(reserve=1.0, budget_per_s=10)
    >>> price.observe(spent=0, now=0.0); price.observe(spent=400, now=10.0)
    >>> price.value > 1.0
    True
    """

    FETCHES_IN_SIGHT = 10

    def __init__(self, reserve: float = 1.0, budget_per_s: float | None = None, response_s: float = 30.0) -> None:
        self.reserve = reserve
        self.budget_per_s = budget_per_s
        self.response_s = response_s
        self.value = reserve
        self._last: float | None = None
        self._spent = 0

    def observe(self, spent: int, now: float) -> None:
        """`spent` fetches were made since the last call."""
        if self.budget_per_s is None:
            return
        if self._last is None or now < self._last:  # the first call, or the clock was set back
            self._last = now
            return
        self._spent += spent
        elapsed = now - self._last
        if elapsed == 0:
            return
        spent, self._spent, self._last = self._spent, 0, now
        # linear in what was spent, so that small budgets are met too; over a time in which some fetches fall due
        span_s = max(self.response_s, self.FETCHES_IN_SIGHT / self.budget_per_s)
        step = (spent / self.budget_per_s - elapsed) / span_s
        self.value = max(self.reserve, self.value * math.exp(max(-1.0, min(step, 1.0))))

    def reset(self, value: float) -> None:
        """Bids are in another unit from now on: begin with this price."""
        if math.isfinite(value):
            self.value = max(self.reserve, value)


class Allowance:
    """Fetches that may be made now at a rate per second: a bucket that holds one second's worth."""

    def __init__(self, rate_per_s: float | None, now: float) -> None:
        self.rate_per_s = rate_per_s
        self._tokens = 1.0
        self._last = now

    def available(self, now: float, wanted: int) -> int:
        """How many of `wanted` fetches may start."""
        if self.rate_per_s is None:
            return wanted
        elapsed = max(now - self._last, 0.0)  # a clock that was set back takes nothing away
        self._tokens = min(self._tokens + elapsed * self.rate_per_s, max(1.0, self.rate_per_s))
        self._last = now
        return min(wanted, int(self._tokens))

    def spend(self, fetches: int) -> None:
        """So many were started."""
        if self.rate_per_s is not None:
            self._tokens -= fetches
