"""The calibration watch of a holistic crawl: expectations that are off are set right, by what the crawl itself sees."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from tests.lab.holistic_toy import LINKED, MAIN, SEED, hand_made, small_world

from bowerbird.appraise.budget.click_pages import raise_to_floor
from bowerbird.lab.holistic_crawl import HolisticCrawl
from bowerbird.lab.holistic_policies import Bidding
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_studies import Pace, make_studies
from bowerbird.lab.holistic_watch import Watcher
from bowerbird.lab.holistic_world import DAY_S
from bowerbird.model.bid import Shape
from bowerbird.model.factors import Factors


@pytest.fixture(scope="module")
def warm() -> HolisticCrawl:
    return warm_up(small_world(), 0)


def test_new_pages_that_bid_too_much_are_corrected(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    studies = make_studies(crawl, Pace(), 0.0, None, 0)
    watcher = Watcher()
    new = np.flatnonzero(crawl.kinds() == 0)[:60]
    bids = np.full(len(new), 500.0)  # clicks in a day, far beyond the truth
    shape = np.full(len(new), int(Shape.CONSTANT))
    studies = replace(studies, hubs=replace(studies.hubs, page_row=new[:0], page_hub=new[:0]))  # none was announced
    watcher.note(crawl, studies, new, crawl.kinds()[new], bids / 4.0, shape, 4.0, DAY_S)
    for row in new.tolist():
        crawl.fetch(row)
    for _ in range(12):
        crawl.pass_step()
    factors = watcher.look(crawl, 0)
    assert factors.new < 0.5
    assert (factors.refresh, factors.hub, factors.announced) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("by_clicks", [True, False])
def test_pages_that_bid_the_floor_are_booked_with_what_they_gain(warm: HolisticCrawl, by_clicks: bool) -> None:
    """Those that a hub announced as such, once clicks tell what its pages gain; they fade as those do."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    studies = make_studies(crawl, Pace(), 0.0, None, 0)
    new = np.flatnonzero(crawl.kinds() == 0)[:5]
    factor = np.ones(3, np.float32)
    hubs = replace(studies.hubs, by_clicks=by_clicks, page_row=new[:3], page_hub=np.arange(3), page_factor=factor)
    units = np.array([0.01, 1e-5, 1.0, 0.01, 5.0])  # the third has faded to a unit since it bid
    shape = np.array([Shape.CONSTANT, Shape.CONSTANT, Shape.DECAY, Shape.CONSTANT, Shape.CONSTANT])
    bids = np.where(shape == Shape.DECAY, units, raise_to_floor(units))
    watcher = Watcher()
    watcher.factors = Factors(new=2.0, announced=0.5)
    watcher.note(crawl, replace(studies, hubs=hubs), new, crawl.kinds()[new], bids, shape, 4.0, DAY_S)
    by_hub = [0, 1, 2] if by_clicks else [2]
    by_links = [place for place in range(5) if place not in by_hub]
    assert [one.expected for one in watcher.announced] == pytest.approx(4.0 * units[by_hub] / 0.5)
    assert [one.expected for one in watcher.new] == pytest.approx(4.0 * units[by_links] / 2.0)
    decay = hubs.hubs.decay_per_s[hubs.page_hub[by_hub]]
    assert [one.decay_per_s for one in watcher.announced] == pytest.approx(decay)
    assert {one.decay_per_s for one in watcher.new} == {0.0}


def test_without_decisions_nothing_is_corrected() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    for page in (MAIN, SEED, LINKED):
        crawl.fetch(int(crawl.row_of[page]))
    crawl.pass_step()
    assert Watcher().look(crawl, 0) == Factors()


def test_a_policy_that_watches_goes_on_and_one_that_does_not_has_no_factors(warm: HolisticCrawl) -> None:
    assert Bidding(None).watcher is None
    watched = replay(warm, "auto", 40.0, 0)
    assert watched.clicks.sum() > replay(warm, "(nothing)", 40.0, 0).clicks.sum()
    assert watched.fetches == replay(warm, "auto-unwatched", 40.0, 0).fetches
