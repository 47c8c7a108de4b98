"""One split of the frontier experiment: crawled pages, the frontier they link to, and the parts of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.lab.frontier_data import FrontierData
from bowerbird.model.errors import InputFileError

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

CRAWLED = 0.7
TRAINING = 0.65
CUTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True, slots=True)
class FrontierSplit:
    """Pages outside `crawled` are known where a crawled page links to them: `training` and `test` are those."""

    number: int
    crawled: BoolArray
    training: IntArray
    test: IntArray


def split_pages(data: FrontierData, number: int) -> FrontierSplit:
    """Split `number`: 70% of the pages by lot are crawled, 65% of the frontier by lot has labels for tuning."""
    rng = np.random.default_rng(1000 + number)
    crawled = np.zeros(data.count, dtype=np.bool_)
    crawled[rng.permutation(data.count)[: round(CRAWLED * data.count)]] = True
    linked = np.zeros(data.count, dtype=np.bool_)
    linked[data.targets[crawled[data.sources]]] = True
    frontier = rng.permutation(np.flatnonzero(linked & ~crawled))
    size = round(TRAINING * len(frontier))
    if not 0 < size < len(frontier):
        raise InputFileError(
            f"{data.name}, split {number}: {len(frontier)} pages on the frontier, too few for a training and a test "
            "part. Give more pages and links."
        )
    return FrontierSplit(number, crawled, frontier[:size], frontier[size:])


def collect_impact(score: FloatArray, impact: FloatArray) -> FloatArray:
    """The impact of the best 1, 2, … pages by score; pages of equal score each have the mean of their group.

    >>> collect_impact(np.array([1.0, 2.0, 2.0]), np.array([9.0, 4.0, 0.0])).tolist()
    [2.0, 4.0, 13.0]
    """
    order = np.argsort(-score, kind="stable")
    group = np.concatenate([[0], np.cumsum(np.diff(score[order]) != 0)]) if len(order) else np.zeros(0, np.int64)
    mean = np.bincount(group, weights=impact[order]) / np.maximum(np.bincount(group), 1)
    collected: FloatArray = np.cumsum(mean[group])
    return collected


def rate_ranking(score: FloatArray, impact: FloatArray) -> FloatArray:
    """[RW15] Impact of the selected top x% as % of the ideal ranking's, at each of `CUTS`."""
    ours, ideal = collect_impact(score, impact), np.cumsum(np.sort(impact)[::-1])
    places = np.ceil(np.array(CUTS) * len(score) - 1e-9).astype(np.int64) - 1
    rated: FloatArray = 100.0 * ours[places] / np.maximum(ideal[places], 1e-300)
    return rated


def estimate_error(resubstitution: float, out_of_bag: float, no_information: float) -> float:
    """[RW15] The 0.632+ bootstrap estimate of an error (Efron & Tibshirani 1997)."""
    out_of_bag = min(out_of_bag, no_information)
    room = no_information - resubstitution
    overfit = (out_of_bag - resubstitution) / room if room > 0 and out_of_bag > resubstitution else 0.0
    weight = 0.632 / (1.0 - 0.368 * overfit)
    return (1.0 - weight) * resubstitution + weight * out_of_bag


def choose_setting(
    scores: dict[float, FloatArray], impact: FloatArray, rng: np.random.Generator, *, resamples: int = 50
) -> float:
    """[RW15] The setting (w) with the least 0.632+ bootstrap error on these pages: one score column for each."""
    count = len(impact)
    drawn = [rng.integers(0, count, count) for _ in range(resamples)]
    bags = [np.flatnonzero(np.bincount(draw, minlength=count) == 0) for draw in drawn]
    nothing = 1.0 - float(rate_ranking(np.zeros(count), impact).mean()) / 100.0
    best, least = next(iter(scores)), np.inf
    for setting, score in scores.items():
        inside = 1.0 - float(rate_ranking(score, impact).mean()) / 100.0
        outside = [1.0 - float(rate_ranking(score[bag], impact[bag]).mean()) / 100.0 for bag in bags if len(bag)]
        error = estimate_error(inside, float(np.mean(outside)) if outside else inside, nothing)
        if error < least:
            best, least = setting, error
    return best
