"""Compiled: pages that are in the same group on every level, as one cell."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


@numba.njit(cache=True, nogil=True)
def mix_level(level: IntArray, keys: U64) -> None:
    """One more level into the pages' keys; of two million cells two share a key with a chance of 1 in ten million."""
    for page in range(len(keys)):
        code = (keys[page] ^ np.uint64(level[page] + 1)) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(32)
        code *= np.uint64(0xD6E8FEB86659FD93)
        keys[page] = code ^ (code >> np.uint64(29))


@numba.njit(cache=True, nogil=True)
def number_keys(keys: U64, cell: IntArray, first: IntArray) -> int:
    """Numbers of keys from 0 in order of appearance, and the first page of each; how many there are."""
    room = 1 << 16
    table = np.full(room, -1, dtype=np.int64)
    count = 0
    for page in range(len(keys)):
        if 2 * count >= room:
            room *= 4
            table = np.full(room, -1, dtype=np.int64)
            for known in range(count):
                place = np.int64(keys[first[known]] & np.uint64(room - 1))
                while table[place] >= 0:
                    place = (place + 1) & (room - 1)
                table[place] = known
        place = np.int64(keys[page] & np.uint64(room - 1))
        while table[place] >= 0 and keys[first[table[place]]] != keys[page]:
            place = (place + 1) & (room - 1)
        if table[place] < 0:
            table[place] = count
            first[count] = page
            count += 1
        cell[page] = table[place]
    return count


@numba.njit(cache=True, nogil=True)
def add_up(
    cell: IntArray, events: FloatArray, exposure: FloatArray, mean: FloatArray, shape: float, part: FloatArray,
    watched: FloatArray,
) -> None:  # fmt: skip
    """Events and exposure by cell, a page for 1/(1 + expected/kappa) of itself."""
    for page in range(len(cell)):
        if exposure[page] == 0.0 and events[page] == 0.0:
            continue
        own = 1.0 / (1.0 + mean[cell[page]] * exposure[page] / shape)
        part[cell[page]] += events[page] * own
        watched[cell[page]] += exposure[page] * own


@numba.njit(cache=True, nogil=True)
def add_groups(
    level: IntArray, part: FloatArray, watched: FloatArray, mean: FloatArray, found: FloatArray, hoped: FloatArray
) -> None:
    """By group of a level, the events there were and those that were expected."""
    for cell in range(len(level)):
        found[level[cell]] += part[cell]
        hoped[level[cell]] += mean[cell] * watched[cell]


@numba.njit(cache=True, nogil=True)
def scale_means(level: IntArray, factor: FloatArray, mean: FloatArray) -> None:
    """Each cell's mean times the factor of its group."""
    for cell in range(len(level)):
        mean[cell] *= factor[level[cell]]
