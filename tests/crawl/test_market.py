"""The market of a crawl when a study changes what bids are counted in."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson
import pytest
from tests.crawl.hub_past import Past, urls

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.market import Market
from bowerbird.model.bid import Bids
from bowerbird.model.snapshot import Snapshot
from bowerbird.schedule.auction import Pick
from bowerbird.schedule.politeness import HostGate


@dataclass
class Counted:
    """A policy whose bids are 8 clicks each, in units that can change, as `study` can."""

    clicks: float = 0.8
    reserve: float = 1.0
    study: object = None
    worth: float = 8.0
    asked: list[int] = field(default_factory=list)

    def basis(self, snapshot: Snapshot) -> object:
        return self.study

    def unit(self, snapshot: Snapshot) -> float:
        return self.clicks

    def appraise(self, snapshot: Snapshot, rows: np.ndarray) -> Bids:
        self.asked.append(len(rows))
        return Bids.build(np.full(len(rows), self.worth / self.clicks if self.clicks else 2.0))


@pytest.fixture
def past(tmp_path: Path) -> Past:
    made = Past(tmp_path / "crawl")
    for host in range(20):
        for url in urls("page", 2, f"h{host}.example"):
            made.add(url, made.now - 60)
    made.repository.commit()
    return made


def open_market(past: Past, policy: Counted) -> Market:
    market = Market(past.repository, policy, HostGate(1.0, 1), 5.0, past.now)  # type: ignore[arg-type]  # as much as it needs
    market.open(past.now)
    return market


def test_after_a_change_of_the_unit_all_bids_are_of_the_new_one(past: Past) -> None:
    policy = Counted()
    market = open_market(past, policy)
    market.price.reset(9.0)
    policy.clicks, policy.study = 0.08, object()
    market.follow_studies(past.now + 0.1)
    assert market.price.value == pytest.approx(90.0)  # 7.2 clicks, as before
    picks = market.auction.pick(past.now + 0.1, 10, market.price.value)
    assert len(picks) == 10
    assert {round(pick.value) for pick in picks} == {100}
    asked = len(policy.asked)
    market.follow_studies(past.now + 0.2)
    assert len(policy.asked) == asked  # nothing new


def test_what_was_picked_since_the_last_look_is_of_the_new_unit_too(past: Past) -> None:
    """Else the price would seem to have fallen by as much as the unit changed, for as long as it remembers."""
    policy = Counted()
    market = open_market(past, policy)
    for second in range(30):
        market._taken.extend([10.0] * 5)
        market._pressed = True
        market.observe(past.now + second)
    market._taken.extend([10.0] * 5)
    policy.clicks, policy.study = 0.08, object()
    market.follow_studies(past.now + 30.0)
    for second in range(31, 35):
        market._pressed = True
        market.observe(past.now + second)
        assert market.price.value == pytest.approx(100.0)
        market._taken.extend([100.0] * 5)


def test_a_study_that_leaves_the_unit_as_it_was_makes_all_bids_anew_at_once_too(past: Past) -> None:
    """One of new pages does: the unit is told by revisits."""
    policy = Counted(study=object())
    market = open_market(past, policy)
    policy.worth, policy.study = 800.0, object()
    market.follow_studies(past.now + 0.1)
    assert {round(pick.value) for pick in market.pick(past.now + 0.1, 10)} == {1000}
    assert market.unit == 0.8


def test_the_price_in_clicks_survives_a_restart(past: Past) -> None:
    past.repository.set_meta("live", orjson.dumps({"price": 30.0, "unit": 0.1}).decode())
    policy = Counted(clicks=0.0)
    market = open_market(past, policy)
    assert market.price.value == 1.0  # nothing is in clicks yet
    policy.clicks, policy.study = 0.5, object()
    market.follow_studies(past.now + 0.1)
    assert market.price.value == pytest.approx(6.0)


def spend(market: Market, now: float, seconds: int, wanted: int) -> list[Pick]:
    """Pick as many each second, and fetch them at once."""
    picks: list[Pick] = []
    for _ in range(seconds):
        now += 1.0
        some = market.pick(now, wanted)
        for pick in some:
            market.gate.give_back(pick.host, now)
            market.auction.hold([pick.row], now + 1e9)
        picks += some
        market.observe(now)
        market.keep_up(now, hungry=len(some) < wanted)
    return picks


def test_workers_without_room_do_not_raise_the_price(past: Past) -> None:
    """One more page of budget would gain nothing where nobody could fetch it."""
    market = open_market(past, Counted())
    for second in range(1, 30):
        for pick in market.pick(past.now + second, 2, scarce=False):
            market.gate.give_back(pick.host, past.now + second)
        market.observe(past.now + second)
    assert market.price.value == market.price.reserve


class Various(Counted):
    """Pages of the largest host bid 100, the others 50."""

    def appraise(self, snapshot: Snapshot, rows: np.ndarray) -> Bids:
        largest = np.argmax(np.bincount(snapshot.pages.host))
        return Bids.build(np.where(snapshot.pages.host[rows] == largest, 100.0, 50.0))


def test_a_host_with_most_of_the_best_bids_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    """It can give one page a second, whatever it bids: the rest of the budget goes to the next best."""
    past = Past(tmp_path / "crawl")
    for url in urls("page", 600, "large.example"):
        past.add(url, past.now - 60)
    for host in range(20):
        for url in urls("page", 20, f"h{host}.example"):
            past.add(url, past.now - 60)
    past.repository.commit()
    market = open_market(past, Various())
    picks = spend(market, past.now, 30, 5)
    assert len(picks) == 150
    assert sum(pick.value == 100.0 for pick in picks) == 30
    assert market.price.value == pytest.approx(50.0)


def test_what_bids_less_than_the_price_is_fetched_when_there_is_nothing_better(past: Past) -> None:
    market = open_market(past, Counted())
    market.price.reset(500.0)  # all bid 10
    assert len(spend(market, past.now, 4, 5)) == 20
    assert spend(market, past.now + 30.0, 60, 5)  # the last of them, and then nothing
    assert market.price.value == 1.0


def test_without_a_budget_the_price_is_the_reserve_after_every_study(past: Past) -> None:
    past.repository.set_meta("live", orjson.dumps({"price": 30.0, "unit": 0.1}).decode())
    policy = Counted()
    market = Market(past.repository, policy, HostGate(1.0, 1), None, past.now)  # type: ignore[arg-type]  # as much as it needs
    market.open(past.now)
    for clicks in (0.4, 0.01, 2.0):
        policy.clicks, policy.study = clicks, object()
        market.follow_studies(past.now + 0.1)
        assert market.price.value == 1.0


def test_other_policies_have_no_unit(past: Past) -> None:
    policy = make_policy("breadth-first+adaptive")
    market = Market(past.repository, policy, HostGate(1.0, 1), 5.0, past.now)
    market.open(past.now)
    market.price.reset(3.0)
    market.follow_studies(past.now + 0.1)
    assert (market.unit, market.price.value) == (0.0, 3.0)
