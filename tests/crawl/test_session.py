"""Opening a crawl for writing: what it sets right, and that it lets go of everything when it cannot."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

import pytest
from tests.crawl.crawling import make_crawl

from bowerbird.crawl import session as session_module
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import parse_settings
from bowerbird.model.errors import ConfigError
from bowerbird.store.folder import WriterLock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl", ["http://127.0.0.1:1/"])


@pytest.mark.parametrize("part", ["Repository", "truncate_archive", "TantivyIndex", "catch_up", "Coordinator"])
def test_a_start_that_fails_lets_go_of_everything(root: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(session_module, part, None)
        with pytest.raises((TypeError, AttributeError)) as caught:
            CrawlSession(root)
    assert not WriterLock.is_held(session_module.CrawlFolder(root))
    assert "index" not in {thread.name for thread in threading.enumerate()}
    del caught
    with CrawlSession(root) as session:
        session.run(RunLimits(seconds=0.1))


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
        ("[crawl]\nlease_s = 30\n", ("line 2", "fetch.total_s (60)", "crawl.lease_s (30)")),
        ("[fetch]\n\ntotal_s = 300\n", ("line 3", "fetch.total_s (300)", "crawl.lease_s (300)")),
    ],
)
def test_settings_out_of_bounds(text: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, Path("bowerbird.toml"))
    for name in names:
        assert re.search(re.escape(name), str(caught.value)), (name, caught.value)
