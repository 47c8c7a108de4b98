"""How likely a searcher views a rank: r^-1.5 by default, the top K, or fitted to the click log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bowerbird.demand.log import RankCounts
from bowerbird.model.errors import ConfigError

FloatArray = NDArray[np.float64]


class Visibility(Protocol):
    """Probability that a result at a rank is viewed; on the scale I(1) = 1, never rising with the rank."""

    def __call__(self, ranks: NDArray[Any]) -> FloatArray:
        """I(r) of each rank; ranks start at 1."""


def power_law_visibility(ranks: NDArray[Any], exponent: float = 1.5) -> FloatArray:
    """[UC05] I(r) = c·r^-1.5, with c = 1: views fall with a power of the rank.

    >>> power_law_visibility(np.array([1, 4])).tolist()
    [1.0, 0.125]
    """
    return np.asarray(np.maximum(np.asarray(ranks, dtype=np.float64), 1.0) ** -exponent, dtype=np.float64)


def top_k_visibility(ranks: NDArray[Any], k: int = 10) -> FloatArray:
    """[SI08] I(r) = 1 for r <= K, 0 beyond: only the first page of an answer counts.

    >>> top_k_visibility(np.array([1, 10, 11])).tolist()
    [1.0, 1.0, 0.0]
    """
    return (np.asarray(ranks) <= k).astype(np.float64)


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """The visibility of [UC05]."""

    exponent: float = 1.5

    def __call__(self, ranks: NDArray[Any]) -> FloatArray:
        """I(r)."""
        return power_law_visibility(ranks, self.exponent)


@dataclass(frozen=True, slots=True)
class KStep:
    """The visibility of [SI08]."""

    k: int = 10

    def __call__(self, ranks: NDArray[Any]) -> FloatArray:
        """I(r)."""
        return top_k_visibility(ranks, self.k)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Values for ranks 1…n, and a power law that goes on from the last of them."""

    values: FloatArray
    exponent: float = 1.5

    def __call__(self, ranks: NDArray[Any]) -> FloatArray:
        """I(r)."""
        wanted = np.maximum(np.asarray(ranks, dtype=np.float64), 1.0)
        last = len(self.values)
        inside = self.values[np.minimum(wanted, last).astype(np.int64) - 1]
        return np.asarray(inside * np.maximum(wanted / last, 1.0) ** -self.exponent, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class VisibilityFit:
    """A fitted visibility with what it rests on; one entry a rank 1…n."""

    visibility: Fitted
    impressions: NDArray[np.int64]
    clicks: NDArray[np.int64]
    estimate: FloatArray  # as the click model has it, before it is made to fall; nan where nothing was shown
    standard_error: FloatArray  # of the estimate, relevance taken as known
    compared_share: float  # impressions of results that were seen at two ranks or more: only they tell rank from worth
    iterations: int
    converged: bool
    log_likelihood: float = field(default=float("nan"))

    def __len__(self) -> int:
        return len(self.impressions)


def fit_position_bias(
    counts: RankCounts, *, max_rank: int = 50, max_iterations: int = 500, tolerance: float = 1e-6, prior: float = 1.0
) -> VisibilityFit | None:
    """The position-based click model, P(click) = I(rank)·relevance(query, page), by EM; None without any click.

    Relevance has a prior worth `prior` impressions at the mean: a result seen once says little of itself. Ranks
    beyond `max_rank` are left to the power law. The fit is made non-increasing by isotonic regression.
    """
    keep = (counts.rank >= 1) & (counts.rank <= max_rank) & ((counts.impressions > 0) | (counts.clicks > 0))
    rank = counts.rank[keep] - 1
    clicks = counts.clicks[keep].astype(np.float64)
    shown = np.maximum(counts.impressions[keep].astype(np.float64), clicks)  # a click whose impression was not logged
    if not clicks.sum():
        return None
    pair = _number_pairs(counts.query[keep], counts.page[keep])
    ranks, pairs = int(rank.max()) + 1, int(pair.max()) + 1
    shown_at, shown_of = _total(rank, shown, ranks), _total(pair, shown, pairs)
    bias = 1.0 / np.arange(1.0, ranks + 1)
    worth = np.full(pairs, min(0.5, 2.0 * clicks.sum() / shown.sum()))
    seen = shown_at > 0
    iterations, converged = 0, False
    while iterations < max_iterations and not converged:
        iterations += 1
        new_bias, new_worth = _improve(bias, worth, rank, pair, shown, clicks, shown_at, shown_of, prior)
        change = float(np.max(np.abs(new_bias / new_bias[seen].max() - bias / bias[seen].max())[seen]))
        bias, worth = new_bias, new_worth
        converged = change < tolerance
    click_chance = np.clip(bias[rank] * worth[pair], 1e-12, 1 - 1e-12)
    likelihood = float(np.sum(clicks * np.log(click_chance) + (shown - clicks) * np.log1p(-click_chance)))
    information = _total(
        rank,
        clicks / np.maximum(bias[rank], 1e-9) ** 2 + (shown - clicks) * (worth[pair] / (1 - click_chance)) ** 2,
        ranks,
    )
    return _finish(bias, information, rank, pair, shown, clicks, (iterations, converged, likelihood))


def _total(group: NDArray[np.int64], values: FloatArray, groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, values, groups), dtype=np.float64)


def _number_pairs(query: NDArray[np.int64], page: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each distinct (query, page)."""
    order = np.lexsort((page, query))
    q, p = query[order], page[order]
    new = np.concatenate(([0], (np.diff(q) != 0) | (np.diff(p) != 0)))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new)
    return number


def _improve(
    bias: FloatArray,
    worth: FloatArray,
    rank: NDArray[np.int64],
    pair: NDArray[np.int64],
    shown: FloatArray,
    clicks: FloatArray,
    shown_at: FloatArray,
    shown_of: FloatArray,
    prior: float,
) -> tuple[FloatArray, FloatArray]:
    """One step of EM: who was not clicked may not have been viewed, or not have been worth it."""
    b, w = bias[rank], worth[pair]
    unclicked = (shown - clicks) / np.maximum(1.0 - b * w, 1e-12)
    viewed = _total(rank, clicks + unclicked * b * (1.0 - w), len(bias))
    liked = _total(pair, clicks + unclicked * w * (1.0 - b), len(worth))
    mean = float(liked.sum() / shown.sum())
    new_bias = np.where(shown_at > 0, viewed / np.maximum(shown_at, 1e-12), bias)
    new_worth = (liked + prior * mean) / (shown_of + prior)
    return np.clip(new_bias, 1e-9, 1.0), np.clip(new_worth, 1e-9, 1.0 - 1e-9)


def _finish(
    bias: FloatArray,
    information: FloatArray,
    rank: NDArray[np.int64],
    pair: NDArray[np.int64],
    shown: FloatArray,
    clicks: FloatArray,
    course: tuple[int, bool, float],
) -> VisibilityFit:
    ranks = len(bias)
    shown_at = _total(rank, shown, ranks)
    seen = np.flatnonzero(shown_at > 0)
    with np.errstate(divide="ignore"):
        error = 1.0 / np.sqrt(information)
    falling = fall(bias[seen], information[seen])
    steps = np.log(np.arange(1.0, ranks + 1))
    values = np.exp(np.interp(steps, steps[seen], np.log(falling)))  # ranks never shown lie between their neighbours
    scale = float(values[0])
    exponent = _slope(steps[seen], np.log(falling), information[seen])
    appearances = np.bincount(pair)  # rows of a pair are its ranks
    compared = float(shown[appearances[pair] > 1].sum() / shown.sum())
    unseen = shown_at == 0
    iterations, converged, likelihood = course
    return VisibilityFit(
        visibility=Fitted(values / scale, exponent),
        impressions=shown_at.astype(np.int64),
        clicks=np.bincount(rank, clicks, ranks).astype(np.int64),
        estimate=np.where(unseen, np.nan, bias / scale),
        standard_error=np.where(unseen, np.nan, error / scale),
        compared_share=compared,
        iterations=iterations,
        converged=converged,
        log_likelihood=likelihood,
    )


def _slope(steps: FloatArray, heights: FloatArray, weights: FloatArray) -> float:
    """The exponent of the power law through the fit, by weighted least squares; 1.5 where there is too little."""
    if len(steps) < 3:
        return 1.5
    weights = weights * np.exp(2 * heights)  # of the logarithm
    middle = np.average(steps, weights=weights)
    spread = np.average((steps - middle) ** 2, weights=weights)
    if not spread > 0:
        return 1.5
    return max(0.0, float(-np.average((steps - middle) * heights, weights=weights) / spread))


def fall(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The nearest sequence (weighted least squares) that never rises: neighbours that rise are averaged.

    >>> fall(np.array([4.0, 1.0, 3.0]), np.ones(3)).tolist()
    [4.0, 2.0, 2.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, length = value, max(weight, 1e-300), 1
        while pools and pools[-1][0] < mean:
            before, more, longer = pools.pop()
            mean = (mean * total + before * more) / (total + more)
            total, length = total + more, length + longer
        pools.append((mean, total, length))
    return np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools]).astype(np.float64)


def make_visibility(name: str, *, k: int = 10, counts: RankCounts | None = None) -> Visibility:
    """By the name in the settings: `power`, `top-k`, or `fitted`, which is the power law until there are clicks."""
    match name:
        case "power":
            return PowerLaw()
        case "top-k":
            return KStep(k)
        case "fitted":
            fit = fit_position_bias(counts) if counts is not None and len(counts.rank) else None
            return PowerLaw() if fit is None else fit.visibility
    raise ConfigError(f"visibility {name!r}: not known; known are power, top-k, fitted.")
