"""The dashboard's panel of the budget: by kind, host and topic, in clicks, the price, the watch, and what if."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from tests.crawl.auto_past import PRICE, UNIT, make_auto_past
from tests.crawl.crawling import set_policy
from tests.serve.conftest import make_client, served, wait_for

from bowerbird.appraise.budget.watch import watch_kind
from bowerbird.appraise.policy import PLAIN
from bowerbird.crawl.watch_report import report_watch
from bowerbird.model.factors import Factors
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.model.watch import Watch
from bowerbird.serve import dashboard_spending
from bowerbird.serve.app import create_app
from bowerbird.serve.dashboard_budget import budget_panel, gain_layers, host_layers, marginal_rows, topic_layers
from bowerbird.serve.dashboard_data import Glance
from bowerbird.serve.dashboard_panels import quality_panel
from bowerbird.serve.dashboard_spending import (
    Gained,
    NearPrice,
    Spent,
    expected_clicks,
    largest,
    read_origins,
    read_spent,
    tell_gains,
    topic_of,
)
from bowerbird.serve.dashboard_survey import Survey
from bowerbird.serve.dashboard_text import add_filters
from bowerbird.serve.journal_intervals import IntervalReader
from bowerbird.serve.pages import environment
from bowerbird.store import schema
from bowerbird.store.folder import CrawlFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LATE = "http://a.example/topic/late-3"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    past = make_auto_past(tmp_path_factory.mktemp("auto") / "crawl", rate_per_s=0.01)
    past.repository.close()
    return past.folder.root


@pytest.fixture(autouse=True)
def filters() -> None:
    add_filters(environment())  # as a service does


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "crawl"))


@pytest.fixture
def connection(made: Path) -> Iterator[sqlite3.Connection]:
    opened = schema.open_database(CrawlFolder(made).database, write=False)
    yield opened
    opened.close()


def ends(connection: sqlite3.Connection) -> tuple[float, float]:
    first, last = connection.execute("SELECT min(fetched_at), max(fetched_at) FROM fetches").fetchone()
    return float(first), float(last)


def test_what_was_spent_adds_up(connection: sqlite3.Connection) -> None:
    start, end = ends(connection)
    spent = IntervalReader(read_spent).intervals(connection, start, end + 1, 3600.0)
    (whole,) = connection.execute("SELECT count(*) FROM fetches").fetchone()
    for name in ("hosts", "topics"):
        assert sum(sum(getattr(part, name).values()) for part in spent) == whole
    gains = [part.in_units for part in spent]  # no click is known
    prices = [part.price for part in gains if part.price is not None]
    assert prices
    assert prices == pytest.approx([PRICE * UNIT] * len(prices))
    # of 40 decisions of a kind half bid 10 prices, half 1.25
    hubs = sum(part.clicks.get("hub", 0.0) for part in gains)
    assert hubs == pytest.approx(20 * (10 + 1.25) * PRICE * UNIT)
    near = NearPrice()
    for part in gains:
        near = near.joined(part.near_price.get("hub", NearPrice()))
    assert (near.many, near.clicks / near.many) == (20, pytest.approx(1.25 * PRICE * UNIT))
    assert near.prices / near.many == pytest.approx(1.25)


def test_intervals_that_passed_are_remembered(connection: sqlite3.Connection) -> None:
    start, end = ends(connection)
    reader = IntervalReader(read_spent)
    first = reader.intervals(connection, start, end + 1, 3600.0)
    again = reader.intervals(connection, start, end + 1, 3600.0)
    assert sum(one is other for one, other in zip(first, again, strict=True)) >= len(first) - 1
    assert [part.hosts for part in first] == [part.hosts for part in again]


def test_a_long_journal_is_told_from_a_sample(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    (top,) = connection.execute("SELECT max(id) FROM fetches").fetchone()
    whole = read_spent(connection, 1, top + 1, 0.0, 1.0)
    assert not whole.sampled
    monkeypatch.setattr(dashboard_spending, "RUNS", 10)
    monkeypatch.setattr(dashboard_spending, "RUN_ROWS", 8)
    some = read_spent(connection, 1, top + 1, 0.0, 1.0)
    assert some.sampled
    assert sum(some.hosts.values()) == pytest.approx(sum(whole.hosts.values()))
    assert some.in_units.clicks["hub"] == pytest.approx(whole.in_units.clicks["hub"], rel=0.5)


def test_topics_and_clicks_of_a_fetch() -> None:
    assert topic_of("http://a.example/") == "(top level)"
    assert topic_of("http://a.example//x/y") == "(top level)"
    assert topic_of("http://[broken/x/y") == "(top level)"
    assert expected_clicks({"units": 0.2}, 1.0002, 0.5) == pytest.approx(0.1)  # it bid the floor
    assert expected_clicks({"units": 7.0}, 7.0, 0.5) == 3.5
    assert expected_clicks({"units": 0.2, "announced": 4.0}, 3.0, 0.5) == 1.5
    assert expected_clicks({"units": 0.2, "announced": 4.0}, 1.0009, 0.5) == pytest.approx(0.1)
    assert expected_clicks({"gain": 3.0, "cost": 2.0}, 9.0, 0.5) == 3.0  # it went by its age, and is dear
    assert expected_clicks({"gain": 3.0}, 3.0, 0.5) == 1.5


def test_what_sets_a_bid_beside_its_gain_does_not_count_at_the_margin() -> None:
    """New pages that gain little bid the floor, refreshes that cost little bid more than they gain."""
    spent = Spent(0.0, 10.0)
    spent.take(
        (int(FetchKind.NEW), 1.0009, 1.0, '{"unit":0.5,"units":0.02,"basis":"study"}', 3, "http://a.example/x/y"), 2.0
    )
    refresh = '{"unit":0.5,"gain":1.2,"cost":0.5,"expected_gain":1.0,"expected_chance":0.5}'
    spent.take((int(FetchKind.REFRESH), 1.2, 1.0, refresh, 3, "http://a.example/x/y"), 2.0)
    near = spent.by_clicks.near_price
    assert near["new"].prices / near["new"].many == pytest.approx(0.02)
    assert near["refresh"].prices / near["refresh"].many == pytest.approx(1.2)
    assert near["refresh"].clicks / near["refresh"].many == pytest.approx(0.3)  # 1.2 units, half of a fetch


def test_decisions_without_clicks_have_no_price() -> None:
    spent = Spent(0.0, 10.0)
    spent.take((int(FetchKind.NEW), 1.5, 1.0, "{}", 3, "http://a.example/x/y"), 2.0)
    assert (spent.hosts, spent.topics) == ({3: 2.0}, {"/x/": 2.0})
    assert (spent.by_clicks, spent.in_units) == (Gained(), Gained())
    assert tell_gains([spent]).price is None


def test_what_was_drawn_by_lot_is_spent_and_expects_nothing() -> None:
    spent = Spent(0.0, 10.0)
    terms = '{"by":"lot","stratum":"hubs","unit":0.5}'
    spent.take((int(FetchKind.PROBE), 1.5, 1.0, terms, 3, "http://a.example/x/y"), 2.0)
    assert (spent.hosts, spent.by_clicks) == ({3: 2.0}, Gained())


def fetch(bid: float, price: float, **terms: object) -> tuple[int, float, float, str, int, str]:
    return int(FetchKind.NEW), bid, price, orjson.dumps(terms).decode(), 3, "http://a.example/x/y"


def test_before_any_click_is_known_gains_are_in_units_of_now() -> None:
    early, late = Spent(0.0, 10.0), Spent(10.0, 10.0)
    early.take(fetch(8.0, 2.0, unit=0.5, by_clicks=False), 1.0)
    late.take(fetch(4.0, 3.0, unit=0.25, by_clicks=False), 1.0)
    told = tell_gains([early, late])
    assert told.noun == "units"
    assert [part.clicks["new"] for part in told.parts] == [16.0, 4.0]  # of the last of them
    assert [part.price for part in told.parts] == [4.0, 3.0]
    assert tell_gains([early, late], unit=0.125).price == 6.0
    joined = tell_gains([early.joined(late)])
    assert (joined.price, joined.parts[0].clicks) == (3.5, {"new": 20.0})


def test_once_clicks_are_known_units_are_not_called_clicks() -> None:
    early, late = Spent(0.0, 10.0), Spent(10.0, 10.0)
    for part in (early, late):
        part.take(fetch(8.0, 2.0, unit=0.5, by_clicks=False), 1.0)
    late.take(fetch(4.0, 3.0, unit=0.25), 1.0)
    told = tell_gains([early, late], unit=0.5)
    assert (told.noun, told.price) == ("clicks", 0.75)
    assert [part.clicks for part in told.parts] == [{}, {"new": 1.0}]


def test_layers_are_the_largest_and_the_others() -> None:
    parts = [Spent(0.0, 10.0, hosts={n: float(n) for n in range(15)}), Spent(10.0, 5.0, hosts={14: 5.0})]
    glance = Glance(0.0, "x", "all", spent=parts, origins={14: "http://h14.example"})
    layers = host_layers(glance)
    assert len(layers) == 11
    assert layers[0].label == "h14.example"
    assert list(layers[0].values) == [1.4, 1.0]
    assert layers[-1].label == "5 others"
    assert sum(float(layer.values[0] or 0) for layer in layers) == pytest.approx(sum(range(15)) / 10)
    assert topic_layers([Spent(0.0, 1.0)]) == []
    assert largest([{1: 1.0, 2: 5.0}, {1: 9.0}], 1) == [1]


def test_rows_of_the_tables() -> None:
    gained = Gained({"new": 2.0}, {"new": NearPrice(4.0, 8.0, 5.0)})
    layers = gain_layers([Spent(0.0, 36.0)], [gained])
    assert [list(layer.values) for layer in layers] == [[200.0], [0.0], [0.0]]
    (row,) = marginal_rows([gained])
    assert (row.kind, row.many, row.prices) == ("new pages", 4.0, 1.25)
    assert row.worth is None  # no watch has looked back yet


def test_a_marginal_value_is_what_bids_turned_out_to_gain() -> None:
    """Of hubs that is surely too little, of new pages it cannot be told, of refreshes nothing was looked at."""
    rng = np.random.default_rng(1)
    right, few = rng.poisson(1.0, 900).astype(float), np.ones(4)
    kinds = [
        watch_kind("announced", np.ones(900), right, "clicks"),
        watch_kind("hub", np.ones(900), rng.poisson(0.5, 900).astype(float), "prices"),
        watch_kind("new", few, few, "clicks"),
    ]
    told = report_watch(Watch(0.0, (), (), Factors(), margins=tuple(kinds)))
    near = {name: NearPrice(4.0, 8.0, 5.0) for name in ("new", "announced", "refresh", "hub")}
    rows = {row.kind: row for row in marginal_rows([Gained({}, near)], {"watch": told})}
    assert [row.worth is not None for row in rows.values()] == [False, True, False, True]
    worth = rows["hub visits"].worth
    assert worth is not None
    assert worth[0] == pytest.approx(1.25 * 0.5, rel=0.1)
    assert worth[1] < worth[0] < worth[2] < 0.8 * 1.25
    assert [bool(row.margin and row.margin["surely_off"]) for row in rows.values()] == [False, False, False, True]


def test_bids_that_a_bound_has_set_are_not_at_the_margin() -> None:
    gained = Gained()
    terms: dict[str, object] = {"by": "user-centric", "expected_gain": 0.1, "expected_chance": 0.5, "bound": True}
    gained.take(FetchKind.REFRESH, 1.0, 1.0, terms, 0.5, 1.0)
    assert (gained.clicks, gained.near_price) == ({"refresh": 0.5}, {})
    gained.take(FetchKind.REFRESH, 1.0, 1.0, {**terms, "bound": False}, 0.5, 1.0)
    assert gained.near_price == {"refresh": NearPrice(1.0, 0.5, 1.0)}
    for bid in (0.4, 2.1):  # nor is what the watch has not near the price
        gained.take(FetchKind.REFRESH, bid, 1.0, {**terms, "bound": False}, 0.5, 1.0)
    assert gained.near_price == {"refresh": NearPrice(1.0, 0.5, 1.0)}


def test_predicted_quality_is_drawn_where_people_clicked() -> None:
    def row(times: float, stale: float | None) -> dict[str, Any]:
        return {
            "times": times,
            "price_clicks": 1.0,
            "fetches_per_s": times,
            "clicks_per_hour": 9.0 * times,
            "stale_quality": stale,
        }

    def said(*stale: float | None) -> str:
        rows = [row(times, one) for times, one in zip((0.5, 1.0), stale, strict=True)]
        what = {"budget_per_s": 1.0, "asked_per_s": 9.0, "by_setting": True, "unit_clicks": 0.5, "by_clicks": True}
        survey = Survey(0.0, 0.0, what_if={**what, "rows": rows})
        survey.status["one_budget"] = {"unit_clicks": None, "by_clicks": True, "waits_for": [], "watch": None}
        totals = {(int(FetchKind.NEW), int(Outcome.OK)): 5}
        return unescape(budget_panel(Glance(0.0, "x", "all", survey=survey, totals=totals)))

    panel = said(0.3, 0.08)
    assert "Search quality by budget" in panel
    assert "½ of it 70%, as now 92%" in panel
    assert "Search quality by budget" not in said(None, None)


def test_hosts_have_names(connection: sqlite3.Connection) -> None:
    assert read_origins(connection, [1, 99]) == {1: "http://a.example", 99: "?"}


def panel_of(client: Any) -> str:
    text = str(client.get("/dashboard").text)
    return text.split('id="panel-budget"')[1].split("</section>", maxsplit=1)[0]


def test_the_panel_and_the_api_show_it(root: Path) -> None:
    with make_client(create_app(root, rate_per_s=0)) as client:
        assert wait_for(lambda: "What if the budget were another?" in panel_of(client))
        assert wait_for(lambda: "Predicted from the bids of now" in panel_of(client))
        panel = panel_of(client)
        assert "Fetches a second, by host" in panel
        assert "a.example" in panel
        assert "/topic/" in panel
        assert "no click is known yet" in panel
        assert "One more new page a second would gain about" in panel
        assert "Marginal value by kind" in panel
        assert panel.count("1.25") >= 2
        assert '<span class="pill warn">drifts</span>' in panel
        assert "against 0.01 fetches a second of its budget" in panel
        assert panel.count("ratio (shrunk)") == 2
        assert "By who expected it" in panel
        for name in {one["name"] for one in client.get("/api/status").json()["one_budget"]["watch"]["appraisers"]}:
            assert escape(name) in panel
        said = re.sub(r"<[^>]*>", "", unescape(panel))
        assert "count nobody's clicks" in said
        for thing in ("Expected units an hour", "had to gain, in units.", "units/h"):
            assert thing in said
        for thing in ("clicks an hour", "gain, in clicks", "clicks/h"):
            assert thing not in said
        status = client.get("/api/status").json()["one_budget"]
        assert re.search(r"would gain about [0-9.]+[kMGT]? units an hour", said)
        assert status["price_clicks"] == pytest.approx(PRICE * UNIT)
        assert {kind["name"] for kind in status["watch"]["kinds"]} == {"new", "announced", "refresh", "hub"}
        story = client.get("/api/explain", params={"url": LATE}).json()
        assert story["standing"]["price"] == pytest.approx(story["price"])
        assert story["standing"]["unit"] == "units"
        assert [node["name"] for node in story["decision"]["children"]][1:] == [
            "price in units",
            "host",
            "rank in line",
            "to be fetched sooner",
        ]
        assert [event["worth"]["unit"] for event in story["history"]] == ["units", "units"]
        page = client.get("/explain", params={"url": LATE}).text
        assert len(re.findall(r'<td class="num">[^<]+ <span class="soft">units</span></td>', page)) == 4
        assert "units expected of a fetch now" in page
        assert "(no click is known yet)" in page
        assert "to be fetched sooner" in page
        assert "times the expected gain" in page


def test_where_nothing_was_measured_the_share_of_probes_is_that_of_the_settings() -> None:
    def said(survey: Survey | None) -> str:
        return quality_panel(Glance(0.0, "x", "all", survey=survey))

    assert "10% of the fetches, by <code>quality.probe_share</code>" in said(Survey(0.0, 0.0, probe_share=0.1))
    assert "(<code>quality.probe_share</code> of the fetches)" in said(None)


def test_a_young_crawl_says_what_it_waits_for(folder: Path) -> None:
    with make_client(create_app(folder, rate_per_s=0)) as client:
        assert wait_for(lambda: "Being counted" not in client.get("/dashboard").text)
        panel = panel_of(client)
        assert "Bids are not in clicks yet: there is no study by informed, user-centric, echo." in panel
        assert "--policy auto" not in panel  # it is the policy already
        assert "Not known before all kinds have been studied." in panel
        assert client.get("/api/status").json()["one_budget"]["unit_clicks"] is None


def test_a_crawl_that_does_not_bid_in_clicks_says_so(folder: Path) -> None:
    set_policy(folder, PLAIN)
    with make_client(create_app(folder, rate_per_s=0)) as client:
        assert wait_for(lambda: "Being counted" not in client.get("/dashboard").text)
        panel = panel_of(client)
        assert "are not in clicks" in panel
        assert "--policy auto" in panel
        assert "What if" not in panel
        assert "Fetches a second, by topic" in panel
        assert client.get("/api/status").json()["one_budget"] is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(root: Path, browser: Browser, screenshots: Path, scheme: Any) -> None:
    sizes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("desk", {"viewport": {"width": 1280, "height": 900}}),
        ("phone", {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}),
    )
    with served(create_app(root, rate_per_s=0)) as address:
        for name, options in sizes:
            context = browser.new_context(**options, color_scheme=scheme)
            tab = context.new_page()
            said: list[str] = []
            tab.on(
                "console", lambda one, said=said: said.append(one.text) if one.type in {"error", "warning"} else None
            )
            tab.goto(f"{address}/dashboard")
            tab.wait_for_selector("#panel-budget svg.bars", timeout=15_000)
            assert tab.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]
            for chart in tab.locator("#panel-budget svg.chart").all():
                box = chart.bounding_box()
                assert box is not None
                assert box["width"] > 200
            fills = "[...document.querySelectorAll('#panel-budget .swatch rect')].map(r => getComputedStyle(r).fill)"
            assert "rgb(0, 0, 0)" not in tab.evaluate(fills)  # every layer has a colour
            tab.locator("#panel-budget").screenshot(path=screenshots / f"budget-{name}-{scheme}.png")
            tab.goto(f"{address}/explain?url={LATE}")
            assert tab.locator(".tree li").count() >= 8
            assert tab.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]
            tab.screenshot(path=screenshots / f"explain-auto-{name}-{scheme}.png", full_page=True)
            context.close()
            assert said == []


def test_it_is_quick_however_long_the_journal(root: Path) -> None:
    """Two hundred thousand decisions more cost no more than the sample of them does."""
    opened = sqlite3.connect(CrawlFolder(root).database)
    names = [row[1] for row in opened.execute("PRAGMA table_info(fetches)")]
    kept = [name for name in names if name not in ("id", "fetched_at")]
    (top,) = opened.execute("SELECT max(id) FROM fetches").fetchone()
    now = time.time()
    opened.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"
        f" INSERT INTO fetches (fetched_at, {', '.join(kept)})"
        f" SELECT ? + i * 0.01, {', '.join(kept)} FROM n JOIN fetches ON fetches.id = ?",
        (now, top),
    )
    began = time.perf_counter()
    spent = IntervalReader(read_spent).intervals(opened, now, now + 2000.0, 60.0)
    took = time.perf_counter() - began
    opened.close()
    assert sum(sum(part.hosts.values()) for part in spent) == pytest.approx(200_000, rel=0.01)
    assert all(part.sampled for part in spent[1:-1])
    assert took < 2.0
