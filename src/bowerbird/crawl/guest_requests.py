"""Requests in a crawl folder: which were seen, which wait, and what the next commit writes of them.

A request that was handed out waits in the database until it was dealt with: after `kill -9` it is there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Shape
from bowerbird.schedule.auction import Auction, first_in_order
from bowerbird.schedule.kernels import gather_best
from bowerbird.store.columns import Columns
from bowerbird.store.connection import Connection
from bowerbird.store.guest_tables import GUEST_META, make_tables

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
ROUND = f"{GUEST_META}round_over"  # in the crawl's folder: the last run ended with nothing left
PER_HOST = f"{GUEST_META}per_host"  # in the crawl's folder: requests of a host that come before many of one
NO_ROW = -1  # of a URL that is no page of the web's: data:, file: …

_TABLE = """
-- a request by its fingerprint (a longer mark where it is not filtered); the request itself until it is dealt with
CREATE TABLE IF NOT EXISTS guest_requests (
  id INTEGER PRIMARY KEY, mark BLOB NOT NULL UNIQUE, url INTEGER NOT NULL, priority INTEGER NOT NULL, request BLOB
);
"""


def make_request_table(connection: Connection) -> None:
    """Make the table where there is none."""
    make_tables(connection, _TABLE)


class RequestTable:
    """The requests of one round. A slot is a request's number in the database."""

    LAYOUT = {"row": ("i8", 1), "host": ("u4", 1), "priority": ("i8", 1), "waits": ("u1", 1)}  # noqa: RUF012

    def __init__(self, connection: Connection, host_of: npt.NDArray[np.uint32]) -> None:
        self.connection = connection
        self.columns = Columns(self.LAYOUT)
        self._new: dict[int, tuple[bytes, bytes | None]] = {}  # slot -> mark, request
        self._slots: dict[bytes, int] = {}  # of those
        self._done: list[int] = []
        self.waiting = 0
        self._load(host_of)
        self.before = self.columns.count  # slots of earlier runs

    def _load(self, host_of: npt.NDArray[np.uint32]) -> None:
        rows = self.connection.execute(
            "SELECT id, url, priority FROM guest_requests WHERE request IS NOT NULL"
        ).fetchall()
        last = int(self.connection.execute("SELECT coalesce(max(id), -1) FROM guest_requests").fetchone()[0])
        self.columns.extend(last + 1)
        if rows:
            slots, urls, priorities = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
            self.columns["row"][slots] = urls
            self.columns["host"][slots[urls >= 0]] = host_of[urls[urls >= 0]]
            self.columns["priority"][slots] = priorities
            self.columns["waits"][slots] = 1
        self.waiting = len(rows)

    def clear(self) -> None:
        """A new round: nothing was seen."""
        self.connection.execute("DELETE FROM guest_requests")
        self.columns.count = self.waiting = self.before = 0

    def find(self, mark: bytes) -> int | None:
        """The slot of a request that was seen."""
        if mark in self._slots:
            return self._slots[mark]
        found = self.connection.execute("SELECT id FROM guest_requests WHERE mark = ?", (mark,)).fetchone()
        return None if found is None else int(found[0])

    def add(self, mark: bytes, priority: int, request: bytes | None) -> int:
        """A request waits; `request` is None where it cannot be written down. Its row is set before it is committed."""
        slot = self.columns.count
        self.columns.extend(1)
        columns = self.columns
        columns["row"][slot], columns["host"][slot], columns["waits"][slot] = NO_ROW, 0, 1
        columns["priority"][slot] = priority
        self._new[slot] = (mark, request)
        self._slots[mark] = slot
        self.waiting += 1
        return slot

    def place(self, slots: Sequence[int], rows: I64, hosts: npt.NDArray[np.uint32]) -> None:
        """These requests are for these URLs."""
        self.columns["row"][list(slots)] = rows
        self.columns["host"][list(slots)] = hosts

    def take(self, slots: I64) -> None:
        """These requests are handed out."""
        self.columns["waits"][slots] = 0
        self.waiting -= len(slots)

    def put_back(self, slots: Sequence[int]) -> None:
        """These requests were not handed out after all."""
        self.columns["waits"][list(slots)] = 1
        self.waiting += len(slots)

    def is_written(self, slot: int) -> bool:
        """Is a request in the database, or will it be with the next commit?"""
        return slot not in self._new or self._new[slot][1] is not None

    def finish(self, slot: int) -> None:
        """A request was dealt with."""
        self._done.append(slot)

    def drop(self, rows: Sequence[int]) -> None:
        """Requests for these URLs wait no more."""
        mine = np.flatnonzero(
            np.isin(self.columns["row"], np.array(rows, dtype=np.int64)) & (self.columns["waits"] > 0)
        )
        self.take(mine)
        self._done.extend(mine.tolist())

    def read(self, slots: Iterable[int]) -> dict[int, bytes]:
        """The requests themselves."""
        wanted = list(slots)
        found = {slot: data for slot in wanted if (data := self._new.get(slot, (b"", None))[1]) is not None}
        stored = [slot for slot in wanted if slot not in self._new]
        marks = ",".join("?" * len(stored))
        question = f"SELECT id, request FROM guest_requests WHERE id IN ({marks}) AND request IS NOT NULL"
        found.update(self.connection.execute(question, stored))
        return found

    @property
    def finished(self) -> int:
        """Requests that were dealt with since the last commit."""
        return len(self._done)

    @property
    def pending(self) -> bool:
        """Is there anything to write?"""
        return bool(self._new or self._done)

    def write(self, connection: Connection) -> None:
        """Within the caller's transaction."""
        columns = self.columns
        connection.executemany(
            "INSERT INTO guest_requests VALUES (?,?,?,?,?)",
            (
                (slot, mark, int(columns["row"][slot]), int(columns["priority"][slot]), request)
                for slot, (mark, request) in self._new.items()
                if request is not None
            ),
        )
        connection.executemany(
            "UPDATE guest_requests SET request = NULL WHERE id = ?", ((slot,) for slot in self._done)
        )

    def written(self) -> None:
        """The transaction is through."""
        self._new = {slot: kept for slot, kept in self._new.items() if kept[1] is None}
        self._slots = {mark: slot for slot, (mark, _) in self._new.items()}
        self._done.clear()

    # -- which are next

    def choose(
        self, auction: Auction, now: float, wanted: int, per_host: int, among: Sequence[int] | None = None
    ) -> I64:
        """The next requests: by priority; among equals the best bids, of each host a few before many of one.

        Of all that wait, or of some.
        """
        waiting = np.flatnonzero(self.columns["waits"]) if among is None else np.array(among, dtype=np.int64)
        waiting = waiting[self.columns["waits"][waiting] > 0]
        chosen: list[I64] = []
        while wanted > 0 and len(waiting):
            priority = self.columns["priority"][waiting]
            top = priority == priority.max()
            best = self._best(auction, now, waiting[top], wanted, per_host)
            chosen.append(best)
            wanted -= len(best)
            waiting = waiting[~top]
        return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)

    def _best(self, auction: Auction, now: float, slots: I64, wanted: int, per_host: int) -> I64:
        rows = self.columns["row"][slots]
        values = np.zeros(len(slots))
        known = rows >= 0
        values[known] = auction.values(now, rows[known])
        if len(slots) <= wanted:
            return slots[first_in_order(values, slots, wanted)]
        fair = self._few_of_each(values, self.columns["host"][slots], per_host)
        order = fair[first_in_order(values[fair], slots[fair], wanted)]
        if len(order) < wanted:  # too few hosts to be fair
            rest = np.setdiff1d(np.arange(len(slots)), order)
            order = np.concatenate([order, rest[first_in_order(values[rest], slots[rest], wanted - len(order))]])
        return slots[order]

    @staticmethod
    def _few_of_each(values: F64, host: npt.NDArray[np.uint32], per_host: int) -> I64:
        """Places of the best few of each host."""
        room = np.minimum(np.bincount(host), per_host)
        starts = np.zeros(len(room) + 1, dtype=np.int64)
        np.cumsum(room, out=starts[1:])
        best, places = np.full(int(starts[-1]), -np.inf), np.zeros(int(starts[-1]), dtype=np.int64)
        zeros = np.zeros(len(values))
        gather_best(
            0.0,
            -np.inf,
            (values + 1.0).astype(np.float32),  # it passes over what bids nothing
            zeros.astype(np.float32),
            zeros,
            np.full(len(values), int(Shape.CONSTANT), dtype=np.uint8),
            host,
            zeros,
            np.ones(len(room), dtype=np.float32),
            starts,
            best,
            places,
        )
        return places[best > -np.inf]
