"""The market of one crawl: the policy bids for every URL, the auction keeps the bids, the price follows spending."""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.live import price_in_clicks, read_live
from bowerbird.model.url_state import UrlState
from bowerbird.schedule.auction import Auction
from bowerbird.schedule.politeness import HostGate
from bowerbird.schedule.price import Allowance, Price
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]

HEADROOM = 1.1
REBID_CHUNK = 1_000_000
REBID_EVERY_S = 5.0
IN_SIGHT_S = (10.0, 60.0)  # a price is too high where less of the budget than this bids it, too low where more does
FEWEST_IN_SIGHT = 10
FALLS_TO = 0.8  # of itself, when little was spent
REBID_UPKEEP = 50  # a full appraisal comes at most so many times its own length apart


class Market:
    """Bids in and out of the auction."""

    def __init__(
        self, repository: Repository, policy: Policy, gate: HostGate, rate_per_s: float | None, now: float
    ) -> None:
        self.repository = repository
        self.policy = policy
        self.gate = gate
        self.auction = Auction(gate)
        self.price = Price(policy.reserve, rate_per_s)
        # a little more than the budget may be spent for a while: so the price sees demand, and holds spending down
        self.allowance = Allowance(None if rate_per_s is None else rate_per_s * HEADROOM, now)
        self.unit = 0.0  # clicks that a bid of 1 stands for; 0 where bids are not in clicks
        self._price_before = price_in_clicks(read_live(repository))  # of the last run
        self._linked: list[I64] = []
        self._rebid_at = -math.inf
        self._observed_at = now
        self._rebid_took_s = 0.0

    def open(self, now: float) -> None:
        """All bids of the crawl, with the waits after errors."""
        self._rebid_all(now)
        columns = self.repository.table.columns
        self.auction.hold(np.arange(columns.count), columns["not_before"].astype(np.float64))
        self.auction.refill(now, self.price.value)

    def bid(self, rows: I64, now: float, *, offer: bool) -> None:
        """Bid (anew) for these rows; with `offer` they can be picked at once. Ends their leases."""
        if not len(rows):
            return
        columns = self.repository.table.columns
        self.follow_unit(now)
        bids = self.policy.appraise(self.repository.snapshot(now), rows)
        self.auction.place(rows, bids, columns["host"][rows], offer=offer)
        self.auction.hold(rows, columns["not_before"][rows].astype(np.float64))

    def follow_unit(self, now: float) -> None:
        """After a study all bids are made anew at once: those of two units cannot be compared."""
        if self.policy.unit(self.repository.snapshot(now)) != self.unit:
            self._rebid_all(now)
            self._settle_price(now)
            self.auction.refill(now, self.price.value)

    def observe(self, spent: int, now: float) -> None:
        """So many fetches were started since the last call: the price follows.

        What is not spent is lost. So when little was spent the price comes down at once to what there is: a study, or
        the end of the best pages, can leave all bids below it.
        """
        since, self._observed_at = now - self._observed_at, now
        self.price.observe(spent, now)
        budget = self.price.budget_per_s
        if (
            budget is not None
            and self.unit > 0.0
            and self.price.value > self.price.reserve
            and spent < 0.5 * budget * since
        ):
            self.price.reset(self.price.value * FALLS_TO)  # the best may all be of hosts that are busy
            self._settle_price(now)

    def _settle_price(self, now: float) -> None:
        """No higher than what the next seconds of the budget find bids for, no lower than what a minute of it does."""
        budget = self.price.budget_per_s
        if budget is None or self.unit <= 0.0 or not len(self.auction):
            return
        values = self.auction.values(now, np.flatnonzero(self.auction.bids["not_before"] <= now))
        values = values[values > 0]
        few, many = (max(round(budget * span_s), FEWEST_IN_SIGHT) for span_s in IN_SIGHT_S)
        if len(values):
            high = float(np.partition(values, -min(few, len(values)))[-min(few, len(values))])
            low = float(np.partition(values, -many)[-many]) if len(values) > many else self.price.reserve
            self.price.reset(min(max(self.price.value, low), high))

    def note_linked(self, rows: I64) -> None:
        """These rows were linked by another page: their bids may have changed."""
        self._linked.append(rows)

    def keep_up(self, now: float, *, hungry: bool) -> None:
        """Refill the auction's pool when it is time; bids that may have changed are appraised first."""
        if not self.auction.refill_due(now, hungry=hungry):
            return
        if now - self._rebid_at > max(REBID_EVERY_S, REBID_UPKEEP * self._rebid_took_s):
            self._rebid_all(now)
            self._settle_price(now)
        else:
            self._rebid_linked(now)
        self.auction.refill(now, self.price.value)

    def _rebid_all(self, now: float) -> None:
        began = time.perf_counter()
        snapshot = self.repository.snapshot(now)
        columns = self.repository.table.columns
        self._change_unit(self.policy.unit(snapshot))
        for first in range(0, columns.count, REBID_CHUNK):
            rows = np.arange(first, min(first + REBID_CHUNK, columns.count))
            self.auction.place(rows, self.policy.appraise(snapshot, rows), columns["host"][rows], offer=False)
        self._linked.clear()
        self._rebid_at = now
        self._rebid_took_s = time.perf_counter() - began

    def _change_unit(self, unit: float) -> None:
        """A study came: under a budget the price stays what it was in clicks, also from an earlier run."""
        if unit > 0.0 and unit != self.unit and self.price.budget_per_s is not None:
            clicks = self.price.value * self.unit if self.unit > 0.0 else self._price_before
            self.price.reset(clicks / unit)
        self.unit = unit

    def _rebid_linked(self, now: float) -> None:
        if not self._linked:
            return
        rows = np.unique(np.concatenate(self._linked))
        self._linked.clear()
        columns = self.repository.table.columns
        rows = rows[columns["state"][rows] == UrlState.NEW]
        bids = self.policy.appraise(self.repository.snapshot(now), rows)
        self.auction.place(rows, bids, columns["host"][rows], offer=False)
