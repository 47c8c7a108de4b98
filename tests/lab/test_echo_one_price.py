"""The product's policy for hubs: its line of waiting pages, what it learns, and that it learns from the past alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.echo_toy import Gain, Link, make_news, make_world

from bowerbird.lab.echo_data import read_echo_world
from bowerbird.lab.echo_one_price import OnePrice, OnePriceOptions, Waiting, one_price
from bowerbird.lab.echo_paper import paper_policy
from bowerbird.lab.echo_replay import EchoResult, Setting, run
from bowerbird.lab.echo_world import DAY_S, HOUR_S, BoolArray, EchoWorld

X = 0.6
Action = tuple[str, float, float]  # what is done; how many, or which; which of them


def make_rich_and_poor(seed: int = 0) -> EchoWorld:
    """Eight hubs with as many pages; those of the last two have 50 times the clicks of the others."""
    return make_places([(hub, 0, 100.0 if hub >= 6 else 2.0) for hub in range(8)], seed)


def make_top_and_bottom(seed: int = 0) -> EchoWorld:
    """Four hubs alike, whose pages appear at the top of their lists, with many clicks, or below ten others."""
    return make_places([(hub, place, 2.0 if place else 100.0) for hub in range(4) for place in (0, 10, 10)], seed)


def make_places(kinds: list[tuple[int, int, float]], seed: int) -> EchoWorld:
    """Kinds of pages by hub, position and clicks, ten a day each over 8 days; interest halves in 3 hours."""
    rng = np.random.default_rng(seed)
    links: list[Link] = []
    gains: list[Gain] = []
    for hub, place, clicks in kinds:
        for at in rng.uniform(0, 8 * DAY_S, 80).tolist():
            page = len(links)
            links.append((hub, page, at, at + DAY_S, place))
            for hour in range(12):
                made = float(rng.poisson(clicks * (2 ** (-hour / 3) - 2 ** (-(hour + 1) / 3))))
                gains.append((page, at + hour * HOUR_S, at + (hour + 1) * HOUR_S, made))
    return make_world(links, [gain for gain in gains if gain[3]], end_s=8 * DAY_S)


def actions(done: EchoResult, before_s: float = np.inf) -> list[tuple[float, str, int]]:
    """What was fetched, in order."""
    visits = zip(done.visit_s.tolist(), ["hub"] * done.visits, done.visit_hub.tolist(), strict=True)
    pages = zip(done.fetch_s.tolist(), ["page"] * len(done.fetch_s), done.fetch_page.tolist(), strict=True)
    return sorted(action for action in (*visits, *pages) if action[0] < before_s)


def multiply_clicks(world: EchoWorld, which: BoolArray, factor: float = 50.0) -> EchoWorld:
    """A world where some spans have more clicks."""
    return replace(world, gain_clicks=np.where(which, factor * world.gain_clicks, world.gain_clicks))


@given(
    st.lists(
        st.tuples(st.sampled_from(("add", "remove", "keep")), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_the_line_is_a_dictionary(plan: list[Action]) -> None:
    waiting = Waiting()
    model: dict[int, tuple[float, ...]] = {}
    rng = np.random.default_rng(0)
    next_page = 0
    for what, amount, which in plan:
        if what == "add":
            count = int(700 * amount**3)  # the first columns have 1,024 rows
            pages = np.arange(next_page, next_page + count) * 3
            next_page += count
            hub, place = int(10 * which), rng.integers(0, 8, count)
            worth, bid = rng.random(count), rng.random(count)
            waiting.add(pages, {"hub": hub, "place": place, "shown": 1}, 100 * which, worth, bid)
            for nth, page in enumerate(pages.tolist()):
                model[page] = (hub, place[nth], 1, 100 * which, worth[nth], bid[nth])
        elif what == "remove" and model:
            page = sorted(model)[int(which * (len(model) - 1))]
            waiting.remove(waiting.row[page])
            del model[page]
        elif what == "keep":
            kept = np.flatnonzero(rng.random(waiting.count) < amount)
            pages = waiting.columns["page"][kept]
            waiting.keep(kept)
            model = {page: model[page] for page in pages.tolist()}
        assert waiting.count == len(model)
        columns = [waiting.columns[name] for name in ("hub", "place", "shown")]
        columns += [waiting.born_s, waiting.worth, waiting.bid]
        found = {page: tuple(column[row] for column in columns) for page, row in waiting.row.items()}
        assert found == model
        assert waiting.columns["page"][: waiting.count].tolist() == sorted(waiting.row, key=lambda p: waiting.row[p])


def test_the_same_seed_gives_the_same_replay() -> None:
    world = make_news()
    one, two, other = (run(world, one_price(), X, seed) for seed in (3, 3, 4))
    assert actions(one) == actions(two)
    assert actions(one) != actions(other)
    assert len(set(one.fetch_page.tolist())) == len(one.fetch_page)


def test_settings_are_put_to_use() -> None:
    world = make_news(days=8.0)
    usual, other = (run(world, one_price(OnePriceOptions(price_quantile=quantile)), X, 0) for quantile in (0.1, 0.6))
    assert actions(usual) != actions(other)


@pytest.mark.parametrize("seed", range(3))
def test_hubs_of_very_different_profit_are_told_apart(seed: int) -> None:
    world = make_rich_and_poor(seed)
    ours, bfs = run(world, one_price(), 0.4, seed), run(world, paper_policy("bfs"), 0.4, seed)
    assert ours.share > 3 * bfs.share
    often = np.bincount(ours.visit_hub, minlength=8)
    assert often[6:].mean() > 2 * often[:6].mean()


@pytest.mark.parametrize("seed", range(3))
def test_places_in_lists_are_told_apart(seed: int) -> None:
    """Hubs are alike, so that a policy that knows hubs alone can do no better than one that knows nothing."""
    world = make_top_and_bottom(seed)
    ours, bfs, greedy = (
        run(world, make, 0.4, seed) for make in (one_price(), *map(paper_policy, ("bfs", "echo-greedy")))
    )
    assert ours.share > 3 * max(bfs.share, greedy.share)


def test_worthless_pages_are_given_up_and_bids_stay_numbers() -> None:
    made: list[OnePrice] = []

    def make(setting: Setting, rng: np.random.Generator) -> OnePrice:
        made.append(OnePrice(setting, rng, OnePriceOptions()))
        return made[0]

    world = make_places([(hub, 0, 100.0 if hub >= 6 else 0.0) for hub in range(8)], 0)
    done = run(world, make, 0.3, 0)
    policy = made[0]
    found = int(np.isfinite(done.found_s).sum())
    assert policy.waiting.count < 0.75 * (found - len(done.fetch_page))
    assert np.isfinite(policy.waiting.bid[: policy.waiting.count]).all()
    assert np.isfinite(policy._hub_bid).all()
    assert policy.price > 0


def test_a_world_without_clicks_is_crawled_all_the_same() -> None:
    world = make_news()
    silent = replace(world, gain_clicks=np.zeros(len(world.gain_clicks)))
    done = run(silent, one_price(), X, 0)
    assert done.idle == 0
    assert done.fetched_share > 0.3


def test_nothing_is_known_of_pages_that_are_not_fetched() -> None:
    world = make_rich_and_poor()
    done = run(world, one_price(), 0.4, 0)
    fetched_at = np.full(world.page_count, np.inf)
    fetched_at[done.fetch_page] = done.fetch_s
    never = multiply_clicks(world, np.isinf(fetched_at[world.gain_page]))
    assert never.bound > 10 * world.bound
    assert actions(run(never, one_price(), 0.4, 0)) == actions(done)
    # nor of a fetched page before its fetch, and in the bin of the fetch
    before = multiply_clicks(world, world.gain_to_s <= fetched_at[world.gain_page])
    assert before.bound > 2 * world.bound
    assert actions(run(before, one_price(), 0.4, 0)) == actions(done)
    # but what follows the fetch is learnt from
    after = multiply_clicks(world, (world.gain_from_s >= fetched_at[world.gain_page]) & (world.gain_page % 5 == 0))
    assert actions(run(after, one_price(), 0.4, 0)) != actions(done)


def test_profits_permuted_among_pages_not_yet_fetched_change_nothing_until_they_are() -> None:
    world = make_rich_and_poor()
    done = run(world, one_price(), 0.4, 0)
    then_s = 4 * DAY_S
    fetched_at = np.full(world.page_count, np.inf)
    fetched_at[done.fetch_page] = done.fetch_s
    later = np.flatnonzero(fetched_at >= then_s)
    swapped = np.arange(world.page_count)
    swapped[later] = np.random.default_rng(1).permutation(later)
    page = swapped[world.gain_page]
    shift = world.appeared_s[page] - world.appeared_s[world.gain_page]
    order = np.lexsort((world.gain_from_s + shift, page))
    other = replace(
        world,
        gain_page=page[order],
        gain_from_s=(world.gain_from_s + shift)[order],
        gain_to_s=(world.gain_to_s + shift)[order],
        gain_clicks=world.gain_clicks[order],
    )
    assert other.bound == pytest.approx(world.bound)
    again = run(other, one_price(), 0.4, 0)
    assert actions(again, then_s) == actions(done, then_s)
    assert actions(again) != actions(done)


def test_what_happens_later_changes_nothing_now() -> None:
    world = make_rich_and_poor()
    then_s = 4 * DAY_S
    done = run(world, one_price(), 0.4, 0)
    clicks = multiply_clicks(world, (world.gain_from_s >= then_s) & (world.gain_page % 5 == 0))
    links = replace(world, link_hub=np.where(world.link_from_s >= then_s, 7 - world.link_hub, world.link_hub))
    for other in (clicks, links):
        again = run(other, one_price(), 0.4, 0)
        assert actions(again, then_s) == actions(done, then_s)
        assert actions(again) != actions(done)


def test_clicks_are_heard_when_they_are_told() -> None:
    """Until the next push two worlds whose clicks differ are one."""
    world = make_rich_and_poor()
    then_s = 2 * DAY_S
    other = multiply_clicks(world, (world.gain_from_s >= then_s) & (world.gain_page % 2 == 0), 1e4)
    one, two = (run(each, one_price(), 0.4, 0, push_s=DAY_S) for each in (world, other))
    assert actions(one, then_s + DAY_S) == actions(two, then_s + DAY_S)
    assert actions(one) != actions(two)


def test_a_floor_on_globo(shared_data: Path) -> None:
    world = read_echo_world("globo", shared_data / "globo")
    done = run(world, one_price(), 0.43, 0)
    assert done.share >= 0.45
    assert done.share > 1.3 * run(world, paper_policy("bfs"), 0.43, 0).share
    assert done.fetches["idle"] == 0
