"""The command that studies the frontier."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, Sample
from tests.crawl.crawling import make_crawl, set_policy


@pytest.fixture
def folder(sample: Sample, tmp_path: Path) -> Path:
    """A crawl of its own: a study is written into it."""
    root = tmp_path / "crawl"
    shutil.copytree(sample.root, root)
    return root


def test_it_prints_what_it_found(folder: Path, command: Command) -> None:
    ran = command("study", folder, "--policy", "rw-eg")
    assert ran.code == 0, ran.err
    first, calibration, _, *best = ran.out.splitlines()
    assert first.startswith("rw-eg: ")
    assert "new pages of" in first
    assert calibration.startswith("  prior: too little feedback")
    assert len(best) == 10
    worths = [float(line.split()[0]) for line in best]
    assert worths == sorted(worths, reverse=True)
    assert [entry.name for entry in (folder / "study").iterdir()] == ["rw-eg.npz"]


def test_one_method_does_not_take_anothers_place(folder: Path, command: Command) -> None:
    assert "boosted" in command("study", "--help").out
    assert "study/METHOD.npz" in command("study", "--help").out
    assert "last study" not in command("status", folder).out
    assert command("status", folder, "--json").json()["study"] is None
    for method in ("rw-eg", "rw"):
        assert command("study", folder, "--policy", method).code == 0
    new = next(row for row in command("next", folder, "--policy", "rw-eg", "--json").json() if row["kind"] == "new")
    assert (new["terms"]["by"], new["terms"]["basis"]) == ("rw-eg", "study")
    for method in ("rw-eg", "rw"):
        story = command("explain", folder, new["url"], "--policy", method, "--json").json()
        assert f"by {method}, of " in str(story["bid"]["tree"])
    said = command("status", folder).out
    assert " by rw, prior: too little feedback to calibrate by\n" in said
    assert command("status", folder, "--json").json()["study"]["method"] == "rw"
    ran = command("queries", "forget", folder, "--query", "nothing")
    assert "the 2 studies of the crawl were removed" in ran.out
    assert list((folder / "study").iterdir()) == []


def test_without_a_policy_the_last_crawl_is_gone_by(folder: Path, command: Command) -> None:
    with sqlite3.connect(folder / "state.db") as database:
        database.execute("INSERT INTO runs (started_at, policy, ended_at) VALUES (1, 'rw-eg+adaptive', 2)")
    database.close()
    apart = "the last crawl ran with rw-eg+adaptive, the settings say "
    ran = command("study", folder)
    assert ran.out.startswith("rw-eg: ")
    assert ran.err == f"{apart}breadth-first+adaptive: studied by rw-eg\n"
    url = command("next", folder, "-n", 1, "--json").json()[0]["url"]
    for arguments in (("next", folder), ("explain", folder, url)):
        ran = command(*arguments)
        assert ran.err == f"{apart}breadth-first+adaptive: --policy rw-eg shows its bids\n"
        for quiet in (("--json",), ("--policy", "rw-eg"), ("--policy", "breadth-first")):
            assert command(*arguments, *quiet).err == ""
    set_policy(folder, "rw+fixed")
    ran = command("study", folder)
    assert ran.out.startswith("rw: ")
    assert ran.err == f"{apart}rw+fixed: --policy rw-eg studies by it\n"
    assert command("next", folder).err == f"{apart}rw+fixed: --policy rw-eg+adaptive shows its bids\n"
    assert command("study", folder, "--policy", "adaptive").out.startswith("rw: ")  # the other part is the settings'


def test_programs_get_json(folder: Path, command: Command) -> None:
    data = command("study", folder, "--policy", "pagerank+fixed", "--json").json()
    assert data["method"] == "pagerank"
    assert 0 < data["frontier"] < data["known"]
    assert data["calibration"]["kind"] == "prior"
    assert data["expected_clicks"]["most"] >= data["expected_clicks"]["mean"] > 0
    assert data["info"]["links"] > 0
    assert all(isinstance(data["info"][name], int) for name in ("links", "pages", "frontier", "iterations"))
    assert data["info"]["frontier"] == data["frontier"]
    assert not any(" " in name for name in data["info"])
    shown = command("study", folder, "--policy", "pagerank").out.splitlines()[-10:]
    assert [line.split()[1] for line in shown] == [page["url"] for page in data["best"]]
    assert data["best"][0]["expected_clicks"] == pytest.approx(data["expected_clicks"]["most"])


def test_next_and_explain_go_by_it(folder: Path, command: Command) -> None:
    assert command("study", folder, "--policy", "rw").code == 0
    rows = command("next", folder, "--policy", "rw", "-n", 5, "--json").json()
    assert {row["terms"]["by"] for row in rows if row["kind"] == "new"} == {"rw"}
    assert {row["terms"]["basis"] for row in rows if row["kind"] == "new"} == {"study"}
    set_policy(folder, "rw")
    new = next(row["url"] for row in rows if row["kind"] == "new")
    said = command("explain", folder, new).out
    assert "expected clicks = " in said
    assert "link from http://" in said
    assert "too little feedback" in said


def test_a_policy_that_needs_no_study_is_refused_with_those_that_do(folder: Path, command: Command) -> None:
    for arguments in ((), ("--policy", "random")):
        ran = command("study", folder, *arguments)
        assert ran.code == 2
        assert "rw-eg" in ran.err
    assert command("study", folder, "--policy", "best").code == 2
    assert command("study", folder / "none").code == 2


def test_where_nothing_was_fetched_there_is_nothing_to_study(command: Command, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "empty", ["http://a.example/"])
    for method in ("rw", "user-centric", "echo", "seeds", "watch"):
        ran = command("study", root, "--policy", method)
        assert ran.code == 2
        assert ran.err == f"bowerbird: {root}: nothing was fetched, so there is nothing to study yet. Crawl first.\n"
    assert not list(root.glob("study/*.npz"))


def test_a_watch_of_no_decision_names_nobody(folder: Path, command: Command) -> None:
    ran = command("study", folder, "--policy", "watch")
    assert ran.code == 0, ran.err
    assert "kind of fetch:" in ran.out
    assert "by whom" not in ran.out


@pytest.mark.parametrize(("name", "meant"), [("wacth", "watch"), ("seed", "seeds"), ("auot", "auto")])
def test_who_mistyped_is_asked(folder: Path, command: Command, name: str, meant: str) -> None:
    ran = command("study", folder, "--policy", name)
    assert ran.code == 2
    assert f"{name!r} is not known; did you mean {meant!r}?" in ran.err


def test_what_cannot_be_written_is_told_in_one_line(folder: Path, command: Command) -> None:
    place = folder / "study"
    place.write_text("mine")
    ran = command("study", folder, "--policy", "rw")
    assert ran.code == 2
    assert ran.err == f"bowerbird: {place}: is a file, and studies are kept in a folder of that name. Move it away.\n"
    place.unlink()
    (place / "rw.npz").mkdir(parents=True)
    ran = command("study", folder, "--policy", "rw")
    assert ran.code == 2
    assert ran.err.startswith(f"bowerbird: {place}/rw.npz: is a folder")
    assert ran.err.count("\n") == 1


def test_a_score_that_cannot_be_does_not_block_the_next_study(folder: Path, command: Command) -> None:
    assert command("study", folder, "--policy", "rw").code == 0
    path = folder / "study" / "rw.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["score"][0] = np.nan
    np.savez(path, **arrays)
    ran = command("study", folder, "--policy", "rw")
    assert ran.code == 0, ran.err
    with np.load(path) as stored:
        assert np.isfinite(stored["score"]).all()
