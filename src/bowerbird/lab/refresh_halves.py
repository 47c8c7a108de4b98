"""Are gains forecastable? Figure 3 of [UC05]: gains of each page in the first half of the weeks, and in the second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_local_gains import rank_correlation
from bowerbird.lab.refresh_terms import I64


@dataclass(frozen=True, slots=True)
class Halves:
    """Of the pages that were updated in both halves, the mean gain of an update in each."""

    page: I64
    first: FloatArray
    second: FloatArray

    @property
    def correlation(self) -> float:
        """Of ranks."""
        return rank_correlation(self.first, self.second)

    @property
    def positive(self) -> Halves:
        """The pages that have a place in a plot with logarithmic axes."""
        shown = (self.first > 0) & (self.second > 0)
        return Halves(self.page[shown], self.first[shown], self.second[shown])


def compare_halves(data: RefreshData, gains: FloatArray) -> Halves:
    """[UC05] Figure 3: mean gains of updates up to the middle week, and after it; `gains` by version."""
    later = np.flatnonzero(data.week > 0)
    early = data.week[later] <= data.weeks // 2
    means, counts = [], []
    for half in (later[early], later[~early]):
        counts.append(np.bincount(data.page[half], minlength=data.count))
        total = np.bincount(data.page[half], gains[half], data.count).astype(np.float64)
        means.append(total / np.maximum(counts[-1], 1))
    pages = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return Halves(pages, means[0][pages], means[1][pages])
