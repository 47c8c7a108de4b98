"""What a fetch costs beside another."""

from __future__ import annotations

import pytest
from tests.appraise.hub_studies import hub_columns, hub_study

from bowerbird.appraise.budget.costs import FEWEST, Fetches, relative_cost
from bowerbird.appraise.budget.scales import scale_clicks
from bowerbird.model.factors import Factors

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


def test_gains_of_visits_are_divided_by_what_they_cost() -> None:
    hubs = hub_study(hub_columns(2), 2, by_clicks=True)
    plain, dear = (scale_clicks(None, None, hubs, factors=Factors(hub_cost=cost)) for cost in (1.0, 4.0))
    assert dear.hub == plain.hub / 4.0
    assert dear.announced == plain.announced
