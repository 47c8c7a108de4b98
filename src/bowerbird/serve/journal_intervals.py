"""The journal in intervals of time, read in bounded steps: millions of fetches cost what a thousand do.

Numbers of the journal ascend with time, so the number at which an interval begins is found by bisection. An interval
that has passed does not change: it is remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from bowerbird.crawl.journal_spans import find_ends, first_at, time_of
from bowerbird.store.connection import Connection

REMEMBERED = 2000
SETTLED_S = 120.0  # fetches end out of order by no more than a timeout


class Part(Protocol):
    """What was decided within some time."""

    def joined(self, later: Self) -> Self:
        """This and what came after it as one."""
        ...


Of = TypeVar("Of", bound=Part)
#: what the decisions [first, after) were, of an interval that starts then and is so long
Reads = Callable[[Connection, int, int, float, float], Of]


class IntervalReader(Generic[Of]):
    """Reads a crawl's journal through connections of its caller, one at a time."""

    def __init__(self, read: Reads[Of], remembered: int = REMEMBERED) -> None:
        self._read = read
        self._remembered = remembered
        self._settled: OrderedDict[tuple[float, int], Of] = OrderedDict()
        self._seed: object = None

    def intervals(self, connection: Connection, start: float, end: float, width_s: float) -> list[Of]:
        """Decisions from `start` to `end` in intervals of `width_s`."""
        self._forget_another_crawl(connection)
        first, top = find_ends(connection)
        begins_at = time_of(connection, first) if top else end
        edge: int | None = None  # where the next interval begins
        found: list[Of] = []
        for number in range(int(start // width_s), int(end // width_s) + 1):
            part = self._settled.get((width_s, number))
            if part is not None:
                edge = None
                found.append(part)
                continue
            opens, closes = number * width_s, (number + 1) * width_s
            begin = first_at(connection, opens, first, top) if edge is None else edge
            edge = first_at(connection, closes, begin, top)
            length_s = min(closes, end) - max(opens, min(begins_at, closes - 0.05 * width_s))
            part = self._read(connection, begin, edge, opens, max(length_s, 0.05 * width_s))
            if found and end < closes and length_s < 0.5 * width_s:
                part = found.pop().joined(part)  # it has only just begun: alone, its rate would be mere chance
            if closes < end - SETTLED_S:
                self._remember((width_s, number), part)
            found.append(part)
        return found

    def _remember(self, key: tuple[float, int], part: Of) -> None:
        self._settled[key] = part
        while len(self._settled) > self._remembered:
            self._settled.popitem(last=False)

    def _forget_another_crawl(self, connection: Connection) -> None:
        """A folder may be replaced by another crawl while somebody looks."""
        seed = connection.execute("SELECT value FROM meta WHERE key = 'hash_seed'").fetchone()
        if seed != self._seed:
            self._settled.clear()
            self._seed = seed
