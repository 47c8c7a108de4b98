"""The market of one crawl: the policy bids for every URL, the auction keeps the bids, the price follows spending."""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.live import price_in_clicks, read_live
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState
from bowerbird.schedule.auction import Auction, Pick
from bowerbird.schedule.politeness import HostGate
from bowerbird.schedule.price import Allowance, Price
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]

REBID_CHUNK = 1_000_000
REBID_EVERY_S = 5.0
REBID_UPKEEP = 100  # a full appraisal comes at most so many times its own length apart


class Market:
    """Bids in and out of the auction."""

    def __init__(
        self,
        repository: Repository,
        policy: Policy,
        gate: HostGate,
        rate_per_s: float | None,
        now: float,
        auction: Auction | None = None,
    ) -> None:
        self.repository = repository
        self.policy = policy
        self.gate = gate
        self.auction = Auction(gate) if auction is None else auction
        self.price = Price(policy.reserve, rate_per_s)
        self.allowance = Allowance(rate_per_s, now)
        self.unit = 0.0  # clicks that a bid of 1 stands for; 0 where bids are not in clicks
        self._basis: object = None  # what the bids were made by
        self._price_before = price_in_clicks(read_live(repository))  # of the last run
        self._taken: list[float] = []  # bids, since the price last looked
        self._pressed = False  # was all that the budget allows picked, so that there may be more?
        self._linked: list[I64] = []
        self._rebid_at = -math.inf
        self._rebid_took_s = 0.0

    def open(self, now: float) -> None:
        """All bids of the crawl, with the waits after errors."""
        self._rebid_all(now)
        columns = self.repository.table.columns
        self.auction.hold(np.arange(columns.count), columns["not_before"].astype(np.float64))
        self.auction.refill(now, self.price.reserve)

    def bid(self, rows: I64, now: float, *, offer: bool) -> None:
        """Bid (anew) for these rows; with `offer` they can be picked at once. Ends their leases."""
        if not len(rows):
            return
        columns = self.repository.table.columns
        self.follow_studies(now)
        self._place(self.repository.snapshot(now), rows, offer=offer)
        self.auction.hold(rows, columns["not_before"][rows].astype(np.float64))

    def follow_studies(self, now: float) -> None:
        """After a study, or a correction, all bids are made anew at once: they cannot be compared with those before."""
        if self.policy.basis(self.repository.snapshot(now)) is not self._basis:
            self._rebid_all(now)
            self.auction.refill(now, self.price.reserve)

    def pick(self, now: float, wanted: int, *, scarce: bool = True) -> list[Pick]:
        """The best that may be fetched now. What is not spent is lost, so the reserve is all that they have to bid.

        `scarce` where it is the budget that allows no more: workers without room do not raise the price.
        """
        picks = self.auction.pick(now, wanted, self.price.reserve)
        self._taken.extend(pick.value for pick in picks)
        if wanted > 0:
            self._pressed = scarce and len(picks) == wanted
        return picks

    def observe(self, now: float) -> None:
        """The price follows what was picked since the last call."""
        self.price.observe(self._taken, now, pressed=self._pressed)
        self._taken.clear()

    def note_linked(self, rows: I64) -> None:
        """These rows were linked by another page: their bids may have changed."""
        self._linked.append(rows)

    def keep_up(self, now: float, *, hungry: bool) -> None:
        """Refill the auction's pool when it is time; bids that may have changed are appraised first."""
        if not self.auction.refill_due(now, hungry=hungry):
            return
        if now - self._rebid_at > max(REBID_EVERY_S, REBID_UPKEEP * self._rebid_took_s):
            self._rebid_all(now)
        else:
            self._rebid_linked(now)
        self.auction.refill(now, self.price.reserve)

    def _rebid_all(self, now: float) -> None:
        began = time.perf_counter()
        snapshot = self.repository.snapshot(now)
        columns = self.repository.table.columns
        self._basis = self.policy.basis(snapshot)
        self._change_unit(self.policy.unit(snapshot))
        for first in range(0, columns.count, REBID_CHUNK):
            rows = np.arange(first, min(first + REBID_CHUNK, columns.count))
            self._place(snapshot, rows, offer=False)
        self._linked.clear()
        self._rebid_at = now
        self._rebid_took_s = time.perf_counter() - began

    def _change_unit(self, unit: float) -> None:
        """A study came: under a budget the price stays what it was in clicks, also from an earlier run."""
        if unit > 0.0 and unit != self.unit and self.price.budget_per_s is not None:
            if self.unit > 0.0:
                self.price.convert(self.unit / unit)
                self._taken = [bid * (self.unit / unit) for bid in self._taken]
            else:
                self.price.reset(self._price_before / unit)
                self._taken.clear()  # nothing was in clicks
        self.unit = unit

    def _rebid_linked(self, now: float) -> None:
        if not self._linked:
            return
        rows = np.unique(np.concatenate(self._linked))
        self._linked.clear()
        columns = self.repository.table.columns
        rows = rows[columns["state"][rows] == UrlState.NEW]
        self._place(self.repository.snapshot(now), rows, offer=False)

    def _place(self, snapshot: Snapshot, rows: I64, *, offer: bool) -> None:
        """Have the policy bid for these rows, each in the line of its host."""
        bids = self.policy.appraise(snapshot, rows)
        self.auction.place(rows, bids, self.repository.table.columns["host"][rows], offer=offer)
