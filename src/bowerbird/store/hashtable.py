"""Numba kernels: an open-addressing table from 64-bit URL hashes to row numbers, and anchor fingerprints."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

ANCHOR_SLOTS = 4


@numba.njit(cache=True, nogil=True)
def find_many(table: I32, hashes: U64, wanted: U64, out: I64) -> None:
    """Row of each wanted hash, -1 where it is unknown."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(wanted)):
        slot = wanted[i] & mask
        row = table[slot]
        while row >= 0 and hashes[row] != wanted[i]:
            slot = (slot + np.uint64(1)) & mask
            row = table[slot]
        out[i] = row


@numba.njit(cache=True, nogil=True)
def claim_many(table: I32, hashes: U64, wanted: U64, first_row: int, out: I64) -> int:
    """Find or insert: unknown hashes get rows from `first_row` on, in order. Returns how many were new.

    `hashes` must have room for all of `wanted` after `first_row`.
    """
    mask = np.uint64(len(table) - 1)
    added = 0
    for i in range(len(wanted)):
        slot = wanted[i] & mask
        row = table[slot]
        while row >= 0 and hashes[row] != wanted[i]:
            slot = (slot + np.uint64(1)) & mask
            row = table[slot]
        if row < 0:
            row = first_row + added
            table[slot] = row
            hashes[row] = wanted[i]
            added += 1
        out[i] = row
    return added


@numba.njit(cache=True, nogil=True)
def rebuild(table: I32, hashes: U64, count: int) -> None:
    """Fill an empty table (-1 everywhere) with rows 0…count-1."""
    mask = np.uint64(len(table) - 1)
    for row in range(count):
        slot = hashes[row] & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = row


@numba.njit(cache=True, nogil=True)
def note_anchors(
    fingerprints: npt.NDArray[np.uint16], rows: I64, marks: npt.NDArray[np.uint16], out: npt.NDArray[np.bool_]
) -> None:
    """Mark which (target, anchor) pairs are new; each target keeps the first few distinct anchors (0 = none)."""
    slots = fingerprints.shape[1]
    for i in range(len(rows)):
        out[i] = False
        if marks[i] == 0 or rows[i] < 0:
            continue
        for k in range(slots):
            seen = fingerprints[rows[i], k]
            if seen == marks[i]:
                break
            if seen == 0:
                fingerprints[rows[i], k] = marks[i]
                out[i] = True
                break
