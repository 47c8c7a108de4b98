"""Files of page texts in lab data: a packed folder of HTML, and files with a JSON record a line."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import orjson

from bowerbird.lab.data_files import COMPRESSED, one_line, read_bytes
from bowerbird.model.errors import InputFileError

T = TypeVar("T")


def find_html(folder: Path) -> Path | None:
    """The packed folder of HTML, if there is one."""
    return _first(folder / f"html.tar.{ending}" for ending in ("xz", "gz", "bz2"))


def find_records(folder: Path, *stems: str) -> Path | None:
    """The first file of records with any of these names: texts -> texts.jsonl, texts.jsonl.gz…"""
    return _first(folder / f"{stem}.jsonl{packed}" for stem in stems for packed in COMPRESSED)


def _first(paths: Iterator[Path]) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def read_html(
    path: Path, wanted: Callable[[str, tarfile.TarInfo], bool] = lambda page, member: True
) -> Iterator[tuple[str, bytes]]:
    """Pages that are wanted and their bytes: a page's file is its name and .htm or .html, in whichever folder."""
    try:
        with tarfile.open(path) as packed:
            for member in packed:
                file = PurePosixPath(member.name)
                if file.suffix not in (".htm", ".html") or not wanted(file.stem, member):
                    continue
                body = packed.extractfile(member)
                if body is not None:
                    yield file.stem, body.read()
    except (tarfile.TarError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise InputFileError(
            f"{path}: cannot be unpacked ({one_line(error)}). Get a whole copy of the file."
        ) from error


def read_records(path: Path, read: Callable[[Any], T], fields: str) -> Iterator[T]:
    """What `read` makes of each line's record; a line that is none, or lacks a field, is named in an InputFileError."""
    for line, record in enumerate(read_bytes(path).split(b"\n"), 1):
        if not record.strip():
            continue
        try:
            made = read(orjson.loads(record))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise InputFileError(
                f"{path}, line {line}: not a record of {fields} ({error!r}). docs/lab-data.md has the format."
            ) from error
        yield made
