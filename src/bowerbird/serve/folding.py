"""Near-duplicates of one page are one result: the best of them is shown, the others wait behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bowerbird.index.protocol import Hit

#: copies that are kept to be linked; the rest are counted
MOST_FOLDED = 10


@dataclass(frozen=True, slots=True)
class Result:
    """One line of an answer: a hit, its place from 1, and the near-duplicates of it that were found too.

    `copies` is how many they are, `folded` the best of them.
    """

    rank: int
    hit: Hit
    folded: tuple[Hit, ...] = ()
    copies: int = 0


def fold(hits: Iterable[Hit]) -> list[Result]:
    """Hits in their order, those of one group under the first of it.

    A group is a page and all that are near-duplicates of it, whether the page itself was found or not.
    """
    groups: dict[int, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.page if hit.duplicate_of is None else hit.duplicate_of, []).append(hit)
    return [
        Result(rank, group[0], tuple(group[1 : MOST_FOLDED + 1]), len(group) - 1)
        for rank, group in enumerate(groups.values(), 1)
    ]
