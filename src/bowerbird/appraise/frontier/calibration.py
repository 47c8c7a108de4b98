"""From a method's score to expected clicks, the one unit: learnt from pages fetched earlier, as if they had not been.

Poisson means that never fall as the score rises: pages are put in bins along the score, each bin's clicks are shrunk
towards what its score alone would suggest, and neighbours that fall are pooled. Between the bins the curve is a
straight line, outside it is flat. While there is too little to learn from, expected clicks are in proportion to the
score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from bowerbird.model.study import CalibrationNote

FloatArray = npt.NDArray[np.float64]

PRIOR = "prior"
PRIOR_MEAN = 0.01  # clicks of a page of which nothing is known
PRIOR_PAGES = 100.0  # as many pages' worth of evidence is that
FEWEST_PAGES = 50
FEWEST_CLICKED = 10
FEWEST_CLICKS = 20.0
BINS = 100
PAGES_A_BIN = 10.0
CLICKS_A_BIN = 10.0
SHRINK_CLICKS = 1.0  # what the score alone suggests counts as so many clicks in each bin
HIGHEST_RATIO = 100.0  # of the mean, by score alone
LEAST_EXPOSURE = 0.1
MOST_WEIGHT = 20.0
EVEN_HOST = 5.0  # exposures that what is usual of all hosts counts for in what is usual of one
TIE = 0.02  # the share of its worth by which a page may differ from others of equal clicks


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected clicks as a function of the score; make one with `calibrate`."""

    note: CalibrationNote
    scores: FloatArray  # ascending; empty for the prior
    clicks: FloatArray  # at those scores, never falling
    mean: float  # clicks of a page on average

    def expect(self, scores: FloatArray) -> FloatArray:
        """Expected clicks of pages with these scores; a higher score is always worth more."""
        if not len(scores):
            return np.zeros(0)
        learnt = len(self.scores) > 0
        clicks = np.interp(scores, self.scores, self.clicks) if learnt else self.mean * score_ratio(scores)
        # equal clicks are told apart by the score: the best by enough that single precision still sees it
        place = place_in_order(scores)
        top = -np.log1p(-place * (1.0 - 1.0 / (len(scores) + 1.0)))
        ties = TIE * (clicks * top / max(float(top.max()), 1e-300) + self.mean * place)
        return (1.0 - TIE) * clicks + ties


def score_ratio(scores: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Scores over their mean, within bounds; 1 where all are 0."""
    mean = float(np.average(scores, weights=weights))
    if not mean > 0:
        return np.ones(len(scores))
    return np.clip(scores / mean, 1.0 / HIGHEST_RATIO, HIGHEST_RATIO)


def place_in_order(scores: FloatArray) -> FloatArray:
    """The place of each score among the distinct ones, from 0 to 1."""
    distinct, place = np.unique(scores, return_inverse=True)
    return place.reshape(-1) / max(len(distinct) - 1, 1)


def expose(age_s: FloatArray, full_s: float) -> FloatArray:
    """[BEYOND] Exposure of young pages: min(1, age/full), `full` as `full_exposure_s` has it.

    Ages are since the first fetch: before it no search could bring the page up.
    """
    if not full_s > 0:
        return np.ones(len(age_s))
    return np.clip(age_s / full_s, LEAST_EXPOSURE, 1.0)


def time_heard(age_s: npt.ArrayLike, half_life_s: float) -> FloatArray:
    """[BEYOND] H/ln 2·(1 - 2^(-age/H)): the time whose clicks the log holds of a page, for clicks fade.

    >>> time_heard([0.0, 1e9], 10.0 * math.log(2.0)).tolist()
    [0.0, 10.0]
    """
    fade_per_s = math.log(2.0) / half_life_s
    return np.asarray(-np.expm1(-fade_per_s * np.maximum(age_s, 0.0)) / fade_per_s, np.float64)


def even_clicks(
    clicks: FloatArray, heard: FloatArray, host: npt.NDArray[np.uint32], crawled: npt.NDArray[np.bool_]
) -> FloatArray:
    """[BEYOND] y + (1 - h)+·m: clicks of crawled pages as if each had had the time of a full exposure, at least.

    A page that was fetched yesterday has had no time to be clicked: what it links to would be thought worthless. For
    the time that it lacks it has what is usual on its host, m = sum y/sum h. `heard` is the time that its clicks are of
    in full exposures; NaN of what has no clicks of its own, as redirects. Of others than crawled pages it is 0.

    >>> host, all_of = np.zeros(4, np.uint32), np.ones(4, np.bool_)
    >>> even_clicks(np.array([9.0, 0.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0, np.nan]), host, all_of).tolist()
    [9.0, 0.0, 3.0, 0.0]
    """
    made = np.where(crawled, clicks, 0.0)
    known = crawled & ~np.isnan(heard)
    seen = np.where(known, heard, 0.0)
    if not seen.sum() > 0:
        return np.asarray(made)
    mean = made[known].sum() / seen.sum()
    of_host = np.bincount(host[known], made[known], int(host.max(initial=0)) + 1) + EVEN_HOST * mean
    usual = of_host / (np.bincount(host, seen) + EVEN_HOST)
    return made + np.where(known, np.maximum(1.0 - seen, 0.0) * usual[host], 0.0)


def full_exposure_s(age_s: FloatArray, full_s: float) -> float:
    """The time in which a page gets the clicks that are expected of it: no more than the pages' median age."""
    return min(full_s, float(np.median(age_s))) if len(age_s) else full_s


def weigh_draws(propensity: FloatArray) -> FloatArray:
    """[BEYOND] Inverse propensity of pages fetched by lot, capped; NaN = not by lot, which weighs 1."""
    weight = np.ones(len(propensity))
    drawn = ~np.isnan(propensity)
    weight[drawn] = np.clip(1.0 / np.maximum(propensity[drawn], 1e-300), 1.0, MOST_WEIGHT)
    return weight


def prior_mean(clicks: float, pages: float) -> float:
    """[BEYOND] (a0 + clicks)/(b0 + pages): clicks of a page on average, before there are enough to learn from."""
    return (PRIOR_MEAN * PRIOR_PAGES + clicks) / (PRIOR_PAGES + pages)


def has_too_little(clicks: FloatArray) -> bool:
    """Are the clicks of these pages too few to learn from?"""
    clicked = int(np.count_nonzero(clicks > 0))
    return len(clicks) < FEWEST_PAGES or clicked < FEWEST_CLICKED or float(clicks.sum()) < FEWEST_CLICKS


def calibrate(scores: FloatArray, clicks: FloatArray, exposure: FloatArray, weights: FloatArray) -> Calibration:
    """The curve from the scores that pages had before they were fetched and the clicks they got since.

    The scores must not know of the pages' own clicks. `exposure` is the share of its time that a page had so far.
    Without scores (or with too little to learn from) expected clicks are in proportion to the score.
    """
    clicked, total = int(np.count_nonzero(clicks > 0)), float(clicks.sum())
    alike = len(scores) > 0 and not np.ptp(scores) > 0
    if len(scores) != len(clicks) or has_too_little(clicks) or alike:
        mean = prior_mean(total, float(exposure.sum()))
        why = "fetched pages all have the same score" if alike else "too little feedback to calibrate by"
        said = (
            f"{why}: {_plain(total)} clicks on {clicked:,} of {len(clicks):,} pages fetched earlier; "
            f"in proportion to the score, {_plain(mean)} on average"
        )
        return Calibration(CalibrationNote(PRIOR, len(clicks), total, said), np.zeros(0), np.zeros(0), mean)
    seen = weights * exposure
    mean = float((weights * clicks).sum() / seen.sum())
    order = np.argsort(scores, kind="stable")
    bins = _cut_bins(scores[order], seen[order], int(min(BINS, len(scores) / PAGES_A_BIN, total / CLICKS_A_BIN)))
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    amount = np.add.reduceat(seen[order], first)
    centre = np.add.reduceat((seen * scores)[order], first) / amount
    got = np.add.reduceat((weights * clicks)[order], first)
    pages = np.add.reduceat(seen[order] ** 2, first)
    effective = amount**2 / np.maximum(pages, 1e-300)  # as many pages of equal weight tell as much
    ratio = np.sqrt(score_ratio(centre, amount))  # halfway between no difference and proportion
    suggested = mean * ratio / float(np.average(ratio, weights=amount))
    rate = shrink_clicks(got * effective / amount, effective, suggested)
    curve = pool_falling(rate, amount)
    said = (
        f"by {_plain(total)} clicks on {clicked:,} of {len(scores):,} pages fetched earlier, {_plain(mean)} on average"
    )
    return Calibration(CalibrationNote("calibrated", len(scores), total, said), centre, curve, mean)


def _plain(value: float) -> str:
    """Three digits that count, and never an exponent: 1,410."""
    return f"{Decimal(f'{value:.3g}'):,f}"


def shrink_clicks(clicks: FloatArray, pages: FloatArray, suggested: FloatArray) -> FloatArray:
    """[BEYOND] Gamma–Poisson mean: (a0 + clicks)/(b0 + pages), where a0/b0 is what is suggested without any clicks."""
    mean: FloatArray = (SHRINK_CLICKS + clicks) / (SHRINK_CLICKS / np.maximum(suggested, 1e-300) + pages)
    return mean


def pool_falling(rate: FloatArray, weight: FloatArray) -> FloatArray:
    """Monotone Poisson regression: the nearest means that never fall (pool adjacent violators).

    >>> pool_falling(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4)).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for mean, share in zip(rate.tolist(), weight.tolist(), strict=True):
        block = (mean, share, 1)
        while blocks and blocks[-1][0] >= block[0]:
            before = blocks.pop()
            both = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / both, both, before[2] + block[2])
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [length for _, _, length in blocks])


def _cut_bins(scores: FloatArray, seen: FloatArray, bins: int) -> npt.NDArray[np.int64]:
    """Bin numbers of ascending scores: half by pages and half by score, so that the few best are told apart."""
    ratio = score_ratio(scores, seen)
    mass = 0.5 * seen / seen.sum() + 0.5 * seen * ratio / (seen * ratio).sum()
    wanted = np.minimum((np.cumsum(mass) * bins).astype(np.int64), bins - 1)
    # no bin of a few pages only, and equal scores are never parted
    out = np.zeros(len(scores), dtype=np.int64)
    number, begun = 0, 0
    edges = np.flatnonzero(np.diff(wanted) > 0) + 1
    for edge in edges.tolist():
        start = int(np.searchsorted(scores, scores[edge], side="left"))
        if start - begun >= PAGES_A_BIN and len(scores) - start >= PAGES_A_BIN:
            number, begun = number + 1, start
            out[start:] = number
    return out
