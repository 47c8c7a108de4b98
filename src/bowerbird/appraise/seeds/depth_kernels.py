"""The loop of counting links from seeds."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]


@numba.njit(cache=True, nogil=True)
def spread_depths(
    starts: I64,
    targets: U32,
    leads_on: npt.NDArray[np.bool_],
    ends: I64,
    depth: U8,
    line: U32,
    filled: int,
    out_of_reach: int,
) -> None:
    """Search on from the first `filled` pages of `line`, nearest first; `line` has room for every page."""
    place = 0
    while place < filled:
        page = line[place]
        place += 1
        level = int(depth[page]) + 1
        if level >= out_of_reach or not leads_on[page]:
            continue
        for k in range(starts[page], starts[page + 1]):
            target = targets[k]
            if depth[target] == out_of_reach:
                depth[target] = level
                line[filled] = target
                filled += 1
            end = ends[target]
            if depth[end] == out_of_reach:
                depth[end] = level
                line[filled] = end
                filled += 1
