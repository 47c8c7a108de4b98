"""MaxWeight: the largest value within a few links, for a covering of more."""

from __future__ import annotations

from bowerbird.appraise.seeds.coverage import Coverage
from bowerbird.appraise.seeds.lazy import LazyGains
from bowerbird.appraise.seeds.problem import Choice, SeedProblem

DEPTH = 2


def choose_by_depth_weight(problem: SeedProblem, k: int, depth: int = DEPTH) -> Choice:
    """[SEED09] MaxWeight: the page with the largest weight within `depth` links; what it covers then weighs 0.

    Covered is what is within the problem's hops, more than `depth` as a rule. Ties go to the lower number; it ends
    early when no page has a weight above 0 within its depth.

    >>> import numpy as np
    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> graph = make_graph([0, 1, 3], [1, 2, 4], 5)
    >>> choose_by_depth_weight(SeedProblem(graph, np.ones(5), hops=2), 2, depth=1).seeds.tolist()
    [0, 3]
    """
    coverage = Coverage(problem)
    gains = LazyGains(problem.graph.count, lambda pages: coverage.weigh(pages, depth), problem.rounding)
    for _ in range(k):
        page, gain = gains.best()
        if page < 0 or gain <= problem.rounding:
            break
        _, below = coverage.take(page)
        gains.note_taken(page, below)
    return coverage.choice(notes=coverage.end(k))
