from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bowerbird.demand.visibility import PowerLaw
from bowerbird.lab.searchers import Habits, Searchers
from bowerbird.lab.world import World, WorldSpec
from bowerbird.lab.world.spec import DAY_S

SPEC = WorldSpec(seed=3, hosts=6, pages=300, topics=5)


@pytest.fixture(scope="module")
def world() -> World:
    return World(SPEC)


def searchers(world: World, seed: int = 1, **habits: float) -> Searchers:
    return Searchers(world, np.random.default_rng(seed), Habits(queries=100, **habits))


def test_queries_are_asked_by_zipfs_law(world: World) -> None:
    people = searchers(world, drift_per_day=0.0)
    asked = Counter(people.ask(SPEC.start_s) for _ in range(5000))
    expected = people.frequency(SPEC.start_s)
    assert len(people.queries) == len(set(people.queries)) == 100
    assert expected[0] / expected[9] == pytest.approx(10**0.9)
    first = " ".join(people.queries[0])
    assert asked[first] == pytest.approx(5000 * expected[0], rel=0.15)


def test_equal_seeds_ask_equal_queries(world: World) -> None:
    one, other = (searchers(world, seed=5) for _ in range(2))
    times = SPEC.start_s + np.arange(50) * 3600.0
    assert [one.ask(t) for t in times] == [other.ask(t) for t in times]


def test_popularity_drifts_and_stays_a_distribution(world: World) -> None:
    people = searchers(world, drift_per_day=0.5)
    before = people.frequency(SPEC.start_s).copy()
    after = people.frequency(SPEC.start_s + 5 * DAY_S)
    assert np.isclose(after.sum(), 1.0)
    assert sorted(before) == pytest.approx(sorted(after))
    assert np.mean(before != after) > 0.5


def test_ranks_are_clicked_as_they_are_seen(world: World) -> None:
    people = searchers(world)
    page = next(page for page in range(len(world.web.kind)) if world.gone_s(page) == float("inf"))
    words = people._text(page, SPEC.start_s)
    word = max((word for word in words if len(word) > 4), key=lambda word: words[word])
    url = world.url(page)
    assert people.relevance(word, url, SPEC.start_s) == 1.0
    clicks = np.zeros(5)
    for _ in range(4000):
        for rank in people.look(word, [url] * 5, SPEC.start_s):
            clicks[rank - 1] += 1
    assert clicks / 4000 == pytest.approx(0.9 * PowerLaw()(np.arange(1.0, 6.0)), abs=0.04)


def test_what_is_not_there_gets_no_click(world: World) -> None:
    people = searchers(world)
    leaving = next(page for page in range(world.web.size) if world.gone_s(page) < float("inf"))
    assert people.relevance("the", world.url(leaving), world.gone_s(leaving) + 1.0) == 0.0
    assert people.relevance("the", "http://elsewhere.example/", SPEC.start_s) == 0.0
    assert people.relevance("the", f"http://{world.hosts[0]}/no/such/page", SPEC.start_s) == 0.0
    assert people.relevance("nosuchword", world.url(0), SPEC.start_s) == 0.0
    assert people.look("the", [], SPEC.start_s) == []
