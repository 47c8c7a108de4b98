"""Opening a crawl for writing: what it sets right, and that it lets go of everything when it cannot."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.crawl.crawling import make_crawl, set_policy

from bowerbird.crawl import reading
from bowerbird.crawl import session as session_module
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import parse_settings
from bowerbird.crawl.view import CrawlView
from bowerbird.model.errors import ConfigError, FolderError
from bowerbird.store.folder import WriterLock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"])


@pytest.mark.parametrize("part", ["Repository", "truncate_archive", "TantivyIndex", "catch_up", "Coordinator"])
def test_a_start_that_fails_lets_go_of_everything(root: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    before = set(threading.enumerate())
    with monkeypatch.context() as patched:
        patched.setattr(session_module, part, None)
        with pytest.raises((TypeError, AttributeError)) as caught:
            CrawlSession(root)
    assert not WriterLock.is_held(session_module.CrawlFolder(root))
    assert "index" not in {thread.name for thread in set(threading.enumerate()) - before}
    del caught
    with CrawlSession(root) as session:
        session.run(RunLimits(seconds=0.1))


def test_a_first_start_says_that_it_compiles(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "scan.py"
    source.touch()
    kernel = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path / "cache")))
    monkeypatch.setattr(reading.scan, "scan_html", kernel)
    monkeypatch.setattr(reading.inspect, "getfile", lambda module: str(source))
    monkeypatch.setattr(session_module, "WorkerPool", None)  # far enough

    def started() -> list[str]:
        said: list[str] = []
        with pytest.raises(TypeError):
            CrawlSession(root, say=said.append)
        return said

    assert started() == ["compiling kernels, once: about 15 s"]
    (tmp_path / "cache").mkdir()
    compiled = tmp_path / "cache" / f"scan.scan_html-7.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    compiled.touch()
    assert started() == []
    os.utime(source, (time.time() - 60, time.time() - 60))
    os.utime(compiled, (time.time() - 90, time.time() - 90))  # a newer version of the program, or a copy
    assert started() == ["compiling kernels, once: about 15 s"]
    monkeypatch.setattr(reading, "parse_html", lambda *given: SimpleNamespace(text=""))
    reading.load_kernels()
    assert started() == []  # once


def test_what_cannot_be_opened_is_said_before_anything_is_compiled(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "are_kernels_compiled", lambda: False)
    monkeypatch.setattr(session_module, "WorkerPool", None)
    said: list[str] = []
    with sqlite3.connect(root / "state.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(FolderError, match="newer"):
        CrawlSession(root, say=said.append)
    (root / "index" / "bowerbird-index.json").write_text('{"engine": "tantivy", "schema": 99}')
    with pytest.raises(FolderError, match="schema"):
        CrawlSession(root, say=said.append)
    assert said == []


def test_the_mark_of_compiled_kernels_is_where_numba_leaves_it() -> None:
    reading.load_kernels()
    assert reading.are_kernels_compiled()


def test_archive_files_that_no_record_points_to_are_kept_aside(root: Path) -> None:
    (root / "archive" / "newer.warc.gz").write_bytes(b"fetched after the database was copied")
    said: list[str] = []
    with CrawlSession(root, say=said.append) as session:
        session.run(RunLimits(seconds=0.1))
    kept = root / "archive" / "unacknowledged" / "newer.warc.gz"
    assert kept.read_bytes() == b"fetched after the database was copied"
    assert not (root / "archive" / "newer.warc.gz").exists()
    assert [line for line in said if "1 archive files" in line and str(kept.parent) in line]
    shutil.rmtree(root)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[refresh]\ngone_interval_s = 0\n", ("line 2", "refresh.gone_interval_s", "at least 0.001")),
        ("[crawl]\nmax_depth = 255\n", ("line 2", "crawl.max_depth", "from 0 to 254")),
        (
            "[refresh]\nmax_interval_s = 86400\n",
            (
                "line 2: refresh.max_interval_s",
                "refresh.interval_s (604800)",
                "refresh.max_interval_s (86400)",
                "raise",
            ),
        ),
        ("[refresh]\n\ninterval_s = 4e7\n", ("line 3: refresh.interval_s", "(4e+07)", "(3.1536e+07)")),
        ("[refresh]\nmin_interval_s = 4e7\n", ("line 2: refresh.min_interval_s", "(4e+07)")),
        ("[crawl]\nlease_s = 30\n", ("line 2", "fetch.total_s (60)", "crawl.lease_s (30)")),
        ("[fetch]\n\ntotal_s = 300\n", ("line 3", "fetch.total_s (300)", "crawl.lease_s (300)")),
    ],
)
def test_settings_out_of_bounds(text: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, Path("bowerbird.toml"))
    for name in names:
        assert re.search(re.escape(name), str(caught.value)), (name, caught.value)


def test_a_crawl_tells_the_budget_that_it_has(root: Path) -> None:
    """Its command line may have set it: who looks cannot know that from the settings."""
    with CrawlSession(root, rate_per_s=6.0) as session:
        session.coordinator._tell_live(session.coordinator.progress())
        session.repository.commit()
        view = CrawlView(root)
        try:
            assert view.settings.crawl.rate_per_s == 0.0
            assert view.rate_per_s() == 6.0
        finally:
            view.close()


def test_a_part_of_a_policy_leaves_the_rest_to_the_settings(root: Path) -> None:
    set_policy(root, "in-degree+adaptive")
    with CrawlSession(root, policy="fixed") as session:
        assert session.settings.crawl.policy == "in-degree+fixed"
        (policy,) = session.repository.connection.execute("SELECT policy FROM runs").fetchone()
        assert policy == "in-degree+fixed"
        session.coordinator.run(RunLimits(seconds=0.1))
