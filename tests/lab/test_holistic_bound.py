"""The clairvoyant bound: no policy gains more, not even the best of all plans."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.lab.holistic_toy import DEEP, FRESH, LATER, LINKED, SEED, hand_made, small_world

from bowerbird.lab.holistic_bound import bound_clicks, list_moments, plan_all, step_of
from bowerbird.lab.holistic_crawl import HolisticCrawl
from bowerbird.lab.holistic_policies import AUTO, BREADTH_FIRST, CLAIRVOYANT, NOTHING, quota_names
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_world import HOUR_S, START_S, HolisticWorld

CHANGES = ((0.5, SEED, 0.5), (2.5, LINKED, 0.9), (3.0, DEEP, 0.3), (3.5, SEED, 0.2))


def short_world(hours: int, fetches_per_hour: float = 1.0) -> HolisticWorld:
    """Some hours in which pages change and appear."""
    world = hand_made(CHANGES)
    return replace(world, end_s=START_S + hours * HOUR_S, budgets=(fetches_per_hour * 24.0,))


def best_of_all_plans(world: HolisticWorld) -> float:
    """What somebody gets with a fetch an hour who knows all pages, by trying every plan."""
    start = HolisticCrawl(world, 0)
    start.learn(np.array([LINKED, DEEP]), 0)
    most = 0.0
    for plan in itertools.product((None, LINKED, DEEP, SEED, FRESH, LATER), repeat=world.steps):
        crawl = copy.deepcopy(start, {id(world): world})
        clicks = 0.0
        for page in plan:
            if page is not None and world.born_s[page] <= crawl.now:
                crawl.learn(np.array([page]), 0)
                crawl.fetch(int(crawl.row_of[page]))
            clicks += crawl.pass_step()
        most = max(most, clicks)
    return most


def test_no_plan_passes_it_and_it_is_near_the_best_one() -> None:
    world = short_world(4)
    best = best_of_all_plans(world)
    bound = bound_clicks(HolisticCrawl(world, 0), world.budgets[0])
    assert best <= bound * (1.0 + 1e-9)
    assert bound <= 1.1 * best


def test_fetches_that_cost_nothing_get_all_and_those_that_cost_too_much_none() -> None:
    world = short_world(6)
    crawl = HolisticCrawl(world, 0)
    crawl.fetch(int(crawl.row_of[SEED]))
    moments = list_moments(crawl, np.array([0, 3]))
    fetches = np.zeros(2)
    assert plan_all(moments, np.zeros(2), fetches) == pytest.approx(world.ideal.sum())
    assert fetches.sum() >= 5
    none = np.zeros(2)
    # 1.8 clicks an hour; half is left from the second hour on, and four fifths of that from the fifth on
    alone = 1.8 * (1 + 0.5 * 3 + 0.4 * 2)
    assert plan_all(moments, np.full(2, 1e9), none) == pytest.approx(alone)
    assert not none.any()
    assert float(replay(crawl, NOTHING, world.budgets[0], 0).clicks.sum()) == pytest.approx(alone)


def test_a_price_that_falls_puts_fetches_off() -> None:
    world = short_world(6)
    moments = list_moments(HolisticCrawl(world, 0), np.array([0, 2, 4]))
    early, late = np.zeros(3), np.zeros(3)
    plan_all(moments, np.array([1.0, 1.0, 1.0]), early)
    plan_all(moments, np.array([30.0, 30.0, 1.0]), late)
    assert early[0] > late[0]
    assert late[2] > early[2]


def test_things_show_from_the_next_step_on() -> None:
    world = short_world(6)
    at = START_S + np.array([-5.0, 0.0, 0.5, 1.0, 1.001]) * HOUR_S
    assert step_of(world, at).clip(0).tolist() == [0, 0, 1, 1, 2]
    assert int(step_of(world, np.array([-np.inf]))[0]) <= 0


@pytest.mark.parametrize("seed", [0, 1])
def test_no_policy_passes_it(seed: int) -> None:
    warm = warm_up(small_world(seed), seed)
    for budget in warm.world.budgets:
        bound = bound_clicks(warm, budget)
        for policy in (AUTO, BREADTH_FIRST, CLAIRVOYANT, NOTHING, quota_names()[-1], quota_names()[0]):
            assert float(replay(warm, policy, budget, seed).clicks.sum()) <= bound
    ideal = float(warm.world.ideal[warm.world.warm_steps :].sum())
    assert bound_clicks(warm, 1e5) == pytest.approx(ideal, rel=1e-3)
    assert bound_clicks(warm, warm.world.budgets[0]) < 0.95 * ideal
