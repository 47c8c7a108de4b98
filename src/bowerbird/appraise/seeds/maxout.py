"""MaxOut: the largest out-degree among what is not covered."""

from __future__ import annotations

import numba
import numpy as np

from bowerbird.appraise.seeds.coverage import Coverage
from bowerbird.appraise.seeds.problem import Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import I8, I64, U32, BoolArray


def choose_by_out_links(problem: SeedProblem, k: int) -> Choice:
    """[SEED09] MaxOut: the page with most out-links; then it and all that it covers is removed, and so on.

    Ties go to the lower number. Weights are not looked at. It ends early when no page is left.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> graph = make_graph([0, 0, 0, 1, 1, 4], [1, 2, 3, 2, 3, 5], 6)
    >>> choose_by_out_links(SeedProblem(graph, np.ones(6), hops=1), 2).seeds.tolist()
    [0, 4]
    """
    graph = problem.graph
    coverage = Coverage(problem)
    into_starts, into_sources = graph.into
    degree = graph.out_degree.copy()
    removed = np.zeros(graph.count, np.bool_)
    for _ in range(k):
        seed = _find_most(degree, removed)
        if seed < 0:
            break
        coverage.take(seed)
        _remove(coverage.left, into_starts, into_sources, removed, degree)
    return coverage.choice(notes=coverage.end(k))


@numba.njit(cache=True, nogil=True)
def _find_most(degree: I64, removed: BoolArray) -> int:
    found = -1
    for page in range(len(degree)):
        if not removed[page] and (found < 0 or degree[page] > degree[found]):
            found = page
    return found


@numba.njit(cache=True, nogil=True)
def _remove(left: I8, into_starts: I64, into_sources: U32, removed: BoolArray, degree: I64) -> None:
    """Pages that are covered but still there go, and with them the links to them."""
    for page in range(len(left)):
        if left[page] >= 0 and not removed[page]:
            removed[page] = True
            for k in range(into_starts[page], into_starts[page + 1]):
                degree[into_sources[k]] -= 1
