"""Seeds of a graph in Parquet: greedy cover of sampled targets ([SEED09], [BEYOND]), by Spark.

Targets are drawn by weight and searched for backwards, all at once. What each page reaches stays with Spark; the pages
that reach most are brought here, and greedy chooses among them as long as none of the others can be better: gains only
shrink, so what the others could add at most is known. Then they are brought anew. What the chosen seeds cover is
counted in the whole graph, as the local engine does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as sf

from bowerbird.appraise.seeds.problem import Bound, Choice
from bowerbird.appraise.seeds.sampled import CONFIDENCE, SAMPLED_OUT, sample_bound
from bowerbird.cluster.inputs import Column, Rows, read_if_named, read_rows
from bowerbird.cluster.link_lists import (
    CHUNK,
    Lists,
    hash_name,
    load_lists,
    make_lists,
    name_pages,
    save_edges,
    save_pages,
)
from bowerbird.cluster.reach import GROUP, WORD, WORDS, count_bits, lowest_bit, spread_bits, start_bits
from bowerbird.cluster.sizes import choose_partitions, mark_inputs
from bowerbird.cluster.work_folder import WorkFolder, open_work
from bowerbird.library.column_names import PAGES, SOURCES, TARGETS, WEIGHTS
from bowerbird.model.errors import ConfigError
from bowerbird.model.workload import MOST_COUNT

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

SAMPLES, MOST_SAMPLES = 4096, 16_384
MOST_SEEDS = GROUP
CANDIDATES = 50_000
PLAIN, CLICKED, SPAM = 1.0, 10.0, -10.0


@dataclass(frozen=True, slots=True)
class SeedPaths:
    """Paths, patterns or URIs of Parquet."""

    links: str
    weights: str | None = None
    clicked: str | None = None
    spam: str | None = None


@dataclass(frozen=True, slots=True)
class SeedWish:
    """What is to be chosen."""

    k: int
    hops: int
    samples: int = SAMPLES
    seed: int = 0
    chunk: int = CHUNK
    candidates: int = CANDIDATES


@dataclass(frozen=True, slots=True)
class ChosenSeeds:
    """Seeds by name, as a choice whose numbers are the places in `names`."""

    names: list[str]
    choice: Choice
    pages: int
    links: int
    positive: float
    has_negative: bool
    notes: tuple[str, ...]


@dataclass(slots=True)
class Sample:
    """Targets drawn by weight: bit t of a page says that it reaches target t."""

    ids: I64  # by target
    above: U64  # a bit for each target: its weight is above zero
    open: U64 = field(init=False)  # targets that no seed reaches

    def __post_init__(self) -> None:
        self.open = pack_bits(np.ones(len(self.ids), np.bool_), len(self.above))

    @property
    def drawn_above(self) -> int:
        """Targets above zero."""
        return int(np.bitwise_count(self.above).sum())


def pack_bits(mask: npt.NDArray[np.bool_], words: int) -> U64:
    """A mask as words, the first of it lowest."""
    bits = np.zeros(words * WORD, np.bool_)
    bits[: len(mask)] = mask
    return np.packbits(bits, bitorder="little").view(np.uint64)


def choose_seeds(
    spark: Any, paths: SeedPaths, wish: SeedWish, root: str, partitions: int | None, say: Callable[[str], None]
) -> ChosenSeeds:
    """At most k seeds, each with what it adds to those before it."""
    links = read_rows(spark, paths.links, (Column(SOURCES), Column(TARGETS)), "--links", trimmed=True)
    worth = (Column(PAGES), Column(WEIGHTS, -MOST_COUNT))
    weights, clicked, spam = (
        read_if_named(spark, path, wanted, option, trimmed=True)
        for path, wanted, option in (
            (paths.weights, worth, "--weights"),
            (paths.clicked, worth[:1], "--clicked"),
            (paths.spam, worth[:1], "--spam"),
        )
    )
    asked = (wish.k, wish.hops, wish.samples, wish.seed, wish.chunk)
    job = {"what": "seeds", "options": asked, "inputs": mark_inputs(links, weights, clicked, spam)}
    work = open_work(spark, root, job, partitions or choose_partitions(spark, links.bytes), say)
    names = name_pages(work, links, weights, clicked, spam)  # pages that only a weight names have no links
    count = names.count
    edges = save_edges(work, links.frame, names.salt, None)
    pages = save_pages(work, names.table, edges, None, None)
    weighed = work.once("weights", lambda: weigh(pages, names.salt, weights, clicked, spam))
    told = weighed.agg(sf.sum(sf.greatest("weight", sf.lit(0.0))), sf.min("weight"), sf.sum("in_links")).first()
    positive, has_negative, distinct = float(told[0]), told[1] < 0, int(told[2])
    say(f"{count:,} pages, {distinct:,} distinct links.")
    if wish.k > count:
        raise ConfigError(f"-k {wish.k}: {paths.links} has only {count:,} pages. Ask for fewer seeds.")
    if positive <= 0:
        raise ConfigError(f"{paths.links}: no page has a weight above 0, so nothing is worth covering.")
    along, against = _save_both(work, edges, pages, wish.chunk)
    sample = draw_sample(weighed, work.buckets, wish.samples, np.random.default_rng(wish.seed))
    reach = save_reach(work, against, sample, wish.hops, say)
    ids, most_targets = choose_greedily(reach, sample, wish, say)
    covered_pages, value = count_cover(work, along, weighed, ids, wish.hops)
    more = [] if len(ids) == wish.k else [SAMPLED_OUT]
    bound = Bound(min(positive, sample_bound(sample.drawn_above, most_targets, positive, CONFIDENCE).value), CONFIDENCE)
    choice = Choice(np.arange(len(ids)), covered_pages, value, bound, len(sample.ids), tuple(more))
    found = names.table.filter(sf.col("id").isin(ids.tolist())).collect()
    by_id = {int(row["id"]): str(row["name"]) for row in found}
    return ChosenSeeds(
        [by_id[number] for number in ids.tolist()], choice, count, distinct, positive, has_negative, tuple(names.notes)
    )


def weigh(pages: Any, salt: int, weights: Rows | None, clicked: Rows | None, spam: Rows | None) -> Any:
    """(id, weight, in_links): as a file says, 0 where it says nothing; otherwise 1, clicked 10, spam -10."""
    kept = pages.select("id", "in_links")
    if weights is not None:
        said = weights.frame.select(hash_name(sf.col("page"), salt).alias("id"), sf.col("weight").alias("said"))
        sums = said.groupBy("id").agg(sf.sum("said").alias("said"))
        found = kept.join(sums.hint("shuffle_hash"), "id", "left")
        return found.select("id", sf.coalesce("said", sf.lit(0.0)).alias("weight"), "in_links")
    weight = sf.lit(PLAIN)
    for rows, name, worth in ((clicked, "is_clicked", CLICKED), (spam, "is_spam", SPAM)):
        if rows is not None:
            marked = rows.frame.select(hash_name(sf.col("page"), salt).alias("id")).distinct()
            kept = kept.join(marked.withColumn(name, sf.lit(True)).hint("shuffle_hash"), "id", "left")
            weight = sf.when(sf.col(name).isNotNull(), sf.lit(worth)).otherwise(weight)
    return kept.select("id", weight.alias("weight"), "in_links")


def _save_both(work: WorkFolder, edges: Any, pages: Any, chunk: int) -> tuple[Lists, Lists]:
    """All links by source, and by target."""
    real = edges.filter("id != other")
    found = []
    for name, links, many in (
        ("out", real, "out_links"),
        ("in", real.select(sf.col("other").alias("id"), sf.col("id").alias("other")), "in_links"),
    ):
        heavy = pages.filter(sf.col(many) > chunk).select("id", sf.col(many).alias("many"))
        found.append(load_lists(work, name) or make_lists(work, name, links, heavy, chunk))
    return found[0], found[1]


def draw_sample(weighed: Any, buckets: int, samples: int, rng: np.random.Generator) -> Sample:
    """[BEYOND] Targets in proportion to the size of their weight, with repetition.

    Pages are in the order of buckets, and of ids within each; every bucket looks up the draws that fall into it. Its
    number is that of its rows and not of the task: Spark reads a table by buckets only where it reads their column.
    """
    bucket = sf.pmod(sf.hash("id"), sf.lit(buckets)).alias("bucket")
    sizes = np.zeros(buckets)
    for row in weighed.groupBy(bucket).agg(sf.sum(sf.abs("weight")).alias("size")).collect():
        sizes[row["bucket"]] = row["size"]
    begins = np.concatenate([[0.0], np.cumsum(sizes)])
    draws = np.sort(rng.random(samples) * begins[-1])
    firsts = np.append(np.searchsorted(draws, begins[:-1], side="left"), samples)

    def look_up(batches: Iterator[Any]) -> Iterator[Any]:
        """The draws of one bucket, first … last; what rounding leaves of them goes to its last page with a weight."""
        import pyarrow as pa

        at, first, last, heaviest = 0.0, 0, 0, None
        for number, batch in enumerate(each for each in batches if each.num_rows):
            if not number:
                place = batch.column("bucket")[0].as_py()
                at, first, last = float(begins[place]), int(firsts[place]), int(firsts[place + 1])
            ids, weight = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("id", "weight"))
            ends = at + np.cumsum(np.abs(weight))
            high = np.minimum(np.searchsorted(draws, ends, side="left"), last)
            copies = np.diff(high, prepend=first)
            drawn = np.flatnonzero(copies)
            yield _as_batch(pa, ids[drawn], (high - copies)[drawn], copies[drawn], weight[drawn] > 0)
            at, first = float(ends[-1]), int(high[-1])
            if len(some := np.flatnonzero(weight)):
                heaviest = ids[some[-1:]], weight[some[-1:]] > 0
        if first < last and heaviest is not None:
            yield _as_batch(pa, heaviest[0], np.array([first]), np.array([last - first]), heaviest[1])

    ordered = weighed.select("id", "weight", bucket).repartition(buckets, "id").sortWithinPartitions("id")
    found = ordered.mapInArrow(look_up, "id bigint, first bigint, copies bigint, above boolean").toArrow()
    order = np.argsort(found.column("first").to_numpy())
    columns = [np.asarray(found.column(name).to_numpy())[order] for name in ("id", "copies", "above")]
    ids = np.repeat(columns[0], columns[1])
    words = -(-len(ids) // GROUP) * WORDS
    return Sample(ids, pack_bits(np.repeat(columns[2], columns[1]), words))


def _as_batch(pa: Any, *columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(dict(zip(("id", "first", "copies", "above"), columns, strict=True)))


def save_reach(work: WorkFolder, against: Lists, sample: Sample, hops: int, say: Callable[[str], None]) -> Any:
    """(id, w0, w1, …): which targets each page reaches; pages that reach none are left out."""
    if work.has("reach"):
        return work.load("reach")
    whole = None
    groups = range(0, len(sample.ids), GROUP)
    for number, first in enumerate(groups):
        ids = sample.ids[first : first + GROUP]
        start = start_bits(work.spark, ids, np.arange(len(ids)))
        part = spread_bits(work, f"reach_{number}", against, start, hops, say)
        named = part.select("id", *(sf.col(f"w{place}").alias(f"w{number * WORDS + place}") for place in range(WORDS)))
        whole = named if whole is None else whole.join(named.hint("shuffle_hash"), "id", "full")
    assert whole is not None
    columns = [name for name in whole.columns if name != "id"]
    found = work.save("reach", whole.select("id", *(sf.coalesce(name, sf.lit(0)).alias(name) for name in columns)))
    work.drop(*(f"reach_{number}" for number in range(len(groups))))
    return found


def choose_greedily(reach: Any, sample: Sample, wish: SeedWish, say: Callable[[str], None]) -> tuple[I64, int]:
    """[SEED09] [BEYOND] Always the page that reaches most targets not covered yet; ties go to the lower id.

    Targets below zero count against a page. The ids, and the most targets above zero that any k pages reach, by what
    greedy knows at its beginning and end.
    """
    columns = [name for name in reach.columns if name != "id"]

    def fetch(gain: Any, most: int) -> tuple[I64, U64, I64]:
        """The pages that gain most, with their bits and gains."""
        table = reach.select("id", *columns, gain.alias("gain")).filter("gain > 0")
        rows = table.orderBy(sf.desc("gain"), "id").limit(most).toArrow()
        bits = np.stack([rows.column(name).to_numpy() for name in columns], axis=1).view(np.uint64)
        return rows.column("id").to_numpy(), bits, rows.column("gain").to_numpy()

    def fetch_candidates() -> tuple[I64, U64, int]:
        """Pages that reach most open targets above zero; and the most that any other reaches, now and later."""
        most = max(wish.candidates, wish.k)
        ids, bits, gains = fetch(count_bits(columns, sample.open & sample.above), most + 1)
        return ids[:most], bits[:most], int(gains[most]) if len(gains) > most else 0

    def weigh_open(bits: U64) -> I64:
        held = bits & sample.open
        above = np.bitwise_count(held & sample.above).sum(axis=1, dtype=np.int64)
        found: I64 = above - np.bitwise_count(held & ~sample.above).sum(axis=1, dtype=np.int64)
        return found

    ids, bits, rest = fetch_candidates()
    above = np.bitwise_count(bits & sample.above).sum(axis=1, dtype=np.int64)
    most_targets = int(np.sort(above)[::-1][: wish.k].sum())
    chosen: list[int] = []
    fresh = True
    while len(chosen) < wish.k and len(ids):
        net = weigh_open(bits)
        best = int(np.lexsort((ids, -net))[0])
        page, reached, gain = int(ids[best]), bits[best], int(net[best])
        if gain <= rest and not fresh:
            ids, bits, rest = fetch_candidates()
            fresh = True
            continue
        if gain <= rest and (sample.open & ~sample.above).any():  # those brought reach most, but what is below zero too
            below = count_bits(columns, sample.open & ~sample.above)
            leader, its_bits, its_gain = fetch(count_bits(columns, sample.open & sample.above) - below, 1)
            if not len(leader):
                break
            page, reached, gain = int(leader[0]), its_bits[0], int(its_gain[0])
        if gain <= 0:
            break
        chosen.append(page)
        sample.open &= ~reached
        fresh = False
        say(f"seed {len(chosen)}: reaches {gain:,} more of {len(sample.ids):,} targets.")
    covered = sample.drawn_above - int(np.bitwise_count(sample.open & sample.above).sum())
    gains = count_bits(columns, sample.open & sample.above)
    last = reach.select("id", gains.alias("gain")).orderBy(sf.desc("gain"), "id").limit(wish.k).collect()
    return np.array(chosen, np.int64), min(most_targets, covered + sum(int(row["gain"]) for row in last))


def count_cover(work: WorkFolder, along: Lists, weighed: Any, ids: I64, hops: int) -> tuple[I64, F64]:
    """Pages and value that each seed adds to those before it, counted in the whole graph."""
    pages, value = np.zeros(len(ids), np.int64), np.zeros(len(ids))
    if not len(ids):
        return pages, value
    covered = spread_bits(work, "covered", along, start_bits(work.spark, ids, np.arange(len(ids))), hops)
    first = covered.select("id", lowest_bit().alias("seed")).join(weighed.hint("shuffle_hash"), "id")
    for row in first.groupBy("seed").agg(sf.count("*").alias("pages"), sf.sum("weight").alias("value")).collect():
        pages[row["seed"]], value[row["seed"]] = row["pages"], row["value"]
    return pages, value
