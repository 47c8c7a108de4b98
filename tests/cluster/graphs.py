"""Graphs that the tests of Spark draw, and what the local engine makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.walk import Walk, enriched_walk, pagerank, random_walk
from bowerbird.appraise.seeds.problem import SeedProblem

PIECES = 2  # that tables are cut into
STEPS = 3  # of walks


@dataclass(frozen=True)
class Drawn:
    """A skewed graph: few pages have many of the links, at either end; some links double, some of a page to itself."""

    names: list[str]
    sources: np.ndarray
    targets: np.ndarray
    clicked: np.ndarray
    clicks: np.ndarray

    @property
    def crawled(self) -> np.ndarray:
        mask = np.zeros(len(self.names), np.bool_)
        mask[self.sources] = mask[self.clicked] = True
        return mask

    @property
    def graph(self) -> FrontierGraph:
        return make_graph(self.sources, self.targets, len(self.names), self.crawled)

    def write(self, folder: Path) -> tuple[Path, Path]:
        some = [self.names[page] for page in self.sources], [self.names[page] for page in self.targets]
        (folder / "links").mkdir(parents=True)
        half = len(some[0]) // 2
        for number, rows in enumerate((slice(half), slice(half, None))):
            table = pa.table({"to": some[1][rows], "from": some[0][rows]})
            parquet.write_table(table, folder / "links" / f"part-{number}.parquet")
        clicks = pa.table({"url": [self.names[page] for page in self.clicked], "clicks": self.clicks})
        parquet.write_table(clicks, folder / "clicks.parquet")
        return folder / "links", folder / "clicks.parquet"


def draw(seed: int, pages: int = 80, links: int = 500) -> Drawn:
    rng = np.random.default_rng(seed)
    sources = (0.6 * pages * rng.random(links) ** 3).astype(np.int64)
    targets = (pages * rng.random(links) ** 2).astype(np.int64)
    kept = np.unique(np.concatenate([sources, targets, clicked := rng.integers(0, pages // 2, 30)]))
    number = np.searchsorted(kept, np.arange(pages))
    names = [f"http://h{page % 5}.example/é {page}" for page in kept.tolist()]
    amounts = rng.integers(0, 9, len(clicked)).astype(np.float64)
    return Drawn(names, number[sources], number[targets], number[clicked], amounts)


def walk_here(drawn: Drawn, method: str, **more: Any) -> Walk:
    clicks = np.bincount(drawn.clicked, weights=drawn.clicks, minlength=len(drawn.names))
    options = {"tolerance": 1e-12, "max_iterations": STEPS, "dtype": np.float64} | more
    if method == "pagerank":
        return pagerank(drawn.graph, **options)
    if method == "rw":
        return random_walk(drawn.graph, clicks, **options)
    return enriched_walk(drawn.graph, clicks, real_share=0.3, **options)


def names_of_one_hash(seed: int) -> tuple[str, str]:
    """Two names of 16 letters with one xxHash64: half of the second is free, and the other half follows from it."""
    rng, top = np.random.default_rng(0), 1 << 64
    first, second = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F)
    back = (pow(first, -1, top), pow(second, -1, top))

    def turn(word: int, by: int) -> int:
        return (word << by | word >> 64 - by) % top

    def mix(word: int) -> int:
        return turn(word * second % top, 31) * first % top

    def begin(half: bytes) -> int:
        start = (seed + 0x27D4EB2F165667C5 + 16) % top
        return (turn(start ^ mix(int.from_bytes(half, "little")), 27) * first + 0x85EBCA77C2B2AE63) % top

    one = b"abcdefgh", b"ijklmnop"
    for _ in range(1_000_000):
        half = bytes(rng.integers(97, 123, 8, dtype=np.uint8))
        wanted = begin(one[0]) ^ mix(int.from_bytes(one[1], "little")) ^ begin(half)
        rest = (turn(wanted * back[0] % top, 33) * back[1] % top).to_bytes(8, "little")
        if all(33 <= byte < 127 for byte in rest):
            return b"".join(one).decode(), (half + rest).decode()
    raise AssertionError("no such name")


def order_of_buckets(spark: Any, names: list[str]) -> tuple[list[str], list[int]]:
    """By bucket, then by hash: the order in which Spark draws; and the hashes."""
    from pyspark.sql import functions as sf

    frame = spark.createDataFrame(pa.table({"name": names})).select("name", sf.xxhash64("name").alias("id"))
    rows = frame.select("name", "id", sf.pmod(sf.hash("id"), sf.lit(PIECES)).alias("bucket")).collect()
    rows.sort(key=lambda row: (row["bucket"], row["id"]))
    return [row["name"] for row in rows], [row["id"] for row in rows]


def greedy_by_hand(problem: SeedProblem, targets: np.ndarray, k: int, ids: list[int]) -> list[int]:
    """Plain greedy on drawn targets; of equal pages the one of the lower id."""
    count = problem.graph.count
    reach = np.eye(count, dtype=bool)
    step = np.eye(count, dtype=bool)
    step[np.repeat(np.arange(count), problem.graph.out_degree), problem.graph.targets] = True
    for _ in range(problem.hops):
        reach = reach @ step
    sign = np.sign(problem.weight[targets])
    open_ = np.ones(len(targets), bool)
    chosen: list[int] = []
    for _ in range(k):
        gain = (reach[:, targets] * (sign * open_)).sum(axis=1)
        best = min(range(count), key=lambda page: (-gain[page], ids[page]))
        if gain[best] <= 0:
            break
        chosen.append(best)
        open_ &= ~reach[best][targets]
    return chosen
