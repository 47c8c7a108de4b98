"""Measured quality against the truth: a world is crawled in part, days go by, pages are drawn, Q is measured."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from bowerbird.appraise.policy import PLAIN
from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.measure import measure_quality
from bowerbird.crawl.session import CrawlSession, create_crawl
from bowerbird.crawl.settings import load_settings
from bowerbird.demand.events import QueryAsked
from bowerbird.lab.searchers import Habits, Searchers
from bowerbird.lab.truth import true_quality
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.lab.world.spec import DAY_S
from bowerbird.model.clock import ManualClock
from bowerbird.quality.estimate import QualityEstimate
from bowerbird.store.folder import CrawlFolder

SEARCHES = 3000
SETTINGS: dict[str, dict[str, object]] = {
    "crawl": {"contact": "lab@localhost", "scope": "anywhere", "policy": PLAIN},
    "politeness": {"delay_s": 0.0, "connections_per_host": 4},
    "network": {"allow_addresses": ["loopback"]},
    "index": {"commit_every_s": 0.3},
}


def measure_aged_crawl(
    root: Path,
    seed: int,
    *,
    pages: int = 300,
    fetched_share: float = 0.6,
    age_days: float = 6.0,
    probes: int = 120,
    rounds: int = 1,
    probe_share: float = 0.0,
) -> tuple[float, QualityEstimate]:
    """The true quality of a crawl in `root` after its pages were drawn, and what was measured.

    `probe_share`: of the crawl's own fetches, drawn by lot too. `rounds`: the probes come in so many runs.
    """
    spec = WorldSpec(
        seed=seed,
        hosts=6,
        pages=pages,
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
        create_crawl(root, server.world.seeds(), {**SETTINGS, "quality": {"probe_share": probe_share}})
        folder = CrawlFolder(root)
        settings = load_settings(folder.config)
        with CrawlSession(root, workers=1) as session:
            session.run(RunLimits(pages=round(fetched_share * pages)))
        people = Searchers(server.world, np.random.default_rng(seed), Habits(queries=120))
        now = time.time()
        with open_demand(folder, settings.demand, write=True) as log:
            shares = zip(people.queries, people.popularity.tolist(), strict=True)
            log.record([QueryAsked(" ".join(words), now, max(2, round(SEARCHES * share))) for words, share in shares])
        clock.advance(age_days * DAY_S)
        for _ in range(rounds):
            with CrawlSession(root, workers=1) as session:
                session.run(RunLimits(probes=probes // rounds, seconds=60))
        truth = true_quality(folder, settings, server.world, clock.now(), now)
        return truth, measure_quality(folder, settings, time.time(), sample=2 * probes).estimate


def fetched_share_of(seed: int) -> float:
    """From 30% to 90%, so that worlds of different seeds are fetched to different parts."""
    return 0.3 + 0.1 * (seed % 7)
