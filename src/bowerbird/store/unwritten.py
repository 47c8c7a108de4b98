"""What was recorded since the last commit, as the next one writes it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from bowerbird.store import recovery
from bowerbird.store.checkpoint import Mark
from bowerbird.store.connection import Connection, upsert
from bowerbird.store.gains import MeasuredGain, write_gains
from bowerbird.store.hub_hints import HubHint, write_hub_hints
from bowerbird.store.links import OutLinks
from bowerbird.store.pending_urls import PendingUrls
from bowerbird.store.records import FETCH_COLUMNS, VERSION_COLUMNS, FetchRecord, Version
from bowerbird.store.url_table import HostTable

_ADD_FETCH = f"INSERT INTO fetches (id, {FETCH_COLUMNS}) VALUES (?{',?' * (FETCH_COLUMNS.count(',') + 1)})"
_SET_VERSION = upsert("versions", VERSION_COLUMNS, "url")
_SET_LINKS = upsert("links", "source, seen_at, targets, first_seen, last_seen", "source")
_SET_HINT = upsert("hints", "url, modified", "url")
_SET_PATTERN = upsert("patterns", "id, found, novel, duplicate", "id")


class Unwritten:
    """One buffer for each kind of thing; a commit that succeeded is followed by a new one, with nothing in it."""

    def __init__(self, first_url: int) -> None:
        self.urls = PendingUrls(first_url)
        self.fetches: list[FetchRecord] = []
        self.versions: dict[int, Version] = {}
        self.links: dict[int, OutLinks] = {}
        self.new_links: list[npt.NDArray[np.uint32]] = []  # rows that are linked to by one more page
        self.anchors: list[tuple[int, str]] = []
        self.hints: dict[int, int] = {}
        self.patterns: list[tuple[int, int, int, int]] = []
        self.robots: dict[int, tuple[str, bytes]] = {}
        self.gains: list[MeasuredGain] = []
        self.hub_hints: dict[int, HubHint] = {}
        self.inbox_done = 0
        self.seeds: list[str] = []
        self.file_ends: dict[int, int] = {}

    @property
    def count(self) -> int:
        """Changes that a commit is due for."""
        return len(self.fetches) + len(self.urls) + (self.inbox_done > 0)

    @property
    def touches_columns(self) -> bool:
        """Is there anything in it that columns have already, and the database has not?"""
        return bool(self.count or self.links or self.anchors or self.hints)

    def write(self, connection: Connection, after: Mark, files: Mapping[str, int], hosts: HostTable) -> None:
        """Inside the caller's transaction; after what was written last."""
        self.urls.write(connection)
        connection.executemany(
            _ADD_FETCH, ((number, *fetch.row()) for number, fetch in enumerate(self.fetches, after.fetch + 1))
        )
        connection.executemany(
            "INSERT INTO totals VALUES (?,?,?,?) ON CONFLICT (kind, outcome) DO UPDATE SET"
            " fetches = totals.fetches + excluded.fetches, wire_bytes = totals.wire_bytes + excluded.wire_bytes",
            self._sums(),
        )
        connection.executemany(_SET_VERSION, (version.row() for version in self.versions.values()))
        connection.executemany(_SET_LINKS, (links.encode() for links in self.links.values()))
        if self.new_links:
            targets = np.concatenate(self.new_links).astype("<u4").tobytes()
            connection.execute("INSERT INTO new_links VALUES (?, ?)", (after.links + 1, targets))
        connection.executemany(
            "INSERT INTO anchors (id, target, text) VALUES (?,?,?)",
            ((number, *anchor) for number, anchor in enumerate(self.anchors, after.anchor + 1)),
        )
        connection.executemany(_SET_HINT, self.hints.items())
        connection.executemany(_SET_PATTERN, self.patterns)
        names = {number: name for name, number in files.items()}
        connection.executemany(
            "INSERT INTO archive_files VALUES (?,?,?) ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes",
            ((number, names[number], end) for number, end in self.file_ends.items()),
        )
        connection.executemany("INSERT INTO seeds VALUES (?) ON CONFLICT DO NOTHING", ((url,) for url in self.seeds))
        if self.inbox_done:
            connection.execute("DELETE FROM inbox WHERE id <= ?", (self.inbox_done,))
        recovery.store_hosts(connection, hosts, self.robots)
        write_gains(connection, self.gains)
        write_hub_hints(connection, self.hub_hints.values())

    def _sums(self) -> list[tuple[int, int, int, int]]:
        sums: dict[tuple[int, int], tuple[int, int]] = {}
        for fetch in self.fetches:
            key = (int(fetch.kind), int(fetch.outcome))
            count, wire_bytes = sums.get(key, (0, 0))
            sums[key] = (count + 1, wire_bytes + fetch.wire_bytes)
        return [(*key, *value) for key, value in sums.items()]
