"""What is said where Spark cannot run, or is asked for what it does not have."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.conftest import Command, command
from tests.cli.test_rank import CLICKS, LINKS

from bowerbird.cluster.session import SparkChoice, check_java, open_spark, parse_conf
from bowerbird.model.errors import ConfigError

__all__ = ["command"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    links, clicks = tmp_path / "links.parquet", tmp_path / "clicks.parquet"
    parquet.write_table(pa.table({"source": [a for a, _ in LINKS], "target": [b for _, b in LINKS]}), links)
    parquet.write_table(pa.table({"page": [page for page, _ in CLICKS], "clicks": [n for _, n in CLICKS]}), clicks)
    return links, clicks


def ask(command: Command, files: tuple[Path, Path], *more: str) -> str:
    ran = command("rank", "--links", files[0], "--clicks", files[1], *more)
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err
    return ran.err


def test_without_pyspark_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, files: tuple[Path, Path], command: Command
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert "pip install 'bowerbird[spark]'" in ask(command, files, "--engine", "spark")


def test_what_pyspark_says_of_pandas_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ConfigError), open_spark(SparkChoice()):
            pass
        warnings.warn("PySpark does not yet fully support pandas >= 3.0.0.", FutureWarning, stacklevel=1)
        warnings.warn("another", FutureWarning, stacklevel=1)
    assert [str(one.message) for one in told] == ["another"]


def test_without_java_a_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="default-jre-headless"):
        check_java()


def test_a_java_that_is_too_old_or_broken_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for script in ("echo 'openjdk version \"1.8.0_392\"' >&2", "exit 1"):
        java.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        java.chmod(0o755)
        with pytest.raises(ConfigError, match="Java 17 or later"):
            check_java()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n", encoding="utf-8")
    check_java()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--master", "local[2]"), "--master: is for Spark"),
        (("--conf", "spark.x=1"), "--conf: is for Spark"),
        (("--work", "somewhere"), "--work: is for Spark"),
        (("--engine", "spark", "--conf", "memory"), "--conf memory"),
        (("--engine", "spark", "--conf", "spark.sql.shuffle.partitions=0"), "must be a whole number above 0"),
        (("--engine", "spark", "--method", "learned"), "--engine spark has indegree, pagerank, rw, rw-eg"),
        (("--engine", "spark", "--queries", "q.tsv"), "--queries"),
        (("--engine", "spark", "--master", "spark://127.0.0.1:1"), "--work"),
        (("--engine", "spark", "--out", "there.txt"), "must end in"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    more: tuple[str, ...], told: str, files: tuple[Path, Path], command: Command
) -> None:
    assert told in ask(command, files, *more)


def test_seeds_refuse_what_spark_does_not_have(files: tuple[Path, Path], command: Command) -> None:
    for more in (("--method", "maxout"), ("--per-site",), ("--memory", "1"), ("--no-bound",)):
        ran = command("seeds", "--links", files[0], "--engine", "spark", *more)
        assert ran.code == 2
        assert more[0] in ran.err


def test_the_local_engine_reads_files(files: tuple[Path, Path], command: Command) -> None:
    ran = command("rank", "--links", "s3://bucket/links", "--clicks", files[1])
    assert ran.code == 2
    assert "s3://bucket/links" in ran.err
    assert "--engine spark" in ran.err


def test_settings_are_read_as_written() -> None:
    assert parse_conf(("spark.a=b=c", " spark.d = e ")) == {"spark.a": "b=c", "spark.d": "e"}
    assert SparkChoice(conf={"spark.sql.shuffle.partitions": "12"}).partitions == 12
