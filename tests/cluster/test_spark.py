"""Spark beside the local engine, on random graphs and logs: the same numbers, also with heavy pages and after a kill.

One session for all of it, for a session takes seconds to start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, command
from xxhash import xxh64_intdigest as xxh64

from bowerbird.appraise.frontier.graph import FrontierGraph, make_graph
from bowerbird.appraise.frontier.walk import Walk, enriched_walk, pagerank, random_walk
from bowerbird.appraise.seeds.coverage import cover
from bowerbird.appraise.seeds.problem import SeedProblem
from bowerbird.appraise.seeds.sample import draw_targets
from bowerbird.cluster.session import SparkChoice, check_java, check_pyspark, open_spark, telling_failures
from bowerbird.model.errors import ConfigError, EngineError, InputFileError

__all__ = ["command"]

pytestmark = pytest.mark.timeout(900)  # the first test waits for Java; on a busy machine that takes minutes
PIECES = 2
STEPS = 3
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


def walk_here(drawn: Drawn, method: str, **more: Any) -> Walk:
    clicks = np.bincount(drawn.clicked, weights=drawn.clicks, minlength=len(drawn.names))
    options = {"tolerance": 1e-12, "max_iterations": STEPS, "dtype": np.float64} | more
    if method == "pagerank":
        return pagerank(drawn.graph, **options)
    if method == "rw":
        return random_walk(drawn.graph, clicks, **options)
    return enriched_walk(drawn.graph, clicks, real_share=0.3, **options)


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


def test_a_killed_job_goes_on_after_its_last_step(spark: Any, drawn: Drawn, tmp_path: Path) -> None:
    from bowerbird.cluster.ranking import RankInputs, rank_pages
    from bowerbird.cluster.walks import WalkOptions

    links, clicks = drawn.write(tmp_path)
    inputs = RankInputs(f"{links}/*.parquet", str(clicks))
    options = WalkOptions("rw", tolerance=1e-12, max_iterations=STEPS)
    work = str(tmp_path / "work")

    class Killed(Exception):  # noqa: N818
        """Stands for the end of the process."""

    def kill(text: str) -> None:
        if text.startswith("step 2"):
            raise Killed

    with pytest.raises(Killed):
        rank_pages(spark, inputs, options, work, PIECES, kill)
    (tmp_path / "work" / "values-0003").mkdir()  # what a kill in the third step would leave
    (tmp_path / "work" / "values-0003" / "part-0.parquet").write_bytes(b"PAR1")
    said: list[str] = []
    found = rank_pages(spark, inputs, options, work, PIECES, said.append)
    assert [text.split(":")[0] for text in said if text.startswith("step")] == ["step 3"]
    columns = found.take(0, None)
    want = walk_here(drawn, "rw").values * len(drawn.names) - 0.15
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


def test_rank_by_spark_equals_rank(spark: Any, drawn: Drawn, tmp_path: Path, command: Command) -> None:
    links, clicks = drawn.write(tmp_path)
    whole = tmp_path / "links.parquet"
    parquet.write_table(parquet.read_table(links), whole)
    crawled = tmp_path / "crawled.parquet"
    parquet.write_table(pa.table({"page": [*drawn.names[:20], "http://alone.example/"]}), crawled)
    words = ("--clicks", clicks, "--crawled", crawled, "--json", "-n", "0", "--tolerance", "1e-4")
    here = command("rank", "--links", whole, *words)
    there = command("rank", "--links", f"{links}/part-*.parquet", *words, "--engine", "spark")
    assert here.code == there.code == 0, there.err
    one, other = json.loads(here.out), json.loads(there.out)
    assert (one["pages"], one["frontier"]) == (other["pages"], other["frontier"])
    assert {row["page"]: row["in_links"] for row in one["rows"]} == {
        row["page"]: row["in_links"] for row in other["rows"]
    }
    scores = [{row["page"]: row["score"] for row in found["rows"]} for found in (one, other)]
    assert scores[1] == pytest.approx(scores[0], rel=1e-3)  # at this tolerance
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
    order = order_of_buckets(spark, [drawn.names[page] for page in named])
    number = {name: place for place, name in enumerate(order)}
    where = np.array([number.get(name, -1) for name in drawn.names])
    graph = make_graph(where[drawn.sources], where[drawn.targets], len(order))
    weight = np.ones(len(order))
    weight[where[3:5]] = -10.0
    problem = SeedProblem(graph, weight, 2)
    targets = draw_targets(weight, 200, np.random.default_rng(5))
    seeds = greedy_by_hand(problem, targets, 4, order, spark)
    assert [row["page"] for row in found["seeds"]] == [order[seed] for seed in seeds]
    want = cover(problem, seeds)
    assert [row["pages"] for row in found["seeds"]] == want.pages.tolist()
    assert [row["value"] for row in found["seeds"]] == want.value.tolist()
    assert (found["pages"], found["links"], found["value"]) == (len(order), graph.edges, problem.positive)
    assert found["covered_value"] == want.covered_value <= found["bound"]["value"]
    assert found["samples"] == 200
    assert any("below 0" in note for note in found["notes"])


def order_of_buckets(spark: Any, names: list[str]) -> list[str]:
    """By bucket, then by hash: the order in which Spark draws."""
    from pyspark.sql import functions as sf

    frame = spark.createDataFrame(pa.table({"name": names})).select("name", sf.xxhash64("name").alias("id"))
    rows = frame.select("name", "id", sf.pmod(sf.hash("id"), sf.lit(PIECES)).alias("bucket")).collect()
    return [row["name"] for row in sorted(rows, key=lambda row: (row["bucket"], row["id"]))]


def greedy_by_hand(problem: SeedProblem, targets: np.ndarray, k: int, order: list[str], spark: Any) -> list[int]:
    """Plain greedy on drawn targets; of equal pages the one of the lower hash."""
    from pyspark.sql import functions as sf

    frame = spark.createDataFrame(pa.table({"name": order})).select("name", sf.xxhash64("name").alias("id"))
    ids = {row["name"]: row["id"] for row in frame.collect()}
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
        best = min(range(count), key=lambda page: (-gain[page], ids[order[page]]))
        if gain[best] <= 0:
            break
        chosen.append(best)
        open_ &= ~reach[best][targets]
    return chosen


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


def test_what_cannot_be_read_is_told(spark: Any, tmp_path: Path) -> None:
    from bowerbird.cluster.inputs import Column, read_rows
    from bowerbird.library.column_names import CLICKS, PAGES, SOURCES, TARGETS

    pair = (Column(SOURCES), Column(TARGETS))
    with pytest.raises(InputFileError, match="no such path"):
        read_rows(spark, str(tmp_path / "none*.parquet"), pair, "--links")
    (tmp_path / "text.parquet").write_text("source\ttarget\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        read_rows(spark, str(tmp_path / "text.parquet"), pair, "--links").frame.count()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        read_rows(spark, str(tmp_path / "empty"), pair, "--links")
    one = tmp_path / "one.parquet"
    parquet.write_table(pa.table({"a": ["x"]}), one)
    with pytest.raises(InputFileError, match=r"has 1 column\(s\) \(a\)"):
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
