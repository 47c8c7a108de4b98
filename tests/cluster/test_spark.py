"""Spark beside the local engine, on random graphs and logs: the same numbers, also with heavy pages and after a kill.

One session for all of it, for a session takes seconds to start.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, command
from tests.cluster.graphs import (
    PIECES,
    STEPS,
    Drawn,
    draw,
    greedy_by_hand,
    names_of_one_hash,
    order_of_buckets,
    walk_here,
)
from xxhash import xxh64_intdigest as xxh64

from bowerbird.appraise.frontier.graph import make_graph
from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.sample import draw_targets
from bowerbird.cluster.session import SparkChoice, check_java, check_pyspark, open_spark, telling_failures
from bowerbird.model.errors import ConfigError, EngineError, InputFileError

__all__ = ["command"]

pytestmark = pytest.mark.timeout(900)  # the first test waits for Java; on a busy machine that takes minutes
HEAVY = 6  # links that make a page heavy here


def quiet(_: str) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    try:
        check_pyspark()
        check_java()
    except ConfigError as error:
        pytest.skip(str(error))
    conf = {
        "spark.driver.memory": "1g",
        # small jobs: compiling code takes longer than running it
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.local.dir": str(tmp_path_factory.mktemp("scratch")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    with open_spark(SparkChoice("local[2]", conf), PIECES) as session:
        yield session


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return draw(1)


@dataclass(frozen=True)
class Prepared:
    """A graph in tables of Spark, with lists of which some are heavy."""

    work: Any
    lists: tuple[Any, Any, Any]
    names: Any
    pages: Any
    count: int


@pytest.fixture(scope="module")
def prepared(spark: Any, drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    from pyspark.sql import functions as sf

    from bowerbird.cluster.link_lists import hash_name, number_names, save_edges, save_lists, save_pages
    from bowerbird.cluster.work_folder import WorkFolder

    work = WorkFolder(spark, str(tmp_path_factory.mktemp("graph") / "work"), PIECES)
    by_number = np.array(drawn.names, dtype=object)
    ends = {"source": by_number[drawn.sources].tolist(), "target": by_number[drawn.targets].tolist()}
    links = spark.createDataFrame(pa.table(ends))
    clicked = {"page": by_number[drawn.clicked].tolist(), "clicks": drawn.clicks}
    clicks = spark.createDataFrame(pa.table(clicked))
    columns = [links.select(sf.explode(sf.array("source", "target")).alias("name"))]
    names = number_names(work, [*columns, clicks.select(sf.col("page").alias("name"))])
    edges = save_edges(work, links, names.salt, None)
    sums = clicks.groupBy(hash_name(sf.col("page"), names.salt).alias("id")).agg(sf.sum("clicks").alias("clicks"))
    pages = save_pages(work, names.table, edges, sums, None)
    return Prepared(work, save_lists(work, edges, pages, chunk=HEAVY), names.table, pages, names.count)


@pytest.mark.parametrize("method", ["pagerank", "rw", "rw-eg"])
def test_walks_equal_the_local_engine_s(
    method: str, spark: Any, prepared: Prepared, drawn: Drawn, tmp_path: Path
) -> None:
    from bowerbird.cluster.walks import WalkOptions, walk
    from bowerbird.cluster.work_folder import WorkFolder

    options = WalkOptions(method, real_share=0.3, tolerance=1e-12, max_iterations=STEPS)
    work = WorkFolder(spark, str(tmp_path / "work"), PIECES)
    found = walk(work, prepared.lists, prepared.pages, prepared.count, options, quiet)
    want = walk_here(drawn, method)
    assert found.iterations == want.iterations == STEPS
    assert found.residual == pytest.approx(want.residual, rel=1e-6)
    number = {name: page for page, name in enumerate(drawn.names)}
    values = {}
    for frame, column in ((found.frontier, "value"), (found.crawled, "x")):
        rows = frame.join(prepared.names, "id").select("name", column).collect()
        values |= {number[row["name"]]: row[column] * found.scale for row in rows}
    assert sorted(values) == list(range(len(drawn.names)))
    got = np.array([values[page] for page in range(len(drawn.names))])
    np.testing.assert_allclose(got, want.values, rtol=1e-9)


def test_heavy_pages_are_cut_and_spread(prepared: Prepared, drawn: Drawn) -> None:
    out, into, _ = prepared.lists
    assert out.heavy is not None
    assert into.heavy is not None
    light = into.light.selectExpr("max(size(others)) AS most").first()["most"]
    assert light <= HEAVY
    degree = drawn.graph.in_degree[drawn.crawled].max()
    assert degree > 4 * HEAVY
    rows = into.heavy.selectExpr("id", "size(others) AS size").collect()
    heavy = {row["id"] for row in rows}
    assert heavy <= {row["id"] for row in into.heavy_ids.collect()}
    assert max(row["size"] for row in rows) < degree / 2  # no task has all links of the page that has most
    assert len(rows) > len(heavy)


def test_a_step_moves_sums_and_no_links(spark: Any, prepared: Prepared) -> None:
    from pyspark.sql import functions as sf

    from bowerbird.cluster.link_lists import push

    sent = prepared.pages.select("id", sf.lit(1.0).alias("sent"))
    plan = push(prepared.lists[0], sent, {"got": sf.sum("sent")})._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1
    below = plan.partition("Exchange hashpartitioning")[2]
    assert "partial_sum" in below.splitlines()[1]  # added up before it is moved
    assert "SortMergeJoin" not in plan


class Killed(Exception):  # noqa: N818
    """Stands for the end of the process."""


def run_killed(
    monkeypatch: pytest.MonkeyPatch, job: Callable[[Callable[[str], None]], Any], most: int = 8
) -> tuple[Any, list[str]]:
    """A job whose runs are killed after 1, 4, 7, 2 … tables or notes (1 … `most`), with the next one half done."""
    from bowerbird.cluster.work_folder import WorkFolder

    write, said, left = WorkFolder.write_note, list[str](), 0

    def write_some(self: WorkFolder, name: str, note: Mapping[str, Any]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed(name)
        write(self, name, note)

    monkeypatch.setattr(WorkFolder, "write_note", write_some)
    for number in range(30):
        left = 1 + 3 * number % most
        try:
            return job(said.append), said
        except Killed:
            continue
    raise AssertionError("it does not end")


def test_a_job_that_is_killed_at_every_step_comes_to_the_same(
    spark: Any, drawn: Drawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bowerbird.cluster.ranking import RankInputs, rank_pages
    from bowerbird.cluster.walks import WalkOptions

    links, clicks = drawn.write(tmp_path)
    inputs = RankInputs(f"{links}/*.parquet", str(clicks))
    options = WalkOptions("rw", tolerance=1e-12, max_iterations=2, chunk=HEAVY)
    work = str(tmp_path / "work")
    found, said = run_killed(monkeypatch, lambda say: rank_pages(spark, inputs, options, work, PIECES, say))
    steps = [text.split(":")[0] for text in said if text.startswith("step")]
    assert steps == ["step 1", "step 2"]
    columns = found.take(0, None)
    want = walk_here(drawn, "rw", max_iterations=2).values * len(drawn.names) - 0.15
    frontier = drawn.graph.frontier
    assert sorted(columns["page"]) == sorted(drawn.names[page] for page in frontier.tolist())
    by_name = dict(zip(columns["page"], columns["score"], strict=True))
    got = np.array([by_name[drawn.names[page]] for page in frontier.tolist()])
    np.testing.assert_allclose(got + 0.15, want[frontier] + 0.15, rtol=1e-9)
    assert columns["score"] == sorted(columns["score"], reverse=True)
    links_of = dict(zip(columns["page"], columns["in_links"], strict=True))
    assert [links_of[drawn.names[page]] for page in frontier.tolist()] == drawn.graph.in_degree[frontier].tolist()
    with pytest.raises(ConfigError, match="holds another job"):
        rank_pages(spark, inputs, replace(options, damping=0.5), work, PIECES, quiet)


def test_hops_go_on_after_the_last_one(
    spark: Any, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bowerbird.cluster.reach import spread_bits, start_bits
    from bowerbird.cluster.work_folder import WorkFolder

    ids = np.array([row["id"] for row in prepared.pages.filter("out_links > 5").orderBy("id").limit(5).collect()])

    def spread(name: str, say: Callable[[str], None]) -> Any:
        work = WorkFolder(spark, str(tmp_path / name), PIECES)
        return spread_bits(work, "reach", prepared.lists[0], start_bits(spark, ids, np.arange(5)), 2, say)

    whole = spread("whole", quiet).collect()
    found, said = run_killed(monkeypatch, partial(spread, "killed"), 1)
    assert [text.split(":")[1] for text in said] == [" hop 1 of 2.", " hop 2 of 2."]
    assert sorted(found.collect()) == sorted(whole)
    assert len(whole) > 5


def test_tables_are_found_again(spark: Any, tmp_path: Path) -> None:
    """Also without rows, and at a relative place; one that was not finished is not there."""
    from bowerbird.cluster.work_folder import WorkFolder

    root = os.path.relpath(tmp_path / "it's work")
    frame = spark.range(3).selectExpr("id", "array(id) AS others")
    first = WorkFolder(spark, root, PIECES)
    first.save("some", frame)
    first.save("none", frame.filter("id > 5"))
    first.save("plain", frame.filter("id > 5"), bucketed=False)
    frame.write.parquet(str(tmp_path / "it's work" / "half"))
    (tmp_path / "it's work" / "note.json.new").write_bytes(b'{"ha')
    again = WorkFolder(spark, str(tmp_path / "it's work"), PIECES)
    assert sorted(row["id"] for row in again.load("some").collect()) == [0, 1, 2]
    assert again.load("none").columns == again.load("plain", bucketed=False).columns == ["id", "others"]
    assert again.load("none").count() == again.load("plain", bucketed=False).count() == 0
    assert not again.has("half")
    assert again.read_note("note.json") is None


def test_names_of_one_hash_get_others(spark: Any, tmp_path: Path) -> None:
    from bowerbird.cluster.link_lists import number_names
    from bowerbird.cluster.work_folder import WorkFolder

    one, other = names_of_one_hash(42)  # Spark's seed
    assert one != other
    assert xxh64(one.encode(), 42) == xxh64(other.encode(), 42)
    work = WorkFolder(spark, str(tmp_path / "work"), PIECES)
    frame = spark.createDataFrame(pa.table({"name": [one, other, "cc", one]}))
    names = number_names(work, [frame])
    assert (names.count, names.salt) == (3, 1)
    assert {row["name"] for row in names.table.collect()} == {one, other, "cc"}


@pytest.mark.parametrize("listed", [False, True])
def test_rank_by_spark_equals_rank(spark: Any, tmp_path: Path, command: Command, listed: bool) -> None:
    """Links of a page to itself, double ones, bad rows; pages that only a link's end, clicks or --crawled name."""
    hub = [(f"p{page}", "http://hub.example/") for page in range(40)] + [("hub", f"q{page}") for page in range(30)]
    odd = [("self", "self"), ("self", "self"), ("p1", "p1"), ("p1", "q1"), ("p1", "q1"), (" p1", "q1"), ("P1", "q1")]
    names = [("東京", "é"), ("é", "e\u0301"), ("a\tb", 'c"d'), ("q2", "p2"), ("chain", "p3"), ("p3", "deep")]
    bad = [(None, "q1"), ("p1", None), ("", "q1"), (None, None)]
    links = [*hub, *odd, *names, *bad]
    table = pa.table({"weight": list(range(len(links))), "from": [a for a, _ in links], "to": [b for _, b in links]})
    parquet.write_table(table.slice(0, 60), tmp_path / "part-1.parquet")
    parquet.write_table(table.slice(60), tmp_path / "part-2.parquet")
    parquet.write_table(table, tmp_path / "links.parquet")
    clicks: list[tuple[str | None, float | None]] = [("p1", 1e5), ("p2", 3.0), ("p2", 4.0), ("nowhere", 7.0)]
    clicks += [("q3", 0.0), (None, 1.0), ("p4", None), ("p5", -1.0)]
    columns = {"page": [page for page, _ in clicks], "clicks": [amount for _, amount in clicks]}
    parquet.write_table(pa.table(columns), tmp_path / "clicks.parquet")
    crawled = [*(f"p{page}" for page in range(35)), "hub", "self", "東京", "alone", "alone", "q29"]
    parquet.write_table(pa.table({"page": crawled}), tmp_path / "crawled.parquet")
    words = ["--clicks", tmp_path / "clicks.parquet", "--json", "-n", "0", "--tolerance", "1e-7"]
    words += ["--crawled", tmp_path / "crawled.parquet"] if listed else []
    here = command("rank", "--links", tmp_path / "links.parquet", *words)
    there = command("rank", "--links", f"{tmp_path}/part-*.parquet", *words, "--engine", "spark")
    assert here.code == there.code == 0, there.err
    one, other = json.loads(here.out), json.loads(there.out)
    assert (one["pages"], one["frontier"]) == (other["pages"], other["frontier"])
    rows = [{row["page"]: (row["in_links"], row["score"]) for row in found["rows"]} for found in (one, other)]
    assert rows[0].keys() == rows[1].keys()
    for page, (in_links, score) in rows[0].items():
        assert rows[1][page][0] == in_links, page
        assert rows[1][page][1] + 0.15 == pytest.approx(score + 0.15, rel=1e-6), page
    assert max(score for _, score in rows[0].values()) > 0.01
    assert "4 of 87 rows are bad and left out" in there.err.replace("part-*", "links")
    assert "goes on" not in there.err


def test_seeds_equal_greedy_on_the_same_targets(
    spark: Any, drawn: Drawn, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bowerbird.cluster import seeds as module

    # heavy pages, and so few candidates that others must be brought
    monkeypatch.setattr(module, "SeedWish", partial(module.SeedWish, chunk=HEAVY, candidates=5))
    links, _ = drawn.write(tmp_path)
    spam = tmp_path / "spam.parquet"
    parquet.write_table(pa.table({"page": drawn.names[3:5]}), spam)
    words = ("--links", links, "--spam", spam, "-k", 4, "--hops", 2, "--samples", 200, "--seed", 5, "--json")
    ran = command("seeds", *words, "--engine", "spark", "--conf", f"spark.sql.shuffle.partitions={PIECES}")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    named = sorted({*(drawn.sources.tolist()), *(drawn.targets.tolist())} | {3, 4})
    order, ids = order_of_buckets(spark, [drawn.names[page] for page in named])
    number = {name: place for place, name in enumerate(order)}
    where = np.array([number.get(name, -1) for name in drawn.names])
    graph = make_graph(where[drawn.sources], where[drawn.targets], len(order))
    weight = np.ones(len(order))
    weight[where[3:5]] = -10.0
    problem = SeedProblem(graph, weight, 2)
    targets = draw_targets(weight, 200, np.random.default_rng(5))
    seeds = greedy_by_hand(problem, targets, 4, ids)
    assert [row["page"] for row in found["seeds"]] == [order[seed] for seed in seeds]
    want = cover(problem, seeds)
    assert [row["pages"] for row in found["seeds"]] == want.pages.tolist()
    assert [row["value"] for row in found["seeds"]] == want.value.tolist()
    assert (found["pages"], found["links"], found["value"]) == (len(order), graph.edges, problem.positive)
    assert found["covered_value"] == want.covered_value <= found["bound"]["value"]
    assert found["samples"] == 200
    assert any("below 0" in note for note in found["notes"])


@pytest.fixture
def small_batches(spark: Any) -> Iterator[None]:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.usefixtures("small_batches")
def test_targets_are_drawn_from_all_buckets_by_weight(spark: Any, tmp_path: Path) -> None:
    from bowerbird.cluster.seeds import draw_sample
    from bowerbird.cluster.work_folder import WorkFolder

    rng = np.random.default_rng(2)
    names = [f"p{page}" for page in range(200)]
    order, ids = order_of_buckets(spark, names)
    weight = rng.choice([0.0, 0.1, 1 / 3, -2.0], 200)
    frame = spark.createDataFrame(pa.table({"id": ids, "weight": weight}))
    weighed = WorkFolder(spark, str(tmp_path / "work"), PIECES).save("weights", frame)
    sample = draw_sample(weighed, PIECES, 500, np.random.default_rng(3))
    targets = draw_targets(weight, 500, np.random.default_rng(3))
    assert sample.ids.tolist() == np.array(ids)[targets].tolist()
    above = np.unpackbits(sample.above.view(np.uint8), bitorder="little")[:500]
    assert above.tolist() == (weight[targets] > 0).tolist()
    assert sorted(order) == sorted(names)


def test_draws_that_rounding_leaves_over_are_targets_too(spark: Any, tmp_path: Path) -> None:
    from bowerbird.cluster.seeds import draw_sample
    from bowerbird.cluster.work_folder import WorkFolder

    class Last(np.random.Generator):
        def random(self, count: int) -> Any:  # type: ignore[override]
            return np.full(count, np.nextafter(1.0, 0.0))

    weight = np.array([*[1.0] * 60, 1e16, 0.0])  # added up in this order; by id the largest is first, and ones are lost
    frame = spark.createDataFrame(pa.table({"id": [*range(1, 61), 0, 99], "weight": weight}))
    weighed = WorkFolder(spark, str(tmp_path / "work"), 1).save("weights", frame)
    sample = draw_sample(weighed, 1, 64, Last(np.random.PCG64(0)))
    assert sample.ids.tolist() == [60] * 64


def test_greedy_looks_beyond_its_candidates_where_spam_hides_the_best(spark: Any) -> None:
    """Pages that reach most reach spam too: no candidate that was brought is worth it, but others are."""
    from bowerbird.cluster.reach import WORDS
    from bowerbird.cluster.seeds import Sample, SeedWish, choose_greedily, pack_bits

    rng = np.random.default_rng(8)
    reaches = rng.random((30, 64)) < np.linspace(0.5, 0.1, 30)[:, None]
    reaches[:10, 40:] = True  # of targets below zero
    above = np.arange(64) < 40
    words = np.stack([pack_bits(row, WORDS) for row in reaches]).view(np.int64)
    columns = {f"w{place}": words[:, place] for place in range(WORDS)}
    reach = spark.createDataFrame(pa.table({"id": np.arange(30), **columns}))
    sample = Sample(np.arange(64), pack_bits(above, WORDS))
    found, _ = choose_greedily(reach, sample, SeedWish(4, 1, candidates=4), quiet)
    want: list[int] = []
    open_ = np.ones(64, np.bool_)
    for _ in range(4):
        gain = (reaches & open_ & above).sum(axis=1) - (reaches & open_ & ~above).sum(axis=1)
        want.append(int(np.argmax(gain)))
        assert gain.max() > 0
        open_ &= ~reaches[want[-1]]
    assert found.tolist() == want
    assert min(want) >= 10


def test_sketches_equal_the_local_engine_s(spark: Any, tmp_path: Path, command: Command) -> None:
    rng = np.random.default_rng(3)
    words = ["red", "car", "Crème", "brûlée", "bike", "東京"]
    names = sorted({" ".join(rng.choice(words, rng.integers(1, 5))).replace(" ", "%20") for _ in range(60)})
    links = tmp_path / "links.parquet"
    sources, targets = rng.choice(names[::3], 150), rng.choice(names, 150)
    anchors = [" ".join(rng.choice(words, 2)) for _ in targets]
    parquet.write_table(pa.table({"source": sources, "target": targets, "anchor": anchors}), links)
    asked = sorted({" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(25)})
    queries = tmp_path / "queries.parquet"
    parquet.write_table(pa.table({"query": asked, "frequency": rng.integers(1, 9, len(asked))}), queries)
    files = ("--links", links, "--queries", queries, "--anchors", links, "--top", "3", "-n", "0", "--json")
    more = ("--rho", "0.5")
    lists = [tmp_path / f"{name}.tsv" for name in ("here", "there")]
    here = command("sketches", *files, *more, "--lists", lists[0])
    there = command("sketches", *files, *more, "--lists", lists[1], "--engine", "spark")
    assert here.code == there.code == 0, there.err
    one, other = json.loads(here.out), json.loads(there.out)
    assert one["matches"] > 20
    for name in ("pages", "frontier", "queries", "matches", "rows"):
        assert one[name] == other[name], name
    assert any(row["impact"] > 0 for row in one["rows"])
    rows = [sorted(path.read_text(encoding="utf-8").splitlines()[1:]) for path in lists]
    assert rows[0] == rows[1]


def test_popular_queries_are_cut_before_anything_is_moved(spark: Any) -> None:
    from bowerbird.cluster.sketches import keep_best

    frame = spark.range(50).selectExpr("id", "id % 2 AS query", "id * 1.0 AS score", "string(id) AS name")
    best = keep_best(frame, 3)
    plan = best._jdf.queryExecution().executedPlan().toString()
    above, _, below = plan.partition("Exchange hashpartitioning(query")
    assert "Final" in above
    assert "WindowGroupLimit" in below
    assert "Partial" in below
    assert sorted(row["id"] for row in best.collect()) == [44, 45, 46, 47, 48, 49]


def test_fading_equals_the_local_engine_s(spark: Any, tmp_path: Path, command: Command) -> None:
    rng = np.random.default_rng(4)
    texts = rng.choice(["Red  car", "red car", "CRÈME", "crème", "x", " "], 300)
    days = np.datetime64("2026-01-01") + rng.integers(0, 60, 300)
    log = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"query": texts, "day": days, "count": rng.integers(0, 5, 300)}), log)
    words = ("queries", "fade", log, "--at", "2026-03-01T06:00:00", "--half-life", "9d", "--min-count", "3", "--json")
    here, there = command(*words), command(*words, "--engine", "spark")
    assert here.code == there.code == 0, there.err
    one, other = (json.loads(ran.out)["rows"] for ran in (here, there))
    assert [(row["query"], row["count"]) for row in one] == [(row["query"], row["count"]) for row in other]
    assert [row["frequency"] for row in one] == pytest.approx([row["frequency"] for row in other], rel=1e-9)
    assert len(one) == 3
    clicks = ("queries", "fade", log, "--clicks", "--at", "2026-03-01", "--json")
    renamed = parquet.read_table(log).rename_columns(["page", "day", "clicks"])
    parquet.write_table(renamed, log)
    one, other = (json.loads(ran.out)["rows"] for ran in (command(*clicks), command(*clicks, "--engine", "spark")))
    assert [row["page"] for row in one] == [row["page"] for row in other]
    assert [row["clicks"] for row in one] == pytest.approx([row["clicks"] for row in other], rel=1e-9)


def test_a_log_of_bad_times_overwrites_nothing(spark: Any, tmp_path: Path, command: Command) -> None:
    log, out = tmp_path / "log.parquet", tmp_path / "faded"
    words = ("queries", "fade", log, "--min-count", "0", "--engine", "spark", "--out", f"file://{out}")
    parquet.write_table(pa.table({"query": ["a", "b"], "time": ["2026-01-01", "2026-01-02"], "count": [1, 2]}), log)
    assert command(*words).code == 0
    parquet.write_table(pa.table({"query": ["a", "b"], "time": ["soon", "later"], "count": [1, 2]}), log)
    ran = command(*words)
    assert ran.code == 2
    assert "2 of 2 times are neither numbers nor dates" in ran.err
    assert sorted(parquet.read_table(out).column("query").to_pylist()) == ["a", "b"]


def test_what_cannot_be_read_is_told(spark: Any, tmp_path: Path) -> None:
    from bowerbird.cluster.inputs import Column, read_rows
    from bowerbird.library.column_names import CLICKS, PAGES, SOURCES, TARGETS

    pair = (Column(SOURCES), Column(TARGETS))
    with pytest.raises(InputFileError, match="no such path"):
        read_rows(spark, str(tmp_path / "none*.parquet"), pair, "--links")
    (tmp_path / "text.parquet").write_text("source\ttarget\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        read_rows(spark, str(tmp_path / "text.parquet"), pair, "--links").frame.count()
    text = tmp_path / "links.tsv"
    text.write_text("source\ttarget\n", encoding="utf-8")
    for where in (text, tmp_path / "*.tsv"):  # told by us: Spark would have Java print its traces first
        with pytest.raises(InputFileError, match=r"--links .*links.tsv is none\)\. --engine spark reads Parquet only"):
            read_rows(spark, str(where), pair, "--links")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        read_rows(spark, str(tmp_path / "empty"), pair, "--links")
    one = tmp_path / "one.parquet"
    for columns, said in (
        ({"source": ["x"]}, "no column target"),
        ({"dest_page": ["b"], "src_page": ["a"]}, "no column source (or "),
        ({"anchor": ["go"], "origin": ["a"], "dest": ["b"]}, "it has anchor, origin, dest."),
    ):
        parquet.write_table(pa.table(columns), one)
        with pytest.raises(InputFileError, match=re.escape(said)):
            read_rows(spark, str(one), pair, "--links")
    parquet.write_table(pa.table({"page": [["x"]], "clicks": [1.0]}), one)
    with pytest.raises(InputFileError, match="column page is array<string>"):
        read_rows(spark, str(one), (Column(PAGES), Column(CLICKS, 0.0)), "--clicks")
    parquet.write_table(pa.table({"page": ["a", None, "", "b"], "clicks": [1.0, 1.0, 1.0, -1.0]}), one)
    rows = read_rows(spark, str(one), (Column(PAGES), Column(CLICKS, 0.0)), "--clicks")
    assert [tuple(row) for row in rows.counted.collect()] == [("a", 1.0)]
    with pytest.raises(InputFileError, match="3 of 4 rows are bad"):
        rows.check()
    parquet.write_table(pa.table({"page": ["a", "c", ""], "clicks": ["1", "2", "3"]}), one)
    rows = read_rows(spark, str(one), (Column(PAGES), Column(CLICKS, 0.0)), "--clicks")
    assert rows.counted.count() == 2
    assert rows.check() == [f"{one}: 1 of 3 rows are bad and left out."]
    parquet.write_table(pa.table({"page": pa.array([], pa.string()), "clicks": pa.array([], pa.float64())}), one)
    rows = read_rows(spark, str(one), (Column(PAGES), Column(CLICKS, 0.0)), "--clicks")
    rows.counted.count()
    with pytest.raises(InputFileError, match="holds no rows"):
        rows.check()


def test_what_spark_fails_at_is_told(spark: Any) -> None:
    with pytest.raises(EngineError, match=r"Spark did not finish the job: .*spark_of_life"), telling_failures():
        spark.sql("SELECT raise_error('spark_of_life')").collect()


def test_a_folder_of_something_else_is_left_alone(spark: Any, drawn: Drawn, tmp_path: Path) -> None:
    from bowerbird.cluster.work_folder import open_work

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not empty and holds no job"):
        open_work(spark, str(tmp_path / "mine"), {"what": "rank"}, PIECES, quiet)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("option", ["--work", "--out"])
def test_a_place_that_cannot_be_used_is_refused(option: str, drawn: Drawn, tmp_path: Path, command: Command) -> None:
    links, clicks = drawn.write(tmp_path)
    (tmp_path / "letter").write_text("dear", encoding="utf-8")
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("dear", encoding="utf-8")
    told = {"letter/x": "cannot be", "full": "holds", "none": "cannot be"}
    for place, words in told.items():
        where = "nofs://host/x" if place == "none" else f"file://{tmp_path}/{place}"
        ran = command("rank", "--engine", "spark", "--links", links, "--clicks", clicks, option, where)
        assert ran.code == 2, ran.err
        assert f"{option} {where}: " in ran.err
        assert words in ran.err
        assert "Traceback" not in ran.err
        assert "\tat " not in ran.err
    assert (full / "letter.txt").read_text(encoding="utf-8") == "dear"
    assert [path.name for path in full.iterdir()] == ["letter.txt"]


def test_tables_too_long_to_bring_are_written_by_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bowerbird.cluster import results

    monkeypatch.setattr(results, "MOST_COLLECTED", 3)
    frame = spark.range(5).selectExpr("id", "string(id) AS name")
    order = (("id", True),)
    with pytest.raises(ConfigError, match="need --out"):
        results.take_rows(frame, order, 0, None)
    with pytest.raises(ConfigError, match=r"Name a \.parquet"):
        results.take_rows(frame, order, 0, str(tmp_path / "table.csv"))
    assert results.take_rows(frame, order, 0, str(tmp_path / "table.parquet")) == {}
    assert parquet.read_table(tmp_path / "table.parquet").column("id").to_pylist() == [4, 3, 2, 1, 0]
    assert results.take_rows(frame, order, 2, None) == {"id": [4, 3], "name": ["4", "3"]}
