"""Where each URL stands for somebody else's fetcher: its line, since when, whether it is done; and looking at that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.guest_queues import GuestQueues
from bowerbird.model.url_state import UrlState
from bowerbird.store.columns import Columns
from bowerbird.store.guest_tables import GuestWrites, read_belongings, read_places
from bowerbird.store.repository import Repository
from bowerbird.web.url import host_of

I64 = npt.NDArray[np.int64]
GONE, DONE = 1, 2  # flags of a URL: in no line; in its line no more
PORTION_ROWS = 2_000  # URLs that are looked at at once,
PORTION_BYTES = 1 << 20  # or so much metadata of them


@dataclass(frozen=True, slots=True)
class GuestStanding:
    """A URL as it stands in its line."""

    row: int
    url: str  # as its owner spelt it first
    key: str
    metadata: bytes
    created: int
    known: bool  # was it dealt with at least once?
    refetch: int  # from when on it may be fetched again; 0 = never


class GuestPlaces:
    """A column of places beside the crawl's columns, row by row."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "queue": ("u4", 1),
        "created": ("u4", 1),
        "size": ("u4", 1),  # bytes of metadata
        "flags": ("u1", 1),
    }

    def __init__(self, repository: Repository, queues: GuestQueues, writes: GuestWrites) -> None:
        self.repository = repository
        self.queues = queues
        self.columns = Columns(self.LAYOUT)
        self._writes = writes
        self._load()

    def _load(self) -> None:
        table = self.repository.table.columns
        self.grow()
        strangers = np.ones(table.count, dtype=np.bool_)
        for rows in read_places(self.repository.connection):
            places = np.array(rows, dtype=np.int64)
            which, queue, created, done, size = places[places[:, 0] < table.count].T  # one who looks may be late
            self.columns["queue"][which] = queue
            self.columns["created"][which] = created
            self.columns["size"][which] = size
            self.columns["flags"][which] = np.where(done > 0, DONE, 0)
            strangers[which] = False
        in_line = (table["state"] != UrlState.FORGOTTEN) & (table["state"] != UrlState.EXCLUDED)
        self.adopt(np.flatnonzero(strangers & in_line))
        inside = self.members()
        self.leave(inside[table["state"][inside] == UrlState.FORGOTTEN])
        inside = self.members()
        lines = self.columns["queue"][inside[self.was_fetched(inside)]]
        self.queues.columns["fetched"][:] = np.bincount(lines, minlength=len(self.queues.columns))

    def grow(self) -> None:
        """As many rows as the crawl has; those nobody put anywhere are in no line."""
        first = self.columns.count
        if self.repository.table.columns.count > first:
            self.columns.extend(self.repository.table.columns.count - first)
            self.columns["flags"][first:] = GONE

    def adopt(self, rows: I64) -> None:
        """URLs that came into the folder by another way stand in the lines of their hosts."""
        table = self.repository.table
        for row, host, seen in zip(
            rows.tolist(), table.columns["host"][rows].tolist(), table.columns["first_seen"][rows].tolist(), strict=True
        ):
            self.enter(row, self.queues[host_of(table.hosts.origins[host] + "/")], int(seen), None, None)

    def enter(self, row: int, line: int, created: int, given: str | None, metadata: bytes | None) -> None:
        """Put a URL into a line."""
        self.columns["queue"][row] = line
        self.columns["created"][row] = created
        self.write(row, given, metadata, done=False)

    def write(self, row: int, given: str | None, metadata: bytes | None, *, done: bool) -> None:
        """Keep what its owner says of a URL."""
        columns = self.columns
        columns["flags"][row] = DONE if done else 0
        columns["size"][row] = len(metadata) if metadata else 0
        line, created = int(columns["queue"][row]), int(columns["created"][row])
        self._writes.urls[row] = (row, line, created, int(done), given, metadata)
        self._writes.dropped.discard(row)

    def leave(self, rows: I64) -> None:
        """URLs are in no line from now on."""
        fetched = rows[self.was_fetched(rows)]
        np.subtract.at(self.queues.columns["fetched"], self.columns["queue"][fetched], 1)
        self.columns["flags"][rows] = GONE
        for row in rows.tolist():
            self._writes.urls.pop(row, None)
            self._writes.dropped.add(row)

    def move(self, rows: I64, keys: Sequence[str]) -> I64:
        """Have URLs stand in the lines of their keys; one without a key stays where it is. Those that moved."""
        lines = self.columns["queue"][rows].tolist()
        names = self.queues.keys_by_number
        others = [nth for nth, key in enumerate(keys) if key and names[lines[nth]] != key]
        moved = rows[others]
        if others:
            fetched = self.was_fetched(moved).astype(np.int64)
            np.subtract.at(self.queues.columns["fetched"], self.columns["queue"][moved], fetched)
            self.columns["queue"][moved] = [self.queues[keys[nth]] for nth in others]
            np.add.at(self.queues.columns["fetched"], self.columns["queue"][moved], fetched)
        return moved

    def count_fetched(self, rows: I64) -> None:
        """These are dealt with for the first time."""
        np.add.at(self.queues.columns["fetched"], self.columns["queue"][rows], 1)

    # -- looking

    def was_fetched(self, rows: I64) -> npt.NDArray[np.bool_]:
        """Which were dealt with, since they were put into line (again)."""
        table = self.repository.table.columns
        anew = (table["state"][rows] == UrlState.NEW) & (table["errors"][rows] == 0)
        return np.asarray((table["fetches"][rows] > 0) & ~anew)

    def are_in_line(self, rows: I64) -> npt.NDArray[np.bool_]:
        """Which are in a line, done or not."""
        return np.asarray(self.columns["flags"][rows] != GONE)

    def members(self, key: str = "", before: float | None = None) -> I64:
        """Rows of a line, or of all; those put in before a time only, where one is named."""
        inside = self.columns["flags"] != GONE
        if key:
            line = self.queues.get(key, -1)
            inside = inside & (self.columns["queue"] == line) if line >= 0 else np.zeros_like(inside)
        if before is not None:
            inside = inside & (self.columns["created"] < before)
        return np.flatnonzero(inside)

    def counts(self, key: str = "") -> tuple[I64, I64]:
        """By line: URLs that may still be fetched, and URLs that are done."""
        rows = self.members(key)
        lines, done = self.columns["queue"][rows], self.columns["flags"][rows] == DONE
        size = len(self.queues.columns)
        return np.bincount(lines[~done], minlength=size), np.bincount(lines[done], minlength=size)

    def portions(self, rows: I64) -> Iterator[I64]:
        """These rows in parts whose metadata fits into memory beside that of many others."""
        ends = np.cumsum(self.columns["size"][rows].astype(np.int64))
        first = 0
        while first < len(rows):
            before = int(ends[first - 1]) if first else 0
            last = max(int(np.searchsorted(ends, before + PORTION_BYTES, side="right")), first + 1)
            last = min(last, first + PORTION_ROWS)
            yield rows[first:last]
            first = last

    def standings(self, rows: Sequence[int]) -> Iterator[GuestStanding]:
        """URLs as they stand, in the order of the rows, whether that is committed or not."""
        belongings = read_belongings(self.repository.connection, rows)
        if self._writes.urls:
            fresh = ((row, self._writes.urls[row]) for row in rows if row in self._writes.urls)
            belongings.update((row, (written[4], written[5])) for row, written in fresh)
        not_before = self.repository.table.columns["not_before"]
        known = self.was_fetched(np.array(rows, dtype=np.int64)).tolist()
        for row, url, met in zip(rows, self.repository.urls(rows), known, strict=True):
            given, metadata = belongings.get(row, (None, None))
            done = self.columns["flags"][row] == DONE
            yield GuestStanding(
                row,
                given or url,
                self.queues.keys_by_number[int(self.columns["queue"][row])],
                metadata or b"",
                int(self.columns["created"][row]),
                met,
                0 if done or not met else max(int(not_before[row]), 1),
            )
