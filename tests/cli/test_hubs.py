"""The command that shows where new pages are announced."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.crawl.auto_past import make_auto_past
from tests.crawl.hub_past import make_past

from bowerbird.demand.events import ResultClicked
from bowerbird.demand.log import DemandLog


@pytest.fixture
def root(tmp_path: Path) -> Path:
    past = make_past(tmp_path / "crawl")
    past.repository.close()
    return tmp_path / "crawl"


def test_it_shows_the_hubs_the_cover_and_what_was_missed(root: Path, command: Command) -> None:
    ran = command("hubs", root)
    assert ran.code == 0, ran.err
    first, cover, price, missed, interest, heads, *rows = ran.out.splitlines()
    assert first.startswith("4 hubs (1 main page, 2 feeds, 1 sitemap), studied 0 s ago; ")
    assert first.endswith(" found 55 new pages.")
    assert cover == "  1 hub (25.0%) shows 98% of the 55 new pages"
    assert "visits a day clear at a price of" in price
    assert missed.startswith("  1 visit found nothing left of the one before: about ")
    assert "(hubs.half_life_days)" in interest
    assert "no click" in interest
    assert heads.split()[:4] == ["kind", "visits", "found", "a"]
    assert len(rows) == 4
    assert rows[0].split()[:3] == ["feed", "10", "54"]
    assert rows[0].endswith("http://a.example/feed  (says every 60.0 min, WebSub)")
    assert "http://a.example/" in ran.out
    assert (root / "study" / "echo.npz").is_file()


def test_programs_get_json_and_top_bounds_the_table(root: Path, command: Command) -> None:
    report = command("hubs", root, "--json", "--top", 2).json()
    assert report["hubs"] == 4
    assert len(report["table"]) == 2
    busy = report["table"][0]
    assert busy["url"] == "http://a.example/feed"
    assert busy["websub"] == "http://hub.example/"
    assert busy["said_period_s"] == 3600.0
    assert busy["rate_per_day"] == pytest.approx(28.0, rel=0.3)
    assert busy["clicks_per_new_page"] is None
    assert busy["half_life_s"] == pytest.approx(2 * 86400.0)
    assert busy["turned"] == 1
    assert busy["missed"] == pytest.approx(busy["rate_per_day"] / 4 - 6, rel=1e-3)  # six hours, six found
    assert busy["interval_s"] < report["table"][1]["interval_s"]
    assert report["cover"]["first"][0]["url"] == "http://a.example/feed"
    assert "2 more: --top 4" in command("hubs", root, "--top", 2).out
    assert len(command("hubs", root, "--json", "-n", 2).json()["table"]) == 2  # as in the other commands


def test_the_last_study_is_shown_until_a_fresh_one_is_asked_for(root: Path, command: Command) -> None:
    first = command("hubs", root, "--json").json()
    time.sleep(1.1)
    assert command("hubs", root, "--json").json()["at"] == first["at"]
    assert command("hubs", root, "--json", "--fresh").json()["at"] > first["at"]


@pytest.mark.parametrize("rate_per_s", [0.0, 0.01])
def test_under_auto_it_shows_what_auto_would_do(tmp_path: Path, command: Command, rate_per_s: float) -> None:
    """Not the intervals of echo, by which nobody goes there: bids and due times are those of `explain`."""
    past = make_auto_past(tmp_path / "crawl", rate_per_s=rate_per_s)
    past.repository.close()
    root = past.folder.root
    report = command("hubs", root, "--json").json()
    assert report["auto"]["unit"] == "units"
    assert len(report["table"]) == report["hubs"]
    for row in report["table"]:
        here = command("explain", root, row["url"], "--json").json()["standing"]
        assert row["interval_s"] is None
        assert row["bid"] == pytest.approx(here["bid"], rel=0.02)  # some seconds later
        assert report["auto"]["price"] == pytest.approx(here["price"])
        assert (row["due_in_s"] is None) == (here["due_in_s"] is None)
        if row["due_in_s"] is not None:
            assert row["due_in_s"] == pytest.approx(here["due_in_s"], rel=0.02, abs=10.0)
    dues = [row["due_in_s"] for row in report["table"]]
    # none gains the price of that budget: all bid it after ten of the longest intervals, 25 days
    assert all(due is not None and (due > 24 * 86400.0) == (rate_per_s > 0) for due in dues)
    said = command("hubs", root).out
    assert f"by auto: a hub is due when it bids the price of all fetches, {report['auto']['price']:.3g} units" in said
    assert "interval" not in said
    assert "mean new pages" not in said
    fresh = command("hubs", root, "--json", "--fresh").json()
    assert fresh["auto"]["unit"] == "units"
    assert "by auto: a hub is due when it bids the price" in command("study", root).out
    assert "by auto:" not in command("study", root, "--policy", "echo").out  # that one was asked for


def test_clicks_tell_how_long_interest_lasts(root: Path, command: Command) -> None:
    now = time.time()
    rng = np.random.default_rng(4)
    events = []
    for nth in range(1, 9):
        found = now - 48 * 3600.0 + nth * 5 * 3600.0
        for place in range(5):
            ages = 600.0 + rng.exponential(4 * 3600.0 / math.log(2.0), 6)
            url = f"http://a.example/news-{nth}-{place}"
            events += [ResultClicked(None, url, None, found + age) for age in ages if found + age < now]
    with DemandLog.open(root / "demand.db", write=True) as log:
        log.record([*events, ResultClicked(None, "http://a.example/", None, now)])
    report = command("hubs", root, "--json").json()
    assert report["by_clicks"]
    interest = report["interest"]
    assert interest["half_life_s"] == pytest.approx(4 * 3600.0, rel=0.4)
    assert interest["mean_clicks"] == sorted(interest["mean_clicks"])
    assert len(interest["age_s"]) == len(interest["mean_clicks"]) > 5
    said = command("hubs", root).out
    assert "clicks a new page, half of the interest in a new page is gone after" in said
    assert "clicks by age: " in said


def test_what_is_no_crawl_is_told_in_one_line(tmp_path: Path, command: Command) -> None:
    ran = command("hubs", tmp_path / "nowhere")
    assert ran.code != 0
    assert "no such folder" in ran.err
    assert len(ran.err.splitlines()) == 1
