"""Simulated searchers of a world: they ask by a Zipf law that drifts, look down the answer, and click what is relevant.

What they want is the truth of the world at that moment: a page that is gone, or that no longer says what the index
has of it, gets no click. So their clicks measure what a crawl is worth to people, and teach it what they want.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from bowerbird.demand.visibility import PowerLaw, Visibility
from bowerbird.lab.world import World
from bowerbird.lab.world.spec import DAY_S

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Habits:
    """What searchers are like."""

    queries: int = 400  # that are ever asked
    exponent: float = 0.9  # the n-th query is asked in proportion to n ** -exponent
    drift_per_day: float = 0.15  # of the queries: their popularity changes places with another's
    two_words: float = 0.5  # of the queries
    click: float = 0.9  # chance that a seen, fully relevant result is clicked


class Searchers:
    """The people who search a world. Everything they do is drawn from `rng`."""

    def __init__(
        self,
        world: World,
        rng: np.random.Generator,
        habits: Habits | None = None,
        view: Visibility | None = None,
    ) -> None:
        self.world = world
        self.rng = rng
        self.habits = habits or Habits()
        self.view = view or PowerLaw()
        self.queries = self._make_queries()
        weights = np.arange(1, len(self.queries) + 1) ** -self.habits.exponent
        self.popularity: F64 = weights / weights.sum()
        self._drifted_to = world.spec.start_s
        self._text = lru_cache(maxsize=4096)(self._read)

    def _make_queries(self) -> list[tuple[str, ...]]:
        """Words of titles: one noun of a topic, or two; in no order."""
        habits = self.habits
        topics = [self.world.words.topic(number).nouns for number in range(self.world.spec.topics)]
        nouns = sorted({noun for topic in topics for noun in topic})
        single = min(round(habits.queries * (1 - habits.two_words)), len(nouns))
        found: dict[tuple[str, ...], None] = {}
        found.update(dict.fromkeys((nouns[int(place)],) for place in self.rng.permutation(len(nouns))[:single]))
        for _ in range(20 * habits.queries):  # a small world has only so many pairs
            if len(found) >= habits.queries:
                break
            topic = topics[int(self.rng.integers(len(topics)))]
            one, other = self.rng.choice(len(topic), 2, replace=False)
            found[tuple(sorted((topic[int(one)], topic[int(other)])))] = None
        queries = list(found)
        return [queries[int(place)] for place in self.rng.permutation(len(queries))]

    def frequency(self, t: float) -> F64:
        """The share of each query at a time; what was popular changes places as time goes on."""
        days = (t - self._drifted_to) / DAY_S
        swaps = int(self.rng.poisson(max(days, 0.0) * self.habits.drift_per_day * len(self.queries)))
        for _ in range(swaps):
            one, other = self.rng.integers(len(self.queries), size=2)
            self.popularity[[one, other]] = self.popularity[[other, one]]
        self._drifted_to = max(t, self._drifted_to)
        return self.popularity

    def ask(self, t: float) -> str:
        """The next query."""
        return " ".join(self.queries[int(self.rng.choice(len(self.queries), p=self.frequency(t)))])

    def look(self, query: str, urls: Sequence[str], t: float) -> list[int]:
        """The ranks (from 1) that one searcher clicks in an answer."""
        if not urls:
            return []
        seen = self.rng.random(len(urls)) < self.view(np.arange(1.0, len(urls) + 1))
        return [
            place + 1
            for place in np.flatnonzero(seen).tolist()
            if self.rng.random() < self.habits.click * self.relevance(query, urls[place], t)
        ]

    def relevance(self, query: str, url: str, t: float) -> float:
        """How well a page answers a query at a time, from 0 to 1: each of its words must be there, and often."""
        parts = urlsplit(url)
        if parts.netloc not in self.world.hosts:
            return 0.0
        page = self.world.find(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""), t)
        if page is None or self.world.gone_s(page) <= t:
            return 0.0
        versions = self.world.versions(page, self.world.spec.start_s, t)
        words = self._text(page, versions[-1].at_s if versions else self.world.spec.start_s)
        counts = [words.get(word, 0) for word in query.split()]
        return float(np.prod([min(count / 4.0, 1.0) for count in counts])) if counts else 0.0

    def _read(self, page: int, t: float) -> dict[str, int]:
        counts: dict[str, int] = {}
        for word in self.world.text(page, t).lower().replace(",", " ").replace(".", " ").split():
            counts[word] = counts.get(word, 0) + 1
        return counts
