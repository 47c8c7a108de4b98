"""What a fetch costs beside another."""

from __future__ import annotations

import numpy as np
import pytest
from tests.appraise.budget.test_one_budget import refresh_study
from tests.appraise.hub_studies import hub_columns, hub_study
from tests.appraise.snapshots import snapshot_of

from bowerbird.appraise.budget.costs import (
    DEAREST,
    FEWEST,
    Fetches,
    HostFetches,
    cost_of_fetches,
    host_costs,
    relative_cost,
)
from bowerbird.appraise.budget.in_clicks import put_in_clicks
from bowerbird.appraise.budget.scales import scale_clicks
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind
from bowerbird.model.url_state import UrlKind, UrlState

PAGES = Fetches(100_000, 40_000.0, 0.8)


def test_a_fetch_costs_its_turn_its_bytes_and_its_time() -> None:
    assert relative_cost(PAGES, PAGES) == pytest.approx(1.0)
    assert relative_cost(Fetches(100_000, 0.0, 0.0), PAGES) == pytest.approx(1 / 3, rel=1e-3)
    assert relative_cost(Fetches(100_000, 400_000.0, 0.8), PAGES) == pytest.approx(4.0, rel=1e-3)


def test_few_fetches_say_little() -> None:
    assert relative_cost(Fetches(0, 0.0, 0.0), PAGES) == 1.0
    assert relative_cost(PAGES, Fetches(0, 0.0, 0.0)) == 1.0
    one = relative_cost(Fetches(1, 0.0, 0.0), PAGES)
    assert one == pytest.approx((1 / 3 + FEWEST) / (1 + FEWEST))


def test_visits_to_feeds_are_divided_by_what_they_cost_and_their_pages_are_not() -> None:
    """A dear visit gains less; a page that it finds is worth its fetch all the same."""
    hubs = hub_study(
        hub_columns(3, kind=[HubKind.FEED, HubKind.MAIN_PAGE, HubKind.SITEMAP], profit=[3.0, 3.0, 3.0]),
        3,
        by_clicks=True,
    )
    plain, dear = (
        put_in_clicks(None, None, hubs, scale_clicks(None, None, hubs), shortest_s=1.0, visit_cost=cost)
        for cost in (None, np.array([4.0, 1.0, 0.5]))
    )
    assert plain.hubs is not None
    assert dear.hubs is not None
    times = dear.hubs.hubs.amplitude * dear.unit / (plain.hubs.hubs.amplitude * plain.unit)
    assert times.tolist() == pytest.approx([0.25, 1.0, 2.0], rel=1e-4)
    found = dear.hubs.hubs.profit * dear.unit / (plain.hubs.hubs.profit * plain.unit)
    assert found.tolist() == pytest.approx([1.0] * 3, rel=1e-4)


def test_nothing_is_dearer_than_the_dearest() -> None:
    assert relative_cost(Fetches(10_000, 5e7, 60.0), PAGES) == DEAREST


def test_refreshes_cost_what_those_of_their_host_took_beside_its_new_pages() -> None:
    """A host that says "not modified", one of large and slow pages, and one of which nothing is known."""
    host = np.arange(40_000) % 2
    new = HostFetches(host, np.where(host == 0, 10_000.0, 1e6), np.where(host == 0, 0.2, 4.0))
    again = HostFetches(host, np.where(host == 0, 0.0, 1e6), np.where(host == 0, 0.02, 4.0))
    assert host_costs(again, new, 3).tolist() == pytest.approx([1.1 / 3, 1.0, (1.1 / 3 + 1.0) / 2], rel=5e-3)
    nothing = HostFetches(host[:0], np.zeros(0), np.zeros(0))
    assert host_costs(again, nothing, 2).tolist() == host_costs(nothing, new, 2).tolist() == [1.0, 1.0]
    few = HostFetches(host[:2], np.array([0.0, 3e6]), np.array([0.02, 12.0]))
    assert (abs(host_costs(few, new, 2) - 1.0) < 0.15).all()  # two fetches say little


@pytest.mark.parametrize("spread", [0.5, 1.5, 2.0])
def test_refreshes_that_are_like_new_pages_cost_one(spread: float) -> None:
    rng = np.random.default_rng(3)

    def some() -> HostFetches:
        return HostFetches(np.zeros(50_000, np.int64), rng.lognormal(9, spread, 50_000), rng.lognormal(0, 1, 50_000))

    assert host_costs(some(), some(), 1)[0] == pytest.approx(1.0, abs=0.06)


def test_no_host_is_dearer_than_the_dearest() -> None:
    new = HostFetches(np.zeros(5000, np.int64), np.full(5000, 100.0), np.full(5000, 1.0))
    again = HostFetches(np.zeros(5000, np.int64), np.full(5000, 1e6), np.full(5000, 1.0))
    assert host_costs(again, new, 2).tolist() == [DEAREST, DEAREST]


def test_every_fetch_costs_something() -> None:
    """Known pages by their hosts, visits by their kind, whatever is fetched for the first time as a usual fetch."""
    snapshot = snapshot_of(
        state=[UrlState.NEW, UrlState.FETCHED, UrlState.FETCHED, UrlState.GONE, UrlState.FETCHED, UrlState.FETCHED],
        kind=[*([UrlKind.PAGE] * 4), UrlKind.FEED, UrlKind.PAGE],
        host=[0, 0, 7, 0, 0, 0],  # the eighth host was found since the study, the last page fetched since
    )
    study = refresh_study([np.nan, 1.0, 1.0, np.nan, np.nan, np.nan], 1.0, host_cost=np.array([0.4, 1.0], np.float32))
    costs = cost_of_fetches(snapshot.pages, np.arange(6), study, Factors(feed_cost=0.5))
    assert costs.tolist() == pytest.approx([1.0, 0.4, 1.0, 1.0, 0.5, 1.0])
    assert cost_of_fetches(snapshot.pages, np.arange(6), None, Factors()).tolist() == [1.0] * 6
