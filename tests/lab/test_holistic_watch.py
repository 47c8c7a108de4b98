"""The calibration watch of a holistic crawl: expectations that are off are set right, by what the crawl itself sees."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.lab.holistic_toy import LINKED, MAIN, SEED, hand_made, small_world

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
    watcher.note(crawl, studies, new, bids, shape, np.zeros(len(new)), DAY_S)
    for row in new.tolist():
        crawl.fetch(row)
    for _ in range(12):
        crawl.pass_step()
    factors = watcher.look(crawl, 0)
    assert factors.new < 0.5
    assert (factors.refresh, factors.hub, factors.announced) == (1.0, 1.0, 1.0)


def test_without_decisions_nothing_is_corrected() -> None:
    crawl = HolisticCrawl(hand_made(), 0)
    for page in (MAIN, SEED, LINKED):
        crawl.fetch(int(crawl.row_of[page]))
    crawl.pass_step()
    assert Watcher().look(crawl, 0) == Factors()


def test_a_policy_that_watches_goes_on_and_one_that_does_not_has_no_factors(warm: HolisticCrawl) -> None:
    assert Bidding(None).watcher is None
    watched = replay(warm, "auto-watched", 40.0, 0)
    assert watched.clicks.sum() > replay(warm, "(nothing)", 40.0, 0).clicks.sum()
    assert watched.fetches == replay(warm, "auto", 40.0, 0).fetches
