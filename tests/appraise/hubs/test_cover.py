"""Greedy cover: by hand, against the plain greedy, against the best by trying all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.hubs.cover import greedy_cover

HUBS, PAGES = 8, 20
pairs = st.lists(st.tuples(st.integers(0, HUBS - 1), st.integers(0, PAGES - 1)), max_size=60)
weights = st.lists(st.integers(0, 9), min_size=PAGES, max_size=PAGES)


def plain_greedy(links: list[tuple[int, int]], weight: list[int], wanted: float) -> list[int]:
    announced = [{page for hub, page in links if hub == h} for h in range(HUBS)]
    covered: set[int] = set()
    order = []
    while sum(weight[page] for page in covered) < wanted:
        gains = [sum(weight[page] for page in pages - covered) for pages in announced]
        best = max(range(HUBS), key=lambda h: (gains[h], -h))
        order.append(best)
        covered |= announced[best]
    return order


@given(links=pairs, weight=weights, share=st.sampled_from([0.3, 0.8, 1.0]))
@settings(deadline=None)
def test_it_is_the_plain_greedy(links: list[tuple[int, int]], weight: list[int], share: float) -> None:
    hub, page = [link[0] for link in links], [link[1] for link in links]
    found = greedy_cover(hub, page, HUBS, PAGES, weight, share)
    total = sum(weight[p] for p in set(page))
    if total == 0:
        assert len(found.order) == 0
        return
    assert found.order.tolist() == plain_greedy(links, weight, share * total * (1 - 1e-9))
    assert found.covered[-1] >= share * (1 - 1e-9)
    assert len(found.order) == 1 or found.covered[-2] < share


@given(links=pairs, weight=weights)
@settings(deadline=None, max_examples=40)
def test_it_is_near_the_best(links: list[tuple[int, int]], weight: list[int]) -> None:
    hub, page = [link[0] for link in links], [link[1] for link in links]
    found = greedy_cover(hub, page, HUBS, PAGES, weight, 1.0)
    total = sum(weight[p] for p in set(page))
    announced = [{p for h, p in links if h == one} for one in range(HUBS)]
    for k in range(1, len(found.order) + 1):
        best = max(
            sum(weight[p] for p in set().union(*(announced[h] for h in chosen)))
            for chosen in itertools.combinations(range(HUBS), k)
        )
        assert found.covered[k - 1] * total >= (1 - 1 / math.e) * best - 1e-9


def test_few_hubs_cover_most_of_a_skewed_world() -> None:
    rng = np.random.default_rng(1)
    hub = np.minimum(10_000 * rng.random(300_000) ** 4, 9_999).astype(np.int64)
    page = rng.integers(0, 50_000, 300_000)
    found = greedy_cover(hub, page, 10_000, 50_000)
    assert len(found.order) < 1000
    assert found.covered[-1] == pytest.approx(0.8, abs=0.01)
    assert (np.diff(np.diff(np.concatenate([[0.0], found.covered]))) <= 1e-12).all()


def test_nothing_to_cover() -> None:
    assert len(greedy_cover([], [], 5, 5).order) == 0
    assert len(greedy_cover([], [], 0, 0).order) == 0
    assert len(greedy_cover([1], [1], 3, 3, [0.0, 0.0, 0.0]).order) == 0
