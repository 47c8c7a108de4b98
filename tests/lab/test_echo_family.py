"""The experiment `echo`: its measures, findings and files, and how interest is described."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lab.echo_toy import make_news, make_world

from bowerbird.lab.echo_family import FAMILY
from bowerbird.lab.echo_findings import conclude_echo
from bowerbird.lab.echo_interest import cluster_interest, interest_curve
from bowerbird.lab.echo_measures import COVER, DISCOVERED, FETCHED, HISTORY, PROFIT, PUSHES, name_dynamic
from bowerbird.lab.experiment import Summary
from bowerbird.lab.runner import Run, run_experiment
from bowerbird.lab.summaries import pick
from bowerbird.lab.tables import place_unit

POLICIES = ("bfs", "frequency", "echo-newpages", "uniform", "rate-proportional", "best-intervals")
DAY = 86_400.0


@pytest.fixture(scope="module")
def done() -> Run:
    return run_experiment(FAMILY, make_news(days=8.0), POLICIES, seeds=3)


def test_every_measure_is_taken(done: Run) -> None:
    for measure, policy, at in (
        (PROFIT, "bfs", 0.22),
        (FETCHED, "echo-newpages", 0.87),
        (name_dynamic(0.22), "(bound)", 1.0),
        (name_dynamic(0.43), "bfs", 8.0),
        (name_dynamic(0.87), "echo-newpages", 4.0),
        (PUSHES, "echo-newpages", 24.0),
        (HISTORY, "frequency", 7.0),
        (COVER, "(greedy cover)", 0.5),
    ):
        row = pick(done.summaries, policy, measure, at)
        assert row is not None, measure
        assert row.n == 3
        assert row.mean > 0
    found = [row for row in done.summaries if row.measure == DISCOVERED]
    assert {row.policy for row in found} == {"uniform", "rate-proportional", "best-intervals"}
    assert place_unit(FAMILY, PUSHES) == "hours between pushes"  # type: ignore[arg-type]


def test_the_usual_settings_are_those_of_the_table(done: Run) -> None:
    usual = pick(done.summaries, "echo-newpages", PROFIT, 0.43)
    assert usual is not None
    assert (pick(done.summaries, "echo-newpages", PUSHES, 1.0) or usual).values == usual.values
    assert (pick(done.summaries, "echo-newpages", HISTORY, 7.0) or usual).values == usual.values


def test_no_fetch_makes_more_than_the_bound(done: Run) -> None:
    for row in done.summaries:
        if row.measure in (PROFIT, FETCHED):
            assert 0 <= row.mean <= 100
            assert row.measure == PROFIT or row.mean <= 100 * (row.at or 0.0) * 1.1


def test_claims_of_what_was_run_are_judged(done: Run) -> None:
    claims = {finding.claim: finding for finding in done.findings}
    assert "echo-newpages makes more profit than bfs." in claims
    assert not any("echo-greedy" in claim for claim in claims)
    cover = next(finding for claim, finding in claims.items() if "of hubs link to" in claim)
    assert cover.holds is False
    assert "3% of hubs 0%" in cover.evidence


def test_a_setting_that_matters_is_told_from_one_that_does_not() -> None:
    def rows(policy: str, *values: tuple[float, ...]) -> list[Summary]:
        places = zip((1.0, 24.0), values, strict=True)
        return [Summary(policy, PUSHES, at, float(np.mean(v)), 0.1, 3, 1.0, 1.0, v) for at, v in places]

    world = make_news()
    steady = conclude_echo(rows("a", (50.0, 51.0, 52.0), (50.1, 51.0, 52.1)), world)
    moved = conclude_echo(rows("a", (50.0, 51.0, 52.0), (40.0, 41.1, 42.0)), world)
    unsure = conclude_echo(rows("a", (50.0, 51.0, 52.0), (58.0, 41.1, 52.0)), world)
    assert [found[0].holds for found in (steady, moved, unsure)] == [True, False, None]


def test_files_and_plots(done: Run) -> None:
    assert isinstance(done.data, type(make_news()))
    files = FAMILY.files(done.data)
    assert files["cover.csv"].startswith(b"rank,hub,covered\n1,hub 5,")
    assert files["clusters.csv"].startswith(b"kind,pages_share,ephemeral,day,profit_share\n1,1.0000,1,1,1.0")
    plots = FAMILY.draw(done.data, done.summaries)
    assert [plot.measure for plot in plots][:2] == [PROFIT, FETCHED]
    assert len(plots) == 11
    dynamic = [(plot.title, plot.stem) for plot in plots if plot.measure.startswith("dynamic")]
    assert dynamic[0] == ("Profit as time goes on, x = 0.22: toy", "plot-dynamic_profit-x-0.22")
    assert len(dynamic) == 3


def test_interest_is_found_again() -> None:
    links, gains = [], []
    for page in range(60):
        born = page * 3600.0
        slow = page >= 45  # a quarter of the pages makes its profit evenly over 10 days
        links.append((0, page, born, born + DAY, 0))
        for step in range(80):  # of 3 hours
            made = 1.25 if slow else 100.0 * (np.exp(-0.25 * step) - np.exp(-0.25 * (step + 1)))
            gains.append((page, born + step * DAY / 8, born + (step + 1) * DAY / 8, float(made)))
    world = make_world(links, gains, end_s=20 * DAY)
    clusters = cluster_interest(world)
    assert clusters.ephemeral_share == pytest.approx(0.75)
    assert clusters.centres.sum(axis=1) == pytest.approx(np.ones(len(clusters.centres)))
    curve = interest_curve(make_world(links[:45], [gain for gain in gains if gain[0] < 45], end_s=20 * DAY))
    assert curve.fit.profit == pytest.approx(100.0, rel=0.03)
    assert curve.fit.decay_per_s * DAY == pytest.approx(2.0, rel=0.1)
    assert curve.explained > 0.97
