"""URLs that were added and not committed, column by column: lists are cheaper to fill and to keep than tuples."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.store.connection import Connection


class PendingUrls:
    """The rows of the next commit, in order from `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.texts: list[str] = []
        self._facts: tuple[list[float], ...] = tuple([] for _ in range(7))

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, row: int) -> bool:
        return 0 <= row - self.first < len(self.texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row - self.first]

    def extend(self, texts: Sequence[str], *facts: Sequence[float]) -> None:
        """Add URLs with hash, host, kind, depth, hops, first seen, source; one value stands for all."""
        self.texts.extend(texts)
        for column, values in zip(self._facts, facts, strict=True):
            column.extend(values if len(values) == len(texts) else [values[0]] * len(texts))

    def write(self, connection: Connection) -> None:
        """Insert them; inside the caller's transaction."""
        rows = zip(range(self.first, self.first + len(self.texts)), self.texts, *self._facts, strict=True)
        connection.executemany("INSERT INTO urls VALUES (?,?,?,?,?,?,?,?,?)", rows)
