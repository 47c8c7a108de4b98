"""What is known of the fetched pages of a crawl when their refreshes are appraised: columns by page, and by visit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.dates import PageDates
from bowerbird.appraise.refresh.priors import Cells, find_cells

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

STAKE_GROUPS = 8


@dataclass(frozen=True)
class RefreshInputs:
    """Visits are the fetches of a page after its first: page i has `starts[i]…starts[i + 1] - 1`, in time order."""

    now_s: float
    starts: I64
    interval_s: F64  # by visit: since the fetch before; less where "not modified" is believed in part only
    changed: npt.NDArray[np.bool_]  # by visit
    shift: F64  # by visit: the share of shingles that changed, 0 where it did not
    gain: F64  # by visit: the measured share of Q; 0 where unchanged, NaN where it was not measured
    stake: F64  # by page: the share of Q that a whole change of the page could move
    views: F64  # by page: its share of what searchers see
    levels: Sequence[I64]  # groupings of the pages, coarse to fine
    hint_age_s: F64  # by page: how long ago its site said that it changed; NaN where the site says nothing
    cost: F64  # by page: of a refresh, relative to a whole fetch
    dates: PageDates | None = None  # what the pages' own dates tell, where that is known
    clicks_per_s: float = 0.0  # that searchers make in all; 0 = not known

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(self.starts) - 1

    @cached_property
    def cells(self) -> Cells:
        """Pages that no level tells apart, nor what they have at stake."""
        return find_cells((*self.levels, stake_groups(self.stake)), self.count)

    @property
    def visited(self) -> I64:
        """By visit, its page."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))


def stake_groups(stake: F64) -> I64:
    """Eighths of the pages by their stake: what many people look at is often edited more than the rest.

    Those that are revisited have most at stake. Without this, the others would be expected to change as these do.

    >>> stake_groups(np.array([0.0, 0.0, 0.0, 5.0, 1.0])).tolist()
    [0, 0, 0, 6, 4]
    """
    return np.searchsorted(np.sort(stake), stake).astype(np.int64) * STAKE_GROUPS // max(len(stake), 1)
