"""Which pages lie together: the directories of URLs, as group numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
LEVELS = 4


def group_paths(urls: Iterable[str], levels: int = LEVELS) -> tuple[IntArray, ...]:
    """Group numbers by page: of the first 1…levels parts of the path with the host, and of the whole directory.

    A page is in the group of its own directory where its path is shorter. Names that are not URLs are taken as paths.

    >>> [group.tolist() for group in group_paths(["http://a/x/1", "http://a/x/2", "http://a/y/1"], 1)]
    [[0, 0, 1], [0, 0, 1]]
    """
    numbers: dict[str, int] = {}
    heads = array("q")
    for url in urls:
        path = _cut_query(url)
        start = _start_path(path)
        ends: list[int] = []
        place = path.find("/", start)
        while place >= 0 and len(ends) < levels:
            ends.append(place)
            place = path.find("/", place + 1)
        last = path.rfind("/", start)
        whole = last if last >= 0 else max(start - 1, 0)
        ends += [whole] * (levels - len(ends)) + [whole]
        heads.extend([numbers.setdefault(path[:end], len(numbers)) for end in ends])
    table = np.array(heads, dtype=np.int64).reshape(-1, levels + 1)
    return tuple(np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64) for column in table.T)


def _cut_query(url: str) -> str:
    """Slashes after ? and # part no directories."""
    for mark in "#?":
        place = url.find(mark)
        if place >= 0:
            url = url[:place]
    return url


def _start_path(url: str) -> int:
    """Where the first part of the path begins: after the host, or after a slash in front."""
    scheme = url.find("://")
    if scheme < 0 or url.find("/") < scheme:  # a name, perhaps with a URL further on
        return int(url.startswith("/"))
    place = url.find("/", scheme + 3)
    return len(url) + 1 if place < 0 else place + 1
