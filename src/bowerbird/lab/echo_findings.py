"""What the echo experiment says of the claims of [ECHO13]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bowerbird.lab.echo_measures import (
    CLUSTER,
    COVER,
    COVERED,
    DISCOVERED,
    DISCOVERY_DELAY,
    EPHEMERAL,
    FITTED,
    GREEDY_COVER,
    HALF_LIFE,
    HISTORY,
    INTEREST,
    OURS,
    PROFIT,
    PUSHES,
)
from bowerbird.lab.echo_world import EchoWorld
from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.summaries import compare, few_splits, judge, pick

BASELINES = ("bfs", "fixed-quota", "frequency")
PAPERS = ("echo-newpages", "echo-schedule", "echo-greedy")
#: a change by fewer points is hardly any
HARDLY = 2.0
EPHEMERAL_CLAIM = 90.0
FEW_HUBS = 0.03
GOOD_FIT = 5.0  # points that the curve may be off, on average


def conclude_echo(summaries: Sequence[Summary], world: EchoWorld) -> list[Finding]:
    """Each claim with the figures that decide it; those whose policies were not run are left out."""
    found: list[Finding] = []
    for policy in PAPERS:
        for rival in BASELINES:
            found.extend(_beats(summaries, world, policy, rival, f"{policy} makes more profit than {rival}."))
    for rival in ("echo-schedule", "echo-greedy"):
        claim = f"echo-newpages makes at least as much profit as {rival}."
        found.extend(_beats(summaries, world, "echo-newpages", rival, claim))
    for rival in (*BASELINES, *PAPERS):
        claim = f"(ours) {OURS} makes more profit than {rival}."
        found.extend(_beats(summaries, world, OURS, rival, claim))
    found.extend(
        _insensitive(summaries, PUSHES, 1.0, "Clicks told less often cost hardly any profit", "hours between pushes")
    )
    found.extend(_insensitive(summaries, HISTORY, 7.0, "The visits that lam is measured over hardly matter", "visits"))
    found.extend(_world_claims(summaries))
    found.extend(_discovery(summaries))
    return found


def _beats(summaries: Sequence[Summary], world: EchoWorld, policy: str, rival: str, claim: str) -> Iterator[Finding]:
    """At every budget, split by split: holds if it does at all of them, does not if at none."""
    verdicts, told, count = [], [], 0
    for x in world.budgets:
        one, other = pick(summaries, policy, PROFIT, x), pick(summaries, rival, PROFIT, x)
        if one is None or other is None:
            continue
        pair = compare(one, other)
        count = pair.n
        verdicts.append(judge(pair.interval))
        told.append(f"x = {x:g}: {one.mean:.1f} and {other.mean:.1f}% ({pair.mean:+.1f})")
    if not verdicts:
        return
    few = f" ({few_splits(count)}: no interval)" if count < 3 else ""
    yield Finding(claim, _joint(verdicts), "; ".join(told) + few + ".")


def _joint(verdicts: Sequence[bool | None]) -> bool | None:
    """All alike, or nothing can be said."""
    return verdicts[0] if all(verdict is verdicts[0] for verdict in verdicts) else None


def _insensitive(
    summaries: Sequence[Summary], measure: str, usual: float, claim: str, across: str
) -> Iterator[Finding]:
    """Against the usual setting, split by split: does any other move profit by more than hardly?"""
    for policy in dict.fromkeys(row.policy for row in summaries if row.measure == measure):
        rows = [row for row in summaries if (row.measure, row.policy) == (measure, policy)]
        own = pick(rows, policy, measure, usual)
        if own is None or len(rows) < 2:
            continue
        reaches = [compare(row, own).interval for row in rows if row is not own]
        known = [reach for reach in reaches if reach is not None]
        holds: bool | None = None
        if any(low > HARDLY or high < -HARDLY for low, high in known):
            holds = False
        elif known and all(low > -HARDLY and high < HARDLY for low, high in known):
            holds = True
        told = ", ".join(f"{row.at:g}: {row.mean:.1f}" for row in rows)
        yield Finding(f"{claim} ({policy}).", holds, f"Profit in % by {across}: {told}.")


def _world_claims(summaries: Sequence[Summary]) -> Iterator[Finding]:
    cover = pick(summaries, GREEDY_COVER, COVER, FEW_HUBS)
    if cover is not None:
        rows = [row for row in summaries if row.measure == COVER and row.at is not None]
        told = ", ".join(f"{row.at:.0%} of hubs {row.mean:.0f}%" for row in rows)
        claim = f"{FEW_HUBS:.0%} of hubs link to {COVERED:.0%} of new pages."
        yield Finding(claim, cover.mean >= 100.0 * COVERED, f"{told}.")
    ephemeral = pick(summaries, EPHEMERAL, CLUSTER)
    if ephemeral is not None:
        claim = "Interest in nearly all new pages is ephemeral (96% in the paper)."
        evidence = f"{ephemeral.mean:.1f}% of pages are of a kind that makes 80% of its profit in its first 3 days."
        yield Finding(claim, ephemeral.mean >= EPHEMERAL_CLAIM, evidence)
    half_life = pick(summaries, FITTED, HALF_LIFE)
    if half_life is not None:
        fitted = {row.at: row.mean for row in summaries if (row.measure, row.policy) == (INTEREST, FITTED)}
        real = {row.at: row.mean for row in summaries if row.measure == INTEREST and row.policy != FITTED}
        off = sum(abs(fitted[at] - real[at]) for at in real) / max(len(real), 1)
        claim = "Interest by age is P·(1 - exp(-mu·t))."
        evidence = f"The fit is off by {off:.1f} points on average; half of it is made in {half_life.mean:.1f} hours."
        yield Finding(claim, off <= GOOD_FIT, evidence)


def _discovery(summaries: Sequence[Summary]) -> Iterator[Finding]:
    for rival in ("uniform", "rate-proportional"):
        told, ahead = [], []
        for row in summaries:
            if row.measure != DISCOVERED or row.policy != "best-intervals":
                continue
            other = pick(summaries, rival, DISCOVERED, row.at)
            delay = pick(summaries, "best-intervals", DISCOVERY_DELAY, row.at)
            late = pick(summaries, rival, DISCOVERY_DELAY, row.at)
            if other is None or delay is None or late is None:
                continue
            ahead.append(judge(compare(row, other).interval))
            told.append(
                f"{row.at:g} visits an hour: {row.mean:.1f}% after {delay.mean:.1f} h, "
                f"{other.mean:.1f}% after {late.mean:.1f} h"
            )
        if told:
            claim = f"(ours) The best intervals find more new pages than {rival} visits."
            yield Finding(claim, _joint(ahead), "; ".join(told) + ".")
