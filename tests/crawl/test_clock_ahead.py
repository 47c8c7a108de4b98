"""A clock that was ahead, in an earlier run or in this one, does not silence the crawl when it is right again."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.crawl.crawling import Left, make_crawl, run_command

from bowerbird.crawl import coordinator
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

YEAR_S = 365 * 86_400.0
SPEC = WorldSpec(seed=5, frozen=True, hosts=3, pages=40, crawl_delay_share=0.0, trap_share=0.0, page_bytes=2000)
#: all times that a run writes
SHIFTS = (
    "UPDATE fetches SET decided_at = decided_at + ?1, fetched_at = fetched_at + ?1,"
    " not_before = CASE WHEN not_before > 0 THEN not_before + ?1 ELSE 0 END",
    "UPDATE urls SET first_seen = first_seen + ?1",
    "UPDATE versions SET fetched_at = fetched_at + ?1",
    "UPDATE hosts SET robots_at = robots_at + ?1, last_fetch = last_fetch + ?1,"
    " not_before = CASE WHEN not_before > 0 THEN not_before + ?1 ELSE 0 END",
)


def set_ahead(root: Path) -> None:
    """As if all of it had happened a year later."""
    connection = sqlite3.connect(root / "state.db")
    with connection:
        for shift in SHIFTS:
            connection.execute(shift, (YEAR_S,))
    connection.close()
    CrawlFolder(root).checkpoint.unlink()


@pytest.mark.parametrize("policy", ["breadth-first+fixed", "auto"])
def test_a_crawl_goes_on_after_a_run_with_the_clock_ahead(tmp_path: Path, policy: str) -> None:
    with WorldServer(World(SPEC)) as server:
        quick = {"crawl": {"policy": policy}, "refresh": {"interval_s": 1.0, "min_interval_s": 1.0}}
        root = make_crawl(tmp_path / "crawl", server.world.seeds(), quick)
        assert run_command("crawl", root, "--once").code == 0
        set_ahead(root)
        before = len(Left(root).fetches())
        view = CrawlView(root)
        try:
            line = view.next(5)
            story = view.explain(server.world.seeds()[0])
        finally:
            view.close()
        assert line
        assert story["expected"]["in_s"] < 3600.0
        ran = run_command("crawl", root, "--pages", 20, "--for", "15s")
        assert ran.code == 0
        assert "the clock was ahead" in ran.err
        assert len(Left(root).fetches()) >= before + 20
    after = Left(root).rows("SELECT max(last_fetch), max(robots_at), max(not_before) FROM hosts")[0]
    assert all(float(value) <= time.time() + 4 * 86_400.0 for value in after)


class SetBack:
    """A clock that is set back by an hour after some seconds."""

    def __init__(self, after_s: float) -> None:
        self.at = time.time() + after_s

    def now(self) -> float:
        now = time.time() + 3600.0
        return now if now < self.at + 3600.0 else now - 3600.0


def test_a_crawl_goes_on_when_the_clock_is_set_back_under_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And commits in their order, the archive before what points to it; who asked for ten minutes is left those."""
    synced: set[str] = set()
    unsynced: list[str] = []
    written: list[float] = []
    commit, sync = Repository.commit, coordinator.sync_file

    def note_sync(path: Path) -> None:
        sync(path)
        synced.add(path.name)

    def note_commit(repository: Repository, **options: Any) -> int:
        unsynced.extend(name for name in repository.pending_archive_files() if name not in synced)
        synced.clear()
        written.append(time.monotonic())
        return commit(repository, **options)

    monkeypatch.setattr(coordinator, "sync_file", note_sync)
    monkeypatch.setattr(Repository, "commit", note_commit)
    with WorldServer(World(SPEC)) as server:
        quick = {
            "crawl": {"policy": "breadth-first+fixed", "rate_per_s": 20.0},
            "refresh": {"interval_s": 1.0, "min_interval_s": 1.0},
        }
        root = make_crawl(tmp_path / "crawl", server.world.seeds(), quick)
        clock, began = SetBack(6.0), time.monotonic()
        with CrawlSession(root, clock=clock) as session:
            session.repository.add_urls(["http://down.example/"], at=clock.now())
            hosts = session.repository.table.hosts
            down = hosts["http://down.example"]
            hosts.columns["not_before"][down] = until = clock.now() + 600.0  # as it asked for
            tally = session.run(RunLimits(seconds=14.0))
            assert float(hosts.columns["not_before"][down]) == pytest.approx(until - 3600.0, abs=2.0)
            assert session.coordinator.market.gate.columns["ready_at"][down] == pytest.approx(until - 3600.0, abs=2.0)
        took_s = time.monotonic() - began
        assert took_s < 60.0  # an hour more, if it waited for the clock
        at = [float(row[0]) for row in Left(root).rows("SELECT decided_at FROM fetches ORDER BY id")]
        after = [when for when in at if when < clock.at + 1800.0]
        assert len(after) >= 20  # fetches went on, and were committed
        assert tally.fetched >= len(after)
        gaps = np.diff(sorted(after))
        assert gaps.max() < 5.0
        assert unsynced == []
        assert len([at for at in written if at > began + 7.0]) >= 3  # nor does the next commit wait for the clock
