"""A crawl in PostgreSQL under fire: workers and coordinators are killed every few seconds, and nothing may be lost.

    python benchmarks/postgres_crash.py --pages 50000 --hosts 400 --workers 4

Serves a made-up web, crawls it with `--once` by worker processes and candidates of which one coordinates, and kills one
process at random (`kill -9`) every few seconds. Then the same web is crawled by the embedded store. Judged: every page
fetched, the end the same, and what the servers saw of politeness.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bowerbird.crawl.session import create_crawl
from bowerbird.lab.fleet_trial import judge_manners, read_finished, run_trial
from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.url_state import UrlState
from reporting import machine, table, write_json


def settings_of(delay_s: float) -> dict[str, dict[str, object]]:
    return {
        "crawl": {
            "contact": "bench@example.org",
            "scope": "anywhere",
            "policy": "breadth-first+adaptive",
            "retry_base_s": 0.5,
            "max_errors": 12,
            "nice": 0,
        },
        "politeness": {"delay_s": delay_s},
        "network": {"allow_addresses": ["loopback"]},
        "quality": {"probe_share": 0.0},
    }


def describe(url: str, one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> dict[str, Any]:
    """How two crawls differ about a URL: state, content, and the links that only one has."""
    if one is None or other is None:
        return {"url": url, "only": "embedded" if one is None else "shared"}
    links = {"shared": sorted(one[2] - other[2]), "embedded": sorted(other[2] - one[2])}
    return {"url": url, "states": (one[0], other[0]), "same content": one[1] == other[1], "links of only one": links}


def run(options: argparse.Namespace, base: Path) -> dict[str, Any]:
    spec = WorldSpec(
        seed=options.seed,
        frozen=True,
        hosts=options.hosts,
        pages=options.pages,
        crawl_delay_share=0.0,
        host_skew=0.3,
        mean_links=10,
        mean_words=100,
        page_bytes=3000,
    )
    result: dict[str, Any] = {"machine": machine(), "options": vars(options)}
    with PostgresServer(safe=True, port=options.port) as postgres, WorldServer(World(spec)) as server:
        seeds = server.world.seeds()
        shared, embedded = base / "shared", base / "embedded"
        create_crawl(shared, seeds, settings_of(options.delay), postgres.url())
        trial = run_trial(
            shared,
            workers=options.workers,
            kill_every_s=(options.kill_every / 2, options.kill_every * 1.5),
            limit_s=options.limit,
            fetches_between=100,
            seed=options.seed,
        )
        manners = judge_manners(server.log())
        create_crawl(embedded, seeds, settings_of(options.delay))
        began = time.monotonic()
        command = [sys.executable, "-m", "bowerbird", "crawl", str(embedded), "--once", "--quiet"]
        subprocess.run([*command, "--workers", str(options.workers)], check=True)
        embedded_s = time.monotonic() - began
        one, other = read_finished(shared, server.world), read_finished(embedded, server.world)
        pages = {"http://{}{}".format(*place) for place in server.world.reachable(spec.start_s, sitemaps=True)}
    missing = [url for url in pages if one.get(url, (0,))[0] != UrlState.FETCHED]
    different = [url for url in one.keys() | other.keys() if one.get(url) != other.get(url)]
    result |= {
        "pages": len(pages),
        "missing": missing[:20],
        "different": [describe(url, one.get(url), other.get(url)) for url in different[:20]],
        "urls": len(one),
        "kills": dict(trial.kills),
        "took_s": trial.took_s,
        "embedded_took_s": embedded_s,
        "take_overs_s": trial.take_overs_s,
        "starts_s": trial.starts_s,
        "requests": manners.requests,
        "asked_again": manners.again,
        "most_at_once": manners.most_at_once,
        "shortest_between_s": manners.shortest_between_s,
        "shortest_gap_s": manners.shortest_gap_s,
    }
    slowest = max(trial.take_overs_s, default=0.0)
    result["bars"] = [
        {"bar": "every page fetched", "value": f"{len(pages) - len(missing)} of {len(pages)}", "ok": not missing},
        {"bar": "end as in the embedded store", "value": f"{len(different)} of {len(one)} differ", "ok": not different},
        {"bar": "one request a host at once", "value": str(manners.most_at_once), "ok": manners.most_at_once == 1},
        {
            "bar": f"delay of {options.delay:g} s kept",
            "value": f"{manners.shortest_between_s:.3f} s",
            "ok": manners.shortest_between_s >= options.delay,
        },
        {"bar": "processes killed", "value": str(dict(trial.kills)), "ok": trial.kills.total() > 0},
        {
            "bar": "take-over in 10 s",
            "value": f"{len(trial.take_overs_s)} times, at most {slowest:.1f} s",
            "ok": 0 < slowest < 10,
        },
    ]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--delay", type=float, default=0.1)
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds, on the mean")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for the whole crawl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0, help="of PostgreSQL; 0 is any that is free")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="postgres-crash-") as base:
        result = run(options, Path(base))
    options.out = str(options.out) if options.out else None
    path = write_json("postgres_crash", {**result, "options": vars(options)})
    print(table(result["bars"]))
    took, plain = result["took_s"], result["embedded_took_s"]
    print(
        f"{result['urls']:,} URLs, {result['requests']:,} requests ({result['asked_again']:,} for what had been asked "
        f"for before) in {took:.0f} s; the embedded store in {plain:.0f} s without kills. Details: {path}"
    )
    sys.exit(0 if all(bar["ok"] for bar in result["bars"]) else 1)


if __name__ == "__main__":
    main()
