"""Measures what refreshes gain while they are indexed. The index thread shows it every batch before applying it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bowerbird.crawl.earlier_pages import EarlierPages
from bowerbird.crawl.intake import IndexChange
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.measuring import PageRecorder, PostingChanges
from bowerbird.quality.measured_gains import GainBasis, measure_gains
from bowerbird.store.gains import MeasuredGain

log = logging.getLogger(__name__)

LEAST_KNOWN = 0.5  # of the demand: a record that tells of less is no measure of a change
WRITTEN_AT_ONCE = 500  # records
MOST_REREAD = 50  # pages of a batch that are read again from the archive, where no record tells what they were
REREAD_SHARE = 0.05  # of the time, at most, but for the first of a batch: one costs as much as indexing a page


_NO_MARKS, _NO_SHARES = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.float32)


class GainMeter:
    """Without a basis (no demand was heard of) it does nothing; where it fails, indexing goes on without it."""

    def __init__(
        self, path: Path, earlier: EarlierPages | None = None, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self.records = ForwardRecords(path)
        self.earlier = earlier
        self.timer = timer
        self.failures = 0
        self._offered: GainBasis | None = None
        self._basis: GainBasis | None = None
        self._recorder: PageRecorder | None = None
        self._shares: dict[int, float] = {}
        self._gains: list[MeasuredGain] = []
        self._reread_at = timer()
        self._lock = threading.Lock()

    # -- for the coordinator's thread

    def use(self, basis: GainBasis | None) -> None:
        """Measure by this from the next batch on."""
        self._offered = basis

    def take_gains(self) -> list[MeasuredGain]:
        """What was measured since the last call."""
        with self._lock:
            gains, self._gains = self._gains, []
        return gains

    # -- for the index thread

    def see(self, changes: Sequence[IndexChange]) -> None:
        """These changes are about to be applied."""
        try:
            self._take_basis()
            if self._recorder is None or self._basis is None:
                if changes and self.records.exists:  # what it says of them is no longer so
                    self.records.forget([change.page for change in changes])
                return
            for batch in _distinct(changes):
                unknown = self._take(self._recorder, self._basis, batch)
                if unknown and self.earlier is not None:
                    self._reread(self._recorder, self._basis, self.earlier, unknown[:MOST_REREAD])
            if self.records.waiting >= WRITTEN_AT_ONCE:  # while the engine has its own to do, not after it
                self.records.commit()
        except Exception as error:  # of whatever kind: pages must become searchable all the same
            self._fail(error)
            self.records.forget([change.page for change in changes])

    def commit(self) -> None:
        """The index has committed what was shown."""
        try:
            self.records.commit()
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """Let go of the file."""
        self.records.close()
        if self.earlier is not None:
            self.earlier.close()

    def _take_basis(self) -> None:
        offered = self._offered
        if offered is not self._basis:
            self._basis, self._recorder, self._shares = offered, None, {}
            if offered is not None:
                self._recorder = PageRecorder(offered.vocabulary, offered.scoring, self.records, offered.word_marks)

    def _take(self, recorder: PageRecorder, basis: GainBasis, batch: list[IndexChange]) -> list[IndexChange]:
        """Measure what can be; the changes of pages that are not known as they were before."""
        posted = recorder.take(
            [change.page for change in batch],
            [change.document for change in batch],
            [change.refreshed for change in batch],
        )
        if not basis.asked.best > 0:
            return []
        refreshed = [change for change in batch if change.refreshed]
        shares = [self._known_share(generation) for generation in posted.generations.tolist()]
        if max(shares, default=0.0) >= LEAST_KNOWN:
            self._measure(basis, posted, refreshed, shares)
        return [change for change, share in zip(refreshed, shares, strict=True) if share < LEAST_KNOWN]

    def _reread(
        self, recorder: PageRecorder, basis: GainBasis, earlier: EarlierPages, unknown: list[IndexChange]
    ) -> None:
        """Make the records that are missing, and measure by them."""
        if self._known_share(self.records.generation) < LEAST_KNOWN:
            return  # nothing can be kept
        began = self.timer()
        until = began + REREAD_SHARE * (began - self._reread_at)
        found = []
        for change in unknown:
            document = earlier(change.page, change.at)
            if document is not None:
                found.append((change, document))
            self._reread_at = self.timer()
            if self._reread_at >= until:
                break
        if found:
            pages = [change.page for change, _ in found]
            recorder.take(pages, [document for _, document in found], [False] * len(found))
            self._take(recorder, basis, [change for change, _ in found])

    def _measure(
        self, basis: GainBasis, posted: PostingChanges, refreshed: list[IndexChange], shares: list[float]
    ) -> None:
        found = measure_gains(basis.asked, posted)
        counts = (found.queries >= 0).sum(axis=1).tolist()
        marks = basis.query_marks[found.queries]
        rows = zip(refreshed, shares, found.gain.tolist(), posted.count_moved().tolist(), counts, strict=True)
        made = [
            MeasuredGain(
                change.page,
                change.at,
                change.since,
                gain / share,
                words,
                marks[place, :count] if count else _NO_MARKS,
                found.shares[place, :count] if count else _NO_SHARES,
            )
            for place, (change, share, gain, words, count) in enumerate(rows)
            if share >= LEAST_KNOWN
        ]
        with self._lock:
            self._gains.extend(made)

    def _known_share(self, generation: int) -> float:
        """Of the demand, for records of this generation."""
        share = self._shares.get(generation)
        if share is None:
            assert self._basis is not None
            assert self._recorder is not None
            share = self._basis.asked.known_share(self._recorder.since, generation) if generation >= 0 else 0.0
            self._shares[generation] = share
        return share

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            log.warning("what refreshes gain cannot be measured: %s: %s", type(error).__name__, error)


def _distinct(changes: Sequence[IndexChange]) -> Iterator[list[IndexChange]]:
    """In batches that have no page twice: the later change of a page is held against the earlier."""
    batch: dict[int, IndexChange] = {}
    for change in changes:
        if change.page in batch:
            yield list(batch.values())
            batch = {}
        batch[change.page] = change
    if batch:
        yield list(batch.values())
