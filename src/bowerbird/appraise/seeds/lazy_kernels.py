"""Numba kernels of lazy greedy: which page leads, and which of the outdated ones could overtake it."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def find_rivals(
    value: F64,
    below: F64,
    since: F64,
    weighed: I32,
    now: int,
    lost: float,
    rounding: float,
    rivals: I64,
    most: F64,
) -> tuple[int, int]:
    """The page that is best among those weighed now (-1 = none), and how many outdated ones may be better.

    A gain shrinks as pages are covered, except that pages below zero which others have covered (`lost` in all, `since`
    when it was weighed) no longer count against it: value + min(below, lost - since) is the most it can be by now. Ties
    go to the lower number; gains that differ by no more than `rounding` are the same. `rivals` and `most` have room for
    all pages.
    """
    leader, top = -1, -np.inf
    for page in range(len(value)):
        if weighed[page] == now:
            top = max(top, value[page])
    for page in range(len(value)):
        if weighed[page] == now and value[page] >= top - rounding:
            leader = page
            break
    found = 0
    for page in range(len(value)):
        if weighed[page] == now or weighed[page] < 0:
            continue
        hope = value[page] + min(below[page], lost - since[page])
        if leader >= 0 and (hope < top - rounding or (hope <= top and page > leader)):
            continue
        rivals[found] = page
        most[found] = hope
        found += 1
    return leader, found
