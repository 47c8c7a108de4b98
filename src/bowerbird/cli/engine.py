"""Which engine does the sums: options that commands share, and a session of Spark for one command."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bowerbird.cli.table_files import check_table_path, is_uri
from bowerbird.cli.values import plain_text
from bowerbird.model.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from bowerbird.cluster.session import SparkChoice

LOCAL, SPARK = "local", "spark"


@dataclass(frozen=True, slots=True)
class Engine:
    """What was said about the engine."""

    name: str
    master: str | None
    conf: tuple[str, ...]
    work: str | None

    @property
    def is_spark(self) -> bool:
        """Whether Spark is to do it."""
        return self.name == SPARK

    def check(self) -> None:
        """Raises ConfigError for options of Spark without Spark."""
        if self.is_spark:
            return
        for option, value in (("--master", self.master), ("--conf", self.conf), ("--work", self.work)):
            if value:
                raise ConfigError(f"{option}: is for Spark. Add --engine spark, or leave it out.")

    def words(self) -> list[str]:
        """As it is written on a command line."""
        if not self.is_spark:
            return []
        words = ["--engine", self.name, *(["--master", self.master] if self.master else [])]
        words += [word for pair in self.conf for word in ("--conf", pair)]
        return words + (["--work", self.work] if self.work else [])

    def choice(self) -> SparkChoice:
        """For a session."""
        from bowerbird.cluster.session import SparkChoice, parse_conf

        return SparkChoice(self.master, parse_conf(self.conf))

    def check_tables(self, *outs: tuple[str, str | None]) -> None:
        """Before the work: options of tables to write, and where. What is at a URI is for Spark to look at."""
        for option, path in outs:
            if path is not None and not (self.is_spark and is_uri(path)):
                check_table_path(path, option)

    @contextmanager
    def session(self, *outs: tuple[str, str | None]) -> Iterator[tuple[Any, str]]:
        """A session of Spark, and the folder that its job works in: a passing one, where none was named.

        `outs` are options of tables to write, and where.
        """
        from bowerbird.cluster.session import open_spark, telling_failures

        choice = self.choice()
        on_cluster = self.master is not None and not self.master.startswith("local")
        if self.work is None and on_cluster:
            raise ConfigError(
                f"--master {self.master}: its machines need a folder that all of them reach. Name one with --work."
            )
        with (
            tempfile.TemporaryDirectory(prefix="bowerbird-spark-", ignore_cleanup_errors=True) as passing,
            open_spark(choice, choice.partitions) as spark,
            telling_failures(),
        ):
            from bowerbird.cluster.results import check_place

            for option, path in outs:
                if path is not None and is_uri(path):
                    check_place(spark, path, option)
            yield spark, self.work or str(Path(passing) / "work")


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """--engine, --master, --conf and --work, which the command gets as one `engine`."""

    @wraps(command)
    def run(*, engine: str, master: str | None, conf: tuple[str, ...], work: str | None, **more: Any) -> None:
        chosen = Engine(engine, master, conf, work)
        chosen.check()
        command(engine=chosen, **more)

    options = (
        click.option(
            "--engine",
            type=click.Choice((LOCAL, SPARK)),
            default=LOCAL,
            show_default=True,
            help="spark: for what does not fit; reads Parquet (paths, patterns, URIs).",
        ),
        click.option("--master", default=None, metavar="URL", help="Where Spark runs.  [default: local[*]]"),
        click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; can be given repeatedly."),
        click.option(
            "--work",
            default=None,
            metavar="DIR",
            help="Where Spark keeps its tables; a job that was killed goes on from there.",
        ),
    )
    for option in reversed(options):
        option(run)
    return run


def say(text: str) -> None:
    """Tell how a job goes on."""
    click.echo(plain_text(text), err=True)


def local_path(text: str | None, option: str) -> Path | None:
    """A path for the local engine, which reads one file at a time."""
    if text is None:
        return None
    if "://" in text:
        raise InputFileError(f"{option} {text}: the local engine reads files. Add --engine spark, or name a file.")
    if "*" in text and not Path(text).exists():
        raise InputFileError(f"{option} {text}: the local engine reads one file. Add --engine spark, or name a file.")
    return Path(text)
