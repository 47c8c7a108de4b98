"""The auction: of all bids, the best that may be fetched now. It knows bids, hosts and the price, nothing else.

Looking at ten million bids for each decision would cost too much, so the auction works in two steps. `refill` goes
through all bids now and then and keeps, for each host, as many of the best as the host could serve before the next
refill: the pool. `pick` values the pool at the present moment and takes the best under politeness. Bids placed
between two refills join the pool at once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Bid, Bids, Shape
from bowerbird.schedule.kernels import candidates, gather_best, value_rows
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.columns import Columns

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pick:
    """A URL taken by the auction, with the bid's value at that moment, before the weight of its host."""

    row: int
    host: int
    value: float


class _Pool:
    """Entries with their bids copied side by side, so that a pick reads memory in order."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "row": ("i8", 1),
        "host": ("u4", 1),
        "amplitude": ("f4", 1),
        "rate": ("f4", 1),
        "since": ("f8", 1),
        "shape": ("u1", 1),
    }

    def __init__(self) -> None:
        self.columns = Columns(self.LAYOUT)
        self.head = 0  # from here on the best lie, and what has come since

    def reset(self, rest: I64, best: I64, bids: Columns) -> None:
        self.columns.count = 0
        for rows in (rest, best):
            self.append(np.sort(rows), bids)
        self.head = len(rest)

    def append(self, rows: I64, bids: Columns) -> None:
        first = self.columns.count
        self.columns.extend(len(rows))
        self.columns["row"][first:] = rows
        for name in ("host", "amplitude", "rate", "since", "shape"):
            self.columns[name][first:] = bids[name][rows]

    def drop(self, rows: I64) -> None:
        """Take rows out, so that a new bid for them does not stand beside the old one."""
        if len(rows):
            self.columns["amplitude"][np.isin(self.columns["row"], rows)] = 0.0


class Auction:
    """All bids, and the pool of those that could win soon."""

    LAYOUT = {  # noqa: RUF012 - a constant
        "amplitude": ("f4", 1),
        "rate": ("f4", 1),
        "since": ("f8", 1),
        "shape": ("u1", 1),
        "host": ("u4", 1),
        "not_before": ("f8", 1),
    }
    POOL_PER_HOST = 8
    POOL_FAST_HOST = 8192
    POOL_TOTAL = 2_000_000
    HEAD = 8192  # the best of the pool: most picks need not look at the others

    def __init__(self, gate: HostGate, *, refill_every_s: float = 2.0, upkeep_share: float = 0.05) -> None:
        self.gate = gate
        self.bids = Columns(self.LAYOUT)
        self.refill_every_s = refill_every_s
        self.upkeep_share = upkeep_share
        self._pool = _Pool()
        self._refilled_at = -np.inf
        self._refill_took_s = 0.0
        self.left_out = 0

    def __len__(self) -> int:
        return self.bids.count

    def place(self, rows: I64, bids: Bids, hosts: npt.NDArray[np.uint32], *, offer: bool = True) -> None:
        """Set the bids of `rows`; new rows extend the book. With `offer` they can be picked before the next refill."""
        if not len(rows):
            return
        top = int(rows.max()) + 1
        before = self.bids.count
        if top > before:
            self.bids.extend(top - before)
        if len(hosts):
            self.gate.extend(int(hosts.max()) + 1)
        columns = self.bids
        columns["amplitude"][rows] = bids.amplitude
        columns["rate"][rows] = bids.rate
        columns["since"][rows] = bids.since
        columns["shape"][rows] = bids.shape
        columns["host"][rows] = hosts
        if offer:
            self._pool.drop(rows[rows < before])
            live = rows[bids.amplitude > 0]
            if len(live) and self._pool.columns.count + len(live) <= self.POOL_TOTAL:
                self._pool.append(live, columns)
            else:
                self.left_out += len(live)

    def hold(self, rows: I64 | list[int], until: float | F64) -> None:
        """Nobody may take these rows before `until`: a lease, or a wait after an error."""
        self.bids["not_before"][rows] = until

    def take(self, row: int, now: float, until: float) -> Pick:
        """Take a row out of turn, whatever it bids: nobody else may until then. Takes the host's slot too."""
        host = int(self.bids["host"][row])
        pool = self._pool.columns
        pool["amplitude"][pool["row"] == row] = 0.0
        self.hold([row], until)
        self.gate.take(host, now)
        return Pick(row, host, float(self.values(now, np.array([row]))[0]))

    def offer_again(self, rows: list[int]) -> None:
        """Put picked rows back: nothing was fetched after all."""
        self.bids["not_before"][rows] = 0.0
        self._pool.append(np.array(rows, dtype=np.int64), self.bids)

    def withdraw(self, row: int) -> None:
        """This URL bids no more."""
        self.bids["amplitude"][row] = 0.0

    def bid(self, row: int) -> Bid:
        """The bid of one URL."""
        columns = self.bids
        return Bid(
            float(columns["amplitude"][row]),
            float(columns["rate"][row]),
            float(columns["since"][row]),
            Shape(int(columns["shape"][row])),
        )

    def values(self, now: float, rows: I64) -> F64:
        """The values of some bids now, as the price sees them: before their hosts' weights."""
        columns = self.bids
        out = np.empty(len(rows))
        value_rows(now, rows, columns["amplitude"], columns["rate"], columns["since"], columns["shape"], out)
        return out

    def best(self, now: float, wanted: int) -> tuple[I64, F64]:
        """The best bids of all, in the order of the line, whether they may be taken or not; and their values."""
        rows = np.flatnonzero(self.bids["amplitude"] > 0)
        values = self.values(now, rows)
        rows, values = rows[values > 0], values[values > 0]
        order = first_in_order(values * self.gate.columns["weight"][self.bids["host"][rows]], rows, wanted)
        return rows[order], values[order]

    def peek(self, now: float, price: float) -> Pick | None:
        """What comes next: the best of the pool that bids the price, though its host may be busy; None without any."""
        for first in dict.fromkeys((self._pool.head, 0)):
            pool = {name: self._pool.columns[name][first:] for name in _Pool.LAYOUT}
            rows, places = pool["row"], np.arange(len(pool["row"]))
            open_now = (self.bids["amplitude"][rows] > 0) & (self.bids["not_before"][rows] <= now)
            places = places[open_now & (pool["amplitude"] > 0)]
            values = np.empty(len(places))
            value_rows(now, places, pool["amplitude"], pool["rate"], pool["since"], pool["shape"], values)
            places, values = places[values >= price], values[values >= price]
            if len(places):
                weighted = values * self.gate.columns["weight"][pool["host"][places]]
                best = int(first_in_order(weighted, rows[places], 1)[0])
                return Pick(int(rows[places[best]]), int(pool["host"][places[best]]), float(values[best]))
        return None

    # -- the two steps

    def refill_due(self, now: float, *, hungry: bool = False) -> bool:
        """Is it time to go through all bids? Sooner when picks come back empty; never so often that it costs much."""
        if now < self._refilled_at:
            return True
        waited = now - self._refilled_at
        if waited * self.upkeep_share < self._refill_took_s:
            return False
        return waited >= (0.1 if hungry else self.refill_every_s)

    def refill(self, now: float, price: float) -> int:
        """Go through all bids; returns the size of the pool."""
        began = time.perf_counter()
        hosts = len(self.gate)
        columns = self.bids
        if not hosts or not columns.count:
            return 0
        known = np.bincount(columns["host"], minlength=hosts)
        room = np.minimum(known, self._room_per_host(hosts))
        starts = np.zeros(hosts + 1, dtype=np.int64)
        np.cumsum(room, out=starts[1:])
        values = np.full(int(starts[-1]), -np.inf)
        rows = np.zeros(len(values), dtype=np.int64)
        self.left_out = gather_best(
            now,
            price,
            columns["amplitude"],
            columns["rate"],
            columns["since"],
            columns["shape"],
            columns["host"],
            columns["not_before"],
            self.gate.columns["weight"],
            starts,
            values,
            rows,
        )
        kept = np.flatnonzero(values > -np.inf)
        rows, values = rows[kept], values[kept]
        best = first_in_order(values, rows, self.HEAD)
        others = np.ones(len(rows), dtype=np.bool_)
        others[best] = False
        self._pool.reset(rows[others], rows[best], columns)
        self._refilled_at = now
        self._refill_took_s = time.perf_counter() - began
        return self._pool.columns.count

    def _room_per_host(self, hosts: int) -> I64:
        """As many as a host could serve before the next refill, and a few more; fewer where hosts are very many."""
        delay_s = self.gate.columns["delay_s"]
        until_next_s = max(self.refill_every_s, self._refill_took_s / self.upkeep_share)
        few = max(2, min(self.POOL_PER_HOST, self.POOL_TOTAL // hosts))
        served = np.ceil(until_next_s / np.maximum(delay_s, 1e-9)) + 1
        busy = served > few
        most = max(few, min(self.POOL_FAST_HOST, self.POOL_TOTAL // max(int(busy.sum()), 1)))
        return np.where(busy, np.minimum(served, most), few).astype(np.int64)

    def pick(self, now: float, wanted: int, price: float) -> list[Pick]:
        """Take up to `wanted` URLs: the best bids of hosts that may be asked now. Takes the host's slot too."""
        if wanted <= 0 or not self._pool.columns.count:
            return []
        pool = self._pool.columns
        starts = np.zeros(len(self.gate) + 1, dtype=np.int64)
        np.cumsum(self.gate.free(now), out=starts[1:])
        if not starts[-1]:
            return []
        rows, values, places = self._look(now, price, starts, self._pool.head)
        if len(rows) < wanted and self._pool.head:
            rows, values, places = self._look(now, price, starts, 0)
        order = first_in_order(values, rows, wanted)
        chosen, bid = places[order], np.empty(len(order))
        value_rows(now, chosen, pool["amplitude"], pool["rate"], pool["since"], pool["shape"], bid)
        picks = [
            Pick(row, host, value)
            for row, host, value in zip(rows[order].tolist(), pool["host"][chosen].tolist(), bid.tolist(), strict=True)
        ]
        pool["amplitude"][chosen] = 0.0
        for pick in picks:
            self.gate.take(pick.host, now)
        return picks

    def _look(self, now: float, price: float, starts: I64, first: int) -> tuple[I64, F64, I64]:
        """What could be taken of the pool from `first` on, of a host as many as it has slots: rows, values, places."""
        pool, slots = self._pool.columns, int(starts[-1])
        values = np.full(slots, -np.inf)
        rows = np.zeros(slots, dtype=np.int64)
        places = np.zeros(slots, dtype=np.int64)
        candidates(
            now,
            price,
            pool["row"][first:],
            pool["host"][first:],
            pool["amplitude"][first:],
            pool["rate"][first:],
            pool["since"][first:],
            pool["shape"][first:],
            self.gate.columns["weight"],
            self.bids["amplitude"],
            self.bids["not_before"],
            starts,
            values,
            rows,
            places,
        )
        found = np.flatnonzero(values > -np.inf)
        return rows[found], values[found], places[found] + first


def first_in_order(values: F64, rows: I64, wanted: int) -> I64:
    """Places of the first `wanted` by value from high to low, ties by row; sorts no more than these."""
    chosen = np.arange(len(values))
    if wanted < len(values):
        edge = np.partition(values, len(values) - wanted)[len(values) - wanted]
        above = np.flatnonzero(values > edge)
        ties = np.flatnonzero(values == edge)
        missing = wanted - len(above)
        if missing < len(ties):
            ties = ties[np.argpartition(rows[ties], missing)[:missing]]
        chosen = np.concatenate([above, ties])
    return chosen[np.lexsort((rows[chosen], -values[chosen]))]
