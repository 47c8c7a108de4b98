"""The experiment `holistic`: its measures, findings and plots, and the world of a real site."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.lab.holistic_toy import SMALL

from bowerbird.lab.experiment import Summary
from bowerbird.lab.holistic_crawl import KINDS, HolisticCrawl, Kind
from bowerbird.lab.holistic_family import FAMILY, HolisticData
from bowerbird.lab.holistic_findings import conclude_holistic
from bowerbird.lab.holistic_made import draw_settings
from bowerbird.lab.holistic_mdn import read_history, world_of_site
from bowerbird.lab.holistic_measures import (
    CALIBRATION,
    CURVE,
    GAIN,
    MARGIN_BID,
    MARGIN_GAINED,
    MARGINAL,
    OF_QUOTA,
    QUALITY,
    SHARE,
    SPENT,
    TIMES_BFS,
    by_kind,
    over_time,
)
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_world import START_S, WEEK_S
from bowerbird.lab.registry import find_data, find_family
from bowerbird.lab.runner import Run, run_experiment
from bowerbird.lab.summaries import pick
from bowerbird.lab.tables import make_tables
from bowerbird.model.errors import InputFileError

POLICIES = ("auto", "breadth-first", "clairvoyant", "bound", "quota-60-20-20", "quota-0-100-0")


@pytest.fixture(scope="module")
def done() -> Run:
    return run_experiment(FAMILY, HolisticData("small", settings=SMALL), POLICIES, seeds=3)


def test_every_measure_is_taken(done: Run) -> None:
    for policy in POLICIES:
        for measure in (GAIN, QUALITY, TIMES_BFS, OF_QUOTA)[:: 2 if policy == "bound" else 1]:  # it has no Q over time
            row = pick(done.summaries, policy, measure, 10.0)
            assert row is not None, (policy, measure)
            assert row.n == 3
    for kind in KINDS:
        assert pick(done.summaries, "auto", by_kind(SHARE, kind), 40.0) is not None
    assert pick(done.summaries, "auto", by_kind(CALIBRATION, Kind.NEW), 10.0) is not None
    assert pick(done.summaries, "auto", by_kind(MARGINAL, Kind.NEW), 40.0) is not None
    assert any(row.measure == over_time(CURVE, 10.0) for row in done.summaries)
    assert any(row.policy == "auto: hub" for row in done.summaries if row.measure == over_time(SPENT, 40.0))


def test_measures_fit_together(done: Run) -> None:
    for budget in SMALL.budgets:
        shares = [pick(done.summaries, "auto", by_kind(SHARE, kind), budget) for kind in KINDS]
        assert sum(row.mean for row in shares if row is not None) == pytest.approx(100.0)
        times = pick(done.summaries, "breadth-first", TIMES_BFS, budget)
        assert times is not None
        assert times.mean == pytest.approx(1.0)
        best = max(
            row.mean for row in done.summaries if row.measure == OF_QUOTA and row.at == budget and "quota" in row.policy
        )
        assert best == pytest.approx(100.0)
        for row in done.summaries:
            if row.measure == QUALITY:
                assert 0.0 < row.mean <= 100.0


def test_findings_say_what_was_measured(done: Run) -> None:
    claims = {finding.claim: finding for finding in done.findings}
    against = next(finding for claim, finding in claims.items() if "best fixed split" in claim)
    assert "quota-60-20-20" in against.evidence
    assert any("breadth-first at the tightest budget" in claim for claim in claims)
    assert not any("nutch" in claim for claim in claims)
    assert "of bound's clicks gained" in next(one.evidence for claim, one in claims.items() if "knows all" in claim)


def rows(policy: str, measure: str, at: float, *values: float) -> Summary:
    return Summary(policy, measure, at, float(np.mean(values)), 0.1, len(values), 1.0, 1.0, values)


@pytest.mark.parametrize(
    ("auto", "quota", "holds"),
    [((5.0, 5.2, 5.1), (4.0, 4.1, 4.0), True), ((4.0, 4.1, 4.05), (5.0, 5.2, 5.1), False)],
)
def test_one_price_is_judged_against_the_best_split(
    auto: tuple[float, ...], quota: tuple[float, ...], holds: bool
) -> None:
    found = conclude_holistic([rows("auto", GAIN, 2.0, *auto), rows("quota-60-20-20", GAIN, 2.0, *quota)], (2.0,))
    assert found[0].holds is holds


def test_the_best_split_is_the_one_that_does_best_seed_by_seed() -> None:
    """In worlds that differ: a split that suits only the largest one gains most in all, and is not the best."""
    summaries = [
        rows("auto", GAIN, 2.0, 100.0, 1.0, 1.0),
        rows("quota-60-20-20", GAIN, 2.0, 99.0, 0.5, 0.4),
        rows("quota-40-20-40", GAIN, 2.0, 95.0, 0.9, 0.9),
    ]
    assert "quota-40-20-40" in conclude_holistic(summaries, (2.0,))[0].evidence


def test_a_split_that_is_better_as_often_as_it_is_worse_is_judged_by_how_much() -> None:
    """Three times as good in one world and half as good in the next is better, whichever is divided by which."""
    auto, split = rows("auto", GAIN, 2.0, *[1.0] * 30), rows("quota-60-20-20", GAIN, 2.0, *[3.0, 0.5] * 15)
    found = conclude_holistic([auto, split], (2.0,))[0]
    assert "0.82 times" in found.evidence
    assert found.holds is not True
    even = rows("quota-60-20-20", GAIN, 2.0, *[2.0, 0.5] * 15)
    assert "1.000 times" in conclude_holistic([auto, even], (2.0,))[0].evidence


def test_an_interval_that_ends_near_one_says_on_which_side() -> None:
    """Behind by a hair: the text says why the claim does not hold."""
    auto, split = rows("auto", GAIN, 2.0, 0.980, 0.982, 0.986, 0.988), rows("quota-60-20-20", GAIN, 2.0, *[0.9915] * 4)
    found = conclude_holistic([auto, split], (2.0,))[0]
    assert found.holds is False
    assert "0.992 times, 0.987 to 0.998" in found.evidence


def test_at_the_margin_each_seed_counts_alike() -> None:
    """One world with a hundred times the clicks of the other three does not decide alone."""
    prices = (100.0, 1.0, 1.0, 1.0)
    gains = {Kind.NEW: (1.0, 1.0, 1.0, 1.0), Kind.HUB: (1.0, 2.0, 2.0, 2.0)}
    summaries = [
        rows("auto", over_time(by_kind(measure, kind), 2.0), 3, *values)
        for kind, times in gains.items()
        for measure, values in (
            (MARGIN_GAINED, [gain * price for gain, price in zip(times, prices, strict=True)]),
            (MARGIN_BID, prices),
        )
    ]
    found = next(one for one in conclude_holistic(summaries, (2.0,)) if "margin" in one.claim)
    assert "hub 1.75" in found.evidence


def test_margins_that_differ_are_told() -> None:
    def judged(new: float, hub: float) -> bool | None:
        summaries = [
            rows("auto", over_time(by_kind(measure, kind), 2.0), part, times, 3 * times)
            for kind, gain in ((Kind.NEW, new), (Kind.HUB, hub))
            for measure, times in ((MARGIN_GAINED, gain), (MARGIN_BID, 1.0))
            for part in (3, 8)
        ]
        return next(one.holds for one in conclude_holistic(summaries, (2.0,)) if "margin" in one.claim)

    assert judged(1.0, 1.1) is True
    assert judged(1.0, 2.0) is False


def test_luck_that_all_seeds_share_proves_nothing() -> None:
    """The same one part of a site is lucky with every seed: seeds agree, and that tells nothing of other parts."""
    of = {Kind.NEW: dict.fromkeys(range(8), 1.0), Kind.HUB: {part: 10.0 if part == 5 else 0.6 for part in range(8)}}
    summaries = [
        rows("auto", over_time(by_kind(measure, kind), 2.0), part, *[value] * 6)
        for kind, gains in of.items()
        for part, gain in gains.items()
        for measure, value in ((MARGIN_GAINED, gain), (MARGIN_BID, 1.0))
    ]
    found = next(one for one in conclude_holistic(summaries, (2.0,)) if "margin" in one.claim)
    assert found.holds is None
    assert "hub 1.78 ± 1.18" in found.evidence


def test_a_kind_that_one_seed_took_in_one_place_is_not_compared() -> None:
    """A single page at the margin that gained 40 times what it bid says nothing of its kind."""
    of = {
        Kind.NEW: ((40.0, 0.0), (1.0, 0.0)),
        Kind.REFRESH: ((1.0, 1.1), (1.0, 1.0)),
        Kind.HUB: ((1.0, 0.9), (1.0, 1.0)),
    }
    summaries = [
        rows("auto", over_time(by_kind(measure, kind), 2.0), 3, *values)
        for kind, pair in of.items()
        for measure, values in zip((MARGIN_GAINED, MARGIN_BID), pair, strict=True)
    ]
    found = next(one for one in conclude_holistic(summaries, (2.0,)) if "margin" in one.claim)
    assert "new" not in found.evidence
    assert found.holds is True


def test_sums_behind_a_finding_have_no_table(done: Run) -> None:
    assert any(row.measure.startswith(MARGIN_GAINED) for row in done.summaries)
    assert not any(MARGIN_GAINED in table.title for table in make_tables(FAMILY, done.summaries))


def test_plots_are_drawn(done: Run) -> None:
    pytest.importorskip("matplotlib")
    plots = FAMILY.draw(done.data, done.summaries)
    assert len(plots) == 3 * len(SMALL.budgets)
    assert all(plot.svg.startswith(b"<?xml") for plot in plots)


def test_generated_data_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOWERBIRD_DATA", str(tmp_path))
    family = find_family("holistic")
    place = find_data(family, "calm")
    assert place.name == "calm"
    assert family.load(place.name, place.folder).describe()["data"] == "calm"
    drawn = family.load("drawn", find_data(family, "drawn").folder)
    assert isinstance(drawn, HolisticData)
    assert drawn.world(1).host_count == draw_settings(1).hosts != drawn.world(2).host_count
    with pytest.raises(InputFileError, match=r"\(mdn\), say one that is made \(calm, mixed, breaking, drawn\)"):
        find_data(family, "stormy")


def write_history(folder: Path) -> Path:
    """An index with two sections of ten pages; pages change now and then, and from week 3 on each week brings one."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    words = [f"w{number}" for number in range(60)]
    sections = ["docs/a/index.md", "docs/b/index.md"]
    paths = ["docs/index.md", *sections]
    paths += [f"docs/{section}/p{number}/index.md" for section in "ab" for number in range(10)]

    def text() -> str:
        return " ".join(rng.choice(words, 40).tolist())

    base = [{"path": path, "text": text()} for path in paths]
    weeks = [
        {"week": week, "status": "M", "path": path, "text": text()}
        for week in range(1, 21)
        for path in paths
        if rng.random() < 0.2
    ]
    weeks += [
        {"week": week, "status": "A", "path": f"docs/a/new{week}/index.md", "text": text()} for week in range(3, 20)
    ]
    links = [("docs/index.md", section) for section in sections]
    links += [(f"docs/{path.split('/')[1]}/index.md", path) for path in paths[3:]]
    (folder / "base.jsonl").write_text("".join(json.dumps(each) + "\n" for each in base), encoding="utf-8")
    (folder / "weeks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in weeks), encoding="utf-8")
    (folder / "links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in links), encoding="utf-8")
    (folder / "queries.tsv").write_text("query\tfrequency\nw1\t5\n", encoding="utf-8")
    listed = "".join(f"{path}\t{path}\ttitle\tguide\t0\t{1 + place % 5}\n" for place, path in enumerate(paths))
    head = "path\tslug\ttitle\tpage_type\tviews_2022\tviews_2024\n"
    (folder / "pages.tsv").write_text(head + listed, encoding="utf-8")
    return folder


def test_a_site_becomes_a_world(tmp_path: Path) -> None:
    world = world_of_site(read_history("site", write_history(tmp_path / "site")), 0)
    assert world.count == 23 + 17
    assert (world.born_s > START_S).sum() == 17
    section = int(np.flatnonzero(world.is_hub)[0])  # docs/a
    crawl = HolisticCrawl(world, 0)
    assert crawl.count == 23
    crawl.now = START_S + 4 * WEEK_S
    crawl.fetch(int(crawl.row_of[section]))
    assert crawl.count == 25  # the new pages of weeks 3 and 4
    assert world.base_per_s[23:].min() > 0  # viewed as their siblings are
    warm = warm_up(world, 0)
    idle, done = (replay(warm, policy, 40.0, 0) for policy in ("(nothing)", "auto"))
    assert idle.quality.mean() < done.quality.mean() <= 1.0


def test_a_site_without_views_is_refused(tmp_path: Path) -> None:
    folder = write_history(tmp_path / "site")
    (folder / "pages.tsv").unlink()
    with pytest.raises(InputFileError, match=r"no pages.tsv\(.gz\) with views"):
        read_history("site", folder)
