"""The seeds that a crawl chose, as the dashboard, the explain page and the API show them."""

from __future__ import annotations

from pathlib import Path

from tests.crawl.seed_past import GIVEN, Site
from tests.serve.conftest import make_client, wait_for

from bowerbird.serve.app import create_app


def test_the_panel_the_page_and_the_api_show_the_choice(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl")
    site.repository.commit()
    with make_client(create_app(site.folder.root, rate_per_s=0)) as client:
        assert wait_for(lambda: "has not chosen seeds of its own yet" in client.get("/dashboard").text)
        assert client.get("/api/status").json()["seeds"] is None
    site.choose()
    hall = site.repository.url(site.hall)
    site.repository.close()
    with make_client(create_app(site.folder.root, rate_per_s=0)) as client:
        assert wait_for(lambda: "1 seed covers 75.0% of the value" in client.get("/dashboard").text)
        panel = client.get("/dashboard/live").json()["panels"]["seeds"]
        assert hall in panel
        assert "1 new, 1 dropped, 33.3% to 75.0%" in panel
        seeds = client.get("/api/status").json()["seeds"]
        assert [(seed["url"], seed["pages"]) for seed in seeds["seeds"]] == [(hall, 9)]
        assert (seeds["dropped"], len(seeds["history"])) == ([GIVEN], 1)
        page = client.get("/explain", params={"url": hall}).text
        assert "by the crawl to start from: seed 1 of 1: adds 9 pages and 75.0% of the value" in page
        assert client.get("/api/explain", params={"url": hall}).json()["seed"]["pages"] == 9
        assert client.get("/api/explain", params={"url": GIVEN}).json()["seed"] is None
