"""What the frontier experiment says of the claims of [RW15]."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.summaries import compare, pick

AVERAGE, IMPACT = "avg_impact_pct", "impact_pct"
BASELINES = ("indegree", "pagerank", "query-driven", "hybrid")


def conclude_frontier(name: str, summaries: Sequence[Summary]) -> list[Finding]:
    """Each claim with the figures that decide it."""
    averages = {each.policy: each for each in summaries if each.measure == AVERAGE}
    findings = []
    walk, enriched = averages.get("rw"), averages.get("rw-eg")
    base = [averages[policy] for policy in BASELINES if policy in averages]
    if enriched is not None:
        findings.append(
            Finding(
                "RW-EG reaches at least 60% of the ideal ranking (the paper: 60–70%).",
                enriched.mean >= 60.0,
                f"{_say(enriched)} of the ideal on average over the cuts.",
            )
        )
        if base:
            best = max(base, key=lambda each: each.mean)
            findings.append(_compare("The random walks beat the best baseline", enriched, best))
        if walk is not None:
            findings.append(_compare("Virtual edges help: RW-EG is better than RW", enriched, walk))
        for policy in ("query-driven", "hybrid"):
            findings.extend(_compare_early(policy, summaries))
        tree = averages.get("tree")
        if tree is not None:
            findings.append(_compare("A regression tree over the scores beats every single score", tree, enriched))
        for policy in ("learned", "learned-crawled"):
            learned = averages.get(policy)
            if learned is not None:
                findings.append(_compare(f"Ours, not the paper's: `{policy}` is better than RW-EG", learned, enriched))
    clicked = pick(summaries, "(linked from clicked pages)", "linked_mean_impact")
    other = pick(summaries, "(linked from unclicked pages)", "linked_mean_impact")
    if clicked is not None and other is not None:
        findings.append(
            Finding(
                "Frontier pages that clicked pages link to have more impact than those that unclicked pages link to.",
                clicked.mean > other.mean,
                f"{clicked.mean:.1f} clicks on average against {other.mean:.1f}.",
            )
        )
    return findings


def _say(summary: Summary) -> str:
    spread = f" ± {summary.se:.1f}" if summary.n > 1 else ""
    return f"{summary.policy} {summary.mean:.1f}{spread}%"


def _compare(claim: str, one: Summary, other: Summary) -> Finding:
    """By split, for splits differ more than policies do."""
    pair = compare(one, other)
    evidence = f"{_say(one)}, {_say(other)}; {pair.mean:+.1f} by split, above in {pair.above} of {pair.n}"
    holds = None
    if pair.interval is not None:
        low, high = pair.interval
        holds = None if low <= 0.0 <= high else pair.mean > 0
        evidence += f" (95% interval {low:+.1f} … {high:+.1f})"
    return Finding(f"{claim}.", holds, f"{evidence}.")


def _compare_early(policy: str, summaries: Sequence[Summary]) -> list[Finding]:
    """Query methods are said to win at the start only."""
    early = [pick(summaries, each, IMPACT, 0.02) for each in (policy, "rw-eg")]
    late = [pick(summaries, each, IMPACT, 0.2) for each in (policy, "rw-eg")]
    if None in (*early, *late):
        return []
    first, second = [each.mean for each in early if each], [each.mean for each in late if each]
    return [
        Finding(
            f"Query methods win in the first ~5% only (`{policy}`).",
            first[0] > first[1] and second[0] < second[1],
            f"At 2%: {first[0]:.1f} against {first[1]:.1f} of rw-eg; at 20%: {second[0]:.1f} against {second[1]:.1f}.",
        )
    ]
