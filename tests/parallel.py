"""The same measurement with many seeds, on all cores: what takes minutes one after another."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_cores(function: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """The results in order; the function is one of a module, so that other processes find it."""
    context = multiprocessing.get_context("spawn")  # a fork would copy locks of threads
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        return list(pool.map(function, values))
