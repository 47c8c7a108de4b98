"""Distinct virtual degrees: exact ones against the co-citation matrix, sketched ones against exact ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.virtual_degree import (
    exact_virtual_degree,
    hyperloglog_size,
    sketched_virtual_degree,
    virtual_degree,
)


def skewed_graph(seed: int, count: int, edges: int) -> FrontierGraph:
    rng = np.random.default_rng(seed)
    targets = (count * rng.random(edges) ** 3).astype(np.int64)
    return make_graph(rng.integers(0, count, edges), targets, count, rng.random(count) < 0.7)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_exact_degrees_are_those_of_the_co_citation_matrix(seed: int, count: int, edges: int) -> None:
    graph = skewed_graph(seed, count, edges)
    links = np.zeros((count, count))
    for page in range(count):
        links[page, graph.targets[graph.starts[page] : graph.starts[page + 1]]] = 1.0
    together = links.T @ links > 0
    np.fill_diagonal(together, False)
    together[~graph.crawled] = False
    np.testing.assert_array_equal(exact_virtual_degree(graph), together.sum(axis=1))


@pytest.mark.parametrize("registers", [64, 256, 1024])
def test_sketched_degrees_are_within_the_bound_of_hyperloglog(registers: int) -> None:
    graph = skewed_graph(1, 20_000, 160_000)
    exact, sketched = exact_virtual_degree(graph), sketched_virtual_degree(graph, registers=registers)
    known = exact > 0
    assert exact.max() > 10 * 1024  # far above the small sets that are nearly counted
    error = sketched[known] / exact[known] - 1.0
    bound = 1.04 / np.sqrt(registers)
    assert abs(error.mean()) < bound  # hash values are shared, so errors of pages with common neighbours are alike
    assert np.sqrt(np.mean(error**2)) < 1.25 * bound
    assert np.mean(np.abs(error) < 3 * bound) > 0.98
    assert (sketched[~known] < 0.05).all()


@pytest.mark.parametrize("size", [1, 10, 100, 1000, 20_000])
def test_the_estimate_is_unbiased_for_small_and_large_sets(size: int) -> None:
    """Registers filled as a perfect hash would fill them."""
    rng, registers, sets = np.random.default_rng(size), 256, 300
    powers, empty = np.zeros(sets), np.zeros(sets, np.int64)
    for i in range(sets):
        values = np.zeros(registers, np.int64)
        np.maximum.at(values, rng.integers(0, registers, size), rng.geometric(0.5, size))
        powers[i], empty[i] = (0.5 ** values[values > 0]).sum(), (values == 0).sum()
    error = hyperloglog_size(powers, empty, registers) / size - 1.0
    bound = 1.04 / np.sqrt(registers)
    assert abs(error.mean()) < 4 * bound / np.sqrt(sets)
    assert error.std() < 1.25 * bound


def test_large_graphs_are_sketched_and_small_ones_counted() -> None:
    graph = skewed_graph(2, 2000, 16_000)
    exact = exact_virtual_degree(graph)
    np.testing.assert_array_equal(virtual_degree(graph), exact)
    sketched = virtual_degree(graph, exact_steps=1000, registers=64)
    assert not np.array_equal(sketched, exact)
    assert np.corrcoef(sketched, exact)[0, 1] > 0.9
    assert (sketched[~graph.crawled] == 0).all()


def test_registers_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="registers is 100"):
        sketched_virtual_degree(skewed_graph(3, 10, 20), registers=100)
