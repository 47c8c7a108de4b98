"""A crawl that runs chooses its seeds anew."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
from tests.crawl.crawling import Left, interrupt, make_crawl, running_crawl, wait_for

from bowerbird.crawl.studying import FIRST_AFTER_S
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.seed_study import SeedStudy
from bowerbird.store.folder import CrawlFolder

SPEC = WorldSpec(seed=3, frozen=True, hosts=12, pages=700, crawl_delay_share=0.0, redirect_share=0.04)


def depths(root: Path) -> tuple[np.ndarray, np.ndarray, SeedStudy]:
    """From the nearest seed and as found, for everybody who looks, and the choice they go by."""
    view = CrawlView(root)
    try:
        study = view.repository.seed_study
        assert study is not None
        table = view.repository.table
        return table.near_depth.copy(), table.columns["depth"].copy(), study
    finally:
        view.close()


def read_until(process: subprocess.Popen[str], part: str, timeout_s: float = 40.0) -> str:
    """The first line of what a crawl says that has this; nothing where it does not come."""
    watchdog = threading.Timer(timeout_s, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        return next((line for line in process.stderr if part in line), "")
    finally:
        watchdog.cancel()


def studies_seeds(process: subprocess.Popen[str]) -> bool:
    """Is a choice being made beside this crawl?"""
    with suppress(psutil.Error):
        return any("seeds" in child.cmdline() for child in psutil.Process(process.pid).children())
    return False


def test_a_crawl_chooses_its_seeds_and_tells_and_can_be_kept_from_it(tmp_path: Path) -> None:
    root = tmp_path / "crawl"
    left, made = Left(root), CrawlFolder(root).study("seeds")

    def is_crawling(process: subprocess.Popen[str]) -> bool:
        live = left.rows("SELECT value FROM meta WHERE key = 'live'")
        return bool(live) and json.loads(str(live[0][0]))["pid"] == process.pid

    with WorldServer(World(SPEC)) as server:
        make_crawl(root, server.world.seeds()[:1], {"seeds": {"study_every_s": 1.0, "k": 4, "hops": 2}})
        with running_crawl(root, "--rate", 200) as process:
            assert wait_for(lambda: studies_seeds(process), 40, 0.02)
            told = read_until(process, " seeds: ")
            process.send_signal(signal.SIGKILL)
        assert " chosen beside 1 given, " in told
        assert " of the value within 2 links, " in told
        assert left.one("SELECT count(DISTINCT url) FROM fetches WHERE outcome = ?", int(Outcome.OK)) >= 200
        near, found, study = depths(root)
        assert study.history
        assert 0 < len(study.row) <= 4
        assert (near[study.row] == 0).all()
        assert (near[: study.count] <= study.depth).all()
        assert (near < found).any()  # some are nearer than they were found
        assert found.tolist() == [depth for (depth,) in left.rows("SELECT depth FROM urls ORDER BY id")]
        config = root / "bowerbird.toml"
        config.write_text(config.read_text().replace("study_every_s = 1.0", "study_every_s = 0", 1))
        made.unlink()
        with running_crawl(root, "--rate", 50) as process:
            assert wait_for(lambda: is_crawling(process), 20)
            assert not wait_for(lambda: studies_seeds(process), FIRST_AFTER_S + 1.5, 0.02)
            assert process.poll() is None
            ran = interrupt(process)
        assert ran.code in (0, 130), ran.err
        assert " seeds: " not in ran.err
        assert not made.exists()
        left.check_agreement(tmp_path / "scratch")
