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


@numba.njit(cache=True, nogil=True, inline="always")
def _replace_worst(values: F64, keys: I64, loads: I64, base: int, room: int, value: float, key: int, load: int) -> None:
    """Put an entry in the place of the worst of a heap, which is on top and must be worse than it.

    The heap lies from `base` on in `values` and `keys` (the row, which breaks ties); `loads` goes along with them.
    Empty places hold -inf.
    """
    i = 0
    while True:
        child = 2 * i + 1
        if child >= room:
            break
        if child + 1 < room and _worse(
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


@numba.njit(cache=True, nogil=True)
def value_rows(now: float, rows: I64, amplitude: F32, rate: F32, since: F64, shape: U8, out: F64) -> None:
    """The values of the bids of `rows` at `now`, into `out`."""
    for i in range(len(rows)):
        row = rows[i]
        out[i] = value_of(shape[row], amplitude[row], rate[row] * (now - since[row]))


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
    values: F64,
    rows: I64,
) -> int:
    """Keep, per host, the best bids worth at least `price` now, in heaps within `rows[starts[h]:starts[h+1]]`.

    A host's weight moves its bids down the line, never below the price: what is worth a fetch gets its turn.
    `values` must come filled with -inf; what is left of it marks the places without a bid.

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
        value *= weight[h]
        base = starts[h]
        room = starts[h + 1] - base
        if room == 0:
            left_out += 1
            continue
        left_out += values[base] > -np.inf
        if _worse(values[base], rows[base], value, row):
            _replace_worst(values, rows, rows, base, room, value, row, row)
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
    values: F64,
    rows: I64,
    places: I64,
) -> None:
    """The pool entries that could be taken now: of each host the best that its free slots allow.

    Host h has the slots `starts[h]:starts[h + 1]` of `values`, `rows` and `places`. `values` must come filled with
    -inf; what is left of it marks the slots that nobody asks for.
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
        if not _worse(values[base], rows[base], value, row):
            continue
        # the book is read last: it is far away in memory
        if not_before[row] <= now and book_amplitude[row] > 0.0:
            _replace_worst(values, rows, places, base, room, value, row, place)
