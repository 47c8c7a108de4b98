"""Are expectations met? Realised by expected gains, with an interval.

Expectations are as they were when a fetch was decided; of gains that take time, what was expected by now. Ratios are
shrunk to 1 while there is little, and few events are no proof. `correction.py` has the factor that sets a kind right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from bowerbird.model.watch import KindWatch

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

PRIOR_EVENTS = 5.0  # as expected, before any is known
FARTHEST = 10.0  # a factor stays within 1/10 … 10
LEVEL = 0.95
QUOTA = 2_000  # decisions of a kind that are looked at
ALIKE = 100  # decisions, that one step of what was learnt since is told from


def spread_evenly(count: int, most: int = QUOTA) -> I64:
    """Places of at most so many of `count` in a row, evenly by number, the last among them.

    Clicks take their time: the last fetches alone would tell nothing of them.

    >>> spread_evenly(10, 4).tolist(), spread_evenly(3, 4).tolist()
    ([1, 4, 6, 9], [0, 1, 2])
    """
    taken = min(count, most)
    return (np.arange(1, taken + 1, dtype=np.int64) * count) // max(taken, 1) - 1


def expected_by(clicks: F64, decay_per_s: F64, waited_s: F64, horizon_s: float | F64) -> F64:
    """[ECHO13] (1 - exp(-mu·t))/(1 - exp(-mu·H)): of the clicks expected within H, those by now; evenly where mu is 0.

    >>> expected_by(np.array([8.0, 8.0]), np.array([0.0, 1e9]), np.array([5.0, 5.0]), 10.0).tolist()
    [4.0, 8.0]
    """
    waited = np.clip(waited_s, 0.0, horizon_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        faded = np.expm1(-decay_per_s * waited) / np.expm1(-decay_per_s * horizon_s)
    return np.asarray(clicks * np.where(decay_per_s > 0, faded, waited / horizon_s))


def as_learnt(then: F64, now: F64, at_s: F64) -> F64:
    """[BEYOND] sum P now/sum P then: by which what was expected of announced pages is multiplied before it is compared.

    Studies learn from the same clicks: if P was too high then and has been put right since, the watch would do so once
    more, and have no such page fetched any more that could tell. P is that of the hub which announced each; the sums
    are over decisions of about the same time, for how hubs differ is left as it was thought then, or it would be
    compared with what it was learnt from. 1 where nobody knew P then (NaN).

    >>> as_learnt(np.array([4.0, np.nan, 0.0, 2.0]), np.array([1.0, 1.0, 1.0, 2.0]), np.arange(4.0)).tolist()
    [0.5, 1.0, 1.0, 0.5]
    """
    times = np.ones(len(then))
    known = np.flatnonzero((then > 0) & (now > 0))
    by_time = known[np.argsort(at_s[known], kind="stable")]
    for alike in np.array_split(by_time, max(len(known) // ALIKE, 1)) if len(known) else ():
        times[alike] = now[alike].sum() / then[alike].sum()
    return times


def expected_changes(changes_per_s: F64, age_s: F64) -> F64:
    """[UC05] 1 - exp(-Delta·tau): how likely a page of this age has changed."""
    return np.asarray(-np.expm1(-changes_per_s * np.maximum(age_s, 0.0)))


def clump_size(realised: F64, size: float) -> float:
    """[BEYOND] c = (sum y² + t²)/(sum y + t): events that come together, as clicks on one page do; 1 at least.

    t is the largest y: one more as large may be due at any time. Without it gains of which few are large, and the
    largest still to come, would be taken for surer than they are.

    >>> clump_size(np.array([0.0, 1.0, 1.0]), 1.0), clump_size(np.array([0.0, 2.0, 4.0]), 1.0)
    (1.0, 3.6)
    """
    got, top = float(realised.sum()), float(realised.max(initial=0.0))
    return max((float((realised**2).sum()) + top**2) / ((got + top) * size), 1.0) if got > 0 else 1.0


def watch_kind(name: str, expected: F64, realised: F64, unit: str, events: float | None = None) -> KindWatch:
    """[BEYOND] (k + n)/(k + m): n events where m were expected, k more as expected; a Gamma tells how sure that is.

    An event is one click, one page found, one change that mattered; `events` are those expected where `expected` counts
    something else. Gains come in lumps, so what is realised is taken to vary by more than chance where it shows that,
    and the upper end of the interval has one gain more, as large as the largest. (An exact interval of a Poisson count
    has one event more there.) Gains far beyond any that was seen are not in it: nobody could tell.
    """
    count, total, got = len(expected), float(expected.sum()), float(realised.sum())
    if count == 0 or not total > 0.0:
        return KindWatch(name, count, total, got, unit, 1.0, 0.0, FARTHEST, 0.0)
    foreseen = total if events is None else max(events, 1e-12)
    size = total / foreseen  # of one event
    seen = got / size
    lumps = clump_size(realised, size)
    ratio = (PRIOR_EVENTS + seen) / (PRIOR_EVENTS + foreseen)
    most = seen + float(realised.max()) / size
    low = gammaincinv((PRIOR_EVENTS + seen) / lumps, 0.5 - LEVEL / 2)
    high = gammaincinv((PRIOR_EVENTS + most) / lumps, 0.5 + LEVEL / 2)
    known = (PRIOR_EVENTS + foreseen) / lumps
    return KindWatch(name, count, total, got, unit, ratio, float(low / known), float(high / known), foreseen)
