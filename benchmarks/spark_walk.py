"""Spark at size: RW-EG over a power-law graph of a million pages and 20 million links in local[2].

Three processes, one after another: the first draws the links (as benchmarks/random_walk.py does) and writes Parquet,
the second ranks by Spark, the third by the local engine in float64 and compares: values of all pages that are crawled
or linked to, which may differ by 1e-6 of themselves; scores of all pages of the frontier, by 1e-6 of themselves or,
where they are below 1e-9, of that. Shuffles are told from Spark's own event log; memory is that of the process and its
Java, at its highest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from phases import peak_gb, run_phase
from random_walk import draw
from reporting import machine, table, write_json

TOLERANCE = 1e-8
BOUND = 1e-6  # of relative differences
REAL_SHARE = 0.5
LIFT = 0.15
LEAST_SCORE = 1e-9  # below, what rounding of the walk's values leaves of a score is not small beside it


def write_parquet(folder: Path, nodes: int, edges: int, even: bool, files: int = 8) -> dict[str, Any]:
    """Links, clicks and crawled pages by names, in Parquet; with even clicks every page passes on all it has."""
    import pyarrow as pa
    from pyarrow import parquet

    draw(folder, nodes, edges)
    sources, targets = np.load(folder / "sources.npy"), np.load(folder / "targets.npy")
    crawled, clicks = np.load(folder / "crawled.npy"), np.load(folder / "clicks.npy")
    if even:
        clicks = crawled.astype(np.float64)
        np.save(folder / "clicks.npy", clicks)
    links = folder / "links"
    links.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(sources)), files)):
        some = pa.table({"source": sources[rows], "target": targets[rows]})
        parquet.write_table(some, links / f"part-{number}.parquet", compression="zstd")
    clicked = np.flatnonzero((clicks > 0) & crawled)
    parquet.write_table(pa.table({"page": clicked, "clicks": clicks[clicked]}), folder / "clicks.parquet")
    parquet.write_table(pa.table({"page": np.flatnonzero(crawled)}), folder / "crawled.parquet")
    return {"drawn": len(sources), "parquet_bytes": sum(file.stat().st_size for file in links.iterdir())}


class MemoryWatch:
    """The most memory that this process and its children had together, looked at four times a second."""

    def __init__(self) -> None:
        import psutil

        self.most_bytes = 0
        self._process = psutil.Process()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        import psutil

        while not self._ended.wait(0.25):
            total = 0
            for process in (self._process, *self._process.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.most_bytes = max(self.most_bytes, total)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def rank(folder: Path, memory: str, master: str, chunk: int, tolerance: float) -> dict[str, Any]:
    """RW-EG by Spark: times, what was moved, what it came to."""
    from bowerbird.cluster.session import SparkChoice, open_spark

    (folder / "events").mkdir()
    conf = {
        "spark.driver.memory": memory,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.local.dir": str(folder / "scratch"),
    }
    marks: list[tuple[float, str]] = [(time.time(), "start")]

    def say(text: str) -> None:
        marks.append((time.time(), text))
        print(f"{marks[-1][0] - marks[0][0]:7.1f} s  {text}", file=sys.stderr, flush=True)

    with MemoryWatch() as watch, open_spark(SparkChoice(master, conf)) as spark:
        from bowerbird.cluster.ranking import RankInputs, rank_pages
        from bowerbird.cluster.walks import WalkOptions

        say("Spark runs")
        inputs = RankInputs(f"{folder}/links/*.parquet", f"{folder}/clicks.parquet", f"{folder}/crawled.parquet")
        options = WalkOptions("rw-eg", real_share=REAL_SHARE, tolerance=tolerance, chunk=chunk)
        found = rank_pages(spark, inputs, options, f"{folder}/work", None, say)
        columns = found.take(0, None)
        say("the frontier is ranked")
        buckets = int(spark.conf.get("spark.sql.shuffle.partitions"))
    np.save(folder / "pages.npy", np.array(columns["page"], dtype=np.int64))
    np.save(folder / "scores.npy", np.array(columns["score"]))
    listed = next(at for at, text in marks if text.startswith("links are listed"))
    steps = [at for at, text in marks if text.startswith("step ")]
    started = next(at for at, text in marks if text == "Spark runs")
    moved = read_events(folder / "events", {"prepare": (started, listed), "steps": (listed, steps[-1])})
    links, taken = found.links, found.iterations
    lists = {name: tree_bytes(folder / "work" / name) for name in ("names", "edges", "pages", "inner_out", "inner_in")}
    return {
        "pages": found.pages,
        "links": links,
        "crawled": found.crawled,
        "buckets": buckets,
        "start_s": started - marks[0][0],
        "prepare_s": listed - started,
        "iterations": taken,
        "residual": found.residual,
        "steps_s": steps[-1] - listed,
        "us_a_link_and_step": 1e6 * (steps[-1] - listed) / links / taken,
        "cpu_us_a_link_and_step": 1e6 * moved["steps"]["cpu_s"] / links / taken,
        "prepare_cpu_us_a_link": 1e6 * moved["prepare"]["cpu_s"] / links,
        "total_s": marks[-1][0] - marks[0][0],
        "peak_gb": watch.most_bytes / 1e9,
        "moved": moved,
        "shuffle_bytes_a_link_and_step": moved["steps"]["shuffle_written"] / links / taken,
        "prepare_shuffle_bytes_a_link": moved["prepare"]["shuffle_written"] / links,
        "table_bytes": lists,
    }


def tree_bytes(folder: Path) -> int:
    """What a folder takes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def read_events(folder: Path, spans: dict[str, tuple[float, float]]) -> dict[str, dict[str, float]]:
    """What the tasks that ended in each span of time read, wrote and moved, by Spark's event log."""
    names = (
        "tasks",
        "shuffle_written",
        "shuffle_records",
        "shuffle_read",
        "read",
        "written",
        "spilled",
        "task_s",
        "cpu_s",
        "gc_s",
    )
    sums = {span: dict.fromkeys(names, 0.0) for span in spans}
    for path in folder.iterdir():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if '"SparkListenerTaskEnd"' not in line:
                    continue
                event = json.loads(line)
                told, ended = event.get("Task Metrics"), event["Task Info"]["Finish Time"] / 1e3
                span = next((name for name, (low, high) in spans.items() if low <= ended < high), None)
                if told is None or span is None:
                    continue
                write, read = told["Shuffle Write Metrics"], told["Shuffle Read Metrics"]
                amounts = (
                    1,
                    write["Shuffle Bytes Written"],
                    write["Shuffle Records Written"],
                    read["Remote Bytes Read"] + read["Local Bytes Read"],
                    told["Input Metrics"]["Bytes Read"],
                    told["Output Metrics"]["Bytes Written"],
                    told["Disk Bytes Spilled"],
                    told["Executor Run Time"] / 1e3,
                    told["Executor CPU Time"] / 1e9,
                    told["JVM GC Time"] / 1e3,
                )
                for name, amount in zip(names, amounts, strict=True):
                    sums[span][name] += amount
    return sums


def read_values(folder: Path, iterations: int) -> tuple[Any, Any]:
    """Pages by number, and what the walk by Spark came to for each: from its own tables, crawled pages too."""
    from pyarrow import parquet

    work = folder / "work"
    names = parquet.read_table(work / "names").sort_by("id")
    ids, pages = names.column("id").to_numpy(), np.array(names.column("name").to_pylist()).astype(np.int64)
    found = [parquet.read_table(work / f"values-{iterations:04d}"), parquet.read_table(work / "frontier")]
    columns = zip(found, ("x", "value"), strict=True)
    values = np.concatenate([table.column(name).to_numpy() for table, name in columns])
    known = np.concatenate([table.column("id").to_numpy() for table in found])
    return pages[np.searchsorted(ids, known)], values


def compare(folder: Path, tolerance: float, iterations: int) -> dict[str, Any]:
    """The local engine in float64, and the largest differences of any page's value and of any frontier page's score.

    A value is what the walk gives a page, times the pages: 1 on average. Its difference is relative. A score is the
    value without the 0.15 that every page has; its difference is relative to it, and to LEAST_SCORE where it is less.
    """
    from bowerbird.appraise.frontier.graph import make_graph
    from bowerbird.appraise.frontier.walk import enriched_walk

    crawled, clicks = np.load(folder / "crawled.npy"), np.load(folder / "clicks.npy")
    sources, targets = np.load(folder / "sources.npy"), np.load(folder / "targets.npy")
    named = crawled.copy()  # a page that nothing names is not in the files
    named[sources] = named[targets] = True
    number = np.cumsum(named) - 1
    began = time.perf_counter()
    graph = make_graph(number[sources], number[targets], int(named.sum()), crawled[named])
    built_s = time.perf_counter() - began
    began = time.perf_counter()
    walk = enriched_walk(graph, clicks[named], real_share=REAL_SHARE, tolerance=tolerance, dtype=np.float64)
    took_s = time.perf_counter() - began
    most_gb = peak_gb()
    want = walk.values * graph.count
    pages, values = read_values(folder, iterations)
    pages, values = number[pages], values * graph.count
    every = np.union1d(np.flatnonzero(graph.crawled), graph.frontier)
    of_values = np.abs(values - want[pages]) / want[pages]
    ranked, scores = number[np.load(folder / "pages.npy")], np.load(folder / "scores.npy")
    known = np.maximum(want[ranked] - LIFT, 0.0)
    of_scores = np.abs(scores - known) / np.maximum(known, LEAST_SCORE)
    return {
        "same_pages": bool(np.array_equal(np.sort(pages), every) and np.array_equal(np.sort(ranked), graph.frontier)),
        "same_steps": walk.iterations == iterations,
        "largest_in_degree": int(graph.in_degree.max()),
        "largest_out_degree": int(graph.out_degree.max()),
        "iterations": walk.iterations,
        "build_s": built_s,
        "walk_s": took_s,
        "peak_gb": most_gb,
        "values_compared": len(values),
        "difference_of_values": float(of_values.max()),
        "scores_compared": len(scores),
        "scores_above_least": int((known > LEAST_SCORE).sum()),
        "difference_of_scores": float(of_scores.max()),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """The benchmark as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000, help="drawn; a few doubles of popular pages are lost")
    parser.add_argument("--memory", default="2g", help="of Spark's Java")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--chunk", type=int, default=50_000, help="pages with more links than this are heavy")
    parser.add_argument("--even", action="store_true", help="even clicks: the walk takes the most steps there are")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--phase", choices=["draw", "spark", "local"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--iterations", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.phase:
        if options.phase == "draw":
            result = write_parquet(options.folder, options.nodes, options.edges, options.even)
        elif options.phase == "spark":
            result = rank(options.folder, options.memory, options.master, options.chunk, options.tolerance)
        else:
            result = compare(options.folder, options.tolerance, options.iterations)
        print(json.dumps(result))
        return result
    folder = Path(tempfile.mkdtemp(prefix="bowerbird-bench-"))
    size = ("--nodes", str(options.nodes), "--edges", str(options.edges), *["--even"] * options.even)
    more = ["--tolerance", str(options.tolerance), "--memory", options.memory]
    more += ["--master", options.master, "--chunk", str(options.chunk)]
    try:
        drawn = run_phase(__file__, "draw", folder, *size)
        spark = run_phase(__file__, "spark", folder, *more)
        local = run_phase(__file__, "local", folder, *more, "--iterations", str(spark["iterations"]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    names = ("pages", "links", "start_s", "prepare_s", "iterations", "steps_s", "total_s", "peak_gb", "buckets", "load")
    print(table([{name: spark[name] for name in names}]))
    names = ("us_a_link_and_step", "cpu_us_a_link_and_step", "prepare_cpu_us_a_link")
    print(table([{name: spark[name] for name in names}]))
    print(table([{"span": span, **moved} for span, moved in spark["moved"].items()]))
    names = ("shuffle_bytes_a_link_and_step", "prepare_shuffle_bytes_a_link")
    print(table([{name: spark[name] for name in names}]))
    print(
        table([{"table": name, "bytes_a_link": size / spark["links"]} for name, size in spark["table_bytes"].items()])
    )
    names = ("iterations", "build_s", "walk_s", "peak_gb")
    print(table([{name: local[name] for name in names}]))
    bars = [
        {
            "bar": "the same pages",
            "of": local["values_compared"],
            "worst": "",
            "bound": "",
            "passed": local["same_pages"],
        },
        {"bar": "as many steps", "of": local["iterations"], "worst": "", "bound": "", "passed": local["same_steps"]},
    ]
    for what in ("values", "scores"):
        count, worst = local[f"{what}_compared"], local[f"difference_of_{what}"]
        bars.append({"bar": what, "of": count, "worst": worst, "bound": f"<= {BOUND:g}", "passed": worst <= BOUND})
    print(table(bars))
    passed = all(bar["passed"] for bar in bars)
    told = {"end_load": os.getloadavg()[0], "machine": machine()}
    summary = {"drawn": drawn, "spark": spark, "local": local, "passed": passed, **told}
    write_json("spark_walk", summary, options.json)
    return summary


if __name__ == "__main__":
    main()
