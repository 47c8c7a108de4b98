"""The demo makes room for itself, and for that deletes nothing but what it made."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest
from tests.cli.conftest import Sample
from tests.crawl.conftest import Command
from tests.crawl.crawling import make_crawl

from bowerbird.cli import demo
from bowerbird.cli.demo import DEMO_MARK, _make_room, _sum_up, demo_command
from bowerbird.crawl.measure import NotMeasurableError
from bowerbird.lab import compiling
from bowerbird.lab.crowd import Crowd
from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder, WriterLock


def test_a_crawl_that_is_not_the_demo_s_stays(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    ran = command("demo", "--dir", root, "--for", "1s")
    assert ran.code == 2
    assert str(root) in ran.err
    assert "not made by the demo" in ran.err
    assert (root / "state.db").exists()


def test_both_folders_are_looked_at_before_either_is_replaced(tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "demo"
    _make_room(folder)
    (folder / "kept").touch()
    make_crawl(tmp_path / "demo-plain", ["http://a.example/"])
    ran = command("demo", "--dir", folder, "--for", "1s")
    assert ran.code == 2
    assert f"{folder}-plain: was not made by the demo" in ran.err
    assert (folder / "kept").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dir", "/"), "/: has no place beside it"),
        (("--seed", "-1"), "--seed"),
        (("--hosts", "0"), "hosts"),
        (("--pages", "0"), "pages"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_replaced(
    tmp_path: Path, command: Command, options: tuple[str, str], said: str
) -> None:
    folder = tmp_path / "demo"
    _make_room(folder)
    (folder / "kept").touch()
    ran = command("demo", "--dir", folder, "--for", "1s", *options)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert (folder / "kept").exists()


def test_the_folder_may_be_named_by_a_dot(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    monkeypatch.chdir(root)
    ran = command("demo", "--dir", ".", "--for", "1s")
    assert f"{root}: was not made by the demo" in ran.err
    free = tmp_path / "free"
    free.mkdir()
    monkeypatch.chdir(free)
    assert demo._two_folders(Path()) == (free, tmp_path / "free-plain")


def test_a_file_is_refused_in_a_sentence(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    ran = command("demo", "--dir", path, "--for", "1s")
    assert ran.code == 2
    assert str(path) in ran.err
    assert "Traceback" not in ran.err
    assert path.read_text() == "kept"


def test_what_an_earlier_demo_made_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    _make_room(folder)
    make_crawl(folder, ["http://a.example/"])
    _make_room(folder)
    assert [path.name for path in folder.iterdir()] == [DEMO_MARK]


def test_a_demo_that_runs_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    _make_room(folder)
    make_crawl(folder, ["http://a.example/"])
    lock = WriterLock(CrawlFolder(folder))
    try:
        with pytest.raises(FolderError, match="is writing"):
            _make_room(folder)
    finally:
        lock.release()
    assert (folder / "state.db").exists()


@pytest.mark.parametrize("searched", [True, False])
def test_quality_has_a_heading_also_when_stopped_early(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], searched: bool
) -> None:
    def truth(*arguments: object) -> float:
        if not searched:
            raise NotMeasurableError("no queries")
        return 0.023

    monkeypatch.setattr(demo, "true_quality", truth)
    crowd = SimpleNamespace(counts={"searches": 1, "without results": 0, "clicks": 2})
    demo._sum_up_quality(sample.root, sample.world, 0.0, 0.0, cast("Crowd", crowd))
    lines = capfd.readouterr().out.strip().splitlines()
    assert lines[0].startswith("1 search, 0 of them without results; 2 clicks ")
    assert len(lines) == (3 if searched else 2)
    if searched:
        assert lines[1].startswith("Quality for these searchers")
        assert "ended before" in lines[1]
        assert lines[2].startswith("  at the end    0.023")
    else:
        assert lines[1] == "Quality could not be measured: no queries"


def test_the_sum_shows_what_the_commands_show(
    sample: Sample, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = command("next", sample.root, "-n", 3).out
    with click.Context(demo_command):
        _sum_up(sample.root, sample.world)
    summed = capfd.readouterr().out.partition(f"$ bowerbird next {sample.root} -n 3\n")[2].splitlines()[:3]

    def form(line: str) -> str:
        """Without what a moment changes: the bids of refreshes, and what is due next."""
        return re.sub(r"\S+", lambda word: re.sub(r"[\d.]+", "1", word[0]), re.sub(r"http://\S+", "URL", line))

    assert len(summed) == 3
    assert list(map(form, summed)) == list(map(form, shown.splitlines()))


def test_clicks_of_both_crowds_are_tabulated_by_time() -> None:
    one = [(100.0 + second, 1) for second in range(30)]
    other = [(100.0 + second, second % 2) for second in range(30)]
    lines = demo.tabulate_clicks([one, other], 100.0)
    assert [line.split()[1] for line in lines] == ["0", "15"]
    assert [float(line.split()[3]) for line in lines] == [1.0, 1.0]
    assert [float(line.split()[5]) for line in lines] == pytest.approx([7 / 15, 8 / 15], abs=0.005)
    assert demo.tabulate_clicks([[], []], 100.0) == ["  from    0 s  0.00                                 0.00"]


def test_the_demo_says_how_many_probes_it_makes() -> None:
    assert demo.DEMO_SETTINGS["quality"]["probe_share"] == 0.1
    assert demo.tell_probes().startswith("One fetch in 10 is a probe here")


def test_both_crawls_are_compared_by_what_either_knows(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = make_crawl(tmp_path / "other", ["http://a.example/"])
    asked: list[tuple[Path, int, Path]] = []

    def truth(place: CrawlFolder, *arguments: object, also: list[str], asked_in: CrawlFolder) -> float:
        asked.append((place.root, len(also), asked_in.root))
        return 0.8 if place.root == sample.root else 0.4

    monkeypatch.setattr(demo, "true_quality", truth)
    crowds = [SimpleNamespace(clicked=[(1.0, 3)]), SimpleNamespace(clicked=[(1.0, 2)])]
    demo.compare(sample.root, other, sample.world, 0.0, 0.0, cast("list[Crowd]", crowds))
    said = capfd.readouterr().out
    assert "auto has 1.50 times the clicks" in said
    assert "Not quite the same budget: auto fetched" in said  # the other crawl fetched nothing
    assert "0.800 and 0.400 (2.00 times)" in said
    assert [root for root, _, _ in asked] == [sample.root, other]
    assert {root for _, _, root in asked} == {sample.root}
    assert asked[0][1] == 1  # the seed that the other knows
    assert asked[1][1] > 1


def test_it_rehearses_once_and_again_after_a_kernel_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernels.py"
    kernel.write_text("@njit\ndef one(): ...\n")
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    monkeypatch.setattr(demo, "_compiled_mark", lambda: tmp_path / "mark")
    assert not demo._was_compiled()
    demo._note_compiled()
    assert demo._was_compiled()
    kernel.write_text("@njit\ndef another(): ...\n")
    assert not demo._was_compiled()
    monkeypatch.setattr(demo, "_compiled_mark", lambda: tmp_path / "nowhere" / "mark")
    demo._note_compiled()  # nothing can be kept there
    assert not demo._was_compiled()
