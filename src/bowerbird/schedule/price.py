"""The price of a fetch, and the rate at which fetches are made.

The best bids go first, as many as the budget allows: that is decided without a price. The price says at which bid the
budget ends: what one more fetch would gain.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence


class Price:
    """The shadow price omega of one fetch: it moves towards what the least of the last fetches bid.

    While less is fetched than the budget allows, one more fetch would gain nothing: then it falls to the reserve.
    Without a budget the reserve is the price.

    >>> price = Price(reserve=1.0, budget_per_s=10)
    >>> price.observe([], 0.0, pressed=True); price.observe([7.0] * 50, 10.0, pressed=True)
    >>> round(price.value, 6)
    7.0
    """

    SIGHT_S = 10.0  # of the budget, that the last fetches are
    FEWEST = 20
    LEAST = 0.05  # of the last fetches bid less: chance has a part in the very least

    def __init__(self, reserve: float = 1.0, budget_per_s: float | None = None, response_s: float = 3.0) -> None:
        self.reserve = reserve
        self.budget_per_s = budget_per_s
        self.response_s = response_s  # in which it moves by a factor of e at most
        self.value = reserve
        self._taken: deque[float] = deque(maxlen=max(self.FEWEST, round(self.SIGHT_S * (budget_per_s or 0.0))))
        self._last: float | None = None

    def observe(self, taken: Sequence[float], now: float, *, pressed: bool) -> None:
        """Fetches that bid so much were begun since the last call; `pressed` if only the budget kept others back."""
        if self.budget_per_s is None:
            return
        self._taken.extend(bid for bid in taken if math.isfinite(bid))
        elapsed = 0.0 if self._last is None else now - self._last  # less than 0 where the clock was set back
        self._last = now
        target = self.reserve
        if pressed:
            target = sorted(self._taken)[int(self.LEAST * len(self._taken))] if self._taken else self.value
        most = max(elapsed, 0.0) / self.response_s
        step = math.log(max(target, self.reserve) / self.value)
        self.value = max(self.reserve, self.value * math.exp(max(-most, min(step, most))))

    def convert(self, times: float) -> None:
        """Bids are in another unit from now on: so many times what they were."""
        kept = [bid * times for bid in self._taken]
        self.reset(self.value * times)
        self._taken.extend(bid for bid in kept if math.isfinite(bid))

    def reset(self, value: float) -> None:
        """Begin with this price."""
        if math.isfinite(value):
            self.value = max(self.reserve, value)
        self._taken.clear()


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
