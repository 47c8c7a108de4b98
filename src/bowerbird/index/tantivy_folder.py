"""The folder of an index: its fields, the mark that says who made it, and opening it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NoReturn

import orjson
import tantivy

from bowerbird.index.analysis import build_analyzer
from bowerbird.index.tantivy_query import FIELD_WEIGHTS
from bowerbird.model.errors import DiskFullError, FolderError, IndexHeldError

SCHEMA_VERSION = 1

_DISK_FULL = ("No space left", "os error 28", "os error 27", "os error 122")  # ENOSPC, EFBIG, EDQUOT
_MARK = "bowerbird-index.json"
_META = "meta.json"
_ANALYZER_NAME = "bowerbird"
_REMEDY = "move the folder away and build the index again from the archive"


def build_schema(*, store_text: bool = True) -> tantivy.Schema:
    """The fields. `card` holds what a hit shows besides title and text."""
    builder = tantivy.SchemaBuilder()
    # Signed, though never negative: the binding deletes by a signed term, which matches no unsigned value.
    builder.add_integer_field("page", stored=True, indexed=True, fast=True)
    for name in FIELD_WEIGHTS:
        stored = name == "title" or (name == "text" and store_text)
        builder.add_text_field(name, stored=stored, tokenizer_name=_ANALYZER_NAME, index_option="position")
    builder.add_text_field("site", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("language", tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("card", stored=True)
    return builder.build()


def open_for_writing(
    folder: Path, store_text: bool, heap_bytes: int, threads: int
) -> tuple[tantivy.Index, tantivy.IndexWriter]:
    """The index, made where there is none, and its writer; an IndexHeldError where another process writes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_mark(folder)
        write_mark(folder)
        index = tantivy.Index(build_schema(store_text=store_text), path=str(folder))
        configure(index)
        return index, index.writer(heap_bytes, threads)
    except (ValueError, OSError) as error:
        if "LockBusy" in str(error):
            raise IndexHeldError(f"index {folder}: another process is writing to it; stop that crawl first") from error
        fail(folder, error)


def state_mark(folder: Path) -> tuple[int, int, int] | None:
    """Another one after each commit; None where there is no index."""
    try:
        found = (folder / _META).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def open_existing(folder: Path) -> tantivy.Index | None:
    """The index for reading; None where there is none."""
    check_mark(folder)
    if not (folder / _META).exists():
        return None
    try:
        index = tantivy.Index.open(str(folder))
        configure(index)
    except (ValueError, OSError) as error:
        fail(folder, error)
    return index


def configure(index: tantivy.Index) -> None:
    """What is not kept in the folder: how text becomes words, and that a reader looks for commits when told to."""
    index.register_tokenizer(_ANALYZER_NAME, build_analyzer())
    index.config_reader("manual")


def check_mark(folder: Path) -> None:
    """Refuse an index that another version, or another program, has made."""
    try:
        mark = json.loads((folder / _MARK).read_bytes())
        version = mark["schema"]
    except (FileNotFoundError, NotADirectoryError):
        if not (folder / _META).exists():
            return
        version = None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FolderError(f"index {folder}: {_MARK} cannot be read ({error}); {_REMEDY}") from error
    if version != SCHEMA_VERSION:
        raise FolderError(
            f"index {folder}: its schema is version {version}, this program reads {SCHEMA_VERSION}; {_REMEDY}"
        )


def write_mark(folder: Path) -> None:
    """Say who made it."""
    if (folder / _MARK).exists():
        return
    draft = folder / (_MARK + ".new")
    with draft.open("wb") as stream:
        stream.write(orjson.dumps({"engine": "tantivy", "schema": SCHEMA_VERSION}))
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(folder / _MARK)


def fail(folder: Path, error: Exception) -> NoReturn:
    """An error of the engine, in our words."""
    if any(sign in str(error) for sign in _DISK_FULL):
        raise DiskFullError(f"index {folder}: the disk is full; free some space and resume") from error
    raise FolderError(f"index {folder}: {error}; if it stays so, {_REMEDY}") from error
