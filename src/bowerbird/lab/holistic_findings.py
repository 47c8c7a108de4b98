"""What the holistic experiment says of one price for all kinds of fetches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.holistic_crawl import KINDS
from bowerbird.lab.holistic_measures import CALIBRATION, GAIN, MARGIN_BID, MARGIN_GAINED, QUALITY, by_kind, over_time
from bowerbird.lab.holistic_policies import AUTO, BOUND, BREADTH_FIRST, CLAIRVOYANT, NUTCH, UNWATCHED, quota_names
from bowerbird.lab.summaries import few_splits, interval_95, mean_and_error, pick

TIMES = 1.5  # breadth-first's clicks gained, at the tightest budget
EQUAL = 0.2  # gains at the margin, from their mean
CALIBRATED = (0.8, 1.25)
LEAST = 1e-3  # of the other's gain: who gains nothing, or less, is as good as that


def conclude_holistic(summaries: Sequence[Summary], budgets: Sequence[float]) -> list[Finding]:
    """Each claim with the figures that decide it; those whose policies were not run are left out."""
    return [
        *_against_quotas(summaries, budgets),
        *_against(summaries, budgets[:1], BREADTH_FIRST, TIMES),
        *_against(summaries, budgets, NUTCH, 1.0),
        *_watched(summaries, budgets),
        *_margins(summaries, budgets),
        *_calibrated(summaries, budgets),
        *_reference(summaries, budgets),
    ]


def _against_quotas(summaries: Sequence[Summary], budgets: Sequence[float]) -> Iterator[Finding]:
    """Against the split that does best by it, in the mean of their ratio seed by seed; as good within the interval.

    Where worlds differ, the split that gains most in all of them together is the one that is right for the largest.
    """
    told, verdicts = [], []
    for budget in budgets:
        own = pick(summaries, AUTO, GAIN, budget)
        rivals = [row for name in quota_names() if (row := pick(summaries, name, GAIN, budget)) is not None]
        if own is None or not rivals:
            continue
        best = max(rivals, key=lambda row: float(np.mean(_logs(row, own) or [-math.inf])))
        mean, reach, text = _ratio(own, best)
        # behind, but perhaps by chance: that proves nothing either way
        verdicts.append(None if reach is None else False if reach[1] < 1.0 else True if mean >= 1.0 else None)
        told.append(f"{budget:g}%: {own.mean:.3g} clicks a fetch, {best.policy} {best.mean:.3g} ({text})")
    if told:
        claim = "auto gains at least as much as the best fixed split chosen in hindsight, within its interval."
        yield Finding(claim, _joint(verdicts), "; ".join(told) + ".")


def _against(summaries: Sequence[Summary], budgets: Sequence[float], rival: str, times: float) -> Iterator[Finding]:
    told, verdicts = [], []
    for budget in budgets:
        own, other = pick(summaries, AUTO, GAIN, budget), pick(summaries, rival, GAIN, budget)
        if own is None or other is None:
            continue
        _, reach, text = _ratio(own, other)
        verdicts.append(None if reach is None else True if reach[0] >= times else False if reach[1] < times else None)
        told.append(f"{budget:g}%: {own.mean:.3g} and {other.mean:.3g} clicks a fetch ({text})")
    if told:
        much = f"at least {times:g} times as much as" if times != 1.0 else "more than"
        where = " at the tightest budget" if len(budgets) == 1 else ""
        yield Finding(f"auto gains {much} {rival}{where}.", _joint(verdicts), "; ".join(told) + ".")


def _watched(summaries: Sequence[Summary], budgets: Sequence[float]) -> Iterator[Finding]:
    told, verdicts = [], []
    for budget in budgets:
        own, other = pick(summaries, AUTO, GAIN, budget), pick(summaries, UNWATCHED, GAIN, budget)
        if own is not None and other is not None:
            _, reach, text = _ratio(own, other)
            verdicts.append(None if reach is None else reach[1] >= 1.0)
            told.append(f"{budget:g}%: {own.mean:.3g} and {other.mean:.3g} clicks a fetch ({text})")
    if told:
        claim = "Correcting kinds by what their fetches gained does no harm, within its interval."
        yield Finding(claim, _joint(verdicts), "; ".join(told) + ".")


def _margins(summaries: Sequence[Summary], budgets: Sequence[float]) -> Iterator[Finding]:
    """By sums over all seeds: a run with few fetches of a kind at the margin tells little of it."""
    parts = {(row.measure, row.at): row.values for row in summaries if row.policy == AUTO}
    told, verdicts = [], []
    for budget in budgets:
        known = {}
        in_all = [np.nan_to_num(row) for (of, _), row in parts.items() if of in _bids_at(budget)]
        paid = np.maximum(np.sum(in_all, axis=0), 1e-300)  # by run: each counts alike, be clicks many or few
        for kind in KINDS:
            of_gains, of_bids = (over_time(by_kind(of, kind), budget) for of in (MARGIN_GAINED, MARGIN_BID))
            places = [at for measure, at in parts if measure == of_bids]
            if places:
                bids = np.nan_to_num(np.array([parts[of_bids, at] for at in places])) / paid
                nothing = (0.0,) * bids.shape[1]
                gained = np.nan_to_num(np.array([parts.get((of_gains, at), nothing) for at in places])) / paid
                mean, error = pooled_ratio(gained, bids)
                if not math.isnan(error):  # of one seed and one part of the world nothing can be said
                    known[kind.label] = mean, error
        if len(known) < 2:
            continue
        means, errors = (np.array(column) for column in zip(*known.values(), strict=True))
        verdicts.append(_within(means, errors) if bids.shape[1] > 1 else None)  # one run proves nothing
        told.append(f"{budget:g}%: " + ", ".join(f"{name} {mean:.2f} ± {se:.2f}" for name, (mean, se) in known.items()))
    if told:
        claim = f"One price makes the gains at the margin alike: each kind's within {EQUAL:.0%} of their mean."
        yield Finding(claim, _joint(verdicts), "By what they bid, all seeds together, " + "; ".join(told) + ".")


def _bids_at(budget: float) -> list[str]:
    return [over_time(by_kind(MARGIN_BID, kind), budget) for kind in KINDS]


def pooled_ratio(gained: npt.NDArray[np.float64], bids: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The ratio of the sums over parts and runs (rows and columns), and its standard error.

    That is the larger of two, by leaving out one part or one run at a time: runs of one site share its history, so
    what befalls a part befalls all of them, and they seem to agree.

    >>> pooled_ratio(np.array([[1.0, 6.0]]), np.array([[2.0, 5.0]]))
    (1.0, 0.35)
    >>> pooled_ratio(np.array([[1.0, 1.0], [6.0, 6.0]]), np.array([[2.0, 2.0], [5.0, 5.0]]))
    (1.0, 0.35)
    """
    errors = [left_out_error(gained.sum(axis=axis), bids.sum(axis=axis)) for axis in (0, 1)]
    return float(gained.sum() / bids.sum()), max(errors, key=lambda error: -1.0 if math.isnan(error) else error)


def left_out_error(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """The standard error of a ratio of sums by leaving out one of its terms at a time (jackknife); NaN of one term."""
    one, other = one[other > 0], other[other > 0]
    n = len(one)
    if n < 2:
        return math.nan
    without = (one.sum() - one) / (other.sum() - other)
    return round(math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum())), 12)


def _within(means: npt.NDArray[np.float64], errors: npt.NDArray[np.float64]) -> bool | None:
    """Whether each is near their mean; None where one is not, but by no more than chance may explain.

    The mean is as uncertain as they are: how far one is beyond (1 ± EQUAL)·mean is held against two standard errors of
    just that.

    >>> [_within(np.array([1.0, 1.0, high]), np.full(3, off)) for high, off in ((1.2, 0.0), (1.6, 0.4), (1.6, 0.01))]
    [True, None, False]
    """
    count, mean = len(means), float(means.mean())
    if (np.abs(means / mean - 1.0) <= EQUAL).all():
        return True
    variance = np.nan_to_num(errors, nan=np.inf) ** 2
    for side in (1.0, -1.0):
        bound = 1.0 + side * EQUAL
        beyond = side * (means - bound * mean)
        weight = (np.eye(count) - bound / count) ** 2
        if (beyond > 2.0 * np.sqrt((weight * variance).sum(axis=1))).any():
            return False
    return None


def _calibrated(summaries: Sequence[Summary], budgets: Sequence[float]) -> Iterator[Finding]:
    told, verdicts = [], []
    for budget in budgets:
        rows = [(kind, pick(summaries, AUTO, by_kind(CALIBRATION, kind), budget)) for kind in KINDS]
        known = [(kind, row) for kind, row in rows if row is not None and row.n]
        if known:
            right = all(CALIBRATED[0] <= row.mean <= CALIBRATED[1] for _, row in known)
            verdicts.append(right if known[0][1].n > 1 else None)
            told.append(f"{budget:g}%: " + ", ".join(f"{kind.label} {row.mean:.2f}" for kind, row in known))
    if told:
        claim = f"Fetches gain what they bid, kind by kind: {CALIBRATED[0]:g} to {CALIBRATED[1]:g} times."
        yield Finding(claim, _joint(verdicts), "; ".join(told) + ".")


def _reference(summaries: Sequence[Summary], budgets: Sequence[float]) -> Iterator[Finding]:
    told = []
    for budget in budgets:
        own, quality = pick(summaries, AUTO, GAIN, budget), pick(summaries, AUTO, QUALITY, budget)
        if own is None or quality is None:
            continue
        others = [(name, pick(summaries, name, GAIN, budget)) for name in (CLAIRVOYANT, BOUND)]
        parts = [f"{_ratio(own, row)[0]:.0%} of {name}'s" for name, row in others if row is not None]
        if parts:
            told.append(f"{budget:g}%: {' and '.join(parts)} clicks gained; Q = {quality.mean:.1f}%")
    if told:
        claim = "How far auto is from who knows all, without a plan (clairvoyant) and with the best one (bound)."
        yield Finding(claim, None, "; ".join(told) + ".")


def _logs(one: Summary, other: Summary) -> list[float]:
    """Of the ratio seed by seed: a split that is twice as good here and half as good there is as good."""
    pairs = zip(one.values, other.values, strict=True)
    return [math.log(max(a, LEAST * b) / b) for a, b in pairs if b > 0]


def _ratio(one: Summary, other: Summary) -> tuple[float, tuple[float, float] | None, str]:
    """The ratio seed by seed: its geometric mean, 95% interval, and both in words."""
    log, error, count = mean_and_error(_logs(one, other))
    mean, reach = math.exp(log), interval_95(log, error, count)
    if reach is None:
        return mean, None, f"{mean:.2f} times; {few_splits(count)}: no interval"
    low, high = (math.exp(end) for end in reach)
    digits = 3 if any(f"{end:.2f}" == "1.00" for end in (mean, low, high)) else 2  # where it decides on which side
    told = (f"{value:.{digits}f}" for value in (mean, low, high))
    return mean, (low, high), "{} times, {} to {}".format(*told)


def _joint(verdicts: Sequence[bool | None]) -> bool | None:
    """True where all are, False where one is."""
    if any(verdict is False for verdict in verdicts):
        return False
    return True if verdicts and all(verdicts) else None
