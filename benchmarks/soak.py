"""A soak: a living web in fast time, its searchers, and a crawl by `auto` on a budget that is killed now and then.

Bars: memory grows with known URLs only; no kind of fetch starves, each keeps its exploration; `kill -9` loses nothing
that was learnt longer than a minute ago. Ends with 1 when a check fails. Two hours:
`python benchmarks/soak.py --for 2h`. Results are in --out: soak.json, soak.png, samples.jsonl, the crawl's folder.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
import psutil

from bowerbird.cli.demo import DAY_LASTS_S, DEMO_SETTINGS
from bowerbird.crawl.session import create_crawl
from bowerbird.lab.crowd import Crowd
from bowerbird.lab.searchers import Habits, Searchers
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.clock import ScaledClock
from bowerbird.model.errors import BowerbirdError
from reporting import OUT, machine
from soak_checks import Kill, Learnt, check_folder, check_leases, check_return, check_survivors, read_learnt
from soak_judge import judge, report
from soak_links import measure_link_memory
from soak_urls import measure_url_memory
from soak_watch import FolderWatch, Processes

PEEK_S = 1.0
SAMPLE_S = 60.0
OLDER_S = 60.0
STUDY_S = 60.0  # between two studies of a kind: each costs seconds of a core
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """`90s`, `20m`, `2h`."""
    found = re.fullmatch(r"([\d.]+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: say it as in 90s, 20m, 2h")
    return float(found[1]) * UNITS[found[2]]


def scaled_settings(day_s: float, options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """The demo's settings, with its times as shares of a day that lasts another time."""
    times = day_s / DAY_LASTS_S
    refresh: dict[str, Any] = DEMO_SETTINGS["refresh"]
    study_s = options.study_every
    settings = dict(DEMO_SETTINGS)
    settings["crawl"] = DEMO_SETTINGS["crawl"] | {"policy": "auto", "rate_per_s": options.rate, "workers": 1}
    settings["refresh"] = {name: value * times for name, value in refresh.items()} | {
        "study_every_s": study_s,
        "gone_interval_s": 2.0 * day_s,
    }
    settings["frontier"] = {"study_every_s": study_s}
    settings["hubs"] = {"study_every_s": study_s, "half_life_days": 30.0 * times / 86_400}
    settings["demand"] = {"half_life_days": 30.0 * day_s / 86_400}  # what it is for a user, in the world's days
    settings["seeds"] = {"study_every_s": max(options.seconds / 12.0, 30.0)}
    settings["budget"] = {"horizon_days": 60.0 * times / 86_400, "study_every_s": study_s}
    settings["quality"] = {"probe_share": options.probe_share, "sample": 300, "every_s": 5.0 * study_s}
    return settings


class Soak:
    """Everything that runs, and what was seen of it."""

    def __init__(self, options: argparse.Namespace, out: Path, log: IO[bytes]) -> None:
        self.options = options
        self.out = out
        self.root = out / "crawl"
        self.log = log
        self.processes = Processes()
        self.samples: list[dict[str, Any]] = []
        self.kills: list[Kill] = []
        self.clicks: list[tuple[float, int]] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.began = self.run_began = time.time()
        self.end = self.began + options.seconds
        self.earlier: list[Learnt] = []  # what readers saw, minute by minute
        self.incidents: list[str] = []
        self.starts = 0
        self._unfinished: Kill | None = None

    def start_crawl(self) -> None:
        """Also after a kill. It would end by itself should this process be lost."""
        left_s = max(self.end - time.time(), 1.0) + 60.0
        command = [sys.executable, "-m", "bowerbird", "crawl", str(self.root), "--policy", "auto"]
        command += ["--rate", f"{self.options.rate:g}", "--for", f"{left_s:.0f}s", "--quiet"]
        self.run_began = time.time()
        self.starts += 1
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)
        self.processes.follow(self.process.pid)

    def kill_crawl(self, watch: FolderWatch, server: WorldServer) -> None:
        """SIGKILL to the coordinator, its workers and its studies; then what is left of what was learnt; then again."""
        assert self.process is not None
        prices = [row["price"] * row["unit"] for row in self.samples[-10:] if row["unit"] > 0]
        before = read_learnt(watch)
        kill = Kill(0.0, self.options.older_s, self.run_began, before, [*prices, before.price])
        tree = self.processes.tree()
        kill.at = time.time()
        kill.minute = (kill.at - self.began) / 60.0
        os.killpg(self.process.pid, signal.SIGKILL)
        for process in tree[1:]:  # studies are in sessions of their own
            try:
                process.kill()
            except psutil.NoSuchProcess:
                pass
        self.process.wait()
        _, alive = psutil.wait_procs(tree[1:], timeout=5.0)
        check_survivors(kill, watch, [process.pid for process in alive])
        earlier = [one for one in self.earlier if one.at <= kill.at - kill.older_s]
        with self.noting():
            check_folder(kill, watch, server.log(), self.clicks, earlier[-1] if earlier else None)
        kill.restarted_at = time.time()
        self.start_crawl()
        self.kills.append(kill)
        self._unfinished = kill

    def follow_up(self, watch: FolderWatch, *, last: bool = False) -> None:
        """What can only be said a while after a restart."""
        kill = self._unfinished
        if kill is not None and (check_return(kill, watch, time.time()) or last):
            check_leases(kill, watch)
            self._unfinished = None

    def note(self, text: str) -> None:
        """Something that must not be."""
        self.incidents.append(f"after {(time.time() - self.began) / 60:.1f} min: {text}")
        print(self.incidents[-1], flush=True)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """A folder that could not be read is an incident, and no reason to stop."""
        try:
            yield
        except (sqlite3.Error, OSError, BowerbirdError, ValueError, KeyError) as error:
            self.note(f"the folder could not be read: {error!r}")

    def sample(self, watch: FolderWatch, crowd: Crowd, clock: ScaledClock) -> None:
        """A row; kept at once, so that a soak that is cut short leaves what it saw."""
        memory = self.processes.take()
        row = {
            "seconds": time.time() - self.began,
            "stretch": self.starts,
            "stretch_s": time.time() - self.run_began,
            "virtual_days": (clock.now() - self.options.start_s) / 86_400,
            **watch.sample(),
            **memory,
            "searches": crowd.counts["searches"],
            "clicks": crowd.counts["clicks"],
            "load": os.getloadavg()[0],
        }
        self.samples.append(row)
        with (self.out / "samples.jsonl").open("ab") as file:
            file.write(orjson.dumps(row) + b"\n")
        self.earlier.append(read_learnt(watch))
        del self.earlier[:-5]

    def run(self, watch: FolderWatch, server: WorldServer, crowd: Crowd, clock: ScaledClock) -> None:
        """Until the time is up."""
        options = self.options
        kills_at = [t for t in np.arange(1, 1000) * options.kill_every if t <= options.seconds - options.calm]
        sample_at = options.sample_s
        while (passed := time.time() - self.began) < options.until_s:
            assert self.process is not None
            if self.process.poll() is not None:
                self.note(f"the crawl ended by itself with {self.process.returncode}: see {self.log.name}")
                self.start_crawl()
            self.clicks.append((time.time(), crowd.counts["clicks"]))
            self.processes.peek()
            with self.noting():
                self.follow_up(watch)
            if passed >= sample_at:
                sample_at += options.sample_s
                with self.noting():
                    self.sample(watch, crowd, clock)
            if kills_at and passed >= kills_at[0]:
                kills_at.pop(0)
                self.follow_up(watch, last=True)
                self.kill_crawl(watch, server)
                print(tell(self.kills[-1]), flush=True)
            time.sleep(min(PEEK_S, options.sample_s / 3))
        with self.noting():
            self.sample(watch, crowd, clock)
            self.follow_up(watch, last=True)

    def stop(self) -> None:
        """End the crawl as a person would."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60.0)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def tell(kill: Kill) -> str:
    """A line on a kill."""
    wrong = [f"{one['check']}: {one['detail']}" for one in kill.checks if not one["ok"]]
    return f"killed after {kill.at - kill.began:.0f} s: " + ("; ".join(wrong) or f"{len(kill.checks)} checks passed")


@contextmanager
def serving(root: Path, log: IO[bytes]) -> Iterator[tuple[int, int]]:
    """The search service in a process of its own; its port and its pid."""
    command = [sys.executable, "-m", "bowerbird", "serve", str(root), "--port", "0", "--rate", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip().rstrip("/").rpartition(":")[2]
            if not port.isdigit():
                raise SystemExit(f"the search service did not start: see {log.name}")
            yield int(port), process.pid
        finally:
            process.terminate()
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()


def soak(options: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    out: Path = options.out
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"{out}: is not empty. Say --out ELSEWHERE.")
    out.mkdir(parents=True, exist_ok=True)
    spec = WorldSpec(
        seed=options.seed, hosts=options.hosts, pages=options.pages, seed_hosts=5, articles_per_day=options.articles
    )
    options.start_s = spec.start_s
    clock = ScaledClock(options.speed, spec.start_s)
    day_s = 86_400 / options.speed
    with ExitStack() as stack:
        log = stack.enter_context((out / "crawl.log").open("ab"))
        server = stack.enter_context(WorldServer(World(spec), clock, log_path=out / "world.jsonl"))
        settings = scaled_settings(day_s, options)
        create_crawl(out / "crawl", server.world.seeds(), settings)
        running = Soak(options, out, log)
        stack.callback(running.stop)
        running.start_crawl()
        port, serve_pid = stack.enter_context(serving(out / "crawl", log))
        beside = {"world": server.pid, "serve": serve_pid, "soak": os.getpid()}
        running.processes.beside = {name: psutil.Process(pid) for name, pid in beside.items() if pid}
        searchers = Searchers(server.world, np.random.default_rng(options.seed), Habits(queries=150))
        crowd = Crowd(searchers, "127.0.0.1", port, clock, options.searches).start()
        stack.callback(crowd.stop)
        running.run(FolderWatch(out / "crawl"), server, crowd, clock)
    said = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    about = {"options": said, "machine": machine(), "day_s": day_s, "incidents": running.incidents}
    root = out / "crawl"
    return judge(running.samples, running.kills, about, measure_link_memory(root), measure_url_memory(root))


def main() -> None:
    """The benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="seconds", type=duration, default=duration("2h"))
    parser.add_argument("--speed", type=float, default=144.0, help="virtual seconds in a second: 144 = a day in 10 min")
    parser.add_argument("--rate", type=float, default=3.0, help="fetches a second")
    parser.add_argument("--out", type=Path, default=OUT / f"soak-{time.strftime('%Y%m%d-%H%M%S')}")
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--articles", type=float, default=200.0, help="new ones in a virtual day")
    parser.add_argument("--searches", type=float, default=1.0, help="a second")
    parser.add_argument("--probe-share", type=float, default=0.05)
    parser.add_argument("--kill-every", type=duration, default=None, help="20m, or a quarter of a shorter soak")
    parser.add_argument("--study-every", type=duration, default=None, help="60s, or a thirtieth of a shorter soak")
    parser.add_argument("--calm", type=duration, default=None, help="without kills at the end; 0.45 of the time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")
    options = parser.parse_args()
    options.kill_every = options.kill_every or min(duration("20m"), options.seconds / 4.0)
    options.calm = 0.45 * options.seconds if options.calm is None else options.calm
    options.study_every = options.study_every or min(STUDY_S, max(options.seconds / 30.0, 5.0))
    options.sample_s = min(SAMPLE_S, options.seconds / 30.0)
    options.older_s = min(OLDER_S, options.kill_every / 3.0)
    options.until_s = options.seconds
    signal.signal(signal.SIGTERM, lambda *_: setattr(options, "until_s", 0.0))  # ends early, with a report
    result = soak(options)
    report(result, options.out, as_json=options.json)
    sys.exit({True: 0, False: 1, None: 2}[result["passed"]])


if __name__ == "__main__":
    main()
