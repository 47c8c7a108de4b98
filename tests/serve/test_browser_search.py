"""The search page in a real browser: typing, keys, clicking through, a phone, nothing in the console."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.responses import HTMLResponse
from tests.serve.conftest import demand_totals, read_demand, served, wait_for
from tests.serve.filling import Page, fill

from bowerbird.serve.app import create_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab
    from starlette.types import Receive, Scope, Send

seen_referrers: list[str | None] = []


async def target(scope: Scope, receive: Receive, send: Send) -> None:
    """A site that results lead to."""
    if scope["type"] == "http":
        headers = dict(scope["headers"])
        if scope["path"] == "/nest":
            seen_referrers.append(headers.get(b"referer"))
        await HTMLResponse("<!doctype html><title>Arrived</title><p>You are here.")(scope, receive, send)


@pytest.fixture
def site() -> Iterator[str]:
    with served(target) as address:
        seen_referrers.clear()
        yield address


@pytest.fixture
def address(folder: Path, site: str) -> Iterator[str]:
    fill(folder, [Page(f"{site}/nest", "The nest of the wanderer", "A wanderer rests in its nest.")])
    with served(create_app(folder, rate_per_s=0, record_every_s=0.05)) as made:
        yield made


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab that must not complain."""
    options = getattr(request, "param", {})
    context = browser.new_context(**options)
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    made.on("pageerror", lambda error: said.append(str(error)))
    yield made
    context.close()
    assert [line for line in said if "favicon" not in line] == []


def test_a_search_and_a_click(tab: Tab, address: str, folder: Path, site: str, screenshots: Path) -> None:
    tab.goto(address)
    tab.screenshot(path=screenshots / "search-home.png")
    tab.keyboard.type("wanderer nest")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".hit")
    assert "wanderer nest" in tab.title()
    assert tab.locator("mark").count() >= 2
    tab.screenshot(path=screenshots / "search-one.png")
    tab.click(".hit a.open")
    tab.wait_for_url(f"{site}/nest")
    assert tab.title() == "Arrived"
    assert seen_referrers == [None]  # the site does not learn what was asked
    assert wait_for(lambda: demand_totals(folder).clicks == 1)
    with read_demand(folder) as log:
        assert [url for url, _ in log.page_clicks(time.time())] == [f"{site}/nest"]
        (query,) = (found for found in log.queries(time.time()) if found.text == "wanderer nest")
    assert (query.count, query.clicks, query.impressions) == (1, 1, 1)


def test_the_keyboard(tab: Tab, address: str, site: str) -> None:
    tab.goto(f"{address}/search?q=bowerbird")

    def at() -> str | None:
        return tab.evaluate("document.activeElement.closest('.hit')?.dataset.rank ?? document.activeElement.name ?? ''")

    for key, place in (("j", "1"), ("j", "2"), ("ArrowDown", "3"), ("k", "2"), ("ArrowUp", "1"), ("k", "q")):
        tab.keyboard.press(key)
        assert at() == place
    tab.keyboard.press("Escape")
    tab.keyboard.press("/")
    assert at() == "q"
    tab.keyboard.type("wanderer nest")  # "/" has selected what was there
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search?q=wanderer+nest")
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{site}/nest")


def test_copies_unfold_and_pages_turn(tab: Tab, address: str, screenshots: Path) -> None:
    tab.goto(f"{address}/search?q=plumage")
    assert not tab.locator(".similar li").first.is_visible()
    tab.click("summary")
    assert tab.locator(".similar li").count() == 2
    assert tab.locator(".similar li").first.is_visible()
    tab.screenshot(path=screenshots / "search-similar.png")
    tab.goto(f"{address}/search?q=bowerbird")
    tab.screenshot(path=screenshots / "search-results.png", full_page=True)
    tab.click("text=Next")
    tab.wait_for_url("**page=2")
    assert tab.locator(".hit").first.get_attribute("data-rank") == "11"


def test_hostile_pages_run_nothing(tab: Tab, address: str) -> None:
    shown: list[str] = []
    tab.on("dialog", lambda dialog: (shown.append(dialog.message), dialog.dismiss()))
    tab.goto(f"{address}/search?q=hostile")
    assert "<script>alert('title')</script>" in tab.inner_text(".hit h2")
    tab.goto(f"{address}/search?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert shown == []


PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


@pytest.mark.parametrize("tab", [PHONE, {**PHONE, "color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_a_phone(tab: Tab, address: str, screenshots: Path) -> None:
    dark = bool(tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"))
    for path in ("/", "/search?q=bowerbird", "/search?q=plumage"):
        tab.goto(address + path)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.goto(f"{address}/search?q=bowerbird")
    assert float(tab.evaluate("parseFloat(getComputedStyle(document.querySelector('.snippet')).fontSize)")) >= 15
    tab.screenshot(path=screenshots / f"search-phone-{'dark' if dark else 'light'}.png")
    back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in back[4:-1].split(",")) < 200) == dark


@pytest.mark.parametrize("tab", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript(tab: Tab, address: str, site: str) -> None:
    tab.goto(address)
    tab.fill("input[name=q]", "wanderer nest")
    tab.click(".searchbox button")
    tab.click(".hit a.open")
    tab.wait_for_url(f"{site}/nest")
