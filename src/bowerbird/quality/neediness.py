"""Which queries need new pages most ([SI08]): asked often, and answered so badly that a page can better the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.quality.answers import FloatArray, IntArray

TOP = 10


@dataclass(frozen=True, slots=True)
class ImprovabilityModel:
    """log(improvement) = intercept + slope·(mean score of the top results)."""

    intercept: float
    slope: float
    top: int = TOP


def mean_of_top(mean_scores: FloatArray, results: IntArray, top: int = TOP) -> FloatArray:
    """The mean over `top` places where a missing result scores 0; `mean_scores` is over the results there are."""
    mean: FloatArray = mean_scores * np.minimum(results, top) / top
    return mean


def fit_improvability(
    mean_top_scores: FloatArray, results: IntArray, improvements: FloatArray, *, buckets: int = 20, top: int = TOP
) -> ImprovabilityModel:
    """[SI08] Learn from a past cycle: log-linear regression of the mean improvement on the mean top score, bucketed.

    `improvements` is what each query's top results gained in score over that cycle. Buckets have equally many queries;
    one without any improvement counts as half of the least seen.
    """
    scores = mean_of_top(mean_top_scores, results, top)
    parts = [part for part in np.array_split(np.argsort(scores, kind="stable"), max(buckets, 1)) if len(part)]
    if not parts:
        return ImprovabilityModel(0.0, 0.0, top)
    centre = np.array([scores[part].mean() for part in parts])
    gained = np.array([improvements[part].mean() for part in parts])
    size = np.array([len(part) for part in parts], dtype=np.float64)
    if not (gained > 0).any():
        return ImprovabilityModel(-np.inf, 0.0, top)
    target = np.log(np.where(gained > 0, gained, gained[gained > 0].min() / 2))
    middle, level = np.average(centre, weights=size), np.average(target, weights=size)
    spread = float(size @ (centre - middle) ** 2)
    slope = float(size @ ((centre - middle) * (target - level))) / spread if spread > 0 else 0.0
    return ImprovabilityModel(float(level - slope * middle), slope, top)


def improvability(
    mean_top_scores: FloatArray, results: IntArray, model: ImprovabilityModel | None = None
) -> FloatArray:
    """[SI08] How much a new page can be expected to better each answer, from the mean score of its top results.

    Without a model, before anything was learnt: exp(-score/typical score), 1 for a query without results.
    """
    if model is None:
        scores = mean_of_top(mean_top_scores, results)
        typical = float(scores[results > 0].mean()) if (results > 0).any() else 1.0
        return np.exp(-scores / (typical or 1.0))
    return np.exp(model.intercept + model.slope * mean_of_top(mean_top_scores, results, model.top))


def neediness(frequency: FloatArray, improvability: FloatArray) -> FloatArray:
    """[SI08] f(q)·improvability(q)."""
    need: FloatArray = frequency * improvability
    return need
