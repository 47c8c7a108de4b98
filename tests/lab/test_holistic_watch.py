"""The calibration watch of a holistic crawl: expectations that are off are set right, by what the crawl itself sees."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import orjson
import pytest
from tests.lab.holistic_toy import LINKED, MAIN, SEED, hand_made, small_world

from bowerbird.appraise.budget.decisions import Decision, Group
from bowerbird.appraise.hubs.studied import linked_from
from bowerbird.appraise.one_budget import make_one_budget
from bowerbird.appraise.policy import RefreshSettings
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_policies import Bidding
from bowerbird.lab.holistic_replay import replay, warm_up
from bowerbird.lab.holistic_sharing import OneOrder
from bowerbird.lab.holistic_studies import Pace, make_studies, take_snapshot
from bowerbird.lab.holistic_watch import Watcher
from bowerbird.lab.holistic_world import DAY_S
from bowerbird.model.factors import Factors
from bowerbird.model.url_state import FetchKind


@pytest.fixture(scope="module")
def warm() -> HolisticCrawl:
    return warm_up(small_world(), 0)


def decide(rows: list[int], at: float, kind: FetchKind, bid: float, terms: dict[str, object]) -> list[Decision]:
    return [Decision(row, int(kind), bid, 1.0, at, dict(terms)) for row in rows]  # type: ignore[arg-type]


def test_decisions_are_noted_as_a_journal_has_them(warm: HolisticCrawl) -> None:
    """With the terms of the product's own policy, so that what a live crawl looks back at is looked at here."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    studies = make_studies(crawl, Pace(), 0.0, None, 0)
    policy, snapshot = make_one_budget(RefreshSettings(), DAY_S), take_snapshot(crawl, studies)
    kinds = crawl.kinds()
    rows = np.concatenate([np.flatnonzero(kinds == kind)[:30] for kind in Kind])
    watcher = Watcher()
    watcher.note(policy, snapshot, rows, kinds[rows], np.linspace(2.0, 4.0, len(rows)))
    noted = {one.row: (one.terms, one.bid / one.price) for some in watcher.decisions.values() for one in some}
    journal = dict(zip(rows.tolist(), (orjson.loads(one) for one in policy.terms(snapshot, rows)), strict=True))
    assert noted
    assert all(terms == journal[row] for row, (terms, _) in noted.items())
    assert all(1.0 <= prices <= 2.0 for _, prices in noted.values())
    assert watcher.decisions[Group.REFRESH]
    assert all("bound" in one.terms for one in watcher.decisions[Group.REFRESH])


def test_new_pages_that_bid_too_much_are_corrected(warm: HolisticCrawl) -> None:
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    watcher = Watcher()
    new = np.flatnonzero(crawl.kinds() == Kind.NEW)[:60].tolist()
    terms = {"by": "informed", "basis": "study", "units": 125.0, "unit": 4.0, "horizon_s": DAY_S}
    watcher.decisions[Group.NEW] = decide(new, crawl.now, FetchKind.NEW, 125.0, terms)  # far beyond the truth
    for row in new:
        crawl.fetch(row)
    for _ in range(12):
        crawl.pass_step()
    factors = watcher.look(crawl, make_studies(crawl, Pace(), 0.0, None, 0))
    assert factors.new < 0.5
    assert (factors.refresh, factors.hub, factors.announced) == (1.0, 1.0, 1.0)


def test_refreshes_are_corrected_though_some_changes_were_not_measured(warm: HolisticCrawl) -> None:
    """Every page was expected to have changed, and to regain a tenth of all clicks."""
    crawl = copy.deepcopy(warm, {id(warm.world): warm.world})
    watcher = Watcher()
    known = np.flatnonzero(crawl.kinds() == Kind.REFRESH)[:200].tolist()
    terms = {"by": "user-centric", "expected_gain": 0.1, "expected_chance": 1.0, "unit": 4.0, "bound": False}
    watcher.decisions[Group.REFRESH] = decide(known, crawl.now, FetchKind.REFRESH, 1.0, terms)
    for row in known:
        crawl.fetch(row)
    studies = make_studies(crawl, Pace(), 0.0, None, 0)
    assert watcher.look(crawl, studies).refresh < 0.75  # there are few
    bound = [replace(one, terms={**one.terms, "bound": True}) for one in watcher.decisions[Group.REFRESH]]
    watcher.decisions[Group.REFRESH] = bound
    assert watcher.look(crawl, studies).refresh == 1.0  # it was not expected, but bid by a bound


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
    new = np.flatnonzero(crawl.kinds() == Kind.NEW)
    source = linked_from(take_snapshot(crawl, studies), new)
    new = new[studies.hubs.place(source) >= 0]
    assert len(new) >= 10
    terms = {"by": "informed", "basis": "study", "units": 400.0, "unit": 1.0, "horizon_s": DAY_S, "announced": 400.0}
    terms |= {"hub_clicks": 400.0, "half_life_s": DAY_S}
    watcher = Watcher()
    watcher.decisions[Group.ANNOUNCED] = decide(new.tolist(), crawl.now, FetchKind.NEW, 400.0, terms)
    for row in new.tolist():
        crawl.fetch(row)
    for _ in range(30):
        crawl.pass_step()
    got = float(crawl.clicks[new].mean())
    assert 0 < got < 40.0
    profit = np.full(len(studies.hubs.hubs), got if learnt else 400.0, np.float32)
    hubs = replace(studies.hubs, by_clicks=True, hubs=replace(studies.hubs.hubs, profit=profit))
    factors = watcher.look(crawl, replace(studies, hubs=hubs))
    assert (factors.announced < 0.5) is holds_back


def test_a_policy_that_watches_goes_on_and_one_that_does_not_has_no_factors(warm: HolisticCrawl) -> None:
    assert Bidding(OneOrder(), watched=False).watcher is None
    watched = replay(warm, "auto", 40.0, 0)
    assert watched.clicks.sum() > replay(warm, "(nothing)", 40.0, 0).clicks.sum()
    assert watched.fetches == replay(warm, "auto-unwatched", 40.0, 0).fetches
