"""Breadth-first: the pages nearest to a seed come first, and among them those known longest."""

from __future__ import annotations

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot


class BreadthFirst:
    """Bid 1 + 1/(1 + depth); a tie goes to the URL known first."""

    name = "breadth-first"

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids by depth."""
        depth = snapshot.pages.depth[rows]
        return Bids.build(1.0 + 1.0 / (1.0 + depth), terms={"depth": depth})

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """1 + 1/(1 + depth)."""
        depth = int(snapshot.pages.depth[row])
        return Term(
            "1 + 1/(1 + depth)",
            1 + 1 / (1 + depth),
            "links from the nearest seed decide; a tie goes to the URL known first",
            (Term("depth", depth),),
        )
