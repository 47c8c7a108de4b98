"""The frontier in PostgreSQL at size: five million known URLs, and 1,000 of them leased while 50,000 a second come in.

    python benchmarks/postgres_frontier.py --urls 5000000 --seconds 60

One process fills the database (committed and synced in batches) and leaves a checkpoint. Another opens it as a
coordinator does that takes over: columns, bids, first pick. Then URLs come in at the given rate, are bid for and
committed twenty times a second, and every 0.25 s 1,000 are leased to two dozen workers by the crawl's own dispatcher:
picked under politeness, robots.txt obeyed, texts read, the leases written and committed. A lease's time is all of that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.appraise.policy import make_policy
from bowerbird.crawl.dispatch import Dispatcher
from bowerbird.crawl.fleet import Fleet, RemoteWorker
from bowerbird.crawl.hosts import HostKeeper
from bowerbird.crawl.market import Market
from bowerbird.crawl.settings import Settings
from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.model.clock import FollowingClock
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.election import SharedClaim
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres_schema import create_store
from bowerbird.store.repository import Repository
from frontier import host_numbers, resident
from reporting import machine, table, write_json

BATCH = 200_000
COMMIT_EVERY_S = 0.05
LEASE_EVERY_S = 0.25
LEASED = 1_000
WORKERS = 24
FETCH_S = 0.3
WARM = 4


def make_texts(first: int, hosts: list[int]) -> list[str]:
    return [
        f"https://www.site-{host:06x}.example/articles/{first + i:08x}/a-title.html" for i, host in enumerate(hosts)
    ]


def fill(root: Path, urls: int, hosts: int) -> dict[str, Any]:
    claim = SharedClaim.wait(CrawlFolder(root))
    repository = Repository(CrawlFolder(root), write=True, connection=claim.connection)
    of_url = host_numbers(urls, hosts, np.random.default_rng(1))
    add_s = commit_s = 0.0
    for first in range(0, urls, BATCH):
        texts = make_texts(first, of_url[first : first + BATCH].tolist())
        began = time.perf_counter()
        repository.add_urls(texts, at=time.time(), depth=3)
        middle = time.perf_counter()
        repository.commit()
        add_s += middle - began
        commit_s += time.perf_counter() - middle
    table_ = repository.table.hosts
    table_.columns["robots_at"][:] = time.time()  # asked, and nothing is forbidden
    for host in range(len(table_)):
        repository.record_robots(host, "none", b"")
    repository.commit()
    repository.write_checkpoint()
    (size,) = repository.connection.execute("SELECT pg_total_relation_size('urls')").fetchone()
    repository.close()
    return {"filled_per_s": urls / (add_s + commit_s), "disk_bytes_per_url": size / urls}


def open_all(root: Path) -> tuple[Repository, Market, Dispatcher, Fleet, dict[str, Any]]:
    """As whoever takes over does."""
    folder, settings, now = CrawlFolder(root), Settings(), time.time()
    began = time.perf_counter()
    claim = SharedClaim.wait(folder)
    repository = Repository(folder, write=True, connection=claim.connection)
    opened = time.perf_counter()
    gate = HostGate(1.0, 1)
    market = Market(repository, make_policy("breadth-first+adaptive"), gate, None, now)
    keeper = HostKeeper(repository, gate, settings)
    keeper.scope.admits = lambda url: True  # type: ignore[method-assign]  # scope is not what is measured
    market.open(now)
    keeper.restore(now)
    fleet = Fleet(claim.connection, FollowingClock(claim.connection.now))
    fleet.workers = {number: RemoteWorker(number) for number in range(WORKERS)}
    dispatcher = Dispatcher(repository, market, keeper, fleet, settings, claim.term << 40)
    dispatcher.lottery.share = 0.0
    dispatcher.take_up(now)
    first = market.pick(time.time(), 1)
    assert len(first) == 1
    ended = time.perf_counter()
    return (
        repository,
        market,
        dispatcher,
        fleet,
        {
            "take_over_s": ended - began,
            "open_s": opened - began,
            "bids_s": ended - opened,
        },
    )


def lease(root: Path, rate: int, seconds: float, hosts: int) -> dict[str, Any]:
    repository, market, dispatcher, fleet, result = open_all(root)
    rng = np.random.default_rng(2)
    start, known = time.monotonic(), len(repository.table)
    came = leased = 0
    next_commit, next_lease = start, start + 1.0
    took_ms: list[float] = []
    turns_ms: list[float] = []
    in_flight: list[tuple[float, list[int]]] = []
    while (now := time.monotonic()) < start + seconds:
        wall = time.time()
        while in_flight and in_flight[0][0] <= now:  # answered: what a report does to leases, hosts and the next commit
            for token in in_flight.pop(0)[1]:
                over = dispatcher.leases.close(token)
                if over is not None:
                    market.gate.give_back(over.host, wall)
                    fleet._let_go(token)
        if now >= next_commit:
            due = int((now - start) * rate) - came
            picked = np.minimum(rng.zipf(1.3, due), hosts) - 1
            texts = make_texts(known + came, picked.tolist())
            began = time.perf_counter()
            _, added = repository.add_urls(texts, at=wall, depth=3)
            market.bid(added, wall, offer=True)
            ended = dispatcher.leases.take_over()
            repository.commit(also=lambda _, ended=ended: fleet.settle(ended))
            turns_ms.append(1000 * (time.perf_counter() - began))
            came += due
            next_commit = max(next_commit + COMMIT_EVERY_S, time.monotonic())
        market.keep_up(time.time(), hungry=False)
        if time.monotonic() >= next_lease:
            before = dispatcher.leases._next
            began = time.perf_counter()
            dispatcher.dispatch(time.time(), LEASED + len(dispatcher.leases))
            fleet._write_leases()
            took_ms.append(1000 * (time.perf_counter() - began))
            tokens = list(range(before, dispatcher.leases._next))
            assert len(tokens) == LEASED, len(tokens)
            leased += len(tokens)
            in_flight.append((time.monotonic() + FETCH_S, tokens))
            next_lease = max(next_lease + LEASE_EVERY_S, time.monotonic())
        time.sleep(max(min(next_commit, next_lease) - time.monotonic(), 0.0))
    took_s = time.monotonic() - start
    measured = took_ms[WARM:]
    repository.close()
    return {
        **result,
        "urls": known + came,
        "in_per_s": came / took_s,
        "leased": leased,
        "leases_measured": len(measured),
        "lease_median_ms": float(np.median(measured)),
        "lease_p95_ms": float(np.quantile(measured, 0.95)),
        "lease_max_ms": float(np.max(measured)),
        "turn_median_ms": float(np.median(turns_ms)),
        "resident_mb": resident() / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=5_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--port", type=int, default=0, help="of PostgreSQL; 0 is any that is free")
    parser.add_argument("--phase", choices=["fill", "lease"], help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase == "fill":
        print(write_json("", fill(options.root, options.urls, options.hosts), options.root / "fill.json"))
        return
    if options.phase == "lease":
        found = lease(options.root, options.rate, options.seconds, options.hosts)
        print(write_json("", found, options.root / "lease.json"))
        return
    import json

    result: dict[str, Any] = {"machine": machine()}
    more = ("shared_buffers=1GB", "max_wal_size=8GB", "wal_buffers=64MB", "checkpoint_timeout=15min")
    with (
        tempfile.TemporaryDirectory(prefix="postgres-frontier-") as base,
        PostgresServer(safe=True, port=options.port, settings=more) as server,
    ):
        root = Path(base)
        create_store(CrawlFolder(root), server.url())
        for phase in ("fill", "lease"):
            command = [sys.executable, __file__, "--phase", phase, "--root", base, "--urls", str(options.urls)]
            more_options = ["--hosts", str(options.hosts), "--rate", str(options.rate)]
            subprocess.run([*command, *more_options, "--seconds", str(options.seconds)], check=True)
            result |= json.loads((root / f"{phase}.json").read_text())
    result["bars"] = [
        {
            "bar": "lease of 1,000, p95 under 100 ms",
            "value": result["lease_p95_ms"],
            "ok": result["lease_p95_ms"] < 100,
        },
        {
            "bar": f"{options.rate:,} URLs a second come in",
            "value": result["in_per_s"],
            "ok": result["in_per_s"] > 0.98 * options.rate,
        },
        {"bar": "take-over in 10 s", "value": result["take_over_s"], "ok": result["take_over_s"] < 10},
    ]
    print(json.dumps({name: value for name, value in result.items() if name != "bars"}, indent=1))
    print(table(result["bars"]))
    write_json("postgres_frontier", result)
    sys.exit(0 if all(bar["ok"] for bar in result["bars"]) else 1)


if __name__ == "__main__":
    main()
