"""What fetches were spent on over time: hosts, topics, expected clicks, the price. Read from the journal in samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import orjson

from bowerbird.appraise.budget.click_pages import FLOOR
from bowerbird.appraise.budget.correction import NEAR
from bowerbird.appraise.budget.decisions import group_of
from bowerbird.crawl.journal_spans import spread_runs
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.url_state import FetchKind
from bowerbird.model.worth import CLICKS, UNITS
from bowerbird.store.connection import Connection

RUNS, RUN_ROWS = 16, 16
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
class NearPrice:
    """Fetches that bid about the price, as the watch has it: how many, and the sums of what they were to gain."""

    many: float = 0.0
    clicks: float = 0.0
    prices: float = 0.0  # the same in prices of the time

    def joined(self, other: NearPrice) -> NearPrice:
        """Both together."""
        return NearPrice(self.many + other.many, self.clicks + other.clicks, self.prices + other.prices)


@dataclass(slots=True)
class Gained:
    """What fetches were to gain, and their prices, all in one unit."""

    clicks: dict[str, float] = field(default_factory=dict)  # expected, by kind of fetch
    near_price: dict[str, NearPrice] = field(default_factory=dict)  # fetches near the price, by kind
    priced: tuple[float, float] = (0.0, 0.0)  # fetches, and the sum of their prices
    unit: float = 0.0  # clicks for a bid of 1, of the last of them

    @property
    def price(self) -> float | None:
        """The mean; None where there is none."""
        many, total = self.priced
        return total / many if many > 0 else None

    def joined(self, later: Gained) -> Gained:
        """Both together."""
        near_price = {
            kind: self.near_price.get(kind, NearPrice()).joined(later.near_price.get(kind, NearPrice()))
            for kind in self.near_price.keys() | later.near_price.keys()
        }
        return Gained(
            add_up((self.clicks, later.clicks)),
            near_price,
            (self.priced[0] + later.priced[0], self.priced[1] + later.priced[1]),
            later.unit or self.unit,
        )

    def scaled(self, times: float) -> Gained:
        """The same in another unit."""
        return Gained(
            {kind: clicks * times for kind, clicks in self.clicks.items()},
            {kind: NearPrice(one.many, one.clicks * times, one.prices) for kind, one in self.near_price.items()},
            (self.priced[0], self.priced[1] * times),
            self.unit * times,
        )

    def take(self, kind: int, bid: float, price: float, terms: dict[str, object], unit: float, weight: float) -> None:
        """Count one fetch; near the price by its kind, as the watch has kinds, unless a bound has set its bid."""
        self.unit = unit
        label, group = FetchKind(kind).label, group_of(kind, terms)
        clicks = expected_clicks(terms, bid, unit)
        self.clicks[label] = self.clicks.get(label, 0.0) + weight * clicks
        many, total = self.priced
        self.priced = many + weight, total + weight * price * unit
        if price <= NEAR * bid and bid <= NEAR * price and group is not None and not terms.get("bound"):
            so_far = self.near_price.get(group.label, NearPrice())
            in_prices = clicks / max(cost_of(terms) * price * unit, 1e-300)
            self.near_price[group.label] = so_far.joined(NearPrice(weight, weight * clicks, weight * in_prices))


@dataclass(slots=True)
class Spent:
    """The fetches of an interval, each standing for as many as the sample makes it."""

    start: float
    length_s: float
    hosts: dict[int, float] = field(default_factory=dict)
    topics: dict[str, float] = field(default_factory=dict)
    by_clicks: Gained = field(default_factory=Gained)  # of what was decided in clicks
    in_units: Gained = field(default_factory=Gained)  # and before any was known: then these are nobody's clicks
    sampled: bool = False

    def joined(self, later: Spent) -> Spent:
        """This interval and the one after it as one."""
        return Spent(
            self.start,
            self.length_s + later.length_s,
            add_up((self.hosts, later.hosts)),
            add_up((self.topics, later.topics)),
            self.by_clicks.joined(later.by_clicks),
            self.in_units.joined(later.in_units),
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
        if isinstance(unit, float) and kind != FetchKind.PROBE:  # a lot expects nothing
            gained = self.by_clicks if told.get("by_clicks", True) else self.in_units
            gained.take(kind, bid, price, told, unit, weight)


@dataclass(frozen=True, slots=True)
class Told:
    """What was gained by interval, in one unit, and what that is called."""

    noun: str
    parts: list[Gained]

    @property
    def price(self) -> float | None:
        """The last; None where nothing was decided in clicks or units."""
        return next((part.price for part in reversed(self.parts) if part.price is not None), None)


def tell_gains(spent: Sequence[Spent], unit: float | None = None) -> Told:
    """In clicks where any were known in the time shown, else in units: of now, where `unit` says what that is."""
    if any(part.by_clicks.price is not None for part in spent):
        return Told(CLICKS, [part.by_clicks for part in spent])
    unit = unit or next((part.in_units.unit for part in reversed(spent) if part.in_units.unit), 1.0)
    return Told(UNITS, [part.in_units.scaled(1.0 / unit) for part in spent])


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


def cost_of(terms: dict[str, object]) -> float:
    """What the gain of a decision was divided by in its bid."""
    cost = terms.get("cost", 1.0)
    return cost if isinstance(cost, float) else 1.0


def expected_clicks(terms: dict[str, object], bid: float, unit: float) -> float:
    """What a fetch was expected to gain, whatever set its bid: the floor, its age, or its gain by what it costs."""
    gain = terms.get("gain")
    if isinstance(gain, float):
        return gain * cost_of(terms) * unit
    units = terms.get("units")
    if isinstance(units, float) and units < 1.0 and ("announced" not in terms or bid <= 1.0 + FLOOR):
        return units * unit
    return bid * unit


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
