"""The policy `auto`: all kinds of fetches in one unit of clicks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.appraise.hub_studies import hub_columns, hub_study, snapshot_with_hubs
from tests.appraise.snapshots import NOW, random_refresh_study, random_study, snapshot_of

from bowerbird.appraise.budget.click_pages import FLOOR, explore, lower_from_floor, raise_to_floor
from bowerbird.appraise.budget.scales import scale_clicks
from bowerbird.appraise.hubs.discovery import mean_pattern
from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.one_budget import OneBudget, make_one_budget
from bowerbird.appraise.policy import RefreshSettings
from bowerbird.model.bid import Bids, Shape, Term
from bowerbird.model.factors import Factors
from bowerbird.model.refresh_study import RefreshStudy
from bowerbird.model.snapshot import Snapshot, weigh_hosts
from bowerbird.model.study import CalibrationNote, FrontierStudy
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate

DAY_S = 86400.0


def frontier_study(worth: list[float], exposed_s: float = 10 * DAY_S) -> FrontierStudy:
    column = np.array(worth, dtype=np.float32)
    note = CalibrationNote("calibrated", 100, 50.0, "by 50 clicks")
    mean = float(np.nanmean(column)) if not np.isnan(column).all() else 0.1
    hosts = np.array([mean], dtype=np.float32)
    return FrontierStudy(
        NOW - 60, "informed", len(worth), column, column, hosts, mean, note, info={"exposed_s": exposed_s}
    )


def refresh_study(gain: list[float], changes_per_day: float, **values: object) -> RefreshStudy:
    """NaN where a row is no fetched page."""
    column = np.array(gain, dtype=np.float32)
    none = np.isnan(column)

    def filled(value: float) -> np.ndarray:
        return np.where(none, np.nan, value).astype(np.float32)

    given: dict[str, object] = {
        "at": NOW - 60,
        "method": "user-centric",
        "count": len(gain),
        "amplitude": filled(1.0),
        "rate_per_s": filled(1 / DAY_S),
        "shape": np.full(len(gain), int(Shape.LINEAR), np.uint8),
        "interval_s": filled(7 * DAY_S),
        "changes_per_s": filled(changes_per_day / DAY_S),
        "host_interval_s": np.array([7 * DAY_S], np.float32),
        "default_interval_s": 7 * DAY_S,
        "longest_s": 140 * DAY_S,
        "recall": np.zeros(0, np.float32),
        "false_rate_per_s": np.zeros(0, np.float32),
        "price": 1.0,
        "budget_per_s": float((~none).sum()) / (7 * DAY_S),
        "gain": column,
        "clicks_per_s": 0.01,
        "info": {"pages": float((~none).sum())},
        **values,
    }
    return RefreshStudy(**given)  # type: ignore[arg-type]  # values by name


def three_kinds() -> Snapshot:
    """Two new pages, two known ones, two feeds."""
    snapshot = snapshot_of(
        state=[UrlState.NEW, UrlState.NEW, *([UrlState.FETCHED] * 4)],
        kind=[*([UrlKind.PAGE] * 4), UrlKind.FEED, UrlKind.FEED],
        last_fetched=NOW - np.array([0, 0, 2.0, 0.5, 0.5, 0.1]) * DAY_S,
        fetches=3,
    )
    hubs = hub_columns(2, row=[4, 5], profit=[0.5, 5.0], rate_per_s=10 / DAY_S, drawn_per_s=10 / DAY_S)
    return replace(
        snapshot,
        study=frontier_study([0.2, 3.0, *([np.nan] * 4)]),
        refresh_study=refresh_study([np.nan, np.nan, 500.0, 500.0, np.nan, np.nan], 0.2),
        hub_study=hub_study(hubs, 6, by_clicks=True),
    )


def clicks(policy: OneBudget, snapshot: Snapshot, rows: list[int] | None = None) -> np.ndarray:
    some = np.arange(len(snapshot.pages)) if rows is None else np.array(rows)
    return values_at(policy.appraise(snapshot, some), snapshot.now) * policy.unit(snapshot)


def test_every_kind_bids_its_clicks() -> None:
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    got = clicks(policy, snapshot)
    assert got[1] == pytest.approx(9.0, rel=1e-5)  # 3 in 10 days, over 30
    # share of Q·s, by 0.01 clicks a second, at x = 0.2·2 and 0.2·0.5 changes
    assert got[2] == pytest.approx(0.01 * 500 * 0.4**2 / 2, rel=1e-4)
    assert got[3] == pytest.approx(0.01 * 500 * 0.1**2 / 2, rel=1e-4)
    g = 1 - 1.5 * np.exp(-0.5)
    assert 0 < got[4] <= 10 * 0.5 * g * (1 + 1e-4)  # lam·P/mu·g(mu·tau) at most: few of its pages are worth a fetch
    assert got[5] == pytest.approx(10 * 5.0 * (1 - 1.1 * np.exp(-0.1)), rel=1e-3)


def test_a_new_page_worth_less_than_a_unit_waits_for_idle_times() -> None:
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings(), horizon_s=DAY_S)
    values = values_at(policy.appraise(snapshot, np.array([0, 1])), NOW)
    units = np.array([0.2, 3.0]) / 10 / policy.unit(snapshot)
    for value, unit in zip(values, units, strict=True):
        assert value == pytest.approx(unit if unit > 1 else 1 + 1e-3 * (1 + np.log10(unit) / 12), rel=1e-5)


def test_the_unit_is_what_the_last_revisit_gains() -> None:
    """At a price of 1 refreshes and visits together are as many as the settings' intervals pay for."""
    snapshot = three_kinds()
    alike = hub_columns(2, row=[4, 5], profit=[4.0, 5.0], rate_per_s=10 / DAY_S, drawn_per_s=10 / DAY_S)
    snapshot = replace(snapshot, hub_study=hub_study(alike, 6, by_clicks=True))
    policy = make_one_budget(RefreshSettings())
    scaled = policy.in_units(snapshot)
    assert scaled.refresh_study is not None
    assert scaled.hub_study is not None
    assert snapshot.refresh_study is not None
    assert snapshot.hub_study is not None
    often = float((1 / scaled.refresh_study.interval_s[2:4]).sum() + (1 / scaled.hub_study.hubs.interval_s).sum())
    assert often == pytest.approx(snapshot.refresh_study.budget_per_s + snapshot.hub_study.budget_per_s, rel=1e-3)


def test_what_is_overdue_bids_no_more_than_it_can_gain() -> None:
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings())
    old = snapshot.pages.last_fetched.copy()
    old[2:] = NOW - 1000 * DAY_S
    assert snapshot.refresh_study is not None
    assert snapshot.hub_study is not None
    late = replace(
        snapshot,
        pages=replace(snapshot.pages, last_fetched=old),
        refresh_study=replace(snapshot.refresh_study, longest_s=2000 * DAY_S),
        hub_study=replace(snapshot.hub_study, longest_s=2000 * DAY_S),
    )
    got = clicks(policy, late)
    assert got[2] == pytest.approx(0.01 * 500, rel=1e-4)  # it has surely changed
    assert got[5] == pytest.approx(10 * 5.0, rel=1e-3)
    assert got[4] == pytest.approx(10 * 0.5, rel=1e-3)  # without a budget pages cost nothing
    dear = clicks(policy, replace(late, price=2.0))  # clicks: more than its pages get
    assert dear[5] == pytest.approx(10 * (5.0 - 2.0 * (1 + np.log(5.0 / 2.0))), rel=1e-3)
    assert dear[4] == 0.0  # it gains nothing


def test_a_page_that_nobody_asks_for_still_comes_round() -> None:
    snapshot = three_kinds()
    study = refresh_study([np.nan, np.nan, 1e-9, 500.0, np.nan, np.nan], 0.2)
    old = snapshot.pages.last_fetched.copy()
    policy = make_one_budget(RefreshSettings())
    for age, value in ((139.0, 0.0), (141.0, 141 / 140), (1400.0, 10.0)):  # from the longest interval on by its age
        old[2] = NOW - age * DAY_S
        late = replace(snapshot, refresh_study=study, pages=replace(snapshot.pages, last_fetched=old.copy()))
        got = float(values_at(policy.appraise(late, np.array([2])), NOW)[0])
        assert got == pytest.approx(value, rel=1e-5, abs=0.1 if value == 0.0 else 0.0)


def test_what_nobody_asks_for_reaches_any_price_of_its_host_and_after_ten_intervals_that_of_the_crawl() -> None:
    snapshot = three_kinds()
    study = refresh_study([np.nan, np.nan, 1e-9, 500.0, np.nan, np.nan], 0.2)
    policy = make_one_budget(RefreshSettings())
    unit = policy.unit(replace(snapshot, refresh_study=study))
    old = snapshot.pages.last_fetched.copy()
    for times, price, least in ((9.9, 1000.3, 0.0), (10.0, 1000.3, 1000.3), (50.0, 3.0, 50.0)):
        old[2] = NOW - times * 140 * DAY_S
        pages = replace(snapshot.pages, last_fetched=old.copy())
        late = replace(snapshot, refresh_study=study, pages=pages, price=price * unit)
        got = float(values_at(policy.appraise(late, np.array([2])), NOW)[0])
        assert least * (1.0 - 1e-6) <= got <= max(times, least) * (1.0 + 1e-6)
        assert got >= late.price / unit or times < 10.0  # never just below it


@pytest.mark.parametrize("price", [1000.3, 3.7e8])
def test_of_many_that_bid_the_price_by_their_age_the_oldest_goes_first(price: float) -> None:
    """Were their bids alike, some would wait for ever; were they far apart, they would drive the price up."""
    bids = Bids.build(np.zeros(4), rate=1.0, since=np.zeros(4))
    times = np.array([10.0, 11.1, 14.0, 900.0])
    by_age = explore(bids, np.zeros(4), times * 300.0, np.full(4, 300.0), NOW - times * 300.0, np.full(4, price))
    values = values_at(bids, NOW)
    assert by_age.all()
    assert price <= values[0] < values[1] < values[2] < values[3] < price * 1.001
    assert values[2] < price * 1.00001


@given(st.floats(0.01, 1.0), st.floats(20.0, 1e9))
@settings(max_examples=50, deadline=None)
def test_what_bids_the_price_by_its_age_bids_it_in_line_also_on_a_host_that_repeats_itself(
    trap: float, price: float
) -> None:
    """Else it would wait for years: the line multiplies what a host bids by its weight."""
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings())
    study = refresh_study([np.nan, np.nan, 1e-9, 500.0, np.nan, np.nan], 0.2)
    unit = policy.unit(replace(snapshot, refresh_study=study))
    old = snapshot.pages.last_fetched.copy()
    old[2] = NOW - 12 * 140 * DAY_S
    hosts = replace(snapshot.hosts, trap_score=np.full(len(snapshot.hosts), trap, dtype=np.float32))
    late = replace(
        snapshot,
        refresh_study=study,
        pages=replace(snapshot.pages, last_fetched=old),
        hosts=hosts,
        price=price * unit,
    )
    auction = Auction(HostGate(0.0))
    auction.gate.extend(len(hosts))
    auction.gate.columns["weight"][: len(hosts)] = weigh_hosts(hosts.trap_score)
    bids = policy.appraise(late, np.array([2]))
    auction.place(np.array([2]), bids, snapshot.pages.host[[2]], offer=False)
    auction.place(np.array([3]), Bids.build(np.array([late.price / unit])), np.array([5], dtype=np.uint32), offer=False)
    auction.refill(NOW, 1.0)
    assert [pick.row for pick in auction.pick(NOW, 1, 1.0)] == [2]


def test_a_feed_that_is_gone_waits_for_twenty_of_its_own_intervals() -> None:
    snapshot = three_kinds()
    state, old = snapshot.pages.state.copy(), snapshot.pages.last_fetched.copy()
    state[5] = UrlState.GONE
    policy = make_one_budget(RefreshSettings(gone_interval_s=365 * DAY_S))
    for years, value in ((0.5, 0.5), (5.0, 1.0), (19.9, 1.0), (40.0, 2.0)):
        old[5] = NOW - years * 365 * DAY_S
        pages = replace(snapshot.pages, state=state, last_fetched=old.copy())
        got = values_at(policy.appraise(replace(snapshot, pages=pages), np.array([5])), NOW)[0]
        assert float(got) == pytest.approx(value, rel=1e-3)


def test_no_page_is_fetched_again_before_the_shortest_interval() -> None:
    snapshot = three_kinds()
    study = refresh_study([np.nan, np.nan, 1e9, 500.0, np.nan, np.nan], 0.2)
    last = snapshot.pages.last_fetched.copy()
    last[2] = NOW - 2 * DAY_S
    young = replace(snapshot, refresh_study=study, pages=replace(snapshot.pages, last_fetched=last))
    values = [
        float(
            values_at(
                make_one_budget(RefreshSettings(min_interval_s=days * DAY_S)).appraise(young, np.array([2])), NOW
            )[0]
        )
        for days in (4.0, 1.0)
    ]
    assert values[0] == pytest.approx(0.5, rel=1e-5)
    assert values[1] > 100


def test_an_announced_page_bids_what_is_left_of_its_interest() -> None:
    snapshot = three_kinds()
    hubs = hub_columns(2, row=[4, 5], profit=[0.5, 5.0], rate_per_s=10 / DAY_S, drawn_per_s=10 / DAY_S)
    study = hub_study(hubs, 6, by_clicks=True, page_row=np.array([0, 1]), page_hub=np.array([1, 0]))
    seen = snapshot.pages.first_seen.copy()
    seen[:2] = NOW - 0.5 * DAY_S
    announced = replace(snapshot, hub_study=study, pages=replace(snapshot.pages, first_seen=seen))
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    got = clicks(policy, announced, [0, 1])
    assert got[0] == pytest.approx(5.0 * np.exp(-0.5), rel=1e-3)  # 0.6 by its links
    unit = policy.unit(announced)
    assert got[1] == pytest.approx(unit, rel=2e-3)  # 9 by its links, but pages of its hub fade: less than a unit
    unclicked = replace(announced, hub_study=replace(study, by_clicks=False))
    assert clicks(policy, unclicked, [1])[0] == pytest.approx(9.0, rel=1e-3)  # nothing is known of its hub's pages
    fades = policy.appraise(announced, np.array([0])).bid(0)
    assert fades.shape is Shape.DECAY


def test_factors_correct_a_kind_by_what_it_turned_out_to_gain() -> None:
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings())
    plain, corrected = clicks(policy, snapshot), clicks(policy, replace(snapshot, factors=Factors(new=2.0, hub=0.5)))
    assert corrected[1] == pytest.approx(2 * plain[1], rel=1e-4)
    assert corrected[2] == pytest.approx(plain[2], rel=1e-4)
    assert corrected[5] == pytest.approx(plain[5] / 2, rel=1e-3)


def test_without_clicks_every_page_is_asked_for_alike() -> None:
    snapshot = three_kinds()
    assert snapshot.refresh_study is not None
    assert snapshot.hub_study is not None
    silent = replace(snapshot.refresh_study, clicks_per_s=0.0)
    hubs = replace(snapshot.hub_study, by_clicks=False)
    scales = scale_clicks(snapshot.study, silent, hubs, 30 * DAY_S)
    assert "no click" in scales.by
    assert scales.refresh == pytest.approx(2 * 1.6 / (10 * DAY_S))  # two pages, each as the mean of the frontier
    assert scales.hub == pytest.approx(1.6 * 3)
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    assert "no click" in str(policy.explain(replace(snapshot, refresh_study=silent, hub_study=hubs), 2).as_dict())


def test_a_study_without_clicks_is_put_right_by_one_that_has_heard_of_some_since() -> None:
    """The study of new pages takes longest: until its next one, new pages would bid as if nobody clicked."""
    snapshot = three_kinds()
    study, refresh = snapshot.study, snapshot.refresh_study
    assert study is not None
    assert refresh is not None
    unheard = replace(study, calibration=CalibrationNote("prior", 100, 0.0, "too little"), info={"exposed_s": 1e9})
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    one = replace(snapshot, study=unheard)
    fetched = 0.01 / 2 * 30 * DAY_S  # what the two fetched pages get each
    later = replace(one, refresh_study=replace(refresh, at=unheard.at + 1.0))
    assert clicks(policy, later, [1])[0] == pytest.approx(fetched * 3.0 / 1.6, rel=1e-4)  # as links tell them apart
    assert clicks(policy, one, [1])[0] < 1e-3 * fetched  # that one knew no more
    learnt = replace(later, study=replace(unheard, calibration=study.calibration))
    assert clicks(policy, learnt, [1])[0] < 1e-3 * fetched  # by clicks: the same pages' own


def test_before_any_study_it_goes_by_links_and_intervals() -> None:
    snapshot = replace(three_kinds(), study=None, refresh_study=None, hub_study=None)
    policy = make_one_budget(RefreshSettings())
    assert policy.unit(snapshot) == 0.0
    values = values_at(policy.appraise(snapshot, np.arange(6)), NOW)
    assert (values[:2] >= 1).all()
    assert values[4] == pytest.approx(2.0)  # half a day, of six hours


def test_the_tree_adds_up_to_clicks() -> None:
    snapshot = three_kinds()
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    for row in range(6):
        tree = policy.explain(snapshot, row)
        value = float(values_at(policy.appraise(snapshot, np.array([row])), NOW)[0])
        assert tree.value == pytest.approx(value, rel=1e-4)
        assert tree.children[0].name == "expected clicks of this fetch"
        gain = tree.children[0].value
        assert isinstance(gain, float)
        if row < 2:  # the first bids 1 unit all the same
            assert gain == pytest.approx(0.6 if row == 0 else value * policy.unit(snapshot), rel=1e-3)
        else:  # what goes by its age gains less than it bids
            told = orjson.loads(policy.terms(snapshot, np.array([row]))[0])
            assert gain == pytest.approx(told["gain"] * policy.unit(snapshot), rel=1e-4)
            assert gain == pytest.approx(value * policy.unit(snapshot), rel=1e-4) or told["bound"]


@pytest.mark.parametrize("seed", range(6))
def test_any_crawl_gets_bids_that_can_be_compared(seed: int) -> None:
    states = (UrlState.NEW, UrlState.FETCHED, UrlState.GONE, UrlState.REDIRECT, UrlState.EXCLUDED)
    snapshot = snapshot_with_hubs(seed, 60, states, (UrlKind.PAGE, UrlKind.FEED))
    rng = np.random.default_rng(seed)
    refresh = random_refresh_study(rng, snapshot)
    gain = np.where(np.isnan(refresh.amplitude), np.nan, rng.lognormal(0, 4, refresh.count)).astype(np.float32)
    snapshot = replace(
        snapshot,
        study=random_study(rng, snapshot, "informed"),
        refresh_study=replace(refresh, gain=gain, clicks_per_s=0.3 * (seed % 2)),
    )
    policy = make_one_budget(RefreshSettings())
    rows = np.arange(60)
    bids: Bids = policy.appraise(snapshot, rows)
    values = values_at(bids, NOW)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (values[snapshot.pages.state == UrlState.EXCLUDED] == 0).all()
    for row in rows[values > 0].tolist():
        assert policy.explain(snapshot, row).value == pytest.approx(values[row], rel=1e-3)
    assert len(policy.terms(snapshot, rows)) == 60


def terms_of(tree: Term) -> dict[str, float | str]:
    return {child.name: child.value for child in tree.children}


@pytest.mark.parametrize("price", [0.0, 8.0])
def test_the_terms_of_a_visit_multiply_to_its_bid(price: float) -> None:
    snapshot = three_kinds()
    assert snapshot.hub_study is not None
    busy = np.where(np.arange(168) % 24 < 12, 1.5, 0.5).astype(np.float32)  # news has its hours
    snapshot = replace(
        snapshot,
        hub_study=replace(snapshot.hub_study, pattern=busy),
        factors=Factors(hub=0.5, feed_cost=2.0),
        price=price,
    )
    policy = make_one_budget(RefreshSettings(), horizon_s=1e9)
    gain, cost, visit = policy.explain(snapshot, 5).children
    assert (cost.name, cost.value, visit.name) == ("cost", 2.0, "gain of a visit")
    terms = {name: value for name, value in terms_of(visit).items() if isinstance(value, float)}
    assert ("kept" in terms) == (price > 0)
    bid = float(values_at(policy.appraise(snapshot, np.array([5])), NOW)[0])
    assert np.prod(list(terms.values())) == pytest.approx(bid, rel=1e-3)
    assert terms["units_per_new_page"] == pytest.approx(5.0 / policy.unit(snapshot), rel=1e-4)
    assert terms["new_pages_since"] == pytest.approx(1.0, rel=1e-4)
    since = snapshot.pages.last_fetched[[5]].astype(np.float64)
    assert terms["hours_since"] == pytest.approx(float(mean_pattern(busy, since, NOW)[0]))
    assert (terms["factor"], terms["1/cost"]) == (0.5, 0.5)
    assert gain.value == pytest.approx(2.0 * bid * policy.unit(snapshot), rel=1e-3)  # a bid is the gain by its cost


def test_a_hub_visited_a_moment_ago_is_held_back_and_not_overdue() -> None:
    snapshot = three_kinds()
    last = snapshot.pages.last_fetched.copy()
    last[5] = NOW - 40.0
    policy = make_one_budget(RefreshSettings(min_interval_s=100.0), horizon_s=1e9)
    tree = policy.explain(replace(snapshot, pages=replace(snapshot.pages, last_fetched=last)), 5)
    held = tree.children[1]
    assert held.name == "held back"
    terms = terms_of(held)
    assert terms["age/shortest interval"] == pytest.approx(0.4)
    assert terms["age/shortest interval"] * terms["bid at its end"] == pytest.approx(tree.value)
    assert "overdue" not in str(tree.as_dict())


def test_no_two_numbers_of_a_tree_have_one_name() -> None:
    snapshot = three_kinds()
    assert snapshot.hub_study is not None
    snapshot = replace(snapshot, hub_study=replace(snapshot.hub_study, by_clicks=False))
    policy = make_one_budget(RefreshSettings(), horizon_s=30 * DAY_S)
    for row in range(6):
        text = str(policy.explain(snapshot, row).as_dict())
        assert "'price'" not in text
        assert "'expected clicks'" not in text
        assert "no clicks are known" not in text
    assert "no click on a page that a hub announced is known yet" in str(policy.explain(snapshot, 5).as_dict())


def test_a_page_that_is_a_hub_gains_both() -> None:
    snapshot = three_kinds()
    kinds = snapshot.pages.kind.copy()
    kinds[5] = UrlKind.PAGE
    study = refresh_study([np.nan, np.nan, 500.0, 500.0, np.nan, 500.0], 0.2)
    snapshot = replace(snapshot, pages=replace(snapshot.pages, kind=kinds), refresh_study=study)
    policy = make_one_budget(RefreshSettings(), horizon_s=1e9)
    visit, refresh = 10 * 5.0 * (1 - 1.1 * np.exp(-0.1)), 0.01 * 500 * 0.02**2 / 2
    assert clicks(policy, snapshot, [5])[0] == pytest.approx(visit + refresh, rel=1e-3)
    tree = policy.explain(snapshot, 5)
    assert tree.children[0].value == pytest.approx(visit + refresh, rel=1e-3)
    assert "both" in tree.note


@pytest.mark.parametrize(("loss", "kind"), [(500.0, FetchKind.HUB), (5e7, FetchKind.REFRESH)])
def test_a_fetch_is_of_the_kind_that_bids_more(loss: float, kind: FetchKind) -> None:
    snapshot = three_kinds()
    kinds = snapshot.pages.kind.copy()
    kinds[5] = UrlKind.PAGE
    study = refresh_study([np.nan, np.nan, 500.0, 500.0, np.nan, loss], 0.2)
    snapshot = replace(snapshot, pages=replace(snapshot.pages, kind=kinds), refresh_study=study)
    policy = make_one_budget(RefreshSettings(), horizon_s=1e9)
    (why,) = policy.terms(snapshot, np.array([5]))
    assert policy.fetch_kind(UrlState.FETCHED, UrlKind.PAGE, why) is kind


def test_interest_after_the_horizon_does_not_count() -> None:
    snapshot = two_announced(by_clicks=True)
    short, long = (
        clicks(make_one_budget(RefreshSettings(), horizon_s=days * DAY_S), snapshot, [0]) for days in (1, 1000)
    )
    decay = float(snapshot.hub_study.hubs.decay_per_s[snapshot.hub_study.page_hub[0]])
    assert short[0] == pytest.approx(long[0] * (1 - np.exp(-decay * DAY_S)), rel=1e-3)


def test_a_visit_gains_the_clicks_until_the_next_whatever_the_horizon() -> None:
    """A page found later gets its later clicks all the same, unless the horizon is past by then."""
    snapshot = three_kinds()  # the hub was visited 0.1 days ago
    some = [
        clicks(make_one_budget(RefreshSettings(), horizon_s=days * DAY_S), snapshot, [5])[0] for days in (1000, 1, 0.05)
    ]
    assert some[1] == pytest.approx(some[0], rel=0.02)
    assert some[2] == pytest.approx(10 * 5.0 * (0.05**2 / 2 + 0.05 * 0.05), rel=0.1)  # young ones count to the end only


def test_a_visit_is_worth_no_more_than_its_pages_gain_above_the_price() -> None:
    snapshot = three_kinds()  # 5 clicks a page of the hub
    policy = make_one_budget(RefreshSettings(), horizon_s=1e9)
    assert snapshot.hub_study is not None
    spread = np.array([0.1, 0.3, 0.4, 0.6, 0.9, 1.4, 3.3], np.float32)
    for parts, prices in ((np.ones(7, np.float32), (0.0, 1.0, 4.9, 5.1)), (spread, (0.0, 0.5, 10.0, 20.0))):
        known = replace(snapshot, hub_study=replace(snapshot.hub_study, page_spread=parts))
        got = [clicks(policy, replace(known, price=price), [5])[0] for price in prices]
        assert got[0] == pytest.approx(got[1], rel=0.05)  # nearly all of its pages have more
        assert got[1] > got[2] > 0  # of pages that can be told apart one in seven has more than 10
        assert got[3] == 0.0
    assert clicks(policy, replace(snapshot, price=20.0), [1])[0] == pytest.approx(3 / (10 * DAY_S) * 1e9, rel=1e-3)


def test_no_hub_comes_before_the_shortest_interval() -> None:
    snapshot = three_kinds()
    late = make_one_budget(RefreshSettings(min_interval_s=0.2 * DAY_S))
    assert float(values_at(late.appraise(snapshot, np.array([5])), NOW)[0]) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("price", [1.0, 4.0])
def test_whatever_the_price_everything_comes_round(price: float) -> None:
    """After the longest interval, and as many times that as the price is."""
    snapshot = three_kinds()
    state = snapshot.pages.state.copy()
    state[3] = UrlState.GONE
    study = refresh_study([np.nan, np.nan, 1e-12, np.nan, np.nan, np.nan], 0.2)
    policy = make_one_budget(RefreshSettings(gone_interval_s=7 * DAY_S))
    unit = policy.unit(replace(snapshot, refresh_study=study))
    for days, due in ((139.0, False), (141.0, price == 1.0), (139.0 * price, False), (141.0 * price, True)):
        last = snapshot.pages.last_fetched.copy()
        last[2:4] = NOW - days * DAY_S
        pages = replace(snapshot.pages, last_fetched=last, state=state)
        late = replace(snapshot, refresh_study=study, pages=pages, price=price * unit)
        values = values_at(policy.appraise(late, np.array([2])), NOW)
        assert (values[0] >= price * (1 - 1e-5)) == due
    assert float(values_at(policy.appraise(late, np.array([3])), NOW)[0]) >= price * (1 - 1e-5)


def test_what_a_hub_adds_to_a_page_is_bounded_right_after_a_fetch() -> None:
    snapshot = three_kinds()
    kinds, last = snapshot.pages.kind.copy(), snapshot.pages.last_fetched.copy()
    kinds[5], last[5] = UrlKind.PAGE, NOW - 0.01
    study = refresh_study([np.nan, np.nan, 500.0, 500.0, np.nan, 500.0], 0.2)
    young = replace(snapshot, pages=replace(snapshot.pages, kind=kinds, last_fetched=last), refresh_study=study)
    bid = make_one_budget(RefreshSettings()).appraise(young, np.array([5])).bid(0)
    assert bid.value(NOW + 30.0) <= 0.51  # half of the shortest interval


def two_announced(*, by_clicks: bool) -> Snapshot:
    """The new pages were found half a day ago, by the hub of much and by that of little interest."""
    snapshot = three_kinds()
    hubs = hub_columns(2, row=[4, 5], profit=[0.5, 5.0], rate_per_s=10 / DAY_S, drawn_per_s=10 / DAY_S)
    study = hub_study(hubs, 6, by_clicks=by_clicks, page_row=np.array([0, 1]), page_hub=np.array([1, 0]))
    seen = snapshot.pages.first_seen.copy()
    seen[:2] = NOW - 0.5 * DAY_S
    return replace(snapshot, hub_study=study, pages=replace(snapshot.pages, first_seen=seen))


@pytest.mark.parametrize("by_clicks", [True, False])
def test_pages_that_bid_by_their_hub_are_said_to_be_announced_with_what_they_gain(by_clicks: bool) -> None:
    """Once clicks tell, also one that gains less than a unit, whatever its links promise; before, only what fades."""
    snapshot, policy = two_announced(by_clicks=by_clicks), make_one_budget(RefreshSettings())
    told = [orjson.loads(one) for one in policy.terms(snapshot, np.arange(6))]
    assert ["announced" in one for one in told] == [True, by_clicks, False, False, False, False]
    bids = policy.appraise(snapshot, np.arange(2))
    assert bids.shape.tolist() == [Shape.DECAY, Shape.CONSTANT]
    units = [one["units"] for one in told[:2]]
    assert units[0] == pytest.approx(bids.bid(0).value(NOW), rel=1e-5)
    assert units[1] == pytest.approx(float(lower_from_floor(bids.amplitude[1:2])[0]), rel=2e-3)
    assert (units[1] < 1.0) == by_clicks
    if by_clicks:
        assert told[1]["half_life_s"] == pytest.approx(np.log(2) * DAY_S, rel=1e-4)
    assert told[4]["expected_found"] == pytest.approx(5.0, rel=1e-4)
    assert told[2]["by"] == "user-centric"


def test_the_tree_of_an_announced_page_has_the_bid_and_not_what_its_links_promise() -> None:
    snapshot, policy = two_announced(by_clicks=True), make_one_budget(RefreshSettings())
    tree = policy.explain(snapshot, 1)
    bid = policy.appraise(snapshot, np.array([1])).bid(0).value(NOW)
    assert 1.0 < bid <= 1.0 + FLOOR
    assert tree.value == pytest.approx(bid, abs=1e-6)
    clicks, gain = tree.children
    assert clicks.value == pytest.approx(0.5 * np.exp(-0.5), rel=1e-3)
    assert gain.name == "gain of an announced page"
    assert gain.children[-1].value == pytest.approx(9.0 / policy.unit(snapshot), rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 0.1, 3.0, 50.0]), st.sampled_from([1e-3, 1.0, 1e3]))
def test_of_any_row_the_tree_has_the_value_of_the_bid(seed: int, by_clicks: bool, days: float, profit: float) -> None:
    """Announced pages of any age and interest among them."""
    states = (UrlState.NEW, UrlState.NEW, UrlState.FETCHED, UrlState.GONE, UrlState.EXCLUDED)
    snapshot = snapshot_with_hubs(seed, 30, states, (UrlKind.PAGE, UrlKind.PAGE, UrlKind.FEED))
    rng = np.random.default_rng(seed)
    refresh = random_refresh_study(rng, snapshot)
    gain = np.where(np.isnan(refresh.amplitude), np.nan, rng.lognormal(0, 4, refresh.count)).astype(np.float32)
    assert snapshot.hub_study is not None
    hubs = snapshot.hub_study.hubs
    seen = (NOW - rng.exponential(1.0, 30) * days * DAY_S).astype(snapshot.pages.first_seen.dtype)
    snapshot = replace(
        snapshot,
        study=random_study(rng, snapshot, "informed"),
        refresh_study=replace(refresh, gain=gain, clicks_per_s=0.3),
        hub_study=replace(
            snapshot.hub_study, by_clicks=by_clicks, hubs=replace(hubs, profit=hubs.profit * np.float32(profit))
        ),
        pages=replace(snapshot.pages, first_seen=seen),
    )
    policy = make_one_budget(RefreshSettings())
    rows = np.arange(30)
    values = values_at(policy.appraise(snapshot, rows), NOW)
    told = np.array([policy.explain(snapshot, row).value for row in rows.tolist()], np.float64)
    assert told == pytest.approx(values, rel=1.1e-3, abs=1e-6)  # a bound is said where it sets more than that
    new = (snapshot.pages.state == UrlState.NEW) & (snapshot.pages.kind == UrlKind.PAGE)
    assert told[new] == pytest.approx(values[new], rel=1e-5)


@pytest.mark.parametrize("gain", [1e-9, 500.0, 1e12])
def test_a_bid_made_early_is_not_due_for_being_old_enough(gain: float) -> None:
    """A bid stands until it is made anew: by then the shortest interval may have passed."""
    snapshot = three_kinds()
    kinds, last = snapshot.pages.kind.copy(), snapshot.pages.last_fetched.copy()
    kinds[5], last[[2, 5]] = UrlKind.PAGE, NOW - 0.01
    study = refresh_study([np.nan, np.nan, gain, 500.0, np.nan, np.nan], 0.2)
    young = replace(snapshot, pages=replace(snapshot.pages, kind=kinds, last_fetched=last), refresh_study=study)
    policy = make_one_budget(RefreshSettings(min_interval_s=60.0))
    bid = policy.appraise(young, np.array([2])).bid(0)
    later = replace(young, now=NOW + 61.0)
    then = float(values_at(policy.appraise(later, np.array([2])), NOW + 61.0)[0])
    assert (bid.value(NOW + 61.0) >= 1.0) == (then >= 1.0)
    assert bid.value(NOW + 59.9) == pytest.approx(min(then, 1.0), rel=0.05)


@given(st.lists(st.floats(1e-11, 0.9), min_size=2, max_size=20, unique=True))
def test_the_floor_keeps_the_order_also_in_single_precision(units: list[float]) -> None:
    gains = np.array(sorted(units))
    apart = np.diff(np.log(gains)) > 0.02
    bids = raise_to_floor(gains).astype(np.float32)
    assert (np.diff(bids)[apart] > 0).all()
    assert (np.diff(bids) >= 0).all()
    assert (bids >= 1.0).all()
    assert (bids <= 1.0 + FLOOR + 1e-6).all()
    assert lower_from_floor(raise_to_floor(gains)) == pytest.approx(gains, rel=1e-6)


@pytest.mark.parametrize("missing", ["study", "refresh_study", "hub_study"])
def test_until_all_kinds_are_studied_none_of_them_bids_by_a_study(missing: str) -> None:
    """What one expects in clicks cannot be held against links and intervals of the others."""
    snapshot = three_kinds()
    rows = np.arange(6)
    policy = make_one_budget(RefreshSettings())
    without = replace(snapshot, study=None, refresh_study=None, hub_study=None)
    young = replace(snapshot, **{missing: None})
    assert (
        values_at(policy.appraise(young, rows), NOW).tolist() == values_at(policy.appraise(without, rows), NOW).tolist()
    )
    assert (
        values_at(policy.appraise(snapshot, rows), NOW).tolist()
        != values_at(policy.appraise(young, rows), NOW).tolist()
    )
    assert "basis" not in orjson.loads(policy.terms(young, np.array([0]))[0]) or (
        orjson.loads(policy.terms(young, np.array([0]))[0])["basis"] != "study"
    )
