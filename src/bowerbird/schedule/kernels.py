"""Numba kernels of the auction. They read bids as columns and know nothing of pages."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import shape_value

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

value_of = numba.njit(cache=True, nogil=True)(shape_value)


@numba.njit(cache=True, nogil=True)
def _worse(value: float, row: int, other_value: float, other_row: int) -> bool:
    """Ties go to the lower row: the URL known first."""
    return bool(value < other_value or (value == other_value and row > other_row))


@numba.njit(cache=True, nogil=True)
def gather_best(
    now: float,
    price: float,
    amplitude: F32,
    rate: F32,
    since: F64,
    shape: U8,
    host: U32,
    not_before: F64,
    weight: F32,
    starts: I64,
    sizes: I64,
    rows: I64,
    values: F64,
) -> int:
    """Keep, per host, the best bids worth at least `price` now, in heaps within `rows[starts[h]:starts[h+1]]`.

    A host's weight moves its bids down the line, never below the price: what is worth a fetch gets its turn.

    Returns how many bids were good enough but found no room.
    """
    left_out = 0
    for row in range(len(amplitude)):
        a = amplitude[row]
        if a <= 0.0 or not_before[row] > now:
            continue
        h = host[row]
        value = value_of(shape[row], a, rate[row] * (now - since[row]))
        if value < price:
            continue
        value *= weight[h]
        base = starts[h]
        size = sizes[h]
        room = starts[h + 1] - base
        if size < room:
            i = size
            sizes[h] = size + 1
            while i > 0:
                parent = (i - 1) // 2
                if not _worse(value, row, values[base + parent], rows[base + parent]):
                    break
                values[base + i] = values[base + parent]
                rows[base + i] = rows[base + parent]
                i = parent
            values[base + i] = value
            rows[base + i] = row
            continue
        left_out += 1
        if room == 0 or _worse(value, row, values[base], rows[base]):
            continue
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and _worse(
                values[base + child + 1], rows[base + child + 1], values[base + child], rows[base + child]
            ):
                child += 1
            if not _worse(values[base + child], rows[base + child], value, row):
                break
            values[base + i] = values[base + child]
            rows[base + i] = rows[base + child]
            i = child
        values[base + i] = value
        rows[base + i] = row
    return left_out


@numba.njit(cache=True, nogil=True)
def candidates(
    now: float,
    price: float,
    pool_row: I64,
    pool_host: U32,
    amplitude: F32,
    rate: F32,
    since: F64,
    shape: U8,
    free: I64,
    weight: F32,
    not_before: F64,
    best_place: I64,
    best_value: F64,
    out_place: I64,
    out_value: F64,
) -> int:
    """Pool entries that could be taken now: the best of each host with one free slot, all of hosts with more.

    `best_place` must come filled with -1; it is used as scratch per host.
    """
    found = 0
    for place in range(len(pool_row)):
        h = pool_host[place]
        slots = free[h]
        if slots <= 0 or amplitude[place] <= 0.0:
            continue
        value = value_of(shape[place], amplitude[place], rate[place] * (now - since[place]))
        if value < price:
            continue
        value *= weight[h]
        if slots > 1:
            if not_before[pool_row[place]] <= now:
                out_place[found] = place
                out_value[found] = value
                found += 1
            continue
        held = best_place[h]
        if held >= 0 and not _worse(best_value[h], pool_row[held], value, pool_row[place]):
            continue
        if not_before[pool_row[place]] <= now:
            best_place[h] = place
            best_value[h] = value
    for h in range(len(best_place)):
        if best_place[h] >= 0:
            out_place[found] = best_place[h]
            out_value[found] = best_value[h]
            found += 1
    return found
