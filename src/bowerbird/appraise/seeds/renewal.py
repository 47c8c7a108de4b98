"""Seeds chosen again: others only where they are worth the change."""

from __future__ import annotations

from dataclasses import dataclass

from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.methods import SeedOptions, choose_seeds
from bowerbird.appraise.seeds.problem import I64, Choice, SeedProblem


@dataclass(frozen=True, slots=True)
class Renewal:
    """What is gone by from now on, what was before, and the best that was found; all on the same graph."""

    choice: Choice
    before: Choice
    best: Choice

    @property
    def is_new(self) -> bool:
        """Were the seeds before given up?"""
        return self.choice is self.best


def renew_seeds(
    problem: SeedProblem, k: int, before: I64, worth_change: float, options: SeedOptions | None = None
) -> Renewal:
    """At most `k` seeds; those before stay, unless they are more than k, or others cover more by this share of it.

    >>> import numpy as np
    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> fan = SeedProblem(make_graph([0, 0, 1, 1, 1], [2, 3, 2, 3, 4], 5), np.ones(5), hops=1)
    >>> [renew_seeds(fan, 1, np.array([0]), worth).choice.seeds.tolist() for worth in (0.01, 0.5)]
    [[1], [0]]
    """
    best = choose_seeds(problem, k, options=options)
    old = cover(problem, before.tolist())
    stays = 0 < len(before) <= k and best.covered_value <= old.covered_value * (1.0 + worth_change)
    return Renewal(old if stays else best, old, best)
