"""What fetches were spent on over time: hosts, topics, expected clicks, the price. Read from the journal in samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import orjson

from bowerbird.appraise.budget.click_pages import FLOOR
from bowerbird.crawl.journal_spans import find_ends, first_at, spread_runs, time_of
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.url_state import FetchKind
from bowerbird.store.connection import Connection

RUNS, RUN_ROWS = 16, 16
REMEMBERED = 1000
SETTLED_S = 120.0  # fetches end out of order by no more than a timeout
LAST_TAKEN = 1.5  # times the price: what bids less than that is among what is taken last
TOP_LEVEL = "(top level)"
_ROWS = (
    "SELECT fetches.kind, fetches.bid, fetches.price, fetches.terms, urls.host, urls.url FROM fetches"
    " JOIN urls ON urls.id = fetches.url WHERE fetches.id >= ? AND fetches.id < ? AND outcome NOT IN"
    f" ({','.join(str(int(one)) for one in DECISIONS_WITHOUT_FETCH)})"
)
#: kind, bid, price, terms, host, URL
Row = tuple[int, float, float, str, int, str]
Key = TypeVar("Key", int, str)


@dataclass(frozen=True, slots=True)
class LastTaken:
    """Fetches that bid little more than the price: how many, and the sums of what they were to gain."""

    many: float = 0.0
    clicks: float = 0.0
    prices: float = 0.0  # the same in prices of the time

    def joined(self, other: LastTaken) -> LastTaken:
        """Both together."""
        return LastTaken(self.many + other.many, self.clicks + other.clicks, self.prices + other.prices)


@dataclass(slots=True)
class Spent:
    """The fetches of an interval, each standing for as many as the sample makes it."""

    start: float
    length_s: float
    hosts: dict[int, float] = field(default_factory=dict)
    topics: dict[str, float] = field(default_factory=dict)
    clicks: dict[str, float] = field(default_factory=dict)  # expected, by kind of fetch
    last_taken: dict[str, LastTaken] = field(default_factory=dict)  # fetches near the price, by kind
    priced: tuple[float, float] = (0.0, 0.0)  # fetches decided in clicks, and the sum of their prices in clicks
    sampled: bool = False

    @property
    def price_clicks(self) -> float | None:
        """The mean price in clicks; None where nothing was decided in clicks."""
        many, total = self.priced
        return total / many if many > 0 else None

    def joined(self, later: Spent) -> Spent:
        """This interval and the one after it as one."""
        last_taken = {
            kind: self.last_taken.get(kind, LastTaken()).joined(later.last_taken.get(kind, LastTaken()))
            for kind in self.last_taken.keys() | later.last_taken.keys()
        }
        return Spent(
            self.start,
            self.length_s + later.length_s,
            add_up((self.hosts, later.hosts)),
            add_up((self.topics, later.topics)),
            add_up((self.clicks, later.clicks)),
            last_taken,
            (self.priced[0] + later.priced[0], self.priced[1] + later.priced[1]),
            self.sampled or later.sampled,
        )

    def take(self, row: Row, weight: float) -> None:
        """Count one fetch."""
        kind, bid, price, terms, host, url = row
        self.hosts[host] = self.hosts.get(host, 0.0) + weight
        topic = topic_of(url)
        self.topics[topic] = self.topics.get(topic, 0.0) + weight
        told = orjson.loads(terms)
        unit = told.get("unit")
        if not isinstance(unit, float):
            return
        label = FetchKind(kind).label
        clicks = expected_clicks(told, bid, unit)
        self.clicks[label] = self.clicks.get(label, 0.0) + weight * clicks
        many, total = self.priced
        self.priced = many + weight, total + weight * price * unit
        if bid <= LAST_TAKEN * price:
            so_far = self.last_taken.get(label, LastTaken())
            in_prices = clicks / max(price * unit, 1e-300)
            self.last_taken[label] = so_far.joined(LastTaken(weight, weight * clicks, weight * in_prices))


def topic_of(url: str) -> str:
    """The first part of the path, where there is a second.

    >>> topic_of("http://a.example/news/today/1.html"), topic_of("http://a.example/about.html")
    ('/news/', '(top level)')
    """
    try:
        parts = urlsplit(url).path.split("/")
    except ValueError:
        return TOP_LEVEL
    return f"/{parts[1]}/" if len(parts) > 2 and parts[1] else TOP_LEVEL


def expected_clicks(terms: dict[str, object], bid: float, unit: float) -> float:
    """What a fetch was expected to gain; a new page that bid the floor was expected to gain less than its bid."""
    units = terms.get("units")
    if isinstance(units, float) and units < 1.0 and ("announced" not in terms or bid <= 1.0 + FLOOR):
        return units * unit
    return bid * unit


class SpendingReader:
    """Reads a crawl's journal through connections of its caller, one at a time; what has passed is remembered."""

    def __init__(self) -> None:
        self._settled: OrderedDict[tuple[float, int], Spent] = OrderedDict()
        self._seed: object = None

    def intervals(self, connection: Connection, start: float, end: float, width_s: float) -> list[Spent]:
        """What was fetched from `start` to `end` in intervals of `width_s`."""
        seed = connection.execute("SELECT value FROM meta WHERE key = 'hash_seed'").fetchone()
        if seed != self._seed:  # a folder may be replaced by another crawl while somebody looks
            self._settled.clear()
            self._seed = seed
        first, top = find_ends(connection)
        begins_at = time_of(connection, first) if top else end
        edge_after: int | None = None
        found: list[Spent] = []
        for number in range(int(start // width_s), int(end // width_s) + 1):
            spent = self._settled.get((width_s, number))
            if spent is None:
                opens, closes = number * width_s, (number + 1) * width_s
                begin = first_at(connection, opens, first, top) if edge_after is None else edge_after
                edge_after = first_at(connection, closes, begin, top)
                length_s = min(closes, end) - max(opens, min(begins_at, closes - 0.05 * width_s))
                spent = read_spent(connection, begin, edge_after, opens, max(length_s, 0.05 * width_s))
                if found and end < closes and length_s < 0.5 * width_s:
                    spent = found.pop().joined(spent)  # it has only just begun: alone, its rate would be mere chance
                if closes < end - SETTLED_S:
                    self._settled[width_s, number] = spent
                    while len(self._settled) > REMEMBERED:
                        self._settled.popitem(last=False)
            else:
                edge_after = None
            found.append(spent)
        return found


def read_spent(connection: Connection, first: int, after: int, start: float, length_s: float) -> Spent:
    """The decisions [first, after) of the journal."""
    stretches, weight = spread_runs(first, after, RUNS, RUN_ROWS)
    spent = Spent(start, length_s, sampled=len(stretches) > 1)
    for stretch in stretches:
        for row in connection.execute(_ROWS, stretch):
            spent.take(row, weight)
    return spent


def read_origins(connection: Connection, hosts: Iterable[int]) -> dict[int, str]:
    """The names of some hosts."""
    asked = {host: connection.execute("SELECT origin FROM hosts WHERE id = ?", (host,)).fetchone() for host in hosts}
    return {host: str(row[0]) if row else "?" for host, row in asked.items()}


def add_up(parts: Iterable[dict[Key, float]]) -> dict[Key, float]:
    """Sums by key."""
    sums: dict[Key, float] = {}
    for part in parts:
        for key, value in part.items():
            sums[key] = sums.get(key, 0.0) + value
    return sums


def largest(parts: Iterable[dict[Key, float]], count: int) -> list[Key]:
    """The keys that have most in all, the first of them first."""
    sums = add_up(parts)
    return sorted(sums, key=lambda key: (-sums[key], key))[:count]
