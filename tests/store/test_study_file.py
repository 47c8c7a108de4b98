"""A study on disk: the same again, replaced as a whole, ignored where it is damaged or of another crawl."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.snapshots import random_snapshot

from bowerbird.model.study import FrontierStudy, QueryAnswers
from bowerbird.store.study_file import read_study, write_study

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
