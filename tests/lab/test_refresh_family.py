"""The refresh experiment: every policy runs on one's own folder, learns from its own visits only, and is reported."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.lab.refresh_site import write_site
from tests.lab.refresh_toy import Toy

from bowerbird.lab import refresh_family, refresh_learners, refresh_signals
from bowerbird.lab.experiment import Family, SplitResult, Summary
from bowerbird.lab.refresh_announcements import Announcements
from bowerbird.lab.refresh_baselines import IN_SAMPLE
from bowerbird.lab.refresh_family import FAMILY, RefreshFamily, is_fixed
from bowerbird.lab.refresh_findings import conclude_refresh
from bowerbird.lab.refresh_learners import ONLINE, Adaptive, Learner, choose_pages
from bowerbird.lab.refresh_measures import (
    BUDGETS,
    CORRELATION,
    CURVE_GAIN,
    FIRST_HALF,
    GIVEN_UP,
    HEADLINE,
    LEFT,
    LOCAL_GAIN,
    LOSS,
    LOSS_AT,
    SIGNAL_BUDGETS,
    SIGNALS,
    signals_measure,
)
from bowerbird.lab.refresh_replay import Replay, Truth
from bowerbird.lab.refresh_scenes import RefreshScenes
from bowerbird.lab.refresh_scores import score_versions
from bowerbird.lab.refresh_visits import WEEK_S, Visits
from bowerbird.lab.report import Origin, as_data, write_results
from bowerbird.lab.runner import run_experiment
from bowerbird.lab.summaries import pick
from bowerbird.lab.tables import make_tables

COMBINATIONS = ("web tf-idf", "web in-link", "site tf-idf", "site in-link")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RefreshScenes:
    return FAMILY.load("own", write_site(tmp_path_factory.mktemp("lab") / "own"))


@pytest.fixture(scope="module")
def quick() -> Iterator[pytest.MonkeyPatch]:
    """Two budgets, few forecasts and few signals: enough to see that all is measured."""
    patch = pytest.MonkeyPatch()
    patch.setattr(refresh_learners, "EVERY", 16)
    patch.setattr(refresh_family, "BUDGETS", (0.01, 0.1))
    patch.setattr(refresh_signals, "RECALLS", (0.0, 1.0))
    patch.setattr(refresh_signals, "FALSE_RATES", (0.0, 0.2))
    yield patch
    patch.undo()


@pytest.fixture(scope="module")
def result(data: RefreshScenes, quick: pytest.MonkeyPatch) -> SplitResult:
    return FAMILY.run_split(data, 0, FAMILY.policies)


def values(result: SplitResult, measure: str, at: float | None = None) -> dict[str, float]:
    return {one.policy: one.value for one in result.samples if (one.measure, one.at) == (measure, at)}


def test_every_policy_runs_on_a_folder_of_ones_own(result: SplitResult) -> None:
    family: Family = RefreshFamily()
    named = set(family.policies) - {SIGNALS}
    assert set(values(result, LEFT)) == named
    for on in COMBINATIONS:
        few, many = values(result, f"{LOSS} {on}", 0.01), values(result, f"{LOSS} {on}", 0.1)
        assert set(few) == set(many) == named
        assert values(result, f"{LOSS_AT} {on}") == few
        assert few["none"] == many["none"] == max(few.values())
        assert few["oracle"] == min(few.values())
        for policy in named - {"none"}:
            assert many[policy] < few[policy] < few["none"], (on, policy)
        correlated = values(result, f"{CORRELATION} {on}")
        assert correlated[LOCAL_GAIN] > 0.9
        assert all(-1 <= value <= 1 for value in correlated.values())
    assert [cost.policy for cost in result.costs] == list(family.policies)
    assert values(result, GIVEN_UP, HEADLINE) == {"(sbr, every change counts)": 100.0}
    assert any(note.startswith("sbr at 1%, web tf-idf: threshold 0.") for note in result.notes)


def test_signals_help_and_false_ones_help_less(result: SplitResult) -> None:
    for on in COMBINATIONS:
        measure = signals_measure(0.05, on)
        without, perfect = values(result, measure, 0.0), values(result, measure, 1.0)
        assert perfect["no false signals"] < without["no false signals"]
        assert perfect["no false signals"] < perfect["20% false a week"]


def test_what_no_seed_moves_is_measured_once_and_holds_for_all(data: RefreshScenes, result: SplitResult) -> None:
    chosen = ["uniform", "sbr", "uc-linear", "uc-area-online"]
    second = FAMILY.run_split(data, 1, chosen)
    assert {one.policy for one in second.samples} == {"uniform", "uc-area-online"}
    again = FAMILY.run_split(data, 1, chosen)
    assert again.samples == second.samples  # a split repeats itself
    assert values(second, LEFT)["uniform"] != values(result, LEFT)["uniform"]
    first = SplitResult(0, list(result.samples))
    done = FAMILY.complete([first, second])
    for on in COMBINATIONS:
        fixed = [each for each in values(first, f"{LOSS_AT} {on}") if is_fixed(each)]
        assert fixed == list(IN_SAMPLE)
        for policy in fixed:
            assert values(done[1], f"{LOSS_AT} {on}")[policy] == values(first, f"{LOSS_AT} {on}")[policy]
        budgets = values(first, f"budget_of_uc-linear {on}")
        assert "uc-linear" not in budgets
        assert "oracle" not in budgets
        assert "sbr-online" not in budgets
        assert all(0.25 <= budget <= 10.0 or math.isinf(budget) for budget in budgets.values())
        assert set(values(done[1], f"budget_of_uc-area-online {on}")) == {"uniform"}


def test_a_run_is_reported(data: RefreshScenes, quick: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policies = ("uniform", "none", "sbr", "ebr", "uc-linear", "uc-area-online", SIGNALS)
    site = RefreshScenes(replace(data.data, workloads={"site": data.data.workloads["site"]}))
    run = run_experiment(FAMILY, site, policies, seeds=2)
    uniform = pick(run.summaries, "sbr", f"{LOSS_AT} site tf-idf")
    assert uniform is not None
    assert (uniform.n, uniform.se) == (2, 0.0)
    tables = {table.title: table for table in make_tables(FAMILY, run.summaries)}
    assert tables[LOSS_AT].columns == COMBINATIONS[2:]
    assert tables["Over all"].columns[0] == LEFT
    shown = {policy: [str(cell) for cell in cells] for policy, cells in tables["Over all"].rows}
    assert "±" in shown["uniform"][0]
    assert "±" not in shown["sbr"][0]  # no seed moves it
    rows = as_data(run, Origin("own", "bowerbird lab run refresh --on own", 0.0))["rows"]
    assert {row["measure"] for row in rows} >= {f"{LOSS} site in-link", signals_measure(0.01, "site tf-idf")}
    report = write_results(run, Origin("own", "bowerbird lab run refresh --on own", 0.0), tmp_path / "out")
    text = report.read_text(encoding="utf-8")
    assert "SBR abandons pages that change often." in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    names = {path.name for path in report.parent.iterdir()}
    for on in ("site-tf-idf", "site-in-link"):
        assert {f"plot-loss_bp-in-sample-{on}.png", f"plot-loss_bp-online-{on}.png", f"plot-gains-{on}.png"} <= names
        assert f"plot-signals_5pct_bp-{on}.svg" in names
    with (report.parent / "gains.csv").open(encoding="utf-8", newline="") as lines:
        points = list(csv.DictReader(lines))
    assert {point["on"] for point in points} == set(COMBINATIONS[2:])
    assert points[0]["page"].startswith("docs/")


def test_a_budget_that_is_never_enough_is_said() -> None:
    row = Summary("sbr", "budget_of_uc-linear web tf-idf", None, math.inf, 0.0, 2, 0.0, 0.0, (math.inf, 3.0))
    table = make_tables(FAMILY, [row])[0]
    assert str(table.rows[0][1][0]) == "> 10%"
    assert "uc-linear at 1%" in table.about


# -- online


def test_a_learner_knows_nothing_of_what_it_has_not_visited(data: RefreshScenes) -> None:
    """Other versions of pages that it did not visit: it chooses as before, week by week."""
    scene = data.combinations[0]
    for policy in ("sbr-online", "click-ebr-online", "uc-area-online", "uc-linear-online", "nutch-online"):
        state = Replay(scene.truth)
        choose = ONLINE[policy](data, scene, np.random.default_rng(1))
        blind = ONLINE[policy](data, scene, np.random.default_rng(1))
        for _ in range(12):
            state.begin_week()
            chosen = choose(state, 4)
            live = state.live_version.copy()
            # to the other, no page but those that are about to be visited has ever changed
            state.live_version[:] = np.where(np.isin(np.arange(len(live)), chosen), live, state.local_version)
            assert blind(state, 4).tolist() == chosen.tolist(), policy
            state.live_version[:] = live
            state.refresh(chosen)


def test_pages_are_chosen_by_value_and_some_by_lot() -> None:
    rng = np.random.default_rng(0)
    value = np.arange(100.0)
    chosen = choose_pages(value, 40, rng)
    assert len(np.unique(chosen)) == 40
    assert set(range(62, 100)) <= set(chosen.tolist())
    assert choose_pages(value, 100, rng).tolist() != list(range(100))
    assert sorted(choose_pages(value, 100, rng).tolist()) == list(range(100))
    assert len(choose_pages(value, 0, rng)) == 0
    drawn = {tuple(sorted(choose_pages(np.zeros(6), 1, np.random.default_rng(seed)).tolist())) for seed in range(40)}
    assert len(drawn) == 6  # equal values are drawn by lot


def test_visits_are_kept_as_columns() -> None:
    """Page 1 is visited in weeks 1 and 3: changed, then changed twice since; page 0 in week 2: not."""
    texts: list[list[list[str] | None]] = [
        [["car"], None, None, None],
        [["car", "red"], ["bus"], ["van"], ["car", "red"]],
    ]
    toy = Toy(texts, [1, 2], {("car",): 1.0}).data()
    state = Replay(Truth(score_versions(toy, toy.workloads["web"], "in-link")))
    visits = Visits(toy)
    for page in (1, 0, 1):
        state.begin_week()
        visits.add(state, np.array([page]), np.array([False, state.week == 3]))
        state.refresh(np.array([page]))
    starts, interval_s, changed, shift, gain = visits.columns()
    assert starts.tolist() == [0, 1, 3]
    assert (interval_s / WEEK_S).tolist() == [2.0, 1.0, 2.0]
    assert changed.tolist() == [False, True, True]
    assert shift.tolist() == [0.0, 1.0, 1.0]
    assert gain[0] == 0.0
    assert (gain[1:] > 0).all()
    assert visits.signals()[1].tolist() == [False, False, True]


def test_announcements() -> None:
    """All changes and no others with perfect recall; none without; more recall tells all that less does."""
    texts: list[list[list[str] | None]] = [[["a"], ["b"], None, ["c"]], [["a"], None, None, None]]
    toy = Toy(texts * 20, [1] * 40, {("a",): 1.0}).data()
    state = Replay(Truth(score_versions(toy, toy.workloads["web"], "tf-idf")))
    perfect, silent = Announcements(toy, 1.0, 0.0, 7), Announcements(toy, 0.0, 0.0, 7)
    half, false = Announcements(toy, 0.5, 0.0, 7), Announcements(toy, 0.0, 0.3, 7)
    for _ in range(3):
        state.begin_week()
        on = perfect.since_refresh(state)
        assert on.tolist() == (state.local_version != state.live_version).tolist()
        assert not silent.since_refresh(state).any()
        assert 0 < half.since_refresh(state).sum() < on.sum() or state.week == 2
        assert not (half.since_refresh(state) & ~on).any()
        state.refresh(np.flatnonzero(on))
    wrong = sum((false.last[week] == week).sum() for week in range(1, 4))
    assert 0.15 < wrong / 120 < 0.45


def test_a_learner_believes_signals_as_far_as_they_were_right(data: RefreshScenes) -> None:
    """Perfect ones: it visits pages that changed; false ones alone: it does as well as without."""
    scene = data.combinations[0]

    def hits(recall: float, false_rate: float) -> float:
        state, found = Replay(scene.truth), 0
        told = Announcements(data.data, recall, false_rate, 5)
        choose = Learner(data, scene, "user-centric", np.random.default_rng(1), told)
        for _ in range(48):
            state.begin_week()
            chosen = choose(state, 4)
            found += int((state.live_version[chosen] != state.local_version[chosen]).sum())
            state.refresh(chosen)
        return found / (4 * 48)

    assert hits(1.0, 0.0) > 0.8
    assert hits(1.0, 0.0) > hits(0.0, 0.0)
    assert scene.loss_bp(
        Learner(data, scene, "user-centric", np.random.default_rng(1), Announcements(data.data, 0.0, 0.3, 5)), 0.05
    ) < 1.2 * scene.loss_bp(ONLINE["uc-area-online"](data, scene, np.random.default_rng(1)), 0.05)


def test_the_adaptive_interval_follows_changes() -> None:
    texts: list[list[list[str] | None]] = [[["a"], *[[f"w{week}"] for week in range(30)]], [["a"], *[None] * 30]]
    toy = Toy(texts, [1, 1], {("a",): 1.0}).data()
    state = Replay(Truth(score_versions(toy, toy.workloads["web"], "tf-idf")))
    choose, seen = Adaptive(2, np.random.default_rng(0)), []
    for _ in range(30):
        state.begin_week()
        seen += choose(state, 1).tolist()
        state.refresh(np.array(seen[-1:]))
    assert seen.count(0) > 2 * seen.count(1) > 0


# -- findings


def row(policy: str, measure: str, *found: float, at: float | None = None) -> Summary:
    mean = sum(found) / len(found)
    return Summary(policy, measure, at, mean, 0.1, len(found), 1.0, 1.0, found)


def test_findings_say_what_holds_and_what_does_not() -> None:
    rows = []
    for on, mine in (("web tf-idf", 57.0), ("site tf-idf", 41.0)):
        rows.append(row("uc-linear", f"{LOSS_AT} {on}", mine, mine, mine))
        rows.append(row("sbr", f"{LOSS_AT} {on}", 66.0, 66.0, 66.0) if on.startswith("web") else
                    row("sbr", f"{LOSS_AT} {on}", 40.0, 40.0, 40.0))  # fmt: skip
        rows.append(row("uc-area-online", f"{LOSS_AT} {on}", 80.0, 81.0, 79.5))
        rows.append(row("uniform", f"{LOSS_AT} {on}", 120.0, 121.5, 120.2))
        rows.append(row("click-ebr-online", f"{LOSS_AT} {on}", 80.1, 80.5, 80.0))
        rows.append(row("sbr", f"budget_of_uc-linear {on}", 3.0, 3.0, 3.0))
        rows.append(row("ebr", f"budget_of_uc-linear {on}", math.inf, math.inf, math.inf))
        rows.append(row(FIRST_HALF, f"{CORRELATION} {on}", 0.5))
        rows.append(row(CURVE_GAIN, f"{CORRELATION} {on}", 0.6))
        for at, loss in ((0.0, 90.0), (1.0, 40.0)):
            rows.append(row("no false signals", signals_measure(SIGNAL_BUDGETS[0], on), loss, loss, at=at))
    rows.append(row("(sbr, every change counts)", GIVEN_UP, 100.0, at=HEADLINE))
    found = {finding.claim: finding for finding in conclude_refresh(rows)}
    holds = {claim.split(" (")[0].split(", the others")[0]: finding.holds for claim, finding in found.items()}
    assert holds == {
        "In sample at 1% of pages a week, `uc-linear` keeps more quality than SBR and EBR": None,
        "For the quality that `uc-linear` has with 1% of pages a week": True,
        "Online at 1% of pages a week, `uc-area-online` loses less than `uniform`.": True,
        "Online at 1% of pages a week, `uc-area-online` loses less than `click-ebr-online`.": None,
        "SBR abandons pages that change often.": True,
        "Gains are forecastable: those of the first half go with those of the second, of all updated in both": True,
        "The gain by curves goes with the exact one, 0.70 at least.": False,
        "Ours: with perfect signals `uc-area-online` loses less than half.": True,
    }
    in_sample = next(finding for claim, finding in found.items() if claim.startswith("In sample"))
    assert "99.43%" in in_sample.evidence
    fewer = next(finding for claim, finding in found.items() if claim.startswith("For the quality"))
    assert "sbr 3%, ebr > 10%" in fewer.evidence
    assert conclude_refresh([]) == []


def test_what_was_not_measured_is_not_judged(
    quick: pytest.MonkeyPatch, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """1% of 20 pages is none, 5% is one: all that is said of 1% is open, and signals are judged at 5% alone."""
    small = FAMILY.load("small", write_site(tmp_path, pages=20, weeks=6))
    assert "20 pages: 1% a week is 0 pages; at least 51 are needed." in small.data.notes
    policies = ("uniform", "none", "sbr", "uc-linear", "uc-area-online", SIGNALS)
    run = run_experiment(FAMILY, small, policies, seeds=3)
    found = {finding.claim: finding for finding in FAMILY.conclude(small, run.summaries)}
    open_ones = [each for claim, each in found.items() if " 1% of pages" in claim or claim.startswith("SBR abandons")]
    assert len(open_ones) == 5
    for finding in open_ones:
        assert finding.holds is None
        assert finding.evidence == "1% of 20 pages a week is 0 pages: every policy does the same."
    signals = next(each for claim, each in found.items() if "perfect signals" in claim)
    assert " at 5%: " in signals.evidence
    assert " at 1%: " not in signals.evidence
    FAMILY.draw(small, run.summaries)
    assert [str(each.message) for each in recwarn] == []


def test_a_site_that_does_not_change_decides_nothing(
    quick: pytest.MonkeyPatch, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Nor is there anything to draw."""
    still = FAMILY.load("still", write_site(tmp_path, weeks=3, changing=False))
    assert (still.data.weeks, still.data.updates) == (3, 0)
    run = run_experiment(FAMILY, still, ("uniform", "none", "sbr", "uc-linear", "uc-area-online", SIGNALS), seeds=3)
    found = FAMILY.conclude(still, run.summaries)
    assert {finding.claim.split(" ")[0] for finding in found} == {"In", "For", "Online", "SBR", "Ours:"}
    assert [finding.holds for finding in found] == [None] * len(found)
    abandoned = next(finding for finding in found if finding.claim.startswith("SBR"))
    assert abandoned.evidence == "No page changes."
    assert FAMILY.draw(still, run.summaries) == []
    assert [str(each.message) for each in recwarn] == []


def test_combinations_without_a_loss_decide_nothing() -> None:
    rows = [
        row(policy, f"{LOSS_AT} {on}", loss, loss, loss)
        for on, losses in (("web tf-idf", (10.0, 20.0)), ("site tf-idf", (0.0, 0.0)))
        for policy, loss in zip(("uc-linear", "sbr"), losses, strict=True)
    ]
    (finding,) = conclude_refresh(rows, 51)
    assert finding.holds is True
    assert finding.evidence.startswith("Better on 1 of 1. web tf-idf")
    assert [each.holds for each in conclude_refresh(rows, 50)] == [None]


# -- real data


def test_online_levels_on_real_pages(shared_data: Path) -> None:
    """At 1% on k8s, one seed: user-centric below uniform, staleness and embarrassment, and near the bars."""
    if not (shared_data / "k8s").is_dir():
        pytest.skip("no k8s")
    scenes = FAMILY.load("k8s", shared_data / "k8s")
    bars = {"web tf-idf": 37, "site tf-idf": 31, "web in-link": 22, "site in-link": 13}
    patch = pytest.MonkeyPatch()
    patch.setattr(refresh_family, "BUDGETS", (HEADLINE,))
    policies = ["uniform", "sbr-online", "ebr-online", "uc-area-online"]
    result = FAMILY.run_split(scenes, 1, policies)
    patch.undo()
    for on in COMBINATIONS:
        loss = values(result, f"{LOSS_AT} {on}")
        assert loss["uc-area-online"] < min(loss["uniform"], loss["sbr-online"], loss["ebr-online"])
        assert loss["uc-area-online"] < 1.1 * bars[on]
    assert BUDGETS[2] == HEADLINE
