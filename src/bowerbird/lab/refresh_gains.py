"""What each update of a page would gain if it were fetched in the week in which it appears: by [UC05], and exactly.

By [UC05]: the workload is split into single-term queries; of each there is a score-rank curve F_q, fitted at week 0;
the gain of an update is taken from the old and the new score alone, as a running crawl does it.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_replay import Replay, Truth
from bowerbird.lab.refresh_scores import ScoredVersions, score_versions
from bowerbird.lab.refresh_terms import I64
from bowerbird.quality.curves import CurveRows, CurveTable
from bowerbird.quality.gain_kernels import SHORT, curve_gain_of

EXPONENT = 1.5
#: at which an answer is looked at for its curve, equally far apart in log rank: five for each of the three pieces
SAMPLED_RANKS = 15


def curve_gains_by_update(data: RefreshData, queries: ScoredVersions, scoring: str) -> FloatArray:
    """[UC05] the gain of each version over the page's version before, by curves of single-term queries; first: 0.

    In units of Q at week 0 of the split workload, whose best value the gains are divided by.
    """
    scored = score_versions(data, queries.queries.split(), scoring)
    rows = fit_curves(scored)
    gains = np.zeros(len(data.week))
    _gain_versions(
        data.first, scored.of, scored.slots, scored.at, scored.scores, scored.slot_query,
        scored.queries.frequency, rows.astype(np.float64), scored.views[:SHORT], EXPONENT, gains,
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
    """F_q of each query from its answer at week 0."""
    scores = scored.at_start()
    samples, totals = [], []
    for query in range(len(scored.queries)):
        answer = scores[scored.query_starts[query] : scored.query_starts[query + 1]]
        answer = np.sort(answer[answer > 0])[::-1]
        ranks = np.unique(np.rint(np.geomspace(1, max(len(answer), 1), SAMPLED_RANKS)).astype(np.int64))
        samples.append((ranks[: len(answer)], answer[ranks[: len(answer)] - 1]))
        totals.append(len(answer))
    return CurveTable.fit(samples, totals).rows


@numba.njit(cache=True, nogil=True)
def _gain_versions(
    first: I64, of: I64, slots: I64, at: I64, scores: FloatArray, slot_query: npt.NDArray[np.int32],
    frequency: FloatArray, rows: FloatArray, views: FloatArray, exponent: float, gains: FloatArray,
) -> None:  # fmt: skip
    for page in range(len(first) - 1):
        for version in range(first[page] + 1, first[page + 1]):
            total = 0.0
            for k in range(of[page + 1] - of[page]):
                old, new = scores[at[version - 1] + k], scores[at[version] + k]
                if old != new:
                    query = slot_query[slots[of[page] + k]]
                    total += frequency[query] * curve_gain_of(rows[query], old, new, views, exponent)
            gains[version] = total
