"""The market of a crawl that somebody else fetches for: bids put its URLs in order, their owner says which may go.

What our own crawl does with a price, the owner does with dates: whatever is due by them is handed out, the best bid
first, however little it bids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.market import Market
from bowerbird.model.snapshot import Snapshot
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
LEAST = np.float32(1e-12)  # that anything which may go bids


@dataclass(frozen=True, slots=True)
class Picked:
    """URLs that were taken, line by line, the line with the best bid first; within a line the best first."""

    rows: I64
    lines: I64
    values: F64


class GuestAuction(Auction):
    """An auction without a price; of each line as many can be taken as somebody asks for."""

    def refill(self, now: float, price: float) -> int:
        """Go through all bids, whatever they are worth."""
        return super().refill(now, 0.0)

    def _room_per_host(self, hosts: int) -> I64:
        return np.full(hosts, max(8, min(self.POOL_FAST_HOST, self.POOL_TOTAL // hosts)), dtype=np.int64)

    def retire(self, rows: I64) -> None:
        """These rows change lines: the pool knows them by the old ones."""
        self._pool.drop(rows)

    def take_lines(self, now: float, free: I64, most_lines: int, wanted: int) -> Picked:
        """Take the best of the pool: of each line at most `free`, of at most so many lines, in all at most `wanted`."""
        nothing = np.zeros(0, dtype=np.int64)
        chosen = Picked(nothing, nothing, np.zeros(0))
        for first in dict.fromkeys((self._pool.head, 0)):
            rows, values, places = self._look_at(now, free, first)
            order = _in_lines(self.bids["host"][rows].astype(np.int64), values, rows, most_lines)[:wanted]
            chosen = Picked(rows[order], self.bids["host"][rows[order]].astype(np.int64), values[order])
            if len(order) >= wanted:
                break  # what lies further back bids less
        if len(chosen.rows):
            self._pool.columns["amplitude"][places[order]] = 0.0
        return chosen

    def _look_at(self, now: float, free: I64, first: int) -> tuple[I64, F64, I64]:
        inside = np.bincount(self._pool.columns["host"][first:], minlength=len(self.gate))
        starts = np.zeros(len(self.gate) + 1, dtype=np.int64)
        np.cumsum(np.minimum(inside, free), out=starts[1:])
        return self._look(now, 0.0, starts, first)


def _in_lines(lines: I64, values: F64, rows: I64, most_lines: int) -> I64:
    """Places in order of their lines' best values, and within a line by value; of at most so many lines."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((rows, -values))
    _, firsts, which = np.unique(lines[order], return_index=True, return_inverse=True)
    rank = np.empty(len(firsts), dtype=np.int64)
    rank[np.argsort(firsts)] = np.arange(len(firsts))
    mine = rank[which]
    kept = np.flatnonzero(mine < most_lines)
    return order[kept[np.argsort(mine[kept], kind="stable")]]


class GuestMarket(Market):
    """Bids in lines of the owner's choice; some URLs are silent, whatever they would bid."""

    auction: GuestAuction

    def __init__(self, repository: Repository, policy: Policy, now: float) -> None:
        gate = HostGate()
        super().__init__(repository, policy, gate, None, now, GuestAuction(gate))
        self.line_of: Callable[[I64], npt.NDArray[np.uint32]] = lambda rows: repository.table.columns["host"][rows]
        self.is_silent: Callable[[I64], npt.NDArray[np.bool_]] = lambda rows: np.zeros(len(rows), dtype=np.bool_)

    def offer_again(self, rows: I64) -> None:
        """What was picked did not go after all."""
        self.auction.retire(rows)
        self.auction.offer_again(rows.tolist())

    def _place(self, snapshot: Snapshot, rows: I64, *, offer: bool) -> None:
        bids = self.policy.appraise(snapshot, rows)
        loud = np.where(self.is_silent(rows), np.float32(0.0), np.maximum(bids.amplitude, LEAST))
        self.auction.place(rows, replace(bids, amplitude=loud), self.line_of(rows), offer=offer)
