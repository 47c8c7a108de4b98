"""The heap of a process that lives for weeks: it must not grow with what was only passing through.

The index ends its threads with every commit and begins new ones. glibc gives threads arenas of their own, up to eight
a core, and what is left over in one keeps its pages: an index that was only updated went from 19 to 42 MB in 3,000
commits, though 7 MB of that were in use. Few arenas, large blocks outside of them, and free pages given back every few
seconds keep it at 20 MB. Where the C library is another one, nothing is done.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress

#: what passes through an arena stays in it until then, up to the most that passed at once: where 0.8 MB of one were in
#: use it had 5 after a minute. A turn takes a millisecond or two
EVERY_S = 5.0
#: the main one, and one for all threads: each further one fills up by itself, for hours. Index updates take as long
#: with two as with four (`benchmarks/index_heap.py`)
ARENAS = 2
#: blocks from this size on are mapped by themselves, and given back when they are freed; glibc would soon take them, up
#: to 32 MB each, from the arenas
OWN_BYTES = 512 << 10
#: free bytes at the end of an arena that are kept until it is time: by default it would be 128 KB, and reading pages,
#: each of which takes and frees more, would take 1.6 times as long
KEPT_BYTES = 64 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h


def settle_heap() -> None:
    """At the start of a process, before it has threads; processes that it forks are the same."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, OWN_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)


class Trimmer:
    """Gives free memory back, every few seconds at most: that takes a millisecond or two."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self.every_s = every_s
        self._at = time.monotonic()

    def trim(self) -> bool:
        """Whether it was time for it."""
        if time.monotonic() - self._at < self.every_s:
            return False
        self._at = time.monotonic()
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        return True
