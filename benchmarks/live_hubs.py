"""How soon are new articles fetched? Two crawls of one living world at the same time: `hub-interval` and `echo`."""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.clock import ScaledClock
from reporting import machine, table, write_json

SPEED = 1800.0
SETTINGS = {
    ("refresh", "interval_s"): 40.0,
    ("refresh", "min_interval_s"): 1.0,
    ("refresh", "hub_interval_s"): 12.0,
    ("hubs", "study_every_s"): 5.0,
    ("hubs", "page_age_days"): 0.0,
    ("hubs", "half_life_days"): round(math.log(2.0) / SPEED, 6),
}
BASE = "breadth-first+fixed"
POLICIES = {"hub-interval": BASE, "echo": f"{BASE}+echo"}
MARGIN_S = 5.0  # articles published this long after the beginning count,
LATEST_S = 15.0  # and until this long before the end: they can still be found


def main() -> None:
    """Measure world after world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", default="2,5,11", help="seeds of worlds")
    parser.add_argument("--learn", type=int, default=60, help="seconds of the crawl that both share")
    parser.add_argument("--seconds", type=int, default=70)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in map(int, options.worlds.split(",")):
        with tempfile.TemporaryDirectory() as name:
            rows += compare(seed, Path(name), options.learn, options.seconds)
            print(json.dumps(rows[-2:]), flush=True)
    print(table(rows))
    write_json("live_hubs", {"rows": rows, "machine": machine()})


def compare(seed: int, folder: Path, learn_s: int, seconds: int) -> list[dict[str, Any]]:
    """One world, both policies."""
    spec = WorldSpec(
        seed=seed,
        hosts=12,
        pages=300,
        articles_per_day=300.0,
        crawl_delay_share=0.0,
        disallow_share=0.0,
        trap_share=0.0,
        start_s=float(int(time.time())),
    )
    with WorldServer(World(spec), ScaledClock(SPEED, spec.start_s)) as server:
        first = folder / "hub-interval"
        init = ["init", str(first), "--contact", "bench@example.org", "--scope", "anywhere", "--delay", "0.01"]
        seeds = [part for url in server.world.seeds() for part in ("--seed", url)]
        command(*init, "--allow-addresses", "loopback", *seeds)
        configure(first / "bowerbird.toml")
        command("crawl", str(first), "--for", f"{learn_s}s", "--policy", BASE)
        shutil.copytree(first, folder / "echo")
        command("study", str(folder / "echo"), "--policy", "echo")
        began, world_began = time.time(), server.clock.now()
        running = [
            subprocess.Popen(
                line("crawl", str(folder / name), "--for", f"{seconds}s", "--policy", policy),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for name, policy in POLICIES.items()
        ]
        for process in running:
            process.wait()
        ended = time.time()
        return [
            {"world": seed, "policy": name, **measure(server.world, folder / name, began, world_began, ended, seconds)}
            for name in POLICIES
        ]


def measure(
    world: World, root: Path, began: float, world_began: float, ended: float, seconds: int
) -> dict[str, float | int]:
    """From publication to fetch, of the articles that could be found in time."""
    published = world.articles(world_began + MARGIN_S * SPEED, world_began + (seconds - LATEST_S) * SPEED)
    connection = sqlite3.connect(root / "state.db")
    try:
        fetched = dict(
            connection.execute(
                "SELECT urls.url, min(fetched_at) FROM fetches JOIN urls ON urls.id = fetches.url "
                "WHERE fetches.status = 200 GROUP BY 1"
            )
        )
        count = connection.execute("SELECT count(*) FROM fetches WHERE fetched_at > ?", (began,)).fetchone()[0]
    finally:
        connection.close()
    delays, left, clicks, unfetched = [], 0.0, 0.0, 0
    for article in published:
        url = "http://{}{}".format(*world.location(article.page))
        appeared = began + (article.published_s - world_began) / SPEED
        delay = fetched.get(url, ended) - appeared
        unfetched += url not in fetched
        delays.append(delay)
        clicks += article.clicks
        if url in fetched:
            left += math.exp(-world.decay(article.topic) * max(delay, 0.0) * SPEED) * article.clicks
    return {
        "fetches": int(count),
        "articles": len(delays),
        "median_s": round(float(np.median(delays)), 2),
        "mean_s": round(float(np.mean(delays)), 2),
        "within_90_s": round(float(np.percentile(delays, 90)), 2),
        "unfetched": unfetched,
        "clicks_to_come_pct": round(100.0 * left / clicks, 1),
    }


def configure(path: Path) -> None:
    """A settings file with these values in place of its own."""
    text = path.read_text()
    for (section, name), value in SETTINGS.items():
        head, title, rest = text.partition(f"\n[{section}]")
        rest, found = re.subn(rf"(?m)^#? ?{name} = .*$", f"{name} = {value}", rest, count=1)
        if not found:
            raise SystemExit(f"{path}: no setting {section}.{name}")
        text = head + title + rest
    path.write_text(text)


def line(*arguments: str) -> list[str]:
    """A command of the program."""
    return [sys.executable, "-m", "bowerbird", *arguments]


def command(*arguments: str) -> None:
    """Run one to its end."""
    subprocess.run(line(*arguments), check=True, capture_output=True)


if __name__ == "__main__":
    main()
