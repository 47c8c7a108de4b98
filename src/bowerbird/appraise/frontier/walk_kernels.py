"""Numba kernels of the link graph and of the walks on it. Each works on a range of rows, so that threads can share."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Floats = npt.NDArray[Any]  # float32 or float64: a kernel is compiled for each
Ints = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True)
def count_links(sources: Ints, targets: Ints, crawled: BoolArray, lengths: I64) -> None:
    """How many links of the list each crawled page has, without links to itself."""
    for k in range(len(sources)):
        source = np.int64(sources[k])
        if crawled[source] and source != np.int64(targets[k]):
            lengths[source] += 1


@numba.njit(cache=True, nogil=True)
def place_links(sources: Ints, targets: Ints, crawled: BoolArray, cursor: I64, out: U32) -> None:
    """Put each link that `count_links` counted behind the earlier ones of its row; `cursor` begins as the starts."""
    for k in range(len(sources)):
        source = np.int64(sources[k])
        target = np.int64(targets[k])
        if crawled[source] and source != target:
            out[cursor[source]] = target
            cursor[source] += 1


@numba.njit(cache=True, nogil=True)
def count_rows(starts: I64, targets: U32, crawled: BoolArray, lengths: I64) -> None:
    """As `count_links`, for links that are in rows already."""
    for row in range(len(starts) - 1):
        if crawled[row]:
            for k in range(starts[row], starts[row + 1]):
                lengths[row] += targets[k] != row


@numba.njit(cache=True, nogil=True)
def copy_rows(starts: I64, targets: U32, crawled: BoolArray, out: U32) -> None:
    """The rows of crawled pages one after another, without links to themselves."""
    at = 0
    for row in range(len(starts) - 1):
        if crawled[row]:
            for k in range(starts[row], starts[row + 1]):
                if targets[k] != row:
                    out[at] = targets[k]
                    at += 1


@numba.njit(cache=True, nogil=True)
def sort_rows(starts: I64, targets: U32, low: int, high: int, lengths: I64) -> None:
    """Sort rows low…high-1 where they lie, doubles dropped; `lengths` becomes what is left of each."""
    for row in range(low, high):
        first, last = starts[row], starts[row + 1]
        sorted_already = True
        for k in range(first + 1, last):
            if targets[k - 1] >= targets[k]:
                sorted_already = False
                break
        if sorted_already:
            lengths[row] = last - first
            continue
        targets[first:last].sort()
        end = first + 1
        for k in range(first + 1, last):
            if targets[k] != targets[k - 1]:
                targets[end] = targets[k]
                end += 1
        lengths[row] = end - first


@numba.njit(cache=True, nogil=True)
def close_gaps(starts: I64, lengths: I64, targets: U32) -> None:
    """Move rows that got shorter together; `starts` then says where they lie."""
    at = 0
    for row in range(len(lengths)):
        first = starts[row]
        starts[row] = at
        for k in range(first, first + lengths[row]):
            targets[at] = targets[k]
            at += 1
    starts[len(lengths)] = at


@numba.njit(cache=True, nogil=True)
def count_targets(targets: U32, counts: I64) -> None:
    """How often each page is a target."""
    for k in range(len(targets)):
        counts[targets[k]] += 1


@numba.njit(cache=True, nogil=True)
def turn_rows(starts: I64, targets: U32, low: int, high: int, cursor: I64, out: U32) -> None:
    """The transposed rows low…high-1; rows of the graph ascend, and so do the sources in each row of the result."""
    for row in range(len(starts) - 1):
        for k in range(starts[row], starts[row + 1]):
            target = targets[k]
            if target >= high:
                break
            if target >= low:
                out[cursor[target]] = row
                cursor[target] += 1


@numba.njit(cache=True, nogil=True)
def co_citations(
    others: I32,
    in_starts: I64,
    in_sources: U32,
    crawled: BoolArray,
    low: int,
    high: int,
    weight: I64,
    citing: U32,
) -> None:
    """For crawled pages: the sum of `others` (out-degree - 1) of the in-linkers, and how many of those have some."""
    for page in range(low, high):
        total = np.int64(0)
        several = 0
        if crawled[page]:
            for k in range(in_starts[page], in_starts[page + 1]):
                other = others[in_sources[k]]
                total += other
                if other > 0:
                    several += 1
        weight[page] = total
        citing[page] = several


@numba.njit(cache=True, nogil=True)
def spread(
    starts: I64, targets: U32, lead: Floats, x: Floats, virtual: Floats, low: int, high: int, sent: Floats
) -> None:
    """sent_p = lead_p·x_p + sum of `virtual` over p's targets, where p has several: one alone is cited with nothing."""
    for page in range(low, high):
        first, last = starts[page], starts[page + 1]
        total = 0.0
        if last - first > 1:
            for k in range(first, last):
                total += virtual[targets[k]]
        sent[page] = lead[page] * x[page] + total


@numba.njit(cache=True, nogil=True, inline="always")
def gather(in_starts: I64, in_sources: U32, sent: Floats, page: int) -> float:
    """What a page gets along the links to it, added up in float64."""
    total = 0.0
    for k in range(in_starts[page], in_starts[page + 1]):
        total += sent[in_sources[k]]
    return total


@numba.njit(cache=True, nogil=True)
def collect(
    in_starts: I64,
    in_sources: U32,
    crawled: BoolArray,
    base: float,
    sent: Floats,
    lead: Floats,
    x: Floats,
    next_sent: Floats,
    low: int,
    high: int,
) -> tuple[float, float]:
    """One step of a walk along real links for crawled pages: x and what it sends next; L1 change and L1 norm."""
    change = 0.0
    norm = 0.0
    for page in range(low, high):
        if not crawled[page]:
            continue
        total = gather(in_starts, in_sources, sent, page)
        total += base
        change += abs(total - x[page])
        norm += abs(total)
        x[page] = total
        next_sent[page] = lead[page] * total
    return change, norm


@numba.njit(cache=True, nogil=True)
def collect_enriched(
    in_starts: I64,
    in_sources: U32,
    crawled: BoolArray,
    base: float,
    sent: Floats,
    citing: U32,
    lead: Floats,
    x: Floats,
    virtual: Floats,
    low: int,
    high: int,
) -> tuple[float, float]:
    """As `collect`, where `sent` has the virtual part too: what a page has sent to itself is taken off."""
    change = 0.0
    norm = 0.0
    for page in range(low, high):
        if not crawled[page]:
            continue
        total = gather(in_starts, in_sources, sent, page)
        total += base - np.float64(citing[page]) * virtual[page]
        change += abs(total - x[page])
        norm += abs(total)
        x[page] = total
        virtual[page] = lead[page] * total
    return change, norm


@numba.njit(cache=True, nogil=True)
def collect_frontier(
    in_starts: I64, in_sources: U32, crawled: BoolArray, base: float, sent: F64, low: int, high: int, x: F64
) -> None:
    """What pages that are not crawled get, once: they pass nothing on."""
    for page in range(low, high):
        if crawled[page]:
            continue
        total = gather(in_starts, in_sources, sent, page)
        x[page] = total + base
