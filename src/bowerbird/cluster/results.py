"""What a job found, brought here or written where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from bowerbird.cluster.session import last_words
from bowerbird.model.errors import ConfigError

#: rows that are brought to the driver; more are written where they are
MOST_COLLECTED = 1_000_000


def check_place(spark: Any, out: str, option: str) -> None:
    """Before the work: whether Spark may write to a URI, and would overwrite nothing there but a former result."""
    place = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(out)
    try:
        files = place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        found = files.listStatus(place) if files.exists(place) else []
        names = sorted(str(status.getPath().getName()) for status in found)
        others = [name for name in names if not name.startswith(("part-", "_", "."))]
        if not others:
            mark = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(place, "_begun")
            files.create(mark, True).close()
            files.delete(mark, False)
    except (Py4JError, PySparkException) as error:
        raise ConfigError(f"{option} {out}: cannot be written ({last_words(error)}). Name another place.") from error
    if others:
        raise ConfigError(f"{option} {out}: holds other things ({others[0][:60]}). Name a folder of its own.")


def take_rows(frame: Any, order: Sequence[tuple[str, bool]], count: int, out: str | None) -> dict[str, list[Any]]:
    """The first `count` rows, 0 = all, by columns of which some fall; {} where Spark wrote them to `out`.

    It does where `out` is a URI, or where there are more than the driver should hold: then `out` is a folder.
    """
    ordered = frame.orderBy(*(sf.desc(name) if falls else sf.asc(name) for name, falls in order))
    some = ordered.limit(count) if count else ordered
    by_spark = out is not None and "://" in out
    if not by_spark and (not count or count > MOST_COLLECTED):
        by_spark = frame.limit(MOST_COLLECTED + 1).count() > MOST_COLLECTED
        if by_spark and out is None:
            raise ConfigError(f"-n {count}: more than {MOST_COLLECTED:,} rows need --out.")
        if by_spark and not str(out).endswith(".parquet"):
            raise ConfigError(
                f"--out {out}: Spark writes more than {MOST_COLLECTED:,} rows, to a folder of Parquet. Name a .parquet."
            )
    if by_spark:
        some.write.mode("overwrite").parquet(out)
        return {}
    table = some.toArrow()
    return {name: table.column(name).to_pylist() for name in frame.columns}
