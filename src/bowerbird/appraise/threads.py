"""Work on ranges of rows, shared among threads where it is much."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Range = tuple[int, int]
T = TypeVar("T")

#: below this many links, or other entries of rows, a second thread costs more than it saves
SHARED_ENTRIES = 200_000
PIECES_PER_THREAD = 8


def threads_for(entries: int) -> int:
    """How many threads work on so many entries: links, visits…"""
    return 1 if entries < SHARED_ENTRIES else len(os.sched_getaffinity(0))


def cut_rows(starts: npt.NDArray[np.int64], pieces: int | None = None) -> list[Range]:
    """Ranges of rows with about equally many entries each."""
    entries = int(starts[-1])
    if pieces is None:
        threads = threads_for(entries)
        pieces = 1 if threads == 1 else PIECES_PER_THREAD * threads
    inner = np.searchsorted(starts, np.linspace(0, entries, pieces + 1)[1:-1])
    cuts = [0, *inner.tolist(), len(starts) - 1]
    return [(low, high) for low, high in pairwise(cuts) if low < high]


def share(work: Callable[[int, int], T], ranges: Sequence[Range], pool: ThreadPoolExecutor | None = None) -> list[T]:
    """`work` on every range, by threads where there are several ranges; kernels release the interpreter's lock."""
    if len(ranges) <= 1:
        return [work(low, high) for low, high in ranges]
    if pool is not None:
        return list(pool.map(lambda cut: work(*cut), ranges))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as own:
        return list(own.map(lambda cut: work(*cut), ranges))
