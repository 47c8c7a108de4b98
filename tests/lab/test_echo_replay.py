"""The replay of hubs: what a policy is shown, and what its fetches are worth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lab.echo_toy import Script, fetch, make_news, make_world, visit

from bowerbird.lab.echo_discovery import DISCOVERIES, discovery_policy
from bowerbird.lab.echo_paper import PAPER_POLICIES, paper_policy
from bowerbird.lab.echo_replay import run
from bowerbird.lab.echo_world import EchoWorld

#: page 0 on both hubs, page 1 gone soon, page 2 late, page 3 old
LINKS = [
    (0, 0, 100.0, 9000.0, 0),
    (1, 0, 2000.0, 8000.0, 0),
    (0, 1, 150.0, 400.0, 0),
    (1, 2, 5000.0, 9000.0, 5),
    (0, 3, 0.0, 9000.0, 0),
]
GAINS = [(0, 100.0, 1100.0, 100.0), (0, 2400.0, 4800.0, 60.0), (1, 150.0, 400.0, 50.0), (2, 5000.0, 6000.0, 10.0)]


def replay(world: EchoWorld, script: Script, **options: float):  # type: ignore[no-untyped-def]
    return run(world, script, 1.0, fetches_per_s=1 / 500, **options)


@pytest.fixture
def world() -> EchoWorld:
    return make_world(LINKS, GAINS, old=[3])


def test_profit_bound_and_rate(world: EchoWorld) -> None:
    assert world.total_profit.tolist() == [160.0, 50.0, 10.0, 0.0]
    assert world.bound == 220.0
    assert world.new_rate_per_s == 3 / 10_000
    assert world.profit_between(np.array([0, 0]), np.array([600.0, 3600.0]), np.array([1e9, 4200.0])).tolist() == [
        110,
        15,
    ]


def test_what_a_fetch_is_worth(world: EchoWorld) -> None:
    script = Script([visit(0), fetch(0), None, visit(1)])
    done = replay(world, script)
    assert script.visits[0] == (500.0, 0, [3, 0], [0], [1]) or script.visits[0] == (500.0, 0, [0, 3], [0], [0])
    assert done.fetch_s.tolist() == [1000.0]
    assert done.fetch_profit.tolist() == [10.0 + 60.0]
    assert done.share == 70 / 220
    assert done.fetched_share == pytest.approx(1 / 3)
    assert done.fetches == {"hubs": 2, "pages": 1, "idle": 17}


def test_missed_pages_are_those_that_came_and_went(world: EchoWorld) -> None:
    done = replay(world, Script([visit(0), visit(1)]))
    assert done.missed.tolist() == [False, True, True, False]
    assert done.found == pytest.approx(1 / 3)
    assert done.found_delay_s.tolist() == [400.0]
    late = replay(world, Script([None] * 10 + [visit(1)]))
    assert np.isfinite(late.found_s).tolist() == [True, False, True, False]


def test_a_page_is_fresh_once_on_any_hub(world: EchoWorld) -> None:
    script = Script([visit(0), None, None, None, visit(1), visit(0)])
    replay(world, script)
    assert [one[3] for one in script.visits] == [[0], [], []]
    assert script.visits[1][2] == [0]


def test_later_links_push_earlier_ones_down() -> None:
    links = [(0, 0, 1.0, 9e3, 0), (0, 1, 2.0, 9e3, 0), (0, 2, 3.0, 9e3, 1), (0, 3, 4.0, 450.0, 0), (0, 4, 5.0, 9e3, 9)]
    world = make_world(links, [(0, 1.0, 2.0, 1.0)])
    script = Script([visit(0), visit(0)])
    replay(world, script)
    assert script.visits[0][2] == [1, 2, 0, 4]
    assert script.visits[0][3] == [1, 2, 0, 4]
    assert script.visits[1][3] == []


def test_clicks_are_told_late_in_whole_bins_and_only_of_fetched_pages(world: EchoWorld) -> None:
    script = Script([visit(0), fetch(0)])
    replay(world, script)
    assert [at for at, _ in script.pushes] == [3600.0, 7200.0]
    first, second = (rows for _, rows in script.pushes)
    assert first == [(0, 2400.0, pytest.approx(30.0))]  # the bin of the fetch is not told; page 1 and 2 never
    assert second == [(0, 3600.0, pytest.approx(30.0))]
    rarely = Script([visit(0), fetch(0)])
    replay(world, rarely, push_s=7200.0)
    assert rarely.pushes == [(7200.0, [(0, 2400.0, pytest.approx(30.0)), (0, 3600.0, pytest.approx(30.0))])]


@pytest.mark.parametrize("choices", [[fetch(0)], [visit(0), fetch(3)], [visit(0), fetch(0), fetch(0)]])
def test_what_was_not_seen_or_is_fetched_cannot_be_chosen(world: EchoWorld, choices: list) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match="cannot choose"):
        replay(world, Script(choices))


def test_curves_add_up_to_the_profit(world: EchoWorld) -> None:
    done = replay(world, Script([visit(0), fetch(0)]))
    ends, made = done.profit_curve(2500.0)
    assert ends.tolist() == [2500.0, 5000.0, 7500.0, 10_000.0]
    assert (made * 2500.0).sum() == pytest.approx(done.fetch_profit.sum())
    assert (done.bound_curve(2500.0) * 2500.0).tolist() == pytest.approx([210.0, 0.0, 10.0, 0.0])


def test_another_span_of_the_same_world(world: EchoWorld) -> None:
    later = world.during(1000.0, 9000.0, 2000.0, 8000.0)
    assert later.old.tolist() == [True, True, False, True]
    assert later.bound == 10.0
    assert later.new_rate_per_s == 1 / 8000
    assert world.bound == 220.0


@pytest.mark.parametrize("policy", PAPER_POLICIES)
def test_the_same_seed_gives_the_same_replay(policy: str) -> None:
    world = make_news()
    one, two, other = (run(world, paper_policy(policy), 0.6, seed) for seed in (3, 3, 4))
    assert one.fetch_page.tolist() == two.fetch_page.tolist()
    assert one.visit_hub.tolist() == two.visit_hub.tolist()
    assert one.visit_hub.tolist() != other.visit_hub.tolist()
    assert len(set(one.fetch_page.tolist())) == len(one.fetch_page)
    assert 0.0 < one.share < 1.0
    assert one.fetched_share <= one.found


@pytest.mark.parametrize("policy", DISCOVERIES)
def test_discovery_only_visits(policy: str) -> None:
    world = make_news()
    slow, fast = (run(world, discovery_policy(policy), 1.0, 0, fetches_per_s=rate / 3600) for rate in (0.5, 20.0))
    assert not len(fast.fetch_page)
    assert fast.found > slow.found
    assert np.median(fast.found_delay_s) < np.median(slow.found_delay_s)
