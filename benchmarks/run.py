"""All benchmarks, one after another, each in its own process, and one table of bars at the end (`make bench`)."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from reporting import OUT, table, write_json

HERE = Path(__file__).resolve().parent

#: name -> (full arguments, quick arguments)
RUNS: dict[str, tuple[list[str], list[str]]] = {
    "throughput": (["--rounds", "3"], ["--pages", "2000", "--rounds", "1", "--scrapy-pages", "500"]),
    "stages": (["--profile"], ["--profile", "--pages", "2000"]),
    "frontier": ([], ["--urls", "1000000", "--hosts", "10000"]),
    "memory": ([], ["--pages", "20000"]),
    "imports": ([], ["--lines", "200000", "--rounds", "1"]),
    "serve_latency": ([], ["--pages", "5000", "--queries", "100", "--crawl-pages", "3000"]),
    "random_walk": ([], ["--nodes", "200000", "--edges", "4000000"]),
    "sketches": ([], ["--pages", "50000", "--queries", "1000"]),
    "appraisal": ([], ["--pages", "200000"]),
    "seeds": ([], ["--nodes", "200000", "--edges", "4000000"]),
    "hub_intervals": ([], ["--hubs", "50000"]),
    "scheduling": ([], ["--urls", "50000", "--seconds", "5"]),
    "measurement": ([], ["--versions", "1000", "--rounds", "1"]),
}


def run(name: str, arguments: list[str], out: Path) -> dict[str, Any]:
    """One benchmark; its result is read from the file it leaves."""
    script = HERE / ("throughput.py" if name == "stages" else f"{name}.py")
    print(f"\n== {name}", flush=True)
    environment = {**os.environ, "BENCH_OUT": str(out)}
    if subprocess.run([sys.executable, str(script), *arguments], check=False, env=environment).returncode:
        raise SystemExit(f"{name} failed: its message is above.")
    return dict(json.loads((out / f"{name}.json").read_text()))


def summarise(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a bar."""
    rows: list[dict[str, Any]] = []
    if "throughput" in results:
        found = results["throughput"]
        median = found["median"]["bowerbird"]
        figure = (
            f"{found['ratio_window']:.1f} x ({median['pages_per_s_window']:.0f} pages/s, "
            f"{median['cpu_ms_per_page']:.2f} ms CPU); with start and stop {found['ratio']:.1f} x"
        )
        rows.append({"bar": "pages/s against Scrapy", "figure": figure, "bound": ">= 20 x", "passed": found["passed"]})
    for row in results.get("frontier", {}).get("bars", []):
        rows.append({**row, "bar": f"frontier: {row['bar']}", "figure": f"{row['figure']:,.4g}"})
    if "memory" in results:
        found = results["memory"]
        figure = f"{found['ratio_outside_urls']:.2f} (raw {found['ratio_all']:.2f})"
        rows.append({"bar": "memory, end : a tenth", "figure": figure, "bound": "<= 1.5", "passed": found["passed"]})
    for row in results.get("imports", {}).get("bars", []):
        rows.append({**row, "figure": f"{row['figure']:,.4g}"})
    for row in results.get("random_walk", {}).get("bars", []):
        name = f"walk, {row['clicks']} clicks: {row['bar']}"
        rows.append({"bar": name, **{key: row[key] for key in ("bound", "passed")}, "figure": f"{row['figure']:.3g}"})
    for row in results.get("sketches", {}).get("rows", []):
        if row["bar_s"]:
            took, bound = f"{row['seconds']:.2f} s", f"< {row['bar_s']:g} s"
            rows.append({"bar": f"sketches: {row['step']}", "figure": took, "bound": bound, "passed": row["ok"]})
    for row in results.get("seeds", {}).get("bars", []):
        rows.append({**row, "bar": f"seeds: {row['bar']}", "figure": f"{row['figure']:,.4g}"})
    if "hub_intervals" in results:
        found = results["hub_intervals"]
        took, bound = f"{found['seconds']:.2f} s for {found['hubs']:,}", found["bars"]["seconds"]
        passed = found["seconds"] < bound
        rows.append({"bar": "intervals of hubs", "figure": took, "bound": f"< {bound:g} s", "passed": passed})
    if "scheduling" in results:
        found = results["scheduling"]
        passed = found["share"] < found["bound"]
        figure = f"{found['share']:.1%} of a crawl's CPU, {found['urls']:,} URLs"
        rows.append({"bar": "deciding", "figure": figure, "bound": f"< {found['bound']:.0%}", "passed": passed})
    if "appraisal" in results:
        found = results["appraisal"]
        took, bound = max(each["seconds"] for each in found["methods"].values()), found["bars"]["seconds"]
        figure = f"{took:.2f} s for {found['pages']:,}"
        row = {"bar": "re-appraising known pages", "figure": figure, "bound": f"< {bound:g} s", "passed": took < bound}
        rows.append(row)
    rows += [{**row, "figure": f"{row['figure']:.3f} x"} for row in results.get("measurement", {}).get("bars", [])]
    if "serve_latency" in results:
        found = results["serve_latency"]
        figure = f"{found['rows'][-1]['p99_ms']:.1f} ms"
        bound = f"< {found['bar_p99_ms']:.0f} ms"
        rows.append(
            {"bar": "p99 of a search during a crawl", "figure": figure, "bound": bound, "passed": found["passed"]}
        )
    return rows


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RUNS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything run? No bar is judged so.")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in RUNS]
    if unknown:
        parser.error(f"not a benchmark: {', '.join(unknown)}; known are {', '.join(RUNS)}")
    out = OUT / "quick" if options.quick else OUT
    results = {name: run(name, RUNS[name][options.quick], out) for name in options.names or RUNS}
    rows = summarise(results)
    if rows:
        print("\n" + table(rows))
        write_json("summary", {"quick": options.quick, "bars": rows}, out / "summary.json")
    if not options.quick and not all(row["passed"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
