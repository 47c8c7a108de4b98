"""Which few hubs announce most of the new pages? The greedy cover: always the hub that adds most to what is covered."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cover:
    """Hubs in the order of choice, and the share of all announced pages (by weight) covered with each."""

    order: I64
    covered: F64


def greedy_cover(
    hub: npt.ArrayLike,
    page: npt.ArrayLike,
    hub_count: int,
    page_count: int,
    weight: npt.ArrayLike | None = None,
    share: float = 0.8,
) -> Cover:
    """[ECHO13] The greedy cover: hubs until `share` of the pages that any hub announces is covered.

    `hub` and `page` are pairs of who announces what; doubles do no harm. Within 1 - 1/e of the best for any number of
    hubs. Ties go to the lower number.

    >>> greedy_cover([0, 0, 1, 2], [0, 1, 1, 2], 3, 3, share=1.0).order.tolist()
    [0, 2]
    """
    pairs = np.unique(np.asarray(hub, np.int64) * page_count + np.asarray(page, np.int64))
    hubs, pages = np.divmod(pairs, max(page_count, 1))
    worth = np.ones(page_count) if weight is None else np.maximum(np.asarray(weight, np.float64), 0.0)
    starts = np.zeros(hub_count + 1, np.int64)
    np.cumsum(np.bincount(hubs, minlength=hub_count), out=starts[1:])
    seen = np.zeros(page_count, np.bool_)
    seen[pages] = True
    total = float(worth[seen].sum())
    if total <= 0.0:
        return Cover(np.zeros(0, np.int64), np.zeros(0))
    order, gained = _choose(starts, pages, worth, share * total * (1.0 - 1e-12))
    return Cover(order, np.minimum(np.cumsum(gained) / total, 1.0))


@numba.njit(cache=True, nogil=True)
def _choose(starts: I64, pages: I64, worth: F64, wanted: float) -> tuple[I64, F64]:
    """Gains only shrink as pages are covered: a hub whose gain, brought up to date, still leads is the best of all."""
    count = len(starts) - 1
    covered = np.zeros(len(worth), np.bool_)
    heap = [(0.0, -1)]
    for i in range(count):
        gain = 0.0
        for k in range(starts[i], starts[i + 1]):
            gain += worth[pages[k]]
        heap.append((-gain, i))
    heapq.heapify(heap)
    order, gained = np.empty(count, np.int64), np.empty(count)
    chosen, sum_so_far = 0, 0.0
    while sum_so_far < wanted and chosen < count:
        _, i = heapq.heappop(heap)
        if i < 0:  # nothing left that gains
            break
        gain = 0.0
        for k in range(starts[i], starts[i + 1]):
            if not covered[pages[k]]:
                gain += worth[pages[k]]
        if gain <= 0.0:
            continue
        if heap[0] < (-gain, i):
            heapq.heappush(heap, (-gain, i))
            continue
        for k in range(starts[i], starts[i + 1]):
            covered[pages[k]] = True
        order[chosen], gained[chosen] = i, gain
        chosen += 1
        sum_so_far += gain
    return order[:chosen].copy(), gained[:chosen].copy()
