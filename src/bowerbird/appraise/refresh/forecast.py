"""What to expect of pages, from past visits alone: how often each changes, and what its searchers lose when it does.

A page's past gains say little about its next one, which depends on what happens to be written (docs/refresh.md has the
figures). Two things do say something. One is how often pages of its kind change by much: every visit adds to that. The
other is what there is to gain or lose, the *stake*: the places that the page has in answers, and those it could come
to have. So the loss of a change is taken to be in proportion to the stake; measured gains scale the proportion, for
all pages, and for each page that has shown more or less than its share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.change_rate import weigh_visits
from bowerbird.appraise.refresh.dates import fit_births, trust_past, weigh_quiet, weigh_told
from bowerbird.appraise.refresh.inputs import F64, I64, RefreshInputs
from bowerbird.appraise.refresh.priors import Priors, fit_priors
from bowerbird.appraise.threads import share

WHOLE_CHANGE = 0.1  # a change of this share of the shingles counts as one, a smaller one as part of one
LEAST_STAKE = 0.1  # of the mean: who has no stake today may get one by a change
GAIN_STRENGTH = 10.0  # changes after which a page's own gains weigh as much as its stake
MOST_TIMES = 10.0  # one gain counts at most as so many times the expected
LEAST_SHAPE, MOST_SHAPE = 0.5, 50.0
WEIGHED_TIMES, FITTED_TIMES = 4, 2  # visits, and priors to them
DAY_S = 86400.0
FIRST_RATE_PER_S = 1.0 / (365 * DAY_S)  # before any visit


@dataclass(frozen=True, slots=True)
class Forecast:
    """By page. A significant change is one of at least a tenth of the text, or smaller ones that add up to it."""

    changes_per_s: F64  # of any size
    significant_per_s: F64
    loss: F64  # share of Q lost as long as one change, of a size as is usual for the page, is missed
    certainty: F64  # the shape of the Gamma behind the rate of changes: how many it rests on, the prior's included
    scale: float  # share of Q gained by a significant change of a page with a stake of 1; NaN before any is measured

    @property
    def growth_per_s(self) -> F64:
        """[UC05] by how much the share of Q that a refresh gains grows with the page's age, forecast."""
        return self.changes_per_s * self.loss


def forecast_pages(inputs: RefreshInputs) -> Forecast:
    """Rates from visits, by page shrunk to those of its groups; losses from stakes and measured gains."""
    _ = inputs.cells  # both need them
    if inputs.dates is None:
        (changes, certainty), (significant, size) = share(
            lambda first, _: count_changes(inputs) if first == 0 else count_significant(inputs), [(0, 1), (1, 2)]
        )
    else:
        past = trust_past(inputs.dates, *count_changes(inputs))
        changes, certainty = count_changes(inputs, past)
        significant, size = count_significant(inputs, past, changes)
    worth = weigh_stakes(inputs.stake)
    factor, scale = gain_factors(inputs.starts, size, inputs.gain, worth)
    return Forecast(changes, significant, significant / changes * factor * worth, certainty, scale)


def significance(shift: F64, changed: npt.NDArray[np.bool_]) -> F64:
    """[UC05] how much of a significant change each visit found: min(1, changed share of the shingles/0.1)."""
    return np.where(changed, np.minimum(shift / WHOLE_CHANGE, 1.0), 0.0)


def weigh_stakes(stake: F64) -> F64:
    """Stakes, each raised by a tenth of their mean; 1 for all where nobody has any."""
    mean = float(stake.mean()) if len(stake) else 0.0
    return stake + LEAST_STAKE * mean if mean > 0 else np.ones(len(stake))


def gain_factors(starts: I64, size: F64, gain: F64, worth: F64) -> tuple[F64, float]:
    """[BEYOND] By page, share of Q gained per stake and significant change: the mean of all pages, and as each showed.

    The mean c is sum(gain)/sum(size·stake); a page's factor is c·(k + sum(size·ratio))/(k + sum(size)), where the ratio
    is that of a gain to the expected one. Visits without a measured gain (NaN) are left out; without any that gained,
    all factors are 1 and the mean is NaN.
    """
    gained, moved = _sum_gains(starts, size, gain, worth)
    if not (gained > 0 and moved > 0):
        return np.ones(len(worth)), float("nan")
    factor = np.empty(len(worth))
    _weigh_gains(starts, size, gain, worth, gained / moved, factor)
    return factor, gained / moved


@numba.njit(cache=True, nogil=True)
def _sum_gains(starts: I64, size: F64, gain: F64, worth: F64) -> tuple[float, float]:
    gained = moved = 0.0
    for page in range(len(worth)):
        for visit in range(starts[page], starts[page + 1]):
            if not np.isnan(gain[visit]):
                gained += gain[visit]
                moved += size[visit] * worth[page]
    return gained, moved


@numba.njit(cache=True, nogil=True)
def _weigh_gains(starts: I64, size: F64, gain: F64, worth: F64, scale: float, factor: F64) -> None:
    for page in range(len(worth)):
        weight, shown = GAIN_STRENGTH, GAIN_STRENGTH
        for visit in range(starts[page], starts[page + 1]):
            expected = scale * size[visit] * worth[page]
            if expected > 0.0 and not np.isnan(gain[visit]):
                weight += size[visit]
                shown += size[visit] * min(gain[visit] / expected, MOST_TIMES)
        factor[page] = scale * shown / weight


def count_changes(inputs: RefreshInputs, past: F64 | None = None) -> tuple[F64, F64]:
    """[BEYOND] Delta, where likelihood of the visits times prior of the groups is highest; and the Gamma's shape.

    Visits say only whether there was a change. Taken as Poisson evidence at a rate, they are exact at that rate alone:
    so they are weighed again at the rates found, from that of all pages to that of each. What pages' own dates tell of
    changes is added to them, and of the time before the first fetch by `past`.
    """
    watched, dates = float(inputs.interval_s.sum()), inputs.dates
    if watched > 0:
        rate = np.full(inputs.count, max(float(np.count_nonzero(inputs.changed)), 0.5) / watched)
    elif dates is not None and past is not None and np.nansum(past * dates.recall * dates.quiet_s) > 0:
        rate = np.full(inputs.count, FIRST_RATE_PER_S)
    else:
        return np.full(inputs.count, FIRST_RATE_PER_S), np.full(inputs.count, LEAST_SHAPE)
    shape, prior = np.zeros(0), None
    for step in range(WEIGHED_TIMES):
        events, exposure = weigh_visits(inputs.starts, inputs.interval_s, inputs.changed, rate)
        if dates is not None:
            told = weigh_told(dates, inputs.visited, inputs.interval_s, rate)
            events, exposure = events + told[0], exposure + told[1]
        if dates is not None and past is not None:
            quiet = weigh_quiet(dates, past, rate, fit_births(dates, past, rate))
            events, exposure = events + quiet[0], exposure + quiet[1]
        if step < FITTED_TIMES or prior is None:
            prior = _fit(inputs, events, exposure)
        rate, shape = prior.posterior(events, exposure)
    return rate, shape


def count_significant(
    inputs: RefreshInputs, past: F64 | None = None, changes_per_s: F64 | None = None
) -> tuple[F64, F64]:
    """Significant changes a second by page; and by visit, how much of one it found.

    A change before the first fetch that only a date tells of counts as one of mean size; how many there were depends on
    `changes_per_s`.
    """
    size = significance(inputs.shift, inputs.changed)
    found, watched = np.zeros(inputs.count), np.zeros(inputs.count)
    _add_visits(inputs.starts, size, inputs.interval_s, found, watched)
    dates = inputs.dates
    if dates is not None and past is not None and changes_per_s is not None:
        events, exposure = weigh_quiet(dates, past, changes_per_s, fit_births(dates, past, changes_per_s))
        found += events * (float(size[inputs.changed].mean()) if inputs.changed.any() else 1.0)
        watched += exposure
    if not float(watched.sum()) > 0:
        return np.full(inputs.count, FIRST_RATE_PER_S), size
    return _fit(inputs, found, watched).posterior(found, watched)[0], size


@numba.njit(cache=True, nogil=True)
def _add_visits(starts: I64, size: F64, interval_s: F64, found: F64, watched: F64) -> None:
    for page in range(len(found)):
        for visit in range(starts[page], starts[page + 1]):
            found[page] += size[visit]
            watched[page] += interval_s[visit]


def _fit(inputs: RefreshInputs, events: F64, exposure: F64) -> Priors:
    prior = fit_priors(inputs.cells, events, exposure)
    return replace(prior, page_shape=min(max(prior.page_shape, LEAST_SHAPE), MOST_SHAPE))
