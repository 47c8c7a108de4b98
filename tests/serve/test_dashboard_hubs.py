"""The dashboard's panel of hubs where they are studied, as the application answers it and in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawl.hub_past import make_past
from tests.serve.conftest import make_client, served, wait_for

from bowerbird.demand.events import ResultClicked
from bowerbird.demand.log import DemandLog
from bowerbird.serve.app import create_app
from bowerbird.serve.dashboard_hubs import interest_curve

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FEED = "http://a.example/feed"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    past = make_past(tmp_path / "crawl")
    past.study()
    past.repository.close()
    yield tmp_path / "crawl"


def test_the_panel_shows_the_study(root: Path) -> None:
    with make_client(create_app(root, rate_per_s=0)) as client:
        assert wait_for(lambda: "new a day" in client.get("/dashboard").text)
        html = client.get("/dashboard").text
        panel = html.split('id="panel-hubs"')[1].split("</section>")[0]
        assert "1 hub (25.0%) shows 98% of the 55 new pages" in panel
        assert "about " in panel
        assert f"/explain?url={FEED.replace(':', '%3A')}".replace("%3A//", "%3A//") in panel.replace("%2F", "/")
        assert "WebSub" in panel
        assert 'aria-label="Interest in a new page by its age' in panel
        assert "as assumed" in panel
        live = client.get("/dashboard/live").json()["panels"]["hubs"]
        assert "new a day" in live
        story = client.get("/explain", params={"url": FEED})
        assert story.status_code == 200
        assert "age/interval" in story.text  # the settings' policy bids by hub-interval


def test_without_a_study_the_newest_urls_tell(root: Path) -> None:
    (root / "study" / "echo.npz").write_bytes(b"damaged")
    with make_client(create_app(root, rate_per_s=0)) as client:
        assert wait_for(lambda: "on return" in client.get("/dashboard").text)


def test_the_curve_is_that_of_clicks_once_there_are_any() -> None:
    interest = {"half_life_s": 3600.0, "clicks_per_new_page": 8.0, "age_s": [1200.0, 3600.0], "mean_clicks": [2.0, 4.0]}
    times, (seen, fit) = interest_curve({"by_clicks": True, "interest": interest})
    assert times == [0.0, 1200.0, 3600.0]
    assert list(seen.values) == [0.0, 2.0, 4.0]
    assert list(fit.values) == pytest.approx([0.0, 8.0 * (1 - 2 ** (-1 / 3)), 4.0])
    times, (assumed,) = interest_curve({"by_clicks": False, "interest": interest})
    assert assumed.values[0] == 1.0
    assert times[-1] == 4 * 3600.0
    assert assumed.values[-1] == pytest.approx(1 / 16)


def test_in_a_browser(root: Path, browser: Browser, screenshots: Path) -> None:
    now = time.time()
    with DemandLog.open(root / "demand.db", write=True) as log:
        found = now - 43 * 3600.0
        log.record(ResultClicked(None, f"http://a.example/news-1-{n % 5}", None, found + 900.0 * n) for n in range(60))
        log.record([ResultClicked(None, "http://a.example/", None, now)])
    from bowerbird.crawl.hub_study import make_hub_study
    from bowerbird.crawl.settings import load_settings
    from bowerbird.store.folder import CrawlFolder

    folder = CrawlFolder(root)
    assert make_hub_study(folder, load_settings(folder.config), "echo", now).by_clicks
    for name, options in (
        ("desk", {"viewport": {"width": 1280, "height": 900}}),
        ("phone", {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}),
    ):
        context = browser.new_context(**options)  # type: ignore[arg-type]  # options by name
        tab = context.new_page()
        said: list[str] = []
        tab.on("console", lambda one, said=said: said.append(one.text) if one.type in {"error", "warning"} else None)
        with served(create_app(root, rate_per_s=0)) as address:
            tab.goto(f"{address}/dashboard")
            tab.wait_for_selector("#panel-hubs svg.chart", timeout=15_000)
            assert tab.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]  # type: ignore[index]
            box = tab.locator("#panel-hubs svg.chart").bounding_box()
            assert box is not None
            assert box["width"] > 200
            assert tab.locator("#panel-hubs .stroke-click").count() >= 1
            table = "(([a]) => a.scrollWidth <= a.clientWidth)(document.querySelectorAll('#panel-hubs .scroll'))"
            assert tab.evaluate(table) or name == "phone"  # on a desk all columns are in view
            assert tab.locator("#panel-hubs tbody tr").count() >= 4
            tab.screenshot(path=screenshots / f"dashboard-hubs-{name}.png", full_page=True)
            tab.locator("#panel-hubs a.why").first.click()
            tab.wait_for_url("**/explain?url=**")
            assert tab.locator("h1").inner_text() == FEED
        context.close()
        assert said == []
