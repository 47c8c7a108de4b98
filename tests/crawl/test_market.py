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
from bowerbird.schedule.politeness import HostGate


@dataclass
class Counted:
    """A policy whose bids are 8 clicks each, in units that can change."""

    clicks: float = 0.8
    reserve: float = 1.0
    asked: list[int] = field(default_factory=list)

    def unit(self, snapshot: Snapshot) -> float:
        return self.clicks

    def appraise(self, snapshot: Snapshot, rows: np.ndarray) -> Bids:
        self.asked.append(len(rows))
        return Bids.build(np.full(len(rows), 8.0 / self.clicks if self.clicks else 2.0))


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
    policy.clicks = 0.08
    market.follow_unit(past.now + 0.1)
    assert market.price.value == pytest.approx(90.0)  # 7.2 clicks, as before
    picks = market.auction.pick(past.now + 0.1, 10, market.price.value)
    assert len(picks) == 10
    assert {round(pick.value) for pick in picks} == {100}
    asked = len(policy.asked)
    market.follow_unit(past.now + 0.2)
    assert len(policy.asked) == asked  # nothing new


def test_the_price_in_clicks_survives_a_restart(past: Past) -> None:
    past.repository.set_meta("live", orjson.dumps({"price": 30.0, "unit": 0.1}).decode())
    policy = Counted(clicks=0.0)
    market = open_market(past, policy)
    assert market.price.value == 1.0  # nothing is in clicks yet
    policy.clicks = 0.5
    market.follow_unit(past.now + 0.1)
    assert market.price.value == pytest.approx(6.0)


def test_a_price_that_nothing_bids_comes_down_at_once(past: Past) -> None:
    policy = Counted()
    market = open_market(past, policy)
    market.price.reset(500.0)  # all bid 10
    market.observe(10, past.now + 1.0)
    assert market.price.value > 400.0  # the budget was spent
    market.observe(0, past.now + 2.0)
    assert market.price.value == pytest.approx(10.0)
    market.observe(0, past.now + 3.0)
    assert market.price.value < 8.1  # their hosts may be busy
    market.price.reset(10.0)
    policy.clicks = 8.0
    market.follow_unit(past.now + 2.1)
    assert market.price.value == pytest.approx(1.0)  # as they bid now
    assert len(market.auction.pick(past.now + 2.1, 10, market.price.value)) == 10


def test_a_price_that_far_more_bid_than_the_budget_pays_for_rises_at_once(past: Past) -> None:
    for url in urls("more", 600, "h1.example"):
        past.add(url, past.now - 60)
    past.repository.commit()
    policy = Counted()
    market = open_market(past, policy)
    assert market.price.value == 1.0
    market.keep_up(past.now + 10.0, hungry=True)
    assert market.price.value == pytest.approx(10.0)  # 640 bid 10, and a minute pays for 300


def test_without_a_budget_the_price_is_the_reserve_after_every_study(past: Past) -> None:
    past.repository.set_meta("live", orjson.dumps({"price": 30.0, "unit": 0.1}).decode())
    policy = Counted()
    market = Market(past.repository, policy, HostGate(1.0, 1), None, past.now)  # type: ignore[arg-type]  # as much as it needs
    market.open(past.now)
    for clicks in (0.4, 0.01, 2.0):
        policy.clicks = clicks
        market.follow_unit(past.now + 0.1)
        assert market.price.value == 1.0


def test_other_policies_have_no_unit(past: Past) -> None:
    policy = make_policy("breadth-first+adaptive")
    market = Market(past.repository, policy, HostGate(1.0, 1), 5.0, past.now)
    market.open(past.now)
    market.price.reset(3.0)
    market.follow_unit(past.now + 0.1)
    assert (market.unit, market.price.value) == (0.0, 3.0)
