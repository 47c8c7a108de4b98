"""Gains of real queries by the scores that the repository has: what a crawler can measure without curves.

[UC05] takes the gain of an update from curves of single-term queries. Here the queries are those of the workload, and
the formula is the exact one, but for the other pages of an answer, whose live scores nobody knows: their local scores
stand for them. Two repositories are looked at: one that was fresh the week before, and a stale one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.lab.refresh_data import FloatArray
from bowerbird.lab.refresh_replay import Policy, Replay, Truth

#: fewer say nothing of a rank correlation
FEWEST = 5


@dataclass(frozen=True, slots=True)
class GainPairs:
    """Of every update, what its page's refresh would gain in the week in which it appears."""

    exact: FloatArray
    local: FloatArray


def local_gains_by_update(truth: Truth) -> FloatArray:
    """[UC05] eq. 5 with local scores of other pages: by version, all pages as they were the week before; first: 0."""
    state, data = Replay(truth), truth.scored.data
    gains = np.zeros(len(data.week))
    for updates in truth.updates:
        state.begin_week()
        pages = data.page[updates]
        gains[updates] = state.gains(by_local=True)[pages]
        state.refresh(pages)
    return gains


def gains_when_stale(truth: Truth, policy: Policy, share: float) -> GainPairs:
    """The same of a repository that a policy keeps, so that much of it is stale: in order of the weeks."""
    state, data = Replay(truth), truth.scored.data
    budget = round(share * data.count)
    exact, local = [np.zeros(0)], [np.zeros(0)]
    for updates in truth.updates:
        state.begin_week()
        pages = data.page[updates]
        exact.append(state.gains()[pages])
        local.append(state.gains(by_local=True)[pages])
        state.refresh(np.unique(policy(state, budget)))
    return GainPairs(np.concatenate(exact), np.concatenate(local))


def rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Spearman's; NaN where there is too little, or all values are the same.

    >>> rank_correlation(np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 4, 9, 16, 25])), rank_correlation(*np.ones((2, 9)))
    (1.0, nan)
    """
    from scipy.stats import rankdata

    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1].round(12))
