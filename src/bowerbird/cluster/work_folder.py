"""Where a job keeps its tables between steps: Parquet in a folder of any file system that Spark knows.

A table is whole or not there: one that was written to its end gets a mark, with its columns (an empty one has no file
that would tell them). So a job that was killed goes on after the last table it finished. Tables are cut into buckets by
page: joining two of them by page, or adding up by page, moves nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from bowerbird.cluster.session import last_words
from bowerbird.model.errors import ConfigError, EngineError

JOB_FILE = "job.json"
KEY = "id"
MARK = "_columns.json"  # in a table's folder; Spark does not read what begins so


class WorkFolder:
    """Tables by name, and small notes, of one job."""

    def __init__(self, spark: Any, root: str, buckets: int) -> None:
        self.spark = spark
        self.buckets = buckets
        self._prefix = f"bowerbird_{uuid.uuid4().hex[:12]}"
        self._jvm = spark.sparkContext._jvm
        here = self._jvm.org.apache.hadoop.fs.Path(root)
        self._files = here.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._root = self._files.makeQualified(here)  # tables at relative places are elsewhere than files are

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root

    def _table(self, name: str) -> str:
        return f"{self._prefix}_{name.replace('-', '_')}"

    # -- tables

    def has(self, name: str) -> bool:
        """Whether a table was written to its end."""
        return bool(self._files.exists(self._path(f"{name}/{MARK}")))

    def save(self, name: str, frame: Any, *, bucketed: bool = True) -> Any:
        """Write a table and give it back as it is read: later steps start from it, not from what made it."""
        self.drop(name)
        where = str(self._path(name).toString())
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema.fields)
        if bucketed:
            writer = frame.repartition(self.buckets, KEY).write.bucketBy(self.buckets, KEY)
            writer.format("parquet").option("path", where).saveAsTable(self._table(name))
        else:
            frame.write.parquet(where)
        self.write_note(f"{name}/{MARK}", {"columns": columns})
        return self.load(name, bucketed=bucketed)

    def load(self, name: str, *, bucketed: bool = True) -> Any:
        """A table that is there."""
        where = str(self._path(name).toString())
        columns = str((self.read_note(f"{name}/{MARK}") or {})["columns"])
        if not bucketed:
            return self.spark.read.schema(columns).parquet(where)
        table = self._table(name)
        if not self.spark.catalog.tableExists(table):
            place = where.replace("\\", "\\\\").replace("'", "\\'")
            self.spark.sql(
                f"CREATE TABLE {table} ({columns}) USING parquet CLUSTERED BY ({KEY}) INTO {self.buckets} BUCKETS "
                f"LOCATION '{place}'"
            )
        return self.spark.table(table)

    def once(self, name: str, make: Callable[[], Any], *, bucketed: bool = True) -> Any:
        """The table as an earlier run left it, or made now."""
        return self.load(name, bucketed=bucketed) if self.has(name) else self.save(name, make(), bucketed=bucketed)

    def drop(self, *names: str) -> None:
        """Remove tables, also what is left of one that was not finished."""
        for name in names:
            self.spark.sql(f"DROP TABLE IF EXISTS {self._table(name)}")
            self._files.delete(self._path(name), True)

    # -- notes

    def read_note(self, name: str) -> dict[str, Any] | None:
        """A small note; None where there is none."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            text = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode("utf-8")
        finally:
            stream.close()
        found: dict[str, Any] = json.loads(text)
        return found

    def write_note(self, name: str, note: Mapping[str, Any]) -> None:
        """Written last, after the tables that it speaks of; whole or not at all, for it gets its name at the end."""
        text = json.dumps(note, sort_keys=True)
        passing, place = self._path(f"{name}.new"), self._path(name)
        stream = self._files.create(passing, True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()
        self._files.delete(place, False)
        if not self._files.rename(passing, place):
            raise EngineError(f"{place.toString()}: cannot be written. Name another --work.")

    def numbered_notes(self, prefix: str) -> list[int]:
        """The numbers of notes that are called prefix and number."""
        found = self._files.globStatus(self._path(f"{prefix}*.json")) or []
        names = (str(status.getPath().getName()) for status in found)
        return [int(name.removeprefix(prefix).removesuffix(".json")) for name in names]

    def names(self) -> set[str]:
        """What is in the folder."""
        if not self._files.exists(self._path("")):
            return set()
        return {str(status.getPath().getName()) for status in self._files.listStatus(self._path(""))}

    def remove(self, name: str = "") -> None:
        """A note, or without a name the whole folder."""
        self._files.delete(self._path(name), True)


def open_work(spark: Any, root: str, job: Mapping[str, Any], buckets: int, say: Callable[[str], None]) -> WorkFolder:
    """The folder of a job: a new one, or that of the same job, which then goes on.

    Raises ConfigError for a folder that holds another job, or anything else.
    """
    wanted = json.loads(json.dumps(job))
    try:
        work = WorkFolder(spark, root, buckets)
        told = work.read_note(JOB_FILE)
        if told is None:
            if work.names() - {f"{JOB_FILE}.new"}:
                raise ConfigError(f"--work {root}: is not empty and holds no job. Name a folder of its own.")
            work.write_note(JOB_FILE, {"job": wanted, "buckets": buckets})
            return work
    except (Py4JError, PySparkException, ValueError) as error:
        raise ConfigError(f"--work {root}: cannot be used ({last_words(error)}). Name another folder.") from error
    if told.get("job") != wanted:
        others = ", ".join(sorted(key for key, value in wanted.items() if told.get("job", {}).get(key) != value))
        raise ConfigError(
            f"--work {root}: holds another job (it differs in {others or 'what it does'}). Name another folder, or "
            "remove this one."
        )
    if told["buckets"] != buckets:
        work = WorkFolder(spark, root, int(told["buckets"]))
        spark.conf.set("spark.sql.shuffle.partitions", str(work.buckets))
    say(f"{root}: the job goes on where it was left.")
    return work


def describe_input(spark: Any, where: str) -> tuple[list[str], int]:
    """What a path or a pattern names, as a mark that changes with it, and its bytes; ([], 0) where there is nothing."""
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(where)
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    found = files.globStatus(path)
    if not found:
        return [], 0
    marks, size = [], 0
    for status in found:
        length = int(files.getContentSummary(status.getPath()).getLength())
        size += length
        marks.append(f"{status.getPath().toString()} {length} {status.getModificationTime()}")
    return sorted(marks), size
