"""`kill -9` at twenty random moments: everything is fetched and searchable in the end, and next to nothing twice.

With the policy that a crawl has by default, so that some of the kills fall into its studies.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.crawl.crawling import (
    Left,
    Ran,
    is_gone,
    make_crawl,
    run_command,
    running_crawl,
    studies_of,
    wait_for,
    workers_of,
)

from bowerbird.appraise.policy import AUTO
from bowerbird.crawl.coordinator import COMMIT_EVERY_S
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import Access, World, WorldServer, WorldSpec
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState

KILLS = 20
EARLY_KILLS = 4  # while the crawl starts and recovers
WORKER_KILLS = 4
STUDY_KILLS = 4  # while a study is under way
RATE_PER_S = 60
#: What is not committed yet, and a second's worth that may start at once; a busy machine stretches both.
LOST_AS_A_RULE = 1.5 * (COMMIT_EVERY_S + 1.0) * RATE_PER_S
LOST_AT_MOST = 2 * LOST_AS_A_RULE


@dataclass(slots=True)
class Story:
    """What the kills did, one entry for each."""

    world: World
    left: Left
    journalled: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    orphans: int = 0
    studies_left: int = 0  # with the crawl that had begun them gone
    workers_killed: int = 0
    studies_killed: int = 0
    log: list[Access] = field(default_factory=list)
    last: Ran | None = None


def pages_answered(server: WorldServer) -> int:
    return sum(access.path != "/robots.txt" for access in server.log())


def wait_for_more(server: WorldServer, than: int) -> bool:
    return wait_for(lambda: pages_answered(server) > than, 20, 0.02)


def are_gone(processes: list[psutil.Process]) -> bool:
    return wait_for(lambda: all(map(is_gone, processes)), 5)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    spec = WorldSpec(seed=11, frozen=True, hosts=15, pages=1_500, crawl_delay_share=0.0)
    root = tmp_path_factory.mktemp("crash") / "crawl"
    rng = random.Random(20)
    with WorldServer(World(spec)) as server:
        crawl = {"policy": AUTO, "max_errors": WORKER_KILLS + 1}
        make_crawl(root, server.world.seeds(), {"crawl": crawl, "refresh": {"min_interval_s": 3600.0}})
        left = Left(root)
        story = Story(server.world, left)
        order = rng.sample(range(KILLS), EARLY_KILLS + WORKER_KILLS + STUDY_KILLS)
        early, by_worker = set(order[:EARLY_KILLS]), set(order[EARLY_KILLS : EARLY_KILLS + WORKER_KILLS])
        in_study = set(order[EARLY_KILLS + WORKER_KILLS :])
        for kill in range(KILLS):
            asked = pages_answered(server)
            with running_crawl(root, "--once", "--quiet", "--rate", RATE_PER_S) as process:
                if kill in early:
                    time.sleep(rng.uniform(0.1, 2.0))
                elif kill in in_study:
                    assert wait_for(lambda pid=process.pid: bool(studies_of(pid)), 20, 0.02), process.poll()
                    time.sleep(rng.uniform(0.0, 0.8))
                else:
                    assert wait_for_more(server, asked), process.poll()
                    time.sleep(rng.uniform(0.0, 1.2))
                if kill in by_worker:
                    rng.choice(workers_of(process.pid)).kill()
                    story.workers_killed += 1
                    time.sleep(rng.uniform(0.0, 1.2))
                workers, studies = workers_of(process.pid), studies_of(process.pid)
                assert process.poll() is None, process.communicate()
                process.kill()
                process.wait()
                story.orphans += not are_gone(workers)
                story.studies_killed += bool(studies)
                story.studies_left += not are_gone(studies)
            story.journalled.append(len(left.fetches()))
            story.answered.append(pages_answered(server))
            story.known.append(left.one("SELECT count(*) FROM urls"))
            if kill == KILLS // 2:  # a clean stop leaves a checkpoint; the crashes after it are replayed from there
                assert run_command("study", root, "--json").code == 0  # from here on bids are in clicks
                assert run_command("crawl", root, "--pages", 30).code == 0
        left.check_columns(root.parent / "between")
        story.last = run_command("crawl", root, "--once", timeout_s=90)
        story.log = server.log()
    return story


@pytest.mark.slow
class TestKilledTwentyTimes:
    def test_the_last_run_comes_to_the_end(self, story: Story) -> None:
        assert story.last is not None
        assert story.last.code == 0, story.last.err
        assert "0 URLs in the frontier" in story.last.out
        assert UrlState.NEW not in story.left.states().values()

    def test_the_kills_fell_into_the_crawl(self, story: Story) -> None:
        assert story.workers_killed == WORKER_KILLS
        assert story.orphans == 0
        assert story.studies_killed > 0
        assert story.studies_left == 0
        worked = sum(later > earlier for earlier, later in zip(story.answered, story.answered[1:], strict=False))
        assert worked >= KILLS // 2
        assert story.journalled[-1] < len(story.left.fetches())

    def test_every_restart_resumes(self, story: Story) -> None:
        assert story.journalled == sorted(story.journalled)
        assert story.known == sorted(story.known)
        assert story.journalled[-1] > 100

    def test_every_reachable_page_is_fetched_and_searchable(self, story: Story) -> None:
        pages = story.world.reachable(story.world.spec.start_s, sitemaps=True)
        wanted = {"http://{}{}".format(*place) for place in pages}
        assert len(wanted) > 1_000
        states = story.left.states()
        assert {url for url in wanted if states.get(url) is not UrlState.FETCHED} == set()
        urls = story.left.urls()
        assert wanted <= {urls[row] for row in story.left.indexed()}

    def test_archive_index_and_store_agree(self, story: Story, tmp_path: Path) -> None:
        story.left.check_agreement(tmp_path / "copy")

    def test_nothing_is_fetched_twice_but_what_was_in_flight(self, story: Story) -> None:
        left = story.left
        done = Counter(left.fetches(Outcome.OK, Outcome.REDIRECT, Outcome.GONE))
        assert {url: times for url, times in done.items() if times > 1} == {}
        asked = Counter(
            f"http://{access.host}{access.path}" for access in story.log if not access.path.endswith("/robots.txt")
        )
        assert set(done) <= set(asked)
        abandoned = len(left.fetches(Outcome.ABANDONED))
        again = sum(asked.values()) - len(asked)
        lost = [answered - journalled for answered, journalled in zip(story.answered, story.journalled, strict=True)]
        lost_at_once = [later - earlier for earlier, later in zip([0, *lost], lost, strict=False)]
        assert max(lost_at_once) <= LOST_AT_MOST
        assert sorted(lost_at_once)[KILLS // 2] <= LOST_AS_A_RULE
        assert again <= lost[-1] + abandoned

    def test_robots_is_not_asked_for_again_at_every_start(self, story: Story) -> None:
        asked = Counter(access.host for access in story.log if access.path == "/robots.txt")
        assert len(asked) == story.world.spec.hosts
        # a kill before the first commit of a run costs it once more
        assert sorted(asked.values())[len(asked) // 2] <= KILLS // 4

    def test_no_archived_byte_is_without_a_record(self, story: Story) -> None:
        sizes = {path.name: path.stat().st_size for path in story.left.folder.archive.glob("*.warc.gz")}
        assert sizes == dict(story.left.rows("SELECT name, bytes FROM archive_files"))

    def test_the_studies_are_whole(self, story: Story) -> None:
        view = CrawlView(story.left.folder.root)
        try:
            status = view.status()
            assert (view.study_note, view.refresh_note, view.hub_note) == ("", "", "")
        finally:
            view.close()
        assert status["policy"] == AUTO
        assert status["one_budget"]["unit_clicks"] > 0
        for path in story.left.folder.studies.glob("*.npz"):
            with np.load(path) as stored:
                assert all(stored[name] is not None for name in stored.files)  # each can be read to its end
