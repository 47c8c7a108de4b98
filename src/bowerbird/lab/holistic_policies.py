"""The policies of the holistic experiments: which URLs are fetched in a step, and what each was thought to gain.

`auto` takes the best bids whatever they are for, and corrects kinds that turn out otherwise than they bid, as a crawl
does; `auto-unwatched` does not correct them. `quota-n-r-h` takes n% of new pages, r% of refreshes, h% of hubs. It bids
as `auto` does, hubs net of what new pages cost it and kinds corrected: only how fetches are shared out differs. The
others do without bids; `clairvoyant` bids what the truth is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bowerbird.appraise.hubs.due import values_at
from bowerbird.appraise.hubs.studied import fresh_pages
from bowerbird.appraise.one_budget import OneBudget, make_one_budget
from bowerbird.appraise.policy import RefreshSettings
from bowerbird.lab.holistic_crawl import HolisticCrawl, Kind
from bowerbird.lab.holistic_sharing import OneOrder, Shares, Sharing, best
from bowerbird.lab.holistic_studies import Pace, Studies, make_studies, take_snapshot
from bowerbird.lab.holistic_watch import Watcher
from bowerbird.lab.holistic_world import F64, I64
from bowerbird.model.bid import Bids
from bowerbird.model.errors import PolicyError
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.url_state import UrlState

AUTO, UNWATCHED = "auto", "auto-unwatched"
BREADTH_FIRST, NUTCH, CLAIRVOYANT, NOTHING = "breadth-first", "nutch", "clairvoyant", "(nothing)"
BOUND = "bound"  # no policy: what none can pass
QUOTA_STEP = 20  # per cent
EXPLORE = 0.03  # of the fetches, by lot
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows to fetch in this order, and what each bids in clicks; NaN where a policy does not bid in clicks."""

    rows: I64
    bids: F64
    kinds: I64 | None = None  # what each bids as, where that is known: a page that is a hub may do so as either

    @property
    def price(self) -> float:
        """The least bid that was taken."""
        return float(np.nanmin(self.bids)) if len(self.bids) and not np.isnan(self.bids).all() else 0.0


class Chooser(Protocol):
    """What decides."""

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """Look at all that is known; asked for now and then."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """What is fetched in this step, so many URLs at most."""


def quota_names() -> tuple[str, ...]:
    """All splits in steps of a fifth.

    >>> len(quota_names()), quota_names()[0]
    (21, 'quota-0-0-100')
    """
    parts = range(0, 101, QUOTA_STEP)
    return tuple(f"quota-{new}-{known}-{100 - new - known}" for new in parts for known in parts if new + known <= 100)


def make_chooser(name: str) -> Chooser:
    """A policy by its name."""
    made: dict[str, Callable[[], Chooser]] = {
        AUTO: lambda: Bidding(OneOrder()),
        UNWATCHED: lambda: Bidding(OneOrder(), watched=False),
        BREADTH_FIRST: BreadthFirst,
        NUTCH: Nutch,
        CLAIRVOYANT: Clairvoyant,
        NOTHING: Nothing,
    }
    if name in made:
        return made[name]()
    if name in quota_names():
        new, known, hubs = (int(part) / 100.0 for part in name.split("-")[1:])
        return Bidding(Shares((new, known, hubs)))
    raise PolicyError(f"holistic: no policy {name!r}. Known: {', '.join((*made, *quota_names()))}.")


class Bidding:
    """Bids by the product's studies, the same ones however fetches are shared out."""

    def __init__(self, sharing: Sharing, *, watched: bool = True) -> None:
        self.pace = Pace()
        self.sharing = sharing
        self.studies: Studies | None = None
        self.price = 0.0  # of a new page, in clicks
        self.policy: OneBudget | None = None
        self.watcher = Watcher() if watched else None
        self.renewed = True
        self.unit = 0.0
        self.snapshot: Snapshot | None = None  # that bids were made of last
        self.columns: dict[str, npt.NDArray[Any]] = {}  # of the bids, as a live crawl keeps them

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """The three studies, and as far ahead as gains count: to the end of what is measured."""
        self.studies = make_studies(crawl, self.pace, self.price, self.studies, seed)
        if self.watcher is not None:
            self.watcher.look(crawl, self.studies)
        settings = RefreshSettings(interval_s=self.pace.page_s, hub_interval_s=self.pace.hub_s)
        left_s = max(crawl.world.end_s - crawl.now, crawl.world.step_s)
        self.policy = make_one_budget(settings, left_s)
        self.renewed = True

    def values(self, crawl: HolisticCrawl) -> F64:
        """Bids of all rows in clicks: made anew for those that were touched, and for all after a study."""
        assert self.policy is not None
        factors = self.watcher.factors if self.watcher else None
        self.snapshot = snapshot = take_snapshot(crawl, self.studies, factors, self.price)
        n = crawl.count
        hubs = np.flatnonzero(crawl.is_hub[:n])  # what a visit gains hangs on the price
        touched = np.concatenate([np.array(crawl.touched, dtype=np.int64), hubs])
        rows = np.arange(n) if self.renewed else np.unique(touched)
        self.renewed = False
        crawl.touched.clear()
        if len(rows):
            self.unit = self.policy.unit(snapshot)
            made = self.policy.appraise(snapshot, rows)
            for name in ("amplitude", "rate", "since", "shape"):
                column = getattr(made, name)
                if len(self.columns.get(name, ())) < crawl.world.count:
                    self.columns[name] = np.zeros(crawl.world.count, column.dtype)
                self.columns[name][rows] = column
        columns = self.columns
        bids = Bids(columns["amplitude"][:n], columns["rate"][:n], columns["since"][:n], columns["shape"][:n])
        return values_at(bids, crawl.now) * self.unit

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """The best bids, of all or of each kind."""
        values = self.values(crawl)
        drawn = self._draw(crawl, fetches)
        able = (values > 0) & (crawl.columns.last_fetched[: crawl.count] < crawl.now)
        able[drawn] = False
        rows, kinds = np.flatnonzero(able), crawl.kinds()
        shared = self.sharing.share(values, rows, kinds[rows], fetches - len(drawn))
        if shared.price is not None:
            self.price = shared.price
        for part in shared.parts:
            kinds[part] = self._bid_as(crawl, part)
            self._note(part, kinds[part], values[part])
        rows = np.concatenate([*shared.parts, drawn])
        bids = values[rows]
        bids[len(rows) - len(drawn) :] = np.nan
        return Choice(rows, bids, kinds[rows])

    def _note(self, taken: I64, kinds: I64, values: F64) -> None:
        """Remember what is expected of fetches; those of one margin, for what they bid is held against the least."""
        if self.watcher is not None and len(taken):
            assert self.policy is not None
            assert self.snapshot is not None
            self.watcher.note(self.policy, self.snapshot, taken, kinds, values / self.unit)

    def _bid_as(self, crawl: HolisticCrawl, rows: I64) -> I64:
        """What fetches are for, as a journal has it: a page that is a hub, too, is fetched for what gains more."""
        assert self.policy is not None
        assert self.snapshot is not None
        kinds = crawl.kinds()[rows]
        places = np.flatnonzero(kinds == Kind.HUB)
        for place, bidder in zip(places.tolist(), self.policy.bidders(self.snapshot, rows[places]), strict=True):
            if bidder is self.policy.refresh:
                kinds[place] = Kind.REFRESH
        return kinds

    def _draw(self, crawl: HolisticCrawl, fetches: int) -> I64:
        """A small part of the fetches by lot: what nobody expects anything of is tried, too, as in a live crawl.

        In equal parts to new pages, to those that hubs announced of late, and to hubs.
        """
        many = int(crawl.rng.binomial(fetches, EXPLORE))
        if not many:
            return _NONE
        assert self.snapshot is not None
        n, columns = crawl.count, crawl.columns
        new = np.flatnonzero((columns.state[:n] == UrlState.NEW) & ~crawl.is_hub[:n])
        seen = (columns.state[:n] == UrlState.FETCHED) & (columns.last_fetched[:n] < crawl.now)
        hubs = np.flatnonzero(crawl.is_hub[:n] & seen)
        strata = [rows for rows in (new, fresh_pages(self.snapshot, new), hubs) if len(rows)]
        chance = np.zeros(n)
        for rows in strata:
            chance[rows] += EXPLORE * fetches / len(strata) / len(rows)
        drawn = [int(crawl.rng.choice(strata[nth])) for nth in crawl.rng.integers(len(strata), size=many)]
        rows = np.unique(np.array(drawn, dtype=np.int64))
        first = rows[columns.state[rows] == UrlState.NEW]
        crawl.propensity[first] = chance[first]
        return rows


class BreadthFirst:
    """Half of the fetches to new pages in the order of depth and time, half to all known URLs, the oldest first."""

    def __init__(self) -> None:
        self.shares = Shares((0.5, 0.5, 0.0))

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """Nothing to look at."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """New ones by depth, known ones by age."""
        n, columns = crawl.count, crawl.columns
        new = columns.state[:n] == UrlState.NEW
        early = -(columns.depth[:n] * 1e12 + columns.first_seen[:n])
        values = np.where(new, early, crawl.now - columns.last_fetched[:n])
        kinds = np.where(new, int(Kind.NEW), int(Kind.REFRESH))
        rows = np.flatnonzero(new | (columns.last_fetched[:n] < crawl.now))
        taken = np.concatenate(self.shares.share(values, rows, kinds[rows], fetches).parts)
        return Choice(taken, np.full(len(taken), np.nan))


class Nutch:
    """URLs that are due, those first that most pages link to; intervals of 30 days, 0.4 longer or 0.2 shorter."""

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """Nothing to look at."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """New ones are due at once."""
        n, columns = crawl.count, crawl.columns
        new = columns.state[:n] == UrlState.NEW
        due = new | (crawl.now - columns.last_fetched[:n] >= columns.interval_s[:n])
        taken = best(columns.in_degree[:n].astype(np.float64), np.flatnonzero(due), fetches)
        return Choice(taken, np.full(len(taken), np.nan))


class Nothing:
    """Fetches nothing more."""

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """Nothing to look at."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """Nothing."""
        return Choice(_NONE, np.zeros(0))


class Clairvoyant:
    """The same order by the truth: clicks left of new pages, what stale pages lose, what hubs have to show.

    A stale page loses q until it is fetched, and a refresh is good until the next change: q/Delta, at most to the end.
    It knows nothing of pages that nothing fetched links to, and does not plan ahead: a reference, no bound.
    """

    def __init__(self) -> None:
        self.price = 0.0

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """It knows."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """The best bids of all kinds."""
        world, n, columns = crawl.world, crawl.count, crawl.columns
        pages = crawl.page[:n]
        new = columns.state[:n] == UrlState.NEW
        left_s = world.end_s - crawl.now
        lost = world.clicks_per_s(pages, crawl.now) * (1.0 - crawl.kept[:n])
        rate = np.maximum(world.change_rate_per_s[pages], 1e-12)
        values = np.where(new, world.clicks_left(pages, crawl.now), lost * -np.expm1(-rate * left_s) / rate)
        for row in np.flatnonzero(crawl.is_hub[:n]).tolist():
            if not new[row]:
                values[row] += crawl.gain_of_visit(row, self.price, telling=True)
            else:
                values[row] = np.inf  # cheap to try once
        rows = np.flatnonzero((values > 0) & (columns.last_fetched[:n] < crawl.now))
        taken = best(values, rows, fetches)
        choice = Choice(taken, values[taken])
        if len(taken) == fetches and np.isfinite(choice.price):
            self.price = choice.price
        return choice


class WarmStart:
    """The time before: a third each to new pages by lot, known pages by age, hubs by age, new hubs first."""

    def __init__(self) -> None:
        self.shares = Shares((1 / 3, 1 / 3, 1 / 3))

    def study(self, crawl: HolisticCrawl, seed: int) -> None:
        """Nothing to look at."""

    def choose(self, crawl: HolisticCrawl, fetches: int) -> Choice:
        """New ones by lot, others by age."""
        n, columns = crawl.count, crawl.columns
        new = columns.state[:n] == UrlState.NEW
        values = np.where(new, crawl.rng.random(n), crawl.now - columns.last_fetched[:n])
        values[new & crawl.is_hub[:n]] = np.inf
        rows = np.flatnonzero(new | (columns.last_fetched[:n] < crawl.now))
        taken = np.concatenate(self.shares.share(values, rows, crawl.kinds()[rows], fetches).parts)
        return Choice(taken, np.full(len(taken), np.nan))
