"""A study of hubs on disk, and what hubs say of themselves: the same again, ignored where it is damaged."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.hub_studies import hub_columns, hub_study
from tests.store.stored import AT, open_repository

from bowerbird.model.hub_study import HOURS, PARTS, HubStudy, InterestCurve
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_hints import HubHint, read_hub_hints
from bowerbird.store.hub_study_file import read_hub_study, write_hub_study
from bowerbird.store.refresh_study_file import read_refresh_study
from bowerbird.store.study_file import last_study, read_study

SEED = 77
HASHES = np.arange(1, 101, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def make_study() -> HubStudy:
    hubs = hub_columns(4, row=[2, 5, 11, 40], kind=[0, 1, 2, 3], found=[9, 0, 3, 1], turned=[0, 0, 2, 0])
    return hub_study(
        hubs,
        60,
        page_row=np.array([7, 8, 50]),
        page_hub=np.array([0, 3, 3]),
        page_factor=np.array([0.5, 1.0, 3.0], np.float32),
        curve=InterestCurve(np.array([1200.0, 2400.0], np.float32), np.array([0.5, 0.75], np.float32), 1.0, 1e-4),
        by_clicks=True,
        cover_hub=np.array([3, 1]),
        cover_share=np.array([0.6, 0.9], np.float32),
        info={"seconds": 1.5, "clicks": 12.0},
        pattern=np.linspace(0.0, 2.0, HOURS, dtype=np.float32),
        page_spread=np.array([0.0, 0.2, 0.4, 0.6, 0.9, 1.4, 3.5], np.float32),
    )


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "study" / "echo.npz"
    study = make_study()
    write_hub_study(path, study, SEED, HASHES)
    read = read_hub_study(path, SEED, HASHES)
    assert read.note == ""
    assert read.study is not None
    for mine, other in ((study, read.study), (study.hubs, read.study.hubs), (study.curve, read.study.curve)):
        for field in fields(mine):
            one, again = getattr(mine, field.name), getattr(other, field.name)
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, again)
                assert one.dtype == again.dtype
            elif field.name not in ("hubs", "curve"):
                assert one == again
    assert len(np.unique(read.study.page_spread)) == PARTS
    assert [entry.name for entry in path.parent.iterdir()] == ["echo.npz"]
    head = last_study(path.parent, SEED, HASHES)
    assert head is not None
    assert (head.method, head.calibration.kind, head.calibration.clicks) == ("echo", "calibrated", 12.0)


def test_what_is_not_there_of_another_crawl_or_no_study_of_hubs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "echo.npz"
    assert read_hub_study(path, SEED, HASHES).study is None
    assert read_hub_study(path, SEED, HASHES).note == ""
    write_hub_study(path, make_study(), SEED, HASHES)
    other = HASHES.copy()
    other[59] += np.uint64(1)
    for read in (
        read_hub_study(path, SEED + 1, HASHES),
        read_hub_study(path, SEED, other),
        read_hub_study(path, SEED, HASHES[:50]),
    ):
        assert read.study is None
        assert "of another crawl and ignored" in read.note
    renamed = tmp_path / "user-centric.npz"
    shutil.copy(path, renamed)
    assert read_refresh_study(renamed, SEED, HASHES).study is None
    assert read_study(renamed, SEED, HASHES).study is None
    assert last_study(tmp_path, SEED, HASHES) is not None  # the one of the right name
    path.unlink()
    path.mkdir()
    assert "cannot be read" in read_hub_study(path, SEED, HASHES).note


def test_a_study_of_pages_under_its_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "echo.npz"
    head = {"format": 1, "kind": "refresh", "crawl": "", "count": 0}
    np.savez(path, head=np.frombuffer(orjson.dumps(head), dtype=np.uint8))
    assert "no study of hubs" in read_hub_study(path, SEED, HASHES).note


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 5000), flips=st.lists(st.integers(0, 5000), max_size=4))
def test_damage_is_never_more_than_a_note(tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[int]) -> None:
    path = tmp_path_factory.mktemp("damaged") / "echo.npz"
    write_hub_study(path, make_study(), SEED, HASHES)
    data = bytearray(path.read_bytes())
    for place in flips:
        data[place % len(data)] ^= 0x55
    path.write_bytes(bytes(data[: len(data) - cut % len(data)]))
    read = read_hub_study(path, SEED, HASHES)
    assert (read.study is None) == bool(read.note)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amplitude", np.inf),
        ("amplitude", np.nan),
        ("interval_s", 0.0),
        ("decay_per_s", 0.0),
        ("rate_per_s", -1.0),
        ("row", 60),
        ("row", 0),
        ("page_hub", 9),
        ("cover_hub", -1),
        ("shape", 0),
        ("kind", 9),
        ("pattern", -1.0),
        ("page_spread", -1.0),
        ("page_spread", np.nan),
        ("page_spread", np.inf),
    ],
)
def test_values_that_cannot_be_are_damage(tmp_path: Path, name: str, value: float) -> None:
    path = tmp_path / "echo.npz"
    write_hub_study(path, make_study(), SEED, HASHES)
    with np.load(path) as stored:
        arrays = {key: stored[key].copy() for key in stored}
    arrays[name][-1] = value
    np.savez(path, **arrays)
    read = read_hub_study(path, SEED, HASHES)
    assert read.study is None
    assert "is damaged and ignored" in read.note


def test_how_pages_differ_is_told_by_as_many_parts_as_there_are(tmp_path: Path) -> None:
    path = tmp_path / "echo.npz"
    write_hub_study(path, replace(make_study(), page_spread=np.ones(PARTS + 1, np.float32)), SEED, HASHES)
    read = read_hub_study(path, SEED, HASHES)
    assert read.study is None
    assert "is damaged and ignored" in read.note


def test_a_file_of_another_kind_is_told_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "echo.npz"
    path.write_bytes(b"\x93NUMPZ" + bytes(range(200)))
    read = read_hub_study(path, SEED, HASHES)
    assert read.study is None
    assert "is damaged and ignored" in read.note
    assert "pickle" not in read.note


def test_what_hubs_say_of_themselves_is_kept_with_the_next_commit(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["http://a.example/feed", "http://a.example/map", "http://a.example/other"], at=AT)
    repository.record_hub_hint(HubHint(0, 3600.0, "http://hub.example/"))
    repository.record_hub_hint(HubHint(1))
    assert read_hub_hints(repository.connection, 3) == {}
    repository.commit()
    assert read_hub_hints(repository.connection, 3) == {0: HubHint(0, 3600.0, "http://hub.example/")}
    repository.record_hub_hint(HubHint(0, 60.0))
    repository.record_hub_hint(HubHint(2, 5.0))
    repository.commit()
    repository.commit()  # nothing is told twice
    assert read_hub_hints(repository.connection, 2) == {0: HubHint(0, 60.0)}
    repository.record_hub_hint(HubHint(0))
    repository.commit()
    repository.close()
    again = open_repository(folder, write=False)
    assert list(read_hub_hints(again.connection, 3)) == [2]
    again.close()


def test_the_source_of_a_url_and_the_time_of_each_survive_a_start_without_a_checkpoint(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["http://a.example/"], at=AT)
    repository.add_urls(
        [f"http://a.example/{n}" for n in range(3)], at=[AT + 5.0, AT + 9.0, AT + 9.5], source=[0, 0, -1]
    )
    repository.commit()
    for restart in (False, True):
        if restart:
            repository.close()
            repository = open_repository(folder)
        pages = repository.snapshot(AT).pages
        assert pages.source.tolist() == [-1, 0, 0, -1]
        assert pages.first_seen.tolist() == [int(AT), int(AT + 5), int(AT + 9), int(AT + 9.5)]
    repository.close()
