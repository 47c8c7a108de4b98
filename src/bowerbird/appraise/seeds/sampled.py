"""Greedy by a sample of targets, for graphs in which weighing every page by counting takes too long."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.seeds.coverage import ALL_COVERED, Coverage
from bowerbird.appraise.seeds.dual import ENOUGH, first_prices, tighten_bound
from bowerbird.appraise.seeds.greedy import BOUNDS, ROUNDS
from bowerbird.appraise.seeds.lazy import LazyGains
from bowerbird.appraise.seeds.problem import F64, I64, Bound, Choice, SeedProblem
from bowerbird.appraise.seeds.reach_kernels import BATCH
from bowerbird.appraise.seeds.sample import MEMORY_BYTES, TargetSample, sample_targets

CONFIDENCE = 0.99
#: pages that the sample hardly tells apart are counted, and the best of them taken: so many at once
_SHORTLIST = 16
_DUAL_WORDS = 1e9  # that prices are summed over, in all rounds
_DOUBT = 3.0  # deviations
_COUNTED_LINKS = 2e9  # then the sample alone has to do
_FILL_LINKS = 2e9  # that are looked at when the sample has nothing left to say
#: pages in a row that the sample holds for good and the count does not, before it is given up
_MOST_REFUSED = 100
SAMPLED_OUT = "the sample shows no further page that adds more than it costs; a larger one might"


def choose_by_sample(
    problem: SeedProblem,
    k: int,
    rng: np.random.Generator,
    *,
    samples: int | None = None,
    memory_bytes: int = MEMORY_BYTES,
    confidence: float = CONFIDENCE,
    rounds: int = ROUNDS,
) -> Choice:
    """[SEED09] [BEYOND] Greedy cover of sampled targets: always the page that reaches most targets not covered yet.

    Pages that the sample hardly tells apart are counted in the whole graph, as long as that is quick. What the seeds
    cover is counted there too, so it is free of the sample's optimism; a page that would lower the value is put aside
    until something below zero is covered by others. Only the bound is told from the sample.
    """
    coverage = Coverage(problem)
    if problem.positive <= 0:
        return coverage.choice(Bound(0.0), notes=[ALL_COVERED])
    sample = sample_targets(problem, rng, samples, memory_bytes)
    gains = LazyGains(problem.graph.count, sample.weigh)
    most_targets, chosen_at = gains.most(k), np.full(sample.drawn, -1, np.int64)
    refused, every = 0, -(-k // BOUNDS)
    while len(coverage.seeds) < k and refused < _MOST_REFUSED:
        pages = _shortlist(gains, coverage.work < _COUNTED_LINKS)
        if not len(pages):
            break
        if len(pages) > 1 or problem.has_negative:
            counted, _ = coverage.weigh(pages)
            gains.put_aside(pages[counted <= problem.rounding])
            if not (counted > problem.rounding).any():
                refused += len(pages)
                continue
            pages = pages[[int(np.argmax(counted))]]
        closed = sample.as_mask(sample.open & sample.reach_bits(int(pages[0])))
        chosen_at[closed] = len(coverage.seeds)
        _take(int(pages[0]), sample, gains, coverage)
        refused = 0
        if len(coverage.seeds) % every == 0:
            most_targets = min(most_targets, _covered_above(sample) + gains.most(k))
    most_targets = min(most_targets, _covered_above(sample) + gains.most(k, exactly=True))
    if len(coverage.seeds) == k and coverage.choice().covered_value < problem.ceiling(k) * (1 - ENOUGH):
        most_targets = min(most_targets, _price(sample, chosen_at, k, rounds))
    _fill_up(problem, k, coverage)
    bound = _tighter(problem, k, sample_bound(sample.drawn_above, most_targets, problem.positive, confidence))
    return coverage.choice(bound, sample.drawn, [*sample.notes, *coverage.end(k, SAMPLED_OUT)])


def _shortlist(gains: LazyGains, several: bool) -> I64:
    """The pages that may add most, as far as the sample can tell; the one that does in the sample, if one is wanted."""
    pages, value = gains.leaders(_SHORTLIST if several else 1)
    if not len(pages) or value.max() <= 0:
        return pages[:0]
    if not several:
        return pages[[int(np.argmax(value))]]
    near: I64 = pages[value >= max(float(value.max()) - _DOUBT * float(np.sqrt(value.max())), 1.0)]
    return near


def _price(sample: TargetSample, chosen_at: I64, k: int, rounds: int) -> float:
    """The most targets above zero that any k pages reach, by the dual."""
    above = sample.as_mask(sample.above).astype(np.float64)
    reached = float(above[chosen_at >= 0].sum())
    gains = np.bincount(chosen_at[(chosen_at >= 0) & (above > 0)], minlength=k).astype(np.float64)

    def count(pages: I64) -> F64:
        found = np.zeros(sample.drawn)
        for page in pages.tolist():
            found += sample.reached_by(page)
        return found

    rounds = min(rounds, int(_DUAL_WORDS / max(sample.words, 1)))
    return tighten_bound(above, first_prices(chosen_at, gains), k, sample.sums, count, reached, rounds)


def _take(page: int, sample: TargetSample, gains: LazyGains, coverage: Coverage) -> None:
    before = int(np.bitwise_count(sample.open & ~sample.above).sum())
    sample.take(page)
    _, below = coverage.take(page)
    gains.note_taken(page, float(before - int(np.bitwise_count(sample.open & ~sample.above).sum())))
    if below > 0:  # what was put aside for reaching that may add something now
        gains.admit_again()


def _covered_above(sample: TargetSample) -> int:
    """Targets above zero that the seeds reach."""
    return sample.drawn_above - int(np.bitwise_count(sample.open & sample.above).sum())


def _fill_up(problem: SeedProblem, k: int, coverage: Coverage) -> None:
    """Where all targets are covered before there are k seeds: pages not covered, the heaviest first, if they add.

    Some at a time are counted, and the best of them taken. When that gets long, what is below zero nowhere in the graph
    is taken uncounted: an uncovered page above zero adds something.
    """
    if len(coverage.seeds) >= k:
        return
    order = np.flatnonzero((problem.weight > 0) & ~coverage.covered)
    order = order[np.argsort(-problem.weight[order], kind="stable")]
    most_work = coverage.work + _FILL_LINKS
    for first in range(0, len(order), BATCH):
        pages = order[first : first + BATCH]
        while len(pages := pages[coverage.left[pages] < 0]):
            if len(coverage.seeds) >= k or (problem.has_negative and coverage.work > most_work):
                return
            best = 0
            if coverage.work <= most_work:
                value, _ = coverage.weigh(pages)
                best = int(np.argmax(value))
                if value[best] <= problem.rounding:
                    break
            coverage.take(int(pages[best]))


def bound_by_sample(
    problem: SeedProblem,
    k: int,
    rng: np.random.Generator,
    *,
    samples: int | None = None,
    memory_bytes: int = MEMORY_BYTES,
    confidence: float = CONFIDENCE,
    rounds: int = ROUNDS,
) -> Bound:
    """The bound on the optimum alone, for choices by other methods: greedy covers a sample of what is above zero."""
    above = SeedProblem(problem.graph, np.maximum(problem.weight, 0.0), problem.hops)
    sample = sample_targets(above, rng, samples, memory_bytes)
    gains = LazyGains(above.graph.count, sample.weigh)
    most_targets, chosen_at = gains.most(k), np.full(sample.drawn, -1, np.int64)
    for chosen in range(k):
        page, gain = gains.best()
        if gain <= 0:
            break
        chosen_at[sample.as_mask(sample.open & sample.reach_bits(page))] = chosen
        sample.take(page)
        gains.note_taken(page, 0.0)
    most_targets = min(most_targets, _covered_above(sample) + gains.most(k, exactly=True))
    most_targets = min(most_targets, _price(sample, chosen_at, k, rounds))
    return _tighter(problem, k, sample_bound(sample.drawn_above, most_targets, problem.positive, confidence))


def _tighter(problem: SeedProblem, k: int, bound: Bound) -> Bound:
    ceiling = problem.ceiling(k)
    return Bound(ceiling) if ceiling <= bound.value else bound


def sample_bound(drawn: int, most_targets: float, positive: float, confidence: float = CONFIDENCE) -> Bound:
    """[BEYOND] What the best choice covers at most, by a sample of which no choice covers more than `most_targets`.

    The best choice is fixed before targets are drawn, so those it covers are binomial with p = its value/`positive`;
    were p above the exact (Clopper–Pearson) upper limit for `most_targets` of `drawn`, so few would be covered with
    probability below 1 - confidence. Nothing need be said of all other choices.

    >>> round(sample_bound(1000, 500, 1.0).value, 3)
    0.537
    """
    from scipy.stats import beta

    most = min(int(most_targets + 1e-6), drawn)  # a sum of fractions may end just below a whole number
    if drawn == 0 or most >= drawn:
        return Bound(positive)
    return Bound(positive * float(beta.ppf(confidence, most + 1, drawn - most)), confidence)
