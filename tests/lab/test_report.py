"""What a run leaves behind: files that agree with each other, and a report that a browser shows by itself."""

from __future__ import annotations

import base64
import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from tests.lab.toy import SHARES, ToyFamily, write_toy_data
from tests.serve.conftest import browser, screenshots

from bowerbird.lab.plots import draw_plots, measure_titles
from bowerbird.lab.report import Origin, as_data, check_writable, write_results
from bowerbird.lab.runner import Run, run_experiment
from bowerbird.lab.tables import make_tables
from bowerbird.model.errors import FolderError

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

__all__ = ["browser", "screenshots"]

ORIGIN = Origin("toydata", "bowerbird lab run toy --on toydata --seeds 5", 1.7e9)
COLUMNS = ["policy", "measure", "at", "mean", "se", "n", "seconds", "peak_mb"]
FILES = {"rows.json", "rows.csv", "samples.csv", "costs.csv", "report.html"} | {
    f"plot-{measure}.{form}" for measure in ("pct", "avg_pct") for form in ("svg", "png")
}


def run_toy(folder: Path, seeds: int = 5, policies: tuple[str, ...] = ()) -> Run:
    family = ToyFamily()
    data = family.load("toydata", write_toy_data(folder))
    return run_experiment(family, data, policies or family.policies, seeds=seeds)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_toy(tmp_path_factory.mktemp("report") / "toydata")


@pytest.fixture(scope="module")
def written(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "deep" / "er"
    assert write_results(run, ORIGIN, folder) == folder / "report.html"
    return folder


def test_the_object_for_programs(run: Run, written: Path) -> None:
    data = json.loads((written / "rows.json").read_bytes())
    assert list(data) == ["experiment", "on", "rows", "command", "version"]
    assert (data["experiment"], data["on"], data["command"]) == ("toy", "toydata", ORIGIN.command)
    assert len(data["rows"]) == 3 * (len(SHARES) + 1)
    assert all(list(row) == COLUMNS for row in data["rows"])
    assert data == json.loads(json.dumps(as_data(run, ORIGIN)))
    names = next(row for row in data["rows"] if (row["policy"], row["measure"]) == ("names", "avg_pct"))
    assert names["at"] is None
    assert names["n"] == 5
    assert names["se"] == pytest.approx(0)
    assert names["peak_mb"] > 1


def test_the_tables_agree(run: Run, written: Path) -> None:
    assert {path.name for path in written.iterdir()} == FILES
    rows = list(csv.DictReader((written / "rows.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["mean"]) for row in rows] == [row.mean for row in run.summaries]
    assert {row["at"] for row in rows} == {"", "0.1", "0.2", "0.5", "1.0"}
    samples = list(csv.DictReader((written / "samples.csv").read_text(encoding="utf-8").splitlines()))
    assert len(samples) == 5 * len(run.summaries)
    chosen = [float(one["value"]) for one in samples if one["policy"] == "random" and one["measure"] == "avg_pct"]
    mean = next(row.mean for row in run.summaries if row.policy == "random" and row.measure == "avg_pct")
    assert sum(chosen) / 5 == pytest.approx(mean)
    costs = list(csv.DictReader((written / "costs.csv").read_text(encoding="utf-8").splitlines()))
    assert {cost["policy"] for cost in costs} == {"random", "names", "backwards", "reading"}


def test_plots_are_pictures_and_the_same_each_time(run: Run, written: Path) -> None:
    for measure in ("pct", "avg_pct"):
        assert (written / f"plot-{measure}.png").read_bytes().startswith(b"\x89PNG")
        assert ElementTree.fromstring((written / f"plot-{measure}.svg").read_bytes()).tag.endswith("svg")
    again = draw_plots(run.family, run.summaries, "toydata")
    assert [plot.measure for plot in again] == ["avg_pct", "pct"]
    assert again[1].svg == (written / "plot-pct.svg").read_bytes()


def test_the_report_needs_nothing_but_itself(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    bare = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert "<script" not in bare
    assert not re.search(r"https?://|url\(|@import", bare)
    assert set(re.findall(r"(?:src|href)=\"([^\"]{5})", bare)) == {"data:"}
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    assert [base64.b64decode(one)[:5] for one in pictures] == [b"<?xml"] * 2


def test_the_report_says_what_it_must(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    wanted = (
        "Toy &lt;ranking&gt;: toydata",
        "[TOY00]",
        "seeds 0, 1, 2, 3, 4",
        ORIGIN.command,
        "clicks are counted &amp; compared",
        "scikit-learn",
        "numpy",
        "python",
        "Against names, split by split",
        "0 of 5",
        "does not hold",
        "cannot say",
        "A toy.",
        "links (distinct, without self-links)",
        "2023-11-14 22:13:20 UTC",
        "95% interval",
    )
    for one in wanted:
        assert one in text, one
    assert "One split only" not in text
    assert "stopped" not in text


def test_one_split_has_no_error_and_says_so(tmp_path: Path) -> None:
    run = run_toy(tmp_path / "toydata", seeds=1)
    text = write_results(run, ORIGIN, tmp_path / "out").read_text(encoding="utf-8")
    assert "One split only: there are no standard errors" in text
    assert '<td class="num">too few splits</td>' in text
    assert "±" not in text
    assert all(
        str(cell) == cell.mean
        for table in make_tables(run.family, run.summaries)
        for _, row in table.rows
        for cell in row
    )


def test_two_splits_have_no_interval_and_say_so(tmp_path: Path) -> None:
    """Student's t with one degree of freedom gives shares below 0 and above 100%."""
    run = run_toy(tmp_path / "toydata", seeds=2)
    text = write_results(run, ORIGIN, tmp_path / "out").read_text(encoding="utf-8")
    assert "no intervals: too few splits, 3 are needed" in text
    assert '<td class="num">too few splits</td>' in text
    assert not re.search(r'class="interval">[-\d.]+ to ', text)
    three = run_toy(tmp_path / "toydata", seeds=3)
    text = write_results(three, ORIGIN, tmp_path / "out").read_text(encoding="utf-8")
    assert "too few splits" not in text
    assert re.search(r'class="interval">[-\d.]+ to ', text)


def test_measures_have_names_for_people(run: Run, written: Path) -> None:
    assert measure_titles(run.family, run.summaries) == {"pct": "% of all clicks", "avg_pct": "% of all clicks, mean"}
    other = ToyFamily(units={"pct": "clicks; of those there are", "avg_pct": ""})
    assert measure_titles(other, run.summaries) == {"pct": "clicks", "avg_pct": "avg_pct"}
    text = (written / "report.html").read_text(encoding="utf-8")
    assert '<th scope="col" class="num">% of all clicks, mean<span class="interval">avg_pct</span></th>' in text
    assert "<b>% of all clicks</b> (<code>pct</code>)" in text
    assert [plot.title for plot in draw_plots(run.family, run.summaries, "toydata")] == [
        "% of all clicks, mean: toydata",
        "% of all clicks: toydata",
    ]


def test_tables_put_the_headline_first(run: Run) -> None:
    first, second = make_tables(run.family, run.summaries)
    assert (first.columns, second.columns) == (("avg_pct",), ("10%", "20%", "50%", "100%"))
    assert [policy for policy, _ in first.rows] == ["random", "names", "backwards"]
    assert str(second.rows[1][1][0]) == "48.9 ± 0.0"
    swapped = make_tables(ToyFamily(headline="pct"), run.summaries)
    assert swapped[0].title == "pct"


def test_other_headlines_and_few_policies(tmp_path: Path) -> None:
    """A headline with places is compared at the last of them; without anything to compare there is no comparison."""
    run = run_toy(tmp_path / "toydata", policies=("random", "backwards"))
    run.family.headline = "pct"
    text = write_results(run, ORIGIN, tmp_path / "out").read_text(encoding="utf-8")
    assert "Against random" in text
    assert "% of all clicks at 100%" in text
    alone = run_toy(tmp_path / "toydata", policies=("random",))
    assert "split by split</h2>" not in write_results(alone, ORIGIN, tmp_path / "out").read_text(encoding="utf-8")


def test_a_later_run_replaces_an_earlier_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plot-gone.svg").write_text("<svg/>")
    (tmp_path / "mine.txt").write_text("kept")
    write_results(run, ORIGIN, tmp_path)
    write_results(run, ORIGIN, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES | {"mine.txt"}


def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match=r"cannot be written .*--out ELSEWHERE"):
        write_results(run, ORIGIN, tmp_path / "file" / "out")
    for place in ("file", "file/out"):
        with pytest.raises(FolderError, match=r"cannot be written .*--out ELSEWHERE"):
            check_writable(tmp_path / place)
    check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]  # and nothing is left of the attempt


def test_without_matplotlib_there_is_a_report_all_the_same(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = write_results(run, ORIGIN, tmp_path).read_text(encoding="utf-8")
    assert "matplotlib is not installed" in text
    assert {path.name for path in tmp_path.iterdir()} == {name for name in FILES if "plot" not in name}


# In a browser


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    context = browser.new_context(**request.param)
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on("request", lambda asked: None if asked.url[:5] in {"file:", "data:"} else said.append(asked.url))
    yield made
    context.close()
    assert said == []


@pytest.mark.parametrize(
    "tab",
    [
        {"viewport": {"width": 1280, "height": 900}},
        {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
    ],
    indirect=True,
    ids=["desk", "phone-dark"],
)
def test_the_report_in_a_browser(tab: Tab, written: Path, screenshots: Path, request: pytest.FixtureRequest) -> None:
    tab.goto((written / "report.html").as_uri())
    assert tab.inner_text("h1") == "Toy <ranking>: toydata"
    assert tab.locator("table.measure").count() == 2
    assert tab.locator("#findings tbody tr").count() == 3
    assert tab.locator("table.measure tbody tr").first.inner_text().split()[:3] == ["random", "45.6", "±"]
    assert tab.locator("figure img").count() == 2
    for image in tab.locator("figure img").all():
        assert image.evaluate("one => one.complete && one.naturalWidth > 300 && one.clientWidth > 250")
    width = tab.viewport_size["width"] if tab.viewport_size else 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    narrow = width < 640
    for hint in tab.locator(".hint").all():
        assert hint.is_visible() == narrow
    wide = tab.locator(".scroll").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length")
    assert (wide > 0) == narrow
    for image in tab.locator("figure img").all():  # large enough to be read, and within what scrolls
        assert image.evaluate("one => one.clientWidth") > 500
    tab.locator("details summary").click()
    assert tab.locator("#splits td").count() == 15
    tab.screenshot(path=screenshots / f"lab-report-{request.node.callspec.id}.png", full_page=True)
