"""What a fetch costs beside another."""

from __future__ import annotations

import numpy as np
import pytest
from tests.appraise.budget.test_one_budget import refresh_study
from tests.appraise.hub_studies import hub_columns, hub_study

from bowerbird.appraise.budget.costs import DEAREST, FEWEST, Fetches, cost_of_fetches, host_costs, relative_cost
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


def test_refreshes_cost_what_those_of_their_host_took() -> None:
    """A host that says "not modified", one of large and slow pages, and one of which nothing is known."""
    host = np.arange(20_000) % 2
    some = host, np.where(host == 0, 0.0, 120_000.0), np.where(host == 0, 0.08, 1.6)
    assert host_costs(*some, PAGES, 3).tolist() == pytest.approx([1.1 / 3, 2.0, (1.1 / 3 + 2.0) / 2], rel=5e-3)
    assert host_costs(*some, Fetches(0, 0.0, 0.0), 2).tolist() == [1.0, 1.0]
    few = tuple(column[:2] for column in some)
    costs = host_costs(few[0], few[1], few[2], PAGES, 2)
    assert 0.95 < costs[0] < costs[1] < 1.15  # two fetches say little


def test_every_fetch_costs_something() -> None:
    """Known pages by their hosts, visits by their kind, whatever is fetched for the first time as a usual fetch."""
    states = np.array([UrlState.NEW, UrlState.FETCHED, UrlState.FETCHED, UrlState.GONE, UrlState.FETCHED], np.uint8)
    kinds = np.array([*([UrlKind.PAGE] * 4), UrlKind.FEED], np.uint8)
    hosts = np.array([0, 0, 7, 0, 0])  # the eighth host was found since the study
    study = refresh_study([1.0], 1.0, host_cost=np.array([0.4, 1.0], np.float32))
    costs = cost_of_fetches(states, kinds, hosts, study, Factors(feed_cost=0.5))
    assert costs.tolist() == pytest.approx([1.0, 0.4, 1.0, 1.0, 0.5])
    assert cost_of_fetches(states, kinds, hosts, None, Factors()).tolist() == [1.0] * 5
