"""Running an experiment: the same numbers however it is run, clean ends, honest sums."""

from __future__ import annotations

import doctest
import importlib
import math
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.toy import ToyFamily, write_toy_data

from bowerbird.lab.experiment import Cost, Sample, SplitResult, Summary
from bowerbird.lab.frontier_data import FrontierData
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.registry import add_family, choose_policies, family_names, find_data, find_family, remove_family
from bowerbird.lab.runner import ExperimentError, Progress, run_experiment
from bowerbird.lab.summaries import compare, interval_95, mean_and_error, pick, summarise
from bowerbird.model.errors import ConfigError, InputFileError, PolicyError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FrontierData:
    return ToyFamily().load("toydata", write_toy_data(tmp_path_factory.mktemp("lab") / "toydata"))


@pytest.mark.parametrize("name", ["summaries", "tables", "measuring_cost", "data_files"])
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"bowerbird.lab.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


# Runs


def test_every_split_is_measured_once_and_in_order(data: FrontierData) -> None:
    family, seen = ToyFamily(), list[Progress]()
    run = run_experiment(family, data, family.policies, seeds=4, show=seen.append)
    assert [split.split for split in run.splits] == [0, 1, 2, 3]
    assert [(one.done, one.of) for one in seen] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert seen[0].left_s is None
    assert seen[-1].left_s == 0
    assert not run.stopped
    assert run.notes == ["A toy.", "Seen 0", "Seen 1"]
    assert [finding.holds for finding in run.findings] == [True, False, None]
    assert run.measured == list(family.policies)
    assert run.data_notes == []
    assert replace(run, summaries=[]).measured == []


def test_several_at_once_give_the_same_numbers(data: FrontierData) -> None:
    family = ToyFamily(wait_s=0.01)
    one, two = (run_experiment(family, data, family.policies, seeds=7, jobs=jobs) for jobs in (1, 3))
    assert [split.samples for split in one.splits] == [split.samples for split in two.splits]
    assert two.jobs == 3
    assert run_experiment(family, data, ["names"], seeds=1, jobs=8).jobs == 1


def test_a_split_that_fails_is_an_error(data: FrontierData) -> None:
    with pytest.raises(ValueError, match="it broke"):
        run_experiment(ToyFamily(fail_at=1), data, ["names"], seeds=3)
    with pytest.raises(ExperimentError, match=r"split 1 failed(.|\n)*it broke"):
        run_experiment(ToyFamily(fail_at=1), data, ["names"], seeds=3, jobs=2)
    with pytest.raises(ExperimentError, match=r"split 2 ended \(exit 9\).*fewer --jobs"):
        run_experiment(ToyFamily(die_at=2), data, ["names"], seeds=4, jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stop_leaves_what_is_done(data: FrontierData, jobs: int) -> None:
    family = ToyFamily(wait_s=0.1)
    timer = threading.Timer(0.45, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    run = run_experiment(family, data, ["names"], seeds=200, jobs=jobs)
    timer.join()
    assert time.monotonic() - began < 8
    assert run.stopped
    assert 1 <= len(run.splits) < 60
    assert all(row.n == len(run.splits) for row in run.summaries)


# Sums


def test_summaries_by_hand() -> None:
    splits = [
        SplitResult(0, [Sample("a", "m", 0.1, 1.0), Sample("b", "m", 0.1, 4.0)], [Cost("a", 1, 10), Cost("a", 2, 30)]),
        SplitResult(1, [Sample("a", "m", 0.1, 3.0), Sample("b", "m", 0.1, math.nan)], [Cost("a", 5, 20)]),
    ]
    rows = summarise(splits)
    assert rows[0] == Summary("a", "m", 0.1, 2.0, 1.0, 2, 4.0, 30.0, (1.0, 3.0))
    assert (rows[1].mean, rows[1].se, rows[1].n) == (4.0, 0.0, 1)
    assert math.isnan(rows[1].seconds)
    assert pick(rows, "a", "m", 0.1) is rows[0]
    assert pick(rows, "a", "m") is None
    pair = compare(rows[0], rows[1])
    assert (pair.above, pair.ties, pair.n, pair.mean, pair.interval) == (0, 0, 1, -3.0, None)
    assert summarise([]) == []
    nothing = mean_and_error([math.nan])
    assert math.isnan(nothing[0])
    assert nothing[1:] == (0.0, 0)


@settings(deadline=None)  # the first call imports
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=30))
def test_the_interval_is_wider_than_that_of_a_normal_law(values: list[float]) -> None:
    mean, error, count = mean_and_error(values)
    assert count == len(values)
    assert error == pytest.approx(float(np.std(values, ddof=1)) / math.sqrt(count))
    low, high = interval_95(mean, error, count) or (math.nan, math.nan)
    assert low <= mean <= high
    assert high - low >= 2 * 1.95 * error * (1 - 1e-9) - 1e-9 * abs(mean)


def test_the_interval_is_students() -> None:
    assert interval_95(50.0, 1.0, 2) is None  # 12.7 standard errors to each side would say nothing
    low, high = interval_95(50.0, 1.0, 10) or (0.0, 0.0)
    assert (low, high) == pytest.approx((50 - 2.2622, 50 + 2.2622), abs=1e-4)


def test_costs_are_measured_also_of_what_fails() -> None:
    with measured("large") as large:
        block = np.ones(30_000_000)
        time.sleep(0.02)
    size = block.nbytes / 1e6
    del block
    with measured("small") as small:
        pass
    assert large.cost.policy == "large"
    assert 0.02 < large.cost.seconds < 5
    assert large.cost.peak_mb > size
    if Path("/proc/self/clear_refs").exists():
        assert small.cost.peak_mb < large.cost.peak_mb - 0.8 * size
    with pytest.raises(ZeroDivisionError), measured("failing") as failing:
        raise ZeroDivisionError
    assert failing.cost.peak_mb > 1


# Names and places


def test_the_registry_knows_what_it_was_told() -> None:
    family = ToyFamily()
    add_family(family)
    try:
        assert "toy" in family_names()
        assert find_family("toy") is family
        assert choose_policies(family, []) == family.policies
        assert choose_policies(family, ["names", "random", "names"]) == ("names", "random")
        assert choose_policies(find_family("frontier"), ["in-degree", "rw", "indegree"]) == ("indegree", "rw")
        with pytest.raises(PolicyError, match=r"no policy 'best'. Known: random, names, backwards"):
            choose_policies(family, ["names", "best"])
    finally:
        remove_family("toy")
    with pytest.raises(ConfigError, match=r"no family 'toy'. Known: "):
        find_family("toy")


@pytest.mark.parametrize("name", family_names())
def test_every_family_keeps_the_contract(name: str) -> None:
    family = find_family(name)
    assert family.name == name
    assert family.title
    assert family.paper
    assert family.known
    assert len(set(family.policies)) == len(family.policies) > 1
    assert family.default_seeds >= 1
    assert family.headline in family.units
    assert len(family.method) > 100
    assert getattr(family, "reference", family.policies[0]) in family.policies


def test_data_is_found_by_name_or_by_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = ToyFamily()
    monkeypatch.setenv("BOWERBIRD_DATA", str(tmp_path / "shared"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared" / "toydata").mkdir(parents=True)
    (tmp_path / "shared" / "third").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "toydata").mkdir()
    (tmp_path / "file").touch()
    assert find_data(family, "toydata").folder == tmp_path / "shared" / "toydata"
    assert find_data(family, "third").folder == tmp_path / "shared" / "third"
    own = find_data(family, "./own/")
    assert (own.name, own.folder.resolve()) == ("own", tmp_path / "own")
    assert find_data(family, "./toydata").folder.resolve() == tmp_path / "toydata"
    with pytest.raises(InputFileError, match=r"Looked for .*shared/elsewhere and elsewhere. Set BOWERBIRD_DATA"):
        find_data(family, "elsewhere")
    with pytest.raises(InputFileError, match=r"a file. Name the folder"):
        find_data(family, "file")
    monkeypatch.delenv("BOWERBIRD_DATA")
    with pytest.raises(InputFileError, match=r"Looked for ../shared/data/elsewhere"):
        find_data(family, "elsewhere")
