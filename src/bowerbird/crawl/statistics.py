"""Counts of a run: what progress lines and `status` show."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace

from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, GOOD, Outcome
from bowerbird.model.url_state import FetchKind
from bowerbird.store.connection import Connection


@dataclass(slots=True)
class Progress:
    """A moment of a run, for people and for `status`."""

    elapsed_s: float
    fetched: int
    pages_per_s: float
    frontier: int
    known: int
    in_flight: int
    hosts_waiting: int
    errors: int
    price: float
    next_bid: float
    next_url: str  # empty where nothing is in line
    by_kind: dict[str, int]
    by_outcome: dict[str, int]
    indexed_behind: int
    wire_mb: float
    refused: int
    study_basis: str = ""  # calibrated, prior, none yet; empty where the policy needs no study
    study_age_s: float = 0.0
    unit: float = 0.0  # clicks that a bid of 1 stands for; 0 where bids are not in clicks
    by_clicks: bool = False  # clicks are known: before that bids are told in units
    seeds: str = ""  # what the last choice of seeds in this run changed
    unreachable: dict[str, int] = field(default_factory=dict)  # why hosts gave no robots.txt

    def troubles(self) -> dict[str, int]:
        """What went wrong, by kind; that a page is not there is an answer like others."""
        fine = {outcome.label for outcome in (*GOOD, Outcome.GONE, Outcome.HOST_UNREACHABLE)}
        bad = {label: count for label, count in self.by_outcome.items() if label not in fine}
        return bad | {f"robots.txt {label}": count for label, count in self.unreachable.items()}


@dataclass(slots=True)
class Tally:
    """Counters since the run began, and a sliding window for the speed."""

    started_at: float
    window_s: float = 10.0
    fetched: int = 0
    wire_bytes: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    by_outcome: Counter[str] = field(default_factory=Counter)
    unreachable: Counter[str] = field(default_factory=Counter)  # by what became of robots.txt
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, kind: FetchKind, outcome: Outcome, wire_bytes: int, fetches: int = 1) -> None:
        """One fetch, or several of the same kind and outcome."""
        self.fetched += fetches
        self.wire_bytes += wire_bytes
        self.by_kind[kind.label] += fetches
        self.by_outcome[outcome.label] += fetches

    def copy(self) -> Tally:
        """As it stands, to be kept."""
        return replace(
            self,
            by_kind=Counter(self.by_kind),
            by_outcome=Counter(self.by_outcome),
            unreachable=Counter(self.unreachable),
            _recent=deque(),
        )

    def add_all(self, other: Tally) -> None:
        """What another run counted."""
        self.fetched += other.fetched
        self.wire_bytes += other.wire_bytes
        self.by_kind.update(other.by_kind)
        self.by_outcome.update(other.by_outcome)
        self.unreachable.update(other.unreachable)

    def add_robots(self, outcome: Outcome) -> None:
        """A robots.txt asked for: no page, but a host that cannot be reached shows."""
        if not outcome.answered or outcome.transient:
            self.by_outcome[Outcome.HOST_UNREACHABLE.label] += 1
            self.unreachable[outcome.label] += 1

    def errors(self) -> int:
        """Fetches that went wrong; that a page is not there (404, 410) is an answer like others."""
        unreachable = self.by_outcome[Outcome.HOST_UNREACHABLE.label]
        return self.fetched - sum(self.by_outcome[good.label] for good in (*GOOD, Outcome.GONE)) + unreachable

    def set_back(self, by_s: float) -> None:
        """The clock was set back: the run is as long as it was."""
        self.started_at -= by_s
        self._recent = deque((at - by_s, fetched) for at, fetched in self._recent)

    def speed(self, now: float) -> float:
        """Fetches a second over the last seconds."""
        self._recent.append((now, self.fetched))
        while len(self._recent) > 2 and self._recent[0][0] < now - self.window_s:
            self._recent.popleft()
        (then, before) = self._recent[0]
        return (self.fetched - before) / (now - then) if now > then else 0.0


@dataclass(slots=True)
class Totals:
    """Of all runs: fetches by kind, outcomes, bytes."""

    by_kind: dict[str, int] = field(default_factory=lambda: {kind.label: 0 for kind in FetchKind})
    outcomes: dict[str, int] = field(default_factory=dict)
    wire_bytes: int = 0

    @property
    def errors(self) -> dict[str, int]:
        """Outcomes that nobody wanted."""
        wanted = {outcome.label for outcome in (*GOOD, Outcome.FORGOTTEN, Outcome.ADDED)}
        return {label: many for label, many in sorted(self.outcomes.items()) if label not in wanted}


def read_totals(connection: Connection) -> Totals:
    """As the crawl has counted them."""
    totals = Totals()
    for kind, outcome, fetches, size in connection.execute("SELECT * FROM totals"):
        label = Outcome(outcome).label
        totals.outcomes[label] = totals.outcomes.get(label, 0) + fetches
        if outcome not in DECISIONS_WITHOUT_FETCH:
            totals.by_kind[FetchKind(kind).label] += fetches
            totals.wire_bytes += size
    return totals
