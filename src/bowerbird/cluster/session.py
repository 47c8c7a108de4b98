"""A session of Spark, with what these jobs need; and what to say where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bowerbird.model.errors import ConfigError, EngineError

LEAST_JAVA = 17
#: plans are made so that tables stay where they are: Spark must not cut or broadcast them by its own guess
_FIXED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.catalogImplementation": "in-memory",
}
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Where Spark runs, and with which of its settings."""

    master: str | None = None  # None = what spark-submit says, otherwise all cores of this machine
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int | None:
        """Pieces that tables are cut into, where a person said so."""
        said = self.conf.get(SHUFFLE_PARTITIONS)
        if said is None:
            return None
        if not re.fullmatch("[1-9][0-9]{0,6}", said):
            raise ConfigError(f"--conf {SHUFFLE_PARTITIONS}={said}: must be a whole number above 0.")
        return int(said)


def parse_conf(pairs: tuple[str, ...]) -> dict[str, str]:
    """Settings of Spark as written: key=value.

    >>> parse_conf(("spark.driver.memory=4g",))
    {'spark.driver.memory': '4g'}
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip().startswith("spark."):
            raise ConfigError(f"--conf {pair}: write a setting of Spark as key=value, such as spark.driver.memory=4g.")
        found[key.strip()] = value.strip()
    if "spark.sql.catalogImplementation" in found:
        raise ConfigError("--conf spark.sql.catalogImplementation: tables are kept in --work. Leave it out.")
    return found


def check_java() -> None:
    """Raises ConfigError where no Java, or too old a one, is found: Spark would say it in a page of traces."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = (
        f"Spark needs Java {LEAST_JAVA} or later. Install it (e.g. apt-get install default-jre-headless), or set "
        "JAVA_HOME."
    )
    if java is None or not Path(java).is_file():
        raise ConfigError(f"{'JAVA_HOME ' + home if home else 'PATH'}: no java there. {remedy}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{java}: does not run ({error}). {remedy}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    if told.returncode or (found and int(found[1]) < LEAST_JAVA):
        said = (told.stderr or told.stdout).strip().split("\n")[0]
        raise ConfigError(f"{java}: {said[:120] or 'does not run'}. {remedy}")


def check_pyspark() -> None:
    """Raises ConfigError where the extra is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "PySpark is not installed: --engine spark works with it. Install it with pip install 'bowerbird[spark]'."
        ) from error


@contextmanager
def open_spark(choice: SparkChoice, partitions: int | None = None) -> Iterator[Any]:
    """A session for one command; one that runs already in this process is used and left as it was."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # we need none of it
    check_pyspark()
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        with _set(running, _FIXED | dict(choice.conf), partitions):
            yield running
        return
    check_java()
    builder = SparkSession.builder.appName("bowerbird")
    master = choice.master
    if master is None and "SPARK_ENV_LOADED" not in os.environ and "MASTER" not in os.environ:
        master = "local[*]"
    settings = _FIXED | _QUIET
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings |= _LOCAL
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if partitions is not None:
        settings[SHUFFLE_PARTITIONS] = str(partitions)
    for key, value in (settings | dict(choice.conf)).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # py4j wraps what Java says, and what its process did
        said = str(error).strip().split("\n")
        shown = next((line.strip() for line in said if "Exception" in line and "py4j" not in line), said[0])
        raise ConfigError(
            f"Spark did not start at {master or 'the place spark-submit named'} ({shown[:200]}). Look at --master and "
            "--conf."
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        with suppress(Py4JError, ConnectionError):  # Java may be gone; what went wrong is told already
            session.stop()


@contextmanager
def telling_failures() -> Iterator[None]:
    """What Spark could not do, in the words of its last cause, as an error of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:  # the last where Java is gone
        raise EngineError(
            f"Spark did not finish the job: {last_words(error)}. With --work DIR the next run goes on from there."
        ) from error


def last_words(error: BaseException) -> str:
    """What went wrong, in one line of all that Java says: the last cause, or the exception itself.

    >>> last_words(ValueError("An error occurred while calling o1.x.\\n: java.io.IOException: full\\n\\tat a.b(c)"))
    'java.io.IOException: full'
    """
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line.lstrip(": ") for line in lines if line.startswith(": ")]
    return next(iter([*causes[-1:], *raised, *lines, "no reason"]))[:300]


@contextmanager
def _set(session: Any, settings: Mapping[str, str], partitions: int | None) -> Iterator[None]:
    """Settings of a running session, those that can be set, as they were afterwards."""
    wanted = dict(settings) | ({} if partitions is None else {SHUFFLE_PARTITIONS: str(partitions)})
    before = {SHUFFLE_PARTITIONS: session.conf.get(SHUFFLE_PARTITIONS, None)}  # jobs choose it by their size
    for key, value in wanted.items():
        if session.conf.isModifiable(key):
            before[key] = session.conf.get(key, None)
            session.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)
