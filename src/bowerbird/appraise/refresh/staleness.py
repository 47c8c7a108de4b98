"""Refresh by staleness and embarrassment, and the plain rules: each page has a frequency, and bids age times that."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.refresh.bids import F64, RefreshBids, RefreshOptions
from bowerbird.appraise.refresh.forecast import Forecast
from bowerbird.appraise.refresh.frequencies import (
    embarrassment_frequencies,
    freshness_frequencies,
    proportional_frequencies,
    uniform_frequencies,
)
from bowerbird.appraise.refresh.inputs import RefreshInputs
from bowerbird.model.bid import Shape


def bid_uniform(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """Every page equally often."""
    return bid_frequencies(uniform_frequencies(inputs.count, options.budget_per_s).frequency)


def bid_proportional(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """In proportion to how often a page changes."""
    changes = forecast.changes_per_s
    return bid_frequencies(proportional_frequencies(changes, options.budget_per_s).frequency)


def bid_staleness(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[UC05] SBR: freshness-optimal frequencies of changes that are large enough, the rate thinned by their share."""
    changes = forecast.changes_per_s * share_of_large(inputs, options.threshold)
    found = freshness_frequencies(changes * inputs.cost, priced_budget(inputs, options))
    return bid_frequencies(found.frequency / inputs.cost)


def bid_embarrassment(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[UC05] EBR: frequencies of least embarrassment, each page weighed by its share d(p) of large changes."""
    return _weighted(inputs, forecast, options, share_of_large(inputs, options.threshold))


def bid_clicked_embarrassment(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions) -> RefreshBids:
    """[UC05] EBR with Wolf's whole weight: d(p) times what searchers see of the page."""
    return _weighted(inputs, forecast, options, share_of_large(inputs, options.threshold) * seen_or_even(inputs.views))


def share_of_large(inputs: RefreshInputs, threshold: float, strength: float = 1.0) -> F64:
    """[UC05] d(p): the share of a page's updates with at least `threshold` of the shingles changed.

    Shrunk to the share of all pages, which weighs as much as so many updates.
    """
    page = np.repeat(np.arange(inputs.count), np.diff(inputs.starts))[inputs.changed]
    large = (inputs.shift[inputs.changed] >= threshold).astype(np.float64)
    overall = (float(large.sum()) + 1.0) / (len(large) + 1.0)  # 1 before there is any
    hits = np.bincount(page, large, inputs.count)
    updates = np.bincount(page, minlength=inputs.count)
    return np.asarray((strength * overall + hits) / (strength + updates), np.float64)


def seen_or_even(views: F64) -> F64:
    """What searchers see of each page; before anything is known of them, that all weigh the same."""
    return views if views.max(initial=0.0) > 0.0 else np.ones(len(views))


def priced_budget(inputs: RefreshInputs, options: RefreshOptions) -> float:
    """The refreshes as what they cost: as much as a fixed interval for all pages would spend."""
    return options.budget_per_s * (float(inputs.cost.mean()) if inputs.count else 1.0)


def bid_frequencies(frequency: F64) -> RefreshBids:
    """Age times frequency: 1 when the page is due."""
    return RefreshBids(np.ones(len(frequency)), frequency, Shape.LINEAR)


def _weighted(inputs: RefreshInputs, forecast: Forecast, options: RefreshOptions, weights: F64) -> RefreshBids:
    rates = forecast.changes_per_s * inputs.cost
    found = embarrassment_frequencies(rates, weights, priced_budget(inputs, options))
    return bid_frequencies(found.frequency / inputs.cost)
