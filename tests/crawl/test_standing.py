"""Where a URL stands in line, and what would have to change for it to be fetched sooner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowerbird.appraise.budget.click_pages import raise_to_floor
from bowerbird.crawl.sooner import Circumstances, tell_decision, tell_sooner, tell_standing
from bowerbird.crawl.standing import Standing, expect, find_standing
from bowerbird.model.bid import Bids, Shape
from bowerbird.model.url_state import UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate

NOW = 1000.0


def auction_of(values: list[float], hosts: list[int], delay_s: float = 2.0) -> Auction:
    auction = Auction(HostGate(delay_s))
    rows = np.arange(len(values))
    auction.place(rows, Bids.build(np.array(values)), np.array(hosts, dtype=np.uint32), offer=False)
    return auction


def circumstances(**values: Any) -> Circumstances:
    given: dict[str, Any] = {
        "kind": "new",
        "unit": 0.5,
        "reserve": 1.0,
        "rate_per_s": 10.0,
        "running": True,
        "knows_robots": True,
    }
    return Circumstances(**{**given, **values})


def stand(auction: Auction, row: int, price: float = 1.0) -> Standing:
    return find_standing(auction, row, price, NOW, auction.bid(row).reaches(price, NOW))


def texts(standing: Standing, **values: Any) -> dict[str, str]:
    return {one["name"]: one["note"] for one in tell_sooner(standing, circumstances(**values))}


def test_places_are_by_bid_and_ties_go_to_the_url_known_first() -> None:
    auction = auction_of([5.0, 2.0, 9.0, 2.0, 0.5, 0.0], [0, 0, 1, 1, 0, 0])
    places = [stand(auction, row).place for row in range(4)]
    assert places == [2, 3, 1, 4]
    one = stand(auction, 1)
    assert (one.ready, one.hosts_ready, one.before_on_host, one.host_price) == (4, 2, 1, 5.0)
    assert one.is_ready
    below = stand(auction, 4)
    assert not below.is_ready
    assert below.place == 5
    assert below.expected_at is None


def test_what_waits_after_an_error_is_not_in_line() -> None:
    auction = auction_of([5.0, 2.0], [0, 0])
    auction.hold([0], NOW + 60)
    assert stand(auction, 1).place == 1
    held = stand(auction, 0)
    assert not held.is_ready
    assert held.expected_at == NOW + 60
    assert texts(held)["wait_s"] == "after an error it is left alone for 60.0 seconds"


def test_a_host_whose_pages_repeat_others_comes_later() -> None:
    auction = auction_of([5.0, 4.0, 3.0], [0, 1, 2])
    auction.gate.columns["weight"][0] = 0.5
    one = stand(auction, 0)
    assert (one.place, one.place_unweighted) == (3, 1)
    assert "its place would be 1" in texts(one)["weight of its host"]


def test_the_next_has_nothing_to_change() -> None:
    one = stand(auction_of([5.0, 4.0], [0, 1]), 0)
    assert texts(one) == {}
    expected = expect(one, True, UrlState.NEW)
    tree = tell_decision({"name": "bid", "value": 5.0}, one, circumstances(), expected)
    assert (tree["value"], tree["children"][-1]["value"]) == ("now", "nothing to change: it is next")
    assert [node["name"] for node in tree["children"]] == [
        "bid",
        "price in clicks",
        "host",
        "rank in line",
        "to be fetched sooner",
    ]
    assert tree["children"][1]["value"] == pytest.approx(0.5)


def test_a_bid_below_the_price_needs_time_gain_or_budget() -> None:
    auction = auction_of([2.0, 9.0], [0, 1])
    bids = Bids.build(np.array([1.0]), shape=Shape.LINEAR, rate=0.001, since=NOW - 2000.0)
    auction.place(np.array([0]), bids, np.array([0], dtype=np.uint32), offer=False)
    said = texts(stand(auction, 0, price=5.0), grow=lambda value: 9.0 / value)
    assert said["time_s"] == "its bid reaches the price in 50.0 minutes"
    assert said["gain"] == "it would need 2.5 times the expected clicks (1.5 clicks more)"
    assert said["budget"] == "the budget would have to be 4.5 times as large: so much more is bid above it"
    assert set(said) == {"time_s", "gain", "budget"}
    alone = texts(stand(auction, 0, price=5.0), rate_per_s=None, unit=0.0)
    assert set(alone) == {"time_s", "gain"}
    assert alone["gain"] == "it would need 2.5 times the bid (3 more)"


def test_beyond_a_thousand_times_no_gain_would_do() -> None:
    auction = auction_of([2.0, 9000.0], [0, 0])
    said = texts(stand(auction, 0, price=5000.0), kind="refresh")
    assert said["gain"] == "no gain would do at this price: it is more than 1,000 times the expected clicks"
    assert "times the expected clicks" not in texts(stand(auction, 0), kind="refresh")["line of its host"]


def test_a_budget_lets_so_many_a_second_through() -> None:
    one = stand(auction_of([5.0, 4.0, 3.0], [0, 1, 2]), 2)
    assert expect(one, True, UrlState.NEW)["in_s"] == 0.0
    told = expect(one, True, UrlState.NEW, rate_per_s=0.1)
    assert (told["in_s"], told["why"]) == (20.0, "in line: better bids use up the budget first")


def test_without_clicks_bids_are_told_in_units() -> None:
    one = stand(auction_of([2.0], [0]), 0, price=5.0)
    assert texts(one, by_clicks=False, kind="hub")["gain"] == "it would need 2.5 times the expected gain (3 units more)"
    tree = tell_decision(
        {"name": "bid", "value": 2.0}, one, circumstances(by_clicks=False), expect(one, True, UrlState.NEW)
    )
    assert (tree["children"][1]["name"], tree["children"][1]["value"]) == ("price in units", 5.0)


def test_what_does_not_grow_never_reaches_the_price() -> None:
    one = stand(auction_of([2.0], [0]), 0, price=5.0)
    assert "does not reach" in texts(one)["time"]
    assert expect(one, True, UrlState.NEW)["at"] is None
    low = stand(auction_of([0.5], [0]), 0, price=5.0)
    assert "budget" not in texts(low, grow=lambda _: 9.0)  # no budget brings the price below the reserve


def test_the_line_of_a_busy_host_and_of_the_budget() -> None:
    auction = auction_of([9.0, 8.0, 2.0, 7.0], [0, 0, 0, 1])
    auction.gate.hold(0, NOW + 12)
    said = texts(stand(auction, 2))
    assert said["host_s"] == "its host is busy for 12.0 seconds"
    assert said["line of its host"] == (
        "2 better bids of its host first, one every 2.0 seconds: 4.0 seconds; "
        "with 4.5 times the expected clicks it would be the next there"
    )
    assert said["line"] == "3 better bids first: 0.3 seconds at 10 fetches a second"
    assert stand(auction, 2).expected_at == NOW + 16


def test_a_crawl_that_rests_and_a_host_that_was_never_asked() -> None:
    said = texts(stand(auction_of([5.0], [0]), 0), running=False, knows_robots=False)
    assert set(said) == {"crawl", "robots.txt"}


def test_a_url_that_is_not_fetched_has_nothing_that_helps() -> None:
    one = stand(auction_of([0.0, 3.0], [0, 0]), 0)
    expected = expect(one, False, UrlState.EXCLUDED)
    tree = tell_decision({"name": "no bid", "value": 0.0}, one, circumstances(), expected)
    assert tree["value"] == "never"
    assert tree["children"][-1]["value"] == "nothing would help"
    assert "excluded" in tree["children"][-1]["note"]
    assert tell_standing(one, circumstances())["sooner"] == []


def test_a_floor_does_not_add_to_what_a_page_gains() -> None:
    """A new page of half a unit bids hardly more than 1: it would have to gain ten times as much to bid 5, not five."""
    half = float(raise_to_floor(np.array([0.5]))[0])
    one = stand(auction_of([half, 5.0], [0, 0]), 0, price=1.0)
    assert "with 10 times the expected clicks" in texts(one, expected=0.5)["line of its host"]
    assert tell_standing(one, circumstances(expected=0.5))["gain"] == pytest.approx(0.25, rel=1e-3)
    assert "it would need 8 times" in texts(stand(auction_of([half], [0]), 0, price=4.0), expected=0.5)["gain"]
    assert circumstances().gain(one) == one.value  # of other policies a bid is all that there is


def test_what_is_held_back_by_its_age_needs_time_and_no_gain() -> None:
    """It was fetched a moment ago: it gains more than the price, and more would not help."""
    one = stand(auction_of([0.5], [0]), 0, price=1.0)
    assert "gain" not in texts(one, expected=40.0)
    before = stand(auction_of([1.5, 5.0], [0, 0]), 0, price=1.0)
    assert "times the expected" not in texts(before, expected=40.0)["line of its host"]


def test_what_a_fetch_costs_is_divided_out_of_bids_only() -> None:
    """It gains 0.8 units at the cost of 0.4 of a fetch: it bids 2, and would have to gain 1.2 more to bid 5."""
    one = stand(auction_of([2.0], [0]), 0, price=5.0)
    told = tell_standing(one, circumstances(expected=2.0, cost=0.4))
    assert (told["bid"], told["gain"], told["cost"]) == (1.0, pytest.approx(0.4), 0.4)
    assert "2.5 times the expected clicks (0.6 clicks more)" in texts(one, expected=2.0, cost=0.4)["gain"]


def test_for_programs_all_is_in_one_unit() -> None:
    one = stand(auction_of([9.0, 4.0], [0, 0]), 1)
    before = tell_standing(one, circumstances(by_clicks=False))
    assert (before["unit"], before["bid"], before["price"], before["host_price"]) == ("units", 4.0, 1.0, 9.0)
    told = tell_standing(one, circumstances())
    assert told["unit"] == "clicks"
    assert (told["bid"], told["price"], told["host_price"], told["place"]) == (2.0, 0.5, 4.5, 2)
    assert [one["what"] for one in told["sooner"]] == ["line of its host"]
