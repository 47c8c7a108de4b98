"""Seeds by a number that each page has for itself: what they cover together is not looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.walk import pagerank
from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.problem import Choice, SeedProblem


def choose_at_random(problem: SeedProblem, k: int, rng: np.random.Generator) -> Choice:
    """[SEED09] Random: pages by lot, each at most once."""
    count = problem.graph.count
    return cover(problem, rng.choice(count, min(k, count), replace=False).tolist())


def choose_by_pagerank(problem: SeedProblem, k: int) -> Choice:
    """[SEED09] PageRank: the k pages with the largest, the lower numbers of equals."""
    return cover(problem, _largest(pagerank(problem.graph).values, k))


def choose_by_out_degree(problem: SeedProblem, k: int) -> Choice:
    """[SEED09] OutDegree: the k pages with most out-links, the lower numbers of equals.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> graph = make_graph([0, 1, 1, 2], [1, 0, 2, 1], 3)
    >>> choose_by_out_degree(SeedProblem(graph, np.ones(3), hops=1), 2).seeds.tolist()
    [1, 0]
    """
    return cover(problem, _largest(problem.graph.out_degree, k))


def _largest(score: npt.NDArray[np.float64] | npt.NDArray[np.int64], k: int) -> list[int]:
    """Of many scores few are wanted: those below the k-th are not sorted."""
    k = min(k, len(score))
    if k == 0:
        return []
    least = np.partition(score, len(score) - k)[len(score) - k]
    pages = np.flatnonzero(score >= least)
    order = np.argsort(-score[pages], kind="stable")[:k]
    found: list[int] = pages[order].tolist()
    return found
