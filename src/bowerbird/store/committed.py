"""What the database holds, asked row by row: nothing is loaded first, so that a look costs the same in any crawl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bowerbird.model.errors import ArchiveError
from bowerbird.store import schema
from bowerbird.store.connection import Connection
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import Version


class CommittedState:
    """A crawl's database as of its last commit, whoever writes it."""

    def __init__(self, folder: CrawlFolder, *, write: bool = False, connection: Connection | None = None) -> None:
        self.folder = folder
        self.connection = schema.open_state(folder, write=write) if connection is None else connection

    def meta(self, key: str) -> object | None:
        """A value of the folder's own, or None."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def url(self, row: int) -> str:
        """The text of one URL."""
        return self.urls([row])[0]

    def urls(self, rows: Iterable[int]) -> list[str]:
        """The texts of URLs, by row."""
        wanted = list(rows)
        found = dict(self.connection.ask_of("SELECT id, url FROM urls WHERE id", wanted))
        return [found[row] for row in wanted]

    def seeds(self) -> tuple[str, ...]:
        """The URLs given by people: they span the scope."""
        return tuple(str(url) for (url,) in self.connection.execute("SELECT url FROM seeds ORDER BY url"))

    def version(self, row: int) -> Version | None:
        """The current version of a URL."""
        return self.versions([row]).get(row)

    def versions(self, rows: Sequence[int]) -> dict[int, Version]:
        """The current versions of URLs, of those that have one."""
        return {
            int(found[0]): Version(*found) for found in self.connection.ask_of("SELECT * FROM versions WHERE url", rows)
        }

    def anchors(self, row: int) -> list[str]:
        """Anchor texts that point to a URL."""
        return self.anchors_of([row])[row]

    def anchors_of(self, rows: Sequence[int]) -> dict[int, list[str]]:
        """Anchor texts that point to each URL."""
        found: dict[int, list[str]] = {row: [] for row in rows}
        for target, text in self.connection.ask_of(
            "SELECT target, text FROM anchors WHERE target", rows, " ORDER BY id"
        ):
            found[target].append(text)
        return found

    def robots(self, host: int) -> tuple[float, str, bytes] | None:
        """When a host's robots.txt was fetched, its status and body."""
        return self.robots_of([host]).get(host)

    def robots_of(self, hosts: Sequence[int]) -> dict[int, tuple[float, str, bytes]]:
        """As `robots`, of many hosts; those whose robots.txt was never fetched are left out."""
        select = "SELECT id, robots_at, robots_status, robots_body FROM hosts WHERE robots_at > 0 AND id"
        return {
            int(host): (float(at), str(status), bytes(body or b""))
            for host, at, status, body in self.connection.ask_of(select, hosts)
        }

    def archive_name(self, number: int) -> str:
        """The name of an archive file."""
        row = self.connection.execute("SELECT name FROM archive_files WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise ArchiveError(f"{self.folder.root}: archive file number {number} is not known")
        return str(row[0])

    def archive_ends(self) -> dict[str, int]:
        """How far each archive file is acknowledged."""
        return {str(n): int(b) for n, b in self.connection.execute("SELECT name, bytes FROM archive_files")}

    def close(self) -> None:
        """Close the database."""
        self.connection.close()
