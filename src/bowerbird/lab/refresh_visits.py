"""What a policy's own refreshes found, as columns, and what a crawler knows of pages at a time of the replay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.lab.refresh_data import FloatArray, RefreshData
from bowerbird.lab.refresh_replay import Replay
from bowerbird.lab.refresh_terms import I64, SHINGLE_TOKENS, shares_between

BoolArray = npt.NDArray[np.bool_]
WEEK_S = 7 * 86400.0


class ShiftTable:
    """Shares of shingles that pairs of versions do not have in common, each worked out once for all policies."""

    def __init__(self, data: RefreshData) -> None:
        self._data = data
        self._known: dict[tuple[int, int], float] = {}

    def between(self, old: I64, new: I64) -> FloatArray:
        """By pair of versions."""
        pairs = list(zip(old.tolist(), new.tolist(), strict=True))
        missing = np.array([pair for pair in pairs if pair not in self._known], dtype=np.int64).reshape(-1, 2)
        if len(missing):
            ends = np.ascontiguousarray(missing.T)
            found = shares_between(self._data.starts, self._data.tokens, ends[0], ends[1], SHINGLE_TOKENS)
            for (first, last), share in zip(missing.tolist(), found.tolist(), strict=True):
                self._known[first, last] = share
        return np.array([self._known[pair] for pair in pairs], dtype=np.float64)


class Visits:
    """All refreshes so far: the page, the weeks since the fetch before, whether and how much it had changed."""

    def __init__(self, data: RefreshData, shares: ShiftTable | None = None) -> None:
        self._data = data
        self._shares = ShiftTable(data) if shares is None else shares
        self._pages: list[I64] = [np.zeros(0, dtype=np.int64)]
        self._weeks: list[I64] = [np.zeros(0, dtype=np.int64)]
        self._changed: list[BoolArray] = [np.zeros(0, dtype=np.bool_)]
        self._shift: list[FloatArray] = [np.zeros(0)]
        self._gain: list[FloatArray] = [np.zeros(0)]
        self._on: list[BoolArray] = [np.zeros(0, dtype=np.bool_)]

    def add(self, state: Replay, pages: I64, on: BoolArray) -> None:
        """The visits of a week, as they are made: `on` says of all pages whether a signal had come before.

        Gains are measured by real queries with the scores that the repository has before the first of them.
        """
        old, new = state.local_version[pages], state.live_version[pages]
        changed = old != new
        shift = np.zeros(len(pages))
        shift[changed] = self._shares.between(old[changed], new[changed])
        self._pages.append(pages)
        self._weeks.append(state.week - state.refreshed[pages])
        self._changed.append(changed)
        self._shift.append(shift)
        self._gain.append(np.maximum(state.gains(pages, by_local=True)[pages], 0.0))
        self._on.append(on[pages])

    def columns(self) -> tuple[I64, FloatArray, BoolArray, FloatArray, FloatArray]:
        """(starts, interval in s, changed, shift, gain): page i has starts[i]…starts[i + 1] - 1, in time order."""
        pages = np.concatenate(self._pages)
        order = np.argsort(pages, kind="stable")
        starts = np.searchsorted(pages[order], np.arange(self._data.count + 1)).astype(np.int64)
        interval_s = np.concatenate(self._weeks)[order].astype(np.float64) * WEEK_S
        changed = np.concatenate(self._changed)[order]
        return starts, interval_s, changed, np.concatenate(self._shift)[order], np.concatenate(self._gain)[order]

    def signals(self) -> tuple[FloatArray, BoolArray, BoolArray]:
        """(interval in s, signal on, changed) by visit, for learning how good signals are."""
        interval_s = np.concatenate(self._weeks).astype(np.float64) * WEEK_S
        return interval_s, np.concatenate(self._on), np.concatenate(self._changed)
