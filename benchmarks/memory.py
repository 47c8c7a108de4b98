"""Memory through a long crawl: the generated web, politeness delay 0, sampled from outside while it runs.

The bar: at the end, memory is within 1.5 times what it was when a tenth of the pages had been fetched, apart from what
each known URL costs. Coordinator and workers are reported apart. Resident bytes count shared pages in every process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bowerbird.appraise.policy import PLAIN
from bowerbird.lab.world import World, WorldServer, WorldSpec
from reporting import figure, machine, save, table, write_csv, write_json

BAR = 1.5
URL_BYTES = 150.0  # the bar of frontier.py; its own measured figure takes the place when there is one
EVERY_S = 1.0


def make_spec(pages: int) -> WorldSpec:
    return WorldSpec(
        pages=pages,
        hosts=max(20, pages // 500),
        seed_hosts=10,
        frozen=True,
        trap_share=0.0,
        disallow_share=0.0,
        crawl_delay_share=0.0,
        gzip_share=0.0,
        seed=5,
    )


def progress(folder: Path) -> tuple[int, int]:
    """Fetches and known URLs, as another process sees them."""
    with sqlite3.connect(f"file:{folder / 'state.db'}?mode=ro", uri=True, timeout=10) as database:
        fetched = database.execute("SELECT coalesce(max(id), 0) FROM fetches").fetchone()[0]
        known = database.execute("SELECT coalesce(max(id), -1) + 1 FROM urls").fetchone()[0]
    return int(fetched), int(known)


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def watch(process: subprocess.Popen[str], folder: Path) -> list[dict[str, Any]]:
    """A row a second until the crawl ends."""
    rows: list[dict[str, Any]] = []
    main = psutil.Process(process.pid)
    began = time.monotonic()
    while process.poll() is None:
        time.sleep(EVERY_S)
        try:
            workers = [resident(child) for child in main.children()]
            fetched, known = progress(folder)
        except (psutil.Error, sqlite3.Error):
            continue
        coordinator = resident(main)
        if not coordinator or not workers:
            continue
        rows.append(
            {
                "seconds": round(time.monotonic() - began, 1),
                "fetched": fetched,
                "known": known,
                "coordinator_mb": coordinator / 1e6,
                "workers_mb": sum(workers) / 1e6,
                "all_mb": (coordinator + sum(workers)) / 1e6,
                "load": round(os.getloadavg()[0], 2),
            }
        )
    return rows


def crawl(pages: int, work: Path, connections: int) -> tuple[list[dict[str, Any]], str]:
    """Serve the world and crawl all of it."""
    folder = work / "crawl"
    program = [sys.executable, "-m", "bowerbird.cli.main"]
    with WorldServer(World(make_spec(pages)), keep_log=False) as server:
        seeds = [part for url in server.world.seeds() for part in ("--seed", url)]
        options = ["--contact", "bench@localhost", "--delay", "0", "--allow-addresses", "loopback", "--policy", PLAIN]
        subprocess.run(
            [*program, "init", str(folder), *seeds, *options, "--scope", "anywhere"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        config = folder / "bowerbird.toml"
        text = config.read_text()
        config.write_text(text.replace("# connections_per_host = 1\n", f"connections_per_host = {connections}\n"))
        command = [*program, "crawl", str(folder), "--once", "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        rows = watch(process, folder)
        assert process.stdout is not None
        said = process.stdout.read().strip()
    if process.returncode:
        raise SystemExit(f"the crawl ended with {process.returncode}:\n{said}")
    return rows, said


def judge(rows: list[dict[str, Any]], pages: int, url_bytes: float) -> dict[str, Any]:
    """Memory at a tenth of the pages and at the end: the mean of a few samples around each."""
    early = _around(rows, pages // 10)
    late = _around(rows, rows[-1]["fetched"])
    result: dict[str, Any] = {"early": early, "late": late, "url_bytes": url_bytes}
    for part in ("all_mb", "coordinator_mb", "workers_mb"):
        result[f"ratio_{part[:-3]}"] = late[part] / early[part]
    result["ratio_outside_urls"] = (late["all_mb"] - late["known"] * url_bytes / 1e6) / (
        early["all_mb"] - early["known"] * url_bytes / 1e6
    )
    result["passed"] = result["ratio_outside_urls"] <= BAR
    return result


def _around(rows: list[dict[str, Any]], fetched: int) -> dict[str, float]:
    nearest = sorted(rows, key=lambda row: abs(row["fetched"] - fetched))[:5]
    names = ("fetched", "known", "coordinator_mb", "workers_mb", "all_mb")
    return {name: sum(row[name] for row in nearest) / len(nearest) for name in names}


def draw(rows: list[dict[str, Any]]) -> None:
    chart, axes = figure(7.0, 3.6)
    fetched = [row["fetched"] for row in rows]
    for name, label in (("all_mb", "all"), ("coordinator_mb", "coordinator"), ("workers_mb", "workers")):
        axes.plot(fetched, [row[name] for row in rows], label=label)
    axes.set_xlabel("pages fetched")
    axes.set_ylabel("resident MB")
    axes.set_ylim(bottom=0)
    axes.legend()
    save(chart, "memory")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """The benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=4, help="to one host")
    parser.add_argument("--url-bytes", type=float, default=URL_BYTES, help="cost of a known URL")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="bowerbird-bench-"))
    try:
        rows, said = crawl(options.pages, work, options.connections)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    result = judge(rows, options.pages, options.url_bytes)
    print(said)
    print(table([{"at": "a tenth", **result["early"]}, {"at": "the end", **result["late"]}]))
    print(
        f"ratio {result['ratio_all']:.2f} in all (coordinator {result['ratio_coordinator']:.2f}, workers "
        f"{result['ratio_workers']:.2f}); without {options.url_bytes:g} bytes a known URL "
        f"{result['ratio_outside_urls']:.2f}: bar {BAR}: {'PASS' if result['passed'] else 'FAIL'}"
    )
    draw(rows)
    write_csv("memory", rows)
    summary = {"machine": machine(), "pages": options.pages, "said": said, **result}
    write_json("memory", summary, options.json)
    return summary


if __name__ == "__main__":
    main()
