"""How many fetches for the same quality? The budget at which a policy loses as little as another does with less."""

from __future__ import annotations

import math
from collections.abc import Mapping

LEAST_BP = 1e-9


def budget_to_reach(losses: Mapping[float, float], target_bp: float) -> float:
    """The least budget from which on a policy loses at most `target_bp`; infinite where none of the budgets is enough.

    Between two budgets the logarithm of the loss is taken to be straight in that of the budget. A policy that is good
    enough with the least budget of all gets that one.

    >>> budget_to_reach({0.01: 40.0, 0.04: 10.0}, 20.0), budget_to_reach({0.01: 40.0, 0.04: 10.0}, 5.0)
    (0.02, inf)
    """
    places = sorted(losses)
    if not places or math.isnan(target_bp) or losses[places[-1]] > target_bp:
        return math.inf
    enough = places[-1]
    for low, high in zip(reversed(places[:-1]), reversed(places[1:]), strict=True):
        if losses[low] > target_bp:
            above, below = (math.log(max(losses[place], LEAST_BP)) for place in (low, high))
            part = (above - math.log(max(target_bp, LEAST_BP))) / (above - below) if above > below else 1.0
            return round(float(low * (high / low) ** min(max(part, 0.0), 1.0)), 12)
        enough = low
    return enough
