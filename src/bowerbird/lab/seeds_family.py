"""The experiment `seeds`: from which few pages is most reached? The protocol of [SEED09]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.methods import SeedOptions, choose_seeds, fits_exactly
from bowerbird.appraise.seeds.problem import Choice, SeedProblem
from bowerbird.appraise.seeds.sites import split_sites
from bowerbird.lab.experiment import Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.plots import Plot
from bowerbird.lab.seeds_data import BLOCK_PAGES, SeedsData, read_seeds_data
from bowerbird.lab.seeds_findings import conclude_seeds
from bowerbird.lab.seeds_measures import (
    BY_SITE,
    COVERED,
    EXACT,
    GREEDY,
    HOP_PAGES,
    HOP_VALUE,
    MOST_HOPS,
    MOST_SEEDS,
    OF_BOUND,
    OVER_RANDOM,
    PAGES,
    PAPER_POLICIES,
    RANDOM,
    SAMPLED,
    SERIES_SEEDS,
    SITE_MEAN,
    SITES_COVERED,
    UNITS,
    VALUE,
    WHOLE,
    name_measure,
)
from bowerbird.lab.seeds_plots import draw_seeds

F64 = npt.NDArray[np.float64]

#: what does not depend on the seed is measured on this split, and holds for all
FIXED_SPLIT = 0
#: random seeds are drawn so often in a split: one draw is an accident; by site, the draws of all sites together
DRAWS = 100
#: targets of the sampled greedy, as in the reference levels
SAMPLES = 10_000
#: links to look at beyond which exact greedy is not tried: some minutes
MOST_WORK = 1e11
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "maxweight-2": ("maxweight", {"depth": 2}),
    "maxweight-3": ("maxweight", {"depth": 3}),
    EXACT: ("greedy", {"exact_work": MOST_WORK}),
    SAMPLED: ("greedy", {"samples": SAMPLES}),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """What the first 1…MOST_SEEDS seeds of a choice cover."""

    pages: F64
    value: F64


class SeedsFamily:
    """Coverage by few seeds on any graph, with values of pages where there are some."""

    name = "seeds"
    title = "From which few pages is most reached?"
    paper = "SEED09"
    known = ("cnr-2000", "hrwiki", "mdn")
    policies = (*PAPER_POLICIES, GREEDY, EXACT, SAMPLED)
    default_seeds = 5
    headline = COVERED
    reference = GREEDY
    method = (
        f"A seed covers the pages that are at most h links away from it, itself too. A method chooses k seeds: "
        f"k = 1…{MOST_SEEDS} within h = {MOST_HOPS} hops, and k = {SERIES_SEEDS} within h = 1…{MOST_HOPS}. All methods "
        f"choose one seed after the other, so the first of {MOST_SEEDS} are the choice of fewer. Figures are the pages "
        "covered, and their value (clicks or views, where the data has them), in % of all pages and of all value. "
        "Methods that weigh pages weigh them by that value; where there is none, each is worth 1.\n\n"
        "`random`, `pagerank`, `outdegree`, `maxout`, `maxweight-d` (d links ahead), `maxscc` and `rootscc` (2 links "
        "ahead) are the paper's. `greedy` is what `bowerbird seeds` does unless told otherwise: it counts exactly "
        f"where that fits, and samples targets where it does not. `{EXACT}` always counts, `{SAMPLED}` always samples: "
        f"{SAMPLES:,} targets, in the whole graph only.\n\n"
        "By site, each site gets k seeds of its own and is covered by links within it; figures are of all sites "
        f"together. Sites are hosts, or first parts of names; of numbered pages, {BLOCK_PAGES:,} numbers in a row "
        "stand for a site.\n\n"
        f"The seed of a split moves only what is random. `random` is the mean of {DRAWS} draws in a split (by site, of "
        "as many sites' draws at least). What no seed moves is measured once, and has no error; in % over random it "
        "has that of random. Time and memory are those of one choice with the largest k and h, data being read."
    )
    units: ClassVar[dict[str, str]] = UNITS

    def load(self, name: str, folder: Path) -> SeedsData:
        """Read and check the data."""
        return read_seeds_data(name, folder)

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Choose seeds by each policy; those that no seed moves on the first split only."""
        assert isinstance(data, SeedsData)
        result = SplitResult(split)
        _load_kernels(policies)
        for policy in policies:
            if split == FIXED_SPLIT or moves(data, policy):
                if policy != EXACT or _is_feasible(data, result.notes):
                    _measure_whole(data, split, policy, result)
                if data.site is not None and policy != SAMPLED:
                    _measure_sites(data, split, policy, result)
        if data.site is None:
            result.notes.append(f"Nothing is measured by site ({data.sites_are}).")
        return result

    def complete(self, results: Sequence[SplitResult]) -> list[SplitResult]:
        """What is more than random seeds cover, split by split; figures of all places together hold for all splits."""
        first = next((result for result in results if result.split == FIXED_SPLIT), None)
        fixed = list(first.samples) if first is not None else []
        for result in results:
            own = {(sample.policy, sample.measure, sample.at) for sample in result.samples}
            held = [one for one in fixed if (one.policy, one.measure, one.at) not in own]
            above = list(_compare_with_random([*result.samples, *held]))
            result.samples.extend([*(one for one in held if one.at is None), *above])
        return list(results)

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which of the paper's claims hold."""
        assert isinstance(data, SeedsData)
        return conclude_seeds(summaries, has_values=data.has_values, greedy_is_exact=data.greedy_is_exact)

    def draw(self, data: LabData, summaries: Sequence[Summary]) -> list[Plot]:
        """Coverage by seeds and by hops."""
        return draw_seeds(summaries, data.name)


def moves(data: SeedsData, policy: str) -> bool:
    """Whether the seed of a split moves it."""
    return policy in (RANDOM, SAMPLED) or (policy == GREEDY and not data.greedy_is_exact)


def choose(problem: SeedProblem, policy: str, *seed: int, bounded: bool = True) -> Choice:
    """MOST_SEEDS seeds by a policy; with a close bound on the best, or with what is known of it without more work."""
    method, told = _METHODS.get(policy, (policy, {}))
    options = SeedOptions(rng=np.random.default_rng(seed), **told)
    return choose_seeds(problem, MOST_SEEDS, method, options if bounded else replace(options, rounds=0))


def follow(choice: Choice) -> Curve:
    """What its seeds cover, one after the other; where there are fewer than asked for, more would add nothing."""
    missing = MOST_SEEDS - len(choice.seeds)
    pages, value = (np.pad(np.cumsum(added, dtype=np.float64), (1, 0)) for added in (choice.pages, choice.value))
    return Curve(np.pad(pages, (0, missing), "edge")[1:], np.pad(value, (0, missing), "edge")[1:])


def _load_kernels(policies: Sequence[str]) -> None:
    """On a graph of three pages, so that the time it takes is not the first method's."""
    small = SeedProblem(make_graph(np.array([0, 1]), np.array([1, 2]), 3), np.ones(3), 2)
    for policy in policies:
        choose(small, policy, 0)


def _is_feasible(data: SeedsData, notes: list[str]) -> bool:
    problem = SeedProblem(data.graph, data.value, MOST_HOPS)
    if fits_exactly(problem, SeedOptions(exact_work=MOST_WORK)):
        return True
    notes.append(f"{EXACT}: not run on the whole graph, it would take too long.")
    return False


def _measure_whole(data: SeedsData, split: int, policy: str, result: SplitResult) -> None:
    draws = DRAWS if policy == RANDOM else 1
    curves = {}
    for hops in range(MOST_HOPS, 0, -1):
        problem = SeedProblem(data.graph, data.value, hops)
        with measured(policy) as meter:
            choice = choose(problem, policy, split, bounded=hops == MOST_HOPS)
        curve = _mean([follow(choice), *(follow(choose(problem, policy, split, draw)) for draw in range(1, draws))])
        curves[hops] = curve
        if hops == MOST_HOPS:
            result.costs.append(meter.cost)
            result.notes.extend(f"{policy}, whole graph: {note}." for note in choice.notes)
            covered = float(curve.value[-1])
            result.samples.append(Sample(policy, COVERED, None, 100.0 * covered / problem.positive))
            if choice.bound is not None:
                result.samples.append(Sample(policy, OF_BOUND, None, 100.0 * covered / choice.bound.value))
    result.samples.extend(_coverages(data, policy, WHOLE, curves))


def _measure_sites(data: SeedsData, split: int, policy: str, result: SplitResult) -> None:
    assert data.site is not None
    draws = -(-DRAWS // (int(data.site.max()) + 1)) if policy == RANDOM else 1
    curves = {}
    for hops in range(MOST_HOPS, 0, -1):
        problem = SeedProblem(data.graph, data.value, hops)
        found, shares = [], []
        with measured(f"{policy}, by site") as meter:
            for site, (_, inner) in enumerate(split_sites(problem, data.site)):
                curve = _mean(
                    [follow(choose(inner, policy, split, site, draw, bounded=False)) for draw in range(draws)]
                )
                found.append(curve)
                if inner.graph.edges and inner.positive > 0:
                    shares.append(float(curve.value[-1]) / inner.positive)
        curves[hops] = Curve(np.sum([one.pages for one in found], axis=0), np.sum([one.value for one in found], axis=0))
        if hops == MOST_HOPS:
            result.costs.append(meter.cost)
            covered = float(curves[hops].value[-1])
            result.samples.append(Sample(policy, SITES_COVERED, None, 100.0 * covered / problem.positive))
            if shares:
                result.samples.append(Sample(policy, SITE_MEAN, None, 100.0 * float(np.mean(shares))))
    result.samples.extend(_coverages(data, policy, BY_SITE, curves))


def _mean(curves: Sequence[Curve]) -> Curve:
    return Curve(np.mean([one.pages for one in curves], axis=0), np.mean([one.value for one in curves], axis=0))


def _coverages(data: SeedsData, policy: str, scope: str, by_hops: dict[int, Curve]) -> Iterator[Sample]:
    """Both series, in per cent; value only where it is not the same as pages."""
    of_pages, of_value = 100.0 / data.count, 100.0 / float(data.value.sum())
    longest = by_hops[MOST_HOPS]
    for k in range(1, MOST_SEEDS + 1):
        yield Sample(policy, name_measure(PAGES, scope), k, of_pages * float(longest.pages[k - 1]))
        if data.has_values:
            yield Sample(policy, name_measure(VALUE, scope), k, of_value * float(longest.value[k - 1]))
    for hops, curve in sorted(by_hops.items()):
        yield Sample(policy, name_measure(HOP_PAGES, scope), hops, of_pages * float(curve.pages[SERIES_SEEDS - 1]))
        if data.has_values:
            yield Sample(policy, name_measure(HOP_VALUE, scope), hops, of_value * float(curve.value[SERIES_SEEDS - 1]))


def _compare_with_random(samples: Sequence[Sample]) -> Iterator[Sample]:
    """By how many per cent each policy is above random seeds of the same split."""
    chance = {(one.measure, one.at): one.value for one in samples if one.policy == RANDOM}
    for one in samples:
        kind, _, scope = one.measure.partition(" ")
        level = chance.get((one.measure, one.at), 0.0)
        if one.policy != RANDOM and kind in OVER_RANDOM and level > 0:
            yield Sample(one.policy, name_measure(OVER_RANDOM[kind], scope), one.at, 100.0 * (one.value / level - 1.0))


FAMILY = SeedsFamily()
