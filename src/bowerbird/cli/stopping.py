"""Ctrl-C during a crawl: the first time it ends cleanly, the second time at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bowerbird.crawl.session import CrawlSession


class Stopping:
    """Whether a stop was asked for, and who has to hear of it."""

    def __init__(self) -> None:
        self.asked = False
        self._session: CrawlSession | None = None

    def watch(self, session: CrawlSession) -> None:
        """This session ends when it is asked to, also when that was before it was open."""
        self._session = session
        if self.asked:
            session.coordinator.stop()

    def hear(self, number: int, frame: FrameType | None) -> None:
        """The handler of a signal."""
        if self.asked:  # the second time means: at once
            raise KeyboardInterrupt
        self.asked = True
        if self._session is not None:
            self._session.coordinator.stop()


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
