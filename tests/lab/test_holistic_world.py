"""Holistic worlds: what there is to be had, and what a crawl is shown of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.holistic_toy import DEEP, FRESH, LATER, LINKED, MAIN, SEED, SMALL, hand_made, small_world

from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_made import MADE, draw_settings, make_world
from bowerbird.lab.holistic_replay import kinds_left
from bowerbird.lab.holistic_world import DAY_S, HOUR_S, START_S
from bowerbird.model.bid import saturating_gain
from bowerbird.model.url_state import UrlState


def known(crawl: HolisticCrawl) -> set[int]:
    return set(crawl.page[: crawl.count].tolist())


def fetch(crawl: HolisticCrawl, page: int) -> None:
    crawl.fetch(int(crawl.row_of[page]))


def test_clicks_left_are_the_sum_of_what_is_clicked() -> None:
    world = hand_made()
    pages, at = np.array([LINKED, FRESH]), START_S + 10 * HOUR_S
    step_s = 60.0
    times = np.arange(at, world.end_s, step_s) + 0.5 * step_s
    added = sum(world.clicks_per_s(pages, float(time)) * step_s for time in times)
    assert world.clicks_left(pages, at) == pytest.approx(added, rel=1e-3)
    assert world.clicks_left(np.array([FRESH]), START_S + 2 * HOUR_S)[0] == pytest.approx(
        100.0 * -math.expm1(-math.log(2.0) * 46.0 / 4.0)
    )


def test_the_ideal_is_all_that_exists() -> None:
    world = hand_made()
    assert world.ideal[0] == pytest.approx(12.6)
    assert world.ideal[2] == pytest.approx(12.6 + 100.0 * (1.0 - 0.5**0.25))  # FRESH is born with this step


def test_a_page_is_hidden_until_something_fetched_leads_to_it() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    assert known(crawl) == {MAIN, SEED}
    fetch(crawl, MAIN)
    assert known(crawl) == {MAIN, SEED, LINKED}
    fetch(crawl, LINKED)
    assert DEEP in known(crawl)
    crawl.now = START_S + 3 * HOUR_S
    assert FRESH not in known(crawl)
    fetch(crawl, MAIN)
    assert FRESH in known(crawl)
    assert LATER not in known(crawl)
    assert crawl.hub_visits.found == [1]
    assert crawl.hub_visits.gap_s == [3 * HOUR_S]
    assert int(crawl.columns.source[crawl.row_of[FRESH]]) == int(crawl.row_of[MAIN])


def test_a_hub_shows_its_last_announcements_only() -> None:
    crawl = HolisticCrawl(hand_made(shown=1), 0)
    fetch(crawl, MAIN)
    crawl.now = START_S + 6 * HOUR_S
    fetch(crawl, MAIN)
    assert LATER in known(crawl)
    assert FRESH not in known(crawl)


def test_a_missed_change_costs_clicks_until_the_next_fetch() -> None:
    crawl = HolisticCrawl(hand_made([(0.5, SEED, 0.4), (1.5, SEED, 0.5)]), 0)
    fetch(crawl, SEED)
    assert crawl.pass_step() == pytest.approx(1.8)
    assert crawl.pass_step() == pytest.approx(1.8 * 0.6)
    assert crawl.pass_step() == pytest.approx(1.8 * 0.3)
    row = int(crawl.row_of[SEED])
    # loss of each change times how long after the fetch it came
    expected = 1.8 / HOUR_S * (0.4 * 0.5 + 0.3 * 1.5) * HOUR_S
    assert crawl.gain_of_page(row) == pytest.approx(expected)
    fetch(crawl, SEED)
    assert crawl.visits.shift == [pytest.approx(0.7)]
    assert crawl.visits.gain[0] == pytest.approx(0.7 / 0.3, rel=0.2)  # of what was clicked in the step before
    assert crawl.gain_of_page(row) == 0.0
    assert crawl.pass_step() == pytest.approx(1.8)


def test_a_refresh_gains_no_longer_than_there_is_time() -> None:
    crawl = HolisticCrawl(hand_made([(40.5, SEED, 0.5)]), 0)
    fetch(crawl, SEED)
    for _ in range(42):
        crawl.pass_step()
    assert crawl.gain_of_page(int(crawl.row_of[SEED])) == pytest.approx(1.8 * 0.5 * 6.0)  # of 48 hours six are left


def test_the_realised_gain_of_a_refresh_is_the_index_on_average() -> None:
    """E of loss·(when - last fetch) of the first change is (q/Delta)·g(Delta·tau)."""
    rng, rate, age = np.random.default_rng(5), 1.0 / DAY_S, 1.3 * DAY_S
    when = rng.exponential(1.0 / rate, 200_000)
    realised = np.where(when < age, when, 0.0)
    assert realised.mean() == pytest.approx(saturating_gain(rate * age) / rate, rel=0.02)


def test_the_realised_gain_of_a_hub_is_net_of_pages_and_of_waiting() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    fetch(crawl, MAIN)
    row, world = int(crawl.row_of[MAIN]), crawl.world
    crawl.now = START_S + 3 * HOUR_S
    now, late = world.clicks_left(np.array([FRESH, FRESH]), np.array([crawl.now, START_S + 5 * HOUR_S]))
    assert crawl.gain_of_visit(row, 0.0, telling=True) == pytest.approx(now - late)
    assert crawl.gain_of_visit(row, float(late) + 1.0, telling=True) == pytest.approx(now - late - 1.0)
    assert crawl.gain_of_visit(row, float(now), telling=True) == 0.0
    # its pages have 100 and 50 clicks: 75 as far as anybody can tell
    assert crawl.gain_of_visit(row, 0.0) == pytest.approx(0.75 * (now - late))
    assert crawl.gain_of_visit(row, 0.75 * float(now)) == 0.0
    assert crawl.gain_of_visit(int(crawl.row_of[SEED]), 0.0) == 0.0


def test_clicks_are_told_a_step_late_and_of_fetched_pages_only() -> None:
    crawl = HolisticCrawl(hand_made(), 1)
    fetch(crawl, MAIN)
    fetch(crawl, LINKED)
    crawl.pass_step()
    assert crawl.clicks.sum() == 0.0
    for _ in range(20):
        crawl.pass_step()
    assert crawl.clicks[crawl.row_of[LINKED]] == pytest.approx(20 * 3.6, rel=0.5)
    assert crawl.clicks.sum() == crawl.clicks[crawl.row_of[LINKED]]
    assert crawl.heard_until_s == START_S + 20 * HOUR_S


def test_kinds_of_fetches() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    fetch(crawl, SEED)
    kinds = {int(crawl.page[row]): Kind(int(kind)) for row, kind in enumerate(crawl.kinds())}
    assert kinds == {MAIN: Kind.HUB, SEED: Kind.REFRESH}


@given(st.integers(0, 50))
def test_a_made_world_is_whole(seed: int) -> None:
    world = small_world(seed)
    assert np.all(np.diff(world.event_at_s) >= 0)
    assert np.all(world.base_per_s >= 0)
    assert world.base_per_s.sum() * DAY_S == pytest.approx(SMALL.old_clicks_per_day)
    assert world.link_starts[-1] == len(world.link_targets)
    announced = np.unique(world.shows_page)
    assert np.array_equal(announced, np.flatnonzero(world.born_s > START_S))  # every new page is on some hub
    for hub in np.flatnonzero(world.is_hub).tolist():
        shown = world.shows_page[world.shows_starts[hub] : world.shows_starts[hub + 1]]
        assert np.all(np.diff(world.born_s[shown]) >= 0)
        assert np.all(world.host[shown] == world.host[hub])


def test_a_seed_makes_the_same_world_and_another_makes_another() -> None:
    one, same, other = small_world(3), small_world(3), small_world(4)
    assert np.array_equal(one.link_targets, same.link_targets)
    assert np.array_equal(one.event_at_s, same.event_at_s)
    assert len(one.event_at_s) != len(other.event_at_s)


def test_the_worlds_go_from_calm_to_breaking() -> None:
    worlds = [make_world(name, settings, 0) for name, settings in MADE.items()]
    new = [float((world.born_s > world.measured_from_s).sum()) for world in worlds]
    fading = [float(np.median(world.decay_per_s[world.profit > 0])) for world in worlds]
    assert new == sorted(new)
    assert fading == sorted(fading)
    assert all(world.describe()["hubs"] == 4 * world.host_count for world in worlds)


def test_drawn_settings_are_the_same_for_a_seed_and_enclose_those_of_the_other_worlds() -> None:
    assert draw_settings(5) == draw_settings(5)
    drawn = [draw_settings(seed) for seed in range(200)]
    for name in ("hosts", "old_pages", "tail", "silent", "never", "change_days", "change_loss", "new_per_day"):
        found = [getattr(settings, name) for settings in drawn]
        for settings in MADE.values():
            assert min(found) < getattr(settings, name) < max(found), name
    assert all(1.5 * lo <= hi <= 40.0 * lo for lo, hi in (settings.half_life_hours for settings in drawn))


def test_what_is_known_at_the_beginning_is_not_fetched() -> None:
    crawl = HolisticCrawl(small_world(), 0)
    assert crawl.count == len(crawl.world.known_pages) < 0.8 * crawl.world.count
    assert not np.any(crawl.columns.state[: crawl.count] == UrlState.FETCHED)


def test_the_last_of_a_kind_is_at_no_margin() -> None:
    crawl = HolisticCrawl(small_world(), 0)
    kinds = crawl.kinds()
    new = np.flatnonzero(kinds == Kind.NEW)
    assert kinds_left(crawl, new[1:])[Kind.NEW]
    assert not kinds_left(crawl, new)[Kind.NEW]
    assert kinds_left(crawl, new)[Kind.HUB] == (kinds == Kind.HUB).any()
