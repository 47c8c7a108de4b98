"""Logs of queries or clicks too large for one machine, added up with frequencies that fade, by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import functions as sf

from bowerbird.cluster.inputs import Column, Rows, read_rows
from bowerbird.demand.events import normalise_query
from bowerbird.library.column_names import CLICKS, FREQUENCIES, PAGES, QUERIES, TIMES

MILLI, MICRO = 1e11, 1e14  # larger numbers are times in milliseconds, in microseconds


def fade_logs(
    spark: Any, where: str, now: float, half_life_s: float, least: float, *, clicks: bool = False
) -> tuple[Any, Rows]:
    """(query, frequency, count) or (page, clicks, count): sum of count·2^(-age/half-life), by normalised query or page.

    Those counted less than `least` times in all are left out. The second is what tells of bad rows, after a job.
    """
    names, amounts = (PAGES, CLICKS) if clicks else (QUERIES, FREQUENCIES)
    at = read_time(sf.col("time"))
    wanted = (Column(names), Column(TIMES), Column(amounts, 0.0))
    rows = read_rows(spark, where, wanted, "LOG", trimmed=True, also={"untimed": at.isNull()})
    amount = sf.col(amounts[0])
    faded = amount * sf.pow(sf.lit(2.0), (at - now) / half_life_s)
    good = rows.counted.filter(at.isNotNull())
    sums = good.groupBy(sf.col(names[0]).alias("text")).agg(sf.sum(faded).alias("faded"), sf.sum(amount).alias("count"))
    if not clicks:  # each text is normalised once, and not once a row
        sums = sums.mapInArrow(_normalise, "text string, faded double, count double").filter("text != ''")
        sums = sums.groupBy("text").agg(sf.sum("faded").alias("faded"), sf.sum("count").alias("count"))
    found = sums.filter(sf.col("count") >= least)
    kept = found.select(sf.col("text").alias(names[0]), sf.col("faded").alias(amounts[0]), "count")
    return kept, rows


def _normalise(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        texts = [normalise_query(text) for text in batch.column("text").to_pylist()]
        yield pa.RecordBatch.from_arrays(
            [pa.array(texts, pa.string()), batch.column("faded"), batch.column("count")], batch.schema.names
        )


def read_time(text: Any) -> Any:
    """Unix seconds of a text: a number of seconds, milli- or microseconds, or an ISO 8601 time, UTC unless it says."""
    number = text.try_cast("double")
    seconds = sf.when(number > MICRO, number / 1e6).when(number > MILLI, number / 1e3).otherwise(number)
    moment = text.try_cast("timestamp").cast("double")
    found = sf.when(number.isNotNull(), seconds).otherwise(moment)
    return sf.when((found >= 0) & (found < MILLI), found)
