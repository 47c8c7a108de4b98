"""The seeds that a crawl chose, as the dashboard, the explain page and the API show them."""

from __future__ import annotations

from pathlib import Path

import pytest
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
        assert wait_for(
            lambda: "1 chosen beside 1 given; together they cover 100.0% of the value" in client.get("/dashboard").text
        )
        panel = client.get("/dashboard/live").json()["panels"]["seeds"]
        assert hall in panel
        assert "1 new, 0 dropped, 33.3% to 100.0%" in panel
        seeds = client.get("/api/status").json()["seeds"]
        assert [(seed["url"], seed["pages"]) for seed in seeds["seeds"]] == [(hall, 8)]
        assert (seeds["given"], seeds["given_pages"], seeds["dropped"], len(seeds["history"])) == (1, 4, [], 1)
        page = client.get("/explain", params={"url": hall}).text
        assert "by the crawl to start from: seed 1 of 1: adds 8 pages and 66.7% of the value" in page
        assert "1 links from a seed, 0 from a chosen one" in page
        assert client.get("/api/explain", params={"url": hall}).json()["seed"]["pages"] == 8
        assert client.get("/api/explain", params={"url": GIVEN}).json()["seed"] is None


@pytest.mark.parametrize("is_off", [True, False])
def test_the_panel_says_why_there_is_no_choice(tmp_path: Path, is_off: bool) -> None:
    site = Site(tmp_path / "crawl", **({"study_every_s": 0} if is_off else {}))
    site.repository.commit()
    site.folder.study("seeds").parent.mkdir(exist_ok=True)
    site.folder.study("seeds").write_bytes(b"damaged")
    site.repository.close()
    why = "turned off" if is_off else "is damaged and ignored"
    with make_client(create_app(site.folder.root, rate_per_s=0)) as client:
        assert why in client.get("/api/status").json()["seed_note"]
        assert wait_for(lambda: "No seeds are chosen: " in client.get("/dashboard").text)
        panel = client.get("/dashboard/live").json()["panels"]["seeds"]
        assert why in panel
        assert "200 pages" not in panel
