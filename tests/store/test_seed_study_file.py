"""A choice of seeds on disk: the same again, ignored where it is damaged."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.seed_studies import seed_study

from bowerbird.model.seed_study import SeedChange, SeedStudy
from bowerbird.store.hub_study_file import read_hub_study
from bowerbird.store.seed_study_file import read_seed_study, write_seed_study
from bowerbird.store.study_file import last_study, read_study, remove_studies

SEED = 77
HASHES = np.arange(1, 101, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def make_study() -> SeedStudy:
    return seed_study(
        [7, 2, 40],
        60,
        given=np.array([1, 3]),
        given_pages=5,
        given_value=3.0,
        before=np.array([2, 9]),
        before_value=1.5,
        bound=(50.0, 0.99),
        history=(SeedChange(1e9, 2.0, 1.0, 60.0, 2, 1),),
        info={"seconds": 1.5, "note": "kept"},
    )


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "study" / "seeds.npz"
    study = make_study()
    write_seed_study(path, study, SEED, HASHES)
    read = read_seed_study(path, SEED, HASHES)
    assert read.note == ""
    assert read.study is not None
    for field in fields(study):
        one, again = getattr(study, field.name), getattr(read.study, field.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, again)
            assert one.dtype == again.dtype
        else:
            assert one == again
    assert [entry.name for entry in path.parent.iterdir()] == ["seeds.npz"]
    assert last_study(path.parent, SEED, HASHES) is None  # bids do not rest on it


def test_it_stays_when_queries_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "seeds.npz"
    write_seed_study(path, make_study(), SEED, HASHES)
    (tmp_path / "rw.npz").write_bytes(b"a study of something else")
    assert remove_studies(tmp_path) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["seeds.npz"]
    assert read_seed_study(path, SEED, HASHES).study is not None


def test_what_a_choice_changed() -> None:
    study = make_study()
    assert study.added.tolist() == [7, 40]
    assert study.kept.tolist() == [2]
    assert study.dropped.tolist() == [9]
    assert study.is_change
    assert (study.covered_pages, study.covered_value, study.share) == (8, 6.0, 0.1)
    assert study.before_share == 0.025
    assert (study.place(40), study.place(9)) == (2, -1)
    assert study.has(np.array([2, 3, 7])).tolist() == [True, False, True]
    assert not seed_study([1], 3, before=np.array([1])).is_change
    assert seed_study([], 3, all_value=0.0).share == 0.0


def test_what_is_not_there_of_another_crawl_or_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seeds.npz"
    assert read_seed_study(path, SEED, HASHES).study is None
    assert read_seed_study(path, SEED, HASHES).note == ""
    write_seed_study(path, make_study(), SEED, HASHES)
    for seed, hashes in ((SEED + 1, HASHES), (SEED, HASHES[:40]), (SEED, HASHES[::-1])):
        read = read_seed_study(path, seed, hashes)
        assert read.study is None
        assert "is of another crawl and ignored" in read.note
    assert "is no study of hubs" in read_hub_study(path, SEED, HASHES).note
    assert read_study(path, SEED, HASHES).study is None
    with np.load(path) as stored:
        arrays = dict(stored)
    head = orjson.loads(bytes(arrays["head"]))
    for change, said in (({"kind": "hubs"}, "is no choice of seeds"), ({"format": 9}, "is of another version")):
        arrays["head"] = np.frombuffer(orjson.dumps({**head, **change}), dtype=np.uint8)
        np.savez(path, **arrays)
        assert said in read_seed_study(path, SEED, HASHES).note
    path.unlink()
    path.mkdir()
    assert "cannot be read and is ignored" in read_seed_study(path, SEED, HASHES).note


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("row", np.array([7, 2, 60])),
        ("row", np.array([7, 2, -1])),
        ("row", np.array([7, 7, 2])),
        ("row", np.array([7, 2, 3])),  # not where depths count from
        ("row", np.array([7, 2])),
        ("before", np.array([99])),
        ("given", np.array([-1])),
        ("value", np.array([1.0, np.nan, 1.0])),
        ("pages", np.array([1, 1, -1])),
        ("depth", np.zeros(59, np.uint8)),
    ],
    ids=["beyond", "below", "twice", "far", "fewer", "before", "given", "nan", "negative", "short"],
)
def test_values_that_cannot_be_are_damage(tmp_path: Path, name: str, value: np.ndarray) -> None:
    path = tmp_path / "seeds.npz"
    write_seed_study(path, make_study(), SEED, HASHES)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, name: value})
    read = read_seed_study(path, SEED, HASHES)
    assert read.study is None
    assert "is damaged and ignored" in read.note


@pytest.mark.parametrize("at", [1e18, -1.0, 0.0, 253_402_300_800.0, "soon", None])
@pytest.mark.parametrize("of", ["study", "change"])
def test_times_that_cannot_be_are_damage(tmp_path: Path, at: object, of: str) -> None:
    path = tmp_path / "seeds.npz"
    write_seed_study(path, make_study(), SEED, HASHES)
    with np.load(path) as stored:
        arrays = dict(stored)
    head = orjson.loads(bytes(arrays["head"]))
    (head if of == "study" else head["history"][0])["at"] = at
    np.savez(path, **{**arrays, "head": np.frombuffer(orjson.dumps(head), dtype=np.uint8)})
    read = read_seed_study(path, SEED, HASHES)
    assert read.study is None
    assert "is damaged and ignored" in read.note


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 4000), flips=st.lists(st.integers(0, 3999), max_size=4))
def test_damage_is_never_more_than_a_note(tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[int]) -> None:
    path = tmp_path_factory.mktemp("damage") / "seeds.npz"
    write_seed_study(path, make_study(), SEED, HASHES)
    data = bytearray(path.read_bytes())
    for flip in flips:
        data[flip % len(data)] ^= 0xFF
    whole = len(data) <= cut and not flips
    path.write_bytes(data[:cut])
    read = read_seed_study(path, SEED, HASHES)
    assert whole <= (read.study is not None)
    assert read.study is not None or "ignored" in read.note
