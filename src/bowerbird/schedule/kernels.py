"""Numba kernels of the auction. They read bids as columns and know nothing of pages."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from bowerbird.model.bid import saturating_gain, shape_value

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

register_jitable(saturating_gain)  # shape_value calls it
value_of = numba.njit(cache=True, nogil=True)(shape_value)


@numba.njit(cache=True, nogil=True)
def _worse(value: float, row: int, other_value: float, other_row: int) -> bool:
    """Ties go to the lower row: the URL known first."""
    return bool(value < other_value or (value == other_value and row > other_row))


@numba.njit(cache=True, nogil=True)
def _keep_best(
    values: F64, keys: I64, loads: I64, base: int, size: int, room: int, value: float, key: int, load: int
) -> int:
    """Offer an entry to a heap of the `room` best, the worst of them on top; returns the heap's size.

    The heap lies from `base` on in `values` and `keys` (the row, which breaks ties); `loads` goes along with them.
    """
    if size < room:
        i = size
        size += 1
        while i > 0:
            parent = (i - 1) // 2
            if not _worse(value, key, values[base + parent], keys[base + parent]):
                break
            values[base + i] = values[base + parent]
            keys[base + i] = keys[base + parent]
            loads[base + i] = loads[base + parent]
            i = parent
    elif room == 0 or _worse(value, key, values[base], keys[base]):
        return size
    else:
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and _worse(
                values[base + child + 1], keys[base + child + 1], values[base + child], keys[base + child]
            ):
                child += 1
            if not _worse(values[base + child], keys[base + child], value, key):
                break
            values[base + i] = values[base + child]
            keys[base + i] = keys[base + child]
            loads[base + i] = loads[base + child]
            i = child
    values[base + i] = value
    keys[base + i] = key
    loads[base + i] = load
    return size


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
        if not value >= price:  # so that what is not a number stays out
            continue
        base = starts[h]
        room = starts[h + 1] - base
        left_out += sizes[h] == room
        sizes[h] = _keep_best(values, rows, rows, base, sizes[h], room, value * weight[h], row, row)
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
    weight: F32,
    book_amplitude: F32,
    not_before: F64,
    starts: I64,
    sizes: I64,
    values: F64,
    rows: I64,
    places: I64,
) -> int:
    """The pool entries that could be taken now: of each host the best that its free slots allow.

    Host h has `starts[h + 1] - starts[h]` free slots; `sizes` must come as zeros. The candidates are moved to the front
    of `values`, `rows` and `places`; returns how many there are.
    """
    for place in range(len(pool_row)):
        h = pool_host[place]
        base = starts[h]
        room = starts[h + 1] - base
        if room == 0 or amplitude[place] <= 0.0:
            continue
        value = value_of(shape[place], amplitude[place], rate[place] * (now - since[place]))
        if not value >= price:
            continue
        value *= weight[h]
        row = pool_row[place]
        if sizes[h] == room and _worse(value, row, values[base], rows[base]):
            continue
        # the book is read last: it is far away in memory
        if not_before[row] > now or book_amplitude[row] <= 0.0:
            continue
        sizes[h] = _keep_best(values, rows, places, base, sizes[h], room, value, row, place)
    found = 0
    for h in range(len(sizes)):
        base = starts[h]
        for i in range(base, base + sizes[h]):
            values[found] = values[i]
            rows[found] = rows[i]
            places[found] = places[i]
            found += 1
    return found
