"""How many distinct pages each crawled page is cited together with ([RW15], for exponents b > 0).

Counting exactly takes the sum of squared out-degrees, so large graphs are sketched with HyperLogLog: one sketch for
the links of each page, and the union of the sketches of a page's in-linkers.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.frontier.graph import BoolArray, FrontierGraph, IntArray, LinkArray
from bowerbird.appraise.threads import cut_rows, share

FloatArray = npt.NDArray[np.float64]

EXACT_STEPS = 1_000_000_000
REGISTERS = 256
REGISTERS_AT_ONCE = 64


def virtual_degree(graph: FrontierGraph, *, exact_steps: int = EXACT_STEPS, registers: int = REGISTERS) -> FloatArray:
    """[RW15] Virtual out-degree: distinct pages a crawled page has virtual edges to; 0 for pages not crawled.

    Exact if that takes at most `exact_steps` looks at a link, else with a standard error of 1.04/sqrt(registers).
    """
    degree = graph.out_degree.astype(np.float64)
    if float(degree @ degree) <= exact_steps:
        return exact_virtual_degree(graph).astype(np.float64)
    return sketched_virtual_degree(graph, registers=registers)


def exact_virtual_degree(graph: FrontierGraph) -> IntArray:
    """Virtual out-degrees, each counted."""
    in_starts, in_sources = graph.into
    found = np.zeros(graph.count, np.int64)

    def count(low: int, high: int) -> None:
        _count_distinct(graph.starts, graph.targets, in_starts, in_sources, graph.crawled, low, high, found)

    share(count, cut_rows(in_starts))
    return found


def sketched_virtual_degree(graph: FrontierGraph, *, registers: int = REGISTERS) -> FloatArray:
    """Virtual out-degrees by HyperLogLog with so many registers (a multiple of 64), 64 bytes a page in memory at once.

    The estimate is Ertl's corrected one, which needs no tables of bias and is right for small sets too.
    """
    if registers < REGISTERS_AT_ONCE or registers & (registers - 1):
        raise ValueError(f"registers is {registers}; it must be a power of 2, at least {REGISTERS_AT_ONCE}")
    in_starts, in_sources = graph.into
    powers, empty = np.zeros(graph.count), np.zeros(graph.count, np.int64)
    sketches = np.empty((graph.count, REGISTERS_AT_ONCE), np.uint8)
    index_bits = int(registers).bit_length() - 1
    rows, in_rows = cut_rows(graph.starts), cut_rows(in_starts)
    for first in range(0, registers, REGISTERS_AT_ONCE):
        part = first

        def sketch(low: int, high: int, part: int = part) -> None:
            _sketch_rows(graph.starts, graph.targets, index_bits, part, low, high, sketches)

        def unite(low: int, high: int) -> None:
            _unite_sketches(in_starts, in_sources, sketches, graph.crawled, low, high, powers, empty)

        share(sketch, rows)
        share(unite, in_rows)
    union = np.zeros(graph.count)
    cited = graph.crawled & (graph.in_degree > 0)
    union[cited] = hyperloglog_size(powers[cited], empty[cited], registers)
    degree: FloatArray = np.where(cited, np.maximum(union - 1.0, 0.0), 0.0)  # the page itself is in the union
    return degree


def hyperloglog_size(powers: FloatArray, empty: IntArray, registers: int) -> FloatArray:
    """The size of a set from the sum of 2^-value over the registers in use and the number of empty ones."""
    share_empty = empty / registers
    sigma = share_empty.copy()
    term, factor = share_empty.copy(), 1.0
    for _ in range(64):
        term = term * term
        sigma += factor * term
        factor *= 2.0
        if not (factor * term[share_empty < 1.0]).max(initial=0.0) > 1e-12:
            break
    sigma[share_empty >= 1.0] = np.inf
    size: FloatArray = registers * registers / (2.0 * math.log(2.0)) / (registers * sigma + powers)
    return size


@numba.njit(cache=True, nogil=True)
def _count_distinct(
    starts: IntArray,
    targets: LinkArray,
    in_starts: IntArray,
    in_sources: LinkArray,
    crawled: BoolArray,
    low: int,
    high: int,
    found: IntArray,
) -> None:
    seen = np.full(len(crawled), -1, np.int64)
    for page in range(low, high):
        if not crawled[page]:
            continue
        seen[page] = page
        distinct = 0
        for k in range(in_starts[page], in_starts[page + 1]):
            source = in_sources[k]
            for link in range(starts[source], starts[source + 1]):
                if seen[targets[link]] != page:
                    seen[targets[link]] = page
                    distinct += 1
        found[page] = distinct


@numba.njit(cache=True, nogil=True)
def _mix(page: int) -> np.uint64:
    """Scatter page numbers over 64 bits."""
    x = np.uint64(page) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _sketch_rows(
    starts: IntArray,
    targets: LinkArray,
    index_bits: int,
    first: int,
    low: int,
    high: int,
    sketches: npt.NDArray[np.uint8],
) -> None:
    width = sketches.shape[1]
    for page in range(low, high):
        sketches[page, :] = 0
        for k in range(starts[page], starts[page + 1]):
            mixed = _mix(targets[k])
            register = np.int64(mixed >> np.uint64(64 - index_bits)) - first
            if 0 <= register < width:
                rest = mixed << np.uint64(index_bits)
                rank = 1
                while rank <= 64 - index_bits and not rest >> np.uint64(63):
                    rest <<= np.uint64(1)
                    rank += 1
                sketches[page, register] = max(sketches[page, register], np.uint8(rank))


@numba.njit(cache=True, nogil=True)
def _unite_sketches(
    in_starts: IntArray,
    in_sources: LinkArray,
    sketches: npt.NDArray[np.uint8],
    crawled: BoolArray,
    low: int,
    high: int,
    powers: FloatArray,
    empty: IntArray,
) -> None:
    width = sketches.shape[1]
    union = np.zeros(width, np.uint8)
    for page in range(low, high):
        if not crawled[page]:
            continue
        union[:] = 0
        for k in range(in_starts[page], in_starts[page + 1]):
            row = sketches[in_sources[k]]
            for i in range(width):
                union[i] = max(union[i], row[i])
        for i in range(width):
            if union[i] == 0:
                empty[page] += 1
            else:
                powers[page] += 2.0 ** -np.float64(union[i])
