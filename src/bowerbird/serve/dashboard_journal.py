"""What the journal has of decisions: how many of each kind and outcome, hosts, errors, hubs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bowerbird.crawl.journal_spans import EXACT_ROWS, count_kinds, find_ends, time_of
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, GOOD, NO_ERRORS, Outcome
from bowerbird.model.url_state import FetchKind, UrlKind
from bowerbird.store.connection import Connection

ERRORS = tuple(sorted(set(Outcome) - {*GOOD, *NO_ERRORS, Outcome.FORGOTTEN, Outcome.ADDED}))
RECENT_FETCHES = 5000
RECENT_URLS = 50_000
HUB_CANDIDATES = 400
WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
EXACT_EACH = EXACT_ROWS // 10  # decisions of one of many intervals that are counted

Counts = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """What was decided within some time: how many of each kind and outcome, and for how long it lasted."""

    start: float
    length_s: float
    counts: Counts
    sampled: bool

    def fetches(self, kind: FetchKind) -> float:
        """Fetches of a kind; decisions for which no host was asked do not count."""
        return sum(
            number
            for (of_kind, outcome), number in self.counts.items()
            if of_kind == kind and outcome not in DECISIONS_WITHOUT_FETCH
        )

    def joined(self, later: Interval) -> Interval:
        """This interval and the one after it as one."""
        keys = self.counts.keys() | later.counts.keys()
        counts = {key: self.counts.get(key, 0.0) + later.counts.get(key, 0.0) for key in keys}
        return Interval(self.start, self.length_s + later.length_s, counts, self.sampled or later.sampled)

    def of_outcome(self, outcome: Outcome) -> float:
        """Decisions with an outcome."""
        return sum(number for (_, of_outcome), number in self.counts.items() if of_outcome == outcome)


@dataclass(frozen=True, slots=True)
class BusyHost:
    """A host among the most recent fetches."""

    origin: str
    fetches: int
    errors: int
    pages: int
    last_fetch: float


@dataclass(frozen=True, slots=True)
class Hub:
    """A URL that announced new ones: its visits, what it brought of late, and how much of that on a later visit."""

    url: str
    kind: str
    visits: int
    found: int
    found_later: int


def choose_width_s(span_s: float, intervals: int) -> float:
    """The round width that divides a span into at most so many intervals.

    >>> choose_width_s(3600, 60), choose_width_s(40, 60)
    (60.0, 1.0)
    """
    rough = span_s / intervals
    return float(next((width for width in WIDTHS_S if width >= rough), -(-rough // 86_400) * 86_400))


def read_interval(connection: Connection, first: int, after: int, start: float, length_s: float) -> Interval:
    """The decisions [first, after) of the journal: counted where they are few, else told from spread runs of rows."""
    counts, sampled = count_kinds(connection, first, after, EXACT_EACH)
    return Interval(start, length_s, counts, sampled)


def read_bounds(connection: Connection) -> tuple[float, float] | None:
    """When the first and the last decision were made, or None."""
    first, top = find_ends(connection)
    return (time_of(connection, first), time_of(connection, top)) if top else None


def read_totals(connection: Connection) -> dict[tuple[int, int], int]:
    """All decisions ever, by kind and outcome."""
    return {(kind, outcome): n for kind, outcome, n in connection.execute("SELECT kind, outcome, fetches FROM totals")}


def read_busy_hosts(connection: Connection, limit: int) -> list[BusyHost]:
    """The hosts of the most recent fetches, those with the most first."""
    bad = _marks(ERRORS)
    rows = connection.execute(
        f"SELECT urls.host, count(*) AS n, sum(CASE WHEN outcome IN ({bad}) THEN 1 ELSE 0 END)"
        " FROM fetches JOIN urls ON urls.id = fetches.url"
        " WHERE fetches.id > (SELECT max(id) FROM fetches) - ?"
        f" AND outcome NOT IN ({_marks(DECISIONS_WITHOUT_FETCH)}) GROUP BY urls.host"
        " ORDER BY n DESC, urls.host LIMIT ?",
        (RECENT_FETCHES, limit),
    ).fetchall()
    busy = []
    for host, fetches, errors in rows:
        found = connection.execute("SELECT origin, pages, last_fetch FROM hosts WHERE id = ?", (host,)).fetchone()
        if found is not None:
            busy.append(BusyHost(found[0], fetches, errors, found[1], found[2]))
    return busy


def read_last_errors(connection: Connection) -> dict[str, str]:
    """The last error of each origin among the most recent decisions."""
    rows = connection.execute(
        "SELECT hosts.origin, outcome, error FROM fetches JOIN urls ON urls.id = fetches.url"
        " JOIN hosts ON hosts.id = urls.host WHERE fetches.id IN (SELECT max(fetches.id) FROM fetches"
        " JOIN urls ON urls.id = fetches.url WHERE fetches.id > (SELECT max(id) FROM fetches) - ?"
        f" AND outcome IN ({_marks(ERRORS)}) GROUP BY urls.host)",
        (RECENT_FETCHES,),
    )
    return {origin: error or Outcome(outcome).label for origin, outcome, error in rows}


def read_hubs(connection: Connection, limit: int) -> list[Hub]:
    """Feeds, sitemaps and pages visited again that led to the newest URLs, those that brought the most first."""
    rows = connection.execute(
        "SELECT source, first_seen FROM urls WHERE id > (SELECT max(id) FROM urls) - ? AND source >= 0", (RECENT_URLS,)
    ).fetchall()
    seen: dict[int, list[float]] = {}
    for source, first_seen in rows:
        seen.setdefault(source, []).append(first_seen)
    hubs = []
    for source in sorted(seen, key=lambda one: (-len(seen[one]), one))[:HUB_CANDIDATES]:
        url, kind = connection.execute("SELECT url, kind FROM urls WHERE id = ?", (source,)).fetchone()
        visits, first_at = connection.execute(
            "SELECT count(*), min(fetched_at) FROM fetches WHERE url = ? AND outcome NOT IN "
            f"({_marks(DECISIONS_WITHOUT_FETCH)})",
            (source,),
        ).fetchone()
        later = sum(at > (first_at or 0.0) + 1.0 for at in seen[source]) if visits > 1 else 0
        if kind != UrlKind.PAGE or later:
            hubs.append(Hub(url, UrlKind(kind).name.lower(), visits, len(seen[source]), later))
    hubs.sort(key=lambda hub: (-hub.found_later, -hub.found, hub.url))
    return hubs[:limit]


def _marks(outcomes: tuple[Outcome, ...]) -> str:
    return ",".join(str(int(outcome)) for outcome in outcomes)
