"""Tables that commands give back: on the screen, or in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from bowerbird.cli.values import plain_text
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
