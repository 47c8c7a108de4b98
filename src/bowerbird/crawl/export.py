"""A crawl for other tools: WARC, CDXJ, Parquet, JSON lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from bowerbird.crawl.reading import Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.texts import read_archived
from bowerbird.crawl.view import clock_text
from bowerbird.model.errors import BowerbirdError, InputFileError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.cdxj import write_cdxj
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.web.url import Canonicaliser

FORMATS = ("warc", "cdxj", "parquet", "jsonl")
PARQUET_ROWS = 5000

Show = Callable[[int], None]


def export_crawl(root: Path, form: str, out: Path, *, text: bool = True, show: Show | None = None) -> int:
    """Write the crawl to `out`; returns how many records (files, for WARC) were written."""
    folder = CrawlFolder(root)
    folder.check()
    try:
        if form == "warc":
            return _export_warc(folder, out)
        if form == "cdxj":
            with out.open("w", encoding="utf-8") as target:
                return write_cdxj(folder.archive, target)
        rows = _rows(folder, text=text, show=show)
        return _export_jsonl(rows, out) if form == "jsonl" else _export_parquet(rows, out)
    except OSError as error:
        raise InputFileError(f"{out}: cannot be written ({error.strerror}). Choose another place.") from error


def _export_warc(folder: CrawlFolder, out: Path) -> int:
    """Files side by side into a folder, or one after another into a single .warc.gz (members may be joined)."""
    repository = Repository(folder, write=False)
    ends = repository.archive_ends()
    repository.close()
    single = out.name.endswith(".warc.gz")
    if not single:
        out.mkdir(parents=True, exist_ok=True)
    elif out.exists():
        out.unlink()
    for name, end in sorted(ends.items()):
        with (
            (folder.archive / name).open("rb") as source,
            (out if single else out / name).open("ab" if single else "wb") as target,
        ):
            left = end
            while left > 0 and (part := source.read(min(left, 1 << 20))):
                target.write(part)
                left -= len(part)
    return len(ends)


def _rows(folder: CrawlFolder, *, text: bool, show: Show | None) -> Iterator[dict[str, Any]]:
    settings = load_settings(folder.config)
    repository = Repository(folder, write=False, default_interval_s=settings.refresh.interval_s)
    reader = Reader(
        Canonicaliser(settings.urls),
        Scope(settings.scope_rules, repository.seeds()),
        agent=settings.crawl.product,
        hash_seed=repository.table.seed,
    )
    columns = repository.table.columns
    for row, url in repository.connection.execute("SELECT id, url FROM urls ORDER BY id"):
        if row >= columns.count:
            break
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
            record |= _content(repository, reader, row, url)
        if show is not None:
            show(row + 1)
        yield record
    repository.close()


def _content(repository: Repository, reader: Reader, row: int, url: str) -> dict[str, Any]:
    empty = {"title": None, "language": None, "text": None}
    version = repository.version(row)
    result = None if version is None else read_archived(repository, version, url)
    if result is None:
        return empty
    report = reader.read(result)
    if report.outcome is not Outcome.OK:
        return empty
    return {"title": report.title, "language": report.language, "text": report.text}


def _export_jsonl(rows: Iterator[dict[str, Any]], out: Path) -> int:
    count = 0
    with out.open("wb") as target:
        for record in rows:
            target.write(orjson.dumps(record) + b"\n")
            count += 1
    return count


def _export_parquet(rows: Iterator[dict[str, Any]], out: Path) -> int:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise BowerbirdError("--format parquet needs pyarrow: pip install 'bowerbird[parquet]'.") from error
    count = 0
    writer = None
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
    partial = out.with_name(out.name + ".partial")
    writer = parquet.ParquetWriter(partial, schema)
    for record in rows:
        count += 1
        batch.append(record)
        if len(batch) >= PARQUET_ROWS:
            writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
            batch.clear()
    writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
    writer.close()
    shutil.move(partial, out)
    return count
