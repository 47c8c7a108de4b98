"""What a page's own date, its Last-Modified, tells of how often it changes.

The date is that of the last event of three kinds: a change that the server noted, of which there are r·Delta a second
(r is the recall of its dates); a false one, at rate phi; or the birth of the page, at rate h, the same for all pages.
So the date lies a before the fetch that brought it with the density

    (r·Delta + phi + h)·exp(-(r·Delta + phi + h)·a):

r·a seconds were watched without a change, and the date stands for a change with probability r·Delta/(r·Delta + phi +
h). A server whose dates never move has r = 0, one that dates every answer "now" has a = 0 and a large phi: neither
tells anything. Recall and false rate are learnt by host from visits, as those of other signals; h is the rate at which
the dates come out likeliest once changes are accounted for. A page may also have become another than it was: then its
past tells nothing, and visits decide how likely that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LONGEST_QUIET_S = 3 * 365 * 86400.0  # what was left alone for longer counts as that: the oldest dates are odd ones
SAME = 0.8  # of pages change after their first fetch as they did before
_AT_ONCE = 20_000  # dates that the rate of births is fitted to
_ROUNDS = 50
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class PageDates:
    """The dates of pages, relative to the fetches that brought them; how good dates are goes by host."""

    quiet_s: F64  # by page: from the date of its first version to its first fetch; NaN without a date
    told_s: F64  # by visit: from the date of the new version to the visit that found it; NaN without a change or date
    recall: F64  # by page
    false_rate_per_s: F64  # by page


def trust_past(dates: PageDates, rate_per_s: F64, shape: F64) -> F64:
    """[BEYOND] P(a page is as it was | its date, its visits) = q·D(a)/(q·D(a) + (1 - q)·M(a)); 0 without a date.

    Visits leave a Gamma of this mean and shape k for its rate, under which a lies at D(a) = k·b^k/(b + a)^(k + 1), b =
    k/(r·mean). What another page's past could be is M(a) = s/(s + a)², s the median over pages.
    """
    known = ~np.isnan(dates.quiet_s)
    if not known.any():
        return np.zeros(len(known))
    quiet_s = np.minimum(np.where(known, dates.quiet_s, 0.0), LONGEST_QUIET_S)
    middle = max(float(np.median(quiet_s[known])), 1.0)
    wait_s = shape / np.maximum(dates.recall * rate_per_s, _TINY)
    same = np.log(shape / (wait_s + quiet_s)) - shape * np.log1p(quiet_s / wait_s)
    other = np.log(middle) - 2.0 * np.log(middle + quiet_s)
    odds = (1.0 - SAME) / SAME * np.exp(np.minimum(other - same, 500.0))
    return np.where(known, 1.0 / (1.0 + odds), 0.0)


def weigh_quiet(dates: PageDates, past: F64, rate_per_s: F64, births_per_s: float) -> tuple[F64, F64]:
    """[BEYOND] The date of a page's first version as (events, exposure): r·Delta/(r·Delta + phi + h) and r·a.

    events/Delta - exposure is the slope of log(r·Delta + phi + h) - r·Delta·a at `rate_per_s`, times `past`: how far
    the page is taken to be as it was.
    """
    known = ~np.isnan(dates.quiet_s)
    noted = dates.recall * rate_per_s
    share = noted / np.maximum(noted + dates.false_rate_per_s + births_per_s, _TINY)
    quiet_s = np.minimum(np.where(known, dates.quiet_s, 0.0), LONGEST_QUIET_S)
    return np.where(known, past * share, 0.0), past * dates.recall * quiet_s


def fit_births(dates: PageDates, past: F64, rate_per_s: F64) -> float:
    """[BEYOND] The h under which the dates are likeliest: sum of 1/(r·Delta + phi + h) = sum of a, or 0; by `past`."""
    known = np.flatnonzero(~np.isnan(dates.quiet_s))
    known = known[:: max(-(-len(known) // _AT_ONCE), 1)]
    weight = past[known]
    total = float((weight * np.minimum(dates.quiet_s[known], LONGEST_QUIET_S)).sum())
    if total <= 0:
        return 0.0
    others = dates.recall[known] * rate_per_s[known] + dates.false_rate_per_s[known]
    births = float(weight.sum()) / total
    for _ in range(_ROUNDS):
        births = float((weight * births / np.maximum(others + births, _TINY)).sum()) / total
    return births


def weigh_told(dates: PageDates, page: I64, interval_s: F64, rate_per_s: F64) -> tuple[F64, F64]:
    """[BEYOND] What the dates of changes add to the (events, exposure) of pages, beyond that there was a change.

    That the last change came told_s before the visit has the density r·Delta·exp(-r·Delta·told_s): one event in
    r·told_s. It takes the place of "changed in I" with the probability that no false date came in between, exp(-phi·I).
    `page` and `interval_s` are by visit, `rate_per_s` by page.
    """
    visits = np.flatnonzero(~np.isnan(dates.told_s))
    page, interval_s, told_s = page[visits], interval_s[visits], dates.told_s[visits]
    rate, recall, false_rate = rate_per_s[page], dates.recall[page], dates.false_rate_per_s[page]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        a = np.where(interval_s > 0, interval_s / np.expm1(rate * interval_s), 0.0)
    curvature = a * (interval_s + a)
    true = np.where((interval_s > 0) & (recall > 0), np.exp(-false_rate * interval_s), 0.0)
    events = true * (1.0 - rate * rate * curvature)
    exposure = true * (recall * told_s - (rate * curvature - a))
    count = len(rate_per_s)
    found, watched = np.bincount(page, events, count), np.bincount(page, exposure, count)
    return found.astype(np.float64), watched.astype(np.float64)
