"""What chosen seeds cover, and what others would add."""

from __future__ import annotations

from collections.abc import Iterable
from queue import Empty, SimpleQueue

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.seeds.problem import F64, I64, Bound, Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import BATCH, cover_from, weigh_reach
from bowerbird.appraise.threads import share, threads_for

ALL_COVERED = "all that is worth covering is covered by fewer seeds than were asked for"
NO_GAIN = "no further page adds more than it costs: fewer seeds than were asked for cover more than as many would"
_PIECE = 16 * BATCH  # candidates that a thread weighs before it asks for more
_Room = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]


class Coverage:
    """What is covered so far. Seeds are taken one by one; any pages can be weighed for what they would add."""

    def __init__(self, problem: SeedProblem) -> None:
        self.problem = problem
        self.left = np.full(problem.graph.count, -1, np.int8)  # links to go beyond each page; -1 = not covered
        self.work = 0  # links looked at while weighing
        self.seeds: list[int] = []
        self._pages: list[int] = []
        self._value: list[float] = []
        self._line = np.empty(problem.graph.count, np.uint32)
        self._rooms: SimpleQueue[_Room] = SimpleQueue()

    @property
    def covered(self) -> npt.NDArray[np.bool_]:
        """By page: whether a seed reaches it."""
        found: npt.NDArray[np.bool_] = self.left >= 0
        return found

    def take(self, page: int) -> tuple[float, float]:
        """Cover what `page` reaches: the value that this adds, and how much of that is below zero (as a positive)."""
        graph = self.problem.graph
        pages, value, below = cover_from(
            graph.starts, graph.targets, self.problem.weight, page, self.problem.hops, self.left, self._line
        )
        self.seeds.append(int(page))
        self._pages.append(pages)
        self._value.append(value)
        return value, below

    def weigh(self, pages: I64, depth: int | None = None) -> tuple[F64, F64]:
        """What each page would add within `depth` links (all hops, unless told), and how much of it is below zero.

        64 pages share a search, so it is quick where neighbours in the list reach the same pages.
        """
        graph, weight = self.problem.graph, self.problem.weight
        hops = self.problem.hops if depth is None else min(depth, self.problem.hops)
        value, below = np.zeros(len(pages)), np.zeros(len(pages))

        def weigh_piece(low: int, high: int) -> int:
            room = self._find_room()
            links = 0
            for first in range(low, high, BATCH):
                part = slice(first, min(first + BATCH, high))
                links += weigh_reach(
                    graph.starts, graph.targets, weight, pages[part], hops, self.left, *room, value[part], below[part]
                )
            self._rooms.put(room)
            return links

        if len(pages) <= 2 * BATCH or threads_for(graph.edges) == 1:
            self.work += weigh_piece(0, len(pages))
        else:
            cuts = [(low, min(low + _PIECE, len(pages))) for low in range(0, len(pages), _PIECE)]
            self.work += sum(share(weigh_piece, cuts))
        return value, below

    def _find_room(self) -> _Room:
        try:
            return self._rooms.get_nowait()
        except Empty:
            count = self.problem.graph.count
        return np.zeros((3, count), np.uint64), np.empty((3, count), np.uint32)

    def end(self, k: int, otherwise: str = NO_GAIN) -> list[str]:
        """Why there are fewer than `k` seeds, in words; nothing where there are as many."""
        if len(self.seeds) >= k:
            return []
        return [ALL_COVERED if self.covered[self.problem.weight > 0].all() else otherwise]

    def choice(self, bound: Bound | None = None, samples: int = 0, notes: Iterable[str] = ()) -> Choice:
        """The seeds taken, with what each added."""
        return Choice(
            np.array(self.seeds, np.int64),
            np.array(self._pages, np.int64),
            np.array(self._value, np.float64),
            bound,
            samples,
            tuple(notes),
        )


def cover(problem: SeedProblem, seeds: Iterable[int]) -> Choice:
    """What these seeds cover, counted one after another.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> chain = make_graph([0, 1, 2], [1, 2, 3], 4)
    >>> cover(SeedProblem(chain, np.ones(4), hops=2), [1, 0]).pages.tolist()
    [3, 1]
    """
    coverage = Coverage(problem)
    for seed in seeds:
        coverage.take(seed)
    return coverage.choice()
