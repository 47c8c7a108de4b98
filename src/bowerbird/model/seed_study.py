"""A choice of seeds for a crawl that runs: which pages lead to most of what is known, and what that changed.

All of it is counted on one day's graph with one day's weights, the seeds before it too: so the two can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

METHOD = "seeds"
OUT_OF_REACH = 255


@dataclass(frozen=True, slots=True)
class SeedChange:
    """What one choice changed."""

    at: float
    value: float  # that it covers, with the given seeds
    before_value: float  # that the seeds before it cover, on the same graph
    all_value: float
    added: int
    dropped: int


@dataclass(frozen=True, slots=True)
class SeedStudy:
    """The seeds among the first `count` rows, in the order of choice; each adds to what the given ones cover."""

    at: float
    method: str
    count: int
    k: int  # that were asked for
    hops: int
    row: I64
    pages: I64  # that each adds to those before it in the list
    value: F64
    all_pages: int
    all_value: float
    unit: str  # of values
    given: I64  # rows of the seeds that people gave, as far as they are fetched: they stay
    given_pages: int
    given_value: float
    before: I64  # rows chosen before this choice
    before_value: float  # that they and the given ones cover
    depth: U8  # by row: links from the nearest seed that is or was chosen, 255 = out of reach
    bound: tuple[float, float] | None = None  # no choice covers more than this value, with this confidence
    history: tuple[SeedChange, ...] = ()  # of the choices that changed something, the last of them last
    info: dict[str, str | float] = field(default_factory=dict)

    @property
    def covered_pages(self) -> int:
        """Pages that given and chosen seeds cover together."""
        return self.given_pages + int(self.pages.sum())

    @property
    def covered_value(self) -> float:
        """The value of those pages."""
        return self.given_value + float(self.value.sum())

    @property
    def share(self) -> float:
        """Of all value, what given and chosen seeds cover."""
        return self.covered_value / self.all_value if self.all_value > 0 else 0.0

    @property
    def before_share(self) -> float:
        """Of all value, what the seeds before these cover, with the given ones."""
        return self.before_value / self.all_value if self.all_value > 0 else 0.0

    @property
    def added(self) -> I64:
        """Rows that were not chosen before."""
        return self.row[~np.isin(self.row, self.before)]

    @property
    def kept(self) -> I64:
        """Rows that were chosen before, and are."""
        return self.row[np.isin(self.row, self.before)]

    @property
    def dropped(self) -> I64:
        """Rows that were chosen before, and are no more."""
        return self.before[~np.isin(self.before, self.row)]

    @property
    def is_change(self) -> bool:
        """Did this choice change anything?"""
        return bool(len(self.added) or len(self.dropped))

    def has(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which of these rows were chosen."""
        return np.isin(rows, self.row)

    def place(self, row: int) -> int:
        """The place of a row in the order of choice, -1 for what was not chosen."""
        found = np.flatnonzero(self.row == row)
        return int(found[0]) if len(found) else -1
