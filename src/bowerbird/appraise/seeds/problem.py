"""What seeds are chosen for, and what a choice is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import FrontierGraph

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

#: links to go are counted in a byte
MOST_HOPS = 120


@dataclass(frozen=True, eq=False)
class SeedProblem:
    """Pages with links and weights: a seed covers what is at most `hops` links away from it, itself too."""

    graph: FrontierGraph
    weight: F64  # by page; what is below zero had better not be reached
    hops: int

    def __post_init__(self) -> None:
        if not 0 <= self.hops <= MOST_HOPS:
            raise ValueError(f"hops is {self.hops}; it must be from 0 to {MOST_HOPS}")
        if self.weight.shape != (self.graph.count,) or self.weight.dtype != np.float64:
            raise ValueError(f"weights must be {self.graph.count} floats, one a page; they are {self.weight.shape}")
        if not np.isfinite(self.weight).all():
            raise ValueError("weights must be finite")

    @cached_property
    def positive(self) -> float:
        """The value of all pages that are worth reaching: no choice covers more."""
        return float(self.weight[self.weight > 0].sum())

    def ceiling(self, k: int) -> float:
        """What `k` seeds cover at most: pages that no other links to are covered by a seed of their own only."""
        alone = np.sort(np.maximum(self.weight[self.graph.in_degree == 0], 0.0))
        return self.positive - float(alone[: max(len(alone) - k, 0)].sum())

    @cached_property
    def rounding(self) -> float:
        """Sums that differ by less are the same: the order of adding makes so much."""
        return 1e-12 * float(np.abs(self.weight).sum())

    @cached_property
    def has_negative(self) -> bool:
        """Whether some pages had better not be reached: greedy's promise is void then."""
        return bool((self.weight < 0).any())


@dataclass(frozen=True, slots=True)
class Bound:
    """Nothing covers more than `value`: certain, or with this confidence where it is told from a sample."""

    value: float
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Seeds in the order of choice, with what each added to what the earlier ones cover; counted, never estimated."""

    seeds: I64
    pages: I64
    value: F64
    bound: Bound | None = None  # on the value that the best choice of as many seeds covers
    samples: int = 0  # that seeds were chosen by; 0 = by counting
    notes: tuple[str, ...] = field(default=())

    @property
    def covered_pages(self) -> int:
        """Pages that the seeds cover together."""
        return int(self.pages.sum())

    @property
    def covered_value(self) -> float:
        """The value of those pages."""
        return float(self.value.sum())
