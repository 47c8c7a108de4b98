"""What a fetch costs beside another."""

from __future__ import annotations

import pytest
from tests.appraise.hub_studies import hub_columns, hub_study

from bowerbird.appraise.budget.costs import DEAREST, FEWEST, Fetches, relative_cost
from bowerbird.appraise.budget.in_clicks import put_in_clicks
from bowerbird.appraise.budget.scales import scale_clicks
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind

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
        put_in_clicks(None, None, hubs, scale_clicks(None, None, hubs, factors=factors), shortest_s=1.0)
        for factors in (Factors(), Factors(feed_cost=4.0, sitemap_cost=0.5))
    )
    assert plain.hubs is not None
    assert dear.hubs is not None
    times = dear.hubs.hubs.amplitude * dear.unit / (plain.hubs.hubs.amplitude * plain.unit)
    assert times.tolist() == pytest.approx([0.25, 1.0, 2.0], rel=1e-4)
    found = dear.hubs.hubs.profit * dear.unit / (plain.hubs.hubs.profit * plain.unit)
    assert found.tolist() == pytest.approx([1.0] * 3, rel=1e-4)


def test_nothing_is_dearer_than_the_dearest() -> None:
    assert relative_cost(Fetches(10_000, 5e7, 60.0), PAGES) == DEAREST
