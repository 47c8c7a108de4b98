"""Tables that commands give back: on the screen, or in a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import bowerbird
from bowerbird.cli.values import echo_json, plain_text
from bowerbird.model.errors import ConfigError

#: of files that a table can be written to
ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


def is_uri(path: str) -> bool:
    """Whether Spark is to write there."""
    return "://" in path


def check_table_path(path: str | Path, option: str = "--out") -> None:
    """Before the work, and not after it."""
    out = Path(path)
    if not out.name.endswith(ENDINGS):
        raise ConfigError(f"{option} {out}: must end in {', '.join(ENDINGS)}.")
    if out.is_dir():
        raise ConfigError(f"{option} {out}: is a folder. Name a file.")
    if not out.parent.is_dir():
        raise ConfigError(f"{option} {out}: there is no folder {out.parent}. Make it, or name another place.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"{option} {out}: may not be written. Name another place.")


def table_options(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """-n, --out and --json of a command whose result is a table: `count`, `out`, `as_json`."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        options = (
            click.option(
                "-n", "count", type=click.IntRange(min=0), default=count, show_default=True, help="How many; 0 = all."
            ),
            click.option(
                "--out", default=None, metavar="FILE", help="Write a .parquet, .csv (.gz) or .tsv (.gz) file."
            ),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs."),
        )
        for option in reversed(options):
            command = option(command)
        return command

    return add


def give_result(
    facts: dict[str, Any], columns: dict[str, list[Any]], out: str | None, as_json: bool, words: Sequence[str]
) -> None:
    """A table as its options say; it has no columns where Spark wrote it."""
    if as_json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        echo_json({**facts, "rows": rows, "command": shlex.join(words), "version": bowerbird.__version__})
    if columns and (out is not None or not as_json):
        give_table(columns, out)
    if out is not None:
        click.echo(f"{out}: written.", err=True)


def give_table(columns: dict[str, Any], out: str | Path | None) -> None:
    """Columns, the first of them of names, to a file or as lines."""
    if out is not None:
        from bowerbird.cli.graph_files import write_table

        write_table(Path(out), columns)
        return
    lines = ["\t".join(columns)]
    for name, *numbers in zip(*columns.values(), strict=True):
        cells = (f"{number:.6g}" if isinstance(number, float) else plain_text(str(number)) for number in numbers)
        lines.append("\t".join((plain_text(name), *cells)))
    click.echo("\n".join(lines))
