"""Host-fair: hosts take turns, those with the fewest fetched pages first."""

from __future__ import annotations

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot


class HostFair:
    """Bid 1 + 1/(1 + pages fetched of the host + depth/256): among pages of equal hosts the nearest to a seed."""

    name = "host-fair"
    PER_LINK = 1 / 256  # no depth (it is below 256) weighs as much as one fetched page

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids; they sink as the host is fetched, with each new appraisal."""
        fetched = snapshot.hosts.fetched[snapshot.pages.host[rows]]
        depth = snapshot.pages.depth[rows]
        return Bids.build(
            1.0 + 1.0 / (1.0 + fetched + depth * self.PER_LINK),
            terms={"host_fetched": fetched, "depth": depth},
        )

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """1 + 1/(1 + fetched + depth/256)."""
        fetched = int(snapshot.hosts.fetched[snapshot.pages.host[row]])
        depth = int(snapshot.pages.depth[row])
        return Term(
            "1 + 1/(1 + host fetched + depth/256)",
            1 + 1 / (1 + fetched + depth * self.PER_LINK),
            "hosts take turns; depth decides between pages of one host",
            (Term("host fetched", fetched), Term("depth", depth)),
        )
