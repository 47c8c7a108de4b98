"""Events added up in memory before they are written: many events become few rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bowerbird.demand.events import Event, QueryAsked, ResultClicked, ResultShown, normalise_query

BIN_S = 1200
#: count, weight as of the last time, last time
Sum = tuple[int, float, float]
NOTHING: Sum = (0, 0.0, float("-inf"))


class KeyMaker:
    """Keyed hashes: without the secret, which lies in the database, nobody can test whether a query is in it."""

    def __init__(self, secret: bytes) -> None:
        self._base = hashlib.blake2b(key=secret, digest_size=8)

    def __call__(self, text: str) -> int:
        """The key of one text."""
        made = self._base.copy()
        made.update(text.encode("utf-8", "replace"))
        return int.from_bytes(made.digest(), "little", signed=True)

    def many(self, texts: Iterable[str]) -> list[int]:
        """The keys of many texts."""
        copy, digests = self._base.copy, []
        for text in texts:
            made = copy()
            made.update(text.encode("utf-8", "replace"))
            digests.append(made.digest())
        keys: list[int] = np.frombuffer(b"".join(digests), dtype="<i8").tolist()
        return keys


def decay(age_s: float, half_life_s: float) -> float:
    """What is left of a weight of 1 after a time: 2^(-age/half-life).

    >>> decay(60.0, 30.0)
    0.25
    """
    try:
        return float(0.5 ** (age_s / half_life_s))
    except OverflowError:  # seen from long before the event
        return float("inf")


def fade_all(
    texts: Sequence[str], times_s: NDArray[np.float64], counts: NDArray[np.float64], now: float, half_life_s: float
) -> dict[str, tuple[float, float]]:
    """By text how often in all, and the same faded to `now`: sum of count·2^(-age/half-life).

    >>> fade_all(["car", "car"], np.array([0.0, 60.0]), np.array([4.0, 1.0]), 60.0, 30.0)
    {'car': (5.0, 2.0)}
    """
    numbers: dict[str, int] = {}
    which = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
    with np.errstate(over="ignore"):
        faded = np.bincount(which, counts * np.exp2((times_s - now) / half_life_s), len(numbers))
    total = np.bincount(which, counts, len(numbers))
    return dict(zip(numbers, zip(total.tolist(), faded.tolist(), strict=True), strict=True))


def add_sums(one: Sum, other: Sum, half_life_s: float) -> Sum:
    """Both together, as of the later time; exact in whatever order events come.

    >>> add_sums((1, 1.0, 100.0), (1, 1.0, 130.0), half_life_s=30.0)
    (2, 1.5, 130.0)
    """
    if one[2] < other[2]:
        one, other = other, one
    if other[1]:
        weight = one[1] + other[1] * (1.0 if one[2] == other[2] else decay(one[2] - other[2], half_life_s))
    else:
        weight = one[1]
    return one[0] + other[0], weight, one[2]


class Tally:
    """A batch of events by query and by page. Queries are held by text, everything about them by key."""

    def __init__(self, key_of: KeyMaker, half_life_s: float) -> None:
        self.key_of = key_of
        self.half_life_s = half_life_s
        self.asked: dict[str, Sum] = {}
        self.found: dict[str, tuple[float, int]] = {}  # text -> when, and how many results then
        self.query_uses: dict[int, tuple[int, int, float]] = {}  # key -> impressions, clicks, last time
        self.page_clicks: dict[str, Sum] = {}
        self.bins: dict[tuple[str, int], int] = {}
        self.ranks: dict[tuple[int, str, int], tuple[int, int, float]] = {}  # impressions, clicks, last time
        self.query_ids: dict[int, int] = {}
        self.activity: dict[int, tuple[int, int]] = {}  # bin -> asked, clicked
        self.totals = [0, 0, 0]  # asked, shown, clicked

    def add(self, event: Event) -> None:
        """Add one event; an empty query is no event."""
        match event:
            case QueryAsked():
                self.ask(normalise_query(event.text), event.at, event.count, event.results)
            case ResultShown():
                if text := normalise_query(event.query):
                    self.show(self.key_of(text), event.url, event.rank, event.at)
            case ResultClicked():
                text = normalise_query(event.query) if event.query is not None else ""
                key = self.key_of(text) if text else None
                self.click(key, event.url, event.rank, event.at, event.count)

    def ask(self, text: str, at: float, count: int = 1, results: int | None = None, *, timed: bool = True) -> None:
        """A normalised query was asked; `timed`: at that very time, not some time in a month."""
        if not text or count <= 0:
            return
        if timed:
            asked, clicked = self.activity.get(number := int(at // BIN_S), (0, 0))
            self.activity[number] = (asked + count, clicked)
        self.totals[0] += count
        self.asked[text] = add_sums(self.asked.get(text, NOTHING), (count, float(count), at), self.half_life_s)
        if results is not None:
            self.found[text] = max(self.found.get(text, (float("-inf"), 0)), (at, results))

    def ask_all(self, counts: Mapping[str, int], at: float) -> None:
        """Many normalised, non-empty queries, of which it is not known when exactly they were asked."""
        self.totals[0] += sum(counts.values())
        if self.asked:
            half_life_s = self.half_life_s
            for text, count in counts.items():
                self.asked[text] = add_sums(self.asked.get(text, NOTHING), (count, float(count), at), half_life_s)
        else:
            self.asked = {text: (count, float(count), at) for text, count in counts.items()}

    def ask_timed(
        self, texts: Sequence[str], times_s: NDArray[np.float64], counts: NDArray[np.int64] | None = None
    ) -> None:
        """Many normalised, non-empty queries, each with its time."""
        numbers: dict[str, int] = {}
        which = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
        many = np.ones(len(texts)) if counts is None else counts.astype(np.float64)
        last = np.full(len(numbers), -np.inf)
        np.maximum.at(last, which, times_s)
        weights = np.bincount(which, many * np.exp2((times_s - last[which]) / self.half_life_s), len(numbers))
        asked = np.bincount(which, many, len(numbers)).astype(np.int64)
        sums = zip(numbers, asked.tolist(), weights.tolist(), last.tolist(), strict=True)
        if self.asked:
            for text, count, weight, at in sums:
                self.asked[text] = add_sums(self.asked.get(text, NOTHING), (count, weight, at), self.half_life_s)
        else:
            self.asked = {text: (count, weight, at) for text, count, weight, at in sums}
        self.totals[0] += int(asked.sum())
        bins, place = np.unique((times_s // BIN_S).astype(np.int64), return_inverse=True)
        for number, count in zip(bins.tolist(), np.bincount(place, many).tolist(), strict=True):
            before = self.activity.get(number, (0, 0))
            self.activity[number] = (before[0] + int(count), before[1])

    def show(self, query: int, url: str, rank: int, at: float, count: int = 1) -> None:
        """A result was shown at a rank."""
        self.totals[1] += count
        self._use(query, count, 0, at)
        self._place(query, url, rank, count, 0, at)
        self.page_clicks.setdefault(url, (0, 0.0, at))

    def click(
        self, query: int | None, url: str, rank: int | None, at: float, count: int = 1, *, timed: bool = True
    ) -> None:
        """A page was clicked; `timed` as in `ask`."""
        if count <= 0:
            return
        self.totals[2] += count
        self.page_clicks[url] = add_sums(
            self.page_clicks.get(url, NOTHING), (count, float(count), at), self.half_life_s
        )
        if timed:
            place = (url, int(at // BIN_S))
            self.bins[place] = self.bins.get(place, 0) + count
            asked, clicked = self.activity.get(place[1], (0, 0))
            self.activity[place[1]] = (asked, clicked + count)
        if query is not None:
            self._use(query, 0, count, at)
            if rank is not None:
                self._place(query, url, rank, 0, count, at)

    def _use(self, query: int, shown: int, clicked: int, at: float) -> None:
        before = self.query_uses.get(query, (0, 0, float("-inf")))
        self.query_uses[query] = (before[0] + shown, before[1] + clicked, max(before[2], at))

    def _place(self, query: int, url: str, rank: int, shown: int, clicked: int, at: float) -> None:
        before = self.ranks.get((query, url, rank), (0, 0, float("-inf")))
        self.ranks[query, url, rank] = (before[0] + shown, before[1] + clicked, max(before[2], at))

    def __bool__(self) -> bool:
        return bool(self.asked or self.page_clicks or self.query_ids)
