"""The product's policy for hubs and what they announce: one price for visits and new pages.

Whatever bids most is fetched. A page bids what it is still expected to make (`appraise/hubs/page_worth`), a hub the
index of its net value (`net_value`): what it has probably announced since the last visit, less the price of the page
fetches that this causes. The price is the level that the winning bids hardly ever fall below.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bowerbird.appraise.hubs.discovery import RateBook
from bowerbird.appraise.hubs.net_value import net_hub_index
from bowerbird.appraise.hubs.page_worth import PageWorth, halve_places
from bowerbird.lab.echo_replay import HUB, PAGE, Choice, EchoPolicy, MakePolicy, Setting
from bowerbird.lab.echo_world import DAY_S, F64, HOUR_S, I64

PLACES = 8  # features: the place in the hub's list (0, 1, 2–3, 4–7…),
SHOWN = 6  # and the hubs that show the page, as far as is known
NAMES = ("page", "hub", "place", "shown")


@dataclass(frozen=True, slots=True)
class OnePriceOptions:
    """Settings, chosen on days before the scored ones."""

    price_quantile: float = 0.1  # of the last winning bids
    price_memory: int = 300
    lasts: int = 16  # newest pages of a hub that stand for the next
    slot_s: float = 4 * DAY_S
    least_shape: float = 1.0  # how little is known of a hub that was never visited
    most_fits_s: float = HOUR_S
    fewest_fits_s: float = 6 * HOUR_S
    value_turns: int = 8  # bids of pages are looked at anew after so many fetches
    worthless: float = 0.1  # pages that bid less than this share of the price are given up


class Waiting:
    """Pages that were seen and not fetched yet, as columns."""

    def __init__(self) -> None:
        self.count = 0
        self.columns = {name: np.zeros(1024, np.int64) for name in NAMES}
        self.born_s, self.worth, self.bid = np.zeros(1024), np.zeros(1024), np.zeros(1024)
        self.row: dict[int, int] = {}

    def add(self, pages: I64, columns: dict[str, I64 | int], born_s: float, worth: F64, bid: F64) -> None:
        """New ones, at the end."""
        first, last = self.count, self.count + len(pages)
        while last > len(self.bid):
            self.columns = {name: np.concatenate([each, each]) for name, each in self.columns.items()}
            self.born_s, self.worth, self.bid = (np.concatenate([e, e]) for e in (self.born_s, self.worth, self.bid))
        for name, values in columns.items():
            self.columns[name][first:last] = values
        self.columns["page"][first:last] = pages
        self.born_s[first:last], self.worth[first:last], self.bid[first:last] = born_s, worth, bid
        self.row.update(zip(pages.tolist(), range(first, last), strict=True))
        self.count = last

    def remove(self, row: int) -> None:
        """The last one takes its place."""
        last = self.count - 1
        del self.row[int(self.columns["page"][row])]
        if row != last:
            for column in (*self.columns.values(), self.born_s, self.worth, self.bid):
                column[row] = column[last]
            self.row[int(self.columns["page"][row])] = row
        self.count = last

    def keep(self, kept: I64) -> None:
        """Only these rows."""
        for column in (*self.columns.values(), self.born_s, self.worth, self.bid):
            column[: len(kept)] = column[kept]
        self.count = len(kept)
        self.row = dict(zip(self.columns["page"][: self.count].tolist(), range(self.count), strict=True))


class OnePrice:
    """One price for hubs and pages."""

    def __init__(self, setting: Setting, rng: np.random.Generator, options: OnePriceOptions) -> None:
        hubs = setting.hub_count
        self.setting, self.options = setting, options
        self.group = setting.hub_group
        self.tie = 1.0 + 1e-9 * rng.random(hubs)
        self.book = RateBook(
            hubs,
            setting.hub_group,
            slot_s=options.slot_s,
            prior_rate_per_s=setting.fetches_per_s / hubs,
            least_shape=options.least_shape,
        )
        groups = int(setting.hub_group.max(initial=0)) + 1
        self.model = PageWorth((groups, hubs, PLACES, SHOWN))
        self.waiting = Waiting()
        self.last_s = np.full(hubs, setting.begin_s)
        self.rate_per_s = self.book.rates()
        self.price = 0.0
        self._wins: deque[float] = deque(maxlen=options.price_memory)
        self._shown: list[set[int]] = [set() for _ in range(hubs)]
        # the newest pages of each hub: what the next will be like
        self._latest = np.zeros((hubs, options.lasts), np.int64)  # their places
        self._found = np.zeros(hubs, np.int64)
        self._profit = np.ones((hubs, options.lasts))
        self._hub_bid = np.zeros(hubs)
        self._number: dict[int, int] = {}
        self._fit_at = self._told_s = setting.begin_s
        self._turn = 0

    def choose(self, now_s: float) -> Choice | None:
        """The highest bid."""
        if now_s >= self._fit_at:
            self._fit(now_s)
        waiting = self.waiting
        if self._turn % self.options.value_turns == 0:
            self._bid_pages(now_s)
        if self._turn % max(len(self.last_s) // 100, 1) == 0:
            self._bid_hubs(now_s)
        self._turn += 1
        hub = int(np.argmax(self._hub_bid))
        best, choice = float(self._hub_bid[hub]), (HUB, hub)
        if waiting.count:
            row = int(np.argmax(waiting.bid[: waiting.count]))
            if waiting.bid[row] > best:
                best, choice = float(waiting.bid[row]), (PAGE, int(waiting.columns["page"][row]))
        self._wins.append(best)
        if self._turn % self.options.value_turns == 0 or self._turn < 2 * self.options.value_turns:
            self.price = float(np.quantile(np.array(self._wins), self.options.price_quantile))
        return choice

    def saw(self, now_s: float, hub: int, links: I64, fresh: I64, places: I64) -> None:
        """New pages wait, others are seen on one hub more or less, and the hub's rate is measured."""
        gap_s = now_s - self.last_s[hub]
        self.book.visit(hub, now_s, gap_s, len(fresh))
        self.last_s[hub] = now_s
        self.rate_per_s[hub] = self.book.rate_of(hub)
        self._hub_bid[hub] = 0.0
        self._note_shown(hub, links)
        if not len(fresh):
            return
        place = halve_places(places, PLACES)
        born_s = now_s - 0.5 * gap_s
        columns: dict[str, I64 | int] = {"hub": hub, "place": place, "shown": 1}
        worth = self._worth(np.full(len(fresh), hub), place, np.ones(len(fresh), np.int64))
        self.waiting.add(fresh, columns, born_s, worth, worth * self.model.left(now_s - born_s))
        for each in place.tolist():
            self._latest[hub, self._found[hub] % self.options.lasts] = each
            self._found[hub] += 1
        self._profit[hub] = self._worth_of_latest(np.array([hub]))[0]

    def fetched(self, now_s: float, page: int) -> None:
        """Its clicks will be learnt from."""
        row = self.waiting.row[page]
        levels = [int(self.waiting.columns[name][row]) for name in NAMES[1:]]
        group = int(self.group[levels[0]])
        self._number[page] = self.model.watch([group, *levels], now_s - float(self.waiting.born_s[row]), now_s)
        self.waiting.remove(row)

    def pushed(self, now_s: float, page: I64, bin_from_s: F64, clicks: F64) -> None:
        """Learn from clicks."""
        self._told_s = now_s - now_s % self.setting.bin_s  # whole bins are told
        number = np.fromiter((self._number[each] for each in page.tolist()), np.int64, len(page))
        self.model.hear(number, bin_from_s + 0.5 * self.setting.bin_s, clicks)

    def _note_shown(self, hub: int, links: I64) -> None:
        before, here = self._shown[hub], set(links.tolist())
        self._shown[hub] = here
        moved = []
        for pages, step in ((before - here, -1), (here - before, 1)):
            for page in pages:
                row = self.waiting.row.get(page)
                if row is not None:
                    shown = self.waiting.columns["shown"]
                    shown[row] = min(max(shown[row] + step, 0), SHOWN - 1)
                    moved.append(row)
        if moved:
            rows = np.array(moved)
            before_worth = self.waiting.worth[rows]
            after = self._worth(*(self.waiting.columns[name][rows] for name in NAMES[1:]))
            self.waiting.bid[rows] *= after / before_worth
            self.waiting.worth[rows] = after

    def _fit(self, now_s: float) -> None:
        options = self.options
        elapsed = now_s - self.setting.begin_s
        self._fit_at = now_s + min(max(0.1 * elapsed, options.most_fits_s), options.fewest_fits_s)
        self.model.fit(self._told_s)
        count = self.waiting.count
        if count:
            self.waiting.worth[:count] = self._worth(*(self.waiting.columns[name][:count] for name in NAMES[1:]))
        self._profit = self._worth_of_latest(np.arange(len(self.last_s)))
        self.rate_per_s = self.book.rates()
        self._bid_pages(now_s)
        self._bid_hubs(now_s)

    def _worth(self, hub: I64, place: I64, shown: I64) -> F64:
        return self.model.worth(np.stack([self.group[hub], hub, place, shown], axis=1))

    def _worth_of_latest(self, hubs: I64) -> F64:
        """By hub, what its newest pages would be worth now; a hub that has shown none, what is expected of it."""
        lasts = self.options.lasts
        every = np.repeat(hubs, lasts)
        worth = self._worth(every, self._latest[hubs].reshape(-1), np.ones(len(every), np.int64))
        worth = worth.reshape(len(hubs), lasts)
        seen = np.minimum(self._found[hubs], lasts)
        for short in np.flatnonzero(seen < lasts).tolist():  # the few it has stand for all
            have = int(seen[short])
            if have:
                worth[short] = np.resize(worth[short, :have], lasts)
            else:
                group, hub = int(self.group[hubs[short]]), int(hubs[short])
                worth[short] = self.model.mean * self.model.factors[0][group] * self.model.factors[1][hub]
        return worth

    def _bid_pages(self, now_s: float) -> None:
        waiting, count = self.waiting, self.waiting.count
        if not count:
            return
        waiting.bid[:count] = waiting.worth[:count] * self.model.left(now_s - waiting.born_s[:count])
        kept = np.flatnonzero(waiting.bid[:count] > self.options.worthless * self.price)
        if len(kept) < 0.8 * count and count > 256:
            waiting.keep(kept)

    def _bid_hubs(self, now_s: float) -> None:
        age_s = now_s - self.last_s
        index = net_hub_index(1.0, self._profit, self.model.decay_per_s, self.price, age_s[:, None]).mean(axis=1)
        self._hub_bid = self.tie * self.rate_per_s * index + 1e-12 * self.tie * age_s


def one_price(options: OnePriceOptions | None = None) -> MakePolicy:
    """What makes the product's policy."""

    def make(setting: Setting, rng: np.random.Generator) -> EchoPolicy:
        return OnePrice(setting, rng, options or OnePriceOptions())

    return make
