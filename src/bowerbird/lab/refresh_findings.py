"""What the refresh experiment says of the claims of [UC05], in sample as the paper had it, and online."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bowerbird.lab.experiment import Finding, Summary
from bowerbird.lab.refresh_measures import (
    BOTH_HALVES,
    CORRELATION,
    CURVE_GAIN,
    FIRST_HALF,
    GIVEN_UP,
    HEADLINE,
    LOCAL_GAIN,
    LOSS_AT,
    OURS,
    SIGNAL_BUDGETS,
    STALE_GAIN,
    pages_a_week,
    signals_measure,
)
from bowerbird.lab.summaries import compare, few_splits, judge, pick

RIVALS = ("sbr", "ebr", "click-ebr")
ONLINE_RIVALS = ("uniform", "sbr-online", "ebr-online", "click-ebr-online", "lambda-online", "azar-online")
#: how many times the fetches are "far more"
FAR = 2.0
CURVE_BAR, LOCAL_BAR = 0.70, 0.85
#: less is the rounding of sums
LEAST_LOSS_BP = 1e-6


def conclude_refresh(summaries: Sequence[Summary], pages: int | None = None) -> list[Finding]:
    """Each claim with the figures that decide it; those whose policies were not run are left out.

    Combinations in which no policy loses anything decide nothing. Where none is left, or 1% of the `pages` is no page,
    what is said of that budget is open.
    """
    lost: dict[str, float] = {}
    for row in summaries:
        if row.measure.startswith(f"{LOSS_AT} "):
            on = row.measure.partition(" ")[2]
            lost[on] = max(lost.get(on, 0.0), row.mean if row.n else 0.0)
    moved = [on for on, loss in lost.items() if loss > LEAST_LOSS_BP]
    combinations = moved or list(lost)
    lossless = "" if moved else "No policy loses anything: no change of a page moves an answer."
    found = _leave_open(_by_budget(summaries, combinations), _too_few(HEADLINE, pages) or lossless)
    found.extend(_abandoned(summaries, pages))
    found.extend(_by_gains(summaries))
    shares = [share for share in SIGNAL_BUDGETS if not _too_few(share, pages)]
    why = lossless if shares else _too_few(max(SIGNAL_BUDGETS), pages)
    found.extend(_leave_open(_signals(summaries, shares or SIGNAL_BUDGETS, combinations), why))
    return found


def _too_few(share: float, pages: int | None) -> str:
    """Why nothing can be said of a budget; empty where it is a page at least, or pages are not known."""
    if pages is None or pages_a_week(share, pages):
        return ""
    return f"{share:.0%} of {pages} pages a week is 0 pages: every policy does the same."


def _leave_open(findings: Iterable[Finding], why: str) -> list[Finding]:
    return [replace(finding, holds=None, evidence=why) if why else finding for finding in findings]


def _by_budget(summaries: Sequence[Summary], combinations: Sequence[str]) -> Iterator[Finding]:
    """What is claimed of policies at 1%."""
    for policy in ("uc-linear", "uc-area"):
        yield from _in_sample(summaries, policy, combinations)
    for target, rivals in (
        ("uc-linear", RIVALS),
        ("uc-area", RIVALS),
        (OURS, ONLINE_RIVALS),
    ):
        yield from _fewer_fetches(summaries, target, rivals, combinations)
    for rival in ONLINE_RIVALS:
        yield from _online(summaries, rival, combinations)


def _by_gains(summaries: Sequence[Summary]) -> Iterator[Finding]:
    """What is claimed of gains, at any budget."""
    claim = "Gains are forecastable: those of the first half go with those of the second"
    yield from _correlated(summaries, BOTH_HALVES, 0.0, f"{claim}, of pages that gained in both (Figure 3)")
    yield from _correlated(summaries, FIRST_HALF, 0.0, f"{claim}, of all updated in both")
    claim = f"The gain by curves goes with the exact one, {CURVE_BAR:.2f}"
    yield from _correlated(summaries, CURVE_GAIN, CURVE_BAR, claim)
    for measure, where in ((LOCAL_GAIN, ""), (STALE_GAIN, " in a stale repository")):
        claim = f"Ours: the gain by real queries and local scores goes with the exact one{where}, {LOCAL_BAR}"
        yield from _correlated(summaries, measure, LOCAL_BAR, claim)


def _quality(loss_bp: float) -> str:
    return f"{100.0 - loss_bp / 100.0:.2f}%"


def _in_sample(summaries: Sequence[Summary], policy: str, combinations: Sequence[str]) -> Iterator[Finding]:
    """At equal budget; no seed moves these, so that figures stand for themselves."""
    told, better, count = [], 0, 0
    for on in combinations:
        mine = pick(summaries, policy, f"{LOSS_AT} {on}")
        rivals = [row for name in ("sbr", "ebr") if (row := pick(summaries, name, f"{LOSS_AT} {on}")) is not None]
        if mine is None or not rivals:
            continue
        best = min(rivals, key=lambda row: row.mean)
        count += 1
        better += mine.mean < best.mean
        told.append(
            f"{on}: {policy} {_quality(mine.mean)}, {best.policy} {_quality(best.mean)} ({mine.mean:.1f} against "
            f"{best.mean:.1f} bp)"
        )
    if count:
        yield Finding(
            f"In sample at 1% of pages a week, `{policy}` keeps more quality than SBR and EBR (the paper, at equal "
            "budget: above 99% against 95%).",
            True if better == count else False if better == 0 else None,
            f"Better on {better} of {count}. {'; '.join(told)}.",
        )


def _fewer_fetches(
    summaries: Sequence[Summary], target: str, rivals: Sequence[str], combinations: Sequence[str]
) -> Iterator[Finding]:
    """Budgets for equal quality, in % of pages a week."""
    told, far, count = [], 0, 0
    for on in combinations:
        rows = [row for name in rivals if (row := pick(summaries, name, f"budget_of_{target} {on}")) is not None]
        if not rows:
            continue
        best = min(rows, key=lambda row: row.mean)
        count += 1
        far += best.mean >= 100.0 * HEADLINE * FAR
        told.append(f"{on}: {_budgets(rows)}")
    if count:
        how = "online" if target.endswith("-online") else "in sample"
        yield Finding(
            f"For the quality that `{target}` has with 1% of pages a week, the others need at least {FAR:g} times the "
            f"fetches ({how}).",
            True if far == count else False if far == 0 else None,
            f"So on {far} of {count}, by the best of them. {'; '.join(told)}.",
        )


def _budgets(rows: Sequence[Summary]) -> str:
    return ", ".join(f"{row.policy} {'> 10' if math.isinf(row.mean) else f'{row.mean:.2g}'}%" for row in rows)


def _online(summaries: Sequence[Summary], rival: str, combinations: Sequence[str]) -> Iterator[Finding]:
    """Split by split."""
    told, verdicts = [], []
    for on in combinations:
        mine = pick(summaries, OURS, f"{LOSS_AT} {on}")
        other = pick(summaries, rival, f"{LOSS_AT} {on}")
        if mine is None or other is None:
            continue
        pair = compare(other, mine)
        verdicts.append(judge(pair.interval))
        reach = (
            f"95% interval {pair.interval[0]:+.1f} … {pair.interval[1]:+.1f}" if pair.interval else few_splits(pair.n)
        )
        told.append(f"{on}: {mine.mean:.1f} against {other.mean:.1f} bp ({pair.mean:+.1f}, {reach})")
    if verdicts:
        better = verdicts.count(True)
        worse = verdicts.count(False)
        yield Finding(
            f"Online at 1% of pages a week, `{OURS}` loses less than `{rival}`.",
            True if better == len(verdicts) else False if worse == len(verdicts) else None,
            f"Less on {better}, more on {worse} of {len(verdicts)}. {'; '.join(told)}.",
        )


def _abandoned(summaries: Sequence[Summary], pages: int | None) -> Iterator[Finding]:
    row = next((row for row in summaries if (row.measure, row.at) == (GIVEN_UP, HEADLINE)), None)
    claim = "SBR abandons pages that change often."
    if row is not None and not row.n:
        yield Finding(claim, None, _too_few(HEADLINE, pages) or "No page changes.")
    elif row is not None:
        yield Finding(
            claim,
            row.mean > 50.0,
            f"With 1% of pages a week and every change counted, it never refreshes {row.mean:.0f}% of the 1% of pages "
            "that change most often.",
        )


def _correlated(summaries: Sequence[Summary], name: str, bar: float, claim: str) -> Iterator[Finding]:
    rows = [row for row in summaries if row.policy == name and row.measure.startswith(f"{CORRELATION} ") and row.n]
    if rows:
        above = sum(row.mean >= bar if bar > 0 else row.mean > 0.3 for row in rows)
        told = ", ".join(f"{row.measure.partition(' ')[2]} {row.mean:.2f}" for row in rows)
        words = f"{claim} at least." if bar > 0 else f"{claim} (rank correlation above 0.3)."
        yield Finding(words, True if above == len(rows) else False if above == 0 else None, f"{told}.")


def _signals(summaries: Sequence[Summary], shares: Sequence[float], combinations: Sequence[str]) -> Iterator[Finding]:
    """What perfect signals are worth."""
    told, less, count = [], 0, 0
    for share in shares:
        for on in combinations:
            rows = [row for row in summaries if row.measure == signals_measure(share, on) and row.n]
            without = next((row for row in rows if row.at == 0.0), None)
            perfect = next((row for row in rows if row.at == 1.0), None)
            if without is None or perfect is None:
                continue
            count += 1
            less += perfect.mean <= 0.5 * without.mean
            told.append(f"{on} at {share:.0%}: {without.mean:.1f} → {perfect.mean:.1f} bp")
    if count:
        yield Finding(
            f"Ours: with perfect signals `{OURS}` loses less than half.",
            True if less == count else False if less == 0 else None,
            f"So in {less} of {count}. {'; '.join(told)}.",
        )
