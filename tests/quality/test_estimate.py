"""The live estimate of Q against the truth, in worlds with topics, hosts, text and change."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from tests.parallel import map_cores
from tests.quality.topical_world import TopicalWorld, make_world

from bowerbird.quality.estimate import CAUSES, ProbeTable, QualityEstimate, estimate_quality
from bowerbird.quality.exact import answers_of, repository_quality


def power(ranks: np.ndarray) -> np.ndarray:
    return ranks**-1.5


def probe(world: TopicalWorld, pages: np.ndarray, weight: np.ndarray) -> ProbeTable:
    old, new = world.local.tocsc()[:, pages].toarray(), world.live.tocsc()[:, pages].toarray()
    query, row = np.nonzero((old > 0) | (new > 0))
    fetched = world.fetched[pages]
    return ProbeTable(
        weight, (~fetched).astype(np.int64), fetched, world.gone[pages], row, query, old[query, row], new[query, row]
    )


def draw_probes(world: TopicalWorld, count: int, rng: np.random.Generator) -> ProbeTable:
    """Half from the fetched pages, half from the frontier."""
    chosen, weights = [], []
    for group in (np.flatnonzero(world.fetched), np.flatnonzero(~world.fetched)):
        size = min(count // 2, len(group))
        chosen.append(rng.choice(group, size, replace=False))
        weights.append(np.full(size, len(group) / size))
    return probe(world, np.concatenate(chosen), np.concatenate(weights))


def measure(seed: int) -> tuple[float, QualityEstimate]:
    world, rng = make_world(seed), np.random.default_rng(10_000 + seed)
    probes = draw_probes(world, int(rng.integers(300, 501)), rng)
    truth = repository_quality(world.frequency, world.local, world.live, power)
    return truth, estimate_quality(world.frequency, answers_of(world.local), probes, power, rng=rng)


def test_the_interval_covers_the_truth_in_seventeen_of_twenty_worlds() -> None:
    runs = map_cores(measure, range(500, 520))
    covered = sum(found.low <= truth <= found.high for truth, found in runs)
    assert covered >= 17
    errors = np.array([found.quality - truth for truth, found in runs])
    widths = np.array([found.high - found.low for _, found in runs])
    assert abs(errors.mean()) < 0.02
    assert np.sqrt((errors**2).mean()) < 0.04
    assert widths.mean() < 0.13  # an interval of 0…1 would cover too


@pytest.mark.slow
def test_over_forty_more_worlds_there_is_no_bias_and_the_interval_is_honest() -> None:
    runs = map_cores(measure, range(1000, 1040))
    errors = np.array([found.quality - truth for truth, found in runs])
    assert abs(errors.mean()) < 0.01
    assert sum(found.low <= truth <= found.high for truth, found in runs) >= 35


@pytest.fixture(scope="module")
def world() -> TopicalWorld:
    return make_world(11)


def test_the_causes_add_up_to_the_loss(world: TopicalWorld) -> None:
    rng = np.random.default_rng(4)
    found = estimate_quality(world.frequency, answers_of(world.local), draw_probes(world, 400, rng), power, rng=rng)
    assert tuple(found.causes) == CAUSES
    assert sum(value for value, _, _ in found.causes.values()) == pytest.approx(1 - found.quality)
    assert all(0 <= low <= high <= 1 for _, low, high in found.causes.values())
    assert found.low <= found.quality <= found.high
    assert found.quality == pytest.approx(found.value_local / found.value_live)
    assert found.causes["unfetched"][0] > found.causes["gone"][0]  # more than half of this world is not fetched


def test_a_probe_of_every_page_leaves_only_the_model_of_competition(world: TopicalWorld) -> None:
    pages = np.arange(world.local.shape[1])
    probes = probe(world, pages, np.ones(len(pages)))
    found = estimate_quality(
        world.frequency, answers_of(world.local), probes, power, rng=np.random.default_rng(1), resamples=100
    )
    truth = repository_quality(world.frequency, world.local, world.live, power)
    assert found.quality == pytest.approx(truth, abs=0.01)
    assert found.high - found.low < 0.05
    assert found.low <= truth <= found.high


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_alone_is_named(cause: str) -> None:
    """One query, twenty results, every other one probed; one of these pages is not what the repository has."""
    local = np.array([20.0 - np.arange(20.0)])
    old = local[0, ::2].copy()
    new = old.copy()
    which = 4 if cause == "rose" else 0
    new[which] = {"rose": 30.0, "fell": 5.5, "unfetched": 19.0, "gone": 0.0}[cause]
    old[which] *= cause != "unfetched"
    one = np.arange(10) == which
    probes = ProbeTable(
        np.full(10, 2.0),
        (one & (cause == "unfetched")).astype(np.int64),
        ~(one & (cause == "unfetched")),
        one & (cause == "gone"),
        np.arange(10),
        np.zeros(10, np.int64),
        old,
        new,
    )
    found = estimate_quality(np.ones(1), answers_of(local), probes, power, rng=np.random.default_rng(1))
    assert found.quality < 1
    assert found.causes[cause][0] == pytest.approx(1 - found.quality)


def test_nothing_changed_is_nothing_lost_but_not_for_sure(world: TopicalWorld) -> None:
    fresh = replace(world, live=world.local, fetched=np.ones_like(world.fetched), gone=np.zeros_like(world.gone))
    rng = np.random.default_rng(2)
    pages = rng.choice(len(world.fetched), 40, replace=False)
    probes = probe(fresh, pages, np.full(40, len(world.fetched) / 40))
    found = estimate_quality(world.frequency, answers_of(world.local), probes, power, rng=rng)
    assert found.quality == pytest.approx(1.0)
    assert found.low < 0.99
    assert sum(value for value, _, _ in found.causes.values()) == pytest.approx(0.0, abs=1e-9)


def test_without_probes_nothing_is_known(world: TopicalWorld) -> None:
    none = probe(world, np.empty(0, np.int64), np.empty(0))
    found = estimate_quality(world.frequency, answers_of(world.local), none, power, rng=np.random.default_rng(0))
    assert np.isnan(found.quality)
    assert (found.low, found.high, found.probes) == (0.0, 1.0, 0)


def test_an_empty_repository_is_worth_nothing(world: TopicalWorld) -> None:
    rng = np.random.default_rng(3)
    empty = replace(world, local=world.local * 0.0, fetched=np.zeros_like(world.fetched))
    empty.local.eliminate_zeros()
    pages = rng.choice(len(world.fetched), 200, replace=False)
    probes = probe(empty, pages, np.full(200, len(world.fetched) / 200))
    found = estimate_quality(world.frequency, answers_of(empty.local), probes, power, rng=rng)
    assert (found.quality, found.low, found.high) == (0.0, 0.0, 0.0)


def test_the_top_k_visibility_is_served_too() -> None:
    def top_ten(ranks: np.ndarray) -> np.ndarray:
        return (ranks <= 10).astype(float)

    covered = 0
    for seed in range(600, 608):
        world, rng = make_world(seed), np.random.default_rng(seed)
        truth = repository_quality(world.frequency, world.local, world.live, top_ten)
        probes = draw_probes(world, 400, rng)
        found = estimate_quality(world.frequency, answers_of(world.local), probes, top_ten, rng=rng)
        assert found.quality == pytest.approx(truth, abs=0.1)
        covered += found.low <= truth <= found.high
    assert covered >= 6


def test_two_thousand_queries_and_five_hundred_probes_take_seconds(world: TopicalWorld) -> None:
    times = 2000 // len(world.frequency) + 1
    rng = np.random.default_rng(6)
    lists = answers_of(world.local)
    probes = draw_probes(world, 500, rng)
    queries = len(lists)
    wide = replace(
        probes,
        probe=np.tile(probes.probe, times),
        query=np.concatenate([probes.query + queries * i for i in range(times)]),
        old=np.tile(probes.old, times),
        new=np.tile(probes.new, times),
    )
    answers = type(lists).from_lists([lists.points(q)[1] for _ in range(times) for q in range(queries)])
    start = time.process_time()
    found = estimate_quality(np.tile(world.frequency, times), answers, wide, power, rng=rng)
    assert time.process_time() - start < 5
    assert 0 < found.quality < 1
