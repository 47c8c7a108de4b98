"""Chance as a pure function: the same keys give the same draw, in any process and in any order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB

Words64 = npt.NDArray[np.uint64]


def step(state: int) -> int:
    """The draw that follows `state` (SplitMix64: 64 well mixed bits).

    >>> step(1) == step(1), step(1) == step(2)
    (True, False)
    """
    state = (state + _STEP) & MASK
    state = ((state ^ (state >> 30)) * _FIRST) & MASK
    state = ((state ^ (state >> 27)) * _SECOND) & MASK
    return state ^ (state >> 31)


def mix(*keys: int) -> int:
    """64 bits that depend on every key and on their order."""
    state = 0
    for key in keys:
        state = step(state ^ (key & MASK))
    return state


def mix_array(state: int, keys: npt.NDArray[np.integer]) -> Words64:
    """`step(state ^ key)` for every key at once."""
    words = keys.astype(np.uint64)
    words ^= np.uint64(state)
    words += np.uint64(_STEP)
    words ^= words >> np.uint64(30)
    words *= np.uint64(_FIRST)
    words ^= words >> np.uint64(27)
    words *= np.uint64(_SECOND)
    words ^= words >> np.uint64(31)
    return words


def unit(bits: int) -> float:
    """The top 53 bits as a number in [0, 1)."""
    return (bits >> 11) * 2.0**-53


def text_key(text: str) -> int:
    """64 bits of a string (FNV-1a, mixed): Python's own hash differs from process to process."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return step(value)


def generator(*keys: int) -> np.random.Generator:
    """A numpy generator of its own for these keys."""
    return np.random.Generator(np.random.PCG64([key & MASK for key in keys]))
