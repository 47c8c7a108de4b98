"""What the index answers to every query of a workload."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.workload import Workload


def ask_index(
    index: TantivyIndex, workload: Workload, depth: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], int]]:
    """By query, in its order: the first pages, best first, their scores, and how many results there are in all."""
    for query in range(len(workload)):
        yield index.top_scores(workload.words_of(query), depth)
