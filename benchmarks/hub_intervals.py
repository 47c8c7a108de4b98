"""The best intervals of a million hubs under a budget: the published rule and the optimum, at several budgets.

Hubs differ widely in rate, profit and decay; besides, a world in which all are equal, where the budget falls between
many that tie. Timed is the solver alone, from columns to intervals; one process, kernels loaded; the best of some
repeats. Beside the time stands what a schedule gains, as a share of what pages would gain if all were found at once.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from reporting import machine, table, write_json

BUDGETS = (0.22, 0.43, 0.87, 2.0)  # of the rate of new pages
REPEATS = 3

#: name -> upper bound
BARS = {"seconds": 5.0}


def draw(hubs: int, seed: int = 1) -> tuple[Any, Any, Any]:
    """Profit, decay and rate by hub."""
    rng = np.random.default_rng(seed)
    profit = np.exp(rng.normal(0.0, 1.2, hubs))
    decay = np.exp(rng.normal(np.log(1 / 40_000), 0.8, hubs))
    return profit, decay, np.exp(rng.normal(np.log(1 / 20_000), 1.5, hubs))


def measure(hubs: int) -> list[dict[str, Any]]:
    """A row for each world, rule and budget."""
    from bowerbird.appraise.hubs.intervals import best_intervals, poisson_amplitude, schedule_profit, solve_intervals

    worlds = {"unequal": draw(hubs), "equal": tuple(np.full(hubs, value) for value in (1.0, 1e-4, 1e-3))}
    rows = []
    for world, (profit, decay, rate) in worlds.items():
        amplitude, whole = poisson_amplitude(profit, decay, rate), float(profit @ rate)
        for solve in (solve_intervals, best_intervals):
            solve(profit[:1000], decay[:1000], rate[:1000], 0.1)
            for part in BUDGETS:
                budget = part * float(rate.sum())
                times, cpu = [], []
                for _ in range(REPEATS):
                    began, began_cpu = time.perf_counter(), time.process_time()
                    found = solve(profit, decay, rate, budget)
                    times.append(time.perf_counter() - began)
                    cpu.append(time.process_time() - began_cpu)
                row = {
                    "world": world,
                    "rule": solve.__name__,
                    "budget": part,
                    "seconds": min(times),
                    "cpu": min(cpu),  # of all cores: what others do on the machine moves that less
                    "visited": float(np.isfinite(found.interval_s).mean()),
                    "share of bound": schedule_profit(found, amplitude, decay) / whole,
                    "budget missed by": abs(found.spent_per_s / budget - 1.0),
                }
                rows.append(row)
    return rows


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hubs", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, default=None, help="keep the result here")
    options = parser.parse_args()
    rows = measure(options.hubs)
    print(table(rows))
    worst = max(row["seconds"] for row in rows)
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{options.hubs:,} hubs; peak {peak_gb:.1f} GB; bar {BARS['seconds']:g} s:", worst <= BARS["seconds"])
    data = {
        "hubs": options.hubs,
        "rows": rows,
        "seconds": worst,
        "peak_gb": peak_gb,
        "bars": BARS,
        "machine": machine(),
    }
    print(write_json("hub_intervals", data, options.json))


if __name__ == "__main__":
    main()
