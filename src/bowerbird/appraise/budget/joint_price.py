"""The price at which refreshes and hub visits together use what the settings give them, wherever that gains most.

It is the unit of bids: at this price a crawl without a budget of its own revisits pages and hubs as often as their
intervals say on average, and with a budget that is short the price rises above it, for all kinds alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.refresh_gain import refresh_due
from bowerbird.model.bid import Shape

F64 = npt.NDArray[np.float64]

_STEPS = 60
_NEAR = 0.01  # of all that is asked at a bound
_SAMPLE = 1 << 16


@dataclass(frozen=True, slots=True)
class Revisits:
    """Bids in clicks of one kind: amplitude and rate by item, one shape, and the fetches a second meant for them."""

    amplitude: F64
    rate_per_s: F64
    shape: Shape
    budget_per_s: float
    longest_s: float
    horizon_s: float = math.inf  # gains of area bids count up to that
    most_changes: F64 | None = None  # of area bids: missed changes that take all that a page has at stake
    most: F64 | None = None  # by item, what a visit can gain at all; None = its amplitude


def due_ages(revisits: Revisits, price: float) -> F64:
    """[BEYOND] I(omega): the age at which each bid reaches the price; infinite where it never does."""
    from bowerbird.appraise.hubs.gains import saturating_gains_inverse  # compiled code loads slowly

    age = np.full(len(revisits.amplitude), np.inf)
    able = (revisits.amplitude > 0) & (revisits.rate_per_s > 0)
    share = price / revisits.amplitude[able]
    if revisits.shape is Shape.LINEAR:
        x = share
    elif revisits.shape is Shape.AREA:
        most = np.inf if revisits.most_changes is None else revisits.most_changes[able]
        x = refresh_due(share, revisits.rate_per_s[able] * revisits.horizon_s, most)
    else:
        x = np.full(len(share), np.inf)
        some = share < 1.0
        x[some] = saturating_gains_inverse(share[some])
    age[able] = x / revisits.rate_per_s[able]
    return age


def clear_together(kinds: Sequence[Revisits], shortest_s: float) -> float:
    """[BEYOND] The price omega with sum of 1/I(omega) over all kinds = the sum of their budgets; 0 where none bids.

    Where the bounds of the intervals ask for more than that at any price, or for less, it is the price at which they
    just begin to.
    """
    budget = sum(kind.budget_per_s for kind in kinds)
    bidding = [kind for kind in kinds if (kind.amplitude > 0).any()]
    if not bidding or budget <= 0:
        return 0.0
    parts = [(_thin(kind), len(kind.amplitude)) for kind in bidding]  # every so many-th of a long list
    idle = sum(len(kind.amplitude) / kind.longest_s for kind in kinds if not (kind.amplitude > 0).any())

    def asked(price: float) -> float:
        total = idle
        for part, many in parts:
            age = due_ages(part, price)
            if part.most is not None:
                age[part.most < price] = np.inf
            age = np.clip(age, shortest_s, max(part.longest_s, shortest_s))
            total += many / len(age) * float((1.0 / age).sum())
        return total

    tops = [float(kind.amplitude.max()) for kind in bidding]
    low, high = math.log(max(min(tops), 1e-30)) - 60.0, math.log(max(tops)) + 60.0
    most, least = asked(math.exp(low)) * (1.0 - _NEAR), asked(math.exp(high)) * (1.0 + _NEAR)
    if least >= most:
        return float(np.median(np.concatenate([kind.amplitude[kind.amplitude > 0] for kind in bidding])))
    budget = min(max(budget, least), most)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if asked(math.exp(middle)) > budget:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


def _thin(kind: Revisits) -> Revisits:
    stride = max(len(kind.amplitude) // _SAMPLE, 1)
    changes, most = (None if column is None else column[::stride] for column in (kind.most_changes, kind.most))
    amplitude, rate = kind.amplitude[::stride], kind.rate_per_s[::stride]
    return replace(kind, amplitude=amplitude, rate_per_s=rate, most_changes=changes, most=most)
