"""Numba kernels of the boosted impact: what the words and the linkers of a page say of it, from pages like it."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
B1 = npt.NDArray[np.bool_]


@numba.njit(cache=True, nogil=True)
def encode_marks(starts: I64, marks: I64, values: F64, known: B1, count: int, mean: float, prior: float) -> F64:
    """Pages × 5: what pages with the same marks (words, linkers) have, itself left out: means weighted equally, by
    rarity among the known pages, by logarithmic rarity; the highest and the lowest mark.

    A mark's level is the mean of `values` over the known pages that have it, drawn towards `mean` by `prior` pages.
    """
    pages = len(starts) - 1
    total = np.zeros(count)
    held = np.zeros(count)
    for page in range(pages):
        if known[page]:
            for i in range(starts[page], starts[page + 1]):
                total[marks[i]] += values[page]
                held[marks[i]] += 1.0
    out = np.full((pages, 5), mean)
    for page in range(pages):
        own = 1.0 if known[page] else 0.0
        value = values[page] if known[page] else 0.0
        sums = np.zeros(3)
        weights = np.zeros(3)
        high, low = -np.inf, np.inf
        for i in range(starts[page], starts[page + 1]):
            others = held[marks[i]] - own
            level = (total[marks[i]] - value + prior * mean) / (others + prior)
            high, low = max(high, level), min(low, level)
            for kind in range(3):
                if kind == 0:
                    weight = 1.0
                elif kind == 1:
                    weight = 1.0 / np.sqrt(others + 1.0)
                else:
                    weight = np.log1p(pages / (others + 1.0))
                sums[kind] += weight * level
                weights[kind] += weight
        if weights[0] > 0:
            for kind in range(3):
                out[page, kind] = sums[kind] / weights[kind]
            out[page, 3], out[page, 4] = max(high, mean), min(low, mean)
    return out


@numba.njit(cache=True, nogil=True)
def sum_demand(
    starts: I64,
    terms: I64,
    term_starts: I64,
    queries: I64,
    weight: F64,
    mass: F64,
    frequency: F64,
    results: I64,
    top: int,
) -> F64:
    """Pages × 8: what is asked for in the words of a page, from its distinct `terms` of the workload (-1: none).

    The part of a query's mass that the page's words cover is its share s. Sums over queries of f(q) where s = 1, the
    same times room (the chance that one more result is in the top), the same where there are fewer than `top`
    results; of f·s², the same times room, and where few; of f·s^4·room; of f·room where s > 1/2.
    """
    pages = len(starts) - 1
    out = np.zeros((pages, 8))
    share = np.zeros(len(frequency))
    touched = np.empty(len(frequency), np.int64)
    for page in range(pages):
        count = 0
        for i in range(starts[page], starts[page + 1]):
            term = terms[i]
            if term < 0:
                continue
            for j in range(term_starts[term], term_starts[term + 1]):
                query = queries[j]
                if share[query] == 0.0:
                    touched[count] = query
                    count += 1
                share[query] += weight[term] / mass[query]
        for i in range(count):
            query = touched[i]
            part, asked = share[query], frequency[query]
            share[query] = 0.0
            room = min(1.0, top / max(results[query], 1))
            few = 1.0 if results[query] < top else 0.0
            if part > 0.999:
                out[page, 0] += asked
                out[page, 1] += asked * room
                out[page, 2] += asked * few
            square = part * part
            out[page, 3] += asked * square
            out[page, 4] += asked * square * room
            out[page, 5] += asked * square * few
            out[page, 6] += asked * square * square * room
            if part > 0.5:
                out[page, 7] += asked * room
    return out
