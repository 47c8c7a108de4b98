"""Whose fetches a crawl folder lives by: ours, or another program's, which alone knows what may be fetched."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bowerbird.model.errors import FolderError
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder, WriterLock
from bowerbird.store.guest_tables import GUEST_META, drop_guest_tables
from bowerbird.store.repository import Repository
from bowerbird.store.schema import connect, open_database

OWNER = f"{GUEST_META}owner"
SERVICE, SCRAPY = "frontier-service", "scrapy"
NAMES = {SERVICE: "the frontier service", SCRAPY: "Scrapy"}
_REMEDIES = {SERVICE: "`bowerbird frontier-service {parent}` serves it", SCRAPY: "run its spider"}


def read_owner(state: CommittedState) -> str | None:
    """The program that fetches for a crawl; None where that is our own."""
    owner = state.meta(OWNER)
    return None if owner is None else str(owner)


def owner_of(folder: CrawlFolder) -> str | None:
    """The same of a folder that is not open, whatever its format: whoever opens it sees to that."""
    if folder.store_url is not None:  # other programs fetch for crawls in folders only
        return None
    try:
        with closing(connect(folder.database, write=False)) as connection:
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (OWNER,)).fetchone()
    except sqlite3.DatabaseError:  # no crawl's: whoever opens it says so
        return None
    return None if found is None else str(found[0])


def claim(repository: Repository, owner: str) -> None:
    """This program fetches for the crawl from now on, unless another does."""
    found = read_owner(repository)
    if found not in (None, owner):
        raise FolderError(
            f"{repository.folder.root}: {NAMES[str(found)]} fetches for this crawl, and {NAMES[owner]} would not know "
            "what is done or taken there. Choose another folder."
        )
    if found is None:
        repository.set_meta(OWNER, owner)


def refuse_guest(folder: CrawlFolder) -> None:
    """Raise where our own fetches would not know what is done, taken or has to wait."""
    owner = owner_of(folder)
    if owner is not None:
        remedy = _REMEDIES[owner].format(parent=folder.root.parent)
        raise FolderError(
            f"{folder.root}: {NAMES[owner]} fetches for this crawl, and only that knows what is done, taken or has to "
            f"wait: {remedy}. `bowerbird crawl {folder.root} --take-over` makes it a crawl that Bowerbird fetches "
            "itself, without what was kept for the other."
        )


def tell_holder(folder: CrawlFolder) -> FolderError | None:
    """What to say of a folder that another program's fetches have now; None where none does."""
    owner = owner_of(folder) if WriterLock.is_held(folder) else None
    if owner is None:
        return None
    pid = folder.lock.read_text(encoding="ascii", errors="replace").strip() or "unknown"
    return FolderError(
        f"{folder.root}: {NAMES[owner]} (pid {pid}) has it already. Use that one, or stop it first; a crawl has one "
        "writer."
    )


def take_over(root: Path) -> None:
    """Make a crawl our own: URLs, links and history stay; queues, leases, requests and what was done for good go."""
    folder = CrawlFolder(root)
    lock = WriterLock(folder)
    try:
        with closing(open_database(folder.database, write=True)) as connection:
            drop_guest_tables(connection)
    finally:
        lock.release()
