"""When should each refresh take place? Wolf's schedule: ideal times of all refreshes, moved as little as slots allow.

Three steps: how many refreshes each page gets in the period (whole numbers, adding up to the budget), their ideal
times (evenly spaced, so that freshness is greatest), and the slots (weeks, each with room for so many fetches) they
are put into at least total cost, a transportation problem. All refreshes weigh the same and the cost is a convex
function of how late or early one comes, so some best assignment keeps the order of the ideal times, and going through
the slots once finds it: O(slots·refreshes), for any convex cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from bowerbird.appraise.refresh.frequencies import embarrassment_frequencies, freshness

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_CELLS = 200_000_000  # of the table of the dynamic programme, 4 bytes each


@dataclass(frozen=True, slots=True)
class Schedule:
    """Refreshes in order of their ideal times: the page, when it would best be refreshed, the slot it got."""

    page: IntArray
    ideal: FloatArray
    slot: IntArray
    cost: float

    def pages_of(self, slot: int) -> IntArray:
        """The pages to refresh in a slot, each once, most overdue first."""
        found = self.page[self.slot == slot]
        _, first = np.unique(found, return_index=True)
        return np.asarray(found[np.sort(first)])


def whole_counts(rates: FloatArray, weights: FloatArray, budget: int, *, most: int) -> IntArray:
    """[UC05] Wolf et al.: whole numbers of refreshes in the period, of greatest weighted freshness, up to `most` each.

    Rates are per period. The gain of one more refresh falls with their number, so taking the greatest gain time and
    again (Fox's greedy) is exact. The best fractional frequencies say about where that ends; refreshes are added, taken
    away and moved from there while that gains anything, which ends at the same sum.
    """
    able = (rates > 0) & (weights > 0)
    budget = min(budget, most * int(able.sum()))
    counts = np.zeros(len(rates), np.int64)
    if budget <= 0:
        return counts
    frequency = embarrassment_frequencies(np.where(able, rates, 0.0), weights, float(budget)).frequency
    counts[:] = np.minimum(np.floor(frequency), most)
    while (short := budget - int(counts.sum())) != 0:
        # the best (or worst) refreshes, each page once: where that is too coarse the loop below mends it
        gains = _next_gains(rates, weights, counts) if short > 0 else -_last_gains(rates, weights, counts)
        gains[~able | (counts >= most) if short > 0 else counts == 0] = -np.inf
        batch = min(abs(short), int(np.isfinite(gains).sum()))
        chosen = np.argpartition(-gains, batch - 1)[:batch]
        counts[chosen] += 1 if short > 0 else -1
    while True:
        gains = np.where(able & (counts < most), _next_gains(rates, weights, counts), -np.inf)
        losses = np.where(counts > 0, _last_gains(rates, weights, counts), np.inf)
        moves = min(int(np.isfinite(gains).sum()), int(np.isfinite(losses).sum()))
        best, worst = np.argsort(-gains, kind="stable")[:moves], np.argsort(losses, kind="stable")[:moves]
        better = gains[best] > losses[worst] * (1 + 1e-12)
        if not better.any():
            return counts
        counts[best[better]] += 1
        counts[worst[better]] -= 1


def spread_phases(count: int) -> FloatArray:
    """Phases in [0, 1) that are spread evenly over any run of pages: multiples of the golden ratio."""
    return np.asarray(np.modf((np.arange(count) + 0.5) * GOLDEN)[0])


def ideal_times(counts: IntArray, period: float, *, phases: FloatArray | None = None) -> tuple[IntArray, FloatArray]:
    """[UC05] Wolf et al.: (k + phase)·period/count for k = 0…count-1, as (page, time) in order of time.

    Without phases they are spread over the pages, so that pages with equal counts do not all ask for the same moment.
    """
    phases = spread_phases(len(counts)) if phases is None else phases
    page = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    times = (np.arange(len(page)) - first + phases[page]) * (period / counts[page])
    order = np.argsort(times, kind="stable")
    return page[order], times[order]


def assign_slots(
    page: IntArray,
    ideal: FloatArray,
    slot_times: FloatArray,
    room: IntArray,
    *,
    late: float = 1.0,
    early: float = 1.0,
    power: float = 2.0,
) -> Schedule:
    """[UC05] Wolf et al.: refreshes into slots with room for so many each, least sum of (late or early)·distance^power.

    Exact for power >= 1. With g_k(j) the least cost of the first j refreshes in slots 0…k and c_k(j) that of putting
    all of them into slot k: g_k(j) = c_k(j) + min over j-room_k <= i <= j of (g_(k-1)(i) - c_k(i)), a minimum in a
    sliding window.
    """
    if power < 1.0 or late < 0 or early < 0:
        raise ValueError("the cost must be convex: power at least 1, late and early at least 0")
    if len(slot_times) > 1 and np.any(np.diff(slot_times) < 0):
        raise ValueError("slots must be in order of time")
    if len(ideal) > int(room.sum()):
        raise ValueError(f"{len(ideal)} refreshes do not fit into {int(room.sum())} places")
    if (len(ideal) + 1) * len(slot_times) > _CELLS:
        raise ValueError(f"{len(ideal)} refreshes in {len(slot_times)} slots are too many at once: cut the period")
    order = np.argsort(ideal, kind="stable")
    times = np.ascontiguousarray(ideal[order], np.float64)
    slot = np.empty(len(times), np.int64)
    cost = _assign(times, np.ascontiguousarray(slot_times, np.float64), room, late, early, power, slot)
    return Schedule(page[order], times, slot, float(cost))


def assign_costs(costs: FloatArray, room: IntArray) -> tuple[IntArray, float]:
    """[UC05] Wolf et al.: refreshes (rows) into slots (columns) at least total cost, for any costs: (slots, total).

    The Hungarian method on a column for each place: for cases of a few thousand, and to check the one above.
    """
    from scipy.optimize import linear_sum_assignment

    places = np.repeat(np.arange(costs.shape[1]), np.minimum(room, costs.shape[0]))
    rows, columns = linear_sum_assignment(costs[:, places])
    if len(rows) < costs.shape[0]:
        raise ValueError(f"{costs.shape[0]} refreshes do not fit into {int(room.sum())} places")
    slots = places[columns]
    return slots, float(costs[rows, slots].sum())


def schedule_refreshes(
    rates: FloatArray, weights: FloatArray, *, slots: int, room: int, phases: FloatArray | None = None
) -> Schedule:
    """[UC05] Wolf's schedule of a period of `slots` slots with `room` fetches each; rates are per slot.

    SBR with weights of 1, EBR with d(p) or d(p)·views. Refreshes are meant for the middle of a slot.
    """
    counts = whole_counts(rates * slots, weights, slots * room, most=slots)
    page, times = ideal_times(counts, float(slots), phases=phases)
    return assign_slots(page, times, np.arange(slots, dtype=np.float64) + 0.5, np.full(slots, room))


def _next_gains(rates: FloatArray, weights: FloatArray, counts: IntArray) -> FloatArray:
    """What one more refresh gains."""
    now = counts.astype(np.float64)
    return np.asarray(weights * (freshness(rates, now + 1.0) - freshness(rates, now)))


def _last_gains(rates: FloatArray, weights: FloatArray, counts: IntArray) -> FloatArray:
    """What the last refresh has gained: the same number it had as the next one."""
    return _next_gains(rates, weights, np.maximum(counts - 1, 0))


@numba.njit(cache=True, nogil=True)
def _cost(distance: float, late: float, early: float, power: float) -> float:
    weight = late if distance >= 0 else early
    size = abs(distance)
    if power == 2.0:
        return weight * size * size
    if power == 1.0:
        return weight * size
    return float(weight * size**power)


@numba.njit(cache=True, nogil=True)
def _assign(
    times: FloatArray, slot_times: FloatArray, room: IntArray, late: float, early: float, power: float, slot: IntArray
) -> float:
    """The dynamic programme; `slot` gets the slots, the cost is returned."""
    count, slots = len(times), len(slot_times)
    best = np.full(count + 1, np.inf)
    best[0] = 0.0
    origin = np.zeros((slots, count + 1), np.int32)  # how many refreshes went into the slots before
    alone = np.zeros(count + 1)
    queue = np.empty(count + 1, np.int64)
    for k in range(slots):
        for j in range(count):
            alone[j + 1] = alone[j] + _cost(slot_times[k] - times[j], late, early, power)
        head = tail = 0
        new = np.full(count + 1, np.inf)
        for j in range(count + 1):
            value = best[j] - alone[j]
            if value < np.inf:
                while tail > head and best[queue[tail - 1]] - alone[queue[tail - 1]] > value:
                    tail -= 1
                queue[tail] = j
                tail += 1
            while head < tail and queue[head] < j - room[k]:
                head += 1
            if head < tail:
                i = queue[head]
                new[j] = best[i] + (alone[j] - alone[i])
                origin[k, j] = i
        best = new
    j = count
    for k in range(slots - 1, -1, -1):
        i = origin[k, j]
        slot[i:j] = k
        j = i
    return float(best[count])
