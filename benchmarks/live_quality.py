"""How good is the measured quality? Worlds are crawled in part, left to age, probed, measured; the truth is known."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from bowerbird.lab.aged_crawl import fetched_share_of, measure_aged_crawl
from reporting import machine, table, write_json


def main() -> None:
    """Measure world after world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--probes", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=1, help="runs that the probes come in")
    parser.add_argument("--probe-share", type=float, default=0.0, help="of the crawl's own fetches, drawn by lot too")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.first_seed, options.first_seed + options.worlds):
            share = fetched_share_of(seed)
            root = Path(name) / str(seed)
            truth, found = measure_aged_crawl(
                root,
                seed,
                pages=options.pages,
                fetched_share=share,
                probes=options.probes,
                rounds=options.rounds,
                probe_share=options.probe_share,
            )
            rows.append(
                {
                    "seed": seed,
                    "fetched": share,
                    "truth": truth,
                    "measured": found.quality,
                    "low": found.low,
                    "high": found.high,
                    "covered": found.low <= truth <= found.high,
                }
            )
    print(table(rows))
    errors = np.array([row["measured"] - row["truth"] for row in rows])
    summary = {
        "worlds": len(rows),
        "covered": sum(row["covered"] for row in rows),
        "mean_error": float(errors.mean()),
        "rmse": float(np.sqrt((errors**2).mean())),
        "mean_width": float(np.mean([row["high"] - row["low"] for row in rows])),
    }
    print("\n" + table([summary]))
    write_json("live_quality", {"machine": machine(), "rows": rows, **summary})


if __name__ == "__main__":
    main()
