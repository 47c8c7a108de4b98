"""The dashboard and the explain page in a real browser: live, readable on a phone, nothing in the console."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.conftest import served, wait_for
from tests.serve.filling import Page, fill

from bowerbird.crawl.measurements import Measurement, keep_measurement
from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.demand.log import DemandLog
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlKind, UrlState
from bowerbird.serve.app import create_app
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

BIRD = "http://birds.example/kinds/bird-1"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
DESK = {"viewport": {"width": 1280, "height": 900}}


def live_a_while(folder: Path) -> None:
    """A past of some minutes: fetches of all kinds, errors, hubs, queries, measurements."""
    rng = random.Random(3)
    now = time.time()
    repository = Repository(CrawlFolder(folder), write=True)
    feed = int(repository.add_urls(["http://birds.example/feed"], at=now - 900, kind=UrlKind.FEED)[0][0])
    repository.add_urls([f"http://birds.example/news/{n}" for n in range(12)], at=now - 300, source=feed)
    kinds = rng.choices(list(FetchKind), [5, 4, 1, 1], k=1500)
    for nth, kind in enumerate(kinds):
        at = now - 190 + nth * 0.12  # the journal ascends with time: after the pages of the folder
        outcome = rng.choices([Outcome.OK, Outcome.GONE, Outcome.TIMEOUT], [20, 1, 1])[0]
        row = feed if kind is FetchKind.HUB else rng.randrange(20)
        repository.record(FetchRecord(row, kind, at, 1.0, 1.0, "{}", at, outcome, UrlState.FETCHED))
    repository.commit()
    repository.close()
    for nth in range(12):
        value = 0.4 + 0.04 * nth
        causes = {"rose": 0.05, "fell": 0.02, "unfetched": 0.9 - value, "gone": 0.01}
        made = Measurement(now - 900 + nth * 75, value, value - 0.08, value + 0.08, 60 + nth, 40, 0.9, causes)
        keep_measurement(CrawlFolder(folder), made)
    with DemandLog.open(folder / "demand.db", write=True, min_occurrences=1) as log:
        log.record([QueryAsked(f"bower {n}", now, 20 - n, results=n * 3) for n in range(8)])
        log.record([ResultClicked("bower 5", BIRD, 1, now)])


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    live_a_while(folder)
    with served(create_app(folder, rate_per_s=0)) as made:
        yield made


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab that must not complain."""
    context = browser.new_context(**getattr(request, "param", DESK))
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    made.on("pageerror", lambda error: said.append(str(error)))
    yield made
    context.close()
    assert said == []


def fetches_shown(tab: Tab) -> int:
    tile = tab.locator(".tile", has=tab.locator(".tile-name", has_text="Fetches").locator("text=/^Fetches$/"))
    return int(tile.locator(".tile-value").inner_text().replace(",", ""))


def test_the_dashboard_updates_by_itself(tab: Tab, address: str, folder: Path, screenshots: Path) -> None:
    tab.goto(f"{address}/dashboard")
    before = fetches_shown(tab)
    tab.locator("#panel-quality summary").click()
    fill(folder, [Page(f"http://more.example/{n}", "More", "More words", fetched_at=time.time()) for n in range(7)])
    assert wait_for(lambda: fetches_shown(tab) == before + 7, 15)
    assert "live, as of" in tab.inner_text("#connection")
    assert "not running" in tab.inner_text("#panel-status")
    assert tab.locator("#panel-quality details[open]").count() == 1  # what was unfolded stays so
    tab.screenshot(path=screenshots / "dashboard-live.png")


def test_every_chart_is_drawn(tab: Tab, address: str, screenshots: Path) -> None:
    tab.goto(f"{address}/dashboard")
    for panel in ("quality", "budget", "errors"):
        box = tab.locator(f"#panel-{panel} svg.chart:visible").first.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 80
    band = tab.locator("#panel-quality .wide .band").evaluate("one => getComputedStyle(one).fillOpacity")
    assert 0 < float(band) < 1
    tab.screenshot(path=screenshots / "dashboard.png", full_page=True)


def test_a_url_of_the_dashboard_is_explained(tab: Tab, address: str, screenshots: Path) -> None:
    tab.goto(f"{address}/dashboard")
    link = tab.locator("#panel-next a.why").first
    link.wait_for()
    url = link.inner_text()
    link.click()
    tab.wait_for_url("**/explain?url=**")
    assert url in tab.inner_text("h1")
    tab.fill("#ask-url", BIRD)
    tab.click("form.ask button")
    assert wait_for(lambda: tab.locator("h1").inner_text() == BIRD)
    assert tab.locator(".tree li").count() >= 2
    tab.screenshot(path=screenshots / "explain.png", full_page=True)


@pytest.mark.parametrize(
    "tab",
    [PHONE, {**PHONE, "color_scheme": "dark"}, {**DESK, "color_scheme": "dark"}],
    indirect=True,
    ids=["phone-light", "phone-dark", "desk-dark"],
)
def test_small_and_dark(tab: Tab, address: str, screenshots: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    width = tab.viewport_size["width"] if tab.viewport_size else 0
    for path, part in (("/dashboard", "dashboard"), (f"/explain?url={BIRD}", "explain")):
        tab.goto(address + path)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.screenshot(path=screenshots / f"{part}-{name}.png", full_page=True)
    back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in back[4:-1].split(",")) < 200) == ("dark" in name)


@pytest.mark.parametrize("tab", [{**DESK, "java_script_enabled": False}], indirect=True)
def test_without_script_it_is_a_page_all_the_same(tab: Tab, address: str) -> None:
    tab.goto(f"{address}/dashboard")
    assert tab.locator("#panel-budget svg.chart").first.is_visible()
    assert tab.inner_text("#connection") == ""


def test_a_server_that_went_away_is_said(browser: Browser, folder: Path) -> None:
    context = browser.new_context(**DESK)
    tab = context.new_page()
    with served(create_app(folder, rate_per_s=0)) as address:
        tab.goto(f"{address}/dashboard")
        assert wait_for(lambda: "as of" in tab.inner_text("#connection"))
        context.route("**/dashboard/live*", lambda route: route.abort())
        tab.wait_for_selector("#connection[data-state=lost]", timeout=15_000)
        assert "disconnected" in tab.inner_text("#connection")
        context.unroute("**/dashboard/live*")
        tab.wait_for_selector("#connection[data-state=live]", timeout=20_000)
    context.close()
