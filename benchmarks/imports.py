"""Lines a second of `queries import` for TSV, from the file to the synced database, on one core.

The generated log mixes queries that repeat (Zipf) with queries asked once; measured are a log of bare queries, a
table of queries with frequencies, and a log with times, each into a new database.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bowerbird.demand.importing import import_log
from bowerbird.demand.log import DemandLog
from bowerbird.demand.sources import Source
from bowerbird.demand.workload import build_workload
from reporting import machine, table, write_json

BAR_LINES_PER_S = 200_000
VOCABULARY = 50_000
START_S = 1_750_000_000


def make_log(path: Path, kind: str, lines: int, distinct_share: float, seed: int) -> None:
    """A log of so many lines, of which `distinct_share` are queries that come once."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number:x}" for number in rng.permutation(VOCABULARY)])
    popular = [" ".join(row) for row in words[rng.zipf(1.3, (lines // 20, 3)) % VOCABULARY]]
    picks = (rng.zipf(1.2, lines) % len(popular)).tolist()
    once = (rng.random(lines) < distinct_share).tolist()
    counts = np.minimum(rng.zipf(1.8, lines), 10_000).tolist()
    with path.open("w", encoding="utf-8") as file:
        if kind != "queries":
            file.write("query\tfrequency\n" if kind == "frequencies" else "query\ttime\n")
        for number in range(lines):
            query = f"{popular[number % len(popular)]} {number:x}" if once[number] else popular[picks[number]]
            if kind == "queries":
                file.write(f"{query}\n")
            else:
                file.write(f"{query}\t{counts[number] if kind == 'frequencies' else START_S + number / 10}\n")


def measure(path: Path, folder: Path, kind: str) -> dict[str, Any]:
    """One import into a new database, then the same again, and the workload of it."""
    gc.collect()
    with DemandLog.open(folder / f"{kind}.db", write=True) as log, Source.open(str(path)) as source:
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        report = import_log(log, source)
        took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        again = import_log(log, source)
        totals = log.totals()
        began_s = time.perf_counter()
        workload = build_workload(log, time.time(), 100_000)
        built_s = time.perf_counter() - began_s
    assert again.state == "known" and totals.asked == report.asked
    return {
        "log": kind,
        "lines": report.lines,
        "MB": path.stat().st_size / 1e6,
        "distinct": totals.distinct,
        "seconds": took_s,
        "lines/s": report.lines / took_s,
        "lines/CPU s": report.lines / cpu_s,
        "again s": again.seconds,
        "db MB": (folder / f"{kind}.db").stat().st_size / 1e6,
        "workload queries": len(workload),
        "workload s": built_s,
    }


def main() -> None:
    """Measure each kind of log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--distinct", type=float, default=0.3, help="share of lines with a query that comes once")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("queries", "frequencies", "times"):
            path = folder / f"{kind}.tsv"
            make_log(path, kind, options.lines, options.distinct, seed=1)
            tries = []
            for number in range(options.rounds):
                (folder / str(number)).mkdir(exist_ok=True)
                tries.append(measure(path, folder / str(number), kind))
            tries.sort(key=lambda row: row["lines/s"])
            rows.append(tries[len(tries) // 2])
    print(table(rows))
    bars = [
        {
            "bar": f"import, TSV of {row['log']}, lines/s",
            "figure": row["lines/s"],
            "bound": f">= {BAR_LINES_PER_S:,}",
            "passed": row["lines/s"] >= BAR_LINES_PER_S,
        }
        for row in rows
    ]
    print("\n" + table(bars))
    write_json("imports", {"machine": machine(), "rows": rows, "bars": bars})


if __name__ == "__main__":
    main()
