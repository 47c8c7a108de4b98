"""A crawl that another program fetches for, as a person looks at it: what it is given next, and why not this URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.policy import Policy
from bowerbird.crawl.guest_lines import INACTIVE, USUAL_DELAY, GuestLines
from bowerbird.crawl.guest_market import GuestMarket, Picked
from bowerbird.crawl.guest_owner import SCRAPY
from bowerbird.crawl.guest_places import DONE, GONE
from bowerbird.crawl.guest_requests import PER_HOST, ROUND, RequestTable
from bowerbird.crawl.live import read_live
from bowerbird.crawl.moments import clock_text
from bowerbird.crawl.settings import Settings
from bowerbird.schedule.auction import first_in_order
from bowerbird.store.repository import Repository

I64 = npt.NDArray[np.int64]
Coming = tuple[int, float, str]
"""A row, what it bids, and when it goes."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a URL stands: `at` is the earliest that it goes, None where that is never or nobody knows."""

    state: str
    text: str
    at: float | None = None
    line: str = ""  # the line that it stands in, in words
    before: int = 0  # better ones of its line that may go

    def tell(self) -> dict[str, Any]:
        """As plain data."""
        return {"state": self.state, "text": self.text, "at": clock_text(self.at), "line": self.line}

    def expect(self, now: float) -> dict[str, Any]:
        """As `expect` says it of a crawl of ours."""
        if self.at is None:
            return {"at": None, "why": self.text}
        at = max(self.at, now)
        said = {"at": clock_text(at), "in_s": round(at - now, 1), "before_it_on_host": self.before}
        return {**said, "why": self.text}


class GuestView(Protocol):
    """What is next for whoever fetches, and where a URL stands. Bids are those of `market`."""

    market: GuestMarket
    note: str  # what to know of all of it; empty where there is nothing

    def next(self, count: int) -> list[Coming]:
        """What would be handed out now, in order; then what waits for its time."""

    def turn(self, row: int) -> Turn:
        """Where one URL stands."""


def open_guest_view(
    owner: str, repository: Repository, policy: Policy, settings: Settings, now: float, *, running: bool
) -> GuestView:
    """The view of a folder, as of the last commit."""
    market = GuestMarket(repository, policy, now)
    if owner == SCRAPY:
        return RequestView(repository, market, now, running=running)
    return LineView(repository, market, settings, now)


class LineView:
    """Lines of the frontier service."""

    def __init__(self, repository: Repository, market: GuestMarket, settings: Settings, now: float) -> None:
        self.market, self.now = market, now
        usual_s = repository.meta(USUAL_DELAY)
        connection = repository.connection
        connection.execute("BEGIN")  # all of one moment
        try:
            delay_s = settings.politeness.delay_s if usual_s is None else float(str(usual_s))
            self.lines = GuestLines(repository, market, delay_s, now)
            market.open(now)
            self.lines.open(now)
        finally:
            connection.execute("COMMIT")
        self.is_active = not repository.meta(INACTIVE)
        self.note = "" if self.is_active else "Nothing is handed out: the service was set inactive (SetActive)."

    def next(self, count: int) -> list[Coming]:
        """As GetURLs would hand it out; then what waits for its date or for the delay of its queue."""
        if not self.is_active:
            return []
        self.market.auction.refill(self.now, 0.0)  # an earlier look may have emptied the pool
        picked = self.lines.pick(self.now, most=count)
        chosen = [(row, value, "now") for row, value in zip(picked.rows.tolist(), picked.values.tolist(), strict=True)]
        if len(chosen) < count:
            chosen += self._waiting(picked, count - len(chosen))
        return chosen

    def _waiting(self, picked: Picked, count: int) -> list[Coming]:
        places, queues = self.lines.places.columns, self.lines.queues.columns
        given = np.bincount(picked.lines, minlength=len(queues))
        left = np.where(queues["most"] > 0, queues["most"] - queues["fetched"] - queues["in_process"] - given, 1)
        open_lines = (queues["blocked_until"] <= self.now) & (left > 0) & (queues["is_gone"] == 0)
        rows = np.flatnonzero(places["flags"] == 0)
        rows = rows[open_lines[places["queue"][rows]]]
        rows = rows[~np.isin(rows, picked.rows) & ~np.isin(rows, self.lines.leases.rows())]
        values = self.market.auction.values(self.now, rows)
        order = first_in_order(values, rows, count)
        times = [clock_text(max(self._free_at(int(row)), self.now)) or "now" for row in rows[order]]
        return list(zip(rows[order].tolist(), values[order].tolist(), times, strict=True))

    def _free_at(self, row: int) -> float:
        line = int(self.lines.places.columns["queue"][row])
        ready_at = float(self.lines.queues.columns["produced_at"][line]) + float(self.lines.queues.delays()[line])
        return max(ready_at, float(self.market.auction.bids["not_before"][row]))

    def turn(self, row: int) -> Turn:
        """Why GetURLs does or does not hand it out."""
        places, queues, now = self.lines.places.columns, self.lines.queues.columns, self.now
        if row >= places.count or places["flags"][row] == GONE:
            return Turn("removed", "in no queue: its owner took it out, or never put it in")
        number = int(places["queue"][row])
        line = self._tell_line(number)
        if places["flags"][row] == DONE:
            return Turn("done", "done for good by its owner", None, line)
        until = self.lines.leases.until(row)
        if until is not None:
            return Turn("leased", f"with a fetcher until {clock_text(until)}", until, line)
        if not self.is_active:
            return Turn("inactive", "nothing is handed out: the service was set inactive (SetActive)", None, line)
        blocked = float(queues["blocked_until"][number])
        if blocked > now:
            return Turn("blocked", f"its queue is blocked until {clock_text(blocked)}", blocked, line)
        most = int(queues["most"][number])
        if 0 < most <= int(queues["fetched"][number] + queues["in_process"][number]):
            return Turn("limit", f"its queue has reached its limit of {most:,}", None, line)
        date = float(self.market.auction.bids["not_before"][row])
        if date > now:
            return Turn("date", f"its owner wants it again from {clock_text(date)} on", self._free_at(row), line)
        before = self._count_before(row, number)
        free_at = self._free_at(row)
        if free_at > now:
            return Turn("delay", f"its queue gives again at {clock_text(free_at)}", free_at, line, before)
        return Turn("ready", "in line: it goes when a fetcher asks", now, line, before)

    def _count_before(self, row: int, number: int) -> int:
        places = self.lines.places.columns
        rivals = np.flatnonzero((places["queue"] == number) & (places["flags"] == 0))
        rivals = rivals[self.market.auction.bids["not_before"][rivals] <= self.now]
        values = self.market.auction.values(self.now, rivals)
        mine = self.market.auction.values(self.now, np.array([row]))[0]
        return int(np.count_nonzero((values > mine) | ((values == mine) & (rivals < row))))

    def _tell_line(self, number: int) -> str:
        queues = self.lines.queues.columns
        parts = [f"delay {self.lines.queues.delays()[number]:g} s", f"{queues['in_process'][number]:,} with fetchers"]
        if queues["blocked_until"][number] > self.now:
            parts.append(f"blocked until {clock_text(float(queues['blocked_until'][number]))}")
        if queues["most"][number] > 0:
            parts.append(f"{queues['fetched'][number]:,} fetched of a limit of {queues['most'][number]:,}")
        return f"queue {self.lines.queues.keys_by_number[number]}: {', '.join(parts)}"


class RequestView:
    """Requests of Scrapy's."""

    def __init__(self, repository: Repository, market: GuestMarket, now: float, *, running: bool) -> None:
        self.repository, self.market, self.now, self.running = repository, market, now, running
        market.open(now)
        self.requests = RequestTable(repository.connection, repository.table.columns["host"])
        self.per_host = int(str(repository.meta(PER_HOST) or 1))
        self.is_over = bool(repository.meta(ROUND))
        self.out = np.array(read_live(repository).get("handed_out", ()) if running else (), dtype=np.int64)
        self.out = self.out[self.out < self.requests.columns.count]
        self.out = self.out[self.requests.columns["waits"][self.out] > 0]
        self.requests.take(self.out)
        self.note = ""
        if self.is_over:
            self.note = "Nothing waits: the last round is over, and the next run of the spider begins another."

    def next(self, count: int) -> list[Coming]:
        """As Scrapy would be given it, of requests whose URL is a page's."""
        slots = self.requests.choose(self.market.auction, self.now, count, self.per_host)
        rows = self.requests.columns["row"][slots]
        rows = rows[(rows >= 0) & (rows < self.repository.table.columns.count)]
        values = self.market.auction.values(self.now, rows)
        when = "now" if self.running else "when the spider runs"
        return [(row, value, when) for row, value in zip(rows.tolist(), values.tolist(), strict=True)]

    def turn(self, row: int) -> Turn:
        """Whether a request for it waits."""
        columns = self.requests.columns
        mine = columns["row"] == row
        waiting = np.flatnonzero(mine & (columns["waits"] > 0))
        if np.isin(np.flatnonzero(mine), self.out).any():
            return Turn("leased", "Scrapy is fetching it")
        if len(waiting):
            priority = int(columns["priority"][waiting].max())
            others = np.flatnonzero(columns["waits"])
            higher = int(np.count_nonzero(columns["priority"][others] > priority))
            when = "it goes in its turn" if self.running else "it goes when the spider runs"
            text = f"a request for it waits: {when}"
            line = f"priority {priority}: {higher:,} of a higher one, {len(others):,} in all"
            return Turn("ready", text, self.now if self.running else None, line)
        if self.is_over:
            return Turn("done", "the last round is over: the next run of the spider begins another")
        done = self.repository.connection.execute(
            "SELECT 1 FROM guest_requests WHERE url = ? AND request IS NULL", (row,)
        ).fetchone()
        if done is not None:
            return Turn("done", "dealt with in this round, which goes on")
        return Turn("removed", "no request for it: it is known by a link, or was dropped")


def tell_guest_decision(bid: dict[str, Any], turn: Turn, kind: str, now: float) -> dict[str, Any]:
    """The tree of the bid, and beside it where the URL stands."""
    when = "never" if turn.at is None else "now" if turn.at <= now else str(clock_text(turn.at))
    children: Sequence[dict[str, Any]] = [bid]
    if turn.line:
        children = [bid, {"name": "line", "value": turn.line}]
    return {"name": f"fetch ({kind})", "value": when, "note": turn.text, "children": list(children)}
