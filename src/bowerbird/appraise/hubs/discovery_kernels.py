"""Numba kernels of discovery rates: visits into rings, and time weighed by the hour of the week."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.model.hub_study import HOURS

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

HOUR_S = 3600.0
WEEK_S = HOURS * HOUR_S


@numba.njit(cache=True, nogil=True)
def elapsed(at_s: float, pattern: F64, sums: F64) -> float:
    """The integral of the weekly pattern from time 0; `sums` are its running sums by hour, in hours."""
    weeks = math.floor(at_s / WEEK_S)
    hours = (at_s - weeks * WEEK_S) / HOUR_S
    k = min(int(hours), HOURS - 1)
    return float((weeks * sums[HOURS] + sums[k] + (hours - k) * pattern[k]) * HOUR_S)


@numba.njit(cache=True, nogil=True)
def mean_elapsed(since_s: F64, until_s: float, pattern: F64, sums: F64, out: F64) -> None:
    """The mean of the pattern from each time to a later one; over a minute at least."""
    until = elapsed(until_s, pattern, sums)
    for i in range(len(since_s)):
        begin = min(since_s[i], until_s - 60.0)
        out[i] = (until - elapsed(begin, pattern, sums)) / (until_s - begin)


@numba.njit(cache=True, nogil=True)
def _exposed(row_at: F64, row_gap: F32, used: int, pattern: F64, sums: F64) -> float:
    seen = 0.0
    for k in range(used):
        seen += elapsed(row_at[k], pattern, sums) - elapsed(row_at[k] - row_gap[k], pattern, sums)
    return seen


@numba.njit(cache=True, nogil=True)
def sum_visits(at: F64, gap: F32, found: F32, used: U8, pattern: F64, sums: F64, events: F64, exposure: F64) -> None:
    """By hub what was found in its ring of visits, and the time they cover, weighed by the pattern."""
    for i in range(len(used)):
        y = 0.0
        for k in range(used[i]):
            y += found[i, k]
        events[i] = y
        exposure[i] = _exposed(at[i], gap[i], used[i], pattern, sums)


@numba.njit(cache=True, nogil=True)
def enter_visits(
    hub: I64,
    at_s: F64,
    gap_s: F64,
    new: F64,
    at: F64,
    gap: F32,
    found: F32,
    used: U8,
    place: U8,
    slot_s: float,
    long_found: F64,
    long_s: F64,
    memory_s: float,
    mean: F64,
    shape: float,
    pattern: F64,
    sums: F64,
    by_hour: F64,
    expected_by_hour: F64,
) -> None:
    """Visits, oldest first: what they say of the hours, and then into the ring.

    A find in a gap of several hours is shared out among them as the pattern known so far has it. What a visit should
    have found goes by the hub's rate over weeks: the one of its last visits has seen this hour already.
    """
    room = at.shape[1]
    for v in range(len(hub)):
        i, end, length = hub[v], at_s[v], gap_s[v]
        if not (length > 0.0 and i >= 0):
            continue
        rate = (shape + long_found[i]) / (shape / mean[i] + long_s[i])
        begin = end - length
        whole = math.floor(length / WEEK_S)
        covered = elapsed(end, pattern, sums) - elapsed(begin, pattern, sums)
        per_second = new[v] / covered if covered > 0.0 else 0.0
        left = math.exp(-length / memory_s)
        long_found[i] = left * long_found[i] + new[v]
        long_s[i] = left * long_s[i] + covered
        if whole > 0:  # whole weeks tell all hours alike
            for b in range(HOURS):
                expected_by_hour[b] += rate * whole * HOUR_S
                by_hour[b] += per_second * pattern[b] * whole * HOUR_S
            begin += whole * WEEK_S
        at_time = begin
        while at_time < end:
            hour = math.floor(at_time / HOUR_S)
            next_time = min((hour + 1.0) * HOUR_S, end)
            if next_time <= at_time:
                break
            b = int(hour - HOURS * math.floor(hour / HOURS))
            expected_by_hour[b] += rate * (next_time - at_time)
            by_hour[b] += per_second * pattern[b] * (next_time - at_time)
            at_time = next_time
        last = (place[i] + room - 1) % room
        if used[i] > 0 and gap[i, last] < slot_s:  # visits close together share a place
            at[i, last] = end
            gap[i, last] += length
            found[i, last] += new[v]
        else:
            at[i, place[i]], gap[i, place[i]], found[i, place[i]] = end, length, new[v]
            place[i] = (place[i] + 1) % room
            used[i] = min(used[i] + 1, room)
