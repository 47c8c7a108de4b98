"""PageRank, RW and RW-EG ([RW15]) over tables of Spark: the walks of `appraise/frontier/walk.py`, step by step.

One step is one job. It moves sums by page only: once for a walk along links, twice for RW-EG, whose two-step product
y = A^T(A z) - indeg·z is a pass against the links and one along them. Links stay in their buckets. After every step
the values are a table, so that the next one starts from there, in this run or in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Observation
from pyspark.sql import functions as sf

from bowerbird.appraise.frontier.walk import DAMPING, MAX_ITERATIONS
from bowerbird.cluster.link_lists import CHUNK, Lists, push
from bowerbird.cluster.work_folder import WorkFolder

FLOOR = 0.001  # of clicks, as in [RW15]
KEPT = 2  # tables of values: the last one, and the one it was made from


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """What a person can set."""

    method: str
    damping: float = DAMPING
    real_share: float = 0.5
    tolerance: float = 1e-8
    max_iterations: int = MAX_ITERATIONS
    chunk: int = CHUNK


@dataclass(frozen=True, slots=True)
class WalkResult:
    """What a walk came to."""

    frontier: Any  # id, value, in_links: of the pages not crawled that something links to
    crawled: Any  # id, x
    scale: float  # that values are to be multiplied with: 1, and 1/sum for PageRank
    iterations: int
    residual: float


def walk(
    work: WorkFolder,
    lists: tuple[Lists, Lists, Lists],
    pages: Any,
    count: int,
    options: WalkOptions,
    say: Callable[[str], None],
) -> WalkResult:
    """Iterate over the crawled pages until a step changes little enough, then reach the frontier once.

    `lists` are links between crawled pages by source and by target, and those to the frontier by source.
    """
    inner_out, inner_in, outer_out = lists
    base = (1 - options.damping) / max(count, 1)
    nodes = work.once("nodes", lambda: weigh_pages(pages, options))
    field = _Field(nodes, inner_out, inner_in if options.method == "rw-eg" else None, base)
    taken, before, residual, done = _find_last(work)
    say(f"links are listed by both ends; {taken} steps are done." if taken else "links are listed by both ends.")
    while not done and taken < options.max_iterations:
        observation = Observation()
        later = field.step(_values(work, nodes, taken, base))
        counted = later.observe(
            observation,
            sf.sum(sf.abs(sf.col("x") - sf.col("old"))).alias("change"),
            sf.sum(sf.abs("x")).alias("norm"),
        )
        taken += 1
        work.save(f"values-{taken:04d}", counted.select("id", "x"))
        change, norm = (float(observation.get[name] or 0.0) for name in ("change", "norm"))
        residual = change / norm if norm else 0.0
        stalls = before is not None and change > (1 + options.damping) / 2 * before
        done = residual <= options.tolerance or stalls
        before = change
        work.write_note(
            f"values-{taken:04d}.json", {"taken": taken, "change": change, "residual": residual, "done": done}
        )
        say(f"step {taken}: changed by {residual:.3g} of all.")
        if taken > KEPT:
            work.remove(f"values-{taken - KEPT:04d}.json")
            work.drop(f"values-{taken - KEPT:04d}")
    sent = field.send(_values(work, nodes, max(taken - 1, 0), base))
    got = push(outer_out, sent, {"got": sf.sum("sent")})
    outside = pages.filter("NOT crawled AND in_links > 0").select("id", "in_links")
    frontier = outside.join(got.hint("shuffle_hash"), "id", "left").select(
        "id", (sf.lit(base) + sf.coalesce("got", sf.lit(0.0))).alias("value"), "in_links"
    )
    frontier = work.once("frontier", lambda: frontier)
    crawled = _values(work, nodes, taken, base)
    scale = 1.0
    if options.method == "pagerank":
        inside = crawled.agg(sf.sum("x"), sf.count("*")).first()
        beyond = frontier.agg(sf.sum("value"), sf.count("*")).first()
        rest = base * (count - int(inside[1]) - int(beyond[1]))
        total = float(inside[0] or 0.0) + float(beyond[0] or 0.0) + rest
        scale = 1.0 / total if total else 1.0
    return WalkResult(frontier, crawled, scale, taken, residual)


def weigh_pages(pages: Any, options: WalkOptions) -> Any:
    """Of crawled pages: what they pass on along a link, along a virtual edge, and take back from themselves.

    F_i = (clicks + 0.001)/(most clicks + 0.001); PageRank passes all. 1/outdeg and 1/s are 0 where there is nothing.
    """
    crawled = pages.filter("crawled")
    weight = sf.lit(1.0)
    if options.method != "pagerank":
        most = crawled.agg(sf.max("clicks")).first()[0]
        weight = (sf.col("clicks") + FLOOR) / ((most or 0.0) + FLOOR)
    share = options.real_share if options.method == "rw-eg" else 1.0

    def per(column: str, factor: float) -> Any:
        return sf.when(sf.col(column) > 0, sf.lit(factor) / sf.col(column) * weight).otherwise(0.0)

    virtual = per("strength", options.damping * (1 - share))
    return crawled.select(
        "id",
        per("out_links", options.damping * share).alias("lead"),
        virtual.alias("virtual_lead"),
        (sf.col("citing") * virtual).alias("back"),
    )


@dataclass(frozen=True, slots=True)
class _Field:
    """What all steps share."""

    nodes: Any
    along: Lists
    against: Lists | None  # for virtual edges
    base: float

    def send(self, values: Any) -> Any:
        """(id, sent): what each crawled page sends along each of its links, in all."""
        state = self.nodes.join(values.hint("shuffle_hash"), "id")
        if self.against is None:
            return state.select("id", (sf.col("lead") * sf.col("x")).alias("sent"))
        virtual = state.filter("virtual_lead > 0").select("id", (sf.col("virtual_lead") * sf.col("x")).alias("virtual"))
        met = push(self.against, virtual, {"met": sf.sum("virtual")})
        return state.join(met.hint("shuffle_hash"), "id", "left").select(
            "id", (sf.col("lead") * sf.col("x") + sf.coalesce("met", sf.lit(0.0))).alias("sent")
        )

    def step(self, values: Any) -> Any:
        """(id, x, old)."""
        got = push(self.along, self.send(values), {"got": sf.sum("sent")})
        state = self.nodes.join(values.hint("shuffle_hash"), "id")
        total = sf.lit(self.base) + sf.coalesce("got", sf.lit(0.0))
        if self.against is not None:
            total = total - sf.col("back") * sf.col("x")
        return state.join(got.hint("shuffle_hash"), "id", "left").select(
            "id", total.alias("x"), sf.col("x").alias("old")
        )


def _values(work: WorkFolder, nodes: Any, taken: int, base: float) -> Any:
    return work.load(f"values-{taken:04d}") if taken else nodes.select("id", sf.lit(base).alias("x"))


def _find_last(work: WorkFolder) -> tuple[int, float | None, float, bool]:
    """Where an earlier run was: steps taken, the last change, the last residual, whether it was the last step."""
    for number in sorted(work.numbered_notes("values-"), reverse=True):
        told = work.read_note(f"values-{number:04d}.json")
        if told is not None and work.has(f"values-{number:04d}"):
            return number, float(told["change"]), float(told["residual"]), bool(told["done"])
    return 0, None, float("inf"), False
