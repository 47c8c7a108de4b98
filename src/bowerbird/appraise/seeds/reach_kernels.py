"""Numba kernels of reach: what lies within so many links of a page, for one page or for 64 at once.

`left` is by page: with how many links still to go a chosen seed came by there at best; -1 = no seed reaches it. A page
that is come by with no more links to go than `left` says leads to nothing new: all behind it is covered. So the more
is covered, the less a search has to look at.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

BATCH = 64  # searches at once: the bits of a word


@numba.njit(cache=True, nogil=True)
def cover_from(
    starts: I64, targets: U32, weight: F64, seed: int, hops: int, left: I8, line: U32
) -> tuple[int, float, float]:
    """Cover what `seed` reaches: pages that are new, their value, and how much of it is below zero (as a positive).

    `line` has room for all pages. What `left` allows is passed over, so later seeds cost less.
    """
    if left[seed] >= hops:
        return 0, 0.0, 0.0
    pages = 0
    value = 0.0
    below = 0.0
    line[0] = seed
    first, last = 0, 1
    if left[seed] < 0:
        pages, value = 1, weight[seed]
        below = max(-weight[seed], 0.0)
    left[seed] = hops
    for togo in range(hops - 1, -1, -1):
        end = last
        for place in range(first, end):
            page = line[place]
            for k in range(starts[page], starts[page + 1]):
                target = targets[k]
                if left[target] >= togo:
                    continue
                if left[target] < 0:
                    pages += 1
                    value += weight[target]
                    below += max(-weight[target], 0.0)
                left[target] = togo
                # within one search a page is met first with most links to go: it is in the line once
                line[last] = target
                last += 1
        first = end
        if first == last:
            break
    return pages, value, below


@numba.njit(cache=True, nogil=True)
def weigh_reach(
    starts: I64,
    targets: U32,
    weight: F64,
    sources: I64,
    hops: int,
    left: I8,
    marks: U64,
    lines: U32,
    value: F64,
    below: F64,
) -> int:
    """For up to 64 sources at once: the value of what each would newly cover, and how much of it is below zero.

    A word by page says which of the sources have come by: `marks` has three rows of them (come by, now, next), zero
    before and after. `lines` has three rows with room for all pages. Returns the links looked at.
    """
    seen, now, later = marks[0], marks[1], marks[2]
    line, coming, found = lines[0], lines[1], lines[2]
    work, known, inside = 0, 0, 0
    for i in range(len(sources)):
        page = sources[i]
        if left[page] >= hops:
            continue
        if seen[page] == 0:
            found[known] = page
            line[known] = page
            known += 1
        seen[page] |= np.uint64(1) << np.uint64(i)
        now[page] = seen[page]
    inside = known
    for togo in range(hops - 1, -1, -1):
        arrived = 0
        for place in range(inside):
            page = line[place]
            mine = now[page]
            now[page] = 0
            work += starts[page + 1] - starts[page]
            for k in range(starts[page], starts[page + 1]):
                target = targets[k]
                new = mine & ~seen[target]
                if new == 0 or left[target] >= togo:
                    continue
                if seen[target] == 0:
                    found[known] = target
                    known += 1
                if later[target] == 0:
                    coming[arrived] = target
                    arrived += 1
                seen[target] |= new
                later[target] |= new
        line, coming = coming, line
        now, later = later, now
        inside = arrived
        if inside == 0:
            break
    for place in range(inside):
        now[line[place]] = 0
    _sum_by_source(weight, left, seen, found[:known], value, below)
    return work


@numba.njit(cache=True, nogil=True)
def _sum_by_source(weight: F64, left: I8, seen: U64, found: U32, value: F64, below: F64) -> None:
    """Sums over the pages found that no seed covers, by source; `seen` is cleared.

    Weights are gathered by the value of each byte of a word first: eight additions a page, however many bits it has.
    """
    gathered = np.zeros((8, 256))
    gathered_below = np.zeros((8, 256))
    any_below = False
    for place in range(len(found)):
        page = found[place]
        word = seen[page]
        seen[page] = 0
        if left[page] >= 0:
            continue
        amount = weight[page]
        for byte in range(8):
            gathered[byte, (word >> np.uint64(8 * byte)) & np.uint64(255)] += amount
        if amount < 0.0:
            any_below = True
            for byte in range(8):
                gathered_below[byte, (word >> np.uint64(8 * byte)) & np.uint64(255)] -= amount
    for i in range(len(value)):
        byte, bit = i >> 3, 1 << (i & 7)
        total, total_below = 0.0, 0.0
        for pattern in range(256):
            if pattern & bit:
                total += gathered[byte, pattern]
                if any_below:
                    total_below += gathered_below[byte, pattern]
        value[i] = total
        below[i] = total_below
