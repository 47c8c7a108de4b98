"""Seeds by strongly connected components: MaxSCC and RootSCC."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph
from bowerbird.appraise.seeds.coverage import Coverage
from bowerbird.appraise.seeds.maxweight import DEPTH
from bowerbird.appraise.seeds.problem import F64, I64, Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import U32, BoolArray

NO_COMPONENT = "no component that is left weighs more than 0: fewer seeds than were asked for"


class Components:
    """The strongly connected components of a graph, numbered by their lowest page."""

    def __init__(self, graph: FrontierGraph) -> None:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        count = graph.count
        links = csr_matrix((np.ones(graph.edges, np.int8), graph.targets.view(np.int32), graph.starts), (count, count))
        raw = connected_components(links, directed=True, connection="strong")[1]
        _, first, numbers = np.unique(raw, return_index=True, return_inverse=True)
        place = np.empty(len(first), np.int64)
        place[np.argsort(first)] = np.arange(len(first))
        self.graph = graph
        self.of: I64 = place[numbers]  # by page
        self.count = len(first)
        self.is_root = np.ones(self.count, np.bool_)  # no link from outside leads in
        _mark_entered(graph.starts, graph.targets, self.of, self.is_root)

    def weights(self, by_page: F64) -> F64:
        """Sums of a column by component."""
        return np.bincount(self.of, weights=by_page, minlength=self.count).astype(np.float64)

    def pages(self, component: int) -> I64:
        """The pages of one, ascending."""
        return np.flatnonzero(self.of == component)

    def root_ancestors(self, component: int) -> I64:
        """Roots from which the component can be reached, ascending; itself, where it is a root."""
        into_starts, into_sources = self.graph.into
        reached = np.zeros(self.graph.count, np.bool_)
        line = np.empty(self.graph.count, np.uint32)
        start = int(np.argmax(self.of == component))
        _reach_back(into_starts, into_sources, start, reached, line)
        found = np.zeros(self.count, np.bool_)
        found[self.of[reached]] = True
        return np.flatnonzero(found & self.is_root)


def choose_by_component(problem: SeedProblem, k: int, depth: int = DEPTH) -> Choice:
    """[SEED09] MaxSCC: of the heaviest component, the page with the largest weight within `depth` links.

    What a seed covers weighs 0 from then on. Ties go to the component with the lowest page, and to the lower page.
    """
    return _choose(problem, k, depth, lambda components, heaviest, weights, open_: heaviest)


def choose_by_root(problem: SeedProblem, k: int, depth: int = DEPTH) -> Choice:
    """[SEED09] RootSCC: as MaxSCC, but of the heaviest root from which the heaviest component can be reached.

    Roots all of whose pages are covered are passed over; where no other is left, or the seed found there would add
    nothing, the heaviest component itself is taken.
    """

    def find(components: Components, heaviest: int, weights: F64, is_open: BoolArray) -> int:
        roots = components.root_ancestors(heaviest)
        roots = roots[is_open[roots]]
        return int(roots[np.argmax(weights[roots])]) if len(roots) else heaviest

    return _choose(problem, k, depth, find)


def _choose(problem: SeedProblem, k: int, depth: int, find: Callable[[Components, int, F64, BoolArray], int]) -> Choice:
    components = Components(problem.graph)
    coverage = Coverage(problem)
    for _ in range(min(k, problem.graph.count)):
        weights = components.weights(np.where(coverage.covered, 0.0, problem.weight))
        heaviest = int(np.argmax(weights))
        if weights[heaviest] <= problem.rounding:
            break
        is_open = np.zeros(components.count, np.bool_)
        is_open[components.of[~coverage.covered]] = True
        chosen = find(components, heaviest, weights, is_open)
        seed = _best_page(coverage, components.pages(chosen), depth)
        if chosen != heaviest and coverage.weigh(np.array([seed]))[0][0] <= problem.rounding:
            seed = _best_page(coverage, components.pages(heaviest), depth)
        coverage.take(seed)
    return coverage.choice(notes=coverage.end(k, NO_COMPONENT))


def _best_page(coverage: Coverage, pages: I64, depth: int) -> int:
    """Of those that are no seeds yet, the first with most within `depth`; sums that rounding sets apart are equal."""
    pages = pages[~np.isin(pages, coverage.seeds)]
    value, _ = coverage.weigh(pages, depth)
    return int(pages[np.argmax(value >= value.max() - coverage.problem.rounding)])


@numba.njit(cache=True, nogil=True)
def _mark_entered(starts: I64, targets: U32, of: I64, is_root: BoolArray) -> None:
    for page in range(len(starts) - 1):
        for k in range(starts[page], starts[page + 1]):
            if of[targets[k]] != of[page]:
                is_root[of[targets[k]]] = False


@numba.njit(cache=True, nogil=True)
def _reach_back(starts: I64, sources: U32, page: int, reached: BoolArray, line: npt.NDArray[np.uint32]) -> None:
    line[0] = page
    reached[page] = True
    first, last = 0, 1
    while first < last:
        here = line[first]
        first += 1
        for k in range(starts[here], starts[here + 1]):
            if not reached[sources[k]]:
                reached[sources[k]] = True
                line[last] = sources[k]
                last += 1
