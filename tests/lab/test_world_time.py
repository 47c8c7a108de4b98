from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.lab.world import World, WorldSpec
from bowerbird.lab.world.spec import DAY_S
from bowerbird.lab.world.web import Kind


@pytest.fixture(scope="module")
def world() -> World:
    mix = ((0.3, 0.0), (0.4, 2.0), (0.3, 12.0))
    return World(WorldSpec(seed=3, hosts=6, pages=300, change_mix=mix, validator_share=1.0, articles_per_day=60))


def body(world: World, page: int, t: float) -> bytes:
    return world.page(*world.location(page), t).body


def test_a_page_changes_exactly_at_its_versions(world: World) -> None:
    start = world.spec.start_s
    checked = 0
    for page in range(0, 300, 3):
        if world.web.kind[page] == Kind.REDIRECT or world.gone_s(page) < start + 2 * DAY_S:
            continue
        changes = world.versions(page, start, start + 2 * DAY_S)
        for before, change in zip([None, *changes], changes, strict=False):
            if before and change.at_s - before.at_s < 2e-3:
                continue
            earlier = world.page(*world.location(page), change.at_s - 1e-3)
            later = world.page(*world.location(page), change.at_s + 1e-3)
            assert earlier.body != later.body
            assert earlier.etag != later.etag
            assert later.modified_s == pytest.approx(change.at_s, abs=1e-3)
            is_hub = world.web.kind[page] == Kind.HUB
            if not is_hub:
                same = world.text(page, change.at_s - 1e-3) == world.text(page, change.at_s + 1e-3)
                assert same != change.significant
            checked += 1
    assert checked > 300


@settings(max_examples=60)
@given(page=st.integers(0, 299), first=st.floats(0, 9), second=st.floats(0, 9))
def test_between_versions_nothing_changes(world: World, page: int, first: float, second: float) -> None:
    t0, t1 = sorted(world.spec.start_s + days * DAY_S for days in (first, second))
    if t0 < world.gone_s(page) <= t1 or world.versions(page, t0, t1):
        return
    assert world.page(*world.location(page), t0) == world.page(*world.location(page), t1)


@settings(max_examples=60)
@given(page=st.integers(0, 299), cuts=st.lists(st.floats(0, 9), min_size=3, max_size=3))
def test_versions_of_parts_make_the_whole(world: World, page: int, cuts: list[float]) -> None:
    a, b, c = sorted(world.spec.start_s + days * DAY_S for days in cuts)
    assert world.versions(page, a, b) + world.versions(page, b, c) == world.versions(page, a, c)


def test_changes_come_at_the_given_rate() -> None:
    mix = ((1.0, 6.0),)
    world = World(WorldSpec(hosts=1, pages=60, change_mix=mix, articles_per_day=0, significant_share=0.25))
    start, days = world.spec.start_s, 30
    pages = np.flatnonzero(world.web.kind == Kind.LEAF).tolist()
    changes = [world.versions(page, start, start + days * DAY_S) for page in pages]
    expected = sum(world.rate_per_day(page) for page in pages) * days
    total = sum(map(len, changes))
    assert abs(total - expected) < 4 * math.sqrt(expected)
    significant = sum(change.significant for one in changes for change in one) / total
    assert significant == pytest.approx(0.25, abs=0.03)


def test_most_pages_never_change() -> None:
    world = World(WorldSpec(pages=2_000))
    rates = np.array([world.rate_per_day(page) for page in range(2_000)])
    assert (rates == 0).mean() == pytest.approx(0.7, abs=0.05)
    assert 0 < (rates > 10).mean() < 0.05


def test_articles_are_listed_for_a_while_and_stay_afterwards(world: World) -> None:
    start = world.spec.start_s
    articles = world.articles(start + 2 * DAY_S, start + 3 * DAY_S)
    assert 30 < len(articles) < 95
    listed_s = world.spec.listed_days * DAY_S
    endings = set()
    for article in articles[:40]:
        host, path = world.location(article.page)
        home = world.find(host, "/", start)
        assert home is not None
        at = article.published_s
        assert world.page(host, path, at - 1).status == 404
        assert world.page(host, path, at).status == 200
        assert article.page not in world.links(home, at - 1)
        assert article.page in world.links(home, at)
        assert f'href="{path}"'.encode() in world.page(host, "/", at).body
        assert article.page not in world.links(home, at + listed_s)
        assert world.page(host, path, at + 20 * DAY_S).status == 200
        newer = [one for one in world.articles(at, at + listed_s - 1) if one.host == article.host]
        pushed_out = len(newer) >= world.spec.listed_most
        assert (article.page in world.links(home, at + listed_s - 1)) != pushed_out
        endings.add(pushed_out)
    assert endings == {True, False}


def test_interest_decays_with_the_topic_and_adds_up_to_all_clicks(world: World) -> None:
    article = world.articles(0, world.spec.start_s + DAY_S)[3]
    mu, at = world.decay(article.topic), article.published_s
    assert world.interest(article.page, at - 1) == 0
    ratio = world.interest(article.page, at + 5_000) / world.interest(article.page, at)
    assert ratio == pytest.approx(math.exp(-mu * 5_000))
    ages = np.linspace(0, 20 / mu, 4_001)
    clicks = np.trapezoid([world.interest(article.page, at + age) for age in ages], ages)
    assert clicks == pytest.approx(article.clicks, rel=1e-2)
    assert len({world.decay(topic) for topic in range(world.spec.topics)}) == world.spec.topics


def test_initial_pages_share_their_clicks(world: World) -> None:
    total = sum(world.interest(page, world.spec.start_s) for page in range(300)) * DAY_S
    assert total == pytest.approx(world.spec.clicks_per_day)


def test_gone_pages_disappear_for_good() -> None:
    world = World(WorldSpec(pages=600, gone_share=0.3))
    gone = [page for page in range(600) if world.gone_s(page) < math.inf]
    statuses = set()
    for page in gone:
        place, at = world.location(page), world.gone_s(page)
        assert world.page(*place, at - 1).status == 200
        statuses |= {world.page(*place, at).status, world.page(*place, at + 99 * DAY_S).status}
        assert world.interest(page, at) == 0
    assert statuses == {404, 410}


def test_a_frozen_world_stands_still() -> None:
    world = World(WorldSpec(pages=200, frozen=True))
    start, later = world.spec.start_s, world.spec.start_s + 300 * DAY_S
    places = sorted(world.reachable(start))
    assert world.reachable(later) == set(places)
    assert all(world.page(*place, start) == world.page(*place, later) for place in places)
    assert world.articles(start, later) == []
    assert not any(world.versions(page, start, later) for page in range(200))


def test_a_world_may_begin_at_any_hour() -> None:
    world = World(WorldSpec(pages=100, hosts=3, start_s=1_767_225_600.0 + 50_000.0))
    t = world.spec.start_s + 2 * DAY_S
    articles = world.articles(0, t)
    assert len(articles) > 100
    assert [world.find(*world.location(a.page), t) for a in articles] == [a.page for a in articles]
