"""What the claims of [SI08] come to on the data at hand."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.summaries import compare, few_splits, interval_95, judge, mean_and_error

_AT = 0.1
_ENOUGH = 0.95  # of what all sketches give
_MOST = 0.9
_NO_RELATION = 0.2


def conclude_sketches(summaries: Sequence[Summary]) -> list[Finding]:
    """The paper's claims; those whose policies were not run are left out."""
    found = {(summary.policy, summary.measure): summary for summary in summaries if summary.at in (_AT, None)}
    findings: list[Finding] = []
    for measure, where in (("impact_pct", "Dataset 1"), ("impact_pct_dataset2", "Dataset 2")):
        for policy, rival, claim in (
            ("query-driven", "pagerank", "Ordering by queries brings more impact than ordering by importance"),
            ("hybrid", "query-driven", "Mixing in a tenth of importance brings more than queries alone"),
            ("expected", "query-driven", "Score distributions bring more than expected scores"),
            ("best", "hybrid", "(ours) Learning from crawled pages brings more than sketches"),
        ):
            one, other = found.get((policy, measure)), found.get((rival, measure))
            if one is not None and other is not None:
                findings.append(_compare(f"{claim} ({where}).", one, other))
    relation = found.get(("pagerank", "importance_impact_correlation"))
    if relation is not None:
        findings.append(_relate(relation))
    whole = found.get(("hybrid", "impact_pct_test_queries"))
    for policy, claim, least in (
        ("hybrid-0.07%", "0.07% of the sketches, the neediest, keep most of the impact.", _MOST),
        ("hybrid-1%", "1% of the sketches, the neediest, give 95% of what all give.", _ENOUGH),
        ("matched-1%", "(ours) 1% of the sketches, the neediest with a match, give 95% of what all give.", _ENOUGH),
    ):
        few = found.get((policy, "impact_pct_test_queries"))
        if few is not None and whole is not None and whole.mean:
            findings.append(_keep(claim, few, whole, least))
    return findings


def _compare(claim: str, one: Summary, other: Summary) -> Finding:
    """Split by split; without two splits, or where 0 is in the 95% interval of the difference, nothing can be said."""
    pair = compare(one, other)
    evidence = (
        f"At 10% fetched: {one.policy} {one.mean:.1f}, {other.policy} {other.mean:.1f}; difference {pair.mean:+.1f} by "
        f"split, ahead in {pair.above} of {pair.n} splits{_reach(pair.interval, 1, pair.n)}."
    )
    return Finding(claim, judge(pair.interval), evidence)


def _keep(claim: str, few: Summary, whole: Summary, least: float) -> Finding:
    """Whether few sketches give at least this part of what all give, by the interval of the part over the splits."""
    parts = [some / every for some, every in zip(few.values, whole.values, strict=True) if every > 0]
    interval = interval_95(*mean_and_error(parts))
    holds = None
    reach = f" ({few_splits(len(parts))}: no interval)"
    if interval is not None:
        low, high = interval
        holds = True if low >= least else False if high < least else None
        reach = f" (95% interval {low:.0%} … {high:.0%})"
    part = f"{few.mean / whole.mean:.0%}{reach}"
    return Finding(claim, holds, f"{few.mean:.1f} against {whole.mean:.1f} at 10% fetched: {part}.")


def _relate(relation: Summary) -> Finding:
    """Whether the whole interval of the correlation is nearer to 0 than the bound, or all of it farther."""
    interval = interval_95(relation.mean, relation.se, relation.n)
    holds = None
    if interval is not None:
        low, high = interval
        inside = low > -_NO_RELATION and high < _NO_RELATION
        outside = high <= -_NO_RELATION or low >= _NO_RELATION
        holds = True if inside else False if outside else None
    evidence = (
        f"Correlation of PageRank and impact over unseen pages: {relation.mean:.2f}{_reach(interval, 2, relation.n)}."
    )
    return Finding(
        f"Importance hardly correlates with impact (0.09 in the paper; here, below {_NO_RELATION}).", holds, evidence
    )


def _reach(interval: tuple[float, float] | None, digits: int, count: int) -> str:
    if interval is None:
        return f" ({few_splits(count)}: no interval)"
    return f" (95% interval {interval[0]:+.{digits}f} … {interval[1]:+.{digits}f})"
