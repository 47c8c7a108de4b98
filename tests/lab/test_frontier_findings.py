"""Claims of [RW15] are said to hold, or not to, only where the splits say so."""

from __future__ import annotations

import math

import numpy as np

from bowerbird.lab.experiment import Summary
from bowerbird.lab.frontier_findings import AVERAGE, IMPACT, conclude_frontier


def row(policy: str, measure: str, *values: float, at: float | None = None) -> Summary:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
    return Summary(policy, measure, at, sum(values) / len(values), error, len(values), 1.0, 1.0, values)


def judge_level(*values: float, deep: float = 0.0) -> bool | None:
    """What is said of the level of RW-EG, which has `deep` where the paper does not look."""
    cuts = [row("rw-eg", IMPACT, *(value + step for value in values), at=at) for at, step in ((0.01, -2), (0.1, 2))]
    rows = [row("rw-eg", AVERAGE, *values), *cuts, row("rw-eg", IMPACT, *([deep] * len(values)), at=0.3)]
    finding = conclude_frontier("own", rows)[0]
    assert finding.claim.startswith("RW-EG reaches at least 60%")
    assert "the mean of the cuts at 1%, 10%" in finding.evidence
    return finding.holds


def test_a_level_is_reached_at_the_depths_of_the_paper_and_beyond_its_error() -> None:
    assert judge_level(63.0, 64.0, 65.0) is True
    assert judge_level(53.0, 54.0, 55.0, deep=99.0) is False
    assert judge_level(58.0, 61.0, 63.0) is None
    assert judge_level(80.0) is None  # one split has no error


def test_a_policy_that_learnt_nothing_shows_nothing() -> None:
    chance, rival = row("random", AVERAGE, 50.0, 51.0, 50.5), row("rw-eg", AVERAGE, 20.0, 21.0, 20.4)
    blind = conclude_frontier("own", [chance, row("learned", AVERAGE, 50.0, 51.0, 50.5 + 1e-12), rival])[-1]
    assert blind.claim.startswith("Ours, not the paper's: `learned`")
    assert blind.holds is None
    assert "learned gave all pages the same score" in blind.evidence
    seeing = conclude_frontier("own", [chance, row("learned", AVERAGE, 50.0, 51.0, 51.5), rival])[-1]
    assert seeing.holds is True


def test_query_methods_win_early_only_where_both_differences_are_clear() -> None:
    def judge_early(early: tuple[float, ...], late: tuple[float, ...]) -> bool | None:
        rows = [row("rw-eg", AVERAGE, 60.0, 61.0, 62.0)]
        for at, values in ((0.02, early), (0.2, late)):
            rows += [row("hybrid", IMPACT, *values, at=at), row("rw-eg", IMPACT, 50.0, 50.5, 51.0, at=at)]
        return next(each.holds for each in conclude_frontier("own", rows) if "`hybrid`" in each.claim)

    above, below, near = (55.0, 55.4, 56.1), (45.0, 45.4, 46.1), (52.0, 49.0, 51.0)
    assert judge_early(above, below) is True
    assert judge_early(below, below) is False
    assert judge_early(above, above) is False
    assert judge_early(near, below) is None
    assert judge_early(above, near) is None
