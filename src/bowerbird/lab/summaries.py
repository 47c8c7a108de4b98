"""From splits to summaries: means with standard errors, and two policies compared split by split."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bowerbird.lab.experiment import SplitResult, Summary

NAN = float("nan")
#: with fewer, Student's t makes intervals so wide that they reach beyond what is possible
MIN_SPLITS = 3


def summarise(splits: Sequence[SplitResult]) -> list[Summary]:
    """Each policy's measures over all splits, in the order they were first measured; NaN is no measurement.

    A policy's several costs in one split add up; a policy without any has NaN seconds.
    """
    values: dict[tuple[str, str, float | None], list[float]] = {}
    for place, split in enumerate(splits):
        for sample in split.samples:
            row = values.setdefault((sample.policy, sample.measure, sample.at), [NAN] * len(splits))
            row[place] = sample.value
    order = {policy: place for place, policy in enumerate(dict.fromkeys(policy for policy, _, _ in values))}
    measures = {measure: place for place, measure in enumerate(dict.fromkeys(measure for _, measure, _ in values))}
    keys = sorted(values, key=lambda key: (measures[key[1]], order[key[0]], -1.0 if key[2] is None else key[2]))
    costs = {policy: cost_of(splits, policy) for policy in order}
    return [
        Summary(policy, measure, at, *mean_and_error(values[policy, measure, at]), *costs[policy], tuple(row))
        for policy, measure, at in keys
        for row in [values[policy, measure, at]]
    ]


def mean_and_error(values: Iterable[float]) -> tuple[float, float, int]:
    """Mean, its standard error sd/sqrt(n) (0 with one value), and n; infinite where one of the values is.

    >>> mean_and_error([1.0, 3.0, float("nan")]), mean_and_error([1.0, float("inf")])
    ((2.0, 1.0, 2), (inf, 0.0, 2))
    """
    known = np.array([value for value in values if not math.isnan(value)])
    if not len(known):
        return NAN, 0.0, 0
    if np.isinf(known).any():
        return float("inf"), 0.0, len(known)
    error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else 0.0
    return float(known.mean()), error, len(known)


def cost_of(splits: Sequence[SplitResult], policy: str) -> tuple[float, float]:
    """Seconds a split on average, and the most memory of any; NaN where it was not measured."""
    seconds, peaks = [], list[float]()
    for split in splits:
        found = [cost for cost in split.costs if cost.policy == policy]
        if found:
            seconds.append(sum(cost.seconds for cost in found))
            peaks += [cost.peak_mb for cost in found]
    return (float(np.mean(seconds)), max(peaks)) if seconds else (NAN, NAN)


def pick(summaries: Iterable[Summary], policy: str, measure: str, at: float | None = None) -> Summary | None:
    """The one summary, where there is one."""
    found = (one for one in summaries if (one.policy, one.measure, one.at) == (policy, measure, at))
    return next(found, None)


@dataclass(frozen=True, slots=True)
class Paired:
    """One policy against another on the same splits."""

    above: int  # splits in which it is higher
    ties: int
    n: int  # splits that have both
    mean: float  # of the differences
    se: float  # of that mean; 0 with one split

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the mean difference (Student's t); None with too few splits."""
        return interval_95(self.mean, self.se, self.n)


def compare(one: Summary, other: Summary) -> Paired:
    """Split by split, `one` minus `other`.

    >>> one = Summary("a", "m", None, 3.0, 0.0, 3, 0.0, 0.0, (3.0, 5.0, 1.0))
    >>> other = Summary("b", "m", None, 2.0, 0.0, 3, 0.0, 0.0, (2.0, 3.0, 1.0))
    >>> found = compare(one, other)
    >>> found.above, found.ties, found.mean
    (2, 1, 1.0)
    """
    pairs = np.array(list(zip(one.values, other.values, strict=True)), dtype=np.float64).reshape(-1, 2)
    differences = (pairs[:, 0] - pairs[:, 1])[~np.isnan(pairs).any(axis=1)]
    mean, error, count = mean_and_error(differences.tolist())
    return Paired(int((differences > 0).sum()), int((differences == 0).sum()), count, mean, error)


def interval_95(mean: float, error: float, count: int) -> tuple[float, float] | None:
    """The 95% interval of a mean by Student's t; None with fewer than three values."""
    if count < MIN_SPLITS:
        return None
    from scipy.special import stdtrit

    reach = float(stdtrit(count - 1, 0.975)) * error
    return mean - reach, mean + reach


def few_splits(count: int) -> str:
    """Why there is no interval.

    >>> few_splits(1), few_splits(2)
    ('one split', 'too few splits')
    """
    return "one split" if count == 1 else "too few splits"


def judge(interval: tuple[float, float] | None, bound: float = 0.0) -> bool | None:
    """Whether a quantity is above the bound: None where its interval holds the bound, or there is no interval.

    >>> judge((0.1, 0.4)), judge((-0.4, -0.1)), judge((-0.1, 0.4)), judge(None)
    (True, False, None, None)
    """
    if interval is None or interval[0] <= bound <= interval[1]:
        return None
    return interval[0] > bound
