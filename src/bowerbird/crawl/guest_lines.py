"""The lines of a crawl that somebody else fetches for, with its places, leases and bids: what may be handed out now.

Whoever hands URLs out and whoever looks at the folder from outside goes by the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.crawl.guest_leases import GuestLeases
from bowerbird.crawl.guest_market import GuestMarket, Picked
from bowerbird.crawl.guest_places import GuestPlaces
from bowerbird.crawl.guest_queues import NO_LIMIT, GuestQueues
from bowerbird.store.guest_tables import GUEST_META, GuestWrites, read_queues
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]
MOST_AT_ONCE = 10_000  # URLs that are handed out at once,
MOST_BYTES_AT_ONCE = 8 << 20  # or so much metadata of them
# in the crawl's folder:
DELAY = f"{GUEST_META}delay_s"  # between two times that something of a line is handed out, by default
USUAL_DELAY = f"{GUEST_META}usual_delay_s"  # the same where nobody set it for this crawl, as its owner last had it
INACTIVE = f"{GUEST_META}inactive"  # nothing is handed out for now


class GuestLines:
    """Lines, places and leases beside the bids of one folder."""

    def __init__(self, repository: Repository, market: GuestMarket, usual_delay_s: float, now: float) -> None:
        self.repository = repository
        self.market = market
        self.writes = GuestWrites()
        own_s = repository.meta(DELAY)
        self.queues = GuestQueues(self.writes, usual_delay_s if own_s is None else float(str(own_s)))
        self.queues.restore(read_queues(repository.connection), now)
        self.places = GuestPlaces(repository, self.queues, self.writes)
        market.line_of = lambda rows: self.places.columns["queue"][rows]
        market.is_silent = lambda rows: self.places.columns["flags"][rows] != 0

    def open(self, now: float) -> None:
        """After all have bid: leases that still hold."""
        self.leases = GuestLeases(self.places, self.market.auction, self.writes, now)

    def pick(
        self, now: float, *, key: str = "", per_line: int = 0, lines: int = 0, most: int = 0, most_bytes: int = 0
    ) -> Picked:
        """What may be fetched now, the best bids first, out of the auction's pool. Zero means: no limit of yours."""
        most = min(most or MOST_AT_ONCE, MOST_AT_ONCE)
        per_line, lines = per_line or NO_LIMIT, lines or NO_LIMIT
        free = self.queues.free(now, per_line)
        if key:
            free = np.where(np.arange(len(free)) == self.queues.get(key, -1), free, 0)
        auction = self.market.auction
        auction.gate.extend(len(free))
        wanted = min(most, int(np.minimum(free, most).sum()), lines * per_line)
        picked = auction.take_lines(now, free, lines, wanted)
        if len(picked.rows) < wanted and auction.refill_due(now, hungry=True):
            auction.refill(now, 0.0)  # what was picked is in the pool again
            picked = auction.take_lines(now, free, lines, wanted)
        sizes = np.cumsum(self.places.columns["size"][picked.rows], dtype=np.int64)
        fit = int(np.searchsorted(sizes, most_bytes or MOST_BYTES_AT_ONCE, side="right"))
        fit = max(fit, 1)  # one that is too large by itself would never go
        if fit < len(picked.rows):
            self.market.offer_again(picked.rows[fit:])
            picked = Picked(picked.rows[:fit], picked.lines[:fit], picked.values[:fit])
        return picked
