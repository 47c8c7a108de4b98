"""The index writer's thread: takes committed pages, makes them searchable within seconds."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from bowerbird.crawl.gain_meter import GainMeter
from bowerbird.crawl.intake import IndexChange
from bowerbird.index.protocol import SearchIndex
from bowerbird.quality.measured_gains import GainBasis
from bowerbird.store.gains import MeasuredGain

QUEUE_BATCHES = 8


class IndexThread:
    """Applies changes in order. The database knows how far the index has come, so a crash only repeats work."""

    def __init__(
        self,
        index: SearchIndex,
        commit_every_s: float,
        indexed_through: int,
        meter: GainMeter | None = None,
        backlog: Callable[[SearchIndex], int] | None = None,
    ) -> None:
        self._backlog = backlog  # comes first
        self.index = index
        self.meter = meter
        self.commit_every_s = commit_every_s
        self.indexed_through = indexed_through
        self.error: BaseException | None = None
        self._queue: queue.Queue[tuple[list[IndexChange], int] | None] = queue.Queue(QUEUE_BATCHES)
        self._thread = threading.Thread(target=self._run, name="index", daemon=True)
        self._thread.start()

    def put(self, changes: list[IndexChange], through: int) -> None:
        """Hand over the changes of one commit, whose last fetch is number `through`; waits when far behind."""
        while self.error is None:
            try:
                self._queue.put((changes, through), timeout=0.5)
                return
            except queue.Full:
                continue
        self._raise_error()

    def use_basis(self, basis: GainBasis | None) -> None:
        """Measure what refreshes gain by this, from the next batch on."""
        if self.meter is not None:
            self.meter.use(basis)

    def take_gains(self) -> list[MeasuredGain]:
        """What was measured since the last call."""
        return [] if self.meter is None else self.meter.take_gains()

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Apply what is queued, commit, end."""
        while self._thread.is_alive():
            try:
                self._queue.put(None, timeout=0.5)
                break
            except queue.Full:
                continue
        self._thread.join()
        if self.meter is not None:
            self.meter.close()
        self._raise_error()
        self.index.close()

    def _run(self) -> None:
        try:
            self._apply_until_closed()
        except BaseException as error:  # the coordinator raises it in its own thread
            self.error = error

    def _apply_until_closed(self) -> None:
        waiting, committed_at, pause_s = 0, time.monotonic(), self.commit_every_s
        if self._backlog is not None:
            self.indexed_through = self._backlog(self.index)
        through = self.indexed_through
        while True:
            try:
                batch = self._queue.get(timeout=0.25)
            except queue.Empty:
                batch = ([], through)
            if batch is not None:
                changes, through = batch
                if self.meter is not None:
                    self.meter.see(changes)
                for change in changes:
                    if change.document is None:
                        self.index.remove(change.page)
                    else:
                        self.index.add(change.document, replace=change.replace)
                waiting += len(changes)
            began = time.monotonic()
            if batch is None or (waiting and began - committed_at >= pause_s):
                if waiting:
                    self.index.commit()
                    if self.meter is not None:
                        self.meter.commit()
                committed_at = time.monotonic()
                # a commit that takes long is made less often, so that it never takes more than a tenth of the time
                pause_s = max(self.commit_every_s, 10 * (committed_at - began))
                waiting = 0
            if not waiting:
                self.indexed_through = through
            if batch is None:
                return
