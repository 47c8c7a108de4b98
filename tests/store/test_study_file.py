"""A study on disk: the same again, replaced as a whole, ignored where it is damaged or of another crawl."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.snapshots import random_snapshot

from bowerbird.model.errors import FolderError
from bowerbird.model.study import FrontierStudy, QueryAnswers
from bowerbird.store.study_file import FORMER, last_study, read_study, remove_studies, write_study

SEED = 77
HASHES = np.arange(1, 101, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def make_study(seed: int = 1) -> FrontierStudy:
    study = random_snapshot(seed, 100).study
    assert study is not None
    return replace(study, info={"seconds": 1.5, "note": "x"})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "study" / "frontier.npz"
    study = make_study()
    write_study(path, study, SEED, HASHES)
    read = read_study(path, SEED, HASHES, reasons=True)
    assert read.note == ""
    assert read.study is not None
    for field in fields(study):
        if field.name == "reasons":
            continue
        mine, other = getattr(study, field.name), getattr(read.study, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)
            assert mine.dtype == other.dtype
        else:
            assert mine == other
    assert study.reasons is not None
    assert read.study.reasons is not None
    for field in fields(study.reasons):
        np.testing.assert_array_equal(getattr(study.reasons, field.name), getattr(read.study.reasons, field.name))
    assert [entry.name for entry in path.parent.iterdir()] == ["frontier.npz"]


def test_reasons_are_left_where_nobody_asks_for_them(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    write_study(path, make_study(), SEED, HASHES)
    read = read_study(path, SEED, HASHES)
    assert read.study is not None
    assert read.study.reasons is None
    write_study(path, replace(make_study(), reasons=None), SEED, HASHES)
    read = read_study(path, SEED, HASHES, reasons=True)
    assert read.study is not None
    assert read.study.reasons is None


def test_a_missing_study_is_nothing_to_speak_of(tmp_path: Path) -> None:
    read = read_study(tmp_path / "frontier.npz", SEED, HASHES)
    assert (read.study, read.note) == (None, "")


def test_rows_that_came_later_do_no_harm_but_another_crawl_does(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    study = make_study()
    write_study(path, study, SEED, HASHES)
    more = np.append(HASHES, np.uint64(5))
    assert read_study(path, SEED, more).study is not None
    others = HASHES.copy()
    others[study.count - 1] += np.uint64(1)
    for seed, hashes in ((SEED + 1, HASHES), (SEED, others), (SEED, HASHES[: study.count - 1])):
        read = read_study(path, seed, hashes)
        assert read.study is None
        assert "another crawl" in read.note


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_damage_is_noticed_or_does_no_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("study") / "frontier.npz"
    study = make_study()
    write_study(path, study, SEED, HASHES)
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        damaged = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    path.write_bytes(damaged)
    read = read_study(path, SEED, HASHES, reasons=True)
    if read.study is None:
        assert str(path) in read.note
    else:
        np.testing.assert_array_equal(read.study.worth, study.worth)
        assert read.study.method == study.method


@pytest.mark.parametrize("content", [b"", b"no study", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_a_foreign_file_is_ignored_with_a_note(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "frontier.npz"
    path.write_bytes(content)
    read = read_study(path, SEED, HASHES, reasons=True)
    assert read.study is None
    assert "ignored" in read.note


def test_what_a_killed_writer_left_is_removed_in_time(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    old, young = tmp_path / "frontier.npz.1.partial", tmp_path / "frontier.npz.2.partial"
    for left in (old, young):
        left.write_bytes(b"x")
    os.utime(old, (1, 1))
    write_study(path, make_study(), SEED, HASHES)
    assert not old.exists()
    assert young.exists()  # perhaps somebody is at it


def test_what_the_answers_were_like_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    marks, mean = np.array([1, 2**63], dtype=np.uint64), np.array([0.5, 2.0], dtype=np.float32)
    for model in (None, (0.5, -1.25)):
        answers = QueryAnswers(321, marks, mean, np.array([10, 0], dtype=np.int32), model)
        write_study(path, replace(make_study(), answers=answers), SEED, HASHES)
        read = read_study(path, SEED, HASHES).study
        assert read is not None
        assert read.answers is not None
        assert (read.answers.pages, read.answers.model) == (321, model)
        assert read.answers.marks.tolist() == marks.tolist()
        assert read.answers.mean_top.tolist() == mean.tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["score", "worth", "host_worth", "default_worth"])
def test_values_that_cannot_be_are_damage(tmp_path: Path, column: str, bad: float) -> None:
    path = tmp_path / "frontier.npz"
    study = make_study()
    if column == "default_worth":
        study = replace(study, default_worth=bad)
    else:
        values = getattr(study, column).copy()
        values[3 % len(values)] = bad
        study = replace(study, **{column: values})
    write_study(path, study, SEED, HASHES)
    read = read_study(path, SEED, HASHES)
    if np.isnan(bad) and column in ("worth", "host_worth"):  # stands for none
        assert read.study is not None
        return
    assert read.study is None
    assert "damaged and ignored" in read.note
    write_study(path, make_study(), SEED, HASHES)
    assert read_study(path, SEED, HASHES).study is not None


def test_reasons_that_name_what_is_not_there_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    study = make_study()
    assert study.reasons is not None
    for name in ("queries", "sources"):
        wrong = getattr(study.reasons, name).copy()
        wrong[0, 0] = 10_000
        write_study(path, replace(study, reasons=replace(study.reasons, **{name: wrong})), SEED, HASHES)
        assert read_study(path, SEED, HASHES, reasons=True).study is None
        assert read_study(path, SEED, HASHES).study is not None


def test_what_stands_in_the_way_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "study" / "frontier.npz"
    path.parent.write_text("mine")
    with pytest.raises(FolderError, match=r"study: is a file.*Move it away"):
        write_study(path, make_study(), SEED, HASHES)
    assert path.parent.read_text() == "mine"
    assert read_study(path, SEED, HASHES).study is None
    assert not remove_studies(path.parent)
    path.parent.unlink()
    path.mkdir(parents=True)
    with pytest.raises(FolderError, match=r"frontier\.npz: is a folder.*Move it away"):
        write_study(path, make_study(), SEED, HASHES)
    assert [entry.name for entry in path.parent.iterdir()] == ["frontier.npz"]
    assert "ignored" in read_study(path, SEED, HASHES).note
    with pytest.raises(FolderError, match="is a folder"):
        remove_studies(path.parent)


def test_each_method_has_its_own_and_the_one_of_older_folders_goes(tmp_path: Path) -> None:
    place = tmp_path / "study"
    place.mkdir()
    (place / FORMER).write_bytes(b"old")
    study = make_study()
    for at, method in ((5.0, "rw"), (9.0, "learned"), (7.0, "rw-eg")):
        write_study(place / f"{method}.npz", replace(study, method=method, at=at), SEED, HASHES)
    assert sorted(entry.name for entry in place.iterdir()) == ["learned.npz", "rw-eg.npz", "rw.npz"]
    for method in ("rw", "learned", "rw-eg"):
        read = read_study(place / f"{method}.npz", SEED, HASHES).study
        assert read is not None
        assert read.method == method
    last = last_study(place, SEED, HASHES)
    assert last is not None
    assert (last.at, last.method, last.count, last.calibration) == (9.0, "learned", study.count, study.calibration)
    (place / "learned.npz").write_bytes((place / "learned.npz").read_bytes()[:100])
    (place / "rw-eg.npz").rename(place / FORMER)  # not by the method that it is named after
    left = last_study(place, SEED, HASHES)
    assert left is not None
    assert left.method == "rw"
    assert last_study(place, SEED + 1, HASHES) is None
    leftover = place / "pagerank.npz.1.partial"
    leftover.touch()
    os.utime(leftover, (0, 0))
    assert remove_studies(place) == 3
    assert list(place.iterdir()) == []
    assert remove_studies(place) == 0
    assert last_study(place, SEED, HASHES) is None
    assert last_study(tmp_path / "none", SEED, HASHES) is None


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(FolderError, match=r"cannot be written \(Permission denied\)\. Change the permissions"):
        write_study(tmp_path / "frontier.npz", make_study(), SEED, HASHES)
    assert not list(tmp_path.iterdir())


FULL = f"""
import resource, sys
from pathlib import Path
from tests.store.test_study_file import HASHES, SEED, make_study
from bowerbird.model.errors import DiskFullError
from bowerbird.store.study_file import write_study
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))
try:
    write_study(Path(sys.argv[1]), make_study(2), SEED, HASHES)
except DiskFullError as error:
    sys.exit(f"told: {{error}}")
"""


def test_a_full_disk_is_told_and_the_old_study_stays(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    write_study(path, make_study(), SEED, HASHES)
    before = path.read_bytes()
    ran = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.startswith(f"told: {path}: the disk is full. Free some space")
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["frontier.npz"]


def test_a_study_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "frontier.npz"
    assert not remove_studies(path.parent)
    write_study(path, make_study(), SEED, HASHES)
    assert remove_studies(path.parent) == 1
    assert not list(tmp_path.iterdir())
