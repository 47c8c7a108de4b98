"""In-degree: the pages that most known pages link to come first."""

from __future__ import annotations

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot


class InDegree:
    """Bid 2 - 1/(1 + in-links): grows with each page that links here, and stays in the range of the others."""

    name = "in-degree"

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids by the number of pages seen to link here."""
        in_links = snapshot.pages.in_degree[rows]
        return Bids.build(2.0 - 1.0 / (1.0 + in_links), terms={"in_links": in_links})

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """2 - 1/(1 + in-links)."""
        in_links = int(snapshot.pages.in_degree[row])
        return Term(
            "2 - 1/(1 + in-links)",
            2 - 1 / (1 + in_links),
            "distinct fetched pages that link here",
            (Term("in-links", in_links),),
        )
