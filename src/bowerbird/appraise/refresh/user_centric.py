"""User-centric refresh: a page is worth what its changes do to the answers that searchers get.

The three differ in how the loss grows with age: linear is the paper's priority, area the best index under that same
loss, saturating the best index where a page can be no staler than changed. All rates are those of changes, so that what
sites say of changes can move the age.
"""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.refresh.bids import RefreshBids, RefreshOptions
from bowerbird.appraise.refresh.forecast import Forecast
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.model.bid import Shape

SLOWEST_PER_S = 1e-12  # changes; one in 30,000 years
NOBODY = "nothing is known yet of what searchers see: all pages weigh the same"


def bid_linear(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[UC05] P(p, t) = forecast of dQ/(t - LastRefresh) · (t - LastRefresh), per cost of a fetch."""
    changes = np.maximum(forecast.changes_per_s, SLOWEST_PER_S)
    amplitude = forecast.growth_per_s / changes / inputs.cost
    return RefreshBids(amplitude, changes, Shape.LINEAR, True, _note(inputs))


def bid_area(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[BEYOND] delta·tau²/2: the best index under the linear loss of [UC05], per cost of a fetch."""
    changes = np.maximum(forecast.changes_per_s, SLOWEST_PER_S)
    amplitude = forecast.growth_per_s / changes**2 / inputs.cost
    return RefreshBids(amplitude, changes, Shape.AREA, True, _note(inputs))


def bid_saturating(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[BEYOND] (q/Delta)·g(Delta·tau): the best index where a page loses q while it is stale, per cost of a fetch."""
    changes = np.maximum(forecast.changes_per_s, SLOWEST_PER_S)
    return RefreshBids(forecast.loss / changes / inputs.cost, changes, Shape.SATURATING, True, _note(inputs))


def _note(inputs: RefreshInputs) -> str:
    return "" if inputs.stake.max(initial=0.0) > 0.0 else NOBODY
