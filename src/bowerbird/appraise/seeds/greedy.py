"""Greedy on the true objective, by exact counts: always the page that adds most to what is covered."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.seeds.coverage import Coverage
from bowerbird.appraise.seeds.dual import ENOUGH, first_prices, tighten_bound
from bowerbird.appraise.seeds.lazy import LazyGains
from bowerbird.appraise.seeds.problem import F64, I64, Bound, Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import BATCH

ROUNDS = 10  # of tightening the bound
_DUAL_LINKS = 2.2e9  # that all rounds may look at
BOUNDS = 10  # the optimum is bounded after so many of the choices, and after the last
_PILOT_BATCHES = 32
_PILOT_SHARE = 0.4  # of the limit that finding out about it may take
_SURE = 3.0  # deviations


def choose_greedily(problem: SeedProblem, k: int, rounds: int = ROUNDS) -> Choice:
    """[SEED09] [BEYOND] Greedy max-k-coverage within h hops, lazily: at least 1 - 1/e of the best if no weight is < 0.

    With weights below zero it is a heuristic: no promise, but no seed is taken that lowers the value, and the bound is
    on what can be covered of the weights above zero. Ties go to the lower number; it ends early when nothing adds. The
    bound gets closer with every of the `rounds`, each of which weighs all pages once more.

    >>> from bowerbird.appraise.frontier.graph import make_graph
    >>> star = make_graph([0, 0, 1, 4], [1, 2, 3, 5], 6)
    >>> choose_greedily(SeedProblem(star, np.ones(6), hops=1), 2).seeds.tolist()
    [0, 4]
    """
    coverage = Coverage(problem)
    gains = LazyGains(problem.graph.count, coverage.weigh, problem.rounding)
    work, chosen_at = coverage.work, np.full(problem.graph.count, -1, np.int64)
    best = min(problem.ceiling(k), gains.most(k))
    covered = 0.0  # of what is above zero
    every = -(-k // BOUNDS)
    for chosen in range(1, k + 1):
        page, gain = gains.best()
        if page < 0 or gain <= problem.rounding:
            break
        before = coverage.covered
        value, below = coverage.take(page)
        chosen_at[coverage.covered & ~before] = chosen - 1
        gains.note_taken(page, below)
        covered += value + below
        if chosen % every == 0:
            best = min(best, covered + gains.most(k))
    best = min(best, covered + gains.most(k, exactly=True))
    if len(coverage.seeds) == k > 0 and covered < best * (1 - ENOUGH):
        best = min(best, _price(problem, chosen_at, k, min(rounds, int(_DUAL_LINKS / max(work, 1)))))
    return coverage.choice(Bound(best), notes=coverage.end(k))


def _price(problem: SeedProblem, chosen_at: I64, k: int, rounds: int) -> float:
    """The most of what is above zero that any k seeds cover, by the dual."""
    graph, count = problem.graph, problem.graph.count
    above = np.maximum(problem.weight, 0.0)
    pages = np.arange(count)
    gains = np.bincount(chosen_at[chosen_at >= 0], weights=above[chosen_at >= 0], minlength=k).astype(np.float64)

    def sums(column: F64) -> F64:
        return Coverage(SeedProblem(graph, column, problem.hops)).weigh(pages)[0]

    def reached(seeds: I64) -> F64:
        found = np.zeros(count)
        for seed in seeds.tolist():
            alone = Coverage(problem)
            alone.take(seed)
            found += alone.covered
        return found

    return tighten_bound(
        above, first_prices(chosen_at, gains), k, sums, reached, float(above[chosen_at >= 0].sum()), rounds
    )


def count_work(problem: SeedProblem, limit: float, rng: np.random.Generator) -> float:
    """About how many links are looked at to weigh every page once: on which side of `limit`, as surely as can be told.

    Batches are drawn until the estimate is some deviations off the limit, they are all of them, or so much is counted
    that the rest hardly moves it.
    """
    count = problem.graph.count
    coverage = Coverage(problem)
    batches = -(-count // BATCH)
    squares, tried = 0.0, 0
    for tried, batch in enumerate(rng.permutation(batches).tolist(), 1):
        before = coverage.work
        coverage.weigh(np.arange(batch * BATCH, min((batch + 1) * BATCH, count)))
        squares += float(coverage.work - before) ** 2
        mean = coverage.work / tried
        if mean * batches > 4 * limit and coverage.work > limit / _PILOT_BATCHES:
            break
        if tried >= _PILOT_BATCHES:
            spread = max(squares / tried - mean * mean, 0.0) / tried * (1.0 - tried / batches)
            if abs(mean * batches - limit) > _SURE * batches * spread**0.5 or coverage.work > _PILOT_SHARE * limit:
                break
    return coverage.work * batches / max(tried, 1)
