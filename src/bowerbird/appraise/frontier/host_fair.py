"""Host-fair: hosts take turns, those with the fewest fetched pages first."""

from __future__ import annotations

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot


class HostFair:
    """Bid 1 + 1/(1 + pages fetched of the host), less a little per link from the seed."""

    name = "host-fair"
    PER_LINK = 1e-4

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids; they sink as the host is fetched, with each new appraisal."""
        fetched = snapshot.hosts.fetched[snapshot.pages.host[rows]]
        depth = snapshot.pages.depth[rows]
        return Bids.build(
            1.0 + 1.0 / (1.0 + fetched) + self.PER_LINK / (1.0 + depth),
            terms={"host_fetched": fetched, "depth": depth},
        )

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """1 + 1/(1 + fetched) + a little for shallow pages."""
        fetched = int(snapshot.hosts.fetched[snapshot.pages.host[row]])
        depth = int(snapshot.pages.depth[row])
        return Term(
            "1 + 1/(1 + host fetched) + 0.0001/(1 + depth)",
            1 + 1 / (1 + fetched) + self.PER_LINK / (1 + depth),
            "hosts take turns",
            (Term("host fetched", fetched), Term("depth", depth)),
        )
