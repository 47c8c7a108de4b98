"""Ctrl-C during a crawl: the first time it ends cleanly, the second time at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol


class Stoppable(Protocol):
    """What ends in good order when it is told to."""

    def stop(self) -> None:
        """End soon; safe to call from a signal handler."""


class Stopping:
    """Whether a stop was asked for, and who has to hear of it."""

    def __init__(self) -> None:
        self.asked = False
        self._running: Stoppable | None = None

    def watch(self, running: Stoppable) -> None:
        """This ends when it is asked to, also when that was before it began."""
        self._running = running
        if self.asked:
            running.stop()

    def hear(self, number: int, frame: FrameType | None) -> None:
        """The handler of a signal."""
        if self.asked:  # the second time means: at once
            raise KeyboardInterrupt
        self.asked = True
        if self._running is not None:
            self._running.stop()


@contextmanager
def stopping_cleanly() -> Iterator[Stopping]:
    """Enter it before anything is opened, so that a stop during recovery is as clean as any other."""
    stopping = Stopping()
    before = {number: signal.signal(number, stopping.hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
