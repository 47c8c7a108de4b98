"""The measured quality of real crawls against the truth: fetched over HTTP, indexed, left to age, probed, measured."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.crawling import make_crawl

from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.measure import measure_quality, open_demand
from bowerbird.crawl.session import CrawlSession
from bowerbird.crawl.settings import load_settings
from bowerbird.demand.events import QueryAsked
from bowerbird.lab.searchers import Habits, Searchers
from bowerbird.lab.truth import true_quality
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.lab.world.spec import DAY_S
from bowerbird.model.clock import ManualClock
from bowerbird.quality.estimate import QualityEstimate
from bowerbird.store.folder import CrawlFolder

PAGES, PROBES = 300, 120


def measure(root: Path, seed: int) -> tuple[float, QualityEstimate]:
    """A world of this seed: part of it is fetched, days go by, some pages are drawn by lot."""
    spec = WorldSpec(
        seed=seed,
        hosts=6,
        pages=PAGES,
        seed_hosts=6,
        topics=6,
        crawl_delay_share=0.0,
        trap_share=0.0,
        disallow_share=0.0,
        page_bytes=1500,
        mean_words=100,
        articles_per_day=5,
        change_mix=((0.5, 0.0), (0.3, 0.1), (0.2, 1.0)),
    )
    clock = ManualClock(spec.start_s)
    with WorldServer(World(spec), clock, thread=True, keep_log=False) as server:
        make_crawl(root, server.world.seeds())
        settings, folder = load_settings(root / "bowerbird.toml"), CrawlFolder(root)
        with CrawlSession(root, workers=1) as session:
            session.run(RunLimits(pages=round((0.3 + 0.1 * (seed % 7)) * PAGES)))
        people = Searchers(server.world, np.random.default_rng(seed), Habits(queries=120))
        now = time.time()
        with open_demand(folder, settings.demand, write=True) as log:
            shares = zip(people.queries, people.popularity.tolist(), strict=True)
            log.record([QueryAsked(" ".join(words), now, max(2, round(3000 * share))) for words, share in shares])
        clock.advance(6 * DAY_S)
        truth = true_quality(folder, settings, server.world, clock.now(), now)
        with CrawlSession(root, workers=1) as session:
            session.run(RunLimits(probes=PROBES, seconds=60))
        return truth, measure_quality(folder, settings, now, sample=2 * PROBES).estimate


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_interval_covers_the_truth_in_at_least_seventeen_of_twenty_worlds(tmp_path: Path) -> None:
    runs = [measure(tmp_path / str(seed), seed) for seed in range(20)]
    covered = sum(found.low <= truth <= found.high for truth, found in runs)
    errors = np.array([found.quality - truth for truth, found in runs])
    widths = np.array([found.high - found.low for _, found in runs])
    assert covered >= 17, [(truth, found.low, found.high) for truth, found in runs]
    assert abs(errors.mean()) < 0.04
    assert widths.mean() < 0.4  # an interval from 0 to 1 would cover too
    for truth, found in runs:
        assert sum(lost for lost, _, _ in found.causes.values()) == pytest.approx(1 - found.quality)
        assert found.causes["unfetched"][0] == max(lost for lost, _, _ in found.causes.values()) or truth > 0.8
