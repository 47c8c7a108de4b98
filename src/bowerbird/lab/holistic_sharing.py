"""How the fetches of a step are shared out among bids: all in one order, or fixed shares by kind.

This is all that `auto` and the splits of the holistic experiments differ in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bowerbird.lab.holistic_crawl import KINDS, Kind
from bowerbird.lab.holistic_world import F64, I64

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Shared:
    """What is taken: one list for each margin, best first; `price` is what one more new page would have had to bid."""

    parts: tuple[I64, ...]
    price: float | None  # None: nothing tells, it stays as it was


class Sharing(Protocol):
    """What shares out."""

    def share(self, values: F64, rows: I64, kinds: I64, fetches: int) -> Shared:
        """Of these rows, so many at most; `values` are the bids of all rows, `kinds` what these are."""


def best(values: F64, rows: I64, count: int) -> I64:
    """Of these rows the `count` of the highest value, best first; of equals the first found."""
    if count <= 0 or not len(rows):
        return _NONE
    value = values[rows]
    if len(rows) > count:
        least = value[np.argpartition(-value, count - 1)[:count]].min()
        cut = np.flatnonzero(value >= least)
        rows, value = rows[cut], value[cut]
    return rows[np.lexsort((rows, -value))][:count]


class OneOrder:
    """The best bids whatever they are for: one margin, and the least bid that was taken is the price of all."""

    def share(self, values: F64, rows: I64, kinds: I64, fetches: int) -> Shared:
        """The best of all."""
        taken = best(values, rows, fetches)
        return Shared((taken,), float(values[taken].min()) if len(taken) else None)


class Shares:
    """Whole fetches for each kind that add up to their shares over time; what one cannot use goes to the others.

    Each kind has a margin of its own. A new page costs the least bid of one that was taken, for it takes the place of
    such a page; nothing where all are taken.
    """

    def __init__(self, shares: tuple[float, float, float]) -> None:
        self.shares = np.array(shares)
        self.credit = np.zeros(3)

    def share(self, values: F64, rows: I64, kinds: I64, fetches: int) -> Shared:
        """The best of each kind, as many as its share."""
        candidates = [rows[kinds == kind] for kind in KINDS]
        given = self.split(fetches, np.array([len(part) for part in candidates]))
        parts = tuple(best(values, part, int(many)) for part, many in zip(candidates, given, strict=True))
        new = parts[Kind.NEW]
        if len(new) == len(candidates[Kind.NEW]):
            return Shared(parts, 0.0)
        return Shared(parts, float(values[new].min()) if len(new) else None)

    def split(self, fetches: int, able: I64) -> I64:
        """How many of each kind, of those that there are."""
        self.credit += self.shares * fetches
        given = np.minimum(np.maximum(np.floor(self.credit + 1e-9).astype(np.int64), 0), able)
        while given.sum() > fetches:
            given[int(np.argmax(given))] -= 1
        left = fetches - int(given.sum())
        # to those with the most credit first; then to any that can use it
        for kind in np.argsort(-(self.credit - given), kind="stable").tolist():
            if self.shares[kind] > 0:
                more = min(left, int(able[kind] - given[kind]), max(int(np.ceil(self.credit[kind] - given[kind])), 0))
                given[kind] += more
                left -= more
        for kind in np.argsort(-self.shares, kind="stable").tolist():
            more = min(left, int(able[kind] - given[kind]))
            given[kind] += more
            left -= more
        self.credit -= given
        self.credit = np.clip(self.credit, -fetches - 1.0, fetches + 1.0)  # what could not be used is not owed
        return given
