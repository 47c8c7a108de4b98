"""What each update of a page would gain if it were fetched in the week in which it appears: by [UC05], and exactly.

By [UC05]: the workload is split into single-term queries; of each there is a score-rank curve F_q, fitted at week 0;
the gain of an update is taken from the old and the new score alone. There are two readings of the closed form: that of
`quality.gain.curve_gain`, and `direct`, where the old rank too is rounded up for a rising score and down for a falling
one, and sums over ranks are not put in place of integrals.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_replay import Replay, Truth
from bowerbird.lab.refresh_scores import ScoredVersions, score_versions
from bowerbird.lab.refresh_terms import I64
from bowerbird.quality.curves import PIECES, CurveRows, CurveTable
from bowerbird.quality.gain import WHOLE

EXPONENT = 1.5


def curve_gains_by_update(
    data: RefreshData, queries: ScoredVersions, scoring: str, *, direct: bool = True
) -> FloatArray:
    """[UC05] the gain of each version over the page's version before, by curves of single-term queries; first: 0.

    In units of Q at week 0 of the split workload, whose best value the gains are divided by.
    """
    scored = score_versions(data, queries.queries.split(), scoring)
    rows = fit_curves(scored)
    gains = np.zeros(len(data.week))
    _gain_versions(
        data.first, scored.of, scored.slots, scored.at, scored.scores, scored.slot_query,
        scored.queries.frequency, rows.astype(np.float64), direct, gains,
    )  # fmt: skip
    best = float(Truth(scored).best[0])
    return gains / best if best > 0 else gains


def exact_gains_by_update(truth: Truth) -> FloatArray:
    """The exact gain of each version in the week in which it appears, all other pages as they were the week before."""
    state, data = Replay(truth), truth.scored.data
    gains = np.zeros(len(data.week))
    for updates in truth.updates:
        state.begin_week()
        pages = data.page[updates]
        gains[updates] = state.gains()[pages]
        state.refresh(pages)
    return gains


def fit_curves(scored: ScoredVersions) -> CurveRows:
    """F_q of each query from its whole answer at week 0."""
    scores = scored.at_start()
    samples, totals = [], []
    for query in range(len(scored.queries)):
        answer = scores[scored.query_starts[query] : scored.query_starts[query + 1]]
        answer = np.sort(answer[answer > 0])[::-1]
        samples.append((np.arange(1, len(answer) + 1), answer))
        totals.append(len(answer))
    return CurveTable.fit(samples, totals).rows


@numba.njit(cache=True, nogil=True)
def _gain_versions(
    first: I64, of: I64, slots: I64, at: I64, scores: FloatArray, slot_query: npt.NDArray[np.int32],
    frequency: FloatArray, rows: FloatArray, direct: bool, gains: FloatArray,
) -> None:  # fmt: skip
    for page in range(len(first) - 1):
        for version in range(first[page] + 1, first[page + 1]):
            total = 0.0
            for k in range(of[page + 1] - of[page]):
                old, new = scores[at[version - 1] + k], scores[at[version] + k]
                if old != new:
                    query = slot_query[slots[of[page] + k]]
                    total += frequency[query] * curve_gain_of(rows[query], old, new, direct)
            gains[version] = total


@numba.njit(cache=True, nogil=True)
def _curve_score(row: FloatArray, rank: float) -> float:
    if row[0] <= 0:
        return 0.0
    place = np.log(max(rank, 1e-9)) / np.log(max(row[0], 2.0)) * PIECES
    piece = int(min(max(np.floor(place), 0.0), PIECES - 1.0))
    return float(np.exp(row[1 + piece] + (row[2 + piece] - row[1 + piece]) * (place - piece)))


@numba.njit(cache=True, nogil=True)
def _curve_rank(row: FloatArray, score: float) -> float:
    if row[0] <= 0:
        return 1.0
    level = np.log(max(score, 1e-60))
    piece = 0
    for end in range(1, PIECES):
        if row[1 + end] >= level:
            piece += 1
    place = piece + (level - row[1 + piece]) / (row[2 + piece] - row[1 + piece])
    length = np.log(max(row[0], 2.0))
    return float(np.exp(min(max(place / PIECES * length, 0.0), np.log(row[0] + 1))))


@numba.njit(cache=True, nogil=True)
def _stepped(row: FloatArray, first: int, last: int, towards: int) -> float:
    """Sum over r = first…last of I(r)·delta, piece by piece; none over a doubling."""
    total, start = 0.0, first
    length = np.log(max(row[0], 2.0))
    while start <= last:
        end = min(last, 2 * start - 1)
        for piece in range(1, PIECES + 1):
            bound = int(np.exp(length * piece / PIECES))
            if start <= bound < end:
                end = bound
        if towards < 0:
            drop = _curve_score(row, start - 1) - _curve_score(row, end)
        else:
            drop = _curve_score(row, start) - _curve_score(row, end + 1)
        total += 2.0 * ((start - 0.5) ** -0.5 - (end + 0.5) ** -0.5) * drop / (end - start + 1)
        start = end + 1
    return total


@numba.njit(cache=True, nogil=True)
def _whole_rank(row: FloatArray, score: float, rising: bool, last: int) -> int:
    """Up for a rising score, down for a falling one."""
    rank = _curve_rank(row, score)
    return int(min(max(np.ceil(rank * (1 - WHOLE)) if rising else np.floor(rank * (1 + WHOLE)), 1), last))


@numba.njit(cache=True, nogil=True)
def curve_gain_of(row: FloatArray, old: float, new: float, direct: bool) -> float:
    """[UC05] the gain by the curve F_q alone, compiled, I(r) = r^-1.5; unless `direct`, as `quality.gain` has it."""
    rising = new > old
    last = max(int(row[0]) + (0 if old > 0 else 1), 1)
    r1, r2 = last, last
    if old > 0:
        r1 = int(min(max(np.round(_curve_rank(row, old)), 1), last))
        if direct:
            r1 = _whole_rank(row, old, rising, last)
    if new > 0:
        r2 = _whole_rank(row, new, rising, last)
    if old > 0 and (r2 > r1 if rising else r2 < r1):
        r2 = r1
    place1, place2 = float(r1) ** -EXPONENT, float(r2) ** -EXPONENT
    gain = ((place2 if new > 0 else 0.0) - (place1 if old > 0 else 0.0)) * new
    if direct:
        for rank in range(r2, r1):  # who is there goes one place down
            gain -= (float(rank) ** -EXPONENT - float(rank + 1) ** -EXPONENT) * _curve_score(row, rank)
        for rank in range(r1 + 1, r2 + 1):  # or up
            gain += (float(rank - 1) ** -EXPONENT - float(rank) ** -EXPONENT) * _curve_score(row, rank)
    elif r2 < r1:
        gain += place1 * _curve_score(row, r1 - 1) + _stepped(row, r2 + 1, r1 - 1, -1)
        gain -= place2 * _curve_score(row, r2)
    elif r1 < r2:
        gain += place1 * _curve_score(row, r1 + 1) - _stepped(row, r1 + 1, r2 - 1, 1)
        gain -= place2 * _curve_score(row, r2)
    return max(gain, 0.0)
