"""Out-links of a page as compact blobs, with first and last seen per link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]

MAX_KEPT = 60_000  # links of one page, current ones first


@dataclass(frozen=True, slots=True)
class OutLinks:
    """Links of one page: targets are distinct; a link whose last_seen is older than seen_at has gone."""

    source: int
    seen_at: float
    targets: U32
    first_seen: F64
    last_seen: F64

    @classmethod
    def fresh(cls, source: int, targets: U32, at: float) -> OutLinks:
        """The links of a page seen for the first time."""
        times = np.full(len(targets), at)
        return cls(source, at, targets, times, times)

    @classmethod
    def decode(
        cls, source: int, seen_at: float, targets: bytes, first_seen: bytes | None, last_seen: bytes | None
    ) -> OutLinks:
        """From a database row."""
        rows = np.frombuffer(targets, dtype="<u4")
        same = np.full(len(rows), seen_at)
        first = same if first_seen is None else np.frombuffer(first_seen, dtype="<u4").astype(np.float64)
        last = same if last_seen is None else np.frombuffer(last_seen, dtype="<u4").astype(np.float64)
        return cls(source, seen_at, rows, first, last)

    def encode(self) -> tuple[int, float, bytes, bytes | None, bytes | None]:
        """To a database row; times are whole seconds and left out where they equal the row's."""
        first = None if np.all(self.first_seen == self.seen_at) else self.first_seen.astype("<u4").tobytes()
        last = None if np.all(self.last_seen == self.seen_at) else self.last_seen.astype("<u4").tobytes()
        return (self.source, self.seen_at, self.targets.astype("<u4").tobytes(), first, last)

    def seen_again(self, targets: U32, at: float) -> tuple[OutLinks, U32]:
        """The links after another look that saw `targets`, and the targets that are new."""
        still = np.isin(self.targets, targets, assume_unique=True)
        new = targets[np.isin(targets, self.targets, assume_unique=True, invert=True)]
        last = np.where(still, at, self.last_seen)
        merged = OutLinks(
            self.source,
            at,
            np.concatenate([self.targets, new]),
            np.concatenate([self.first_seen, np.full(len(new), at)]),
            np.concatenate([last, np.full(len(new), at)]),
        )
        return merged._without_oldest(), new

    def _without_oldest(self) -> OutLinks:
        """A busy hub's links come and go for years: of those that are gone, only the latest are kept."""
        if len(self.targets) <= MAX_KEPT:
            return self
        kept = np.sort(np.argsort(-self.last_seen, kind="stable")[:MAX_KEPT])
        return OutLinks(self.source, self.seen_at, self.targets[kept], self.first_seen[kept], self.last_seen[kept])

    def current(self) -> U32:
        """Targets seen at the last look."""
        seen: U32 = self.targets[self.last_seen >= np.floor(self.seen_at)]
        return seen
