from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.live import price_in_clicks, read_live
from bowerbird.crawl.probe_reader import ProbeReader
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.schedule.lottery import ANNOUNCED, HUBS, Ticket
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import FetchRecord

from .crawling import Left, make_crawl, run_command
from .hub_past import Past, urls

SPEC = WorldSpec(
    seed=8, frozen=True, hosts=5, pages=250, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=2000
)


@pytest.fixture(scope="module")
def server() -> Iterator[WorldServer]:
    with WorldServer(World(SPEC)) as server:
        yield server


def probes(root: Path) -> list[tuple[int, dict[str, object]]]:
    rows = Left(root).rows(f"SELECT url, terms FROM fetches WHERE kind = {int(FetchKind.PROBE)} ORDER BY id")
    return [(row, orjson.loads(terms)) for row, terms in rows]


def test_a_share_of_the_budget_goes_to_pages_drawn_by_lot(server: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", server.world.seeds(), {"quality": {"probe_share": 0.3}})
    assert run_command("crawl", root, "--pages", 150).code == 0
    drawn = probes(root)
    assert 15 <= len(drawn) <= 90
    for _, terms in drawn:
        assert terms["by"] == "lot"
        assert 0 < float(str(terms["propensity"])) <= 1
    strata = Counter(terms["stratum"] for _, terms in drawn)
    assert set(strata) - {HUBS} == {"fetched", "frontier"}  # sitemaps are drawn beside them, a quarter as often
    status = run_command("status", root, "--json").json()
    assert status["budget"]["probe"] == len(drawn)
    again = Counter(Left(root).fetches())
    assert sum(count > 1 for count in again.values()) <= strata["fetched"] + strata[HUBS]


def test_a_run_that_ends_with_the_last_new_page_draws_none(server: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", server.world.seeds(), {"quality": {"probe_share": 1.0}})
    assert run_command("crawl", root, "--once").code == 0
    assert probes(root) == []


def test_a_run_can_be_of_probes_alone_and_they_are_read_with_both_versions(server: WorldServer, tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", server.world.seeds())
    assert run_command("crawl", root, "--pages", 80, "--rate", 500).code == 0
    before = len(Left(root).fetches())
    with closing(sqlite3.connect(root / "state.db")) as connection, connection:
        live = orjson.loads(connection.execute("SELECT value FROM meta WHERE key = 'live'").fetchone()[0])
        live |= {"price": 7.0, "unit": 0.25}
        connection.execute("UPDATE meta SET value = ? WHERE key = 'live'", (orjson.dumps(live).decode(),))
    with CrawlSession(root) as session:
        session.run(RunLimits(probes=40, seconds=60))
    view = CrawlView(root)
    assert view.rate_per_s() == 500  # that of the crawl: who measures spends no budget
    assert price_in_clicks(read_live(view.state)) == 1.75  # nor is the price what it was spent at
    view.close()
    assert len(Left(root).fetches()) == before + len(probes(root)) == before + 40
    # asked for without conditions: a server whose validators miss changes would otherwise hide them here, too
    rows = Left(root).rows(f"SELECT outcome FROM fetches WHERE kind = {int(FetchKind.PROBE)}")
    assert Outcome.NOT_MODIFIED not in {outcome for (outcome,) in rows}
    state = CommittedState(CrawlFolder(root))
    try:
        read = ProbeReader(state, load_settings(root / "bowerbird.toml")).latest(100)
    finally:
        state.close()
    assert [(probe.row, probe.stratum) for probe in read] == [(row, terms["stratum"]) for row, terms in probes(root)]
    for probe in read:
        if probe.stratum == "frontier":
            assert probe.before is None
        else:  # nothing changes in this world
            assert probe.before is not None
            assert probe.before == probe.after
    assert sum(probe.after is not None for probe in read if probe.stratum == "frontier") >= 10


def test_of_lots_for_hubs_and_their_news_nothing_is_measured(tmp_path: Path) -> None:
    """They are no sample of the pages, and hide none of it: not the probe before, nor does their failure count."""
    past = Past(tmp_path / "crawl")
    hub, page, new, feed, news = (past.add(url, past.now - 900.0) for url in urls("page", 5))
    for row in (hub, page, feed):
        past.visit(row, past.now - 900.0)
    drawn = (
        (hub, "fetched", Outcome.GONE),
        (feed, HUBS, Outcome.OK),
        (page, "shown", Outcome.TIMEOUT),
        (new, "frontier", Outcome.OK),
        (hub, HUBS, Outcome.OK),
        (news, ANNOUNCED, Outcome.OK),
        (feed, HUBS, Outcome.TIMEOUT),
        (new, ANNOUNCED, Outcome.GONE),
    )
    for nth, (row, stratum, outcome) in enumerate(drawn):
        at, terms = past.now - 100.0 + nth, Ticket(row, stratum, 4, 0.25, past.now).terms()
        past.repository.record(FetchRecord(row, FetchKind.PROBE, at, 1.0, 1.0, terms, at, outcome, UrlState.FETCHED))
    past.repository.commit(indexed_through=past.repository.last_fetch_id + len(drawn))
    past.repository.close()
    state = CommittedState(past.folder)
    try:
        reader = ProbeReader(state, past.settings)
        read = reader.latest(100)
        assert [(probe.row, probe.stratum) for probe in read] == [(hub, "fetched"), (new, "frontier")]
        assert reader.unanswered == 1
        assert [probe.at for probe in reader.latest(1)] == [past.now - 97.0]
    finally:
        state.close()
