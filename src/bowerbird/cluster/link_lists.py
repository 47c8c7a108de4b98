"""A link graph as tables of Spark: names, pages, and lists of links by either end.

A page's number is the hash of its name (64 bits, the same in every run and on every machine): links need not be joined
with a table of names to be numbered. Two names of one hash are looked for; where there are any, all are hashed anew
with other salt.

Skew. A page's links are one row of a list, in the bucket of the page. Pages with more than `chunk` of them are heavy:
their lists are cut into rows of about `chunk` links that are spread evenly over all tasks, and what such a page sends
is broadcast, for heavy pages are few: at most links/chunk. What pages receive is added up where it is made before it is
sent on, so a page that everybody links to gets one number a task. No step brings all links of one page together; making
links distinct, before the steps, brings together those that one page has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as sf

from bowerbird.cluster.inputs import Rows
from bowerbird.cluster.work_folder import WorkFolder
from bowerbird.model.errors import InputFileError

CHUNK = 50_000
MOST_SALTS = 8


@dataclass(frozen=True, slots=True)
class Lists:
    """For each page the pages at the other end of its links: (id, others)."""

    light: Any  # a row a page, in buckets
    heavy: Any | None  # several rows a page, evenly spread
    heavy_ids: Any | None  # few


@dataclass(frozen=True, slots=True)
class NameTable:
    """All pages by name."""

    table: Any  # id, name
    count: int
    salt: int  # of the ids
    notes: list[str]  # what was left out of the inputs


def hash_name(column: Any, salt: int) -> Any:
    """The number of a page. Salt comes first: names of one hash would go on alike with whatever comes after them."""
    return sf.xxhash64(column) if salt == 0 else sf.xxhash64(sf.lit(salt), column)


def name_pages(work: WorkFolder, links: Rows, *others: Rows | None) -> NameTable:
    """The pages of all inputs: of links both ends, of the others `page`. Raises InputFileError for mostly bad rows."""
    some = [rows for rows in others if rows is not None]
    columns = [links.counted.select(sf.explode(sf.array("source", "target")).alias("name"))]
    columns += [rows.counted.select(sf.col("page").alias("name")) for rows in some]
    return number_names(work, columns, lambda: [note for rows in (links, *some) for note in rows.check()])


def number_names(work: WorkFolder, columns: Sequence[Any], check: Callable[[], list[str]] = list) -> NameTable:
    """Numbers for columns of names, each a frame of one column, `name`; `check` tells of them once they were read."""
    told = work.read_note("names.json")
    if told is not None:
        return NameTable(work.load("names"), int(told["count"]), int(told["salt"]), list(told["notes"]))
    for salt in range(MOST_SALTS):
        every = columns[0]
        for more in columns[1:]:
            every = every.unionByName(more)
        found = every.select(hash_name(sf.col("name"), salt).alias("id"), "name").dropDuplicates(["id", "name"])
        names = work.save("names", found)
        notes = check()
        count = names.count()
        if names.select("id").distinct().count() == count:
            work.write_note("names.json", {"count": count, "salt": salt, "notes": notes})
            return NameTable(names, count, salt, notes)
    raise InputFileError(f"names: {count:,} of them have no distinct hashes. That cannot be by chance: report it.")


def save_known(work: WorkFolder, known: Rows | None, salt: int) -> Any | None:
    """The pages that a file says are crawled, (id)."""
    if known is None:
        return None
    return work.once("known", lambda: known.frame.select(hash_name(sf.col("page"), salt).alias("id")).distinct())


def save_edges(work: WorkFolder, links: Any, salt: int, crawled: Any | None) -> Any:
    """Distinct links as numbers, (id, other), by source; only those of `crawled` pages, if such are given."""

    def make() -> Any:
        numbered = links.select(
            hash_name(sf.col("source"), salt).alias("id"), hash_name(sf.col("target"), salt).alias("other")
        )
        # the links of a page come together once, here: what follows adds up by page without moving them
        found = numbered.repartition(work.buckets, "id").dropDuplicates(["id", "other"])
        return found if crawled is None else found.join(crawled.hint("shuffle_hash"), "id", "left_semi")

    return work.once("edges", make)


def save_pages(work: WorkFolder, names: Any, edges: Any, clicks: Any | None, crawled: Any | None) -> Any:
    """All pages with their numbers: crawled, clicks, in_links, out_links, strength = A^T(outdeg - 1), citing.

    `clicks` is (id, clicks), each id once. Without `crawled` the crawled pages are the sources of links and those
    with clicks; without either, all.
    """

    def make() -> Any:
        # a page that links to itself alone is a source without links
        degree = work.once(
            "degrees", lambda: edges.groupBy("id").agg(sf.count_if(sf.col("id") != sf.col("other")).alias("out_links"))
        )
        received = (
            edges.filter("id != other")
            .join(degree.hint("shuffle_hash"), "id")
            .select(sf.col("other").alias("id"), "out_links")
            .groupBy("id")
            .agg(
                sf.count("*").alias("in_links"),
                sf.sum(sf.col("out_links") - 1).alias("strength"),
                sf.sum((sf.col("out_links") > 1).cast("long")).alias("citing"),
            )
        )
        found = names.select("id")
        for more in (degree, received, *(() if clicks is None else (clicks,))):
            found = found.join(more.hint("shuffle_hash"), "id", "left")
        if crawled is not None:
            found = found.join(crawled.withColumn("named", sf.lit(True)).hint("shuffle_hash"), "id", "left")
            is_crawled = sf.col("named").isNotNull()
        elif clicks is not None:
            is_crawled = sf.col("out_links").isNotNull() | sf.col("clicks").isNotNull()
        else:
            is_crawled = sf.lit(True)
        amount = sf.col("clicks") if clicks is not None else sf.lit(0.0)
        return found.select(
            "id",
            is_crawled.alias("crawled"),
            sf.when(is_crawled, sf.coalesce(amount, sf.lit(0.0))).otherwise(0.0).alias("clicks"),
            *(
                sf.coalesce(sf.col(name), sf.lit(0)).alias(name)
                for name in ("in_links", "out_links", "strength", "citing")
            ),
        )

    return work.once("pages", make)


def save_lists(work: WorkFolder, edges: Any, pages: Any, *, chunk: int = CHUNK) -> tuple[Lists, Lists, Lists]:
    """Links between crawled pages by source and by target, and those to the frontier by source.

    By target only from pages that link elsewhere too: the others cite nothing together.
    """

    def turn() -> Any:
        """Whether the target is crawled, by target: pages that very many link to are looked up where the links are."""
        many = pages.filter(sf.col("in_links") > chunk).select("id", "crawled")
        degree = pages.select("id", "out_links")
        real = edges.filter("id != other").join(degree.hint("shuffle_hash"), "id")
        links = real.select(sf.col("id").alias("source"), sf.col("other").alias("id"), "out_links")
        light = pages.filter((sf.col("in_links") <= chunk) & (sf.col("in_links") > 0)).select("id", "crawled")
        if not many.head(1):
            return links.join(light.hint("shuffle_hash"), "id")
        heavy = sf.broadcast(many)
        moved = links.join(heavy, "id", "left_anti").join(light.hint("shuffle_hash"), "id")
        return moved.unionByName(links.join(heavy, "id"))

    names = ("inner_out", "inner_in", "outer_out")
    done = all(work.read_note(f"{name}.json") for name in names)
    turned = None if done else work.once("turned", turn, bucketed=False)
    found = []
    for name, by_target, wanted in (("inner_out", False, True), ("inner_in", True, True), ("outer_out", False, False)):
        lists = load_lists(work, name)
        if lists is None:
            assert turned is not None
            links = turned.filter(sf.col("crawled") == wanted)
            if by_target:
                links = links.filter("out_links > 1").select("id", sf.col("source").alias("other"))
                heavy = pages.filter(sf.col("citing") > chunk).select("id", sf.col("citing").alias("many"))
            else:
                links = links.select(sf.col("source").alias("id"), sf.col("id").alias("other"))
                heavy = pages.filter(sf.col("out_links") > chunk).select("id", sf.col("out_links").alias("many"))
            lists = make_lists(work, name, links, heavy, chunk)
        found.append(lists)
    work.drop("turned")
    return found[0], found[1], found[2]


def make_lists(work: WorkFolder, name: str, links: Any, heavy: Any, chunk: int) -> Lists:
    """Lists of links (id, other); `heavy` has the pages with more than `chunk` of them, and how many."""
    few = heavy.withColumn("parts", sf.ceil(sf.col("many") / chunk)).select("id", "parts")
    few = work.save(f"{name}_heavy_ids", few, bucketed=False)
    has_heavy = bool(few.head(1))
    light = links.join(sf.broadcast(few), "id", "left_anti") if has_heavy else links
    work.save(name, light.groupBy("id").agg(sf.collect_list("other").alias("others")))
    if has_heavy:
        spread = links.join(sf.broadcast(few), "id")
        part = sf.pmod(sf.xxhash64("other"), sf.col("parts")).alias("part")
        rows = spread.select("id", part, "other").groupBy("id", "part").agg(sf.collect_list("other").alias("others"))
        work.save(f"{name}_heavy", rows.select("id", "others"), bucketed=False)
    work.write_note(f"{name}.json", {"heavy": has_heavy})
    lists = load_lists(work, name)
    assert lists is not None
    return lists


def load_lists(work: WorkFolder, name: str) -> Lists | None:
    """Lists that an earlier run made to their end."""
    told = work.read_note(f"{name}.json")
    if told is None:
        return None
    if not told["heavy"]:
        return Lists(work.load(name), None, None)
    ids = work.load(f"{name}_heavy_ids", bucketed=False).select("id")
    return Lists(work.load(name), work.load(f"{name}_heavy", bucketed=False), ids)


def push(lists: Lists, sent: Any, sums: dict[str, Any]) -> Any:
    """What pages get along the links of these lists: `sums` (name -> aggregate) of the columns of `sent`, by page.

    `sent` has a row a page, (id, …), in buckets: it stays where it is, and only sums by page are moved.
    """
    columns = [name for name in sent.columns if name != "id"]
    moved = lists.light.join(sent.hint("shuffle_hash"), "id").select(sf.explode("others").alias("id"), *columns)
    if lists.heavy is not None:
        few = sf.broadcast(sent.join(sf.broadcast(lists.heavy_ids), "id"))
        moved = moved.unionByName(lists.heavy.join(few, "id").select(sf.explode("others").alias("id"), *columns))
    return moved.groupBy("id").agg(*(sums[name].alias(name) for name in sums))
