"""The seam: an appraiser turns a Snapshot into bids. It never touches the network, the disk or the clock."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Bids, Term
from bowerbird.model.snapshot import Snapshot

Rows = npt.NDArray[np.int64]


class Appraiser(Protocol):
    """What a fetch of each of these rows is worth."""

    name: str

    def appraise(self, snapshot: Snapshot, rows: Rows) -> Bids:
        """Bids of `rows`, in their order. Depends on nothing but the arguments."""

    def explain(self, snapshot: Snapshot, row: int) -> Term:
        """Why the bid of one row is what it is, as a tree."""


class HubAppraiser(Appraiser, Protocol):
    """An appraiser of hubs, which also knows the pages that are hubs."""

    def claims(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which of these rows are pages that may be bid for as hubs."""


class RefreshAppraiser(Appraiser, Protocol):
    """An appraiser of known pages, which also learns how long to leave a page alone."""

    def next_interval_s(self, interval_s: float, changed: bool) -> float:
        """The interval after a visit that found the page changed or not."""
