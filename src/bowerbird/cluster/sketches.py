"""Queries against the n-grams of very many pages ([SI08]): matches, sketches and impact, by Spark.

Pages stream past the queries: the n-grams that any query asks for are sent to every task, and only pages' n-grams that
are among them are kept, so what is moved are matches and no text. Words and n-grams are made by the same functions as
in the local engine, in Python workers, which need this package.

Skew. A query that very many pages match is cut down to its best K in each task before anything is brought together
(Spark does that for a row_number below a limit); n-grams are never grouped by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as sf

from bowerbird.appraise.frontier.ngrams import order_words, query_grams
from bowerbird.appraise.frontier.sketches import TOP
from bowerbird.cluster.inputs import Column, Rows, read_if_named, read_rows
from bowerbird.cluster.link_lists import NameTable, hash_name, name_pages, save_edges, save_known, save_pages
from bowerbird.cluster.sizes import choose_partitions, mark_inputs
from bowerbird.cluster.work_folder import WorkFolder, open_work
from bowerbird.demand.workload import words_of
from bowerbird.library.column_names import ANCHORS, FREQUENCIES, LINKED, PAGES, QUERIES, SCORES, SOURCES, TARGETS
from bowerbird.model.errors import ConfigError
from bowerbird.model.workload import Workload, make_workload

MOST_QUERIES = 5_000_000  # they are held by the driver and by every task


@dataclass(frozen=True, slots=True)
class SketchPaths:
    """Paths, patterns or URIs of Parquet."""

    links: str
    queries: str
    scores: str | None = None
    anchors: str | None = None
    crawled: str | None = None


@dataclass(frozen=True, slots=True)
class SketchedFrames:
    """What was found."""

    impact: Any  # page, impact, queries, score: of pages not crawled that match a query
    lists: Any  # query, rank, page, score, crawled
    pages: int
    frontier: int
    queries: int
    matches: int
    notes: tuple[str, ...]


def sketch_graph(
    spark: Any,
    paths: SketchPaths,
    root: str,
    partitions: int | None,
    say: Callable[[str], None],
    *,
    top: int = TOP,
    rho: float = 1.0,
) -> SketchedFrames:
    """[SI08] The impact of every frontier page, by one score a page; equal ones by name."""
    links = read_rows(spark, paths.links, (Column(SOURCES), Column(TARGETS)), "--links")
    scores, anchors, known = (
        read_if_named(spark, path, wanted, option)
        for path, wanted, option in (
            (paths.scores, (Column(PAGES), Column(SCORES, 0.0)), "--scores"),
            (paths.anchors, (Column(LINKED), Column(ANCHORS)), "--anchors"),
            (paths.crawled, (Column(PAGES),), "--crawled"),
        )
    )
    asked = read_rows(spark, paths.queries, (Column(QUERIES), Column(FREQUENCIES, 0.0)), "--queries")
    marks = mark_inputs(links, asked, scores, anchors, known)
    job = {"what": "sketches", "options": [top, rho], "inputs": marks}
    work = open_work(spark, root, job, partitions or choose_partitions(spark, links.bytes), say)
    workload, notes = collect_workload(work, asked)
    names = name_pages(work, links, scores, anchors, known)
    listed = save_known(work, known, names.salt)
    edges = save_edges(work, links.frame, names.salt, listed)
    pages = save_pages(work, names.table, edges, None, edges.select("id").distinct() if listed is None else listed)
    frontier = pages.filter("NOT crawled").count()
    say(f"{names.count:,} pages, {frontier:,} not crawled; {len(workload):,} queries with words.")
    matched = work.once("matched", lambda: match_pages(names, anchors, workload, rho))
    scored = work.once("scored", lambda: _score(names, pages, scores))
    found = matched.join(scored.hint("shuffle_hash"), "id")
    lists = work.once("lists", lambda: keep_best(found, top))
    frequency = sf.broadcast(
        spark.createDataFrame(
            pa.table({"query": np.arange(len(workload)), "text": list(workload.queries), "f": workload.frequency})
        )
    )
    seen = lists.join(frequency, "query")
    impact = seen.filter("NOT crawled").groupBy("id").agg(sf.sum("f").alias("impact"))
    many = (
        found.filter("NOT crawled")
        .groupBy("id")
        .agg(sf.count("*").alias("queries"), sf.first("name").alias("page"), sf.first("score").alias("score"))
    )
    whole = many.join(impact.hint("shuffle_hash"), "id", "left").select(
        "page", sf.coalesce("impact", sf.lit(0.0)).alias("impact"), "queries", "score"
    )
    table = seen.select(sf.col("text").alias("query"), "rank", sf.col("name").alias("page"), "score", "crawled")
    return SketchedFrames(whole, table, names.count, frontier, len(workload), found.count(), (*notes, *names.notes))


def keep_best(found: Any, top: int) -> Any:
    """The best `top` of each query, with their ranks; equal ones by name."""
    best = Window.partitionBy("query").orderBy(sf.desc("score"), "name")
    return found.withColumn("rank", sf.row_number().over(best)).filter(sf.col("rank") <= top)


def collect_workload(work: WorkFolder, asked: Rows) -> tuple[Workload, list[str]]:
    """The queries, with their frequencies added up; they are few beside the pages.

    They are kept: tables know queries by numbers, which go by frequencies, and sums may round otherwise next time.
    """
    told = work.read_note("queries.json")
    if told is None:
        text = sf.regexp_replace("query", r"(?U)^\s+|\s+$", "").alias("text")
        sums = asked.counted.select(text, "frequency").groupBy("text").agg(sf.sum("frequency").alias("f"))
        work.save("queries", sums.filter("text != ''"), bucketed=False)
        told = {"notes": asked.check()}
        work.write_note("queries.json", told)
    table = work.load("queries", bucketed=False).limit(MOST_QUERIES + 1).toArrow()
    if len(table) > MOST_QUERIES:
        raise ConfigError(f"--queries {asked.where}: more than {MOST_QUERIES:,} queries. Give the most frequent.")
    workload = make_workload(table.column("text").to_pylist(), table.column("f").to_pylist(), words_of)
    if not len(workload):
        raise ConfigError(f"--queries {asked.where}: none of the queries has a word to look for.")
    return workload, told["notes"]


def _score(names: NameTable, pages: Any, scores: Rows | None) -> Any:
    """(id, name, score, crawled) of pages that score above 0: as the file says, or by the pages that link there."""
    whole = names.table.join(pages.select("id", "crawled", "in_links").hint("shuffle_hash"), "id")
    if scores is None:
        return whole.select("id", "name", (sf.col("in_links") + 1.0).alias("score"), "crawled")
    said = scores.frame.select(hash_name(sf.col("page"), names.salt).alias("id"), "score")
    best = said.groupBy("id").agg(sf.max("score").alias("score")).filter("score > 0")
    return whole.join(best.hint("shuffle_hash"), "id").select("id", "name", "score", "crawled")


def match_pages(names: NameTable, anchors: Rows | None, workload: Workload, rho: float) -> Any:
    """[SI08] (id, query): pages that have at least rho of a query's n-grams, in their names and anchors."""
    wanted = query_grams(order_words(workload), rho=rho)
    spark = names.table.sparkSession
    grams = spark.sparkContext.broadcast(np.unique(wanted.grams))

    def find_grams(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        from bowerbird.appraise.frontier.ngrams import post
        from bowerbird.index.page_words import gather_words

        asked = grams.value
        for batch in batches:
            texts = batch.column("text").to_pylist()
            found = post(gather_words((), enumerate(texts), len(texts)))
            place = np.minimum(np.searchsorted(asked, found.grams), len(asked) - 1)
            kept = asked[place] == found.grams
            ids = batch.column("id").to_numpy(zero_copy_only=False)[found.pages[kept]]
            yield pyarrow.RecordBatch.from_pydict({"id": ids, "gram": found.grams[kept].view(np.int64)})

    def read_names(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            texts = [unquote(text) for text in batch.column("text").to_pylist()]
            yield pyarrow.RecordBatch.from_pydict({"id": batch.column("id"), "text": texts})

    texts = names.table.select("id", sf.col("name").alias("text")).mapInArrow(read_names, "id bigint, text string")
    if anchors is not None:
        more = anchors.frame.select(hash_name(sf.col("page"), names.salt).alias("id"), sf.col("anchor").alias("text"))
        texts = texts.unionByName(more.distinct())
    pairs = texts.mapInArrow(find_grams, "id bigint, gram bigint").distinct()
    owners = np.repeat(np.arange(len(wanted)), np.diff(wanted.starts))
    columns = {"gram": wanted.grams.view(np.int64), "query": owners, "need": wanted.need[owners]}
    asked = sf.broadcast(spark.createDataFrame(pa.table(columns)))
    held = pairs.join(asked, "gram").groupBy("id", "query", "need").agg(sf.count("*").alias("held"))
    return held.filter("held >= need").select("id", "query")
