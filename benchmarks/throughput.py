"""Crawl throughput: Bowerbird with everything on, Scrapy keeping nothing, the same pages, in turns.

Bowerbird's speed is judged by the stricter of two measures: pages over the whole life of the process (start-up, last
index commit and checkpoint included). Scrapy's start-up is left out of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bowerbird.appraise.policy import PLAIN
from corpus import DOCUMENTATION_WORDS, make_corpus
from nginx import Nginx
from processes import Measured, run_measured
from reporting import figure, machine, save, table, write_csv, write_json

BAR = 20.0
HERE = Path(__file__).resolve().parent


def crawl_with_bowerbird(url: str, work: Path, connections: int, pages: int | None = None) -> dict[str, Any]:
    """One crawl into a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="crawl-", dir=work)) / "crawl"
    program = [sys.executable, "-m", "bowerbird.cli.main"]
    options = ["--contact", "bench@localhost", "--delay", "0", "--allow-addresses", "loopback", "--policy", PLAIN]
    run_checked([*program, "init", str(folder), "--seed", url, *options])
    config = folder / "bowerbird.toml"
    text = config.read_text()
    config.write_text(text.replace("# connections_per_host = 1\n", f"connections_per_host = {connections}\n"))
    limit = ["--pages", str(pages)] if pages else []
    measured = run_checked([*program, "crawl", str(folder), "--once", "--quiet", *limit])
    fetched, began, ended = read_fetches(folder)
    row = {
        "crawler": "bowerbird",
        "pages": fetched,
        "window_s": ended - began,
        "wall_s": measured.wall_s,
        "pages_per_s": fetched / measured.wall_s,
        "pages_per_s_window": fetched / (ended - began),
    }
    return row | costs(measured, fetched) | {"folder": str(folder)}


def read_fetches(folder: Path) -> tuple[int, float, float]:
    """Distinct pages with a stored version, first and last moment of fetching, from the crawl's own database."""
    with sqlite3.connect(folder / "state.db") as database:
        return database.execute(  # type: ignore[no-any-return]  # three columns
            "SELECT count(DISTINCT url), min(fetched_at), max(fetched_at + elapsed_s) FROM fetches WHERE status = 200"
        ).fetchone()


def crawl_with_scrapy(url: str, work: Path, pages: int, concurrency: int) -> dict[str, Any]:
    """One crawl, kept nowhere."""
    result = work / "scrapy.json"
    command = [sys.executable, str(HERE / "scrapy_peer.py"), url, "--limit", str(pages), "--result", str(result)]
    measured = run_checked([*command, "--concurrency", str(concurrency)])
    found = json.loads(result.read_text())
    rate = found["pages"] / found["seconds"]
    row = {
        "crawler": "scrapy",
        "pages": found["pages"],
        "window_s": found["seconds"],
        "wall_s": measured.wall_s,
        "pages_per_s": rate,
        "pages_per_s_window": rate,
    }
    return row | costs(measured, found["pages"]) | {"folder": ""}


def costs(measured: Measured, pages: int) -> dict[str, Any]:
    return {
        "cpu_ms_per_page": 1000 * measured.cpu_s / max(pages, 1),
        "peak_mb": measured.peak_bytes / 1e6,
        "load": round(measured.load, 2),
    }


def run_checked(command: list[str]) -> Measured:
    measured = run_measured(command)
    if measured.status:
        raise SystemExit(f"{' '.join(command)} ended with {measured.status}:\n{measured.output}")
    return measured


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All rounds; returns the summary."""
    corpus = make_corpus(options.pages, options.words)
    work = Path(tempfile.mkdtemp(prefix="bowerbird-bench-"))
    scrapy_pages = min(options.scrapy_pages or options.pages, options.pages)
    rows: list[dict[str, Any]] = []
    try:
        with Nginx(corpus / "site") as server:
            crawl_with_bowerbird(server.url, work, options.connections, pages=50)  # compiled kernels get cached
            for number in range(options.rounds):
                rows.append({"round": number + 1} | crawl_with_bowerbird(server.url, work, options.connections))
                print(table([_shown(rows[-1])]), flush=True)
                if not options.no_scrapy:
                    peer = crawl_with_scrapy(server.url, work, scrapy_pages, options.scrapy_concurrency)
                    rows.append({"round": number + 1} | peer)
                    print(table([_shown(rows[-1])]), flush=True)
    finally:
        if options.keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    return summarise(rows, options.pages, scrapy_pages)


def summarise(rows: list[dict[str, Any]], pages: int, scrapy_pages: int) -> dict[str, Any]:
    """Medians by crawler, and the ratio."""
    keys = ("pages", "pages_per_s", "pages_per_s_window", "wall_s", "cpu_ms_per_page", "peak_mb")
    medians = {
        name: {key: statistics.median(row[key] for row in rows if row["crawler"] == name) for key in keys}
        for name in dict.fromkeys(row["crawler"] for row in rows)
    }
    summary: dict[str, Any] = {"machine": machine(), "corpus_pages": pages, "rounds": rows, "median": medians}
    wanted = {"bowerbird": pages, "scrapy": scrapy_pages}
    summary["complete"] = all(row["pages"] == wanted[row["crawler"]] for row in rows)
    if "scrapy" in medians:
        peer = medians["scrapy"]["pages_per_s"]
        summary["ratio"] = medians["bowerbird"]["pages_per_s"] / peer
        summary["ratio_window"] = medians["bowerbird"]["pages_per_s_window"] / peer
        # the strict measure: our start and stop count, Scrapy's do not
        summary["passed"] = summary["complete"] and summary["ratio"] >= BAR
    return summary


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "folder"}


def draw(summary: dict[str, Any]) -> None:
    """Pages a second, one bar a crawler, one dot a round."""
    chart, axes = figure(6.0, 3.2)
    names = list(summary["median"])
    axes.barh(names, [summary["median"][name]["pages_per_s"] for name in names], color=["#31688e", "#b0b0b0"])
    for row in summary["rounds"]:
        axes.plot(row["pages_per_s"], row["crawler"], "k.", markersize=5)
    axes.set_xlabel("pages a second (bar: median; dots: rounds)")
    axes.invert_yaxis()
    save(chart, "throughput")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """The benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=DOCUMENTATION_WORDS, help="of running text on a page")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scrapy-pages", type=int, default=2_000, help="stop Scrapy after so many; 0 = all")
    parser.add_argument("--scrapy-concurrency", type=int, default=16)
    parser.add_argument("--connections", type=int, default=128, help="Bowerbird's connections to the host")
    parser.add_argument("--no-scrapy", action="store_true", help="Bowerbird alone, for tuning")
    parser.add_argument("--profile", action="store_true", help="CPU by stage instead, each in isolation")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--keep", action="store_true", help="keep the crawl folders")
    options = parser.parse_args(arguments)
    if options.profile:
        from stages import profile

        return profile(options.pages, options.words, options.json)
    summary = measure(options)
    print("\nmedian of rounds")
    print(table([{"crawler": name, **values} for name, values in summary["median"].items()]))
    if "ratio" in summary:
        print(
            f"\nratio {summary['ratio']:.1f} (whole process; {summary['ratio_window']:.1f} from first to last fetch): "
            f"bar {BAR:.0f}: {'PASS' if summary['passed'] else 'FAIL'}; "
            f"all pages fetched: {'yes' if summary['complete'] else 'NO'}"
        )
        draw(summary)
    write_json("throughput", summary, options.json)
    write_csv("throughput", [_shown(row) for row in summary["rounds"]])
    return summary


if __name__ == "__main__":
    main()
