"""Columns of other people's Parquet as Spark reads them; bad rows are counted, left out and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from bowerbird.cluster.session import last_words
from bowerbird.cluster.work_folder import describe_input
from bowerbird.library.column_names import CLICKS, FREQUENCIES, find_columns, tell_missing
from bowerbird.model.errors import InputFileError
from bowerbird.model.workload import MOST_COUNT

_MAGIC = (b"PAR1", b"PARE")  # the latter where all is encrypted
NUMBERS = (CLICKS, FREQUENCIES)


@dataclass(slots=True)
class Column:
    """One column that is wanted: what it may be called, and what it must hold."""

    names: tuple[str, ...]
    lowest: float | None = None  # of a number; None where it holds names
    optional: bool = False  # what it holds where it lacks is for others to say

    @property
    def is_number(self) -> bool:
        """Whether it must hold numbers."""
        return self.lowest is not None


@dataclass(slots=True)
class Rows:
    """The good rows of an input."""

    where: str
    frame: Any  # columns by the first of their names
    counted: Any  # the same, to be used in one job: it counts
    observation: Any
    marks: list[str]
    bytes: int

    def check(self) -> list[str]:
        """After the job that used `counted`: what was left out. Raises InputFileError where most of it was."""
        told = self.observation.get
        rows, bad = int(told["rows"]), int(told["bad"] or 0)
        if not rows:
            raise InputFileError(f"{self.where}: holds no rows.")
        if bad * 2 > rows:
            raise InputFileError(
                f"{self.where}: {bad:,} of {rows:,} rows are bad (an empty name, or no number from 0 to "
                f"{MOST_COUNT:g}). Look at its columns: {', '.join(self.frame.columns)} are read."
            )
        return [f"{self.where}: {bad:,} of {rows:,} rows are bad and left out."] if bad else []


def read_parquet(spark: Any, where: str, option: str) -> tuple[Any, list[str], int]:
    """A frame of all files that a path or a pattern names, their marks and bytes; patterns and URIs are Spark's."""
    try:
        marks, size = describe_input(spark, where)
    except Exception as error:  # py4j has no common type for what a file system of Java may raise
        raise InputFileError(f"{option} {where}: cannot be reached ({last_words(error)}).") from error
    if not marks:
        raise InputFileError(f"{option} {where}: no such path. Name Parquet files: a path, a pattern or a folder.")
    for mark in marks:
        _check_magic(mark.rsplit(" ", 2)[0], f"{option} {where}")
    try:
        return spark.read.parquet(where), marks, size
    except (PySparkException, Py4JError) as error:
        raise InputFileError(
            f"{option} {where}: cannot be read as Parquet ({last_words(error)}). --engine spark reads Parquet only."
        ) from error


def _check_magic(uri: str, what: str) -> None:
    """Of a file of this machine: Java would say in pages of traces that it is no Parquet."""
    path = Path(uri.removeprefix("file:"))
    if not uri.startswith("file:") or path.name.startswith(("_", ".")) or not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(4) not in _MAGIC:
            raise InputFileError(
                f"{what}: cannot be read as Parquet ({path} is none). --engine spark reads Parquet only."
            )


def read_rows(
    spark: Any,
    where: str,
    wanted: Sequence[Column],
    option: str,
    *,
    trimmed: bool = False,
    also: Mapping[str, Any] | None = None,
) -> Rows:
    """Columns by name, as commands read Parquet files.

    `also` are conditions by name, of which it is counted how many good rows meet them.
    """
    frame, marks, size = read_parquet(spark, where, option)
    needed = [column for column in wanted if not column.optional]
    places = find_columns(frame.columns, [column.names for column in needed])
    if places is None:
        raise InputFileError(f"{option} {where}: {tell_missing(frame.columns, [one.names for one in needed])}")
    chosen = list(zip(needed, places, strict=True))
    for column in wanted:
        found = find_columns(frame.columns, [column.names]) if column.optional else None
        if found is not None and found[0] not in places:
            chosen.append((column, found[0]))
    fields = frame.schema.fields
    for column, place in chosen:
        if isinstance(
            fields[place].dataType, st.ArrayType | st.MapType | st.StructType | st.BinaryType | st.BooleanType
        ):
            raise InputFileError(
                f"{option} {where}: its column {fields[place].name} is {fields[place].dataType.simpleString()}, and "
                f"must hold {'numbers' if column.is_number else 'names'}."
            )
    cells = [_cell(frame, place, column, trimmed).alias(column.names[0]) for column, place in chosen]
    read = frame.select(*cells)
    good = sf.lit(True)
    for column, _ in chosen:
        good = good & _is_good(column)
    good = sf.coalesce(good, sf.lit(False))
    observation = Observation()
    more = (sf.sum((good & condition).cast("long")).alias(name) for name, condition in (also or {}).items())
    counted = read.observe(
        observation, sf.count(sf.lit(1)).alias("rows"), sf.sum((~good).cast("long")).alias("bad"), *more
    ).filter(good)
    return Rows(where, read.filter(good), counted, observation, marks, size)


def read_if_named(
    spark: Any, where: str | None, wanted: Sequence[Column], option: str, *, trimmed: bool = False
) -> Rows | None:
    """An input that may be left out."""
    return None if where is None else read_rows(spark, where, wanted, option, trimmed=trimmed)


def _cell(frame: Any, place: int, column: Column, trimmed: bool) -> Any:
    cell = sf.col("`" + frame.columns[place].replace("`", "``") + "`")
    if column.is_number:
        return cell.try_cast("double")
    text = cell.cast("string")
    return sf.regexp_replace(text, r"(?U)^\s+|\s+$", "") if trimmed else text


def _is_good(column: Column) -> Any:
    cell = sf.col(column.names[0])
    if column.is_number:
        return cell.isNotNull() & ~sf.isnan(cell) & (cell >= column.lowest) & (cell <= MOST_COUNT)
    return cell.isNotNull() if column.optional else cell.isNotNull() & (cell != "")
