"""Refresh at random times in theory, evenly in practice: LambdaCrawl and the frequencies of Azar et al."""

from __future__ import annotations

from bowerbird.appraise.refresh.bids import RefreshBids, RefreshOptions
from bowerbird.appraise.refresh.forecast import Forecast
from bowerbird.appraise.refresh.frequencies import harmonic_frequencies, random_frequencies
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.appraise.refresh.staleness import bid_frequencies, priced_budget, seen_or_even


def bid_harmonic(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[BEYOND] LambdaCrawl: frequencies of the least harmonic penalty, weighed by what searchers see of a page."""
    rates = forecast.changes_per_s * inputs.cost
    found = harmonic_frequencies(rates, seen_or_even(inputs.views), priced_budget(inputs, options))
    return bid_frequencies(found.frequency / inputs.cost)


def bid_random(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[BEYOND] Azar et al.: frequencies of greatest freshness at random times, weighed by what searchers see."""
    rates = forecast.changes_per_s * inputs.cost
    found = random_frequencies(rates, seen_or_even(inputs.views), priced_budget(inputs, options))
    return bid_frequencies(found.frequency / inputs.cost)
