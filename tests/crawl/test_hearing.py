from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.crawl.crawling import make_crawl, run_command, wait_for

from bowerbird.crawl import hearing as hearing_module
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.hearing import MOST, QUERIES, SEEN_DEPTH, Heard, Hearing, hear_answers, listen
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.study import mark_queries
from bowerbird.model.workload import make_workload
from bowerbird.store.folder import CrawlFolder

I64 = NDArray[np.int64]
SPEC = WorldSpec(
    seed=6, frozen=True, hosts=4, pages=150, crawl_delay_share=0.0, trap_share=0.0, disallow_share=0.0, page_bytes=2000
)


def test_a_crawl_hears_what_is_asked_clicked_and_seen(tmp_path: Path) -> None:
    with WorldServer(World(SPEC)) as server:
        root = make_crawl(tmp_path / "crawl", server.world.seeds(), {"quality": {"probe_share": 0.2, "every_s": 1.0}})
        folder, settings = CrawlFolder(root), load_settings(root / "bowerbird.toml")
        assert run_command("crawl", root, "--pages", 80).code == 0
        now, seed = time.time(), server.world.seeds()[0]
        nouns = server.world.words.topic(0).nouns
        with open_demand(folder, settings.demand, write=True) as log:
            log.record([QueryAsked(nouns[0], now, 9), QueryAsked(nouns[1], now, 3)])
            log.record([ResultClicked(nouns[0], seed, 1, now, 4), ResultClicked(None, "http://elsewhere/", None, now)])
        with CrawlSession(root) as session:
            assert session.repository.snapshot(now).workload is None
            session.run(RunLimits(seconds=4.0))
            snapshot = session.repository.snapshot(now)
            row = session.repository.table.find_url(seed)
    assert snapshot.workload is not None
    assert snapshot.workload.queries == (nouns[0], nouns[1])
    assert snapshot.workload.frequency.tolist() == pytest.approx([9.0, 3.0], rel=1e-3)
    assert snapshot.clicks is not None
    assert row is not None
    assert snapshot.clicks[row] == pytest.approx(4.0, rel=1e-3)
    assert snapshot.clicks.sum() == pytest.approx(4.0, rel=1e-3)
    heard = listen(folder, settings, now)
    with TantivyIndex.open(folder.index, write=False) as index:
        best, _, _ = index.top_scores([nouns[0]], 1)
        assert 0 < len(heard.shown) <= MOST * index.count()
    assert best[0] in heard.shown
    assert heard.basis is not None
    assert sorted(heard.basis.vocabulary.words) == list(snapshot.workload.terms)
    assert heard.basis.asked.frequency.tolist() == heard.workload.frequency[heard.basis.asked.number].tolist()
    assert heard.basis.asked.best > 0
    assert not np.array_equal(heard.basis.query_marks, mark_queries(heard.workload.queries))  # sealed
    assert len(np.unique(heard.shown)) == len(heard.shown)


def test_a_crawl_without_searchers_hears_nothing_and_a_broken_log_is_no_trouble(tmp_path: Path) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    hearing = Hearing(CrawlFolder(root), load_settings(root / "bowerbird.toml"))
    hearing.look()
    heard = hearing.take()
    assert heard is not None
    assert (heard.workload.queries, heard.clicks, len(heard.shown), heard.basis) == ((), [], 0, None)
    assert hearing.take() is None
    (root / "demand.db").write_bytes(b"no database" * 100)
    hearing.look()
    assert hearing.take() is None


def test_an_error_that_nobody_expected_does_not_end_the_listening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_crawl(tmp_path / "crawl", ["http://a.example/"])
    settings = load_settings(root / "bowerbird.toml").with_overrides("quality", every_s=0.01)
    silence = listen(CrawlFolder(root), settings, time.time())
    asked: list[float] = []

    def fail_twice(folder: CrawlFolder, settings: Settings, now: float) -> Heard:
        asked.append(now)
        if len(asked) <= 2:
            raise RuntimeError("on purpose")
        return silence

    monkeypatch.setattr(hearing_module, "listen", fail_twice)
    hearing = Hearing(CrawlFolder(root), settings)
    hearing.start()
    try:
        assert wait_for(lambda: hearing.take() is silence)
    finally:
        hearing.close()
    assert hearing.failures == 2
    assert [record.getMessage() for record in caplog.records if record.name == hearing_module.__name__] == [
        "what searchers ask cannot be heard: RuntimeError: on purpose"
    ]


def test_pages_are_kept_only_of_the_queries_that_tell_what_is_seen() -> None:
    class Answering(TantivyIndex):
        def __init__(self) -> None:
            pass

        def top_scores(self, words: Sequence[str], limit: int) -> tuple[I64, NDArray[np.float64], int]:
            return np.arange(limit), np.linspace(9.0, 1.0, limit), 1000

    queries = [f"word{number}" for number in range(QUERIES + 100)]
    pages, answers = hear_answers(Answering(), make_workload(queries, [1.0] * len(queries), str.split))
    assert [len(found) for found in pages] == [SEEN_DEPTH] * QUERIES
    assert all(found.base is None for found in pages)  # no part of a longer one
    assert answers.totals.tolist() == [1000] * len(queries)
