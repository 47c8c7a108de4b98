"""Which pages lie together: the directories of URLs, as group numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
LEVELS = 4


def group_paths(urls: Sequence[str], levels: int = LEVELS) -> tuple[IntArray, ...]:
    """Group numbers by page: of the first 1…levels parts of the path with the host, and of the whole directory.

    A page is in the group of its own directory where its path is shorter. Names that are not URLs are taken as paths.

    >>> [group.tolist() for group in group_paths(["http://a/x/1", "http://a/x/2", "http://a/y/1"], 1)]
    [[0, 0, 1], [0, 0, 1]]
    """
    heads: list[list[int]] = []
    numbers: dict[str, int] = {}
    for url in urls:
        start = url.find("://")
        start = 0 if start < 0 else url.find("/", start + 3) + 1
        ends: list[int] = []
        place = url.find("/", start)
        while place >= 0 and len(ends) < levels:
            ends.append(place)
            place = url.find("/", place + 1)
        last = url.rfind("/", start)
        whole = last if last >= 0 else max(start - 1, 0)
        ends += [whole] * (levels - len(ends)) + [whole]
        heads.append([numbers.setdefault(url[:end], len(numbers)) for end in ends])
    table = np.array(heads, dtype=np.int64).reshape(len(urls), levels + 1)
    return tuple(np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64) for column in table.T)
