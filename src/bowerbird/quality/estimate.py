"""The quality of the repository now, from a random sample of pages fetched live: an estimate with its interval.

Q = V_local / V_live. The answers that the repository gives are known in full, so only differences are estimated.

V_local: what the local results are worth live. Probed results count as they are; the others are taken to have changed
by the same factor, pooled over the probes' results with weights (f·I)^pooling, of which one query that is asked often
cannot have most.

V_live = sum_q f_q·∫ E[C(N_q(s))] ds. At a level s with k local results above it, N = k - departures + arrivals.
How many pages come and go is far too uncertain for one query, and C is concave: pages that arrive together compete
for the same ranks. So levels of all queries are pooled by the number of local results above them. Departures are
binomial; arrivals above the k-th local result are negative binomial with shape k, which is exact when the fetched
pages are a random share of all, whatever the distribution of the scores.

The interval has three parts: the probes are a sample (a smooth bootstrap within strata); results that were not probed
did not all change by the mean (drawn from the changes seen, result by result); the model of competition is a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bowerbird.quality.answers import EXACT_RANKS, FloatArray, IntArray, LocalAnswers, Visibility, view_table
from bowerbird.quality.levels import MOST_ARRIVALS, Levels, expected_views, pool_levels

CAUSES = ("rose", "fell", "unfetched", "gone")
HEAVY_RESULTS = 400  # as many results have their own change drawn; the rest average out
UNSEEN_LOSS = 0.5  # probes that lost everything, imagined in the interval: none seen does not mean there is none
MODEL_ERROR = 0.1  # of the competition between arrivals, one standard deviation


@dataclass(frozen=True, slots=True)
class ProbeTable:
    """Pages fetched at random, and what each turned out to score.

    One row per probe, one probe per page: `weight` = 1/probability of having been drawn, `stratum` = number of the
    group it was drawn from, `fetched` = it was in the repository, `gone` = it no longer exists. One entry per probe and
    query whose answer had it or has it: `probe` (row), `query`, `old` score in the repository (0: not there), `new`
    score live (0: no more).
    """

    weight: FloatArray
    stratum: IntArray
    fetched: npt.NDArray[np.bool_]
    gone: npt.NDArray[np.bool_]
    probe: IntArray
    query: IntArray
    old: FloatArray
    new: FloatArray

    def __len__(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, slots=True)
class QualityEstimate:
    """Quality with its 95% interval; each cause with its part of the loss 1 - Q and an interval of that."""

    quality: float
    low: float
    high: float
    value_local: float
    value_live: float
    causes: dict[str, tuple[float, float, float]]
    probes: int


class _Measured(NamedTuple):
    """Everything linear that the probes say, one row per probe."""

    arrivals: FloatArray  # probes × pools, seen: weight f
    arrivals_pooled: FloatArray  # the same with weight f^pooling, for all that was not probed
    departures: FloatArray
    departures_pooled: FloatArray
    gains: FloatArray  # probes × causes: quality lost by this page alone
    gains_pooled: FloatArray
    arrival_value: FloatArray  # per entry: what its page gains the answer as the only arrival
    change_value: tuple[FloatArray, FloatArray]  # per pool: of one arrival, of one departure


def resample_weights(probes: ProbeTable, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Rows of bootstrap weights, smooth ones that never leave a probe out; each stratum keeps its sum."""
    rows = np.empty((resamples, len(probes)))
    for stratum in np.unique(probes.stratum):
        members = np.flatnonzero(probes.stratum == stratum)
        drawn = rng.exponential(size=(resamples, len(members)))
        rows[:, members] = drawn / drawn.mean(axis=1, keepdims=True)
    return rows


def estimate_quality(
    frequency: FloatArray,
    local: LocalAnswers,
    probes: ProbeTable,
    visibility: Visibility,
    *,
    rng: np.random.Generator,
    resamples: int = 400,
    pooling: float = 0.5,
    repaired: float | None = None,
) -> QualityEstimate:
    """Q now, its 95% interval, and the loss split into pages that rose, fell, are unfetched, are gone.

    The loss is split in proportion to what each probed page alone would gain by a fetch. `pooling` between 0 and 1:
    how much more the pages of frequent queries count where changes are averaged; 1 assumes nothing and varies most.
    Without probes nothing is known: quality is nan, the interval 0…1.

    `local` are the answers from before the probes were fetched, and a page has one probe at most. Q is that of then;
    or that of now, if `repaired` says by how much what the probes brought has raised V_local since.
    """
    if not len(probes):
        unknown = (float("nan"), 0.0, 1.0)
        return QualityEstimate(*unknown, float("nan"), float("nan"), dict.fromkeys(CAUSES, unknown), 0)
    views = view_table(visibility, int(local.totals.max(initial=0)) + 4 * MOST_ARRIVALS)
    upto = np.concatenate([[0.0], np.cumsum(views)])
    known = float(frequency @ local.values(views))
    shown = local.views(probes.query, probes.old, views)
    levels = pool_levels(frequency, local)
    width = levels.width(frequency)
    before = np.interp(levels.above, np.arange(len(upto)), upto)
    measured = _measure(frequency, frequency**pooling, levels, probes, shown, upto)

    rest = np.maximum(probes.weight - 1, 0)
    weights = np.vstack([np.ones(len(probes)), resample_weights(probes, resamples, rng)]) * rest
    arriving = measured.arrivals.sum(axis=0) + weights @ measured.arrivals_pooled
    departing = np.clip(measured.departures.sum(axis=0) + weights @ measured.departures_pooled, 0, 1)
    joint = (expected_views(levels.above, departing, arriving, levels.shape, upto) - before) @ width
    one_more, one_less = measured.change_value
    alone = (arriving * one_more - departing * levels.above * one_less) @ width
    value_live = known + joint

    seen = frequency[probes.query] * shown
    pooled = seen**pooling * (probes.old > 0)
    lost: FloatArray = np.bincount(probes.probe, pooled * (probes.new - probes.old), len(probes)).astype(np.float64)
    had: FloatArray = np.bincount(probes.probe, pooled * probes.old, len(probes)).astype(np.float64)
    change, size = weights @ lost, weights @ had
    imagined = rng.gamma(UNSEEN_LOSS, size=resamples) * (rest @ had) / max(int(np.count_nonzero(had)), 1)
    change[1:] -= imagined
    size[1:] += imagined
    factor = change / np.maximum(size, 1e-300)
    unprobed = max(known - float(seen @ probes.old), 0.0)
    value_local = known + float(seen @ (probes.new - probes.old)) + unprobed * factor + (repaired or 0.0)

    donors = rest[probes.probe] * pooled * probes.old
    noise_local, noise_live = _scatter(frequency, local, views, probes, donors, factor[0], resamples, rng)
    spread = _arrival_spread(frequency, frequency**pooling, probes, measured.arrival_value)
    spread *= float(np.clip(joint[0] / alone[0], 0, 1)) if alone[0] > 0 else 1.0  # what competes adds up to less
    spread = np.hypot(spread, MODEL_ERROR * (alone[0] - joint[0]))
    value_local[1:] += noise_local
    value_live[1:] += noise_live + _spread_gain(float(joint[0]), float(spread), resamples, rng)

    quality = np.clip(value_local / np.where(value_live > 0, value_live, 1), 0, 1)
    quality[value_live <= 0] = 1.0
    own = measured.gains.sum(axis=0) if repaired is None else 0.0
    split = np.maximum(own + weights @ measured.gains_pooled, 0)
    whole = split.sum(axis=1, keepdims=True)
    split = np.where(whole > 0, split / np.where(whole > 0, whole, 1), 1 / len(CAUSES)) * (1 - quality)[:, None]
    low, high = np.quantile(quality[1:], [0.025, 0.975])
    bounds = np.quantile(split[1:], [0.025, 0.975], axis=0)
    return QualityEstimate(
        float(quality[0]),
        float(min(low, quality[0])),
        float(max(high, quality[0])),
        float(value_local[0]),
        float(value_live[0]),
        {name: (float(split[0, c]), float(bounds[0, c]), float(bounds[1, c])) for c, name in enumerate(CAUSES)},
        len(probes),
    )


def _spread_gain(gain: float, spread: float, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Deviations of what arrivals gain: of this spread, skewed, and never so low that arrivals would do harm."""
    if not spread:
        return np.zeros(resamples)
    if gain <= 0:
        return spread * rng.normal(size=resamples)
    shape = (gain / spread) ** 2
    return rng.gamma(shape, size=resamples) * (gain / shape) - gain


def _measure(
    frequency: FloatArray,
    even: FloatArray,
    levels: Levels,
    probes: ProbeTable,
    shown: FloatArray,
    upto: FloatArray,
) -> _Measured:
    """Arrivals and departures by pool, and each entry's single-page gain, summed over the entries of a probe."""
    places = np.arange(len(upto))
    before = np.interp(levels.above, places, upto)
    one_more = np.interp(levels.above + 1, places, upto) - before
    one_less = before - np.interp(levels.above - 1, places, upto)
    count, query = len(probes), probes.query
    kinds = [(frequency[query], levels.width(frequency)), (even[query], levels.width(even))]
    tables = [np.zeros((count, len(before))) for _ in range(4)]
    gain = -shown * (probes.new - probes.old)
    arrival_value = np.zeros(len(query))
    for pool in range(len(before)):
        lower, upper = levels.lower[pool, query], levels.upper[pool, query]
        change = np.clip(probes.new, lower, upper) - np.clip(probes.old, lower, upper)
        up, down = np.maximum(change, 0), np.maximum(-change, 0)
        arrival_value += one_more[pool] * up
        gain += one_more[pool] * up - one_less[pool] * down
        for kind, (weight, width) in enumerate(kinds):
            tables[kind][:, pool] = np.bincount(probes.probe, weight * up, count) / width[pool]
            share = max(levels.above[pool], 1.0) * width[pool]
            tables[2 + kind][:, pool] = np.bincount(probes.probe, weight * down, count) / share
    gain = np.maximum(gain, 0)
    fetched, gone = probes.fetched[probes.probe], probes.gone[probes.probe]
    cause = np.where(~fetched, 2, np.where(gone, 3, (probes.new <= probes.old).astype(np.int64)))
    gains: FloatArray = np.zeros((2, count, len(CAUSES)), dtype=np.float64)
    for kind, weight in enumerate((frequency[query], even[query] * (frequency.sum() / even.sum()))):
        for c in range(len(CAUSES)):
            gains[kind, :, c] = np.bincount(probes.probe, weight * gain * (cause == c), count)
    come, come_pooled, go, go_pooled = tables
    return _Measured(come, come_pooled, go, go_pooled, gains[0], gains[1], arrival_value, (one_more, one_less))


def _scatter(
    frequency: FloatArray,
    local: LocalAnswers,
    views: FloatArray,
    probes: ProbeTable,
    donors: FloatArray,
    mean: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """How far the heavy results may be from the mean change, and what that does to V_local and V_live."""
    nothing = np.zeros(resamples)
    usable = np.flatnonzero(donors > 0)
    if not len(usable):
        return nothing, nothing
    ranks = np.arange(1, EXACT_RANKS + 2)
    scores = local.on_grid(ranks) * (ranks <= local.totals[:, None])
    value = frequency[:, None] * views[:EXACT_RANKS] * scores[:, :-1]
    # Where a result disappears those below it move up: live, only the steps below its place are lost.
    step = frequency[:, None] * views[:EXACT_RANKS] * (scores[:, :-1] - scores[:, 1:])
    step[:, -1] += frequency * views[EXACT_RANKS - 1] * scores[:, -1]
    live = np.cumsum(step[:, ::-1], axis=1)[:, ::-1]
    heavy = np.argsort(-value, axis=None)[:HEAVY_RESULTS]
    changes = probes.new[usable] / probes.old[usable] - 1
    odds = donors[usable] / donors[usable].sum()
    drawn = changes[rng.choice(len(usable), size=(resamples, len(heavy)), p=odds)] - mean
    unseen = np.sqrt(max(1 - 1 / probes.weight[probes.fetched].mean(), 0))
    return unseen * (drawn @ value.ravel()[heavy]), unseen * (drawn @ live.ravel()[heavy])


def _arrival_spread(frequency: FloatArray, even: FloatArray, probes: ProbeTable, arrival_value: FloatArray) -> float:
    """Standard deviation of V_live: in one query more or fewer pages arrive than in the mean of all."""
    rest = np.maximum(probes.weight[probes.probe] - 1, 0)
    one_query = float((rest * even[probes.query]) @ arrival_value**2) / max(float(even.sum()), 1e-300)
    odds = probes.weight[~probes.fetched].sum() / max(probes.weight[probes.fetched].sum(), 1.0)
    return float(np.sqrt(one_query * (1 + odds) * (frequency @ frequency)))
