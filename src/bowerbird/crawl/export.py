"""A crawl for other tools: WARC, CDXJ, Parquet, JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.reading import RESOLVED_KEPT, Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.texts import read_archived
from bowerbird.model.errors import ArchiveError, BowerbirdError, InputFileError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.cdxj import write_cdxj
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.web.url import Canonicaliser

FORMATS = ("warc", "cdxj", "parquet", "jsonl")
BINARY_FORMATS = ("warc", "parquet")
PARQUET_ROWS = 5000
NO_CONTENT: dict[str, Any] = {"title": None, "language": None, "text": None}

Show = Callable[[int], None]


def export_crawl(root: Path, form: str, out: Path | BinaryIO, *, text: bool = True, show: Show | None = None) -> int:
    """Write the crawl to `out`, a path or an open stream; how many records (files, for WARC) were written.

    What is at a path is replaced when all is written, not before.
    """
    folder = CrawlFolder(root)
    folder.check()
    if not isinstance(out, Path):
        count = _write(folder, form, out, text=text, show=show)
        out.flush()
        return count
    _check_place(out)
    try:
        if form == "warc" and not out.name.endswith(".warc.gz"):
            return _export_warc_files(folder, out)
        with _draft(out) as draft, draft.open("wb") as target:
            return _write(folder, form, target, text=text, show=show)
    except OSError as error:
        raise InputFileError(f"{out}: cannot be written ({error.strerror}). Choose another place.") from error


def _write(folder: CrawlFolder, form: str, target: BinaryIO, *, text: bool, show: Show | None) -> int:
    if form == "warc":
        return _export_warc(folder, target)
    if form == "cdxj":
        lines = TextIOWrapper(target, encoding="utf-8")
        try:
            return write_cdxj(folder.archive, lines, ends=_archive_ends(folder))
        finally:
            lines.detach()
    rows = _rows(folder, text=text, show=show)
    return _export_jsonl(rows, target) if form == "jsonl" else _export_parquet(rows, target)


def _check_place(out: Path) -> None:
    """Nothing is written into a crawl folder, this one or another: everything in it has a name of its own."""
    place = out.resolve()
    for part in (place, *place.parents):
        if CrawlFolder(part).config.exists() and CrawlFolder(part).has_database():
            raise InputFileError(
                f"{out}: is inside the crawl folder {part}, which it could damage. Choose another place."
            )


@contextmanager
def _draft(out: Path) -> Iterator[Path]:
    """A file beside `out` that takes its place at the end; what is no file (a pipe) is written to as it is."""
    if out.is_dir():
        raise InputFileError(f"{out}: is a folder. Name a file to write to.")
    if out.exists() and not out.is_file():
        yield out
        return
    place = out.resolve()
    draft = place.with_name(place.name + ".partial")
    try:
        yield draft
        draft.replace(place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _archive_ends(folder: CrawlFolder) -> dict[str, int]:
    """How far each archive file is acknowledged; raises when one does not reach so far."""
    state = CommittedState(folder)
    try:
        ends = state.archive_ends()
    finally:
        state.close()
    for name, end in sorted(ends.items()):
        path = folder.archive / name
        if not path.is_file():
            raise ArchiveError(f"archive file {path} is missing: put it back, then export again.")
        if (size := path.stat().st_size) < end:
            raise ArchiveError(
                f"archive file {path} has {size} bytes, {end} were acknowledged: restore it from a copy."
            )
    return ends


def _export_warc(folder: CrawlFolder, target: BinaryIO) -> int:
    """One after another into a single file: gzip members may be joined."""
    ends = _archive_ends(folder)
    for name in sorted(ends):
        _copy_start(folder.archive / name, ends[name], target)
    return len(ends)


def _export_warc_files(folder: CrawlFolder, out: Path) -> int:
    """Files side by side into a folder."""
    ends = _archive_ends(folder)
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as drafts:  # all of them take their places, or none
        for name in sorted(ends):
            with drafts.enter_context(_draft(out / name)).open("wb") as target:
                _copy_start(folder.archive / name, ends[name], target)
    return len(ends)


def _copy_start(path: Path, length: int, target: BinaryIO) -> None:
    with path.open("rb") as source:
        while length > 0 and (part := source.read(min(length, 1 << 20))):
            target.write(part)
            length -= len(part)


def _rows(folder: CrawlFolder, *, text: bool, show: Show | None) -> Iterator[dict[str, Any]]:
    settings = load_settings(folder.config)
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    reader = Reader(
        Canonicaliser(settings.urls, RESOLVED_KEPT),
        Scope(settings.scope_rules, repository.seeds()),
        agent=settings.crawl.product,
        hash_seed=repository.table.seed,
    )
    columns = repository.table.columns
    known = repository.connection.scan("SELECT id, url FROM urls WHERE id < ? ORDER BY id", (columns.count,))
    for row, url in chain.from_iterable(known):
        record: dict[str, Any] = {
            "url": url,
            "state": UrlState(int(columns["state"][row])).name.lower(),
            "kind": UrlKind(int(columns["kind"][row])).name.lower(),
            "depth": int(columns["depth"][row]),
            "first_seen": clock_text(float(columns["first_seen"][row])),
            "last_fetched": clock_text(float(columns["last_fetched"][row])),
            "last_changed": clock_text(float(columns["last_changed"][row])),
            "fetches": int(columns["fetches"][row]),
            "changes": int(columns["changes"][row]),
            "in_links": int(columns["in_degree"][row]),
        }
        if text:
            forgotten = columns["state"][row] == UrlState.FORGOTTEN
            record |= NO_CONTENT if forgotten else _content(repository, reader, row, url)
        if show is not None:
            show(row + 1)
        yield record
    repository.close()


def _content(repository: Repository, reader: Reader, row: int, url: str) -> dict[str, Any]:
    version = repository.version(row)
    result = None if version is None else read_archived(repository, version, url)
    if result is None:
        return NO_CONTENT
    report = reader.read(result)
    if report.outcome is not Outcome.OK:
        return NO_CONTENT
    return {"title": report.title, "language": report.language, "text": report.text}


def _export_jsonl(rows: Iterator[dict[str, Any]], target: BinaryIO) -> int:
    count = 0
    for record in rows:
        target.write(orjson.dumps(record) + b"\n")
        count += 1
    return count


def _export_parquet(rows: Iterator[dict[str, Any]], target: BinaryIO) -> int:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise BowerbirdError("--format parquet needs pyarrow: pip install 'bowerbird[parquet]'.") from error
    count = 0
    batch: list[dict[str, Any]] = []
    schema = arrow.schema(
        [
            *((name, arrow.string()) for name in ("url", "state", "kind")),
            ("depth", arrow.int32()),
            *((name, arrow.string()) for name in ("first_seen", "last_fetched", "last_changed")),
            *((name, arrow.int64()) for name in ("fetches", "changes", "in_links")),
            *((name, arrow.string()) for name in ("title", "language", "text")),
        ]
    )
    with parquet.ParquetWriter(target, schema) as writer:
        for record in rows:
            count += 1
            batch.append(record)
            if len(batch) >= PARQUET_ROWS:
                writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
                batch.clear()
        writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
    return count
