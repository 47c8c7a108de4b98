"""Priors of pages without history: shrinkage beats pooling all and pooling none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.refresh.priors import (
    MOST_SHAPE,
    FloatArray,
    IntArray,
    find_cells,
    fit_priors,
    fit_shape,
    group_factor,
    marginal_likelihood,
    page_levels,
)


def world(
    seed: int, *, host_shape: float = 1.0, directory_shape: float = 3.0, page_shape: float = 5.0
) -> tuple[IntArray, IntArray, FloatArray]:
    """Hosts, directories and true rates of 6,000 pages on 40 hosts with 5 directories each, of very unequal sizes."""
    rng = np.random.default_rng(seed)
    directory = np.sort((200 * rng.random(6000) ** 2).astype(np.int64))
    host = directory // 5
    rate = 0.1 * rng.gamma(host_shape, 1 / host_shape, 40)[host]
    rate = rate * rng.gamma(directory_shape, 1 / directory_shape, 200)[directory]
    return host, directory, rate * rng.gamma(page_shape, 1 / page_shape, 6000)


def squared_error(found: FloatArray, truth: FloatArray) -> float:
    return float(np.mean((found - truth) ** 2))


def test_shrinkage_beats_pooling_all_and_pooling_none() -> None:
    new_errors, old_errors = [], []
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        host, directory, truth = world(seed)
        exposure = np.where(rng.random(6000) < 0.4, rng.exponential(10.0, 6000), 0.0)
        events = rng.poisson(truth * exposure).astype(np.float64)
        new, old = exposure == 0, exposure > 0
        overall = np.full(6000, events.sum() / exposure.sum())
        counts, time = np.bincount(directory, events, 200), np.bincount(directory, exposure, 200)
        apart = np.divide(counts, time, out=np.full(200, overall[0]), where=time > 0)[directory]
        alone = np.divide(events, exposure, out=overall.copy(), where=old)

        priors = fit_priors([host, directory], events, exposure)
        found, shape = priors.posterior(events, exposure)
        assert np.all(shape >= priors.page_shape)
        new_errors.append([squared_error(guess[new], truth[new]) for guess in (priors.mean, overall, apart)])
        old_errors.append([squared_error(guess[old], truth[old]) for guess in (found, overall, apart, alone)])
    shrunk, pooled, unpooled = np.mean(new_errors, axis=0)
    assert shrunk < 0.5 * pooled and shrunk < 0.97 * unpooled
    assert np.all(np.mean(old_errors, axis=0)[0] < 0.9 * np.mean(old_errors, axis=0)[1:])


def test_the_shapes_of_the_world_are_found() -> None:
    rng = np.random.default_rng(9)
    host, directory, truth = world(5, host_shape=1.0, directory_shape=3.0, page_shape=5.0)
    exposure = rng.exponential(100.0, 6000)
    events = rng.poisson(truth * exposure).astype(np.float64)
    priors = fit_priors([host, directory], events, exposure)
    assert priors.page_shape == pytest.approx(5.0, rel=0.2)
    assert 0.5 < priors.shapes[0] < 2.5
    assert 1.5 < priors.shapes[1] < 6.0


def test_a_level_that_says_nothing_drops_out() -> None:
    rng = np.random.default_rng(10)
    host, _, truth = world(6, directory_shape=1e6)
    exposure = rng.exponential(30.0, 6000)
    events = rng.poisson(truth * exposure).astype(np.float64)
    noise = rng.integers(0, 300, 6000)
    with_noise, without = (fit_priors(levels, events, exposure) for levels in ([host, noise], [host]))
    assert with_noise.shapes[1] > 20 * with_noise.shapes[0]
    assert squared_error(with_noise.mean, truth) < 1.05 * squared_error(without.mean, truth)


def test_levels_that_cross_multiply() -> None:
    rng = np.random.default_rng(11)
    host, depth = rng.integers(0, 30, 9000), rng.integers(0, 6, 9000)
    truth = 0.2 * rng.gamma(2.0, 0.5, 30)[host] * np.exp(-0.6 * depth)
    exposure = rng.exponential(50.0, 9000)
    events = rng.poisson(truth * exposure).astype(np.float64)
    crossed = fit_priors([host, depth], events, exposure)
    single = fit_priors([host], events, exposure)
    assert squared_error(crossed.mean, truth) < squared_error(single.mean, truth) / 10
    np.testing.assert_allclose(crossed.mean, truth, rtol=0.3)


def test_one_busy_page_does_not_pass_for_its_group() -> None:
    rng = np.random.default_rng(12)
    host = np.repeat(np.arange(50), 20)
    truth = 0.1 * rng.gamma(0.5, 2.0, 1000)  # pages differ, hosts do not
    exposure = np.full(1000, 20.0)
    exposure[::20] = 5000.0  # one page of each host is watched closely
    events = rng.poisson(truth * exposure).astype(np.float64)
    priors = fit_priors([host], events, exposure)
    assert priors.mean.max() / priors.mean.min() < 3.0
    assert priors.page_shape == pytest.approx(0.5, rel=0.3)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(1e-2, 1e6))
def test_a_factor_lies_between_one_and_what_was_seen(events: float, expected: float, shape: float) -> None:
    factor = float(group_factor(np.array([events]), np.array([expected]), shape)[0])
    seen = events / expected if expected > 0 else 1.0 if events == 0 else np.inf
    assert min(seen, 1.0) - 1e-9 <= factor <= max(seen, 1.0) + 1e-9


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_fitted_shape_is_the_likeliest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.exponential(5.0, 300)
    events = rng.poisson(expected * rng.gamma(2.0, 0.5, 300)).astype(np.float64)
    shape = fit_shape(events, expected)
    best = marginal_likelihood(events, expected, shape)
    assert all(marginal_likelihood(events, expected, shape * factor) <= best + 1e-3 for factor in (0.5, 0.9, 1.1, 2.0))
    assert 1.0 < shape < 4.0


def test_without_any_evidence() -> None:
    assert fit_priors([np.zeros(3, np.int64)], np.zeros(3), np.zeros(3)).mean.tolist() == [0.0] * 3
    quiet = fit_priors([np.zeros(3, np.int64)], np.zeros(3), np.full(3, 10.0))
    assert np.all(quiet.mean > 0) and np.all(quiet.mean < 0.05)
    assert fit_shape(np.empty(0), np.empty(0)) == MOST_SHAPE


def test_levels_of_urls() -> None:
    urls = ["http://a/", "http://a/x/1", "http://a/x/2", "http://b/x/y/1"]
    host, first, second, directory, depth, kind = page_levels(
        urls, np.array([0, 0, 0, 1]), page_types=np.array([1, 0, 0, 0]), path_levels=2
    )
    assert host.tolist() == [0, 0, 0, 1]
    assert first[1] == first[2] != first[3]
    assert directory[1] == directory[2] != directory[3]
    assert second[1] == second[2]
    assert depth.tolist() == [0, 2, 2, 3]
    assert kind.tolist() == [1, 0, 0, 0]


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 10**12)), min_size=1, max_size=60))
def test_pages_are_one_cell_if_no_level_tells_them_apart(rows: list[tuple[int, int, int]]) -> None:
    levels = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    cells = find_cells(levels, len(rows))
    found = [tuple(int(level[cell]) for level in cells.levels) for cell in cells.cell.tolist()]
    assert found == rows
    assert len(set(cells.cell.tolist())) == len(set(rows)) == len(cells.levels[0])


def test_many_cells_outgrow_their_table() -> None:
    level = np.random.default_rng(1).permutation(200_000) // 2
    cells = find_cells([level], len(level))
    assert len(cells.levels[0]) == 100_000
    assert np.array_equal(cells.levels[0][cells.cell], level)
