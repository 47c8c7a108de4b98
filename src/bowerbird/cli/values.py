"""How values are written on the command line and shown: durations, counts, folders, JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import orjson

from bowerbird.model.errors import FolderError
from bowerbird.store.folder import is_store_url

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


class Duration(click.ParamType[float]):
    """A time such as 90, 90s, 10m, 2h, 1d; in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds of a written duration."""
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", str(value).strip())
        if not found or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a duration: write 90s, 10m, 2h or 1d.", param, ctx)
        return float(found[1]) * _UNITS[found[2] or "s"]


class Folder(click.ParamType[Path]):
    """A crawl folder."""

    name = "dir"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path as given, unless it cannot be a folder; of a crawl in PostgreSQL, named by its URL, its folder."""
        if is_store_url(str(value)):
            return _find_folder(str(value))
        path = Path(value)
        if path.is_file():
            raise FolderError(f"{path}: is a file, not a folder. Name the folder that `bowerbird init` made.")
        return path


def _find_folder(url: str) -> Path:
    from bowerbird.store.postgres import plain_url
    from bowerbird.store.postgres_schema import find_root

    root = find_root(url)
    if not root.is_dir():
        raise FolderError(
            f"{plain_url(url)}: the folder of this crawl, {root}, is not on this machine. "
            "Mount it; where it has another name here, give that name in place of the URL."
        )
    return root


class NewFolder(click.ParamType[Path]):
    """A place for a crawl folder; who makes it finds out whether it can be used."""

    name = "dir"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path as given."""
        return Path(value)


DURATION = Duration()
FOLDER = Folder()
NEW_FOLDER = NewFolder()


def echo_json(data: Any) -> None:
    """Print one JSON value."""
    click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())


def size_text(size: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")


def time_text(seconds: float) -> str:
    """A length of time as people read it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def count_text(count: int, noun: str) -> str:
    """A number of things: 1 link, 2 links."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def plain_text(text: str) -> str:
    """Text from the web, safe to print: control characters could steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
