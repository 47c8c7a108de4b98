"""The table of studies: every method has one kind, and every kind a place to be put."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from pathlib import Path

from tests.appraise.seed_studies import seed_study
from tests.store.stored import make_folder, open_repository

from bowerbird.appraise.policy import HUB_STUDIED, REFRESH_STUDIED, STUDIED, make_policy
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.study_kinds import KINDS, SEED_STUDIED, kind_of, methods_of
from bowerbird.model.snapshot import Snapshot


def test_every_method_is_of_one_kind() -> None:
    methods = [method for kind in KINDS for method in kind.methods]
    assert len(methods) == len(set(methods))
    assert set(methods) >= {*STUDIED, *REFRESH_STUDIED, *HUB_STUDIED, *SEED_STUDIED}
    for kind in KINDS:
        assert all(kind_of(method) is kind for method in kind.methods)
        assert kind.every_s(Settings()) > 0
    assert kind_of("seeds").every_s(Settings()) == 3600.0


def test_every_kind_goes_to_the_snapshot(tmp_path: Path) -> None:
    with closing(open_repository(make_folder(tmp_path))) as repository:
        names = {field.name for field in fields(Snapshot)}
        assert {kind.attribute for kind in KINDS if kind.is_bid_by} <= names
        for kind in KINDS:
            assert kind.of(repository) is None
            assert not kind.is_ripe(repository)
        study = seed_study([], 0)
        kind_of("seeds").put(repository, study)
        assert repository.snapshot(1.0).seed_study is study


def test_a_crawl_has_its_seeds_studied_unless_that_is_turned_off() -> None:
    settings = Settings()
    assert methods_of(make_policy("random"), settings) == ("seeds",)
    assert methods_of(make_policy("rw+echo"), settings) == ("rw", "echo", "seeds")
    off = settings.with_overrides("seeds", study_every_s=0.0)
    assert methods_of(make_policy("rw+echo"), off) == ("rw", "echo")


def test_depths_are_lowered_once_and_for_all_but_only_in_what_appraisers_see(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    with closing(open_repository(folder)) as repository:
        repository.add_urls([f"http://a.example/{nth}" for nth in range(5)], at=1.0, depth=[0, 3, 3, 9, 2])
        repository.commit()
        study = seed_study([1], 4)
        study.depth[:] = [2, 0, 1, 255]
        table = repository.table
        for _ in range(2):
            kind_of("seeds").put(repository, study)
            assert table.page_columns().depth.tolist() == table.near_depth.tolist() == [0, 0, 1, 9, 2]
        repository.write_checkpoint()
        later = seed_study([4], 5)
        later.depth[:] = [255, 255, 0, 7, 0]
        kind_of("seeds").put(repository, later)
        assert table.page_columns().depth.tolist() == [0, 0, 0, 7, 0]
        assert not table.page_columns().depth.flags.writeable
        repository.write_checkpoint()
        assert table.columns["depth"].tolist() == [0, 3, 3, 9, 2]
        many = [f"http://b.example/{nth}" for nth in range(3000)]
        repository.add_urls(many, at=1.0, depth=10, source=3)  # more than there was room for
        assert set(table.near_depth[5:].tolist()) == {8}
        assert table.near_depth[:5].tolist() == [0, 0, 0, 7, 0]
    with closing(open_repository(folder)) as repository:
        assert repository.replayed == 0
        assert repository.table.page_columns().depth.tolist() == [0, 3, 3, 9, 2]
        kind_of("seeds").put(repository, later)
        assert repository.table.page_columns().depth.tolist() == [0, 3, 0, 7, 0]
