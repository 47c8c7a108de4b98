"""Bids under one budget have bounds: what a page can lose, how long gains count, what hubs of a kind gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
import pytest
from tests.appraise.budget.test_one_budget import clicks, frontier_study, refresh_study, three_kinds
from tests.appraise.hub_studies import hub_columns, hub_study
from tests.appraise.snapshots import NOW, snapshot_of

from bowerbird.appraise.budget.click_hubs import ClickHubs
from bowerbird.appraise.budget.click_pages import ClickRefresh
from bowerbird.appraise.budget.decisions import Decision
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.interval import HubInterval
from bowerbird.appraise.one_budget import OneBudget, make_one_budget
from bowerbird.appraise.policy import RefreshSettings
from bowerbird.model.factors import Factors
from bowerbird.model.hub_study import HubKind
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState

DAY_S = 86400.0
LOSS = 1e-3  # of Q, by one change
FOREVER = 1e12


def two_pages(age_days: float, changes_per_day: float, most: float, **values: object) -> Snapshot:
    """As three kinds are, and two pages of the same age that differ in what is known of them otherwise."""
    snapshot = three_kinds()
    pages = replace(
        snapshot.pages,
        last_fetched=NOW - np.array([0.0, 0.0, age_days, age_days, 0.5, 0.1]) * DAY_S,
        hint_modified=np.array([0, 0, int(NOW - 0.01 * DAY_S), 0, 0, 0]),
    )
    gain = LOSS / (changes_per_day / DAY_S)
    column = np.array([np.nan, np.nan, LOSS, LOSS, np.nan, np.nan], np.float32)
    study = refresh_study(
        [np.nan, np.nan, gain, gain, np.nan, np.nan],
        changes_per_day,
        stale_loss=column,
        most_changes=np.where(np.isnan(column), np.nan, most).astype(np.float32),
        **values,
    )
    return replace(snapshot, pages=pages, refresh_study=study)


def expect(policy: OneBudget, snapshot: Snapshot, *rows: int) -> dict[str, np.ndarray]:
    """What refreshes of these pages are expected to regain."""
    assert isinstance(policy.refresh, ClickRefresh)
    return policy.refresh.expect(policy.in_units(snapshot), np.array(rows))


@pytest.mark.parametrize(("most", "capped"), [(2.0, 2.0), (5.0, 5.0), (20.0, 10.0)])
def test_a_page_loses_no_more_than_it_has(most: float, capped: float) -> None:
    """After ten expected changes: (q/Delta)·min(x, m)²/2, in clicks."""
    snapshot = two_pages(10.0, 1.0, most)
    policy = make_one_budget(RefreshSettings(), FOREVER)
    per_change = 0.01 * LOSS * DAY_S
    assert clicks(policy, snapshot)[3] == pytest.approx(per_change * capped**2 / 2, rel=1e-3)
    expected = expect(policy, snapshot, 3)["expected_gain"]
    assert expected[0] == pytest.approx(LOSS * capped, rel=1e-5)


@pytest.mark.parametrize("horizon_days", [1.0, 4.0])
def test_a_refresh_gains_no_longer_than_the_horizon(horizon_days: float) -> None:
    """Of changes over ten days each gains for as long as it had been there, the horizon at most."""
    snapshot = two_pages(10.0, 0.5, 20.0)
    policy = make_one_budget(RefreshSettings(), horizon_days * DAY_S)
    after = np.linspace(0.0, 10.0, 100_001)
    seen = 0.5 * np.minimum(after, horizon_days)
    truth = 0.01 * LOSS * DAY_S * float(np.trapezoid(seen, after))
    assert clicks(policy, snapshot)[3] == pytest.approx(truth, rel=2e-3)


@pytest.mark.parametrize("false_per_day", [0.0, 1e-3])
def test_a_site_that_says_a_page_has_changed_does_not_say_that_it_did_so_many_times(false_per_day: float) -> None:
    told = {
        "recall": np.array([0.8], np.float32),
        "false_rate_per_s": np.array([false_per_day / DAY_S], np.float32),
    }
    policy = make_one_budget(RefreshSettings(), FOREVER)
    few, many = (two_pages(2.0, 0.1, most, **told) for most in (2.0**0.5, 20.0))
    expected = expect(policy, many, 2, 3)
    changes = 0.2 / -np.expm1(-0.2)  # of pages that have changed in two days
    assert expected["expected_gain"][0] == pytest.approx(LOSS * changes, rel=0.05)
    assert expected["expected_gain"][1] < LOSS * 0.21
    assert clicks(policy, many)[2] == pytest.approx(clicks(policy, few)[2], rel=0.05)
    assert clicks(policy, many)[2] > 5 * clicks(policy, many)[3]


def unvisited(factors: Factors | None = None, **hubs: object) -> Snapshot:
    """A feed and a sitemap that were never visited, and four hubs that were, two feeds and two sitemaps."""
    feed, sitemap = UrlKind.FEED, UrlKind.SITEMAP
    snapshot = snapshot_of(
        state=[UrlState.NEW] * 2 + [UrlState.FETCHED] * 5,
        kind=[feed, sitemap, UrlKind.PAGE, feed, feed, sitemap, sitemap],
        last_fetched=NOW - np.array([0.0, 0.0, 2.0, *[FOREVER / DAY_S] * 4]) * DAY_S,
        fetches=3,
    )
    given: dict[str, object] = {
        "profit": 50.0,
        "rate_per_s": 10 / DAY_S,
        "drawn_per_s": 10 / DAY_S,
        "kind": [HubKind.FEED] * 2 + [HubKind.SITEMAP] * 2,
        **hubs,
    }
    columns = hub_columns(4, row=[3, 4, 5, 6], **given)
    return replace(
        snapshot,
        study=frontier_study([0.2, *[np.nan] * 6]),
        refresh_study=refresh_study([np.nan, np.nan, 500.0, *[np.nan] * 4], 0.2),
        hub_study=hub_study(columns, 7, by_clicks=True, longest_s=10 * FOREVER),
        factors=factors,
    )


@pytest.mark.parametrize(
    "factors", [None, Factors(hub=0.1), Factors(hub=0.5, feed_cost=3.0, sitemap_cost=3.0), Factors(announced=0.3)]
)
def test_a_first_visit_bids_what_known_hubs_would_that_have_waited_long(factors: Factors | None) -> None:
    policy = make_one_budget(RefreshSettings(), FOREVER)
    got = clicks(policy, unvisited(factors))
    assert got[0] == pytest.approx(got[3], rel=1e-3)


def test_a_first_visit_goes_by_hubs_of_its_kind() -> None:
    rates = np.array([100.0, 100.0, 1.0, 1.0]) / DAY_S
    policy = make_one_budget(RefreshSettings(), FOREVER)
    snapshot = unvisited(rate_per_s=rates, drawn_per_s=rates)
    feed, sitemap = clicks(policy, snapshot)[:2]
    assert feed > 1.5 * sitemap > 0
    tree = policy.hubs.explain(policy.in_units(snapshot), 0)
    assert float(tree.value) * policy.unit(snapshot) == pytest.approx(feed, rel=1e-5)


def test_a_first_visit_bids_three_at_least() -> None:
    hubs = ClickHubs("echo", HubInterval(DAY_S))
    snapshot = three_kinds()
    pages = replace(snapshot.pages, state=np.array([UrlState.NEW] * 6))
    nothing = hub_study(hub_columns(2, row=[4, 5], profit=1e-9, amplitude=1e-9), 6, by_clicks=True)
    bids = hubs.appraise(replace(snapshot, pages=pages, hub_study=nothing), np.array([4]))
    assert values_at(bids, NOW)[0] == pytest.approx(HubInterval.FIRST_VISIT)


def test_before_any_click_is_known_a_first_visit_comes_before_most_new_pages() -> None:
    """Known hubs have not shown yet what they announce: nobody may conclude that others announce nothing."""
    policy = make_one_budget(RefreshSettings(), FOREVER)
    idle = {"rate_per_s": 1e-9 / DAY_S, "drawn_per_s": 1e-9 / DAY_S}
    clicked = unvisited(**idle)
    assert clicked.refresh_study is not None
    assert clicked.hub_study is not None
    nobody = replace(
        clicked,
        refresh_study=replace(clicked.refresh_study, clicks_per_s=0.0),
        hub_study=replace(clicked.hub_study, by_clicks=False),
    )
    scaled = policy.in_units(nobody)
    assert scaled.study is not None
    average = scaled.study.default_worth
    assert average > 10.0  # units: revisits gain next to nothing
    for price in (1.0, 0.5 * average, 2.0 * average):
        bids = policy.appraise(replace(nobody, price=price * policy.unit(nobody)), np.array([0, 1]))
        assert values_at(bids, NOW) == pytest.approx(3.0 * average, rel=1e-5)
    tree = policy.hubs.explain(scaled, 0)
    assert tree.value == pytest.approx(3.0 * average, rel=1e-5)
    assert "no click is known yet" in tree.note
    assert "no click is known yet" not in policy.hubs.explain(policy.in_units(clicked), 0).note
    assert values_at(policy.appraise(clicked, np.array([0])), NOW) == pytest.approx(3.0)


def visited_once(age_s: float, *, twice: bool = False, clicks_per_s: float = 0.01) -> Snapshot:
    """Of feeds and sitemaps that announce next to nothing as far as is known the first feed was visited once."""
    visits = [7 if twice else 1] * 4
    idle = {"rate_per_s": 1e-9 / DAY_S, "drawn_per_s": 1e-9 / DAY_S}
    snapshot = unvisited(**idle, visits=visits)
    assert snapshot.refresh_study is not None
    fetches, last = snapshot.pages.fetches.copy(), snapshot.pages.last_fetched.copy()
    fetches[3], last[3] = 1, NOW - age_s
    return replace(
        snapshot,
        pages=replace(snapshot.pages, fetches=fetches, last_fetched=last),
        refresh_study=replace(snapshot.refresh_study, clicks_per_s=clicks_per_s),
    )


def test_a_hub_is_visited_a_second_time_however_little_it_seems_to_announce() -> None:
    """Until then nobody knows: by usual intervals it bids what a first visit does at least."""
    policy = make_one_budget(RefreshSettings(hub_interval_s=3600.0), FOREVER)
    young = visited_once(1800.0)
    scaled = policy.in_units(young)
    assert scaled.study is not None
    average = scaled.study.default_worth
    assert average > 10.0
    bids = policy.appraise(young, np.array([3, 4]))
    assert values_at(bids, NOW) == pytest.approx([1.5 * average, 0.0], rel=1e-6, abs=0.01)
    assert values_at(bids, NOW + 1800.0)[0] == pytest.approx(3.0 * average)
    told = orjson.loads(policy.terms(young, np.array([3]))[0])
    assert told["bound"]
    assert told["gain"] < 1e-3  # what is expected of it stays what it was
    tree = policy.hubs.explain(scaled, 3)
    assert tree.name == "second visit of a hub"
    assert tree.value == pytest.approx(1.5 * average)
    known = policy.appraise(visited_once(3600.0, twice=True), np.array([3]))  # what hubs announce and gain is known
    assert values_at(known, NOW)[0] == pytest.approx(3.0)
    nobody = policy.appraise(visited_once(3600.0, twice=True, clicks_per_s=0.0), np.array([3]))
    assert values_at(nobody, NOW)[0] > 10.0


def test_a_price_a_little_above_the_reserve_changes_bids_of_hubs_a_little() -> None:
    """Pages cost nothing where all of them are fetched in the end, and what they cost sets in by and by."""
    policy = make_one_budget(RefreshSettings(), FOREVER)
    snapshot = three_kinds()
    scaled = policy.in_units(snapshot)
    assert scaled.hub_study is not None
    modest = replace(scaled.hub_study.hubs, profit=np.full(2, 0.95, np.float32), amplitude=np.full(2, 9.5, np.float32))
    pages = replace(scaled.pages, last_fetched=np.where(np.arange(6) > 3, NOW - 2 * DAY_S, scaled.pages.last_fetched))
    scaled = replace(scaled, hub_study=replace(scaled.hub_study, hubs=modest), pages=pages)
    at = [float(values_at(policy.hubs.appraise(replace(scaled, price=p), np.array([4])), NOW)[0]) for p in (1, 1.01, 2)]
    assert at[0] > 1.0
    assert at[1] == pytest.approx(at[0], rel=0.1)
    assert at[2] == 0.0


@pytest.mark.parametrize(("age_days", "by_bound"), [(10.0, False), (1e6, True)])
def test_the_journal_says_which_bids_a_bound_has_set(age_days: float, by_bound: bool) -> None:
    """A page that never changes gains next to nothing, and bids all the same when nobody has looked for very long."""
    changes, price = (1e-12, 3.0) if by_bound else (1.0, 0.0)
    snapshot = two_pages(age_days, changes, 20.0)
    policy = make_one_budget(RefreshSettings(), FOREVER)
    snapshot = replace(snapshot, price=price * policy.unit(snapshot))
    told = orjson.loads(policy.terms(snapshot, np.array([3]))[0])
    assert told["by"] == "user-centric"
    assert told["bound"] is by_bound


@pytest.mark.parametrize("age_days", [1.9, 5.0])
@pytest.mark.parametrize("times", [0.0, 0.9, 1.1, 1.5])
def test_a_page_that_is_a_hub_bids_both_gains_on_either_side_of_the_price(age_days: float, times: float) -> None:
    """Also where it has lost all that it has to lose, so that its refresh gains no more for waiting longer."""
    policy = make_one_budget(RefreshSettings(), FOREVER)
    hubs = hub_columns(1, row=[3], profit=[5.0], rate_per_s=1.0 / DAY_S, drawn_per_s=1.0 / DAY_S)
    snapshot = replace(two_pages(age_days, 1.0, 2.0), hub_study=hub_study(hubs, 6, by_clicks=True))
    one, at_reserve = np.array([3]), policy.in_units(snapshot)
    refresh = values_at(policy.refresh.appraise(at_reserve, one), NOW)[0]
    snapshot = replace(snapshot, price=times * refresh * policy.unit(snapshot))
    scaled = policy.in_units(snapshot)
    visit = values_at(policy.hubs.appraise(scaled, one), NOW)[0]
    assert visit > 0.0
    assert values_at(policy.appraise(snapshot, one), NOW)[0] == pytest.approx(refresh + visit, rel=1e-5)
    told = orjson.loads(policy.terms(snapshot, one)[0])
    assert told["bound"] is False
    assert told["part"] == pytest.approx(max(refresh, visit) / (refresh + visit), rel=1e-5)
    assert "both" in policy.explain(snapshot, 3).note
    decided = Decision(3, int(FetchKind.REFRESH), refresh + visit, 1.0, NOW, told)
    assert decided.prices == pytest.approx(max(refresh, visit), rel=1e-5)


def test_what_bids_by_its_age_is_added_to_nothing() -> None:
    """A main page that hardly changes and was not looked at for very long: its visit's gain is not told twice."""
    policy = make_one_budget(RefreshSettings(), FOREVER)
    hubs = hub_columns(1, row=[3], profit=[5.0], rate_per_s=1e-9 / DAY_S, drawn_per_s=1e-9 / DAY_S)
    snapshot = replace(two_pages(1e4, 1e-9, 2.0), hub_study=hub_study(hubs, 6, by_clicks=True))
    one, scaled = np.array([3]), policy.in_units(snapshot)
    parts = [values_at(part.appraise(scaled, one), NOW)[0] for part in (policy.refresh, policy.hubs)]
    assert values_at(policy.appraise(snapshot, one), NOW)[0] == pytest.approx(max(parts))
    assert "by its age" in policy.explain(snapshot, 3).note
    assert orjson.loads(policy.terms(snapshot, one)[0])["part"] is None
