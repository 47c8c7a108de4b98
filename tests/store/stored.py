"""What the tests of the store share: folders, records, and the whole of a repository as something to compare."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bowerbird.lab.postgres_server import PostgresServer
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres import PostgresConnection
from bowerbird.store.postgres_schema import create_store
from bowerbird.store.records import FetchRecord
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import HostTable, anchor_mark

INTERVAL_S = 3600.0
AT = 1_700_000_000.25


Maker = Callable[[Path], CrawlFolder]


def make_folder(root: Path, store: str = "") -> CrawlFolder:
    """A crawl folder with an empty database, in it or where a URL says."""
    root.mkdir(parents=True, exist_ok=True)
    folder = CrawlFolder(root)
    folder.config.write_text("", encoding="utf-8")
    if store:
        create_store(folder, store)
    else:
        Repository.create(root)
    return folder


def new_schema(server: PostgresServer) -> str:
    """The URL of a schema of its own: a database that is all a crawl's."""
    name = f"crawl_{secrets.token_hex(6)}"
    connection = PostgresConnection(server.url(), write=True)
    connection.execute(f"CREATE SCHEMA {name}")
    connection.close()
    return server.url(schema=name)


def open_repository(folder: CrawlFolder, *, write: bool = True) -> Repository:
    return Repository(folder, write=write, default_interval_s=INTERVAL_S)


def fetch_of(row: int, at: float = AT, **facts: object) -> FetchRecord:
    """A fetch that went well, unless said otherwise."""
    values: dict[str, object] = {
        "outcome": Outcome.OK,
        "state": UrlState.FETCHED,
        "content_hash": 7,
        "interval_s": INTERVAL_S,
        "wire_bytes": 100,
        **facts,
    }
    return FetchRecord(row, FetchKind.NEW, at - 1, 1.5, 1.0, "{}", at, **values)  # type: ignore[arg-type]  # fields of many types


def add_and_fetch(repository: Repository, url: str, links: tuple[str, ...] = (), at: float = AT) -> int:
    """Record a page with links and anchors, as an intake does; returns its row."""
    row = int(repository.add_urls([url], at=at)[0][0])
    repository.record(fetch_of(row, at))
    if links:
        rows, _ = repository.add_urls(links, at=at, depth=1, source=row)
        repository.record_links(row, rows, at)
        texts = [f"to {link}" for link in links]
        repository.record_anchors(rows, np.array([anchor_mark(text) for text in texts], dtype=np.uint16), texts)
    return row


Image = dict[str, object]


def image(repository: Repository) -> Image:
    """Everything a repository has at hand, copied: URL columns, hosts, and the numbers of the last rows."""
    table = repository.table
    return {
        "urls": {name: table.columns[name].tolist() for name in table.columns.layout},
        "hosts": {name: table.hosts.columns[name].tolist() for name in HostTable.LAYOUT},
        "origins": list(table.hosts.origins),
        "last fetch": repository.last_fetch_id,
        "last anchor": repository._last_anchor_id,
    }
