"""Ranking the frontier of a graph in Parquet: what `rank` does with files, by Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import functions as sf

from bowerbird.cluster.inputs import Column, read_if_named, read_rows
from bowerbird.cluster.link_lists import hash_name, name_pages, save_edges, save_known, save_lists, save_pages
from bowerbird.cluster.results import take_rows
from bowerbird.cluster.sizes import choose_partitions, mark_inputs
from bowerbird.cluster.walks import WalkOptions, walk
from bowerbird.cluster.work_folder import open_work
from bowerbird.library.column_names import CLICKS, PAGES, SOURCES, TARGETS
from bowerbird.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RankInputs:
    """Paths, patterns or URIs of Parquet."""

    links: str
    clicks: str
    crawled: str | None = None


@dataclass(frozen=True, slots=True)
class RankedFrame:
    """Pages of the frontier with their scores."""

    frame: Any  # page, score, in_links; in no order
    pages: int
    links: int
    crawled: int
    frontier: int
    iterations: int
    residual: float
    notes: tuple[str, ...]

    def take(self, count: int, out: str | None) -> dict[str, list[Any]]:
        """The best `count` as columns, 0 = all, equal ones by name; {} where Spark wrote them to `out`."""
        return take_rows(self.frame, (("score", True), ("page", False)), count, out)


def rank_pages(
    spark: Any,
    inputs: RankInputs,
    options: WalkOptions,
    root: str,
    partitions: int | None,
    say: Callable[[str], None],
) -> RankedFrame:
    """The pages of the frontier with their scores."""
    links = read_rows(spark, inputs.links, (Column(SOURCES), Column(TARGETS)), "--links")
    clicks = read_rows(spark, inputs.clicks, (Column(PAGES), Column(CLICKS, 0.0)), "--clicks")
    known = read_if_named(spark, inputs.crawled, (Column(PAGES),), "--crawled")
    job = {"what": "rank", "options": asdict(options), "inputs": mark_inputs(links, clicks, known)}
    work = open_work(spark, root, job, partitions or choose_partitions(spark, links.bytes), say)
    names = name_pages(work, links, clicks, known)
    total = names.count
    listed = save_known(work, known, names.salt)
    edges = save_edges(work, links.frame, names.salt, listed)
    clicked = clicks.frame.select(hash_name(sf.col("page"), names.salt).alias("id"), "clicks")
    sums = clicked.groupBy("id").agg(sf.sum("clicks").alias("clicks"))
    pages = save_pages(work, names.table, edges, sums, listed)
    told = pages.agg(
        sf.sum(sf.col("crawled").cast("long")),
        sf.sum("in_links"),
        sf.sum(((~sf.col("crawled")) & (sf.col("in_links") > 0)).cast("long")),
    ).first()
    crawled, distinct, frontier = (int(number or 0) for number in told)
    say(f"{total:,} pages, {distinct:,} distinct links, {crawled:,} crawled, {frontier:,} on the frontier.")
    if not frontier:
        raise ConfigError(
            f"{inputs.links}: links to no page that is not crawled: there is nothing to rank. "
            "--crawled says which pages are crawled, if those with links and clicks are not."
        )
    iterations, residual = 0, 0.0
    if options.method == "indegree":
        found = pages.filter("NOT crawled AND in_links > 0")
        found = found.select("id", sf.col("in_links").cast("double").alias("score"), "in_links")
    else:
        lists = save_lists(work, edges, pages, chunk=options.chunk)
        result = walk(work, lists, pages, total, options, say)
        iterations, residual = result.iterations, result.residual
        lift = 0.0 if options.method == "pagerank" else 1.0 - options.damping
        score = sf.greatest(sf.col("value") * (result.scale * total) - lift, sf.lit(0.0))
        found = result.frontier.select("id", score.alias("score"), "in_links")
    named = found.join(names.table.hint("shuffle_hash"), "id")
    frame = named.select(sf.col("name").alias("page"), "score", "in_links")
    return RankedFrame(frame, total, distinct, crawled, frontier, iterations, residual, tuple(names.notes))
