"""The heap of a process that lives for weeks: what is free goes back to the system now and then.

The index ends its threads with every commit and begins new ones. glibc gives threads arenas of their own, and none
shrinks by itself: an index that was only updated took half as much again, and grew by a kilobyte a commit. Where the C
library is another one, nothing is done.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress

EVERY_S = 60.0


class Trimmer:
    """Gives free memory back, once a minute at most: that takes milliseconds."""

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
