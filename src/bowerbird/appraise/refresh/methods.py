"""The methods of refreshing by name: from what is known and forecast of pages to bids, live and in the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bowerbird.appraise.refresh.bids import RefreshBids, RefreshOptions
from bowerbird.appraise.refresh.forecast import Forecast
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.randomised import bid_harmonic, bid_random
from bowerbird.appraise.refresh.staleness import (
    bid_clicked_embarrassment,
    bid_embarrassment,
    bid_proportional,
    bid_staleness,
    bid_uniform,
)
from bowerbird.appraise.refresh.user_centric import bid_area, bid_linear, bid_saturating

RefreshMethod = Callable[[RefreshInputs, Forecast, RefreshOptions], RefreshBids]

METHODS: Mapping[str, RefreshMethod] = {
    "user-centric": bid_area,
    "user-centric-linear": bid_linear,
    "user-centric-saturating": bid_saturating,
    "sbr": bid_staleness,
    "ebr": bid_embarrassment,
    "click-ebr": bid_clicked_embarrassment,
    "lambda-crawl": bid_harmonic,
    "azar": bid_random,
    "uniform": bid_uniform,
    "proportional": bid_proportional,
}
