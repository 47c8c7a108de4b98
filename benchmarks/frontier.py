"""The frontier at size: ten million known URLs over a hundred thousand hosts of Zipf sizes.

Three processes, one after another, as in life: the first adds the URLs durably; the second opens the folder with its
checkpoint, places all bids, picks, and re-bids; the third opens it without the checkpoint. Bids are placed, and the
auction's pool is refilled, by the crawl's own market.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from reporting import machine, table, write_json

BATCH = 200_000
PICKS = 50
PICK_URLS = 1_000
BETWEEN_PICKS_S = 0.2  # 1,000 picks five times a second: far above what two cores fetch
FETCH_S = 0.3
WARM_PICKS = 5

#: name -> (bound, is it a lower bound)
BARS = {
    "insert_urls_per_s": (300_000.0, True),
    "rebid_all_s": (5.0, False),
    "pick_median_ms": (50.0, False),
    "pick_p95_ms": (50.0, False),
    "restart_with_checkpoint_s": (60.0, False),
    "restart_without_checkpoint_s": (60.0, False),
    "bytes_per_url": (150.0, False),
}


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def host_numbers(urls: int, hosts: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The host of each URL: every host has one, the rest follow Zipf's law; in mixed order."""
    weight = 1.0 / np.arange(1, hosts + 1)
    sizes = 1 + np.floor(weight / weight.sum() * (urls - hosts)).astype(np.int64)
    sizes[0] += urls - sizes.sum()
    out = np.repeat(np.arange(hosts), sizes)
    rng.shuffle(out)
    return out


def insert(root: Path, urls: int, hosts: int) -> dict[str, Any]:
    """Add all URLs in batches, each committed with fsync; making the texts is not counted."""
    from bowerbird.store.folder import CrawlFolder
    from bowerbird.store.repository import Repository

    baseline = resident()
    Repository.create(root)
    repository = Repository(CrawlFolder(root), write=True)
    origin = [f"https://www.site-{number:06x}.example" for number in range(hosts)]
    of_url = host_numbers(urls, hosts, np.random.default_rng(1))
    repository.add_urls(["https://warm.example/"], at=1.0)
    repository.commit()
    add_s = commit_s = cpu_s = 0.0
    for first in range(0, urls, BATCH):
        part = of_url[first : first + BATCH].tolist()
        texts = [f"{origin[host]}/articles/{first + i:08x}/a-title.html" for i, host in enumerate(part)]
        began, cpu_began = time.perf_counter(), time.process_time()
        _, added = repository.add_urls(texts, at=time.time(), depth=3, source=0)
        middle = time.perf_counter()
        repository.commit()
        ended = time.perf_counter()
        cpu_s += time.process_time() - cpu_began
        assert len(added) == len(texts)
        add_s += middle - began
        commit_s += ended - middle
    began = time.perf_counter()
    repository.write_checkpoint()
    checkpoint_s = time.perf_counter() - began
    size = sum(file.stat().st_size for file in root.glob("state.db*"))
    result = {
        "insert_urls_per_s": urls / (add_s + commit_s),
        "add_s": add_s,
        "commit_s": commit_s,
        "insert_cpu_s": cpu_s,
        "checkpoint_s": checkpoint_s,
        "disk_bytes_per_url": size / urls,
        "insert_resident_mb": resident() / 1e6,
        "baseline_mb": baseline / 1e6,
    }
    repository.close()
    return result


def start(root: Path) -> tuple[Any, dict[str, float]]:
    """Open the folder, place all bids, make the first pick: what happens before a first fetch."""
    began = time.perf_counter()
    from bowerbird.appraise.policy import make_policy
    from bowerbird.crawl.hosts import HostKeeper
    from bowerbird.crawl.market import Market
    from bowerbird.crawl.settings import Settings
    from bowerbird.schedule.politeness import HostGate
    from bowerbird.store.folder import CrawlFolder
    from bowerbird.store.repository import Repository

    imported, baseline = time.perf_counter(), resident()
    repository = Repository(CrawlFolder(root), write=True)
    opened = time.perf_counter()
    gate, now = HostGate(1.0, 1), time.time()
    market = Market(repository, make_policy("breadth-first+adaptive"), gate, None, now)
    market.open(now)
    HostKeeper(repository, gate, Settings()).restore(now)
    bid = time.perf_counter()
    picks = market.auction.pick(time.time(), 1, market.price.value)
    assert len(picks) == 1
    ended = time.perf_counter()
    return market, {
        "restart_s": ended - began,
        "import_s": imported - began,
        "open_s": opened - imported,
        "first_bids_s": bid - opened,
        "first_pick_s": ended - bid,
        "baseline_mb": baseline / 1e6,
    }


def pick_many(market: Any) -> dict[str, Any]:
    """Fifty picks as the live loop makes them: leases held, hosts given back, refills when due."""
    auction, gate, price = market.auction, market.gate, market.price.value
    now = time.time()
    in_flight: list[tuple[float, list[int]]] = []
    took_ms: list[float] = []
    refills_s: list[float] = []
    for number in range(WARM_PICKS + PICKS):
        now += BETWEEN_PICKS_S
        while in_flight and in_flight[0][0] <= now:
            at, hosts = in_flight.pop(0)
            for host in hosts:
                gate.give_back(host, at)
        due = auction.refill_due(now)
        began = time.perf_counter()
        market.keep_up(now, hungry=False)
        if due:
            refills_s.append(time.perf_counter() - began)
        began = time.perf_counter()
        picks = auction.pick(now, PICK_URLS, price)
        if number >= WARM_PICKS:
            took_ms.append(1000 * (time.perf_counter() - began))
        assert len(picks) == PICK_URLS, (number, len(picks))
        assert len({pick.host for pick in picks}) == PICK_URLS
        auction.hold([pick.row for pick in picks], now + 300.0)
        in_flight.append((now + FETCH_S, [pick.host for pick in picks]))
    return {
        "pick_median_ms": float(np.median(took_ms)),
        "pick_p95_ms": float(np.quantile(took_ms, 0.95)),
        "refill_median_s": float(np.median(refills_s)) if refills_s else 0.0,
        "refills": len(refills_s),
    }


def work(root: Path, urls: int) -> dict[str, Any]:
    """Restart, picks, re-bid of all."""
    market, result = start(root)
    result |= pick_many(market)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        market._rebid_all(time.time())
        market.auction.refill(time.time(), market.price.value)
        times.append(time.perf_counter() - began)
    held = resident()
    result |= {
        "rebid_all_s": float(np.median(times)),
        "bytes_per_url": held / urls,
        "bytes_per_url_above_baseline": (held - result["baseline_mb"] * 1e6) / urls,
        "columns_bytes_per_url": market.repository.table.columns.nbytes() / urls,
        "bids_bytes_per_url": market.auction.bids.nbytes() / urls,
        "peak_mb": _peak_bytes() / 1e6,
    }
    market.repository.close()
    return result


def _peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_phase(name: str, root: Path, urls: int, hosts: int) -> dict[str, Any]:
    """One phase in a process of its own."""
    command = [sys.executable, __file__, "--phase", name, "--root", str(root)]
    command += ["--urls", str(urls), "--hosts", str(hosts)]
    load = os.getloadavg()[0]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the phase {name!r} ended with {done.returncode}")
    return dict(json.loads(done.stdout.splitlines()[-1])) | {"load": round(load, 2)}


def measure(urls: int, hosts: int) -> dict[str, Any]:
    """All phases in a new folder."""
    root = Path(tempfile.mkdtemp(prefix="bowerbird-bench-"))
    try:
        run_phase("insert", root / "warm", min(urls, 1000), min(hosts, 100))  # compiled kernels get cached
        root_folder = root / "crawl"
        phases = {"insert": run_phase("insert", root_folder, urls, hosts)}
        print(table([phases["insert"]]), flush=True)
        phases["with_checkpoint"] = run_phase("work", root_folder, urls, hosts)
        print(table([phases["with_checkpoint"]]), flush=True)
        (root_folder / "columns.ckpt").unlink()
        phases["without_checkpoint"] = run_phase("start", root_folder, urls, hosts)
        print(table([phases["without_checkpoint"]]), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return phases


def judge(phases: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a bar."""
    figures = phases["insert"] | phases["with_checkpoint"]
    figures["restart_with_checkpoint_s"] = phases["with_checkpoint"]["restart_s"]
    figures["restart_without_checkpoint_s"] = phases["without_checkpoint"]["restart_s"]
    return [
        {
            "bar": name,
            "figure": figures[name],
            "bound": f"{'>=' if lower else '<='} {bound:g}",
            "passed": bool(figures[name] >= bound if lower else figures[name] <= bound),
        }
        for name, (bound, lower) in BARS.items()
    ]


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """The benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--phase", choices=["insert", "work", "start"], help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.phase:
        options.root.mkdir(parents=True, exist_ok=True)
        if options.phase == "insert":
            result = insert(options.root, options.urls, options.hosts)
        elif options.phase == "work":
            result = work(options.root, options.urls)
        else:
            market, result = start(options.root)
            market.repository.close()
        print(json.dumps(result))
        return result
    phases = measure(options.urls, options.hosts)
    rows = judge(phases)
    print(table(rows))
    summary = {
        "machine": machine(),
        "urls": options.urls,
        "hosts": options.hosts,
        "phases": phases,
        "bars": rows,
        "passed": all(row["passed"] for row in rows),
    }
    write_json("frontier", summary, options.json)
    return summary


if __name__ == "__main__":
    main()
