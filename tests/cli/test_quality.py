from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import make_crawl

from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.measurements import read_quality
from bowerbird.crawl.settings import load_settings
from bowerbird.demand.events import QueryAsked
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.store.folder import CrawlFolder

SPEC = WorldSpec(
    seed=5, frozen=True, hosts=4, pages=150, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=2000
)


def ask(root: Path, *queries: str) -> None:
    with open_demand(CrawlFolder(root), load_settings(root / "bowerbird.toml").demand, write=True) as log:
        log.record([QueryAsked(query, time.time(), 5) for query in queries])


def test_what_is_missing_is_said(tmp_path: Path, command: Command) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    ran = command("quality", root)
    assert ran.code == 2
    assert "no queries to measure by" in ran.err
    probed = command("quality", root, "--probe", 5)  # said before anything is fetched for it
    assert (probed.code, probed.err.splitlines()[-1]) == (2, ran.err.splitlines()[-1])
    assert "of 5 pages" not in probed.err
    assert "a query counts from its second occurrence on" in ran.err
    assert f"bowerbird queries import {root}" in ran.err
    ask(root, "rose")
    ran = command("quality", root)
    assert ran.code == 2
    assert "too few pages drawn by lot" in ran.err
    assert "--probe 200" in ran.err
    assert read_quality(CrawlFolder(root)) == []


def test_queries_that_no_page_answers_measure_nothing(tmp_path: Path, command: Command) -> None:
    with WorldServer(World(SPEC)) as server:
        root = make_crawl(tmp_path / "crawl", server.world.seeds())
        assert command("crawl", root, "--pages", 40).code == 0
        ask(root, "zzz yyy", "qqq")
        ran = command("quality", root, "--probe", 40)
    assert ran.code == 2
    assert "no known page has the words of any of the 2 queries" in ran.err


def test_no_crawl(tmp_path: Path, command: Command) -> None:
    ran = command("quality", tmp_path)
    assert ran.code != 0
    assert "Traceback" not in ran.err


def test_a_world_that_stands_still_and_is_fetched_whole_has_quality_one(tmp_path: Path, command: Command) -> None:
    with WorldServer(World(SPEC)) as server:
        root = make_crawl(tmp_path / "crawl", server.world.seeds())
        assert command("crawl", root, "--once").code == 0
        topic = server.world.words.topic(0).nouns
        ask(root, *topic[:8], f"{topic[0]} {topic[1]}", "nowhere to be found")
        ran = command("quality", root, "--probe", 40, "--json")
    assert ran.code == 0, ran.err
    found = ran.json()
    assert found["quality"] == found["high"] == pytest.approx(1.0)
    assert 0.2 < found["low"] <= 1.0  # forty pages cannot vouch for all
    assert found["strata"]["fetched"]["probes"] >= 25
    assert found["strata"]["frontier"] == {"probes": 0, "pages": 0}
    assert found["demand_share"] == pytest.approx(1.0)
    assert sum(cause["lost"] for cause in found["causes"].values()) == pytest.approx(0.0, abs=1e-9)
    shown = command("quality", root)
    assert "Quality 1.000" in shown.out
    assert "Where it is lost" in shown.out
    assert [made.quality for made in read_quality(CrawlFolder(root))] == pytest.approx([1.0, 1.0])
