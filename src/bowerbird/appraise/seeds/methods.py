"""The methods that choose seeds, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from bowerbird.appraise.seeds.components import choose_by_component, choose_by_root
from bowerbird.appraise.seeds.greedy import ROUNDS, choose_greedily, count_work
from bowerbird.appraise.seeds.heuristics import choose_at_random, choose_by_out_degree, choose_by_pagerank
from bowerbird.appraise.seeds.maxout import choose_by_out_links
from bowerbird.appraise.seeds.maxweight import DEPTH, choose_by_depth_weight
from bowerbird.appraise.seeds.problem import Bound, Choice, SeedProblem
from bowerbird.appraise.seeds.sample import MEMORY_BYTES
from bowerbird.appraise.seeds.sampled import CONFIDENCE, bound_by_sample, choose_by_sample

#: links that may be looked at to weigh every page once: some ten seconds of a core
EXACT_WORK = 4e9
DEFAULT_METHOD = "greedy"
VOID = "some weights are below 0: greedy's promise (1 - 1/e of the best) is void, and the bound is on those above 0"


@dataclass(frozen=True, slots=True)
class SeedOptions:
    """What methods may be told."""

    depth: int = DEPTH  # links that MaxWeight, MaxSCC and RootSCC look ahead
    samples: int | None = None  # greedy: this many, whatever the size of the graph; None = as it suits
    memory_bytes: int = MEMORY_BYTES  # of choosing by samples, beside the graph
    exact_work: float = EXACT_WORK  # greedy: count exactly up to here
    rounds: int = ROUNDS  # of tightening the bound
    confidence: float = CONFIDENCE  # of a bound that is told from samples
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))


Method = Callable[[SeedProblem, int, SeedOptions], Choice]


def fits_exactly(problem: SeedProblem, options: SeedOptions) -> bool:
    """Whether every page can be weighed by counting in reasonable time."""
    if options.samples is not None or options.exact_work <= 0:
        return False
    if options.exact_work == np.inf:
        return True
    # a generator of its own: the same graph is always judged alike, whatever was drawn before
    return count_work(problem, options.exact_work, np.random.default_rng(0)) <= options.exact_work


def choose_best(problem: SeedProblem, k: int, options: SeedOptions) -> Choice:
    """[BEYOND] The default: greedy on exact h-hop coverage where that fits, otherwise on a sample of targets."""
    if problem.positive <= 0:
        return replace(_nothing(), notes=("no page has a weight above 0",))
    if fits_exactly(problem, options):
        choice = choose_greedily(problem, k, options.rounds)
    else:
        choice = choose_by_sample(
            problem,
            k,
            options.rng,
            samples=options.samples,
            memory_bytes=options.memory_bytes,
            confidence=options.confidence,
            rounds=options.rounds,
        )
    return replace(choice, notes=(*choice.notes, VOID)) if problem.has_negative else choice


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "greedy": choose_best,
        "maxweight": lambda problem, k, options: choose_by_depth_weight(problem, k, options.depth),
        "maxout": lambda problem, k, options: choose_by_out_links(problem, k),
        "maxscc": lambda problem, k, options: choose_by_component(problem, k, options.depth),
        "rootscc": lambda problem, k, options: choose_by_root(problem, k, options.depth),
        "pagerank": lambda problem, k, options: choose_by_pagerank(problem, k),
        "outdegree": lambda problem, k, options: choose_by_out_degree(problem, k),
        "random": lambda problem, k, options: choose_at_random(problem, k, options.rng),
    }
)


def choose_seeds(
    problem: SeedProblem, k: int, method: str = DEFAULT_METHOD, options: SeedOptions | None = None
) -> Choice:
    """At most `k` seeds by a method of `METHODS`; fewer where more would add nothing, or there are no more pages."""
    if k < 0:
        raise ValueError(f"k is {k}; it cannot be below 0")
    return METHODS[method](problem, min(k, problem.graph.count), options or SeedOptions())


def bound_optimum(problem: SeedProblem, k: int, choice: Choice, options: SeedOptions | None = None) -> Bound:
    """The most that any `k` seeds cover, told from a choice by any method; that of the choice, where it has one."""
    if choice.bound is not None:
        return choice.bound
    chosen = options or SeedOptions()
    k = min(k, problem.graph.count)
    if problem.positive <= 0:
        return Bound(0.0)
    if fits_exactly(problem, chosen):
        above = SeedProblem(problem.graph, np.maximum(problem.weight, 0.0), problem.hops)
        return choose_greedily(above, k, chosen.rounds).bound or Bound(problem.positive)
    return bound_by_sample(
        problem,
        k,
        chosen.rng,
        samples=chosen.samples,
        memory_bytes=chosen.memory_bytes,
        confidence=chosen.confidence,
        rounds=chosen.rounds,
    )


def _nothing() -> Choice:
    return Choice(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), Bound(0.0))
