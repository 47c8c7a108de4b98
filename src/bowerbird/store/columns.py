"""Growable columns: the per-URL state that must be at hand for every decision, in flat arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bowerbird.model.snapshot import PageColumns
from bowerbird.store.hashtable import ANCHOR_SLOTS

Array = npt.NDArray[Any]

#: name -> (dtype, width); the order is the order in a checkpoint
URL_COLUMNS: Mapping[str, tuple[str, int]] = {
    "hash": ("u8", 1),
    "host": ("u4", 1),
    "state": ("u1", 1),
    "kind": ("u1", 1),
    "depth": ("u1", 1),
    "hops": ("u1", 1),
    "first_seen": ("u4", 1),  # times that need no fraction are whole seconds: 4 bytes a URL each
    "last_fetched": ("f8", 1),
    "last_changed": ("u4", 1),
    "not_before": ("u4", 1),
    "fetches": ("u2", 1),
    "changes": ("u2", 1),
    "errors": ("u1", 1),
    "in_degree": ("u4", 1),
    "interval_s": ("f4", 1),
    "content_hash": ("i8", 1),
    "hint_modified": ("u4", 1),
    "source": ("i4", 1),  # the URL that led here, -1 = none
    "anchors": ("u2", ANCHOR_SLOTS),
}


class Columns:
    """Named arrays of one length that grow together; `columns["state"]` is a view of the rows in use.

    Views are taken anew after each growth: never keep one across an `extend`.
    """

    def __init__(self, layout: Mapping[str, tuple[str, int]] = URL_COLUMNS, capacity: int = 1024) -> None:
        self.layout = dict(layout)
        self.count = 0
        self._arrays = {name: self._allocate(name, capacity) for name in self.layout}

    def _allocate(self, name: str, capacity: int) -> Array:
        dtype, width = self.layout[name]
        return np.zeros(capacity if width == 1 else (capacity, width), dtype=dtype)

    @property
    def capacity(self) -> int:
        """Rows that fit without growing."""
        return len(next(iter(self._arrays.values())))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name][: self.count]

    def whole(self, name: str) -> Array:
        """The array with its spare room, for kernels that write ahead of `extend`."""
        return self._arrays[name]

    def reserve(self, rows: int) -> None:
        """Make room for `rows` in all; one column at a time, so that the peak stays near the total."""
        if rows <= self.capacity:
            return
        capacity = max(rows, self.capacity + self.capacity // 2)
        for name in self.layout:
            grown = self._allocate(name, capacity)
            grown[: self.count] = self._arrays[name][: self.count]
            self._arrays[name] = grown

    def extend(self, rows: int) -> None:
        """Take `rows` more (zeroed) rows into use."""
        self.reserve(self.count + rows)
        self.count += rows

    def nbytes(self) -> int:
        """Bytes of the rows in use."""
        return sum(int(self[name].nbytes) for name in self.layout)

    def pages(self) -> PageColumns:
        """The columns an appraiser sees, read-only."""
        views = {}
        for name in PageColumns.__dataclass_fields__:
            view = self[name].view()
            view.flags.writeable = False
            views[name] = view
        return PageColumns(**views)
