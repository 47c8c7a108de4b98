"""What the frontier experiment says of the claims of [RW15]."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.summaries import Paired, compare, few_splits, interval_95, judge, mean_and_error, pick

AVERAGE, IMPACT = "avg_impact_pct", "impact_pct"
BASELINES = ("indegree", "pagerank", "query-driven", "hybrid")
DEEPEST = 0.1  # the paper fetches up to 10% of the frontier (Wikipedia) or 2% (the web)
ENOUGH = 60.0
#: `random` gives every page the same score: who has its average did so too, up to rounding
_EQUAL = 1e-9


def conclude_frontier(name: str, summaries: Sequence[Summary]) -> list[Finding]:
    """Each claim with the figures that decide it; those whose policies were not run are left out."""
    averages = {each.policy: each for each in summaries if each.measure == AVERAGE}
    findings: list[Finding] = []
    walk, enriched = averages.get("rw"), averages.get("rw-eg")
    base = [averages[policy] for policy in BASELINES if policy in averages]
    chance = averages.get("random")
    if enriched is not None:
        findings.extend(_reach_level(summaries))
        if base:
            best = max(base, key=lambda each: each.mean)
            findings.append(_compare("The random walks beat the best baseline", enriched, best, chance))
        if walk is not None:
            findings.append(_compare("Virtual edges help: RW-EG is better than RW", enriched, walk, chance))
        for policy in ("query-driven", "hybrid"):
            findings.extend(_compare_early(policy, summaries))
        tree = averages.get("tree")
        if tree is not None:
            single = max([*base, enriched, *([walk] if walk is not None else [])], key=lambda each: each.mean)
            claim = "A regression tree over the scores beats every single score"
            findings.append(_compare(claim, tree, single, chance))
        for policy in ("learned", "learned-crawled"):
            learned = averages.get(policy)
            if learned is not None:
                claim = f"Ours, not the paper's: `{policy}` is better than RW-EG"
                findings.append(_compare(claim, learned, enriched, chance))
    clicked = pick(summaries, "(linked from clicked pages)", "linked_mean_impact")
    other = pick(summaries, "(linked from unclicked pages)", "linked_mean_impact")
    if clicked is not None and other is not None:
        pair = compare(clicked, other)
        findings.append(
            Finding(
                "Frontier pages that clicked pages link to have more impact than those that unclicked pages link to.",
                judge(pair.interval),
                f"{clicked.mean:.1f} clicks on average against {other.mean:.1f}; {_say_pair(pair)}.",
            )
        )
    return findings


def _say(summary: Summary) -> str:
    spread = f" ± {summary.se:.1f}" if summary.n > 1 else ""
    return f"{summary.policy} {summary.mean:.1f}{spread}%"


def _say_pair(pair: Paired) -> str:
    said = f"{pair.mean:+.1f} by split, above in {pair.above} of {pair.n}"
    if pair.interval is None:
        return f"{said} ({few_splits(pair.n)}: no interval)"
    low, high = pair.interval
    return f"{said} (95% interval {low:+.1f} … {high:+.1f})"


def _reach_level(summaries: Sequence[Summary]) -> list[Finding]:
    """The level that the paper reports, at the depths that it fetches to."""
    cuts = sorted(
        (
            each
            for each in summaries
            if (each.policy, each.measure) == ("rw-eg", IMPACT) and (each.at or 1.0) <= DEEPEST
        ),
        key=lambda each: each.at or 0.0,
    )
    if not cuts:
        return []
    by_split = zip(*(each.values for each in cuts), strict=True)
    mean, error, count = mean_and_error(math.fsum(values) / len(cuts) for values in by_split)
    interval = interval_95(mean, error, count)
    holds = None
    reach = f" ({few_splits(count)}: no interval)"
    if interval is not None:
        low, high = interval
        holds = True if low >= ENOUGH else False if high < ENOUGH else None
        reach = f" (95% interval {low:.1f} … {high:.1f})"
    depths = ", ".join(f"{each.at or 0.0:.0%}" for each in cuts)
    return [
        Finding(
            "RW-EG reaches at least 60% of the ideal ranking (the paper: 60–70%).",
            holds,
            f"rw-eg {mean:.1f}% of the ideal{reach}, the mean of the cuts at {depths}: the paper's go to 10% of the "
            "frontier at most, deeper ones are left out here.",
        )
    ]


def _compare(claim: str, one: Summary, other: Summary, chance: Summary | None) -> Finding:
    """By split, for splits differ more than policies do. A policy that told no pages apart shows nothing."""
    pair = compare(one, other)
    evidence = f"{_say(one)}, {_say(other)}; {_say_pair(pair)}"
    blind = [each.policy for each in (one, other) if chance is not None and _is_chance(each, chance)]
    if blind:
        return Finding(f"{claim}.", None, f"{evidence}; {' and '.join(blind)} gave all pages the same score.")
    return Finding(f"{claim}.", judge(pair.interval), f"{evidence}.")


def _is_chance(summary: Summary, chance: Summary) -> bool:
    """Whether a policy fetched in every split exactly what chance does, which is to score all pages alike."""
    known = [pair for pair in zip(summary.values, chance.values, strict=True) if not any(map(math.isnan, pair))]
    return bool(known) and all(math.isclose(mine, its, rel_tol=_EQUAL, abs_tol=_EQUAL) for mine, its in known)


def _compare_early(policy: str, summaries: Sequence[Summary]) -> list[Finding]:
    """Query methods are said to win at the start only: ahead at 2%, behind at 20%."""
    found = [pick(summaries, each, IMPACT, at) for at in (0.02, 0.2) for each in (policy, "rw-eg")]
    rows = [each for each in found if each is not None]
    if len(rows) < len(found):
        return []
    early, late = compare(rows[0], rows[1]), compare(rows[2], rows[3])
    ahead, still_ahead = judge(early.interval), judge(late.interval)
    if ahead is False or still_ahead is True:
        holds: bool | None = False
    else:
        holds = True if ahead is True and still_ahead is False else None
    return [
        Finding(
            f"Query methods win in the first ~5% only (`{policy}`).",
            holds,
            f"At 2%: {rows[0].mean:.1f} against {rows[1].mean:.1f} of rw-eg, {_say_pair(early)}; "
            f"at 20%: {rows[2].mean:.1f} against {rows[3].mean:.1f}, {_say_pair(late)}.",
        )
    ]
