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
    factors = watcher.look(crawl, studies)
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
    assert Watcher().look(crawl, make_studies(crawl, Pace(), 0.0, None, 0)) == Factors()


@pytest.mark.parametrize(("learnt", "holds_back"), [(True, False), (False, True)])
def test_what_a_study_has_learnt_since_is_not_corrected_once_more(
    warm: HolisticCrawl, learnt: bool, holds_back: bool
) -> None:
    """Announced pages were thought to get twenty times what they got. If the study knows better now, that is enough."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    studies = make_studies(crawl, Pace(), 0.0, None, 0)
    new = np.flatnonzero(crawl.kinds() == 0)[:60]
    pages = {"page_row": new, "page_hub": np.zeros(60, np.int64), "page_factor": np.ones(60, np.float32)}
    profit = np.full(len(studies.hubs.hubs), 400.0, np.float32)
    wrong = replace(
        studies.hubs, by_clicks=True, mean_profit=400.0, hubs=replace(studies.hubs.hubs, profit=profit), **pages
    )
    watcher = Watcher()
    shape = np.full(60, int(Shape.DECAY))
    watcher.note(crawl, replace(studies, hubs=wrong), new, crawl.kinds()[new], np.full(60, 400.0), shape, 1.0, DAY_S)
    for row in new.tolist():
        crawl.fetch(row)
    for _ in range(30):
        crawl.pass_step()
    got = float(crawl.clicks[new].mean())
    assert 0 < got < 40.0
    right = replace(wrong, hubs=replace(wrong.hubs, profit=profit * np.float32(got / 400.0)), mean_profit=got)
    factors = watcher.look(crawl, replace(studies, hubs=right if learnt else wrong))
    assert (factors.announced < 0.5) is holds_back


def test_a_policy_that_watches_goes_on_and_one_that_does_not_has_no_factors(warm: HolisticCrawl) -> None:
    assert Bidding(None).watcher is None
    watched = replay(warm, "auto", 40.0, 0)
    assert watched.clicks.sum() > replay(warm, "(nothing)", 40.0, 0).clicks.sum()
    assert watched.fetches == replay(warm, "auto-unwatched", 40.0, 0).fetches
