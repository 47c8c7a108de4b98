"""The lab's commands: what they print, where they write, how they end."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crawl.conftest import Command
from tests.lab.test_frontier_family import write_data
from tests.lab.toy import ToyFamily, write_toy_data

import bowerbird
from bowerbird.cli.lab_display import Bar, NoDisplay, SplitLines, make_lab_display
from bowerbird.cli.main import COMMANDS
from bowerbird.lab.experiment import Sample, SplitResult
from bowerbird.lab.frontier_family import FAMILY
from bowerbird.lab.registry import add_family, remove_family
from bowerbird.lab.runner import Progress


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyFamily]:
    """A family that is known, with data, in a working directory of its own."""
    monkeypatch.setitem(COMMANDS, "lab", "lab")
    monkeypatch.setenv("BOWERBIRD_DATA", str(tmp_path / "shared"))
    monkeypatch.chdir(tmp_path)
    write_toy_data(tmp_path / "shared" / "toydata")
    family = ToyFamily()
    add_family(family)
    yield family
    remove_family(family.name)


def test_list(toy: ToyFamily, command: Command) -> None:
    ran = command("lab", "list")
    assert ran.code == 0
    line = next(line for line in ran.out.splitlines() if line.startswith("toy "))
    for part in ("Toy <ranking> (TOY00)", "toydata, elsewhere (absent)", "random, names, backwards", "3"):
        assert part in line
    assert "BOWERBIRD_DATA" in ran.out
    families = {one["family"]: one for one in command("lab", "list", "--json").json()}
    assert families["toy"]["data"] == {"toydata": True, "elsewhere": False}
    assert families["toy"]["seeds"] == 3


def test_a_run_for_people(toy: ToyFamily, command: Command, tmp_path: Path) -> None:
    ran = command("lab", "run", "toy", "--on", "toydata")
    assert ran.code == 0, ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["names", "74.2", "±", "0.0"] in lines
    assert ["policy", "10%", "20%", "50%", "100%"] in lines
    assert "Mean ± standard error over 3 splits." in ran.out
    assert "Names beat chance   holds          3 of 3 splits [really]" in ran.out
    assert "does not hold" in ran.out
    assert "cannot say" in ran.out
    assert ran.out.rstrip().endswith("Report: out/lab/toy-toydata/report.html")
    assert (tmp_path / "out" / "lab" / "toy-toydata" / "rows.csv").is_file()
    assert ran.err.count("\n") == 4
    assert "3 of 3 splits done" in ran.err


def test_a_run_for_programs(toy: ToyFamily, command: Command, tmp_path: Path) -> None:
    ran = command(
        "lab", "run", "toy", "--on", "shared/toydata", "--seeds", 2, "--policies", "names, random", "--json",
        "--out", tmp_path / "own", "--jobs", 2,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    assert data == json.loads((tmp_path / "own" / "rows.json").read_bytes())
    assert {row["policy"] for row in data["rows"]} == {"names", "random"}
    assert {row["n"] for row in data["rows"]} == {2}
    assert data["on"] == "shared/toydata"
    assert data["version"] == bowerbird.__version__
    assert data["command"] == (
        f"BOWERBIRD_DATA={tmp_path / 'shared'} "
        "bowerbird lab run toy --on shared/toydata --seeds 2 --policies names,random --jobs 2"
    )
    assert data["command"] in (tmp_path / "own" / "report.html").read_text(encoding="utf-8")
    assert "2 of 2 splits done" in ran.err
    quiet = command("lab", "run", "toy", "--on", "toydata", "--seeds", 1, "--json", "--quiet")
    assert quiet.err == ""
    assert json.loads(quiet.out)["rows"][0]["se"] == 0


def test_one_split_is_said_to_have_no_error(toy: ToyFamily, command: Command) -> None:
    ran = command("lab", "run", "toy", "--on", "toydata", "--seeds", 1, "-q")
    assert "One split only: there is no standard error." in ran.out
    assert "±" not in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fly", "--on", "toydata"), "no family 'fly'. Known: "),
        (("toy", "--on", "elsewhere"), "--on elsewhere: no such data. Looked for "),
        (("toy", "--on", "toydata", "--policies", "names,best"), "no policy 'best'. Known: random, names, backwards."),
        (("toi", "--on", "toydata"), "no family 'toi'. Known: echo, frontier, "),
        (("toi", "--on", "toydata"), ". Did you mean toy?"),
        (("fronteir", "--on", "toydata"), ". Did you mean frontier?"),
        (
            ("toy", "--on", "toydata", "--policies", "random,nmaes"),
            "no policy 'nmaes'. Known: random, names, backwards. ",
        ),
        (("toy", "--on", "toydata", "--policies", "random,nmaes"), "Did you mean names?"),
        (("frontier", "--on", "toydata", "--policies", "rw-ge"), "Did you mean rw-eg?"),
        (("toy", "--on", "toydata", "--seeds", "0"), "--seeds"),
        (("toy",), "--on"),
        (("toy", "--on", "shared"), "no links.tsv"),
    ],
)
def test_mistakes(toy: ToyFamily, command: Command, words: tuple[str, ...], said: str) -> None:
    ran = command("lab", "run", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_two_splits_are_said_to_be_too_few(toy: ToyFamily, command: Command) -> None:
    ran = command("lab", "run", "toy", "--on", "toydata", "--seeds", 2, "-q")
    assert "Mean ± standard error over 2 splits. Too few splits for intervals: 3 are needed." in ran.out
    assert "Too few" not in command("lab", "run", "toy", "--on", "toydata", "--seeds", 3, "-q").out


def test_a_run_without_a_figure_is_an_error_and_leaves_earlier_results(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_toy_data(tmp_path / "own", pages=200)
    base = ("lab", "run", "frontier", "--on", "own", "--seeds", 2, "-q", "--policies")
    assert command(*base, "indegree").code == 0
    folder = tmp_path / "out" / "lab" / "frontier-own"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ran = command(*base, "query-driven,hybrid")
    assert ran.code == 1
    assert ran.out == ""
    assert "lab frontier: nothing was measured of query-driven, hybrid on own" in ran.err
    assert "query-driven: not run, the data has no text" in ran.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert command(*base, "query-driven,indegree").code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_says_what_is_done(toy: ToyFamily, command: Command, tmp_path: Path, number: signal.Signals) -> None:
    toy.wait_s = 0.1
    timer = threading.Timer(0.6, os.kill, (os.getpid(), number))
    timer.start()
    ran = command("lab", "run", "toy", "--on", "toydata", "--seeds", 100, "--json")
    timer.join()
    assert ran.code == 130
    assert ran.out == ""
    assert "Stopped: " in ran.err
    assert " of 100 splits done in " in ran.err
    folder = tmp_path / "out" / "lab" / "toy-toydata"
    assert [path.name for path in folder.iterdir()] == ["stopped"]
    assert "This run was stopped" in (folder / "stopped" / "report.html").read_text(encoding="utf-8")


def test_the_frontier_experiment_runs_on_a_folder_of_ones_own(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOWERBIRD_DATA", raising=False)
    write_data(tmp_path / "own")
    ran = command("lab", "run", "frontier", "--on", "own", "--seeds", 3)
    assert ran.code == 0, ran.err
    table = [line.split() for line in ran.out.splitlines()]
    policies = {row[0] for row in table if row[2:3] == ["±"]}
    assert policies >= set(FAMILY.policies)
    assert "A regression tree over the scores beats every single score" in ran.out
    assert ran.out.rstrip().endswith("Report: out/lab/frontier-own/report.html")
    folder = tmp_path / "out" / "lab" / "frontier-own"
    report = (folder / "report.html").read_text(encoding="utf-8")
    for part in ("RW15", "learned-crawled", "Frontier pages that clicked pages link to", "w = ", "default_rng(1000+s)"):
        assert part in report
    assert str(tmp_path) not in report
    assert "<code>bowerbird lab run frontier --on own --seeds 3</code>" in report
    rows = json.loads((folder / "rows.json").read_bytes())["rows"]
    value = {row["policy"]: row["mean"] for row in rows if row["measure"] == "avg_impact_pct"}
    assert value["learned"] > value["random"]


def test_displays(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(make_lab_display("m", quiet=True, terminal=True), NoDisplay)
    assert isinstance(make_lab_display("m", quiet=False, terminal=True), Bar)
    lines = make_lab_display("m", quiet=False, terminal=False)
    assert isinstance(lines, SplitLines)
    latest = SplitResult(4, [Sample("a [x]", "m", 0.1, 1.23456), Sample("a [x]", "m", 0.2, 2.34567)])
    for display in (lines, Bar("m")):
        with display:
            display.show(Progress(0, 9, 0.0))
            display.show(Progress(3, 9, 60.0, latest))
        said = capsys.readouterr()
        assert said.out == ""
        assert "3 of 9 splits done in 60 s; about 2.0 min left; split 4: a [x] 2.346" in " ".join(said.err.split())


@pytest.mark.parametrize("out", ["file", "file/within"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    toy: ToyFamily, command: Command, tmp_path: Path, out: str
) -> None:
    (tmp_path / "file").touch()
    toy.fail_at = 0  # no split may be begun
    ran = command("lab", "run", "toy", "--on", "toydata", "--out", tmp_path / out)
    assert ran.code == 2
    assert f"{tmp_path / out}: cannot be written (" in ran.err
    assert ran.err.count("\n") == 1


def test_clicks_beyond_reason_and_open_quotes_are_bad_lines(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "own")
    lines = (tmp_path / "own" / "clicks.tsv").read_text(encoding="utf-8").replace("\t", ",")
    (tmp_path / "own" / "clicks.tsv").unlink()
    (tmp_path / "own" / "clicks.csv").write_text(lines + 'car/car_0,1e308\n"open,5\n', encoding="utf-8")
    ran = command("lab", "run", "frontier", "--on", "own", "--seeds", 1, "--policies", "in-degree,rw", "-q")
    assert ran.code == 0, ran.err
    report = (tmp_path / "out" / "lab" / "frontier-own" / "report.html").read_text(encoding="utf-8")
    lines = (tmp_path / "own" / "clicks.csv").read_text(encoding="utf-8").count("\n")
    said = f"clicks.csv: 2 of {lines} lines were bad and left out (line {lines - 1}: clicks is &#39;1e308&#39;"
    assert said in report
    told = next(line for line in ran.err.splitlines() if line.startswith("Data: "))
    assert told.startswith(f"Data: clicks.csv: 2 of {lines} lines were bad and left out (line {lines - 1}: clicks is")
    assert f"line {lines}: a quote in" in told
    (tmp_path / "own" / "clicks.csv").write_text("car/car_0,1e308\n" * 2, encoding="utf-8")
    ran = command("lab", "run", "frontier", "--on", "own", "--seeds", 1, "-q")
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "clicks.csv, line 1: clicks is '1e308', no number from 0 to 1e+15" in ran.err
