"""Which pages reach which others within so many links: a bit for each target, spread along lists of links.

All bits of a page are one row. A hop moves only what is new: bits that a page did not have before, added up by page
before they are sent on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as sf

from bowerbird.cluster.link_lists import Lists, push
from bowerbird.cluster.work_folder import WorkFolder

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

WORD = 64
WORDS = 16
GROUP = WORD * WORDS  # bits that are spread together


def start_bits(spark: Any, ids: I64, bits: I64) -> Any:
    """A frame of pages with bits, (id, w0 … w15), from pairs of a page and one of its bits (0 … 1023)."""
    pages, row = np.unique(ids, return_inverse=True)
    words = np.zeros((len(pages), WORDS), np.uint64)
    np.bitwise_or.at(words, (row, bits // WORD), np.uint64(1) << (bits % WORD).astype(np.uint64))
    columns = {f"w{place}": words[:, place].view(np.int64) for place in range(WORDS)}
    return spark.createDataFrame(pa.table({"id": pages, **columns}))


def spread_bits(
    work: WorkFolder, name: str, lists: Lists, start: Any, hops: int, say: Callable[[str], None] = lambda _: None
) -> Any:
    """(id, w0 … w15): the bits of all pages that are at most `hops` links away along these lists.

    Every hop is a table; a job that was killed goes on after the last one.
    """
    words = [f"w{place}" for place in range(WORDS)]
    news = [f"n{place}" for place in range(WORDS)]
    if work.has(name):
        return work.load(name)
    done = next((hop for hop in range(hops, 0, -1) if work.has(f"{name}_{hop}")), 0)
    state = work.load(f"{name}_{done}") if done else None
    if state is None:
        doubled = (sf.col(word).alias(new) for word, new in zip(words, news, strict=True))
        state = work.once(f"{name}_0", lambda: start.select("id", *words, *doubled))
    for hop in range(done + 1, hops + 1):
        fresh = state.filter(" OR ".join(f"{column} != 0" for column in news)).select("id", *news)
        got = push(lists, fresh, {column: sf.bit_or(column) for column in news})
        got = got.select("id", *(sf.col(column).alias(f"g{column}") for column in news))
        both = state.select("id", *words).join(got.hint("shuffle_hash"), "id", "full")
        old = [sf.coalesce(column, sf.lit(0)) for column in words]
        new = [sf.coalesce(f"g{column}", sf.lit(0)) for column in news]
        whole = (a.bitwiseOR(b).alias(column) for a, b, column in zip(old, new, words, strict=True))
        added = (b.bitwiseAND(sf.bitwise_not(a)).alias(column) for a, b, column in zip(old, new, news, strict=True))
        state = work.save(f"{name}_{hop}", both.select("id", *whole, *added))
        work.drop(f"{name}_{hop - 1}")
        say(f"{name}: hop {hop} of {hops}.")
    found = work.save(name, state.select("id", *words))
    work.drop(f"{name}_{hops}")
    return found


def count_bits(columns: list[str], masks: U64) -> Any:
    """By page: how many of these bits it has."""
    total = sf.lit(0)
    for column, mask in zip(columns, masks.view(np.int64).tolist(), strict=True):
        if mask:
            total = total + sf.bit_count(sf.col(column).bitwiseAND(sf.lit(mask)))
    return total


def lowest_bit() -> Any:
    """The number of the first bit that a page has, over w0 … w15; it has one."""
    found = None
    for place in reversed(range(WORDS)):
        word = sf.col(f"w{place}")
        lowest = sf.bit_count(word.bitwiseAND(-word) - 1) + place * WORD
        found = lowest if found is None else sf.when(word != 0, lowest).otherwise(found)
    return found
