"""Random order: the baseline without any knowledge."""

from __future__ import annotations

import numpy as np

from bowerbird.appraise.appraiser import Rows
from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot


class RandomOrder:
    """Bid 1 + u, with u in [0, 1) drawn once for each URL from its number and the seed."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def draw(self, rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """A fixed uniform number per row (a 64-bit mixing function, so no state is kept)."""
        x = rows.astype(np.uint64) + np.uint64((self.seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (x ^ (x >> np.uint64(31))) / 2.0**64

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Constant bids by lot."""
        draw = self.draw(rows)
        return Bids.build(1.0 + draw, terms={"draw": draw})

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """1 + draw."""
        draw = float(self.draw(np.array([row]))[0])
        return Term("1 + draw", 1 + draw, f"drawn once for this URL, seed {self.seed}", (Term("draw", draw),))
