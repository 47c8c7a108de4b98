"""A study of known pages on disk: the same again, ignored where it is damaged or of another crawl."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.snapshots import random_refresh_study, random_snapshot

from bowerbird.model.errors import FolderError
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.store.refresh_study_file import read_refresh_study, write_refresh_study
from bowerbird.store.study_file import last_study, read_study, write_study

SEED = 77
HASHES = np.arange(1, 101, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def make_study(seed: int = 1) -> RefreshStudy:
    study = random_refresh_study(np.random.default_rng(seed), random_snapshot(seed, 100))
    return replace(study, info={"seconds": 1.5, "pages": 40.0, "measured": 7.0})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "study" / "user-centric.npz"
    study = make_study()
    write_refresh_study(path, study, SEED, HASHES)
    read = read_refresh_study(path, SEED, HASHES, details=True)
    assert read.note == ""
    assert read.study is not None
    for field in fields(study):
        mine, other = getattr(study, field.name), getattr(read.study, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)
            assert mine.dtype == other.dtype
        elif field.name != "details":
            assert mine == other
    assert study.details is not None
    assert read.study.details is not None
    for field in fields(study.details):
        np.testing.assert_array_equal(getattr(study.details, field.name), getattr(read.study.details, field.name))
    assert [entry.name for entry in path.parent.iterdir()] == ["user-centric.npz"]
    plain = read_refresh_study(path, SEED, HASHES).study
    assert plain is not None
    assert plain.details is None


@pytest.mark.parametrize("told", [True, False])
def test_the_changes_that_take_all_of_a_page_are_read_as_they_were_written(tmp_path: Path, told: bool) -> None:
    path = tmp_path / "user-centric.npz"
    study = make_study()
    none = np.isnan(study.amplitude)
    assert 0 < none.sum() < len(none)
    most = np.where(none, np.nan, 0.75 + np.arange(len(none))).astype(np.float32)
    write_refresh_study(path, replace(study, most_changes=most if told else None), SEED, HASHES)
    read = read_refresh_study(path, SEED, HASHES)
    assert read.note == ""
    assert read.study is not None
    if not told:
        assert read.study.most_changes is None
        return
    assert read.study.most_changes is not None
    assert read.study.most_changes.dtype == np.float32
    np.testing.assert_array_equal(read.study.most_changes, most)
    assert (read.study.gain, read.study.stale_loss) == (None, None)


@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_changes_that_cannot_take_all_of_a_page_are_refused(tmp_path: Path, value: float) -> None:
    """Also where a page that bids has none."""
    path = tmp_path / "user-centric.npz"
    study = make_study()
    most = np.where(np.isnan(study.amplitude), np.nan, 2.0).astype(np.float32)
    most[np.flatnonzero(~np.isnan(most))[0]] = value
    write_refresh_study(path, replace(study, most_changes=most), SEED, HASHES)
    read = read_refresh_study(path, SEED, HASHES)
    assert read.study is None
    assert "damaged" in read.note


def test_a_study_of_another_crawl_or_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "user-centric.npz"
    write_refresh_study(path, make_study(), SEED, HASHES)
    other = HASHES.copy()
    other[49] += np.uint64(1)
    for read in (
        read_refresh_study(path, SEED + 1, HASHES),
        read_refresh_study(path, SEED, other),
        read_refresh_study(path, SEED, HASHES[:10]),
    ):
        assert read.study is None
        assert "another crawl" in read.note
    assert read_refresh_study(tmp_path / "none.npz", SEED, HASHES).note == ""


def test_studies_of_two_kinds_do_not_pass_for_each_other(tmp_path: Path) -> None:
    of_pages, of_frontier = tmp_path / "user-centric.npz", tmp_path / "rw-eg.npz"
    write_refresh_study(of_pages, make_study(), SEED, HASHES)
    frontier = random_snapshot(1, 100).study
    assert frontier is not None
    write_study(of_frontier, frontier, SEED, HASHES)
    assert read_study(of_pages, SEED, HASHES).study is None
    assert read_refresh_study(of_frontier, SEED, HASHES).study is None


def test_the_last_study_of_a_crawl_may_be_of_known_pages(tmp_path: Path) -> None:
    write_refresh_study(tmp_path / "user-centric.npz", make_study(), SEED, HASHES)
    head = last_study(tmp_path, SEED, HASHES)
    assert head is not None
    assert (head.method, head.calibration.kind) == ("user-centric", "measured")
    assert "gains of 7 refreshes" in head.calibration.note
    assert last_study(tmp_path, SEED + 1, HASHES) is None


@settings(max_examples=40, deadline=None)
@given(cut=st.floats(0.0, 0.999), flip=st.integers(0, 2**30))
def test_damage_is_never_an_error(tmp_path_factory: pytest.TempPathFactory, cut: float, flip: int) -> None:
    path = tmp_path_factory.mktemp("damage") / "user-centric.npz"
    write_refresh_study(path, make_study(), SEED, HASHES)
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes(data[: int(cut * len(data))]))
    assert read_refresh_study(path, SEED, HASHES, details=True).study is None
    data[flip % len(data)] ^= 0x5A
    path.write_bytes(bytes(data))
    read_refresh_study(path, SEED, HASHES, details=True)  # some bytes do not matter; none raises


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amplitude", np.inf),
        ("amplitude", -1.0),
        ("rate_per_s", np.nan),
        ("interval_s", 0.0),
        ("host_interval_s", 0.0),
        ("recall", 1.5),
        ("recall", np.nan),
        ("false_rate_per_s", np.inf),
        ("shape", 9),
    ],
)
def test_values_that_cannot_be_are_refused(tmp_path: Path, name: str, value: float) -> None:
    path = tmp_path / "user-centric.npz"
    write_refresh_study(path, make_study(), SEED, HASHES)
    with np.load(path) as stored:
        arrays = dict(stored)
    place = 0 if len(arrays[name]) < 50 else int(np.flatnonzero(~np.isnan(arrays["amplitude"]))[0])
    arrays[name][place] = value
    np.savez(path, **arrays)
    read = read_refresh_study(path, SEED, HASHES)
    assert read.study is None
    assert "damaged" in read.note


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"format": 1}, "another version"),
        ({"longest_s": 0.0}, "damaged"),
        ({"longest_s": None}, "damaged"),
        ({"longest_s": -1.0}, "damaged"),
        ({}, ""),
    ],
)
def test_the_longest_interval_is_needed(tmp_path: Path, changes: dict[str, object], note: str) -> None:
    path = tmp_path / "user-centric.npz"
    write_refresh_study(path, make_study(), SEED, HASHES)
    with np.load(path) as stored:
        arrays = dict(stored)
    head = orjson.loads(arrays["head"].tobytes())
    assert head["longest_s"] == make_study().longest_s
    arrays["head"] = np.frombuffer(orjson.dumps({**head, **changes}), dtype=np.uint8)
    np.savez(path, **arrays)
    read = read_refresh_study(path, SEED, HASHES)
    assert note in read.note
    assert (read.study is None) == bool(changes)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("mine")
    with pytest.raises(FolderError, match="is a file"):
        write_refresh_study(tmp_path / "study" / "user-centric.npz", make_study(), SEED, HASHES)
