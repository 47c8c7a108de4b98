"""What the seeds experiment says of the claims of [SEED09], and of greedy beside its methods."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.seeds_measures import (
    EXACT,
    GREEDY,
    HOP_PAGES,
    HOP_VALUE,
    OF_BOUND,
    PAGES,
    PAPER_POLICIES,
    RANDOM,
    SAMPLED,
    SCOPES,
    VALUE,
    WHOLE,
    name_measure,
)
from bowerbird.lab.summaries import few_splits, interval_95, judge, mean_and_error, pick

F64 = npt.NDArray[np.float64]

MAXWEIGHTS = ("maxweight-2", "maxweight-3")
#: about as good: within so much of each other
ALIKE = 0.05
#: greedy on a sample is to be so close to exact greedy
CLOSE = 0.01
#: what greedy promises of the best
PROMISE = 1.0 - 1.0 / math.e
#: percentage points: who leads by less does not lead, for instance where all methods cover everything
NO_LEAD = 0.1
_ROUNDING = 1e-9


class Coverages:
    """One kind of coverage on one scope, in both series."""

    def __init__(self, summaries: Sequence[Summary], kinds: tuple[str, str], scope: str, moved: Sequence[str]) -> None:
        self.moved = moved
        self.series: list[tuple[str, dict[str, F64]]] = []  # by policy: splits by places
        for said, kind in zip(("k = 1…10, h = 5", "k = 5, h = 1…5"), kinds, strict=True):
            rows = [row for row in summaries if row.measure == name_measure(kind, scope) and row.n]
            found = {
                policy: np.array([row.values for row in rows if row.policy == policy]).T
                for policy in dict.fromkeys(row.policy for row in rows)
            }
            kept = {policy: values[~np.isnan(values).any(axis=1)] for policy, values in found.items()}
            self.series.append((said, {policy: values for policy, values in kept.items() if len(values)}))

    def has(self, *policies: str) -> bool:
        """Whether all of these were measured."""
        return all(policy in values for _, values in self.series for policy in policies)

    def level(self, place: int, policy: str) -> float:
        """The mean of a series, over places and splits."""
        return float(self.series[place][1][policy].mean())

    def best(self, place: int, policies: Sequence[str]) -> str:
        """The one with the highest level in a series."""
        return max(policies, key=lambda policy: self.level(place, policy))

    def lead(self, place: int, one: str, other: str) -> tuple[float, bool | None, str]:
        """How far one is above another in a series, whether it is for certain, and what is known of the error."""
        values = self.series[place][1]
        difference = (values[one].mean(axis=1) - values[other].mean(axis=1)).tolist()
        if one not in self.moved and other not in self.moved:
            lead = difference[0]
            return lead, None if abs(lead) < NO_LEAD else lead > 0, ""
        mean, error, count = mean_and_error(difference)
        interval = interval_95(mean, error, count)
        if interval is None:
            return mean, None, f", {few_splits(count)}"
        verdict = None if abs(mean) < NO_LEAD else judge(interval)
        return mean, verdict, f", 95% interval {interval[0]:+.1f} … {interval[1]:+.1f}"


def conclude_seeds(summaries: Sequence[Summary], *, has_values: bool, greedy_is_exact: bool) -> list[Finding]:
    """Each claim with the figures that decide it; those whose policies were not run are left out.

    A claim holds or does not if it is so in each series that tells the methods apart.
    """
    moved = [RANDOM, SAMPLED, *([] if greedy_is_exact else [GREEDY])]
    findings: list[Finding] = []
    for scope in SCOPES:
        pages = Coverages(summaries, (PAGES, HOP_PAGES), scope, moved)
        value = Coverages(summaries, (VALUE, HOP_VALUE), scope, moved) if has_values else pages
        unit = "value" if has_values else "value (pages here)"
        findings.extend(_wins(f"MaxOut covers most pages of the paper's methods ({scope})", pages, ("maxout",)))
        findings.extend(
            _wins(f"MaxWeight (d = 2 or 3) covers most {unit} of the paper's methods ({scope})", value, MAXWEIGHTS)
        )
        findings.extend(_alike(f"MaxWeight with d = 2 is about as good as with d = 3, in {unit} ({scope})", value))
        findings.extend(_below(f"RootSCC covers less {unit} than OutDegree ({scope})", value, "rootscc", "outdegree"))
        claim = f"Ours, not the paper's: `{GREEDY}` covers at least as much {unit} as each of its methods ({scope})"
        findings.extend(_never_below(claim, value))
        if scope == WHOLE:
            if not greedy_is_exact:  # where it is, there is nothing to compare: it is the same method
                findings.extend(_close(GREEDY, value, "it samples here"))
            findings.extend(_close(SAMPLED, value, "means of the splits"))
    findings.extend(_keeps_promise(summaries))
    return findings


def _join(verdicts: Sequence[bool | None]) -> bool | None:
    told = {verdict for verdict in verdicts if verdict is not None}
    return told.pop() if len(told) == 1 else None


def _wins(claim: str, coverages: Coverages, champions: Sequence[str]) -> list[Finding]:
    """Whether the better of the champions is above all others of the paper."""
    if not coverages.has(*PAPER_POLICIES):
        return []
    rivals = [policy for policy in PAPER_POLICIES if policy not in champions]
    verdicts, said = [], []
    for place, (name, _) in enumerate(coverages.series):
        told, verdict = _tell(coverages, place, coverages.best(place, champions), coverages.best(place, rivals))
        verdicts.append(verdict)
        said.append(f"{name}: {told}")
    return [Finding(f"{claim}.", _join(verdicts), f"Mean of the places, %. {'; '.join(said)}.")]


def _below(claim: str, coverages: Coverages, one: str, other: str) -> list[Finding]:
    if not coverages.has(one, other):
        return []
    verdicts, said = [], []
    for place, (name, _) in enumerate(coverages.series):
        told, verdict = _tell(coverages, place, other, one)
        verdicts.append(verdict)
        said.append(f"{name}: {told}")
    return [Finding(f"{claim}.", _join(verdicts), f"Mean of the places, %. {'; '.join(said)}.")]


def _tell(coverages: Coverages, place: int, one: str, other: str) -> tuple[str, bool | None]:
    lead, verdict, reach = coverages.lead(place, one, other)
    levels = [f"{policy} {coverages.level(place, policy):.1f}" for policy in (one, other)]
    return f"{' against '.join(levels)} ({lead:+.1f}{reach})", verdict


def _alike(claim: str, coverages: Coverages) -> list[Finding]:
    if not coverages.has(*MAXWEIGHTS):
        return []
    verdicts, said = [], []
    for place, (name, _) in enumerate(coverages.series):
        two, three = (coverages.level(place, policy) for policy in MAXWEIGHTS)
        apart = two / three - 1.0 if three > 0 else 0.0
        verdicts.append(abs(apart) <= ALIKE)
        said.append(f"{name}: {two:.1f} against {three:.1f} ({apart:+.1%})")
    taken = f"Mean of the places, %; within {ALIKE:.0%} of each other counts as alike"
    return [Finding(f"{claim}.", _join(verdicts), f"{taken}. {'; '.join(said)}.")]


def _never_below(claim: str, coverages: Coverages) -> list[Finding]:
    """At every place of both series, by the means of the splits."""
    if not coverages.has(GREEDY, *PAPER_POLICIES):
        return []
    verdicts, said = [], []
    for place, (name, values) in enumerate(coverages.series):
        rival = coverages.best(place, PAPER_POLICIES)
        theirs = np.max([values[policy].mean(axis=0) for policy in PAPER_POLICIES], axis=0)
        least = float((values[GREEDY].mean(axis=0) - theirs).min())
        verdicts.append(least >= -_ROUNDING)
        level = coverages.level(place, GREEDY)
        other = f"{coverages.level(place, rival):.1f} of {rival}"
        said.append(f"{name}: {level:.1f} against {other}, {least:+.2f} at worst")
    return [Finding(f"{claim}.", all(verdicts), f"Mean of the places, %. {'; '.join(said)}.")]


def _close(policy: str, coverages: Coverages, how: str) -> list[Finding]:
    if not coverages.has(policy, EXACT):
        return []
    verdicts, said = [], []
    for name, values in coverages.series:
        share = float((values[policy].mean(axis=0) / values[EXACT].mean(axis=0)).min())
        verdicts.append(share >= 1.0 - CLOSE)
        said.append(f"{name}: {share:.2%} of it at worst")
    claim = f"Ours, not the paper's: `{policy}` is within {CLOSE:.0%} of exact greedy everywhere ({WHOLE})."
    return [Finding(claim, all(verdicts), f"{'; '.join(said)} ({how}).")]


def _keeps_promise(summaries: Sequence[Summary]) -> list[Finding]:
    found = pick(summaries, GREEDY, OF_BOUND)
    if found is None or not found.n:
        return []
    claim = f"Greedy covers at least 1 - 1/e of what the best choice does (10 seeds, {WHOLE})."
    enough = found.mean >= 100.0 * PROMISE
    evidence = f"At least {found.mean:.1f}% of the best, whatever that is: so much of the bound by prices (the dual)."
    return [Finding(claim, True if enough else None, evidence)]
