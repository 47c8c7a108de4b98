"""What the claims of [SI08] come to on the data at hand."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.experiment import Finding, Summary

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
        findings.append(
            Finding(
                "Importance hardly correlates with impact (0.09 in the paper).",
                abs(relation.mean) < _NO_RELATION,
                f"Correlation of PageRank and impact over unseen pages: {relation.mean:.2f} ± {relation.se:.2f}.",
            )
        )
    whole = found.get(("hybrid", "impact_pct_test_queries"))
    for policy, claim, least in (
        ("hybrid-0.07%", "0.07% of the sketches, the neediest, keep most of the impact.", _MOST),
        ("hybrid-1%", "1% of the sketches, the neediest, give 95% of what all give.", _ENOUGH),
        ("matched-1%", "(ours) 1% of the sketches, the neediest with a match, give 95% of what all give.", _ENOUGH),
    ):
        few = found.get((policy, "impact_pct_test_queries"))
        if few is not None and whole is not None and whole.mean:
            part = few.mean / whole.mean
            findings.append(
                Finding(claim, part >= least, f"{few.mean:.1f} against {whole.mean:.1f} at 10% fetched: {part:.0%}.")
            )
    return findings


def _compare(claim: str, one: Summary, other: Summary) -> Finding:
    """Holds when most splits say so and the mean difference is above its standard error."""
    pairs = list(zip(one.values, other.values, strict=False))
    wins = sum(a > b for a, b in pairs)
    difference = one.mean - other.mean
    noise = 0.0
    if len(pairs) > 1:
        gaps = [a - b for a, b in pairs]
        mean = sum(gaps) / len(gaps)
        noise = (sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1) / len(gaps)) ** 0.5
    holds: bool | None = difference > 0 if abs(difference) > noise else None
    return Finding(
        claim,
        holds,
        f"At 10% fetched: {one.policy} {one.mean:.1f}, {other.policy} {other.mean:.1f}; difference {difference:+.1f} ± "
        f"{noise:.1f}, ahead in {wins} of {len(pairs)} splits.",
    )
