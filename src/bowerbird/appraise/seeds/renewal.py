"""Seeds chosen again: others only where they are worth the change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bowerbird.appraise.seeds.coverage import Coverage, cover
from bowerbird.appraise.seeds.methods import SeedOptions, choose_seeds
from bowerbird.appraise.seeds.problem import I64, Bound, Choice, SeedProblem


@dataclass(frozen=True, slots=True)
class Renewal:
    """What is gone by from now on, what was before, and the best that was found; all on the same graph.

    Each adds to what the `given` seeds cover, which stay whatever is chosen.
    """

    given: Choice
    choice: Choice
    before: Choice
    best: Choice

    @property
    def is_new(self) -> bool:
        """Were the seeds before given up?"""
        return self.choice is self.best

    def together(self, choice: Choice) -> float:
        """The value that a choice and the given seeds cover."""
        return self.given.covered_value + choice.covered_value

    @property
    def bound(self) -> Bound | None:
        """Of the value that the given seeds and as many others cover at most."""
        bound = self.best.bound
        return None if bound is None else Bound(self.given.covered_value + bound.value, bound.confidence)


def renew_seeds(
    problem: SeedProblem,
    k: int,
    before: I64,
    worth_change: float,
    options: SeedOptions | None = None,
    given: I64 | None = None,
) -> Renewal:
    """At most `k` seeds beside the `given` ones, chosen for what those leave.

    Those before stay, unless they are more than k, or others cover more by this share of what is covered in all.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> fan = SeedProblem(make_graph([0, 0, 1, 1, 1], [2, 3, 2, 3, 4], 5), np.ones(5), hops=1)
    >>> [renew_seeds(fan, 1, np.array([0]), worth).choice.seeds.tolist() for worth in (0.01, 0.5)]
    [[1], [0]]
    >>> renew_seeds(fan, 1, np.zeros(0, np.int64), 0.01, given=np.array([1])).choice.seeds.tolist()
    [0]
    """
    fixed = np.zeros(0, np.int64) if given is None else given
    first = Coverage(problem)
    for seed in fixed.tolist():
        first.take(seed)
    left = SeedProblem(problem.graph, np.where(first.covered, 0.0, problem.weight), problem.hops)
    found = choose_seeds(left, k, options=options)
    best = replace(_count_beyond(problem, fixed, found.seeds), bound=found.bound, samples=found.samples)
    old = _count_beyond(problem, fixed, before)
    renewal = Renewal(first.choice(), best, old, best)
    was, could = renewal.together(old), renewal.together(best)
    stays = len(before) <= k and could - was <= worth_change * was + problem.rounding
    return replace(renewal, choice=old) if stays else renewal


def _count_beyond(problem: SeedProblem, fixed: I64, seeds: I64) -> Choice:
    """What seeds add to what the fixed ones cover."""
    whole = cover(problem, [*fixed.tolist(), *seeds.tolist()])
    return Choice(seeds, whole.pages[len(fixed) :], whole.value[len(fixed) :])
